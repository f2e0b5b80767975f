//! Packets, and what a client asks in them.

use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What every server takes and gives unless another size was agreed on.
const PACKET: usize = 4096;

/// The status of the last packet of a message (MS-TDS 2.2.3.1.2).
const LAST: u8 = 1;

/// The kind of a message (MS-TDS 2.2.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Batch,
    Call,
    Tabular,
    Attention,
    Login,
    PreLogin,
    Other(u8),
}

impl From<u8> for Kind {
    fn from(byte: u8) -> Self {
        match byte {
            0x01 => Self::Batch,
            0x03 => Self::Call,
            0x04 => Self::Tabular,
            0x06 => Self::Attention,
            0x10 => Self::Login,
            0x12 => Self::PreLogin,
            other => Self::Other(other),
        }
    }
}

/// A whole message, put together from its packets.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    body: Vec<u8>,
}

impl Message {
    /// What a server sends.
    pub(super) fn tabular(body: Vec<u8>) -> Self {
        Self { kind: Kind::Tabular, body }
    }

    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut body = Vec::new();
        loop {
            let mut header = [0; 8];
            from.read_exact(&mut header).await?;
            let [kind, status, high, low, ..] = header;
            let length = usize::from(u16::from_be_bytes([high, low])).saturating_sub(header.len());
            let begin = body.len();
            body.resize(begin + length, 0);
            from.read_exact(&mut body[begin..]).await?;
            if status & LAST != 0 {
                return Ok(Self { kind: kind.into(), body });
            }
        }
    }

    /// Sends it as a server does.
    pub(super) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut packets = self.body.chunks(PACKET - 8).peekable();
        let mut id = 0_u8;
        while let Some(packet) = packets.next() {
            id = id.wrapping_add(1);
            let status = if packets.peek().is_none() { LAST } else { 0 };
            let length = u16::try_from(packet.len() + 8).expect("less than a packet's size").to_be_bytes();
            bytes.extend([0x04, status, length[0], length[1], 0, 0, id, 0]);
            bytes.extend(packet);
        }
        to.write_all(&bytes).await
    }
}

/// The answer to a pre-login message (MS-TDS 2.2.6.5): a version, and that there is no encryption to be had.
pub(super) fn prelogin_without_encryption() -> Vec<u8> {
    const VERSION: u8 = 0;
    const ENCRYPTION: u8 = 1;
    const TERMINATOR: u8 = 0xFF;
    const NOT_SUPPORTED: u8 = 2;
    // Two options of five bytes and a terminator come before the data; the version takes six bytes, the other one.
    let mut answer = vec![VERSION, 0, 11, 0, 6, ENCRYPTION, 0, 17, 0, 1, TERMINATOR];
    answer.extend([16, 0, 0, 0, 0, 0]);
    answer.push(NOT_SUPPORTED);
    answer
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Login(Login),
    /// A procedure, by the name that the client uses.
    Call(String),
    /// Statements as text.
    Batch(String),
    /// Stop what is under way.
    Attention,
    Other(u8),
}

/// Who logs in, where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub application: String,
    pub server: String,
    pub database: String,
}

impl Request {
    pub(super) fn of(message: &Message) -> Self {
        let body = &message.body;
        match message.kind {
            Kind::Login => Self::Login(Login::of(body)),
            Kind::Call => Self::Call(procedure(after_headers(body))),
            Kind::Batch => Self::Batch(text(after_headers(body))),
            Kind::Attention => Self::Attention,
            Kind::Other(kind) => Self::Other(kind),
            Kind::Tabular => Self::Other(0x04),
            Kind::PreLogin => Self::Other(0x12),
        }
    }
}

impl Login {
    /// MS-TDS 2.2.6.4: after 36 bytes of fixed fields, pairs of an offset and a length in characters.
    fn of(body: &[u8]) -> Self {
        let field = |index: usize| {
            let pair = 36 + 4 * index;
            let (offset, length) = (usize::from(u16_at(body, pair)), usize::from(u16_at(body, pair + 2)));
            text(body.get(offset..offset + 2 * length).unwrap_or_default())
        };
        Self { user: field(1), application: field(3), server: field(4), database: field(8) }
    }
}

/// MS-TDS 2.2.5.3: a call or batch begins with headers whose total length comes first.
fn after_headers(body: &[u8]) -> &[u8] {
    let length = body.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    body.get(length..).unwrap_or_default()
}

/// MS-TDS 2.2.6.6: a procedure's name, or a number in place of its length.
fn procedure(call: &[u8]) -> String {
    match u16_at(call, 0) {
        0xFFFF => format!("#{}", u16_at(call, 2)),
        length => text(call.get(2..2 + 2 * usize::from(length)).unwrap_or_default()),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

fn text(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
    String::from_utf16_lossy(&units)
}
