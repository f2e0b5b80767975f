//! The command that a user types next.

use std::ffi::OsStr;
use std::path::Path;

use crate::arguments::{Arguments, DEFAULT_DATABASE};

/// This program on the same folder, database and report.
pub(crate) fn again(arguments: &Arguments) -> String {
    let mut words = program();
    words.extend(arguments.folder.as_deref().map(quoted));
    if arguments.database != Path::new(DEFAULT_DATABASE) {
        words.extend(["--database".to_owned(), quoted(&arguments.database)]);
    }
    if let Some(name) = &arguments.name {
        words.extend(["--name".to_owned(), quoted(name)]);
    }
    words.join(" ")
}

/// The command that prints the published report.
pub(crate) fn to_read(arguments: &Arguments) -> String {
    again(arguments) + " --read"
}

/// How this program was started: through cargo, which sets this variable, or by its path.
fn program() -> Vec<String> {
    if std::env::var_os("CARGO_MANIFEST_DIR").is_some() {
        return vec!["cargo run --example rebuild_report --features sqlite --".to_owned()];
    }
    let program = std::env::args_os().next().unwrap_or_else(|| "rebuild_report".into());
    vec![quoted(&program)]
}

/// A word as a shell takes it.
fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
