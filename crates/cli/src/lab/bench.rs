//! `causeway lab bench`: how well the emulator does what a scenario asks for.

use super::Failure;
use causeway_host::say;
use causeway_lab::Scenario;
use causeway_lab::wan::LinkSpec;
use causeway_lab::wan::bench::{Effort, Figures, bench};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;

/// Measure the emulator itself on the first link of each scenario.
#[derive(Args)]
pub struct BenchArgs {
    /// Scenarios that come with Causeway, or files.
    #[arg(default_value = "rennes-nancy")]
    scenarios: Vec<String>,
    /// Print all figures as JSON.
    #[arg(long)]
    json: bool,
    /// Congestion control algorithm of the TCP flow.
    #[arg(long, default_value = "cubic")]
    congestion_control: String,
}

/// Measures and prints, one scenario after the other.
pub fn main(args: &BenchArgs) -> Result<ExitCode, Failure> {
    for name in &args.scenarios {
        let scenario = Scenario::find(name).map_err(Failure::usage)?;
        let Some(link) = scenario.links.first() else {
            return Err(Failure::usage(format!("{name} has no link to measure")));
        };
        let asked = LinkSpec {
            rtt: link.rtt,
            rate_bits_per_second: link.rate_bits_per_second,
            queue_bytes: link.queue_bytes,
            loss: link.loss,
            seed: link.seed,
            up: true,
        };
        let effort = Effort {
            congestion: args.congestion_control.clone(),
            ..Effort::default()
        };
        let figures = bench(&asked, &effort).map_err(Failure::new)?;
        let text = if args.json {
            serde_json::to_string_pretty(&figures).map_err(Failure::new)?
        } else {
            format!(
                "{name}: {} - {}\n{}",
                link.between[0],
                link.between[1],
                readable(&figures)
            )
        };
        if let Err(status) = say::output(text) {
            return Ok(status);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn readable(figures: &Figures) -> String {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let megabits = |rate: f64| rate / 1e6;
    let (offered, queue): (u64, u64) = figures.links.iter().fold((0, 0), |(offered, queue), link| {
        (offered + link.offered_packets, queue + link.dropped_by_queue)
    });
    let (loss, reordered): (u64, u64) = figures.links.iter().fold((0, 0), |(loss, reordered), link| {
        (loss + link.dropped_by_loss, reordered + link.reordered)
    });
    format!(
        "  round trip     median {:.3} ms, 99th percentile {:.3} ms, asked {:.3} ms\n  \
           with both cores busy  median {:.3} ms, 99th percentile {:.3} ms\n  \
           one TCP flow ({})  {:.1} Mbit/s of {:.1} Mbit/s, {} segments sent again\n  \
           emulator       {:.2} cores while the flow ran\n  \
           packets        {offered} offered, {queue} dropped by the full queue, {loss} by the loss asked for, \
           {reordered} reordered",
        milliseconds(figures.rtt_idle.median),
        milliseconds(figures.rtt_idle.p99),
        milliseconds(figures.rtt_limit),
        milliseconds(figures.rtt_busy.median),
        milliseconds(figures.rtt_busy.p99),
        figures.tcp_congestion,
        megabits(figures.tcp_bits_per_second),
        megabits(figures.tcp_limit_bits_per_second),
        figures.tcp_retransmits,
        figures.emulator_cores,
    )
}
