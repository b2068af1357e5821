//! What a site's head node reports about itself, for `causeway up`.

use super::ports::Ports;
use crate::check::starts::fast_networks;
use crate::grid;
use causeway_batch::SYSTEMS;
use causeway_broker::BrokerConfig;
use causeway_broker::new_grid::CONFIG_FILE;
use causeway_control as control;
use causeway_control::questions;
use causeway_gateway::Config;
use causeway_host::processes::other_causeway;
use causeway_launchers::launcher::Launcher;
use causeway_launchers::mpi_programs::MpiProgram;
use causeway_run::batch::commands::Batch;
use causeway_wire::Cidr;
use causeway_wire::grid::{ALL_SITES, is_node_name, is_site_name};
use nix::ifaddrs::getifaddrs;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a host reports about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub host: String,
    /// Its operating system, for people.
    pub system: String,
    /// Whether commands run as root there.
    pub is_root: bool,
    /// Its processors.
    pub processors: u32,
    /// Its clock, in seconds since 1970.
    pub clock: u64,
    /// Its addresses, except those that only the host itself can use.
    pub addresses: Vec<Address>,
    /// Addresses of the nodes of its batch system, if it has one that Causeway knows.
    pub batch: Option<BatchNodes>,
    /// Its fast networks, for people.
    pub networks: Vec<String>,
    /// Launchers of MPI programs in PATH.
    pub launchers: Vec<Found>,
    /// The site in the gateway's configuration, if there is one.
    pub site: Option<String>,
    /// Sites whose jobs it accepts.
    pub accepts: Vec<String>,
    /// Whether that gateway runs.
    pub gateway_runs: bool,
    /// Whether the gateway runs another program than this one, such as an earlier version.
    #[serde(default)]
    pub gateway_is_other: bool,
    /// The grid of the broker whose configuration is on the host, if there is one.
    pub grid: Option<String>,
    /// Whether that broker runs.
    pub broker_runs: bool,
    /// Ports that a gateway and a broker can have there.
    pub ports: Ports,
}

/// An address of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Its interface.
    pub interface: String,
    /// The address.
    pub ip: IpAddr,
    /// How many of its bits name its network.
    pub prefix: u8,
}

/// The nodes of a batch system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchNodes {
    /// The batch system, by the word that the gateway's configuration uses for it.
    pub system: String,
    /// Addresses of its nodes, if their names have any.
    pub addresses: Vec<IpAddr>,
}

/// A launcher in PATH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The word that users type.
    pub word: String,
    /// Its MPI.
    pub mpi: String,
    /// The version of that MPI.
    pub version: String,
    /// Words that start the program of `causeway bench` with it.
    pub program: Vec<String>,
}

/// Most nodes whose names are looked up.
const MOST_NODES: usize = 64;

/// Most entries of a list, letters of a text and processors that another host may report about itself.
const MOST_ENTRIES: usize = 1024;
const MOST_LETTERS: usize = 1024;
const MOST_PROCESSORS: u32 = 1 << 16;

impl Facts {
    /// Checks these facts, because the host may report anything: names, numbers and lengths become words of
    /// commands that the user agrees to.
    ///
    /// # Errors
    /// A fact is impossible; the error says which.
    pub fn checked(self) -> Result<Facts, String> {
        let found = |launcher: &Found| {
            let words = launcher.program.iter().map(String::as_str);
            let own = [&launcher.word[..], &launcher.mpi, &launcher.version];
            own.into_iter().chain(words).all(is_plain) && launcher.program.len() <= MOST_ENTRIES
        };
        let address = |address: &Address| {
            let most = if address.ip.is_ipv4() { 32 } else { 128 };
            is_plain(&address.interface) && address.prefix <= most
        };
        let batch = |batch: &BatchNodes| {
            let is_known = SYSTEMS.iter().any(|system| system.to_string() == batch.system);
            is_known && batch.addresses.len() <= MOST_ENTRIES
        };
        let is_accepted = |site: &String| is_site_name(site) || site == ALL_SITES;
        let counts = [
            self.addresses.len(),
            self.networks.len(),
            self.launchers.len(),
            self.accepts.len(),
        ];
        let wrong = match () {
            () if !is_node_name(&self.host) => "its name",
            () if !is_plain(&self.system) => "its system",
            () if self.processors > MOST_PROCESSORS => "how many processors it has",
            () if counts.into_iter().any(|count| count > MOST_ENTRIES) => "how much it has",
            () if !self.addresses.iter().all(address) => "an address",
            () if !self.batch.iter().all(batch) => "its batch system",
            () if !self.networks.iter().all(|network| is_plain(network)) => "a network",
            () if !self.launchers.iter().all(found) => "an MPI",
            () if !self.site.iter().all(|site| is_site_name(site)) => "its site",
            () if !self.accepts.iter().all(is_accepted) => "the sites whose jobs it accepts",
            () if !self.grid.iter().all(|grid| is_site_name(grid)) => "its grid",
            () if !self.ports.can_be() => "its ports",
            () => return Ok(self),
        };
        Err(format!("what its head node says of itself cannot be: {wrong}"))
    }

    /// What a user may want to know about the host before anything is done there, on one line.
    pub fn described(&self) -> String {
        let batch = self
            .batch
            .as_ref()
            .map_or("no batch system", |batch| &batch.system);
        let mpis: Vec<String> = { self.launchers.iter() }
            .map(|found| format!("{} {} ({})", found.mpi, found.version, found.word))
            .collect();
        let mpis = if mpis.is_empty() {
            "no MPI in PATH".to_owned()
        } else {
            mpis.join(", ")
        };
        let networks = if self.networks.is_empty() {
            "no fast network".to_owned()
        } else {
            self.networks.join(", ")
        };
        format!(
            "{}: {}, {} processors; {batch}; {mpis}; {networks}",
            self.host, self.system, self.processors
        )
    }

    /// Finds out the facts about this host.
    pub fn here() -> Facts {
        let name = nix::unistd::gethostname().unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let config = causeway_host::user_directories::gateway_config().ok();
        let config = config.and_then(|file| Config::load(&file).ok());
        let broker = grid::default_directory().ok();
        let broker = broker.and_then(|directory| BrokerConfig::load(&directory.join(CONFIG_FILE)).ok());
        let gateway = questions::status(&control::socket()).ok();
        let runs = |socket: PathBuf| UnixStream::connect(socket).is_ok();
        Facts {
            host: name.to_string_lossy().into_owned(),
            system: system(),
            is_root: nix::unistd::geteuid().is_root(),
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            clock: clock.as_secs(),
            addresses: addresses(),
            batch: batch(),
            networks: fast_networks(Path::new("/")),
            launchers: launchers(),
            gateway_is_other: gateway
                .as_ref()
                .is_some_and(|status| other_causeway(status.pid).is_some()),
            gateway_runs: gateway.is_some(),
            accepts: config
                .as_ref()
                .map(|config| config.accept.jobs.clone())
                .unwrap_or_default(),
            site: config.map(|config| config.site),
            grid: broker.as_ref().map(|broker| broker.grid.clone()),
            broker_runs: broker.is_some_and(|broker| runs(broker.socket())),
            ports: Ports::free(),
        }
    }
}

fn addresses() -> Vec<Address> {
    let found = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let to_ip = |storage: nix::sys::socket::SockaddrStorage| {
            let v4 = storage.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
            v4.or_else(|| {
                storage
                    .as_sockaddr_in6()
                    .map(|address| IpAddr::from(address.ip()))
            })
        };
        let ip = to_ip(interface.address?)?;
        let bits = match to_ip(interface.netmask?)? {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        Some(Address {
            interface: interface.interface_name,
            ip,
            prefix: u8::try_from(bits).unwrap_or(0),
        })
    });
    found
        .filter(|address| !is_of_the_host_alone(address.ip))
        .collect()
}

/// Whether a text has one line, and is no longer than a host may send.
fn is_plain(text: &str) -> bool {
    text.len() <= MOST_LETTERS && !text.chars().any(char::is_control)
}

/// Whether no other host can reach this one at that address.
fn is_of_the_host_alone(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
    }
}

/// The distribution, its C library and the processor.
fn system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map_or("Linux", |name| name.trim_matches('"'));
    // SAFETY: it returns a string that exists for as long as the program runs.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!(
        "{name}, glibc {}, {}",
        version.to_string_lossy(),
        std::env::consts::ARCH
    )
}

fn launchers() -> Vec<Found> {
    let own = std::env::current_exe().unwrap_or_default();
    let all = Launcher::in_path().into_iter();
    let known = all.filter_map(|(word, found)| {
        let launcher = found.ok()?;
        // PRRTE's own launchers have a version of their own.
        if !launcher.version.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let program = MpiProgram::new(&own, "bench", &launcher).words();
        Some(Found {
            program: program
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            word: word.to_string_lossy().into_owned(),
            mpi: launcher.mpi.name().to_owned(),
            version: launcher.version,
        })
    });
    known.collect()
}

/// Asks each batch system that Causeway knows whether it is here.
fn batch() -> Option<BatchNodes> {
    SYSTEMS.into_iter().find_map(|system| {
        let batch = Batch {
            system,
            conf: None,
            subnets: Vec::<Cidr>::new(),
        };
        let offer = batch.offer().ok()?;
        let names = offer.nodes.iter().take(MOST_NODES);
        let found = names.flat_map(|node| (node.name.as_str(), 0).to_socket_addrs().into_iter().flatten());
        Some(BatchNodes {
            system: system.to_string(),
            addresses: found.map(|address| address.ip()).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes facts impossible.
    type Lie = fn(&mut Facts);

    #[test]
    fn a_host_can_say_nothing_of_itself_that_would_be_other_words_of_a_command() {
        let own = Facts::here();
        assert_eq!(
            own.clone().checked(),
            Ok(own.clone()),
            "what this host says is right"
        );
        let address = |prefix| Address {
            interface: "eth0".to_owned(),
            ip: IpAddr::from([10, 1, 0, 1]),
            prefix,
        };
        let found = Found {
            word: "mpirun".to_owned(),
            mpi: "Open MPI".to_owned(),
            version: "4.1.4".to_owned(),
            program: vec!["causeway\nrm".to_owned()],
        };
        let batch = |system: &str| BatchNodes {
            system: system.to_owned(),
            addresses: Vec::new(),
        };
        let lies: [(Lie, &str); 7] = [
            (
                |facts| facts.host = "login1\n    nancy$ causeway status".to_owned(),
                "its name",
            ),
            (
                |facts| facts.host = "login1 --accept-jobs all".to_owned(),
                "its name",
            ),
            (|facts| facts.system = "x".repeat(2000), "its system"),
            (|facts| facts.processors = u32::MAX, "processors"),
            (|facts| facts.ports.wan = 22, "its ports"),
            (|facts| facts.accepts = vec!["nancy,all".to_owned()], "accepts"),
            (|facts| facts.grid = Some("grid\x1b[2J".to_owned()), "its grid"),
        ];
        let check = |facts: Facts, what: &str| {
            let why = facts.checked().unwrap_err();
            assert!(why.contains(what), "{why}: {what}");
        };
        for (lie, what) in lies {
            let mut facts = own.clone();
            lie(&mut facts);
            check(facts, what);
        }
        let with = |change: &dyn Fn(&mut Facts)| {
            let mut facts = own.clone();
            change(&mut facts);
            facts
        };
        check(with(&|facts| facts.addresses = vec![address(33)]), "an address");
        check(
            with(&|facts| facts.addresses = vec![address(24); 2000]),
            "how much",
        );
        check(with(&|facts| facts.launchers = vec![found.clone()]), "an MPI");
        check(
            with(&|facts| facts.batch = Some(batch("slurm --x"))),
            "its batch system",
        );
        assert!(
            with(&|facts| facts.batch = Some(batch("slurm")))
                .checked()
                .is_ok()
        );
    }
}
