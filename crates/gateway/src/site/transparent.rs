//! Connections that the site's router hands over (TPROXY): they belong to processes that cannot have a shim,
//! such as statically linked ones. `nft` has the router's rules, docs/transparent.md the user's view.
//!
//! ```text
//! node -- SYN to nancy-1 --> this host: nft hands it to our listener; its local address is nancy-1's, its peer the node
//! far gateway: binds the node's address and port, connects to nancy-1, whose answers the far router's rules bring back
//! ```
//! There is no preface, and so no token: a connection is carried under any running job that was begun for
//! such connections (`causeway run --transparent`). The processes at both ends see only the true addresses.

use crate::base::{Base, Bundle};
use crate::error::GatewayError;
use crate::keys::{LegKey, PairKey};
use crate::membership::consent::Refusal;
use crate::membership::directory::Whereabouts;
use crate::site::SiteSide;
use crate::site::deliver::CONNECT_DEADLINE;
use crate::site::leg::Stage;
use crate::site::socket::{Socket, keep_urgent_data};
use crate::sys::source::Class;
use causeway_tunnel::{OpenRequest, Target};
use causeway_wire::Token;
use mio::Interest;
use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Most handed-over connections that the far site has not opened yet. More wait in the kernel's queue, like
/// those without a preface.
const AT_MOST: usize = 4096;

/// Length of the backlog, the same as for the standard library's listeners.
const BACKLOG: i32 = 1024;

/// Listens for connections to addresses that are not this host's.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    let bound = || -> io::Result<TcpListener> {
        let listener = transparent_socket(address)?;
        listener.bind(&SockAddr::from(address))?;
        listener.listen(BACKLOG)?;
        Ok(TcpListener::from_std(listener.into()))
    };
    bound().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => GatewayError::Transparent { address, source },
        _ => GatewayError::Listen {
            address: address.to_string(),
            source,
        },
    })
}

/// Starts a connection that, as far as the destination can see, comes from another host's address.
pub(crate) fn connect(source: SocketAddr, destination: SocketAddr) -> io::Result<TcpStream> {
    let socket = transparent_socket(destination)?;
    socket.set_tcp_nodelay(true)?;
    keep_urgent_data(&socket)?;
    socket.bind(&SockAddr::from(source))?;
    match socket.connect(&SockAddr::from(destination)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

fn transparent_socket(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_ip_transparent_v4(true)?;
    Ok(socket)
}

impl SiteSide {
    /// Whether one more connection may be handed over.
    pub(crate) fn has_room_for_handed(&self) -> bool {
        self.handed.len() < AT_MOST
    }

    /// The router has handed over a connection; `peer` is its source.
    pub(in crate::site) fn on_handed_connection(
        &mut self,
        base: &mut Base<'_>,
        mut socket: TcpStream,
        peer: SocketAddr,
    ) {
        let _ = socket.set_nodelay(true);
        let _ = keep_urgent_data(&socket2::SockRef::from(&socket));
        let judged = socket
            .local_addr()
            .map_err(|error| ("handed-over", error.to_string()))
            .and_then(|destination| Ok((destination, self.judge_handed(base, peer, destination)?)));
        let (destination, (pair, token)) = match judged {
            Ok(judged) => judged,
            Err(refusal) => return self.turn_back(base, &socket, peer, refusal),
        };
        // open_stream takes sockets that the loop has registered already; this is the number that it gives
        // them.
        let number = Class::Leg.token(self.legs.vacant_key().0);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = base.registry().register(&mut socket, number, interest) {
            return self.turn_back(base, &socket, peer, ("register", error.to_string()));
        }
        let target = Target::Connection {
            source: peer,
            destination,
        };
        let request = OpenRequest { token, target };
        match self.open_stream(base, pair, &request, Socket::accepted(socket), Stage::Open) {
            Ok(leg) => drop(self.handed.insert(leg)),
            Err(reason) => {
                let why = format!("stream to {destination}: {}", reason.text());
                base.refuse("exhausted", peer.ip(), why);
            }
        }
    }

    fn turn_back(&mut self, base: &mut Base<'_>, socket: &TcpStream, peer: SocketAddr, (kind, why): Refusal) {
        base.refuse(kind, peer.ip(), why);
        // The kernel has accepted already: only a reset can still refuse.
        let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    }

    /// The pair with the destination's site, and the job under which the connection is carried.
    fn judge_handed(
        &self,
        base: &Base<'_>,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Result<(PairKey, Token), Refusal> {
        if !base.directory().is_own_address(source.ip()) {
            let why = format!("connection to {destination} handed over, but its source is not in this site");
            return Err(("foreign-source", why));
        }
        let site = match base.directory().site_of(destination.ip()) {
            Whereabouts::At(site) => site,
            Whereabouts::Here => {
                let why = format!("connection to {destination} handed over, which is in this site");
                return Err(("own-site", why));
            }
            Whereabouts::Nowhere => {
                let why = format!("connection to {destination} handed over, which is in no site of the grid");
                return Err(("unknown-destination", why));
            }
        };
        let Some(token) = base.jobs().transparent(&site) else {
            let why = format!(
                "connection to {destination} handed over, but no job that was started with --transparent runs at {site}: \
                 start it with 'causeway run --transparent'"
            );
            return Err(("no-transparent-job", why));
        };
        if !base.directory().other(&site).is_some_and(|info| info.transparent) {
            let why = format!(
                "connection to {destination} handed over, but the gateway of {site} delivers none: it has no 'transparent' in \
                 [listen]"
            );
            return Err(("not-transparent", why));
        }
        let pair = base.tunnels.pairs().key_of(&site);
        let no_tunnel = || {
            (
                "no-tunnel",
                format!("connection to {destination}: no tunnel to site {site}"),
            )
        };
        Ok((pair.ok_or_else(no_tunnel)?, token))
    }

    pub(in crate::site) fn on_delivery_deadline(
        &mut self,
        base: &mut Base<'_>,
        key: LegKey,
        generation: u64,
    ) {
        let leg = self.legs.get(key);
        if leg.is_some_and(|leg| leg.generation == generation && leg.is_connecting()) {
            self.tell_of_late_delivery(base, key);
            self.break_leg(base, key, causeway_wire::Reason::TimedOut);
        }
    }

    /// Reports a destination that has not answered. Somebody who forgot the rules at this site has no other
    /// sign of it.
    fn tell_of_late_delivery(&mut self, base: &mut Base<'_>, leg: LegKey) {
        let leg = self.legs.get(leg);
        let Some(leg) = leg.filter(|leg| base.jobs().is_transparent(&leg.token)) else {
            return;
        };
        if let Ok(source) = leg.socket.stream().local_addr() {
            let site = base.tunnels.pairs().site_of(leg.pair).to_owned();
            let why = format!(
                "its connection in the name of {} was not answered here within {CONNECT_DEADLINE:?}: the node is down, or the rules that bring answers \
                 back to this gateway are not applied (causeway gateway --print-nft)",
                source.ip()
            );
            base.refuse("unanswered", format_args!("site {site}"), why);
        }
    }

    /// A job for handed-over connections is over. Nothing shows to which of several jobs such a connection
    /// belongs. So connections go on while another such job runs; those of the last job are left to end with
    /// it.
    pub(in crate::site) fn leave_transparent_streams(&mut self, base: &mut Base<'_>, token: &Token) {
        for key in self.legs.keys_for_job(token) {
            let site = base.tunnels.pairs().site_of(self.legs[key].pair);
            // The other legs belong to starters and agents, which are the job's own.
            if !self.legs[key].of_launcher
                && let Some(other) = base.jobs().transparent(site)
            {
                self.legs.give(key, other, base.jobs().weight(&other));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gateway;
    use crate::base::base;
    use crate::config::Config;
    use crate::membership::jobs::{Job, Origin};
    use crate::site::leg::Leg;
    use causeway_control::SiteInfo;
    use causeway_tunnel::StreamId;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A gateway on loopback that knows the sites nancy and orsay; only nancy's gateway accepts what its
    /// router hands over. This gateway announces that it does, too, but without a listener, which would need
    /// a privilege.
    fn gateway(directory: &Path) -> Gateway {
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!(
            "[site]\nname = \"rennes\"\nsubnets = [\"127.0.0.0/8\"]\n[listen]\nlan = [\"127.0.0.1:1\"]\n\
             control = \"{}\"\n[grid]\nkey_file = \"grid.key\"\n",
            directory.join("control").display()
        );
        let mut config = Config::parse(&text, &directory.join("gateway.toml")).unwrap();
        config.lan[0].set_port(0);
        let mut gateway = Gateway::new(config).unwrap();
        gateway.driver.config.transparent = Some("127.0.0.1:7002".parse().unwrap());
        for (name, net) in [("nancy", 2), ("orsay", 3)] {
            let info = SiteInfo {
                real_subnets: vec![],
                name: name.into(),
                subnets: vec![format!("10.{net}.0.0/24")],
                gateways: vec![format!("10.{net}.0.253:7000").parse().unwrap()],
                delivery_ports: "20000-32767".into(),
                nodes: Vec::new(),
                relays: false,
                transparent: name == "nancy",
                local: vec![],
            };
            gateway.membership.pretend(info);
            gateway.tunnels.pairs_mut().pretend(name, PairKey(net));
        }
        gateway
    }

    fn begin(gateway: &mut Gateway, token: Token, transparent: bool) {
        let mut job = Job::new(
            "mpirun".into(),
            1,
            Origin::Site("nancy".into()),
            Default::default(),
        );
        job.transparent = transparent;
        job.told.insert("orsay".into());
        gateway.membership.jobs_mut().start(token, job);
    }

    /// A job of this site that runs at one other site.
    fn begin_own(gateway: &mut Gateway, token: Token, site: &str) {
        let origin = Origin::Here(crate::keys::CommandKey(1));
        let mut job = Job::new("mpirun".into(), 1, origin, Default::default());
        job.transparent = true;
        job.told.insert(site.into());
        gateway.membership.jobs_mut().start(token, job);
    }

    fn judged(
        gateway: &mut Gateway,
        source: &str,
        destination: &str,
    ) -> Result<(PairKey, Token), &'static str> {
        let judged = gateway.site.judge_handed(
            &base!(gateway),
            source.parse().unwrap(),
            destination.parse().unwrap(),
        );
        judged.map_err(|(kind, _)| kind)
    }

    #[test]
    fn a_connection_is_taken_from_this_site_to_one_that_delivers_it_while_a_job_for_such_ones_runs() {
        let directory = tempfile::tempdir().unwrap();
        let mut gateway = gateway(directory.path());
        let token = Token([1; 16]);
        begin(&mut gateway, Token([2; 16]), false);
        assert_eq!(
            judged(&mut gateway, "127.1.0.1:5000", "10.2.0.1:6000"),
            Err("no-transparent-job")
        );
        begin(&mut gateway, token, true);
        assert_eq!(
            judged(&mut gateway, "127.1.0.1:5000", "10.2.0.1:6000"),
            Ok((PairKey(2), token))
        );
        for (source, destination, kind) in [
            ("10.2.0.9:5000", "10.2.0.1:6000", "foreign-source"),
            ("127.1.0.1:5000", "127.0.0.1:7002", "own-site"),
            ("127.1.0.1:5000", "10.9.0.1:6000", "unknown-destination"),
            ("127.1.0.1:5000", "10.3.0.1:6000", "not-transparent"),
        ] {
            assert_eq!(
                judged(&mut gateway, source, destination),
                Err(kind),
                "{source} {destination}"
            );
        }
        // The job is one that runs at that site, preferably one of this site's own.
        begin_own(&mut gateway, Token([0; 16]), "orsay");
        let to_nancy = |gateway: &mut Gateway| judged(gateway, "127.1.0.1:5000", "10.2.0.1:6000");
        assert_eq!(to_nancy(&mut gateway), Ok((PairKey(2), token)));
        begin_own(&mut gateway, Token([3; 16]), "nancy");
        assert_eq!(to_nancy(&mut gateway), Ok((PairKey(2), Token([3; 16]))));
        gateway.tunnels.pairs_mut().pretend_none();
        assert_eq!(
            judged(&mut gateway, "127.1.0.1:5000", "10.2.0.1:6000"),
            Err("no-tunnel")
        );
    }

    #[test]
    fn another_site_delivers_here_in_the_name_of_its_own_addresses_alone() {
        let directory = tempfile::tempdir().unwrap();
        let mut gateway = gateway(directory.path());
        gateway.driver.config.lan[0].set_port(7000);
        gateway.driver.config.accept.jobs = vec!["nancy".into()];
        gateway.driver.config.accept.addresses = vec!["127.0.0.0/8".parse().unwrap()];
        let token = Token([9; 16]);
        let mut job = Job::new(
            "mpirun".into(),
            1,
            Origin::Site("nancy".into()),
            Default::default(),
        );
        job.transparent = true;
        gateway.membership.jobs_mut().start(token, job);
        let why_not = |gateway: &mut Gateway, source: &str, destination: &str| {
            let destination = destination.parse().unwrap();
            let source = source.parse().unwrap();
            let judged = gateway.site.judge_delivery(
                &base!(gateway),
                "nancy",
                token,
                source,
                destination,
                destination,
            );
            judged.err().map(|(kind, _)| kind)
        };
        assert_eq!(why_not(&mut gateway, "10.2.0.1:5000", "127.1.0.1:6000"), None);
        for source in ["127.1.0.2:5000", "10.3.0.1:5000", "198.51.100.9:5000"] {
            assert_eq!(
                why_not(&mut gateway, source, "127.1.0.1:6000"),
                Some("false-source"),
                "{source}"
            );
        }
        assert_eq!(
            why_not(&mut gateway, "10.2.0.1:5000", "127.0.0.1:7000"),
            Some("own-listener")
        );
        gateway.driver.config.transparent = None;
        assert_eq!(
            why_not(&mut gateway, "10.2.0.1:5000", "127.1.0.1:6000"),
            Some("not-transparent")
        );
    }

    #[test]
    fn connections_outlive_one_of_two_jobs_for_such_ones_but_not_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let mut gateway = gateway(directory.path());
        let (first, second) = (Token([1; 16]), Token([2; 16]));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for (id, of_launcher) in [(1, false), (2, true)] {
            let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut leg = Leg::new(
                Socket::dialled(tcp),
                PairKey(9),
                StreamId(id),
                (first, 1),
                u64::from(id),
                Stage::Open,
                &causeway_memory::Arena::private(),
            );
            leg.of_launcher = of_launcher;
            gateway.site.legs.insert(leg);
        }
        let end = |gateway: &mut Gateway, token| {
            gateway.membership.jobs_mut().end(&token).unwrap();
            gateway
                .site
                .leave_transparent_streams(&mut base!(gateway), &token);
            gateway.site.end_streams(&mut base!(gateway), &token);
            gateway
                .site
                .legs
                .iter()
                .map(|(_, leg)| leg.id)
                .collect::<Vec<_>>()
        };
        begin(&mut gateway, first, true);
        begin(&mut gateway, second, true);
        // The pair is made up, and belongs to a site without a name.
        for token in [first, second] {
            let job = gateway.membership.jobs_mut().get_mut(&token).unwrap();
            job.told.insert(String::new());
        }
        assert_eq!(
            end(&mut gateway, first),
            [StreamId(1)],
            "its starter's ends with it"
        );
        assert_eq!(end(&mut gateway, second), []);
    }

    #[test]
    fn a_gateway_that_may_not_take_them_says_what_it_lacks() {
        let refusal = GatewayError::Transparent {
            address: "127.0.0.1:7002".parse().unwrap(),
            source: io::Error::from_raw_os_error(libc::EPERM),
        };
        let said = refusal.to_string();
        for part in [
            "127.0.0.1:7002",
            "not permitted",
            "AmbientCapabilities=CAP_NET_ADMIN",
            "'transparent' in [listen]",
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
}
