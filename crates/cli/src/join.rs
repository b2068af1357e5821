//! `causeway gateway --join`: makes this host a site of a grid, and writes the gateway's configuration if
//! there is none.

use causeway_batch::System;
use causeway_broker::client::{JoinError, join_through};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::{JoinToken, TOKEN_PREFIX};
use causeway_control::private;
use causeway_gateway::config::accept::{ConnectFrom, site_or_all};
use causeway_gateway::config::{Config, Mistakes};
use causeway_gateway::ports::{self, SharedPorts};
use causeway_gateway::{GatewayError, try_bind};
use causeway_wire::Cidr;
use clap::Args;
use nix::ifaddrs::getifaddrs;
use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::io::{self, Read, Write as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Port at which the site's nodes find the gateway by default.
pub const LAN_PORT: u16 = 7000;

/// Name of the membership's directory beside the configuration.
pub const MEMBERSHIP: &str = "membership";

#[derive(Args)]
pub struct JoinArgs {
    /// Join a grid with this token, which works once. Other users of this host cannot see the token if it
    /// comes from a file or from standard input (-). Leave --join out at later starts.
    #[arg(long, value_name = "TOKEN|FILE|-", conflicts_with_all = ["drain", "inherit"])]
    join: Option<String>,
    /// Addresses of this site's nodes, such as 10.1.0.0/24. With --join, if there is no configuration yet.
    #[arg(long, value_name = "CIDR", requires = "join")]
    subnet: Vec<Cidr>,
    /// Allow other sites to have the same addresses: the grid then knows this site by virtual ones. With
    /// --join.
    #[arg(long, requires = "join")]
    overlap_ok: bool,
    /// A compute node and its number of processes, such as node-1:4 or node-1=10.1.0.1:4. With --join.
    #[arg(long, value_name = "NAME[=ADDRESS][:SLOTS]", requires = "join")]
    node: Vec<String>,
    /// The batch system that has this site's nodes, such as slurm: jobs run in its allocations, also those of
    /// the sites of --accept-jobs. With --join.
    #[arg(long, value_name = "SYSTEM", requires = "join")]
    batch: Option<System>,
    /// Where this site's nodes find the gateway. With --join [default: this host's address in the subnet,
    /// port 7000].
    #[arg(long, value_name = "ADDRESS:PORT", requires = "join")]
    lan: Option<SocketAddr>,
    /// Where other sites' gateways may dial this one. Without this option, this gateway dials them. With
    /// --join.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "join")]
    wan: Option<SocketAddr>,
    /// Sites whose jobs may start processes on this site's nodes and connect to them, or 'all' [default:
    /// none]. With --join.
    #[arg(long, value_name = "SITE,...|all", requires = "join", value_delimiter = ',', value_parser = site_or_all)]
    accept_jobs: Vec<String>,
    /// Sites whose users may connect to these ports of this site's nodes with 'causeway connect', such as
    /// rennes:22. With --join.
    #[arg(long, value_name = "SITE:PORTS,...", requires = "join", value_delimiter = ',')]
    accept_connect: Vec<ConnectFrom>,
    /// More addresses that jobs of other sites may reach, besides those of the listed nodes, such as the
    /// nodes' second addresses. With --join.
    #[arg(long, value_name = "CIDR,...", requires = "join", value_delimiter = ',')]
    accept_addresses: Vec<Cidr>,
    /// The web proxy through which this host gets out, such as proxy.example:3128. With --join.
    #[arg(long, value_name = "URL", requires = "join")]
    proxy: Option<String>,
    /// File with the line USER:PASSWORD for the proxy. With --join.
    #[arg(long, value_name = "FILE", requires = "proxy")]
    proxy_credentials: Option<PathBuf>,
    /// Carry connections between sites that cannot reach each other. Needs --wan.
    #[arg(long, requires = "wan")]
    relay: bool,
}

/// Why this host has not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoiningError {
    #[error("--join: {0}; the token is one line of 'causeway grid token', starting with cw1")]
    Token(String),
    #[error(
        "--join: read the token from {0}: {1}; a token itself is one line of 'causeway grid token', starting with cw1"
    )]
    Read(String, io::Error),
    #[error(
        "{file} exists already, so --{option} would change nothing; change that file, or name another one with --config",
        file = .0.display(), option = .1
    )]
    Written(PathBuf, &'static str),
    #[error("--subnet is missing: name the addresses of this site's nodes, such as --subnet 10.1.0.0/24")]
    NoSubnet,
    #[error(
        "this host has no address in {0}; is it the site's head node? Use --lan ADDRESS:PORT to say where nodes find it"
    )]
    NoAddress(String),
    #[error("--node {0}: {1}")]
    Node(String, String),
    #[error("write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    #[error("--proxy-credentials: {0}")]
    Credentials(io::Error),
    #[error("{0}")]
    Configuration(Mistakes),
    #[error(
        "{file} is the configuration of site {site}, but the token is for site {token}; name another file with --config, \
         or ask for a token for site {site}", file = .file.display()
    )]
    OtherSite {
        file: PathBuf,
        site: String,
        token: String,
    },
    #[error(
        "{} names only a key file for its grid; replace it under [grid] by 'membership = \"{MEMBERSHIP}\"', and join again",
        .0.display()
    )]
    NoMembership(PathBuf),
    #[error(transparent)]
    Listen(#[from] GatewayError),
    #[error(transparent)]
    Ports(#[from] SharedPorts),
    #[error(transparent)]
    Join(#[from] JoinError),
}

impl JoinArgs {
    /// Joins if that is asked for; returns what was done, for people.
    pub fn join(&self, file: &Path) -> Result<Vec<String>, JoiningError> {
        let Some(token) = &self.join else {
            return Ok(Vec::new());
        };
        let token = token_text(token)?;
        let token: JoinToken = token
            .trim()
            .parse()
            .map_err(|error| JoiningError::Token(format!("{error}")))?;
        // Whatever can be wrong here is found before the token is spent.
        let (config, new) = match file.exists() {
            true => (self.present(file, &token)?, None),
            false => {
                let text = self.configuration(&token.site)?;
                let config = Config::parse(&text, file).map_err(JoiningError::Configuration)?;
                ports::check(&config.delivery_ports)?;
                try_bind(&config)?;
                (config, Some(staged(file, &text)?))
            }
        };
        let Some(directory) = &config.membership else {
            return Err(JoiningError::NoMembership(file.to_owned()));
        };
        let mut done = Vec::new();
        match join_through(config.proxy.as_ref(), &token, directory, &Clock::system()) {
            Ok(membership) => done.push(format!(
                "this host is now site {} of grid {}; its key is in {}",
                membership.site,
                membership.grid,
                directory.display()
            )),
            Err(already @ JoinError::Already { .. }) => done.push(already.to_string()),
            Err(error) => return Err(error.into()),
        }
        if let Some(new) = new {
            let named = new.persist_noclobber(file);
            named.map_err(|error| JoiningError::Write(file.to_owned(), error.error))?;
            done.push(format!("wrote {}", file.display()));
        }
        Ok(done)
    }

    /// The existing configuration, which these options must not contradict.
    fn present(&self, file: &Path, token: &JoinToken) -> Result<Config, JoiningError> {
        self.refuse_idle_options(file)?;
        let config = Config::load(file).map_err(JoiningError::Configuration)?;
        match config.site == token.site {
            true => Ok(config),
            false => Err(JoiningError::OtherSite {
                file: file.to_owned(),
                site: config.site,
                token: token.site.clone(),
            }),
        }
    }

    fn refuse_idle_options(&self, config: &Path) -> Result<(), JoiningError> {
        let given = [
            ("subnet", !self.subnet.is_empty()),
            ("overlap-ok", self.overlap_ok),
            ("node", !self.node.is_empty()),
            ("batch", self.batch.is_some()),
            ("lan", self.lan.is_some()),
            ("wan", self.wan.is_some()),
            ("relay", self.relay),
            ("proxy", self.proxy.is_some()),
            ("accept-jobs", !self.accept_jobs.is_empty()),
            ("accept-connect", !self.accept_connect.is_empty()),
            ("accept-addresses", !self.accept_addresses.is_empty()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(JoiningError::Written(config.to_owned(), option)),
            None => Ok(()),
        }
    }

    fn configuration(&self, site: &str) -> Result<String, JoiningError> {
        let [first, ..] = self.subnet.as_slice() else {
            return Err(JoiningError::NoSubnet);
        };
        let lan = match self.lan {
            Some(lan) => vec![lan],
            None => own_addresses(&self.subnet),
        };
        if lan.is_empty() {
            return Err(JoiningError::NoAddress(first.to_string()));
        }
        let mut text = format!(
            "# Written by 'causeway gateway --join'; configs/gateway.toml in the sources shows every key.\n\
             [site]\nname = \"{site}\"\nsubnets = [{}]\n",
            quoted(&self.subnet)
        );
        if self.overlap_ok {
            text += "overlap_ok = true\n";
        }
        for node in &self.node {
            let (name, address, slots) = read_node(node)?;
            let _ = write!(
                text,
                "[[site.nodes]]\nname = \"{name}\"\naddress = \"{address}\"\nslots = {slots}\n"
            );
        }
        let _ = write!(text, "[listen]\nlan = [{}]\n", quoted(&lan));
        if let Some(wan) = self.wan {
            let _ = writeln!(text, "wan = \"{wan}\"");
        }
        text += "# What other sites may do here: nothing but what is named.\n[accept]\n";
        let _ = writeln!(text, "jobs = [{}]", quoted(&self.accept_jobs));
        if !self.accept_connect.is_empty() {
            let _ = writeln!(text, "connect_from = [{}]", quoted(&self.accept_connect));
        }
        if !self.accept_addresses.is_empty() {
            let _ = writeln!(text, "addresses = [{}]", quoted(&self.accept_addresses));
        }
        if let Some(system) = self.batch {
            let from = quoted(&self.accept_jobs);
            let _ = write!(text, "[batch]\nsystem = \"{system}\"\nfrom = [{from}]\n");
        }
        let _ = write!(text, "[grid]\nmembership = \"{MEMBERSHIP}\"\n");
        if self.relay {
            text += "relay = true\n";
        }
        let credentials = self.proxy_credentials.as_ref().map(std::path::absolute);
        let credentials = credentials.transpose().map_err(JoiningError::Credentials)?;
        let credentials = credentials.map(|file| file.display().to_string());
        for (key, value) in [("proxy", &self.proxy), ("proxy_credentials", &credentials)] {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {value:?}");
            }
        }
        Ok(text)
    }
}

/// A new file that is complete, but does not have its name yet. Nobody else may change it, whatever the umask
/// is, because the gateway accepts no other.
fn staged(file: &Path, text: &str) -> Result<NamedTempFile, JoiningError> {
    let write = || {
        let directory = file.parent().filter(|parent| *parent != Path::new(""));
        let directory = directory.unwrap_or(Path::new("."));
        DirBuilder::new().mode(0o700).recursive(true).create(directory)?;
        let mut new = NamedTempFile::new_in(directory)?;
        new.as_file_mut().write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        Ok(new)
    };
    write().map_err(|error| JoiningError::Write(file.to_owned(), error))
}

/// Longest file that is read for a token, which is one line.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// The token itself, or what the file or standard input contains in its place.
fn token_text(typed: &str) -> Result<String, JoiningError> {
    if typed.trim_start().starts_with(TOKEN_PREFIX) {
        return Ok(typed.to_owned());
    }
    let read = || -> io::Result<String> {
        let mut text = String::new();
        let source: Box<dyn Read> = match typed {
            "-" => Box::new(io::stdin()),
            file => {
                // Whoever reads the token first can be this site.
                return Ok(String::from_utf8_lossy(&private::read_secret(Path::new(file))?).into_owned());
            }
        };
        source.take(MAX_TOKEN_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    let place = if typed == "-" { "standard input" } else { typed };
    read().map_err(|error| JoiningError::Read(place.to_owned(), error))
}

/// The values of a list, as a configuration file has them.
fn quoted(values: &[impl std::fmt::Display]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    values.join(", ")
}

/// This host's first address of each version of IP in these ranges: nodes that have both use both.
fn own_addresses(subnets: &[Cidr]) -> Vec<SocketAddr> {
    let addresses = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
        v4.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|address| IpAddr::from(address.ip()))
        })
    });
    let addresses: Vec<IpAddr> = addresses
        .filter(|address| subnets.iter().any(|subnet| subnet.contains(*address)))
        .collect();
    let first = |v6| addresses.iter().find(|address| address.is_ipv6() == v6);
    let found = [first(false), first(true)].into_iter().flatten();
    found.map(|address| SocketAddr::new(*address, LAN_PORT)).collect()
}

/// Reads name, address and slots.
fn read_node(text: &str) -> Result<(&str, IpAddr, u32), JoiningError> {
    let wrong = |why: String| JoiningError::Node(text.to_owned(), why);
    let (place, slots) = match text.rsplit_once(':') {
        Some((place, slots)) if slots.bytes().all(|byte| byte.is_ascii_digit()) => {
            let slots = slots
                .parse()
                .map_err(|_| wrong(format!("{slots} is not a number of processes")))?;
            (place, slots)
        }
        _ => (text, 1),
    };
    let (name, address) = match place.split_once('=') {
        Some((name, address)) => {
            let address = address
                .parse()
                .map_err(|_| wrong(format!("{address} is not an address")))?;
            (name, Some(address))
        }
        None => (place, None),
    };
    let address = match address {
        Some(address) => address,
        None => (name, 0)
            .to_socket_addrs()
            .map_err(|error| wrong(format!("look up {name}: {error}; write {name}=ADDRESS")))?
            .next()
            .ok_or_else(|| wrong(format!("{name} has no address; write {name}=ADDRESS")))?
            .ip(),
    };
    let is_name = |name: &str| !name.is_empty() && !name.contains(['"', '\\', '\n']);
    if !is_name(name) {
        return Err(wrong("has no name that a configuration can contain".to_owned()));
    }
    Ok((name, address, slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_name_with_its_address_and_its_slots_where_these_are_said() {
        let address: IpAddr = "10.1.0.1".parse().unwrap();
        assert_eq!(read_node("n1=10.1.0.1:4").unwrap(), ("n1", address, 4));
        assert_eq!(read_node("n1=10.1.0.1").unwrap(), ("n1", address, 1));
        let v6: IpAddr = "::1".parse().unwrap();
        assert_eq!(
            read_node("127.0.0.1:2").unwrap(),
            ("127.0.0.1", "127.0.0.1".parse().unwrap(), 2)
        );
        assert_eq!(read_node("n1=::1:2").unwrap().2, 2);
        assert_eq!(read_node("n1=::1:2").unwrap().1, v6.to_canonical());
        for wrong in ["=10.1.0.1", "n1=10.1", "n\"1=10.1.0.1", "n1=10.1.0.1:99999999999"] {
            assert!(read_node(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_site_with_both_versions_of_ip_is_listened_to_at_an_address_of_each() {
        let subnets = ["127.0.0.0/8", "::1/128", "255.255.255.255/32"].map(|subnet| subnet.parse().unwrap());
        let found = own_addresses(&subnets);
        assert_eq!(found[0], "127.0.0.1:7000".parse().unwrap());
        // A host without IPv6 has no second one.
        assert!(found[1..].iter().all(|address| address.is_ipv6()) && found.len() < 3);
        assert!(own_addresses(&subnets[2..]).is_empty());
    }

    #[test]
    fn what_is_written_for_a_new_site_is_read_by_its_gateway() {
        let args = JoinArgs {
            overlap_ok: false,
            join: None,
            subnet: vec!["127.9.1.0/24".parse().unwrap()],
            node: vec!["n1=127.9.1.1:2".to_owned()],
            batch: Some(System::Slurm),
            lan: Some("127.9.1.253:7000".parse().unwrap()),
            wan: Some("127.9.0.1:7001".parse().unwrap()),
            proxy: None,
            proxy_credentials: None,
            relay: true,
            accept_jobs: vec!["nancy".to_owned(), "lyon".to_owned()],
            accept_connect: vec!["all:22".parse().unwrap()],
            accept_addresses: vec!["127.9.1.64/28".parse().unwrap()],
        };
        let text = args.configuration("rennes").unwrap();
        let config = causeway_gateway::Config::parse(&text, Path::new("/nowhere/gateway.toml")).unwrap();
        assert_eq!((config.site.as_str(), config.nodes[0].slots), ("rennes", 2));
        assert_eq!(config.membership, Some(PathBuf::from("/nowhere/membership")));
        assert!(config.accept.takes_jobs_of("lyon") && !config.accept.takes_jobs_of("orsay"));
        assert!(config.accept.takes_connections_to("orsay", 22));
        assert!(config.accept.opens([127, 9, 1, 64].into()));
        assert_eq!(config.public, ["127.9.0.1:7001".parse().unwrap()]);
        let without = JoinArgs {
            subnet: Vec::new(),
            ..args
        };
        assert!(matches!(
            without.configuration("rennes"),
            Err(JoiningError::NoSubnet)
        ));
    }

    #[test]
    fn a_token_is_typed_or_in_a_file_that_nobody_else_may_read() {
        assert_eq!(token_text("cw1.AAAA").unwrap(), "cw1.AAAA");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "cw1.BBBB\n").unwrap();
        let mode = |mode| {
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
        };
        let typed = file.display().to_string();
        mode(0o600);
        assert_eq!(token_text(&typed).unwrap(), "cw1.BBBB\n");
        mode(0o644);
        let said = token_text(&typed).unwrap_err().to_string();
        assert!(said.contains("chmod 600"), "{said}");
        let said = token_text("cx1.AAAA").unwrap_err().to_string();
        assert!(said.contains("starting with cw1"), "{said}");
    }
}
