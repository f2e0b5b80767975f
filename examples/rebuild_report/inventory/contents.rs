//! One file: its bytes, lines and SHA-256, in one pass.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::checkpoints::{Checkpoints, Stopped};

/// How much is read between two checkpoints.
const CHUNK: usize = 1 << 20;

/// A file with a NUL byte this far from its beginning is binary, as git has it.
const TEXT_PROBE: usize = 8_000;

/// What one file holds.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) sha256: String,
}

/// Why a file was not read to its end.
#[derive(Debug)]
pub(super) enum ReadFailure {
    /// The file's own affair.
    Io(io::Error),
    /// The whole build is to stop.
    Stopped(Stopped),
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Stopped> for ReadFailure {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// Reads files, one after the other, into one buffer.
#[derive(Debug)]
pub(super) struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; CHUNK] }
    }

    pub(super) fn read(&mut self, path: &Path, checkpoints: &Checkpoints) -> Result<Contents, ReadFailure> {
        let mut file = File::open(path)?;
        let mut hash = Sha256::new();
        let (mut bytes, mut newlines, mut last) = (0, 0, b'\n');
        let mut is_text = true;
        loop {
            let length = match file.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(&end) = self.buffer[..length].last() else { break };
            let chunk = &self.buffer[..length];
            if bytes == 0 {
                is_text = !chunk[..length.min(TEXT_PROBE)].contains(&0);
            }
            hash.update(chunk);
            bytes += length as u64;
            newlines += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
            last = end;
            checkpoints.pass()?;
        }
        let lines = if is_text { newlines + u64::from(last != b'\n') } else { 0 };
        Ok(Contents { bytes, lines, sha256: hex(&hash.finalize()) })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
