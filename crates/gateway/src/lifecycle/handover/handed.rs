//! What a program that gets a gateway finds in a file in memory: a line that identifies it, a version, and
//! then what its keeper needs, as postcard writes it (no field names, and numbers in as many bytes as they
//! need).
//!
//! Descriptors are given by their numbers, which exec(3) does not change. Everything else is in the files
//! that they lead to (`book`).

use crate::config::Config;
use crate::inherited::{InheritError, STATE_VERSION, StateError, descriptor};
use crate::link::KeptKeeper;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::RawFd;

const MAGIC: &[u8; 16] = b"causeway gateway";

/// More bytes than a keeper's state has: some numbers, and the descriptors that the keeper was started with.
const MAX_BYTES: u64 = 1 << 20;

/// The file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Handed {
    pub(super) site: String,
    pub(super) keeper: KeptKeeper,
}

impl Handed {
    /// Writes the state, and rewinds the file.
    pub(super) fn write(&self, mut file: &File) -> Result<(), StateError> {
        file.write_all(MAGIC)?;
        file.write_all(&STATE_VERSION.to_be_bytes())?;
        file.write_all(&postcard::to_stdvec(self)?)?;
        file.rewind()?;
        Ok(())
    }

    fn read(file: &File) -> Result<Handed, StateError> {
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Handed::decode(&bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Handed, StateError> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(StateError::Magic)?;
        if magic != MAGIC {
            return Err(StateError::Magic);
        }
        let (version, rest) = rest.split_first_chunk().ok_or(StateError::Magic)?;
        match u32::from_be_bytes(*version) {
            STATE_VERSION => {}
            version => return Err(StateError::Version(version)),
        }
        let (handed, rest) = postcard::take_from_bytes(rest)?;
        if rest.is_empty() {
            Ok(handed)
        } else {
            Err(StateError::Rest(rest.len()))
        }
    }
}

/// Reads what the predecessor left for the keeper in the file with this descriptor.
///
/// # Errors
/// The file was not written by a gateway of this version and configuration.
pub(crate) fn read(number: RawFd, config: &Config) -> Result<KeptKeeper, InheritError> {
    let file = File::from(descriptor(number)?);
    let handed = Handed::read(&file)?;
    if handed.site != config.site {
        let text = format!("is of site {}", config.site);
        return Err(InheritError::Configuration(text));
    }
    Ok(handed.keeper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::KeptListeners;
    use crate::link::ends::Ends;

    fn bytes() -> Vec<u8> {
        let handed = Handed {
            site: "rennes".to_owned(),
            keeper: KeptKeeper {
                files: [9, 10, 11],
                listeners: KeptListeners {
                    lan: vec![3],
                    wan: Some(4),
                    control: 5,
                    metrics: None,
                    transparent: Some(300),
                },
                foreign: vec![7],
                ends: Ends::default(),
            },
        };
        let mut file = tempfile::tempfile().unwrap();
        handed.write(&file).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(Handed::decode(&bytes).unwrap(), handed);
        bytes
    }

    #[test]
    fn other_files_and_other_versions_are_told_apart() {
        let written = bytes();
        assert!(matches!(Handed::decode(b""), Err(StateError::Magic)));
        assert!(matches!(
            Handed::decode(b"causeway sunshine\n"),
            Err(StateError::Magic)
        ));
        let mut newer = written.clone();
        newer[19] = 77;
        assert!(matches!(Handed::decode(&newer), Err(StateError::Version(77))));
        let longer = [&written[..], b"!"].concat();
        assert!(matches!(Handed::decode(&longer), Err(StateError::Rest(1))));
        for at in 0..written.len() {
            assert!(Handed::decode(&written[..at]).is_err(), "{at}");
        }
    }
}
