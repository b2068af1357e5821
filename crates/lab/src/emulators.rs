//! Starts the emulators in user space on the devices the keeper opened: one WAN for the lab, one switch for
//! each LAN that has a round-trip time of its own.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use crate::error::LabError;
use crate::keeper::Device;
use crate::plan::{Plan, SitePlan};
use crate::scenario::Scenario;
use crate::wan::{self, LanSpec, Port, Switch, Wan};

/// Running emulators; dropping them stops them.
pub(crate) struct Emulators {
    pub(crate) wan: Wan,
    _lans: Vec<Switch>,
}

impl Emulators {
    pub(crate) fn start(
        scenario: &Scenario,
        plan: &Plan,
        devices: Vec<(Device, OwnedFd)>,
    ) -> Result<Emulators, LabError> {
        let mut wan_ports = Vec::new();
        let mut lan_ports = Vec::new();
        for (device, descriptor) in devices {
            match device {
                Device::Wan { site } => wan_ports.push(wan_port(plan, site, descriptor)),
                Device::Lan { site, port } => lan_ports.push((site, (port, descriptor))),
            }
        }
        let links = scenario.links.iter().map(|link| wan::Link {
            between: link.between.clone(),
            spec: link.spec(),
        });
        let wan = Wan::start(wan_ports, links.collect())?;
        let mut lans = Vec::new();
        for site in plan.sites.iter().filter(|site| !site.site.lan_rtt.is_zero()) {
            let (own, others) = lan_ports
                .into_iter()
                .partition(|(name, _)| *name == site.site.name);
            lan_ports = others;
            lans.push(switch(site, own)?);
        }
        Ok(Emulators { wan, _lans: lans })
    }
}

fn wan_port(plan: &Plan, site: String, tun: OwnedFd) -> Port {
    let planned = plan.sites.iter().find(|planned| planned.site.name == site);
    let prefixes = planned.map(|planned| plan.prefixes(planned)).unwrap_or_default();
    let prefixes = prefixes
        .iter()
        .map(|prefix| (IpAddr::from(prefix.base()), prefix.prefix()));
    Port {
        site,
        tun,
        prefixes: prefixes.collect(),
    }
}

fn switch(site: &SitePlan, ports: Vec<(String, (String, OwnedFd))>) -> Result<Switch, LabError> {
    let rate_bits_per_second = site.site.lan_rate_bits_per_second.unwrap_or(DEFAULT_LAN_RATE);
    let spec = LanSpec {
        rtt: site.site.lan_rtt,
        rate_bits_per_second,
    };
    let ports = ports.into_iter().map(|(_, port)| port).collect();
    Switch::start(ports, spec).map_err(|error| LabError::setup(format!("LAN of {}", site.site.name), error))
}

/// The rate of an emulated LAN that specifies none: that of the papers' nodes.
const DEFAULT_LAN_RATE: u64 = 1_000_000_000;
