//! Plans the names and addresses of a lab. Pure: the same scenario always gives the same plan.
//!
//! ```text
//!   compute .1 ---+                                           addresses of site i (from 0)
//!   compute .2 ---+-- br0 [router] wan0 ==== WAN emulator     router br0  last usable of the LAN
//!   head .253 ----+        |                                  head eth0   last usable but one
//!        eth1 -------------+ up0                              head eth1   198.51.100.(4i+1)/30, or 100.64.i.1/30
//! ```

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::networks::{PRIVATE_UPLINKS, PUBLIC_NETWORKS, SITES_PER_BLOCK};
use crate::scenario::{Batch, Firewall, Scenario, Site, Subnet};

/// One host of the lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Host name: `<site>-head`, `<site>-1`, ...
    pub name: String,
    /// Name of its site.
    pub site: String,
    /// What it is used for.
    pub role: Role,
    /// Address in the LAN of its site (eth0).
    pub lan: IpAddr,
    /// The address at which other sites can open connections to it; `None` for compute nodes, and if the
    /// firewall lets nothing in. With a firewall of kind `ports`, only those ports answer.
    pub wan: Option<IpAddr>,
    /// Source address that other sites see of its connections; `None` for a node whose packets do not leave
    /// the site.
    pub seen_as: Option<IpAddr>,
    /// Its own WAN address (eth1), which behind NAT is a private one; head nodes only.
    pub uplink: Option<IpAddr>,
    /// Process id of its init, as seen outside the lab; 0 until it is started.
    pub pid: i32,
}

/// What a node is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Where the site meets the WAN.
    Head,
    /// Where processes of jobs run.
    Compute,
}

/// What others may want to know about a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteView {
    /// Its name.
    pub name: String,
    /// Its LAN.
    pub subnet: Subnet,
    /// Processes per compute node.
    pub slots: u32,
    /// What its router lets in.
    pub firewall: Firewall,
    /// Name of its head node.
    pub head: String,
    /// Names of its compute nodes.
    pub compute: Vec<String>,
    /// The batch system of the site's compute nodes, if any.
    #[serde(default)]
    pub batch: Batch,
}

impl SiteView {
    /// Whether another site may open a connection to this port of the head node.
    pub fn reachable_inbound(&self, port: u16) -> bool {
        self.firewall.lets_in(port)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) routed: bool,
    pub(crate) congestion_control: Option<String>,
    pub(crate) slow_start_after_idle: Option<bool>,
    pub(crate) sites: Vec<SitePlan>,
}

#[derive(Clone, Debug)]
pub(crate) struct SitePlan {
    pub(crate) site: Site,
    pub(crate) router_lan: Ipv4Addr,
    /// Network of the head node's eth1 and the router's up0.
    pub(crate) uplink: Subnet,
    /// Public addresses behind this router.
    pub(crate) public: Subnet,
    pub(crate) nodes: Vec<Node>,
}

impl Plan {
    pub(crate) fn of(scenario: &Scenario) -> Plan {
        let sites = scenario
            .sites
            .iter()
            .enumerate()
            .map(|(index, site)| SitePlan::of(index as u32, site, scenario));
        Plan {
            routed: scenario.routed,
            congestion_control: scenario.congestion_control.clone(),
            slow_start_after_idle: scenario.slow_start_after_idle,
            sites: sites.collect(),
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.sites.iter().flat_map(|site| &site.nodes)
    }

    /// Networks that other sites reach through this site's router.
    pub(crate) fn prefixes(&self, site: &SitePlan) -> Vec<Subnet> {
        let lan = self.routed.then_some(site.site.subnet);
        std::iter::once(site.public).chain(lan).collect()
    }
}

impl SitePlan {
    fn of(index: u32, site: &Site, scenario: &Scenario) -> SitePlan {
        let public_block = PUBLIC_NETWORKS[(index / SITES_PER_BLOCK) as usize % PUBLIC_NETWORKS.len()];
        let within = index % SITES_PER_BLOCK * 4;
        let public = Subnet::holding(public_block.nth(within), 30);
        let uplink = match site.firewall.is_nat() {
            true => Subnet::holding(PRIVATE_UPLINKS.nth(index * 256), 30),
            false => public,
        };
        let mut nodes = vec![head(site, &uplink, &public)];
        nodes.extend((1..=site.nodes).map(|number| compute(site, number, &public, scenario.routed)));
        SitePlan {
            site: site.clone(),
            router_lan: site.subnet.nth_last(1),
            uplink,
            public,
            nodes,
        }
    }

    pub(crate) fn is_nat(&self) -> bool {
        self.site.firewall.is_nat()
    }

    pub(crate) fn view(&self) -> SiteView {
        let name = |node: &Node| node.name.clone();
        SiteView {
            name: self.site.name.clone(),
            subnet: self.site.subnet,
            slots: self.site.slots,
            firewall: self.site.firewall.clone(),
            batch: self.site.batch,
            head: self.nodes.first().map(name).unwrap_or_default(),
            compute: self
                .nodes
                .iter()
                .filter(|node| node.role == Role::Compute)
                .map(name)
                .collect(),
        }
    }
}

fn head(site: &Site, uplink: &Subnet, public: &Subnet) -> Node {
    let inbound = matches!(site.firewall, Firewall::Open | Firewall::Ports(_));
    Node {
        name: format!("{}-head", site.name),
        site: site.name.clone(),
        role: Role::Head,
        lan: site.subnet.nth_last(2).into(),
        wan: inbound.then(|| uplink.nth(1).into()),
        seen_as: Some(public.nth(1).into()),
        uplink: Some(uplink.nth(1).into()),
        pid: 0,
    }
}

fn compute(site: &Site, number: u32, public: &Subnet, routed: bool) -> Node {
    let lan = site.subnet.nth(number).into();
    let source = if site.firewall.is_nat() {
        public.nth(1).into()
    } else {
        lan
    };
    Node {
        name: format!("{}-{number}", site.name),
        site: site.name.clone(),
        role: Role::Compute,
        lan,
        wan: None,
        seen_as: routed.then_some(source),
        uplink: None,
        pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::MAX_SITES;

    fn plan(name: &str) -> Plan {
        Plan::of(&Scenario::find(name).unwrap())
    }

    #[test]
    fn names_and_addresses_follow_the_site() {
        let plan = plan("rennes-nancy");
        let nodes: Vec<String> = plan
            .nodes()
            .map(|node| format!("{} {}", node.name, node.lan))
            .collect();
        let expected = [
            "rennes-head 10.1.0.253",
            "rennes-1 10.1.0.1",
            "rennes-2 10.1.0.2",
            "nancy-head 10.2.0.253",
            "nancy-1 10.2.0.1",
            "nancy-2 10.2.0.2",
        ];
        assert_eq!(nodes, expected);
        assert_eq!(plan.sites[1].nodes[0].wan, Some(IpAddr::from([198, 51, 100, 5])));
        assert_eq!(plan.sites[1].router_lan, Ipv4Addr::new(10, 2, 0, 254));
    }

    #[test]
    fn heads_of_overlapping_sites_have_distinct_wan_addresses() {
        let plan = plan("overlap");
        assert_eq!(plan.sites[0].nodes[1].lan, plan.sites[1].nodes[1].lan);
        assert_ne!(plan.sites[0].nodes[0].wan, plan.sites[1].nodes[0].wan);
        assert!(!plan.prefixes(&plan.sites[0]).contains(&plan.sites[0].site.subnet));
    }

    #[test]
    fn nobody_reaches_a_head_node_behind_nat() {
        let mut scenario = Scenario::find("rennes-nancy").unwrap();
        scenario.sites[1].firewall = Firewall::Nat;
        let plan = Plan::of(&scenario);
        let head = &plan.sites[1].nodes[0];
        assert_eq!(
            (head.wan, head.uplink),
            (None, Some(IpAddr::from([100, 64, 1, 1])))
        );
        assert_eq!(head.seen_as, Some(IpAddr::from([198, 51, 100, 5])));
    }

    #[test]
    fn the_last_of_all_sites_still_has_its_own_public_network() {
        let mut scenario = Scenario::find("rennes-nancy").unwrap();
        let site = scenario.sites[0].clone();
        scenario.sites = vec![site; MAX_SITES];
        let plan = Plan::of(&scenario);
        let mut publics: Vec<Ipv4Addr> = plan.sites.iter().map(|site| site.public.base()).collect();
        publics.sort();
        publics.dedup();
        assert_eq!(publics.len(), MAX_SITES);
    }
}
