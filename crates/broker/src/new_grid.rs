//! A new grid: its directory with authority, broker's certificate and configuration.

use crate::authority::{self, Authority, AuthorityError};
use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::files::{self, FileError};
use crate::join_token::is_host_and_port;
use crate::records::{MAX_BROKERS, SHARES};
use crate::server::own;
use crate::state::StateError;
use std::path::{Path, PathBuf};

/// Name of the configuration in a grid's directory.
pub const CONFIG_FILE: &str = "broker.toml";

/// Why there is no new grid.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// A grid exists already.
    #[error("{} is there already, and a grid's authority cannot be made again; choose another --dir, or remove it to give \
        up that grid", .0.display())]
    Exists(PathBuf),
    /// The address where sites can find the broker.
    #[error("{0:?} is not HOST:PORT such as broker.example:7443")]
    Broker(String),
    /// A key or certificate could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The broker's own certificate could not be made.
    #[error("the broker's own certificate: {0}")]
    Own(String),
    /// The authority's directory does not contain what it should.
    #[error("the grid's authority: {0}")]
    Root(String),
    /// There are too many brokers: each has its own part of the virtual addresses.
    #[error("a grid has 1 to {SHARES} brokers that serve, and {MAX_BROKERS} in all its life")]
    Count,
    /// The state of the broker that is to get an authority of its own.
    #[error(transparent)]
    State(#[from] StateError),
    /// No broker was ever made with this number.
    #[error("no broker {0} was ever made by this authority")]
    NoBroker(u8),
}

/// Makes a grid in a directory of its own, and returns its broker's configuration. It overwrites nothing, and
/// leaves nothing if it fails.
///
/// # Errors
/// See [`GridError`].
pub fn create(name: &str, broker: &str, directory: &Path, clock: &Clock) -> Result<PathBuf, GridError> {
    if !is_host_and_port(broker) {
        return Err(GridError::Broker(broker.to_owned()));
    }
    let made = Authority::create(name, clock)?;
    files::make_directory(directory)?;
    let config = directory.join(CONFIG_FILE);
    for file in [
        authority::KEY_FILE,
        authority::CERTIFICATE_FILE,
        CONFIG_FILE,
        "store.redb",
    ] {
        let path = directory.join(file);
        if path.symlink_metadata().is_ok() {
            return Err(GridError::Exists(path));
        }
    }
    made.save(directory)?;
    let rest = || -> Result<(), GridError> {
        own::make(directory, &made, clock.now()).map_err(|error| GridError::Own(error.to_string()))?;
        Ok(files::create(
            &config,
            BrokerConfig::text(name, broker).as_bytes(),
            0o644,
        )?)
    };
    if let Err(error) = rest() {
        // Nobody trusts this authority yet, and what exists of it would be in the way of the next attempt.
        for file in [
            authority::KEY_FILE,
            authority::CERTIFICATE_FILE,
            own::CERTIFICATE_FILE,
            own::KEY_FILE,
        ] {
            let _ = std::fs::remove_file(directory.join(file));
        }
        return Err(error);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_grid_is_made_once_and_its_keys_are_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let grid = dir.path().join("g5k");
        let config = create("g5k", "broker.example:7443", &grid, &Clock::system()).unwrap();
        assert_eq!(BrokerConfig::load(&config).unwrap().grid, "g5k");
        for key in ["ca.key", "broker.key"] {
            assert_eq!(grid.join(key).metadata().unwrap().mode() & 0o777, 0o600, "{key}");
        }
        assert_eq!(grid.metadata().unwrap().mode() & 0o777, 0o700);
        let before = std::fs::read(grid.join("ca.key")).unwrap();
        let again = create("g5k", "broker.example:7443", &grid, &Clock::system());
        assert!(matches!(again, Err(GridError::Exists(_))));
        assert_eq!(std::fs::read(grid.join("ca.key")).unwrap(), before);
        assert!(matches!(
            create("g", "nowhere", &grid, &Clock::system()),
            Err(GridError::Broker(_))
        ));
    }
}
