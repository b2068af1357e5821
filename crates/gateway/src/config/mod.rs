//! The gateway's configuration: what was typed (`reader`) and what is used ([`Config`]).
//!
//! Every mistake of a file is reported at once, as `file:line: key: reason`. `configs/gateway.toml` shows
//! every key.

pub mod accept;
pub mod batch;
mod mpi;
mod reader;
mod shell;
mod site;
mod start;
mod values;

use accept::{Accept, read_accept};
use batch::{Batch, INTENTS, read_batch};
use causeway_broker::client::MEMBERSHIP_FILE;
use causeway_control::{NodeInfo, SiteMpi, private};
use causeway_service::Proxy;
use causeway_tunnel::Settings;
use causeway_tunnel::tunnel::MAX_LANES;
use causeway_wire::{Cidr, TextError, grid};
use reader::{Reader, Table};
use shell::read_shell;
use site::{networks_around, read_nodes, read_virtual};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use values::{
    bits_per_second, duration, loopback_address, read_credentials, read_key, redirected_address,
    socket_address, transport,
};

/// Ports from which a gateway delivers: below Linux's ephemeral range (32768-60999), so that no other process
/// of the head node connects from one by chance, and enough for 12 000 streams to one destination port.
pub const DELIVERY_PORTS: RangeInclusive<u16> = 20000..=32767;

/// What a gateway needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the site.
    pub site: String,
    /// Addresses of its nodes, including the head node.
    pub subnets: Vec<Cidr>,
    /// Whether other sites may have the same addresses: the broker then gives this one virtual ones.
    pub overlap_ok: bool,
    /// The ranges by which the grid knows `subnets`, in the same order; empty if these are unique, or if the
    /// broker has not assigned any yet.
    pub virtual_subnets: Vec<Cidr>,
    /// Networks that processes of this site reach directly, whatever other sites announce: by default, those
    /// of this host.
    pub local: Vec<Cidr>,
    /// Compute nodes, in the order in which they are used.
    pub nodes: Vec<NodeInfo>,
    /// Words of the command that runs another one on `{node}` for jobs of `{site}`.
    pub remote_shell: Vec<String>,
    /// What other sites may do here.
    pub accept: Accept,
    /// How MPI programs are started here.
    pub mpi: SiteMpi,
    /// The batch system whose allocations jobs may use; `None` if only the listed nodes are used.
    pub batch: Option<Batch>,
    /// Commands that start the gateways of sites at which none runs, by the site's name.
    pub start: BTreeMap<String, Vec<String>>,
    /// The audit file: what other sites did here.
    pub audit: PathBuf,
    /// Where shims connect; at most one per address family.
    pub lan: Vec<SocketAddr>,
    /// Where other gateways connect; `None` if this one only dials out.
    pub wan: Option<SocketAddr>,
    /// Where commands of this host connect.
    pub control: PathBuf,
    /// Where Prometheus reads the metrics: a loopback address.
    pub metrics: Option<SocketAddr>,
    /// Where nft hands over connections to other sites: a loopback address.
    pub transparent: Option<SocketAddr>,
    /// See [`DELIVERY_PORTS`].
    pub delivery_ports: RangeInclusive<u16>,
    /// Addresses at which other gateways reach `wan`, if they can.
    pub public: Vec<SocketAddr>,
    /// Directory with this site's membership in a grid with a broker, which then names the peers.
    pub membership: Option<PathBuf>,
    /// Files that only the gateway may read: whoever has them can act as this site.
    pub secrets: Vec<PathBuf>,
    /// Secret that all gateways of the grid share; empty if certificates prove who speaks.
    pub key: Vec<u8>,
    /// The other sites.
    pub peers: Vec<Peer>,
    /// Bits per second that are reserved on the path to each peer that has no rate of its own.
    pub rate: Option<u64>,
    /// Congestion control of the lanes; the system's if this one is not available.
    pub congestion_control: String,
    /// Lanes that this gateway dials to each peer; `None`: as many as the path needs, see
    /// `tunnels::capacity`.
    pub lanes: Option<usize>,
    /// The protocols that lanes use.
    pub transport: Transport,
    /// Whether lanes over TCP are in clear text. It is the same at every site of the grid, and never so if
    /// certificates prove who speaks.
    pub insecure: bool,
    /// The web proxy through which other gateways and the broker are dialled.
    pub proxy: Option<Proxy>,
    /// Whether to carry connections of other sites that cannot reach each other.
    pub relay: bool,
    /// Whether to fill a new lane with empty frames until its congestion control knows the path.
    pub train: bool,
    /// What a tunnel may hold, and how long it waits.
    pub tunnel: Settings,
}

/// The protocol over which lanes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP, and QUIC beside it if the path loses segments.
    Auto,
    /// TCP.
    Tcp,
    /// QUIC, over UDP.
    Quic,
}

/// Another site.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its name.
    pub site: String,
    /// Where to dial its gateway; `None` if it dials this one.
    pub address: Option<SocketAddr>,
    /// Bits per second that are reserved on the path to it: used as the pace from the start, and never
    /// exceeded.
    pub rate: Option<u64>,
}

/// All mistakes of a configuration, one a line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Mistakes(pub Vec<String>);

impl Config {
    /// Whether this gateway serves only its own host, as in a grid that is all on one host.
    pub(crate) fn is_on_loopback(&self) -> bool {
        self.lan.iter().all(|own| own.ip().is_loopback())
    }

    /// Whether anything that crosses between sites may be in clear text. QUIC never is.
    pub fn is_clear(&self) -> bool {
        self.insecure && self.transport != Transport::Quic
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Every mistake as `file:line: key: reason`.
    pub fn load(file: &Path) -> Result<Config, Mistakes> {
        let failed = |error| Mistakes(vec![format!("{}: read configuration: {error}", file.display())]);
        // Whoever can change the file can run anything as this user.
        private::check_path(file).map_err(failed)?;
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let config = Config::parse(&text, file)?;
        for path in config.files_of_remote_shells() {
            private::check_path(&path).map_err(|error| {
                let (file, path) = (file.display(), path.display());
                Mistakes(vec![format!("{file}: site.remote_shell: {path}: {error}")])
            })?;
        }
        Ok(config)
    }

    /// Reads the text of a file; `file` is for messages and relative paths.
    ///
    /// # Errors
    /// Every mistake as `file:line: key: reason`.
    pub fn parse(text: &str, file: &Path) -> Result<Config, Mistakes> {
        let mut reader = Reader::new(text, file);
        let config = read(&mut reader, file);
        match (config, reader.into_mistakes()) {
            (Some(config), mistakes) if mistakes.is_empty() => Ok(config),
            (_, mistakes) => Err(Mistakes(mistakes)),
        }
    }
}

fn read(reader: &mut Reader<'_>, file: &Path) -> Option<Config> {
    let root = reader.root()?;
    // This comes first, because a table that is missing may exist under another name.
    reader.no_other_keys(
        &root,
        &[
            "site", "listen", "accept", "mpi", "batch", "start", "grid", "peer",
        ],
    );
    let mut table = |name| reader.table(&root, name, true);
    let (site, listen, grid) = (table("site"), table("listen"), table("grid"));
    let (site, listen, grid) = (site?, listen?, grid?);
    let name = site_name(reader, &site, "name");
    let subnets = reader.required_list(&site, "subnets", |text| {
        text.parse::<Cidr>().map_err(TextError::of)
    });
    let local = reader.list_or_empty(&site, "local", |text| text.parse::<Cidr>().map_err(TextError::of));
    let local = local.unwrap_or_else(|| networks_around(subnets.as_deref().unwrap_or_default()));
    let remote_shell = read_shell(reader, &site);
    let accept = read_accept(reader, &root, subnets.as_deref().unwrap_or_default());
    // Several gateways of one host may have their configurations in the same directory.
    let audit = reader.string(&site, "audit", |text| Ok(text.to_owned()));
    let audit = audit.unwrap_or_else(|| format!("audit-{}.jsonl", name.as_deref().unwrap_or_default()));
    let audit = file.with_file_name(audit);
    let intents = file.with_file_name(format!("{INTENTS}{}", name.as_deref().unwrap_or_default()));
    if site.has("low_ports") {
        let why =
            "is no longer a key; say who may connect where with connect_from = [\"SITE:22\"] in [accept]";
        reader.mistake_at(&site, "low_ports", why);
    }
    let nodes = read_nodes(reader, &site, subnets.as_deref().unwrap_or_default());
    let lan = read_lan(reader, &listen, subnets.as_deref().unwrap_or_default());
    let wan = reader.string(&listen, "wan", socket_address);
    let control = reader.string(&listen, "control", |text| Ok(PathBuf::from(text)));
    let metrics = reader.string(&listen, "metrics", loopback_address);
    let transparent = reader.string(&listen, "transparent", redirected_address);
    let delivery_ports = reader.string(&listen, "delivery_ports", |text| {
        grid::parse_ports(text).map_err(TextError::of)
    });
    let public = read_public(reader, &listen, wan);
    let membership = reader.string(&grid, "membership", |text| Ok(file.with_file_name(text)));
    let key_file = reader.string(&grid, "key_file", |text| Ok(file.with_file_name(text)));
    let secrets = match &membership {
        Some(directory) => vec![directory.join(MEMBERSHIP_FILE)],
        None => key_file.into_iter().collect(),
    };
    let key = match membership {
        Some(_) => Some(Vec::new()),
        None => reader.required_string(&grid, "key_file", |text| read_key(&file.with_file_name(text))),
    };
    let overlap_ok = reader.boolean(&site, "overlap_ok").unwrap_or(false);
    if overlap_ok && membership.is_none() {
        let why = "only the broker of a grid gives virtual addresses; without a broker, name them in virtual_subnets";
        reader.mistake_at(&site, "overlap_ok", why);
    }
    let virtual_subnets = read_virtual(reader, &site, subnets.as_deref().unwrap_or_default());
    if transparent.is_some() && (overlap_ok || !virtual_subnets.is_empty()) {
        let why = "cannot be used with overlap_ok or virtual_subnets: without the shim, a program sees its site's real addresses, which \
                   another site has, too";
        reader.mistake_at(&listen, "transparent", why);
    }
    if membership.is_some() {
        check_member(reader, &root, &grid);
    }
    let congestion_control = reader.string(&grid, "congestion_control", |text| Ok(text.to_owned()));
    let train = reader.boolean(&grid, "train");
    let insecure = reader.boolean(&grid, "insecure").unwrap_or(false);
    if grid.has("encrypt") {
        let why = "is no longer a key: everything is encrypted, unless both gateways have insecure = true in [grid]";
        reader.mistake_at(&grid, "encrypt", why);
    }
    let relay = reader.boolean(&grid, "relay").unwrap_or(false);
    if relay && wan.is_none() {
        let why =
            "the sites whose connections it carries must be able to dial this gateway: set [listen] wan";
        reader.mistake_at(&grid, "relay", why);
    }
    let transport = reader.string(&grid, "transport", transport);
    let proxy = read_proxy(reader, &grid, file);
    // One lane fewer than the most, because the last one is kept for QUIC.
    let lanes = reader.integer(&grid, "lanes", 1..=MAX_LANES as i64 - 1);
    let tunnel = read_tunnel(reader, &grid);
    let rate = reader.string(&grid, "rate", bits_per_second);
    let peers = read_peers(reader, &root, name.as_deref(), rate);
    let site_keys = [
        "name",
        "subnets",
        "overlap_ok",
        "virtual_subnets",
        "local",
        "nodes",
        "remote_shell",
        "low_ports",
        "audit",
    ];
    reader.no_other_keys(&site, &site_keys);
    reader.no_other_keys(
        &listen,
        &[
            "lan",
            "wan",
            "public",
            "control",
            "metrics",
            "transparent",
            "delivery_ports",
        ],
    );
    reader.no_other_keys(&grid, &GRID_KEYS);
    Some(Config {
        site: name?,
        subnets: subnets?,
        overlap_ok: overlap_ok || !virtual_subnets.is_empty(),
        virtual_subnets,
        local,
        nodes,
        audit,
        accept,
        mpi: mpi::read_mpi(reader, &root),
        batch: read_batch(reader, &root, intents),
        start: start::read_start(reader, &root),
        remote_shell,
        lan: lan?,
        wan,
        public,
        membership,
        control: control.unwrap_or_else(causeway_control::socket),
        metrics,
        transparent,
        delivery_ports: delivery_ports.unwrap_or(DELIVERY_PORTS),
        secrets,
        key: key?,
        peers,
        rate,
        congestion_control: congestion_control.unwrap_or_else(|| "bbr".to_owned()),
        transport: transport.unwrap_or(Transport::Auto),
        insecure,
        proxy,
        relay,
        train: train.unwrap_or(true),
        lanes: lanes.map(|lanes| lanes as usize),
        tunnel,
    })
}

const GRID_KEYS: [&str; 15] = [
    "key_file",
    "membership",
    "congestion_control",
    "transport",
    "proxy",
    "proxy_credentials",
    "lanes",
    "rate",
    "train",
    "encrypt",
    "insecure",
    "relay",
    "resume",
    "lane_timeout",
    "duplicate_small",
];

fn read_proxy<'a>(reader: &mut Reader<'a>, grid: &Table<'a>, file: &Path) -> Option<Proxy> {
    let proxy = reader.string(grid, "proxy", |text| Proxy::parse(text).map_err(TextError::from));
    let credentials = reader.string(grid, "proxy_credentials", |text| {
        read_credentials(&file.with_file_name(text))
    });
    if proxy.is_none() && grid.has("proxy_credentials") && !grid.has("proxy") {
        reader.mistake_at(grid, "proxy_credentials", "has no effect without proxy");
    }
    match credentials {
        Some(credentials) => proxy.map(|proxy| proxy.with_credentials(&credentials)),
        None => proxy,
    }
}

/// Where others dial: the configured address, or the one at which this gateway listens, if there is only one.
fn read_public<'a>(reader: &mut Reader<'a>, listen: &Table<'a>, wan: Option<SocketAddr>) -> Vec<SocketAddr> {
    if let Some(public) = reader.list(listen, "public", socket_address) {
        if wan.is_none() && !public.is_empty() {
            reader.mistake_at(
                listen,
                "public",
                "has no effect without wan, where they would arrive",
            );
        }
        return public;
    }
    wan.filter(|wan| !wan.ip().is_unspecified()).into_iter().collect()
}

/// Refuses what a member of a grid with a broker may not configure itself.
fn check_member<'a>(reader: &mut Reader<'a>, root: &Table<'a>, grid: &Table<'a>) {
    if reader.string(grid, "key_file", |_| Ok(())).is_some() {
        reader.mistake_at(
            grid,
            "key_file",
            "has no effect with membership: certificates prove who is there",
        );
    }
    if reader.boolean(grid, "insecure") == Some(true) {
        reader.mistake_at(
            grid,
            "insecure",
            "cannot be true with membership: certificates need TLS",
        );
    }
    if !reader.tables(root, "peer").is_empty() {
        reader.mistake_at(
            root,
            "peer",
            "has no effect with membership in [grid]: the broker names the sites",
        );
    }
}

fn read_tunnel<'a>(reader: &mut Reader<'a>, grid: &Table<'a>) -> Settings {
    let defaults = Settings::default();
    let resume = reader.string(grid, "resume", duration);
    let lane_timeout = reader.string(grid, "lane_timeout", duration);
    let lane_timeout = lane_timeout.unwrap_or(defaults.lane_timeout);
    Settings {
        resume: resume.unwrap_or(defaults.resume),
        lane_timeout,
        // Three keepalives before a lane is given up.
        keepalive: lane_timeout / 3,
        duplicate_small: reader.boolean(grid, "duplicate_small").unwrap_or(false),
        ..defaults
    }
}

fn site_name<'a>(reader: &mut Reader<'a>, table: &Table<'a>, key: &str) -> Option<String> {
    reader.required_string(table, key, |text| {
        if grid::is_site_name(text) {
            Ok(text.to_owned())
        } else {
            Err("a site name has 1 to 63 letters, digits, '-', '_' or '.'".into())
        }
    })
}

fn read_lan<'a>(reader: &mut Reader<'a>, listen: &Table<'a>, subnets: &[Cidr]) -> Option<Vec<SocketAddr>> {
    let lan = reader.required_list(listen, "lan", socket_address)?;
    for address in &lan {
        if address.port() == 0 || address.ip().is_unspecified() {
            reader.mistake_at(
                listen,
                "lan",
                "shims need one address and port to connect to, not a wildcard",
            );
        } else if !subnets.is_empty() && !subnets.iter().any(|subnet| subnet.contains(address.ip())) {
            reader.mistake_at(listen, "lan", &format!("{address} is not in the site's subnets"));
        }
    }
    if lan.iter().filter(|address| address.is_ipv4()).count() > 1
        || lan.iter().filter(|a| a.is_ipv6()).count() > 1
    {
        reader.mistake_at(listen, "lan", "at most one address per family");
    }
    Some(lan)
}

fn read_peers<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    own: Option<&str>,
    rate: Option<u64>,
) -> Vec<Peer> {
    let mut peers: Vec<Peer> = Vec::new();
    for table in reader.tables(root, "peer") {
        let site = site_name(reader, &table, "site");
        let address = reader.string(&table, "address", socket_address);
        let rate = reader.string(&table, "rate", bits_per_second).or(rate);
        reader.no_other_keys(&table, &["site", "address", "rate"]);
        let Some(site) = site else { continue };
        if own == Some(&site) || peers.iter().any(|peer| peer.site == site) {
            reader.mistake_at(&table, "site", &format!("{site} is this site or listed twice"));
        }
        peers.push(Peer { site, address, rate });
    }
    peers
}

#[cfg(test)]
pub(crate) mod tests;
