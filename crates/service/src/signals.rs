//! Which signals a program takes.

use nix::sys::signal::{SigSet, Signal};

/// Returns those of the signals that this process is not to ignore. `nohup` has a program ignore SIGHUP, and
/// a shell without job control has what it starts in the background ignore SIGINT and SIGQUIT (POSIX.1-2017,
/// Shell Command Language, 2.11). Who blocks a signal to read it gets it even so: the kernel keeps what is
/// blocked.
pub fn heeded(signals: &[Signal]) -> SigSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let heeded = |signal: &Signal| ignored & (1 << (*signal as i32 - 1)) == 0;
    signals.iter().copied().filter(heeded).collect()
}

/// The signals that /proc/PID/status says are ignored, the first one in the lowest bit; none where it says
/// nothing.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_kernels_words() {
        let status = "Name:\tcauseway\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        let bits = |signal: Signal| 1u64 << (signal as i32 - 1);
        assert_eq!(
            ignored(status),
            bits(Signal::SIGHUP) | bits(Signal::SIGINT) | bits(Signal::SIGPIPE)
        );
        assert_eq!((ignored(""), ignored("SigIgn:\tnone\n")), (0, 0));
    }

    #[test]
    fn std_has_every_program_ignore_sigpipe_and_no_other_signal_here() {
        let heeded = heeded(&[Signal::SIGPIPE, Signal::SIGUSR1]);
        assert!(!heeded.contains(Signal::SIGPIPE) && heeded.contains(Signal::SIGUSR1));
    }
}
