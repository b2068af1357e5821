//! A grid with a broker on emulated sites, which join it as people have them join.

use crate::fresh::{Fresh, right};
use crate::namespaces;
use causeway_broker::Listing;
use causeway_control::TunnelStatus;
use std::fs;
use std::path::Path;

/// Where sites of a scenario have their head nodes' public addresses, in its order.
const PUBLIC: [&str; 4] = ["198.51.100.1", "198.51.100.5", "198.51.100.9", "198.51.100.13"];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Emulated sites that join a grid one after the other.
pub struct Grid {
    pub fresh: Fresh,
    sites: Vec<String>,
    /// Sites with brokers of their own, where there are several.
    brokers: Vec<String>,
    /// Where the broker runs that commands ask.
    home: String,
    directory: String,
}

impl Grid {
    /// Starts the emulated sites and, at one of them, the broker, with these lines more in its configuration.
    pub fn start(name: &str, scenario: &str, sites: &[&str], home: &str, lines: &[&str]) -> Option<Grid> {
        if let Err(reason) = namespaces::probe() {
            println!("skipped: {reason}");
            return None;
        }
        let fresh = Fresh::up(name, Path::new(scenario));
        let directory = fresh.directory.join("grid").display().to_string();
        let mut grid = Grid {
            fresh,
            sites: owned(sites),
            brokers: Vec::new(),
            home: home.to_owned(),
            directory,
        };
        let broker = format!("{}:7443", grid.public(home));
        grid.says(&["grid", "create", "g5k", "--broker", &broker]);
        let config = Path::new(&grid.directory).join("broker.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text + &lines.join("\n")).unwrap();
        grid.start_broker();
        Some(grid)
    }

    /// Starts the emulated sites and a broker at each of `brokers`, all of one grid.
    pub fn start_several(name: &str, scenario: &str, sites: &[&str], brokers: &[&str]) -> Option<Grid> {
        if let Err(reason) = namespaces::probe() {
            println!("skipped: {reason}");
            return None;
        }
        let fresh = Fresh::up(name, Path::new(scenario));
        let mut grid = Grid {
            directory: fresh.directory.join("grid").display().to_string(),
            fresh,
            sites: owned(sites),
            brokers: owned(brokers),
            home: brokers[0].to_owned(),
        };
        let addresses: Vec<String> = brokers
            .iter()
            .map(|site| format!("{}:7443", grid.public(site)))
            .collect();
        grid.says(&["grid", "create", "g5k", "--brokers", &addresses.join(",")]);
        for site in brokers {
            grid.start_broker_of(site);
        }
        grid.ask_at(brokers[0]);
        Some(grid)
    }

    /// Where the files of a site's own broker are.
    fn directory_of(&self, site: &str) -> String {
        let number = self.brokers.iter().position(|known| known == site).unwrap() + 1;
        let directory = self.fresh.directory.join(format!("grid/broker-{number}"));
        directory.display().to_string()
    }

    /// Starts the broker of a site, where each has one.
    pub fn start_broker_of(&mut self, site: &str) {
        let directory = self.directory_of(site);
        self.fresh
            .start_named_broker(&format!("broker-{site}"), site, &directory);
    }

    pub fn kill_broker_of(&self, site: &str) {
        self.fresh.kill(site, &format!("broker-{site}"));
    }

    /// From now on commands ask the broker of this site.
    pub fn ask_at(&mut self, site: &str) {
        (self.home, self.directory) = (site.to_owned(), self.directory_of(site));
    }

    pub fn start_broker(&mut self) {
        let (home, directory) = (self.home.clone(), self.directory.clone());
        self.fresh.start_broker(&home, &directory);
    }

    fn place(&self, site: &str) -> usize {
        self.sites.iter().position(|known| known == site).unwrap()
    }

    fn public(&self, site: &str) -> &'static str {
        PUBLIC[self.place(site)]
    }

    /// A command about the grid, where the broker runs.
    pub fn says(&self, words: &[&str]) -> String {
        let place = ["--dir", self.directory.as_str()];
        self.fresh.says(&self.home, &[words, &place].concat())
    }

    pub fn listing(&self) -> Listing {
        serde_json::from_str(&self.says(&["grid", "list", "--json"])).unwrap()
    }

    pub fn lists(&self, what: &str, right: impl Fn(&Listing) -> bool) {
        self.fresh.wait_for(what, || right(&self.listing()));
    }

    /// Serial numbers of the certificates that the broker was shown, in the order of the sites' names.
    pub fn serials(&self) -> Vec<String> {
        let sites = self.listing().sites;
        sites.into_iter().map(|site| site.serial).collect()
    }

    /// A site joins with a token and its first node; `--closed` is one that cannot be dialled.
    pub fn join(&mut self, site: &str, more: &[&str]) {
        let subnet = format!("10.{}.0.0/24", self.place(site) + 1);
        let node = format!("{site}-1:2");
        self.join_with(site, &[&["--subnet", &subnet, "--node", &node], more].concat());
    }

    /// The same with other addresses.
    pub fn join_with(&mut self, site: &str, more: &[&str]) {
        let token = self.says(&["grid", "token", "--site", site]);
        let wan = format!("{}:7001", self.public(site));
        let mut line = vec!["gateway", "--join", &token, "--accept-jobs", "all"];
        if !more.contains(&"--closed") {
            line.extend(["--wan", wan.as_str()]);
        }
        line.extend(more.iter().filter(|word| **word != "--closed"));
        self.fresh.leave(site, &line, site);
    }

    pub fn tunnel(&self, site: &str, other: &str) -> Option<TunnelStatus> {
        let tunnels = self.fresh.status(site)?.tunnels.into_iter();
        { tunnels }.find(|tunnel| tunnel.site == other)
    }

    pub fn has_tunnel(&self, site: &str, other: &str) {
        self.fresh
            .wait_for(&format!("the tunnel of {site} and {other}"), || {
                let status = self.fresh.status(site);
                let sites = status.map_or_else(Vec::new, |status| status.sites);
                sites
                    .iter()
                    .any(|site| site.name == other && site.unreachable.is_none())
            });
    }

    /// Returns how the lane of two sites came about; empty while there is none.
    pub fn technique(&self, site: &str, other: &str) -> String {
        let lane = self
            .tunnel(site, other)
            .and_then(|tunnel| tunnel.lanes.into_iter().next());
        lane.map_or_else(String::new, |lane| lane.technique)
    }

    /// Answers what every lane over TCP of two sites has on its way with a reset. Whether there was one: a
    /// gateway whose worker has just been killed may have none.
    pub fn resets_lanes(&self, site: &str, other: &str) -> bool {
        let router = format!("{site}-router");
        let mut rules = "add table inet resets; \
             add chain inet resets forward { type filter hook forward priority -10; policy accept; }"
            .to_owned();
        // Either may have dialled, and the dialling side's port is the lane's own.
        let lanes = [(site, other), (other, site)].map(|(one, far)| self.tunnel(one, far));
        let lanes = lanes.iter().flatten().flat_map(|tunnel| &tunnel.lanes);
        for lane in lanes.filter(|lane| lane.technique == "dialled in") {
            let port = lane.peer.port();
            for end in ["sport", "dport"] {
                rules += &format!("; add rule inet resets forward tcp {end} {port} reject with tcp reset");
            }
        }
        if !rules.contains("reject") {
            return false;
        }
        let words = ["exec", "--lab", self.fresh.name(), &router, "--", "nft", &rules];
        right(&self.fresh.lab(&words).output().unwrap());
        true
    }
}
