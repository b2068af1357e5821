//! Which signals a program heeds.

use nix::sys::signal::{SigSet, Signal};

/// Returns these signals, without SIGHUP if this process was started to ignore it, as under `nohup`. A
/// process that blocks a signal in order to read it would receive it nevertheless, because the kernel keeps
/// blocked signals.
///
/// SIGINT and SIGQUIT are heeded even if a shell without job control makes the commands that it starts in the
/// background ignore them (POSIX.1-2017, Shell Command Language, 2.11): MPIs' launchers do so, too, and
/// whoever sends them to one process means it.
pub fn heeded(signals: &[Signal]) -> SigSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangs_up = !ignores_hang_ups(&status);
    let heeded = |signal: &Signal| hangs_up || *signal != Signal::SIGHUP;
    signals.iter().copied().filter(heeded).collect()
}

/// Whether /proc/PID/status says that SIGHUP is ignored: the first signal is the lowest bit there.
fn ignores_hang_ups(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits & 1 << (Signal::SIGHUP as i32 - 1) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_kernels_words() {
        let status = |ignored: &str| format!("Name:\tcauseway\nSigBlk:\t1\nSigIgn:\t{ignored}\nSigCgt:\t0\n");
        assert!(ignores_hang_ups(&status("0000000000001003")));
        assert!(!ignores_hang_ups(&status("0000000000001002")));
        assert!(!ignores_hang_ups(&status("none")));
        assert!(!ignores_hang_ups(""));
    }
}
