//! The user's text files, of limited length.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Why a file has no text.
#[derive(Debug, thiserror::Error)]
#[error("read {}: {source}", .file.display())]
pub struct ReadError {
    file: PathBuf,
    source: io::Error,
}

/// The text of a file, up to one byte more than `most`: with that byte, the caller reports that it is too
/// long.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub fn read(file: &Path, most: usize) -> Result<String, ReadError> {
    let error = |source| ReadError {
        file: file.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(error)?;
    { opened.take(most as u64 + 1) }
        .read_to_end(&mut bytes)
        .map_err(error)?;
    // A character may have been cut.
    if bytes.len() > most {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let no_text = |reason| error(io::Error::new(io::ErrorKind::InvalidData, reason));
    String::from_utf8(bytes).map_err(no_text)
}
