//! The rules by which a router hands connections between sites to its gateway (`transparent`), as text. Pure:
//! nothing in this program applies them.
//!
//! ```text
//! prerouting  TCP from here to other sites: marked, and given to the gateway's listener (tproxy) or to the connection it is part of
//! output      the same of this host's own processes: marked, so that they come in again over lo
//! ip rule     what is marked is delivered to this host, whatever its address
//! ```
//! Linux, Documentation/networking/tproxy.rst.

use crate::config::Config;
use causeway_control::Status;
use causeway_wire::Cidr;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Names the table, so that it can be replaced and removed without touching others.
const TABLE: &str = "causeway";

/// The mark and the routing table for what is handed over. Any would do: the gateway itself uses neither.
const MARK: &str = "0xca057";
const ROUTES: u16 = 7002;

/// What one site's router is to hand over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    site: String,
    listener: SocketAddr,
    /// This host's address in the site.
    own: Option<IpAddr>,
    here: Vec<Cidr>,
    there: Vec<(String, Vec<Cidr>)>,
    /// Sites whose connections are not handed over, and why.
    without: Vec<(String, &'static str)>,
    /// Gateways inside the subnets of other sites: lanes to them must not be handed over.
    gateways: Vec<SocketAddr>,
    /// The address at which other gateways dial this one, if it is one of the site: lanes to it must not be
    /// handed over, either.
    wan: Option<SocketAddr>,
}

/// Why there are no rules to print.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RulesError {
    /// The configuration names no listener.
    #[error(
        "[listen] has no 'transparent' address to which the rules could hand connections over; set one, such as \"127.0.0.1:7002\""
    )]
    NoListener,
    /// The site has only IPv6 subnets.
    #[error("[site] has no IPv4 subnet, and only IPv4 connections are handed over")]
    NoSubnet,
    /// No other site accepts such connections.
    #[error("there is no other site whose gateway takes connections from its router: {0}")]
    NoSite(String),
}

impl Rules {
    /// `status` is that of the running gateway: only that one knows the other sites' subnets, from their
    /// gateways.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn new(config: &Config, status: &Status) -> Result<Rules, RulesError> {
        let listener = config.transparent.ok_or(RulesError::NoListener)?;
        let here = only_ipv4(config.subnets.iter().copied());
        if here.is_empty() {
            return Err(RulesError::NoSubnet);
        }
        let (mut there, mut without) = (Vec::new(), Vec::new());
        for site in status.sites.iter().filter(|site| site.name != config.site) {
            let name = site.name.clone();
            match &site.info {
                None => without.push((name, "its gateway has not announced itself yet")),
                Some(info) if !info.transparent => {
                    without.push((name, "its gateway has no 'transparent' in [listen]"));
                }
                Some(info) => {
                    let subnets = info.subnets.iter().filter_map(|text| text.parse().ok());
                    there.push((name, only_ipv4(subnets)));
                }
            }
        }
        if there.iter().all(|(_, subnets)| subnets.is_empty()) {
            let all: Vec<String> = without
                .iter()
                .map(|(site, why)| format!("{site}: {why}"))
                .collect();
            let all = if all.is_empty() {
                "the grid has none".to_owned()
            } else {
                all.join("; ")
            };
            return Err(RulesError::NoSite(all));
        }
        // The others have dialled this gateway, from any port.
        let lanes = status.tunnels.iter().flat_map(|tunnel| &tunnel.lanes);
        let lanes = lanes.filter(|lane| lane.technique == "direct");
        let dialled = config.peers.iter().filter_map(|peer| peer.address);
        let mut gateways: Vec<SocketAddr> = dialled
            .chain(lanes.map(|lane| lane.peer))
            .filter(|gateway| holds(there.iter().flat_map(|(_, subnets)| subnets), gateway.ip()))
            .collect();
        gateways.sort();
        gateways.dedup();
        let is_here = |wan: &SocketAddr| wan.ip().is_unspecified() || holds(here.iter(), wan.ip());
        let wan = config.wan.filter(is_here);
        Ok(Rules {
            site: config.site.clone(),
            listener,
            own: config.lan.iter().map(SocketAddr::ip).find(IpAddr::is_ipv4),
            here,
            there,
            without,
            gateways,
            wan,
        })
    }
}

fn only_ipv4(subnets: impl Iterator<Item = Cidr>) -> Vec<Cidr> {
    subnets.filter(|subnet| subnet.address().is_ipv4()).collect()
}

fn holds<'a>(mut subnets: impl Iterator<Item = &'a Cidr>, address: IpAddr) -> bool {
    subnets.any(|subnet| subnet.contains(address))
}

/// Writes the list for `elements = { ... }`.
fn elements<'a>(subnets: impl Iterator<Item = &'a Cidr>) -> String {
    let all: Vec<String> = subnets.map(Cidr::to_string).collect();
    all.join(", ")
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_head(f)?;
        let there = || self.there.iter().flat_map(|(_, subnets)| subnets);
        let condition = "ip saddr @here ip daddr @there meta l4proto tcp";
        writeln!(
            f,
            "\ntable ip {TABLE}\ndelete table ip {TABLE}\ntable ip {TABLE} {{"
        )?;
        for (name, elements) in [("here", elements(self.here.iter())), ("there", elements(there()))] {
            writeln!(
                f,
                "  set {name} {{\n    type ipv4_addr\n    flags interval\n    auto-merge"
            )?;
            writeln!(f, "    elements = {{ {elements} }}\n  }}")?;
        }
        writeln!(f, "  chain prerouting {{")?;
        writeln!(
            f,
            "    type filter hook prerouting priority mangle; policy accept;"
        )?;
        writeln!(
            f,
            "    # What belongs to a connection that the gateway has in another host's name."
        )?;
        writeln!(
            f,
            "    {condition} socket transparent 1 meta mark set {MARK} accept"
        )?;
        writeln!(f, "    # What begins one.")?;
        writeln!(
            f,
            "    {condition} tproxy to {} meta mark set {MARK} accept\n  }}",
            self.listener
        )?;
        writeln!(f, "  chain output {{")?;
        writeln!(f, "    type route hook output priority mangle; policy accept;")?;
        for gateway in &self.gateways {
            writeln!(f, "    # A gateway: the tunnel itself goes there.")?;
            writeln!(
                f,
                "    ip daddr {} tcp dport {} accept",
                gateway.ip().to_canonical(),
                gateway.port()
            )?;
        }
        if let Some(wan) = self.wan {
            writeln!(f, "    # This gateway: the tunnels that others dial.")?;
            writeln!(f, "    tcp sport {} accept", wan.port())?;
        }
        writeln!(f, "    # This host's own programs, such as mpirun.")?;
        write!(f, "    {condition} meta mark set {MARK}\n  }}\n}}")
    }
}

impl Rules {
    /// What else has to be done, as comments with a mark before each, so that sed finds the commands.
    fn fmt_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subnets = || self.there.iter().flat_map(|(_, subnets)| subnets);
        writeln!(
            f,
            "# Hands TCP connections from {} to other sites to the gateway on this host:",
            self.site
        )?;
        for (site, subnets) in &self.there {
            writeln!(f, "#   {site}: {}", elements(subnets.iter()))?;
        }
        for (site, why) in &self.without {
            writeln!(f, "#   not {site}: {why}")?;
        }
        writeln!(
            f,
            "# Nothing was applied. As root, with these lines in causeway.nft:"
        )?;
        writeln!(
            f,
            "#   apply:   nft -f causeway.nft && sed -n 's/^#+ //p' causeway.nft | sh"
        )?;
        writeln!(f, "#   remove:  sed -n 's/^#- //p' causeway.nft | sh")?;
        writeln!(
            f,
            "# A reboot forgets them. Print them anew when a site joins the grid or changes its subnets."
        )?;
        writeln!(
            f,
            "#+ ip rule show | grep -q 'lookup {ROUTES}$' || ip rule add fwmark {MARK} lookup {ROUTES}"
        )?;
        writeln!(f, "#+ ip route replace local 0.0.0.0/0 dev lo table {ROUTES}")?;
        writeln!(f, "#- nft delete table ip {TABLE}")?;
        writeln!(f, "#- ip rule del fwmark {MARK} lookup {ROUTES}")?;
        writeln!(f, "#- ip route flush table {ROUTES}")?;
        if let Some(own) = self.own {
            writeln!(
                f,
                "# On each node that does not have this host as its router already:"
            )?;
            for subnet in subnets() {
                writeln!(f, "#n ip route replace {subnet} via {own}")?;
            }
            writeln!(
                f,
                "# Here, where programs on this host call other sites, which must see its address in the site:"
            )?;
            let device = format!("$(ip -o addr show to {own} | awk '{{ print $2; exit }}')");
            for subnet in subnets() {
                writeln!(f, "#h ip route replace {subnet} dev {device} src {own}")?;
            }
        }
        writeln!(
            f,
            "# Where this host filters what comes in, let it in by its mark, in the table that does:"
        )?;
        writeln!(f, "#   meta mark {MARK} accept")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::{SiteInfo, SiteStatus};
    use std::os::unix::fs::PermissionsExt;

    fn config(listen: &str, peer: &str) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!(
            "[site]\nname = \"rennes\"\nsubnets = [\"10.1.0.0/24\", \"fd00::/64\"]\n\
             [listen]\nlan = [\"10.1.0.253:7000\"]\n{listen}\n[grid]\nkey_file = \"grid.key\"\n\
             [[peer]]\nsite = \"nancy\"\naddress = \"{peer}\"\n"
        );
        Config::parse(&text, &dir.path().join("gateway.toml")).unwrap()
    }

    fn site(name: &str, subnet: &str, transparent: bool) -> SiteStatus {
        let info = SiteInfo {
            real_subnets: vec![],
            name: name.into(),
            subnets: vec![subnet.into()],
            gateways: Vec::new(),
            delivery_ports: "20000-32767".into(),
            nodes: Vec::new(),
            relays: false,
            transparent,
            local: vec![],
        };
        SiteStatus {
            name: name.into(),
            info: Some(info),
            unreachable: None,
        }
    }

    fn status(sites: Vec<SiteStatus>) -> Status {
        let text = r#"{"site": "rennes", "pid": 1, "resident_bytes": 0, "streams": 0, "streams_peak": 0, "streams_opened": 0,
            "refused": {}, "jobs": [], "sites": [], "tunnels": []}"#;
        Status {
            sites,
            ..serde_json::from_str(text).unwrap()
        }
    }

    const LISTEN: &str = "transparent = \"127.0.0.1:7002\"";

    #[test]
    fn rules_take_what_goes_to_sites_that_deliver_it_and_say_what_they_leave_out() {
        let unknown = SiteStatus {
            info: None,
            ..site("lyon", "10.4.0.0/24", false)
        };
        let sites = vec![
            site("rennes", "10.1.0.0/24", true),
            site("nancy", "10.2.0.0/24", true),
            site("orsay", "10.3.0.0/24", false),
            unknown,
        ];
        let rules = Rules::new(&config(LISTEN, "198.51.100.5:7001"), &status(sites)).unwrap();
        let text = rules.to_string();
        for part in [
            "elements = { 10.1.0.0/24 }",
            "elements = { 10.2.0.0/24 }",
            "    ip saddr @here ip daddr @there meta l4proto tcp socket transparent 1 meta mark set 0xca057 accept\n",
            "    ip saddr @here ip daddr @there meta l4proto tcp tproxy to 127.0.0.1:7002 meta mark set 0xca057 accept\n",
            "#n ip route replace 10.2.0.0/24 via 10.1.0.253\n",
            "#   not orsay: its gateway has no 'transparent' in [listen]\n",
            "#   not lyon: its gateway has not announced itself yet\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(
            !text.contains("tcp dport") && !text.contains("tcp sport"),
            "{text}"
        );
        assert!(
            !text.contains("fd00") && !text.contains("10.3.0.0") && !text.contains("10.4.0.0"),
            "{text}"
        );
    }

    #[test]
    fn lanes_between_gateways_in_the_sites_subnets_are_left_alone() {
        let sites = vec![site("nancy", "10.2.0.0/24", true)];
        let listen = format!("{LISTEN}\nwan = \"10.1.0.253:7001\"");
        let rules = Rules::new(&config(&listen, "10.2.0.253:7001"), &status(sites)).unwrap();
        let text = rules.to_string();
        let taken = text.rfind("meta mark set").unwrap();
        for part in [
            "    ip daddr 10.2.0.253 tcp dport 7001 accept\n",
            "    tcp sport 7001 accept\n",
        ] {
            assert!(
                text.find(part).is_some_and(|at| at < taken),
                "{part} is not in\n{text}"
            );
        }
    }

    #[test]
    fn without_a_listener_or_a_site_there_are_no_rules_but_a_reason() {
        let peer = "198.51.100.5:7001";
        let sites = || status(vec![site("nancy", "10.2.0.0/24", false)]);
        assert_eq!(
            Rules::new(&config("", peer), &sites()),
            Err(RulesError::NoListener)
        );
        let refusal = Rules::new(&config(LISTEN, peer), &sites())
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("nancy: its gateway has no 'transparent'"),
            "{refusal}"
        );
    }
}
