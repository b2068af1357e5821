//! The broker's configuration, a short TOML file in the grid's directory. `configs/broker.toml` shows every
//! key.

use crate::authority::LIFE_SECONDS;
use crate::clock;
use crate::files::{self, FileError};
use crate::join_token::is_host_and_port;
use causeway_wire::grid;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The port at which a broker listens by default. HTTPS's port needs root; this one is unassigned for TCP at
/// IANA.
pub const PORT: u16 = 7443;

/// Most connections at a time: each of a thousand gateways has two or three.
pub const CONNECTIONS: usize = 4096;

/// Shortest and longest life of a certificate that may be configured. A certificate begins five minutes
/// before it is made, and is renewed after two thirds of the whole. With less than three minutes it would be
/// due for renewal at once. With more than a year, a stolen one is as bad as a stolen password.
const LIVES: std::ops::RangeInclusive<u64> = 180..=366 * 86_400;

/// Longest time for which a certificate may be renewed after its end, as configured.
const LONGEST_GRACE: u64 = 366 * 86_400;

/// How long a grid does without its broker by default: it may be away over a holiday.
pub const GRACE_SECONDS: u64 = 30 * 86_400;

/// Fewest and most connections that may be configured.
const SOME_CONNECTIONS: std::ops::RangeInclusive<i64> = 16..=1_000_000;

/// What a broker needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerConfig {
    /// Name of the grid.
    pub grid: String,
    /// Addresses to listen at.
    pub listen: Vec<SocketAddr>,
    /// Where sites find it, `HOST:PORT`; goes into tokens.
    pub public: Vec<String>,
    /// The directory of the configuration: keys, certificates, store and the commands' socket are here.
    pub directory: PathBuf,
    /// Whether gateways may ask to be dialled back at loopback and link-local addresses. This is for grids on
    /// one host.
    pub reach_local: bool,
    /// See [`CONNECTIONS`].
    pub connections: usize,
    /// How long certificates live that are made from now on.
    pub certificate_life_seconds: u64,
    /// How long after its end a site's certificate may still be renewed.
    pub renewal_grace_seconds: u64,
}

/// All mistakes of a configuration, one a line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Mistakes(pub Vec<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    grid: Spanned<String>,
    listen: Spanned<Vec<String>>,
    public: Spanned<Vec<String>>,
    reach_local: Option<bool>,
    connections: Option<Spanned<i64>>,
    certificate_life: Option<Spanned<String>>,
    renewal_grace: Option<Spanned<String>>,
}

impl BrokerConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// Every mistake as `file:line: key: reason`.
    pub fn load(file: &Path) -> Result<BrokerConfig, Mistakes> {
        let text = files::read_text(file).map_err(|error: FileError| Mistakes(vec![error.to_string()]))?;
        BrokerConfig::parse(&text, file)
    }

    /// Reads the text of a file. Messages name `file`; its directory is the grid's.
    ///
    /// # Errors
    /// Every mistake as `file:line: key: reason`.
    pub fn parse(text: &str, file: &Path) -> Result<BrokerConfig, Mistakes> {
        let line = |start: usize| 1 + text[..start.min(text.len())].matches('\n').count();
        let at = |start: usize, reason: &str| format!("{}:{}: {reason}", file.display(), line(start));
        let typed: Typed = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            Mistakes(vec![at(start, error.message())])
        })?;
        let mut mistakes = Vec::new();
        if !grid::is_site_name(typed.grid.get_ref()) {
            let reason = "grid: a grid's name has 1 to 63 letters, digits, '-', '_' or '.'";
            mistakes.push(at(typed.grid.span().start, reason));
        }
        let mut listen = Vec::new();
        for text in typed.listen.get_ref() {
            match text.parse() {
                Ok(address) => listen.push(address),
                Err(_) => mistakes.push(at(
                    typed.listen.span().start,
                    &format!("listen: {text:?} is not an address such as 0.0.0.0:{PORT}"),
                )),
            }
        }
        for text in typed
            .public
            .get_ref()
            .iter()
            .filter(|text| !is_host_and_port(text))
        {
            let reason = format!("public: {text:?} is not HOST:PORT such as broker.example:{PORT}");
            mistakes.push(at(typed.public.span().start, &reason));
        }
        for (key, list) in [("listen", &typed.listen), ("public", &typed.public)] {
            if !(1..=4).contains(&list.get_ref().len()) {
                mistakes.push(at(
                    list.span().start,
                    &format!("{key}: needs one to four entries"),
                ));
            }
        }
        let connections = typed
            .connections
            .as_ref()
            .map_or(CONNECTIONS as i64, |wanted| *wanted.get_ref());
        if let (Some(wanted), false) = (&typed.connections, SOME_CONNECTIONS.contains(&connections)) {
            let (least, most) = (SOME_CONNECTIONS.start(), SOME_CONNECTIONS.end());
            let reason = format!("connections: is not a whole number from {least} to {most}");
            mistakes.push(at(wanted.span().start, &reason));
        }
        let wanted = typed.certificate_life.as_ref();
        let life = wanted.map_or(Some(LIFE_SECONDS), |wanted| {
            causeway_units::span(wanted.get_ref())
                .ok()
                .filter(|life| LIVES.contains(life))
        });
        if let (Some(wanted), None) = (wanted, life) {
            let (least, most) = (clock::span(*LIVES.start()), clock::span(*LIVES.end()));
            let reason =
                format!("certificate_life: is not a time from {least} to {most}, such as 12h or 30d");
            mistakes.push(at(wanted.span().start, &reason));
        }
        let wanted = typed.renewal_grace.as_ref();
        let grace = wanted.map_or(Some(GRACE_SECONDS), |wanted| {
            causeway_units::span(wanted.get_ref())
                .ok()
                .filter(|grace| *grace <= LONGEST_GRACE)
        });
        if let (Some(wanted), None) = (wanted, grace) {
            let most = clock::span(LONGEST_GRACE);
            let reason = format!("renewal_grace: is not a time up to {most}, such as 0s or 30d");
            mistakes.push(at(wanted.span().start, &reason));
        }
        if !mistakes.is_empty() {
            return Err(Mistakes(mistakes));
        }
        Ok(BrokerConfig {
            grid: typed.grid.into_inner(),
            listen,
            public: typed.public.into_inner(),
            directory: files::directory_of(file).to_owned(),
            reach_local: typed.reach_local.unwrap_or(false),
            // The number fits: it is in the range above.
            connections: connections as usize,
            certificate_life_seconds: life.unwrap_or(LIFE_SECONDS),
            renewal_grace_seconds: grace.unwrap_or(GRACE_SECONDS),
        })
    }

    /// The text of a new grid's file.
    pub(crate) fn text(grid: &str, public: &str) -> String {
        let port = public.rsplit_once(':').map_or("", |(_, port)| port);
        format!(
            "# The broker of grid {grid}; keys, certificates and store are beside this file.\n\
             grid = \"{grid}\"\n\
             # Where it listens.\n\
             listen = [\"[::]:{port}\"]\n\
             # Where sites find it, HOST:PORT: goes into tokens.\n\
             public = [\"{public}\"]\n"
        )
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.join("store.redb")
    }

    /// Returns the path of the socket at which commands of this host ask the running broker.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("broker.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BrokerConfig, Mistakes> {
        BrokerConfig::parse(text, Path::new("/grids/g5k/broker.toml"))
    }

    #[test]
    fn the_file_of_a_new_grid_is_a_configuration() {
        let config = parse(&BrokerConfig::text("g5k", "broker.example:7443")).unwrap();
        assert_eq!(config.listen, ["[::]:7443".parse().unwrap()]);
        assert_eq!(config.public, ["broker.example:7443"]);
        assert_eq!(config.directory, Path::new("/grids/g5k"));
        assert_eq!((config.reach_local, config.connections), (false, CONNECTIONS));
    }

    #[test]
    fn the_example_has_every_key() {
        let example = parse(include_str!("../../../configs/broker.toml")).unwrap();
        assert_eq!((example.grid.as_str(), example.connections), ("g5k", CONNECTIONS));
        assert_eq!(example.certificate_life_seconds, LIFE_SECONDS);
        assert_eq!(example.renewal_grace_seconds, GRACE_SECONDS);
    }

    #[test]
    fn every_mistake_is_reported_with_its_line() {
        let text = "grid = \"a b\"\nlisten = [\"here\"]\npublic = []\nconnections = 1\ncertificate_life = \"2min\"\nrenewal_grace = \"2000d\"\n";
        let mistakes = parse(text).unwrap_err().0;
        assert_eq!(mistakes.len(), 6, "{mistakes:?}");
        assert!(mistakes[0].starts_with("/grids/g5k/broker.toml:1: grid:"));
        assert!(mistakes.iter().any(|mistake| mistake.contains(":3: public:")));
        let unknown = parse("grid = \"g\"\nlistem = []\n").unwrap_err().to_string();
        assert!(unknown.contains("listem") && unknown.contains(":2:"), "{unknown}");
    }
}
