//! What a server's answer is made of (MS-TDS 2.2.7).

/// An error of the server, as it tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    pub number: u32,
    pub state: u8,
    /// The severity: 11 to 16 the client's, 17 to 19 the server's, 20 and above the end of the connection.
    pub class: u8,
    pub message: String,
}

impl SqlError {
    pub fn new(number: u32, class: u8) -> Self {
        Self { number, state: 1, class, message: format!("error {number} of the test") }
    }

    #[must_use]
    pub fn state(self, state: u8) -> Self {
        Self { state, ..self }
    }

    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }
}

/// A value of a row. A column is NVARCHAR if there is a text in it, else BIGINT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    BigInt(i64),
    Text(String),
}

/// Tokens, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens {
    bytes: Vec<u8>,
    /// Of the last result set, which columns are NVARCHAR: a NULL looks different in them.
    texts: Vec<bool>,
}

impl Tokens {
    /// The statuses of a *done* (MS-TDS 2.2.7.6).
    pub const FINAL: u16 = 0x00;
    pub const MORE: u16 = 0x01;
    pub const FAILED: u16 = 0x02;
    pub const ATTENTION: u16 = 0x20;

    #[must_use]
    pub fn error(self, error: &SqlError) -> Self {
        let mut body = error.number.to_le_bytes().to_vec();
        body.extend([error.state, error.class]);
        let message = utf16(&error.message);
        body.extend(length16(message.len() / 2));
        body.extend(message);
        // No server, no procedure, line 1.
        body.extend([0, 0, 1, 0, 0, 0]);
        self.token(0xAA, body)
    }

    /// TDS 7.4, as every server since 2012.
    #[must_use]
    pub fn login_ack(self) -> Self {
        let mut body = vec![1, 0x74, 0, 0, 0x04];
        body.extend(short_text("test"));
        body.extend([16, 0, 0, 0]);
        self.token(0xAD, body)
    }

    /// Go to another server (MS-TDS 2.2.7.9, type 20).
    #[must_use]
    pub fn route(self, host: &str, port: u16) -> Self {
        let mut new = vec![0];
        new.extend(port.to_le_bytes());
        new.extend(length16(host.encode_utf16().count()));
        new.extend(utf16(host));
        let mut body = vec![20];
        body.extend(length16(new.len()));
        body.extend(new);
        // No old value.
        body.extend([0, 0]);
        self.token(0xE3, body)
    }

    /// The columns of these rows.
    #[must_use]
    pub fn columns(mut self, names: &[&str], rows: &[Vec<Value>]) -> Self {
        self.bytes.push(0x81);
        self.bytes.extend(length16(names.len()));
        self.texts.clear();
        for (index, name) in names.iter().enumerate() {
            // No user type; nullable.
            self.bytes.extend([0, 0, 0, 0, 0x01, 0]);
            let is_text = rows.iter().any(|row| matches!(row[index], Value::Text(_)));
            if is_text {
                // NVARCHAR(4000) with the collation Latin1_General_CI_AS.
                self.bytes.extend([0xE7, 0x40, 0x1F, 0x09, 0x04, 0xD0, 0x00, 0x34]);
            } else {
                self.bytes.extend([0x26, 8]);
            }
            self.texts.push(is_text);
            self.bytes.extend(short_text(name));
        }
        self
    }

    /// A row of the columns before it.
    #[must_use]
    pub fn row(mut self, values: &[Value]) -> Self {
        self.bytes.push(0xD1);
        for (value, is_text) in values.iter().zip(&self.texts) {
            match value {
                Value::Null if *is_text => self.bytes.extend([0xFF, 0xFF]),
                Value::Null => self.bytes.push(0),
                Value::BigInt(value) => {
                    self.bytes.push(8);
                    self.bytes.extend(value.to_le_bytes());
                }
                Value::Text(value) => {
                    let value = utf16(value);
                    self.bytes.extend(length16(value.len()));
                    self.bytes.extend(value);
                }
            }
        }
        self
    }

    #[must_use]
    pub fn return_status(mut self, status: i32) -> Self {
        self.bytes.push(0x79);
        self.bytes.extend(status.to_le_bytes());
        self
    }

    #[must_use]
    pub fn done(self, status: u16) -> Self {
        self.done_as(0xFD, status)
    }

    #[must_use]
    pub fn done_procedure(self, status: u16) -> Self {
        self.done_as(0xFE, status)
    }

    #[must_use]
    pub fn done_in_procedure(self, status: u16) -> Self {
        self.done_as(0xFF, status)
    }

    fn done_as(mut self, token: u8, status: u16) -> Self {
        self.bytes.push(token);
        self.bytes.extend(status.to_le_bytes());
        // No command, no rows counted.
        self.bytes.extend([0; 10]);
        self
    }

    /// A token that begins with its length.
    fn token(mut self, token: u8, body: Vec<u8>) -> Self {
        self.bytes.push(token);
        self.bytes.extend(length16(body.len()));
        self.bytes.extend(body);
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// With its length in characters, in one byte, before it.
fn short_text(text: &str) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(text.encode_utf16().count()).expect("a short text")];
    bytes.extend(utf16(text));
    bytes
}

fn length16(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a short token").to_le_bytes()
}
