//! File names as text that any terminal and any JSON reader takes.

use std::path::Path;

/// A path for people: bytes that are no UTF-8 as `\xNN`, control characters as `\u{N}`.
///
/// A file name may hold an escape sequence that a terminal would obey, and a report of it would carry that to whoever reads
/// it.
pub(crate) fn readable(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                _ if character.is_control() => text.extend(character.escape_unicode()),
                _ if character == std::path::MAIN_SEPARATOR => text.push('/'),
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02X}");
        }
    }
    text
}
