//! This site's gateway: its configuration, where it listens, and whether it answers.

use super::Subject;
use super::listeners::{self, Kind};
use super::steps::Step;
use causeway_control::{ControlError, Status};
use causeway_gateway::config::Transport;
use causeway_gateway::{Config, ports};
use causeway_host::processes::other_causeway;
use std::path::Path;

const HAND_OVER: &str = "hand it over: causeway gateway --config FILE --drain";

/// Reads the file with the gateway's own reader.
pub fn configuration(subject: &Subject, file: Option<&Path>) -> Vec<Step> {
    let (Some(config), Some(file)) = (&subject.config, file) else {
        return Vec::new();
    };
    let config = match config {
        Ok(config) => config,
        Err(mistakes) => {
            let remedy = "correct each line above; configs/gateway.toml in the sources explains every key";
            return vec![Step::fail("file", mistakes.to_string(), remedy)];
        }
    };
    let peers = match config.membership {
        Some(_) => "peers from the broker".to_owned(),
        None => format!("{} peers", config.peers.len()),
    };
    let detail = format!(
        "{}: site {} with {} nodes, {peers}",
        file.display(),
        config.site,
        config.nodes.len()
    );
    let mut steps = vec![Step::ok("file", detail)];
    // A member has a certificate instead; see `grid`.
    if config.membership.is_none() {
        // The reader refuses a key that others may read.
        steps.push(Step::ok(
            "key file",
            format!("{} bytes, readable only by you", config.key.len()),
        ));
    }
    if config.peers.is_empty() && config.membership.is_none() {
        steps.push(Step::warn(
            "peers",
            "no [[peer]] is named",
            "add a [[peer]] for each other site",
        ));
    }
    if config.nodes.is_empty() {
        let remedy = "add [[site.nodes]] with name, address and slots for each";
        steps.push(Step::warn(
            "nodes",
            "no node is named: no rank can run here",
            remedy,
        ));
    }
    if config.wan.is_none() && config.peers.iter().any(|peer| peer.address.is_none()) {
        let remedy = "give each [[peer]] an address, or let others in with [listen] wan";
        steps.push(Step::fail(
            "peers",
            "a peer without an address must dial this gateway, which listens for none",
            remedy,
        ));
    }
    steps
}

/// Whether the gateway runs and, if not, whether it could.
pub fn running(subject: &Subject) -> Vec<Step> {
    let mut steps = vec![answers(subject)];
    let is_clear = subject.status().map(|status| status.clear_text);
    if is_clear.or_else(|| Some(subject.config()?.is_clear())) == Some(true) {
        steps.push(Step::warn(
            "encryption",
            "none: anyone on the path to other sites can read and change all that crosses",
            "remove insecure from [grid] here and at the other sites",
        ));
    }
    if let Some(config) = subject.config() {
        if let Some(status) = subject.status().filter(|status| status.site != config.site) {
            let detail = format!(
                "the gateway at {} is of site {}, not {}",
                subject.socket.display(),
                status.site,
                config.site
            );
            steps.push(Step::fail(
                "site",
                detail,
                "set another [listen] control, or stop that gateway",
            ));
        }
        steps.extend(listening(config, subject.status()));
        steps.push(match ports::check(&config.delivery_ports) {
            Ok(()) => {
                let (first, last) = (config.delivery_ports.start(), config.delivery_ports.end());
                Step::ok(
                    "delivery ports",
                    format!("no other process can get {first}-{last}"),
                )
            }
            Err(shared) => Step::fail(
                "delivery ports",
                shared.to_string(),
                "as root: sysctl -w net.ipv4.ip_local_reserved_ports=FIRST-LAST",
            ),
        });
    }
    steps
}

fn answers(subject: &Subject) -> Step {
    let (name, socket) = ("control socket", subject.socket.display());
    let own = env!("CARGO_PKG_VERSION");
    match &subject.status {
        Ok(status) if status.version == own => {
            let detail = format!("gateway of {} answers at {socket}, version {own}", status.site);
            match other_causeway(status.pid) {
                None => Step::ok(name, detail),
                Some(program) => Step::warn(
                    name,
                    format!(
                        "{detail}, but runs another program than this one: {}",
                        program.display()
                    ),
                    HAND_OVER,
                ),
            }
        }
        Ok(status) => {
            let version = if status.version.is_empty() {
                "an earlier one"
            } else {
                &status.version
            };
            let detail = format!(
                "gateway of {} answers at {socket}, version {version}; this is {own}",
                status.site
            );
            Step::warn(name, detail, HAND_OVER)
        }
        Err(error @ ControlError::NoGateway { .. }) => {
            Step::fail(name, error.to_string(), "causeway gateway --config FILE")
        }
        Err(error) => Step::fail(
            name,
            error.to_string(),
            "restart the gateway with this version of causeway",
        ),
    }
}

fn listening(config: &Config, status: Option<&Status>) -> Vec<Step> {
    let mut wanted: Vec<(String, Kind, _)> = config
        .lan
        .iter()
        .map(|lan| (format!("lan {lan}"), Kind::Tcp, *lan))
        .collect();
    if let Some(wan) = config.wan {
        wanted.push((format!("wan {wan}"), Kind::Tcp, wan));
        if config.transport != Transport::Tcp {
            wanted.push((format!("wan {wan} (UDP)"), Kind::Udp, wan));
        }
    }
    wanted.extend(
        config
            .metrics
            .map(|metrics| (format!("metrics {metrics}"), Kind::Tcp, metrics)),
    );
    wanted.extend(
        config
            .transparent
            .map(|address| (format!("transparent {address}"), Kind::Tcp, address)),
    );
    let gateway = status.map(|status| status.pid);
    wanted
        .into_iter()
        .map(|(name, kind, address)| listeners::look(name, kind, address, gateway))
        .collect()
}
