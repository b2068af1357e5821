//! The authority of a grid of several brokers: it makes brokers and takes them out of service.
//!
//! Nothing else needs its key, so the directory may be kept on a stick in a drawer. What it signs are
//! records, which any broker passes on.

use crate::authority::{self, Authority};
use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::files::{self, FileError};
use crate::join_token::is_host_and_port;
use crate::new_grid::{CONFIG_FILE, GridError};
use crate::records::{
    BrokerRecord, MAX_BROKERS, Records, SHARES, SignedRecord, Standing, Statement, authority_text,
};
use crate::server::own;
use crate::state::State;
use crate::state::several::{RECORDS_FILE, read_file};
use std::path::{Path, PathBuf};

/// Name of the authority's directory inside that of a grid of several brokers, and the prefix of the brokers'
/// directories.
pub const AUTHORITY_DIRECTORY: &str = "authority";
const BROKER_DIRECTORY: &str = "broker-";

/// Makes a grid of several brokers in a new directory, with one directory for the authority, which may lie on
/// a stick in a drawer from then on, and one for each broker, to be moved to its host. Returns the brokers'
/// configurations. It overwrites nothing, and leaves nothing if it fails.
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
        let made = brokers
            .iter()
            .map(|broker| root.add(broker, directory, clock, &mut places));
        let configs: Vec<PathBuf> = made.collect::<Result<_, _>>()?;
        // Each must know all of them before it has met one, because it tells the sites that join.
        for config in &configs {
            root.save(files::directory_of(config))?;
        }
        Ok(configs)
    };
    let configs = all();
    if configs.is_err() {
        // Nobody trusts this authority yet, and what exists of it would be in the way of the next attempt.
        for place in places {
            let _ = std::fs::remove_dir_all(place);
        }
    }
    configs
}

/// The authority of a grid of several brokers, in its directory.
pub struct Root {
    authority: Authority,
    directory: PathBuf,
    signed: Vec<SignedRecord>,
    records: Records,
}

/// What the authority signed about a broker: where the files of a new one are, and the records that some
/// broker of the grid must be given.
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
        let signed = read_file(directory);
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

    /// Takes a broker out of service for ever. If it is expelled, its keys count as known to somebody else.
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
        let signed = self.sign(Statement::Broker(record))?;
        self.save(&self.directory)?;
        Ok(Changed {
            config: None,
            records: vec![signed],
        })
    }

    fn sign(&mut self, statement: Statement) -> Result<SignedRecord, GridError> {
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
        self.sign(Statement::Broker(BrokerRecord {
            number,
            revision: 0,
            standing: Standing::Serving,
            public: vec![broker.to_owned()],
            authority: own_certificate,
            share,
        }))?;
        self.save(&self.directory)?;
        self.save(&place)?;
        Ok(config)
    }
}

/// Gives the broker of a grid an authority of its own, and moves the grid's authority out of its directory,
/// so that the grid can have several. The broker must not run. Sites keep their certificates and their names.
///
/// # Errors
/// See [`GridError`]; the broker's directory is then as it was.
pub fn move_authority(config: &BrokerConfig, to: &Path, clock: &Clock) -> Result<(), GridError> {
    let directory = &config.directory;
    let root = Authority::load(&config.grid, directory)?;
    if root.own().is_some() {
        return Err(GridError::Root(
            "it is not here: this grid has several brokers already".to_owned(),
        ));
    }
    // This locks the store, so that no broker runs meanwhile.
    let state = State::open(config, clock.clone())?;
    let number = 1;
    let own = root.create_for_broker(number, clock)?;
    let mut root = Root::new(root, to)?;
    let mut moved = || -> Result<(), GridError> {
        root.sign(Statement::Broker(BrokerRecord {
            number,
            revision: 0,
            standing: Standing::Serving,
            public: config.public.clone(),
            authority: own.own().map(authority_text).unwrap_or_default(),
            share: 0,
        }))?;
        // The other brokers must know who has which name and which ranges.
        for admitted in state.admitted_by_one() {
            root.sign(Statement::Admitted(admitted))?;
        }
        root.save(to)?;
        root.save(directory)?;
        Ok(own.save(directory)?)
    };
    if let Err(error) = moved() {
        let _ = std::fs::remove_file(directory.join(RECORDS_FILE));
        let _ = std::fs::remove_dir_all(to);
        return Err(error);
    }
    let key = directory.join(authority::KEY_FILE);
    Ok(std::fs::remove_file(&key).map_err(FileError::at("remove", &key))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn each_broker_knows_of_all_and_none_has_the_key_of_the_grid() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("g5k");
        let brokers = ["a:7443", "b:7443", "c:7443"].map(str::to_owned);
        let configs = create_several("g5k", &brokers, &place, &Clock::system()).unwrap();
        let root = Root::open(&place.join(AUTHORITY_DIRECTORY)).unwrap();
        let shares: Vec<u8> = root.brokers().map(|broker| broker.share).collect();
        assert_eq!(shares, [0, 1, 2]);
        for config in configs {
            let directory = files::directory_of(&config);
            let state = State::open(&BrokerConfig::load(&config).unwrap(), Clock::system()).unwrap();
            assert_eq!(state.other_brokers().len(), 2, "{}", directory.display());
            assert!(!directory.join("ca.key").exists());
            assert_eq!(
                directory.join("broker-ca.key").metadata().unwrap().mode() & 0o777,
                0o600
            );
        }
        let again = create_several("g5k", &brokers, &place, &Clock::system());
        assert!(matches!(again, Err(GridError::Exists(_))));
        let bad = ["a:7443", "nowhere"].map(str::to_owned);
        let other = dir.path().join("other");
        assert!(create_several("g5k", &bad, &other, &Clock::system()).is_err());
        assert!(
            std::fs::read_dir(&other).unwrap().next().is_none(),
            "nothing is left"
        );
    }

    #[test]
    fn a_broker_that_is_expelled_is_never_taken_back_and_its_number_never_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let brokers = ["a:7443".to_owned()];
        create_several("g5k", &brokers, dir.path(), &Clock::system()).unwrap();
        let authority = dir.path().join(AUTHORITY_DIRECTORY);
        let mut root = Root::open(&authority).unwrap();
        root.retire(1, Standing::Expelled).unwrap();
        root.retire(1, Standing::Retired).unwrap();
        root.add_broker("b:7443", dir.path(), &Clock::system()).unwrap();
        let root = Root::open(&authority).unwrap();
        let known: Vec<(u8, Standing)> = root
            .brokers()
            .map(|broker| (broker.number, broker.standing))
            .collect();
        assert_eq!(known, [(1, Standing::Expelled), (2, Standing::Serving)]);
    }
}
