//! `causeway look-at-node`: prints what the node on which it runs has, as a line of JSON.

use causeway_bench::node::{MAX_NAME, Node, speed_thousandths};
use causeway_host::say;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::Duration;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure how fast its cores are, for so long.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: Option<u32>,
}

/// The command's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// What the node has.
    pub node: Node,
    /// How fast the node's cores are, if that was measured.
    pub speed_thousandths: Option<u32>,
}

/// Most cores and most memory that are believed.
const MOST_CORES: u32 = 65_536;
const MOST_BYTES: u64 = 1 << 50;

impl Seen {
    /// Reads the answer of another site's node.
    ///
    /// # Errors
    /// The answer is malformed, or no node has as much as it says.
    pub fn read(line: &str) -> Result<Seen, String> {
        let seen: Seen = serde_json::from_str(line.trim()).map_err(|_| "its answer is not understood")?;
        let node = &seen.node;
        let is_sound = (1..=MOST_CORES).contains(&node.cores)
            && node.memory_bytes.is_none_or(|bytes| bytes <= MOST_BYTES)
            && node.processor.chars().count() <= MAX_NAME
            && !node.processor.contains(char::is_control)
            && seen.speed_thousandths != Some(0);
        match is_sound {
            true => Ok(seen),
            false => Err("what it says of itself cannot be".to_owned()),
        }
    }
}

/// Prints the line.
pub fn main(args: &Args) -> ExitCode {
    let failed = |why: String| {
        say::error(format_args!("causeway look-at-node: {why}"));
        ExitCode::FAILURE
    };
    let node = match Node::here() {
        Ok(node) => node,
        Err(error) => return failed(format!("which processors this process may use: {error}")),
    };
    let time = args.speed.map(|seconds| Duration::from_secs(seconds.into()));
    let seen = Seen {
        speed_thousandths: time.map(|time| speed_thousandths(node.cores, time)),
        node,
    };
    match serde_json::to_string(&seen) {
        Ok(line) => say::result(line),
        Err(error) => failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_no_node_can_give_is_refused() {
        let line = |cores: &str, processor: &str| {
            format!(
                r#"{{"node":{{"cores":{cores},"memory_bytes":null,"processor":"{processor}","load_thousandths":0}},"speed_thousandths":2500}}"#
            )
        };
        let read = |line: &str| Seen::read(line).is_ok();
        assert!(read(&format!("{}\n", line("4", "Some CPU"))));
        assert!(!read("4 cores"));
        assert!(!read(&line("0", "Some CPU")));
        assert!(!read(&line("65537", "Some CPU")));
        assert!(!read(&line("4", "\\u001b[31m")));
        assert!(!read(&line("4", &"x".repeat(400))));
    }
}
