//! The report: what a folder tree holds.

mod contents;
mod scan;
mod tally;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use scan::take;
pub(crate) use tally::Abandoned;

/// The version of the payload's shape; `--read` says so when it meets another.
pub(crate) const FORMAT: u32 = 1;

/// How many of the largest files are named.
const LARGEST: usize = 10;

/// What is published, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inventory {
    pub(crate) format: u32,
    pub(crate) folder: String,
    pub(crate) total: Sums,
    /// By extension in lower case; the empty one stands for files without.
    pub(crate) extensions: BTreeMap<String, Sums>,
    /// The largest first.
    pub(crate) largest: Vec<Size>,
    /// Files and folders that could not be read, and are in no sum.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Every file, by path.
    pub(crate) files: Vec<File>,
}

/// Sums over some files.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sums {
    pub(crate) files: u64,
    /// Of text only; a last line without its newline counts.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

/// One file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct File {
    /// Relative to the folder, with `/`; see `names.rs` for bytes that are no UTF-8.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) sha256: String,
}

/// How large a file is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) path: String,
}

/// What could not be read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Unreadable {
    pub(crate) path: String,
    pub(crate) why: String,
}
