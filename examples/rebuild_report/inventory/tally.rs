//! Adds files up, and stops as soon as the report is certain to be too large to publish.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use super::contents::Contents;
use super::{FORMAT, File, Inventory, LARGEST, Size, Sums, Unreadable};
use crate::checkpoints::Stopped;
use crate::names;

/// Why there is no inventory.
#[derive(Debug)]
pub(crate) enum Abandoned {
    /// A checkpoint was not passed.
    Stopped(Stopped),
    /// After this many files the report is over the limit of a payload.
    TooLarge {
        /// How many files it would have held by then.
        files: usize,
    },
}

impl From<Stopped> for Abandoned {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// The inventory so far.
#[derive(Debug)]
pub(super) struct Tally {
    inventory: Inventory,
    /// What the entries take in JSON, at the least.
    payload: usize,
    limit: usize,
}

impl Tally {
    pub(super) fn new(folder: &Path, limit: usize) -> Self {
        let inventory = Inventory {
            format: FORMAT,
            folder: names::readable(folder),
            total: Sums::default(),
            extensions: BTreeMap::new(),
            largest: Vec::new(),
            unreadable: Vec::new(),
            files: Vec::new(),
        };
        Self { inventory, payload: 0, limit }
    }

    pub(super) fn add(&mut self, path: &Path, contents: Contents) -> Result<(), Abandoned> {
        let Contents { bytes, lines, sha256 } = contents;
        let extension = path.extension().map(|extension| names::readable(Path::new(extension))).unwrap_or_default();
        let of_extension = self.inventory.extensions.entry(extension.to_ascii_lowercase()).or_default();
        for sums in [&mut self.inventory.total, of_extension] {
            sums.files += 1;
            sums.lines += lines;
            sums.bytes += bytes;
        }
        let path = names::readable(path);
        self.rank(&path, bytes);
        self.grow(path.len() + sha256.len())?;
        self.inventory.files.push(File { path, bytes, lines, sha256 });
        Ok(())
    }

    pub(super) fn add_unreadable(&mut self, path: &Path, why: String) -> Result<(), Abandoned> {
        let path = names::readable(path);
        self.grow(path.len() + why.len())?;
        self.inventory.unreadable.push(Unreadable { path, why });
        Ok(())
    }

    pub(super) fn finish(self) -> Inventory {
        self.inventory
    }

    /// Keeps the largest few, the first found first among equals.
    fn rank(&mut self, path: &str, bytes: u64) {
        let largest = &mut self.inventory.largest;
        let place = largest.partition_point(|other| Reverse(other.bytes) <= Reverse(bytes));
        if place < LARGEST {
            largest.insert(place, Size { bytes, path: path.to_owned() });
            largest.truncate(LARGEST);
        }
    }

    /// Counts an entry, low: what is refused here would be refused as a payload too, after all the work.
    fn grow(&mut self, text: usize) -> Result<(), Abandoned> {
        self.payload += text;
        if self.payload <= self.limit {
            return Ok(());
        }
        Err(Abandoned::TooLarge { files: self.inventory.files.len() })
    }
}
