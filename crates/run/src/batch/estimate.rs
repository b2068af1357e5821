//! When the batch system could begin an allocation.

use super::commands::Batch;
use causeway_batch::word::{Request, UNAVAILABLE};
use std::time::{SystemTime, UNIX_EPOCH};

/// The script of a request that only asks for an estimate; it never runs.
const SCRIPT: &str = "#!/bin/sh\n";

impl Batch {
    /// Asks after how many seconds the batch system would begin this request; `None` if it does not say. If
    /// nodes are down or drained, the answer is [`UNAVAILABLE`].
    ///
    /// # Errors
    /// The batch system refuses the request; the error is in its own words.
    pub fn estimate(&self, request: &Request, options: &[String]) -> Result<Option<u64>, String> {
        let Some(words) = self.system.estimate_words(request, options) else {
            return Ok(None);
        };
        match self.run(&words, SCRIPT) {
            Ok(said) => {
                // Slurm prints the estimate to standard error.
                let at = self.system.estimate(&(said.output + &said.errors));
                Ok(at.map(|at| at.saturating_sub(now())))
            }
            Err(why) if self.lacks_nodes_now(&why) => Ok(Some(UNAVAILABLE)),
            Err(why) => Err(why),
        }
    }

    /// Whether nodes are down or drained, after a request was refused because nodes were lacking.
    fn lacks_nodes_now(&self, why: &str) -> bool {
        let listed = self.system.unavailable_words(why);
        let listed = listed.and_then(|words| self.run(&words, "").ok());
        listed.is_some_and(|said| !said.output.trim().is_empty())
    }
}

/// The time of this host's clock, in seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}
