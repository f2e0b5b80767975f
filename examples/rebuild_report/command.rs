//! The command that a user types next.

use std::ffi::OsStr;

use crate::arguments::Arguments;

/// This program on the same folder, database and report.
pub(crate) fn again(arguments: &Arguments) -> String {
    let mut words = program();
    words.extend(arguments.folder.as_deref().map(quoted));
    words.extend(arguments.database.words(|word| quoted(word)));
    if let Some(name) = &arguments.name {
        words.extend(["--name".to_owned(), quoted(name)]);
    }
    words.join(" ")
}

/// The command that prints the published report.
pub(crate) fn to_read(arguments: &Arguments) -> String {
    again(arguments) + " --read"
}

/// The command that makes the tables on a server.
pub(crate) fn to_install(arguments: &Arguments) -> String {
    let mut words = program();
    words.extend(arguments.database.words(|word| quoted(word)));
    words.push("--install".to_owned());
    words.join(" ")
}

/// How this program was started: through cargo, which sets this variable, or by its path.
fn program() -> Vec<String> {
    if std::env::var_os("CARGO_MANIFEST_DIR").is_some() {
        let features = match (cfg!(feature = "sqlite"), cfg!(feature = "postgres")) {
            (true, true) => " --features sqlite,postgres",
            (true, false) => " --features sqlite",
            (false, true) => " --features postgres",
            (false, false) => "",
        };
        return vec![format!("cargo run --example rebuild_report{features} --")];
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
