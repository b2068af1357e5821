//! Names of files in an archive for which the headers have no room, in the formats of GNU tar and of POSIX.
//! They are read here because the `tar` library would read names of any length into memory.

use std::io::{self, Read};
use tar::{Entry, EntryType, PaxExtensions};

/// Most bytes of a name, or of names and times, that an archive may give one file.
const MOST_NAME: u64 = 1 << 14;

/// The names for the next entry of an archive, if its header has no room for them.
#[derive(Default)]
pub(super) struct LongNames {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
}

impl LongNames {
    /// Reads an entry that describes the next one; false if the entry is a file itself.
    pub(super) fn read(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<bool> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.path = Some(name(bounded(entry)?)),
            EntryType::GNULongLink => self.target = Some(name(bounded(entry)?)),
            EntryType::XHeader => {
                let bytes = bounded(entry)?;
                for extension in PaxExtensions::new(&bytes) {
                    let extension = extension?;
                    match extension.key_bytes() {
                        b"path" => self.path = Some(extension.value_bytes().to_vec()),
                        b"linkpath" => self.target = Some(extension.value_bytes().to_vec()),
                        b"size" => {
                            return Err(io::Error::other(
                                "the archive has a size in a form that is not read",
                            ));
                        }
                        _ => {}
                    }
                }
            }
            EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads an entry with a name, unless it is too long.
fn bounded(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_NAME + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_NAME {
        true => Err(io::Error::other(format!(
            "the archive has a name of more than {MOST_NAME} bytes"
        ))),
        false => Ok(bytes),
    }
}

/// A name up to the zero byte that ends it.
fn name(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    bytes
}
