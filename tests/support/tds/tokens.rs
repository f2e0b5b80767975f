//! What a server's answer is made of (MS-TDS 2.2.7).

use uuid::Uuid;

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

/// A value of a row. A column is what its first value is that is not NULL; one without any is BIGINT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Int(i32),
    BigInt(i64),
    Text(String),
    Id(Uuid),
    /// NULL in a column of identifiers, or of texts.
    NoId,
    NoText,
}

/// The types of columns (MS-TDS 2.2.5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Int,
    BigInt,
    Text,
    Id,
}

impl Type {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Int(_) => Some(Self::Int),
            Value::BigInt(_) => Some(Self::BigInt),
            Value::Text(_) | Value::NoText => Some(Self::Text),
            Value::Id(_) | Value::NoId => Some(Self::Id),
        }
    }

    fn info(self) -> &'static [u8] {
        match self {
            Self::Int => &[0x26, 4],
            Self::BigInt => &[0x26, 8],
            // NVARCHAR(4000) with the collation Latin1_General_CI_AS.
            Self::Text => &[0xE7, 0x40, 0x1F, 0x09, 0x04, 0xD0, 0x00, 0x34],
            Self::Id => &[0x24, 16],
        }
    }
}

/// Tokens, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens {
    bytes: Vec<u8>,
    /// The columns of the last result set: a NULL of a text looks different.
    types: Vec<Type>,
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
        self.types.clear();
        for (index, name) in names.iter().enumerate() {
            // No user type; nullable.
            self.bytes.extend([0, 0, 0, 0, 0x01, 0]);
            let column = rows.iter().find_map(|row| Type::of(&row[index])).unwrap_or(Type::BigInt);
            self.bytes.extend(column.info());
            self.types.push(column);
            self.bytes.extend(short_text(name));
        }
        self
    }

    /// A row of the columns before it.
    #[must_use]
    pub fn row(mut self, values: &[Value]) -> Self {
        self.bytes.push(0xD1);
        for (value, column) in values.iter().zip(&self.types) {
            match value {
                Value::Null | Value::NoText if *column == Type::Text => self.bytes.extend([0xFF, 0xFF]),
                Value::Null | Value::NoId | Value::NoText => self.bytes.push(0),
                Value::Int(value) => {
                    self.bytes.push(4);
                    self.bytes.extend(value.to_le_bytes());
                }
                Value::BigInt(value) => {
                    self.bytes.push(8);
                    self.bytes.extend(value.to_le_bytes());
                }
                Value::Text(value) => {
                    let value = utf16(value);
                    self.bytes.extend(length16(value.len()));
                    self.bytes.extend(value);
                }
                Value::Id(value) => {
                    self.bytes.push(16);
                    // The first three groups are little-endian.
                    self.bytes.extend(value.to_bytes_le());
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
