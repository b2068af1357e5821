//! Where commands are run: on this host, or on the first head node of an emulated grid.

use super::Failure;
use super::grid::Grid;
use crate::cell::Way;
use crate::lab::Lab;
use crate::plan::KnownLink;
use crate::program::{Program, ProgramError};
use crate::row::Network;
use causeway_control::questions;
use causeway_control::{self as control, NodeInfo, Status};
use causeway_lab::Scenario;
use std::path::Path;
use std::time::Duration;

/// Where kernels show what TCP has done in a network namespace.
const COUNTERS: [&str; 2] = ["/proc/net/snmp", "/proc/net/netstat"];

/// See the module.
pub enum Host {
    /// This host's gateway and its grid.
    Local,
    /// An emulated grid, which ends when this value is dropped.
    Lab {
        lab: Box<Lab>,
        scenario: Box<Scenario>,
        head: String,
    },
}

impl Host {
    /// This host, or a lab of `scenario` that is started now; its messages go to `directory`.
    pub fn start(scenario: Option<&str>, routed: bool, directory: &Path) -> Result<Host, Failure> {
        let Some(name) = scenario else {
            return Ok(Host::Local);
        };
        let scenario = Scenario::find(name).map_err(Failure::usage)?;
        let first = scenario.sites.first();
        let head = first
            .map(|site| format!("{}-head", site.name))
            .unwrap_or_default();
        // The lab runs in another directory.
        let file = Path::new(name).is_file().then(|| std::path::absolute(name));
        let file = file.transpose().map_err(Failure::new)?;
        let name = &file.map_or_else(|| name.to_owned(), |file| file.display().to_string());
        let shape: &[&str] = match routed && !scenario.routed {
            true => &["--routed", "true", name],
            false => &[name],
        };
        let lab = Lab::start(shape, directory).map_err(|error| Failure::new(error.reason()))?;
        Ok(Host::Lab {
            lab: Box::new(lab),
            scenario: Box::new(scenario),
            head,
        })
    }

    /// A bash command line there. Its outputs go to `directory`.
    pub fn program(&self, line: &str, directory: &Path, limit: Duration) -> Result<Program, ProgramError> {
        match self {
            Host::Local => Ok(Program::new(line, directory, limit)),
            Host::Lab { lab, head, .. } => lab.program(head, line, directory, limit),
        }
    }

    /// What the gateway there reports.
    pub fn status(&self) -> Result<Status, Failure> {
        match self {
            Host::Local => questions::status(&control::socket()).map_err(|error| {
                Failure::usage(format_args!(
                    "{error}; 'causeway bench --lab rennes-nancy ...' measures on an emulated grid"
                ))
            }),
            Host::Lab { lab, head, .. } => {
                let value = lab.status(head).map_err(|error| Failure::new(error.reason()))?;
                serde_json::from_value(value).map_err(Failure::new)
            }
        }
    }

    /// What TCP has done so far: for plain connections, what the kernels of all nodes except these count; for
    /// the gateways' lanes, what the gateways report. `None` if it cannot be seen: on a real grid, only this
    /// gateway's lanes can.
    pub fn network(&self, grid: &Grid, way: Way, but: &[&NodeInfo]) -> Option<Network> {
        match (self, way) {
            (Host::Local, Way::Site | Way::Direct) => None,
            (Host::Local, Way::NoCollectives | Way::Causeway) => Some(lane_counters(&self.status().ok()?)),
            (Host::Lab { lab, .. }, Way::NoCollectives | Way::Causeway) => {
                let heads = grid.sites.iter().map(|site| format!("{}-head", site.name));
                let all = heads.map(|head| {
                    let status = serde_json::from_value(lab.status(&head).ok()?);
                    Some(lane_counters(&status.ok()?))
                });
                together(all)
            }
            (Host::Lab { lab, .. }, Way::Site | Way::Direct) => {
                let nodes = grid.sites.iter().flat_map(|site| &site.nodes);
                let nodes = nodes.filter(|node| !but.contains(node));
                let all = nodes.map(|node| Network::from_kernel(&lab.read(&node.name, &COUNTERS).ok()?));
                together(all)
            }
        }
    }

    /// Whether the nodes share the cores of this host.
    pub fn is_lab(&self) -> bool {
        matches!(self, Host::Lab { .. })
    }

    /// The link between two sites: as the scenario has it, or as the gateways' lanes see it.
    pub fn link(&self, status: &Status, near: &str, far: &str) -> Option<KnownLink> {
        match self {
            Host::Lab { scenario, .. } => scenario.link(near, far).map(|link| KnownLink {
                round_trip_us: link.rtt.as_secs_f64() * 1e6,
                rate_bits_per_second: link.rate_bits_per_second as f64,
                source: "scenario".into(),
            }),
            Host::Local => {
                let tunnel = status.tunnels.iter().find(|tunnel| tunnel.site == far)?;
                let link = tunnel.link().filter(|link| link.rate_bits_per_second > 0)?;
                Some(KnownLink {
                    round_trip_us: f64::from(link.rtt_microseconds),
                    rate_bits_per_second: link.rate_bits_per_second as f64,
                    source: "probed".into(),
                })
            }
        }
    }
}

fn together(all: impl Iterator<Item = Option<Network>>) -> Option<Network> {
    let all: Option<Vec<Network>> = all.collect();
    all?.into_iter().reduce(Network::and)
}

fn lane_counters(status: &Status) -> Network {
    let none = Network {
        crossed_bytes: Some(status.tunnels.iter().map(|tunnel| tunnel.sent_bytes).sum()),
        idle_restarts: Some(0),
        gateways_microseconds: Some(status.processor_microseconds),
        ..Network::default()
    };
    let lanes = status.tunnels.iter().flat_map(|tunnel| &tunnel.lanes);
    let all = lanes.map(|lane| Network {
        segments: lane.segments.into(),
        resent: lane.retransmits.into(),
        timeouts: lane.timeouts.into(),
        out_of_order: lane.out_of_order.into(),
        crossed_bytes: Some(0),
        idle_restarts: Some(lane.idle_restarts),
        gateways_microseconds: Some(0),
    });
    all.fold(none, Network::and)
}
