//! The text of a file that a call would change.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// The largest file that is read: 4 MiB.
const LARGEST: u64 = 4 << 20;

/// A file, as far as it can be shown.
pub(super) enum FileText {
    Missing,
    Text(String),
    /// The reason why it is not shown, and its bytes if they were read.
    Other(&'static str, Vec<u8>),
}

/// Reads a file. Only regular files are opened: reading another one may not end.
pub(super) fn read(path: &Path) -> FileText {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return FileText::Missing,
        Err(_) => return FileText::Other("it cannot be read", Vec::new()),
        Ok(found) if !found.is_file() => return FileText::Other("it is no file", Vec::new()),
        Ok(found) if found.len() > LARGEST => {
            return FileText::Other("it has more than 4 MiB", Vec::new());
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    if read.is_err() {
        return FileText::Other("it cannot be read", Vec::new());
    }
    match String::from_utf8(bytes) {
        Ok(text) => FileText::Text(text),
        Err(error) => FileText::Other("it is no text", error.into_bytes()),
    }
}
