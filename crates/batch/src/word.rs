//! What `causeway run` and the holder of a site's allocation tell each other.

use crate::offer::Piece;
use crate::{MAX_NODES, is_id};
use serde::{Deserialize, Serialize};

/// Longest option that a user may give a batch system.
const MAX_OPTION: usize = 200;

/// Most options of a request.
const MAX_OPTIONS: usize = 32;

/// What an allocation is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// How many processes the allocation has room for.
    pub ranks: u32,
    /// How long the allocation lasts.
    pub minutes: u32,
    /// Options for the batch system, as far as the site allows them.
    pub options: Vec<String>,
}

/// What the holder is told. If its input ends, the allocation is to be given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToHolder {
    /// When could the site give this?
    Ask(Request),
    /// Request it, to begin this many seconds from now at the earliest: a delay, because the clocks of sites
    /// differ.
    Submit {
        /// In how many seconds to begin; 0: at once.
        after_seconds: u64,
    },
    /// An allocation that was to begin later may begin now: another site has begun early.
    Hasten,
    /// What does the batch system have?
    Offer,
}

/// A node of an allocation, with its address as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldNode {
    /// The name by which the batch system knows it.
    pub name: String,
    /// Its address in the grid.
    pub address: std::net::IpAddr,
    /// Processes for which the allocation has room there.
    pub slots: u32,
}

/// The estimate of one day that is given if nodes are down or drained: nobody knows when they will be back,
/// and other sites are not to hold any nodes until then.
pub const UNAVAILABLE: u64 = 86_400;

/// What the holder reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromHolder {
    /// The batch system would begin after this many seconds; `None` if it cannot say. See [`UNAVAILABLE`].
    Estimate(Option<u64>),
    /// The request waits.
    Queued {
        /// The allocation's id in the batch system.
        id: String,
        /// Why the allocation waits, in the batch system's words.
        reason: String,
        /// When the allocation is to begin, in seconds from now, if the batch system says.
        after_seconds: Option<u64>,
    },
    /// The allocation has begun, and its first node has answered.
    Held {
        /// The allocation's id in the batch system.
        id: String,
        /// The nodes, at least one.
        nodes: Vec<HeldNode>,
    },
    /// A part of what the batch system has.
    Offer(Piece),
    /// The site cannot give the allocation, or has lost it.
    Failed(String),
}

impl FromHolder {
    /// Says whether another site may send this.
    pub fn is_sound(&self) -> bool {
        let is_text = |text: &str| text.len() <= 1000;
        match self {
            FromHolder::Estimate(_) => true,
            FromHolder::Queued { id, reason, .. } => is_id(id) && is_text(reason),
            FromHolder::Held { id, nodes } => is_id(id) && (1..=MAX_NODES).contains(&nodes.len()),
            FromHolder::Offer(piece) => piece.is_sound(),
            FromHolder::Failed(why) => is_text(why),
        }
    }
}

/// Checks options for a batch system: each is `--NAME=VALUE`, and the site allows the name. Nothing else may
/// be a word of its command, because some options run programs or write files.
///
/// # Errors
/// The first option that may not be given; the error is a sentence.
pub fn check_options(options: &[String], allowed: &[String]) -> Result<(), String> {
    if options.len() > MAX_OPTIONS {
        return Err(format!("more than {MAX_OPTIONS} options for the batch system"));
    }
    for option in options {
        let parts = option.strip_prefix("--").and_then(|rest| rest.split_once('='));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:+%/&|*()[]".contains(&byte);
        match parts {
            Some((_, value)) if value.contains('@') => {
                let shown: String = option.chars().take(MAX_OPTION).collect();
                return Err(format!("{shown:?} would lead to another server"));
            }
            Some((name, value)) if option.len() <= MAX_OPTION && value.bytes().all(is_plain) => {
                if !allowed.iter().any(|allowed| allowed == name) {
                    return Err(format!(
                        "the site does not let --{name} be chosen (allow in [batch] names {})",
                        allowed.join(", ")
                    ));
                }
            }
            _ => {
                let shown: String = option.chars().take(MAX_OPTION).collect();
                return Err(format!("{shown:?} is not of the form --NAME=VALUE"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_that_a_site_allows_become_words_of_its_batch_system() {
        let allowed = ["partition".to_owned(), "account".to_owned()];
        let check = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            check_options(&options, &allowed)
        };
        assert_eq!(check(&["--partition=fast,slow", "--account=p7"]), Ok(()));
        assert_eq!(check(&[]), Ok(()));
        for option in [
            "--wrap=id",
            "--partition",
            "-pfast",
            "--partition=a b",
            "--partition=$(id)",
            "--account=a\n#SBATCH",
            "script.sh",
            "--partition=fast@other.example",
            "",
        ] {
            assert!(check(&[option]).is_err(), "{option:?}");
        }
        assert!(check(&["--account=p7"; MAX_OPTIONS + 1]).is_err());
    }
}
