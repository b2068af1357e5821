//! A new grid: its directory with authority, broker's certificate and configuration.

use crate::authority::{self, Authority, AuthorityError};
use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::files::{self, FileError};
use crate::join_token::is_host_and_port;
use crate::records::{
    BrokerRecord, MAX_BROKERS, Records, SHARES, SignedRecord, Standing, Statement, authority_text,
};
use crate::server::own;
use crate::state::several::RECORDS_FILE;
use std::path::{Path, PathBuf};

/// Name of the configuration in a grid's directory.
pub const CONFIG_FILE: &str = "broker.toml";

/// Why there is no new grid.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// There is one already.
    #[error("{} is there already, and a grid's authority cannot be made again; choose another --dir, or remove it to give \
        up that grid", .0.display())]
    Exists(PathBuf),
    /// Where sites are to find the broker.
    #[error("{0:?} is not HOST:PORT such as broker.example:7443")]
    Broker(String),
    /// Key or certificate.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The broker's own certificate.
    #[error("the broker's own certificate: {0}")]
    Own(String),
    /// What lies in the authority's directory.
    #[error("the grid's authority: {0}")]
    Root(String),
    /// Each broker has a part of the virtual addresses.
    #[error("a grid has 1 to {SHARES} brokers that serve, and {MAX_BROKERS} in all its life")]
    Count,
    /// It was never made.
    #[error("no broker {0} was ever made by this authority")]
    NoBroker(u8),
}

/// Makes a grid in a directory of its own, and returns its broker's configuration. It overwrites nothing, and
/// leaves nothing where it fails.
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
        // Nobody trusts this authority yet, and what there is of it would stand in the way of the next try.
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

/// Name of the authority's directory in that of a grid of several brokers, and how those of the brokers
/// begin.
pub const AUTHORITY_DIRECTORY: &str = "authority";
const BROKER_DIRECTORY: &str = "broker-";

/// Makes a grid of several brokers in a directory of its own: that of the authority, which may lie on a stick
/// in a drawer from then on, and one for each broker, to be moved to its host. Returns the brokers'
/// configurations. It overwrites nothing, and leaves nothing where it fails.
///
/// # Errors
/// See [`GridError`].
pub fn create_several(
    name: &str,
    brokers: &[String],
    directory: &Path,
    clock: &Clock,
) -> Result<Vec<PathBuf>, GridError> {
    if !(1..=usize::from(SHARES)).contains(&brokers.len()) {
        return Err(GridError::Count);
    }
    let authority_directory = directory.join(AUTHORITY_DIRECTORY);
    if authority_directory.symlink_metadata().is_ok() {
        return Err(GridError::Exists(authority_directory));
    }
    let made = Authority::create(name, clock)?;
    files::make_directory(directory)?;
    let mut places = vec![authority_directory.clone()];
    let all = || -> Result<Vec<PathBuf>, GridError> {
        let mut root = Root::new(made, &authority_directory)?;
        brokers
            .iter()
            .map(|broker| root.add(broker, directory, clock, &mut places))
            .collect()
    };
    let configs = all();
    if configs.is_err() {
        // Nobody trusts this authority yet, and what there is of it would stand in the way of the next try.
        for place in places {
            let _ = std::fs::remove_dir_all(place);
        }
    }
    configs
}

/// The authority of a grid of several brokers, where it lies.
pub struct Root {
    authority: Authority,
    directory: PathBuf,
    signed: Vec<SignedRecord>,
    records: Records,
}

/// What the authority signed of a broker: where the files of a new one are, and the records that any broker
/// of the grid has to be told.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The new broker's configuration, if there is one.
    pub config: Option<PathBuf>,
    /// The records.
    pub records: Vec<SignedRecord>,
}

impl Root {
    fn new(authority: Authority, directory: &Path) -> Result<Root, GridError> {
        files::make_directory(directory)?;
        authority.save(directory)?;
        let root = Root {
            authority,
            directory: directory.to_owned(),
            signed: Vec::new(),
            records: Records::default(),
        };
        root.save(directory)?;
        Ok(root)
    }

    /// Reads what is in the authority's directory.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    pub fn open(directory: &Path) -> Result<Root, GridError> {
        let signed = crate::state::several::read_file(directory);
        let signed = signed.map_err(|error| GridError::Root(error.to_string()))?;
        let grid = signed.iter().find_map(SignedRecord::grid);
        let grid = grid.ok_or_else(|| GridError::Root("records.json names no broker".to_owned()))?;
        let authority = Authority::load(&grid, directory)?;
        let mut records = Records::default();
        for record in &signed {
            let statement = record.verify(&grid, authority.certificate(), &records);
            let statement = statement.map_err(|error| GridError::Root(error.to_string()))?;
            let _ = records.add(statement, record.clone());
        }
        Ok(Root {
            authority,
            directory: directory.to_owned(),
            signed,
            records,
        })
    }

    /// Name of the grid.
    pub fn grid(&self) -> &str {
        self.authority.grid()
    }

    /// The brokers that were ever made.
    pub fn brokers(&self) -> impl Iterator<Item = &BrokerRecord> {
        self.records.brokers()
    }

    /// Makes another broker, with a directory of its own in `directory`.
    ///
    /// # Errors
    /// See [`GridError`].
    pub fn add_broker(
        &mut self,
        broker: &str,
        directory: &Path,
        clock: &Clock,
    ) -> Result<Changed, GridError> {
        let before = self.signed.len();
        let mut places = Vec::new();
        match self.add(broker, directory, clock, &mut places) {
            Ok(config) => Ok(Changed {
                config: Some(config),
                records: self.signed[before..].to_vec(),
            }),
            Err(error) => {
                for place in places {
                    let _ = std::fs::remove_dir_all(place);
                }
                Err(error)
            }
        }
    }

    /// Takes a broker out of service, for ever. Expelled, it counts as one whose keys somebody else has.
    ///
    /// # Errors
    /// See [`GridError`].
    pub fn retire(&mut self, number: u8, standing: Standing) -> Result<Changed, GridError> {
        let known = self
            .records
            .broker(number)
            .cloned()
            .ok_or(GridError::NoBroker(number))?;
        let record = BrokerRecord {
            revision: known.revision.saturating_add(1),
            standing: known.standing.max(standing),
            ..known
        };
        let signed = self.sign(record)?;
        self.save(&self.directory)?;
        Ok(Changed {
            config: None,
            records: vec![signed],
        })
    }

    fn sign(&mut self, record: BrokerRecord) -> Result<SignedRecord, GridError> {
        let statement = Statement::Broker(record);
        let signed = self.authority.state(&statement)?;
        let _ = self.records.add(statement, signed.clone());
        self.signed.push(signed.clone());
        Ok(signed)
    }

    fn save(&self, directory: &Path) -> Result<(), GridError> {
        // Strings have a JSON form.
        let text = serde_json::to_vec(&self.signed).unwrap_or_default();
        Ok(files::replace(&directory.join(RECORDS_FILE), &text, 0o644)?)
    }

    fn add(
        &mut self,
        broker: &str,
        directory: &Path,
        clock: &Clock,
        places: &mut Vec<PathBuf>,
    ) -> Result<PathBuf, GridError> {
        if !is_host_and_port(broker) {
            return Err(GridError::Broker(broker.to_owned()));
        }
        let last = self
            .records
            .brokers()
            .map(|broker| broker.number)
            .max()
            .unwrap_or(0);
        let number = last.checked_add(1).filter(|number| *number < MAX_BROKERS);
        let number = number.ok_or(GridError::Count)?;
        let share = self.records.free_share().ok_or(GridError::Count)?;
        let place = directory.join(format!("{BROKER_DIRECTORY}{number}"));
        if place.symlink_metadata().is_ok() {
            return Err(GridError::Exists(place));
        }
        let own = self.authority.create_for_broker(number, clock)?;
        let own_certificate = own.own().map(authority_text).unwrap_or_default();
        places.push(place.clone());
        files::make_directory(&place)?;
        own.save(&place)?;
        own::make(&place, &own, clock.now()).map_err(|error| GridError::Own(error.to_string()))?;
        let text = BrokerConfig::text(self.grid(), broker);
        let config = place.join(CONFIG_FILE);
        files::create(&config, text.as_bytes(), 0o644)?;
        self.sign(BrokerRecord {
            number,
            revision: 0,
            standing: Standing::Serving,
            public: vec![broker.to_owned()],
            authority: own_certificate,
            share,
        })?;
        self.save(&self.directory)?;
        self.save(&place)?;
        Ok(config)
    }
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
