//! Common to everything that a gateway takes over from its predecessor: its version, the errors, and the
//! descriptors.

use crate::sys::socket;
use causeway_tunnel::SnapshotError;
use std::io;
use std::os::fd::{OwnedFd, RawFd};

/// A gateway hands over only to a program that reads this version; it rises with every change of what is
/// written, here or in `causeway_tunnel::Snapshot`. A test below contains the bytes.
pub const STATE_VERSION: u32 = 13;

/// Why a file cannot be read as state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The state cannot be read.
    #[error("read: {0}")]
    Io(#[from] io::Error),
    /// The state was not written by a gateway.
    #[error("it is not a gateway's state")]
    Magic,
    /// The state was written by a gateway of another version.
    #[error("its version is {0}, but this program reads {STATE_VERSION}")]
    Version(u32),
    /// The state is truncated or damaged, or cannot be written.
    #[error("it is damaged: {0}")]
    Format(#[from] postcard::Error),
    /// This many bytes follow that belong to nothing.
    #[error("it is damaged: {0} bytes too many")]
    Rest(usize),
    /// The state contradicts itself.
    #[error("it is damaged: {0}")]
    Contradiction(&'static str),
}

/// Why a gateway cannot go on from what it was given.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The state cannot be read.
    #[error("the state: {0}")]
    State(#[from] StateError),
    /// A descriptor that the state names does not exist.
    #[error("descriptor {0}: {1}")]
    Descriptor(RawFd, io::Error),
    /// The kernel does not report events of a descriptor.
    #[error("register: {0}")]
    Register(#[from] io::Error),
    /// A tunnel's state is invalid.
    #[error("tunnel to {0}: {1}")]
    Tunnel(String, SnapshotError),
    /// The configuration is of another gateway.
    #[error("the configuration {0}, but the state's gateway did not")]
    Configuration(String),
    /// The state contradicts itself.
    #[error("the state is damaged: {0}")]
    Contradiction(&'static str),
}

/// A descriptor that the predecessor left.
pub(crate) fn descriptor(number: RawFd) -> Result<OwnedFd, InheritError> {
    socket::adopt(number).map_err(|error| InheritError::Descriptor(number, error))
}
