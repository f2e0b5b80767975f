//! The build itself: walks the tree, and reads every file.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use super::Inventory;
use super::contents::{ReadFailure, Reader};
use super::tally::{Abandoned, Tally};
use crate::checkpoints::Checkpoints;
use crate::progress::Progress;

/// Takes the inventory of a folder, except of these paths. Blocks, for as long as it takes.
pub(crate) fn take(
    folder: &Path,
    except: Vec<PathBuf>,
    limit: usize,
    checkpoints: &Checkpoints,
    progress: &Progress,
) -> Result<Inventory, Abandoned> {
    let mut tally = Tally::new(folder, limit);
    let files = find(folder, except, checkpoints, &mut tally)?;
    progress.expect(files.len());
    let mut reader = Reader::new();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path);
        match reader.read(&path, checkpoints) {
            Ok(contents) => tally.add(name, contents)?,
            Err(ReadFailure::Io(error)) => tally.add_unreadable(name, error.to_string())?,
            Err(ReadFailure::Stopped(stopped)) => return Err(stopped.into()),
        }
        progress.one_more();
        checkpoints.between_files()?;
    }
    Ok(tally.finish())
}

/// Every regular file, by path. Links are not followed: what they lead to may be elsewhere, or be this folder again.
fn find(
    folder: &Path,
    except: Vec<PathBuf>,
    checkpoints: &Checkpoints,
    tally: &mut Tally,
) -> Result<Vec<PathBuf>, Abandoned> {
    let walk = WalkBuilder::new(folder)
        .hidden(false)
        // A .gitignore means the same in an unpacked archive.
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(move |entry| !is_left_out(entry) && !except.iter().any(|path| path == entry.path()))
        .build();
    let mut files = Vec::new();
    for entry in walk {
        checkpoints.pass()?;
        match entry {
            // A FIFO would block the reader for ever.
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => files.push(entry.into_path()),
            Ok(_) => {}
            Err(error) => {
                let path = path_of(&error).unwrap_or(folder);
                let name = path.strip_prefix(folder).unwrap_or(path);
                // The error itself would name the path once more.
                let why = error.io_error().map_or_else(|| error.to_string(), |error| error.kind().to_string());
                tally.add_unreadable(name, why)?;
            }
        }
    }
    Ok(files)
}

/// What no inventory of sources wants, whatever the .gitignore says.
fn is_left_out(entry: &DirEntry) -> bool {
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    // In a linked worktree, .git is a file.
    entry.depth() > 0 && (entry.file_name() == ".git" || (is_folder && entry.file_name() == "target"))
}

/// The path that an error of the walk is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}
