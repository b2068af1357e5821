//! `causeway gateway` and `causeway status`.

use crate::say;
use causeway_gateway::control::{self, LaneStatus, Reply, Request, SiteStatus, Status};
use causeway_gateway::{Config, Gateway, ports};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Serve this site: run on its head node.
#[derive(Args)]
pub struct GatewayArgs {
    /// Configuration; configs/gateway.toml in the sources shows every key.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Show what the gateway of this host sees.
#[derive(Args)]
pub struct StatusArgs {
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs a gateway until it is told to stop.
pub fn gateway(args: GatewayArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(mistakes) => {
            say::error(mistakes);
            return ExitCode::from(2);
        }
    };
    if let Err(error) = ports::check(&config.delivery_ports) {
        say::error(format_args!("causeway gateway: {error}"));
        return ExitCode::from(2);
    }
    match Gateway::new(config).and_then(|mut gateway| gateway.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(format_args!("causeway gateway: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints the state of the gateway of this host.
pub fn status(args: StatusArgs) -> ExitCode {
    let status = match control::ask(&control::socket(), &Request::Status {}) {
        Ok((Reply::Status(status), _)) => status,
        Ok((other, _)) => {
            say::error(format_args!("causeway status: unexpected answer {other:?}"));
            return ExitCode::FAILURE;
        }
        Err(error) => {
            say::error(format_args!("causeway status: {error}"));
            return ExitCode::FAILURE;
        }
    };
    if !args.json {
        return say::result(readable(&status).trim_end());
    }
    match serde_json::to_string_pretty(&status) {
        Ok(text) => say::result(text),
        Err(error) => {
            say::error(format_args!("causeway status: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn readable(status: &Status) -> String {
    let mut text = format!(
        "gateway of {}  pid {}  memory {:.1} MB  streams {} (peak {}, opened {})\n",
        status.site,
        status.pid,
        status.resident_bytes as f64 / 1e6,
        status.streams,
        status.streams_peak,
        status.streams_opened
    );
    for site in &status.sites {
        text += &site_line(site);
    }
    for tunnel in &status.tunnels {
        text += &format!(
            "tunnel to {} at {}  rtt {:.1} ms  rate {:.0} Mbit/s  loss {:.2} %  streams {}  sent {:.1} MB  received {:.1} \
             MB\n",
            tunnel.site,
            tunnel.peer,
            f64::from(tunnel.rtt_microseconds) / 1e3,
            tunnel.rate_bits_per_second as f64 / 1e6,
            tunnel.loss * 100.0,
            tunnel.streams,
            tunnel.sent_bytes as f64 / 1e6,
            tunnel.received_bytes as f64 / 1e6
        );
        if let Some(seconds) = tunnel.down_seconds {
            text += &format!("  no lane for {seconds:.1} s; streams wait\n");
        }
        for lane in &tunnel.lanes {
            text += &lane_line(lane);
        }
    }
    for job in &status.jobs {
        text += &format!("job {job}\n");
    }
    for (kind, count) in &status.refused {
        text += &format!("refused {kind} {count}\n");
    }
    text
}

fn lane_line(lane: &LaneStatus) -> String {
    format!(
        "  lane {} at {}  {}  rtt {:.1} ms (least {:.1})  rate {:.0} Mbit/s  window {:.2} MB  sent {:.1} MB  received {:.1} \
         MB  segments {}  sent again {}  timeouts {}  idle restarts {}\n",
        lane.number,
        lane.peer,
        lane.congestion_control,
        f64::from(lane.rtt_microseconds) / 1e3,
        f64::from(lane.least_rtt_microseconds) / 1e3,
        lane.rate_bits_per_second as f64 / 1e6,
        lane.window_bytes as f64 / 1e6,
        lane.sent_bytes as f64 / 1e6,
        lane.received_bytes as f64 / 1e6,
        lane.segments,
        lane.retransmits,
        lane.timeouts,
        lane.idle_restarts
    )
}

fn site_line(site: &SiteStatus) -> String {
    let nodes = site.info.as_ref().map_or(0, |info| info.nodes.len());
    match &site.unreachable {
        None => format!("site {}  {nodes} nodes\n", site.name),
        Some(why) => format!("site {}  not reachable: {why}\n", site.name),
    }
}
