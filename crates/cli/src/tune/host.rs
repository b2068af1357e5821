//! Reads what this host has: kernel settings and limits.

use causeway_control::Status;
use nix::sys::resource::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the kernel shows its settings.
pub const SYSCTL_ROOT: &str = "/proc/sys";

/// Kernel settings that are read, as paths below [`SYSCTL_ROOT`].
const LOOKED_AT: [&str; 13] = [
    "net/core/default_qdisc",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_allowed_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_wmem",
];

/// The values read. A setting that cannot be read is missing: a container may not show it.
#[derive(Debug, Clone, Default)]
pub struct Host {
    settings: BTreeMap<&'static str, String>,
    /// Hard limit of open files.
    pub files: Option<u64>,
    /// Major and minor version of the kernel.
    pub kernel: Option<(u32, u32)>,
}

/// The process whose limits are those of the gateway.
pub fn worker_of(status: &Status) -> u32 {
    match status.worker {
        0 => status.pid,
        worker => worker,
    }
}

impl Host {
    /// Reads everything; `gateway` is the process whose limit of files counts, if the gateway runs.
    pub fn read(gateway: Option<u32>) -> Host {
        let text = |name: &'static str| {
            let text = std::fs::read_to_string(setting_path(Path::new(SYSCTL_ROOT), name)).ok()?;
            Some((name, words(&text)))
        };
        let running = gateway.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/limits")).ok());
        let files = running.as_deref().and_then(hard_limit);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Host {
            settings: LOOKED_AT.into_iter().filter_map(text).collect(),
            files: files.or_else(|| Some(getrlimit(Resource::RLIMIT_NOFILE).ok()?.1)),
            kernel: kernel(&release),
        }
    }

    /// A setting as the kernel writes it, with single blanks between its words.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The number at a position of a setting.
    pub fn number(&self, name: &str, at: usize) -> Option<u64> {
        self.setting(name)?.split(' ').nth(at)?.parse().ok()
    }

    /// The same host with another setting: for tests.
    #[cfg(test)]
    pub fn with(mut self, name: &'static str, value: &str) -> Host {
        self.settings.insert(name, value.to_owned());
        self
    }
}

/// The file of a setting.
pub fn setting_path(root: &Path, name: &str) -> PathBuf {
    root.join(name)
}

/// The words of a setting, with single blanks between them: the kernel uses tabs.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kernel(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The hard limit in the line `Max open files            1024                 524288               files`.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(4)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_of_files_is_read_as_the_kernel_writes_it() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(hard_limit(limits), Some(524_288));
        assert_eq!(
            hard_limit("Max open files            1024                 unlimited            files"),
            Some(u64::MAX)
        );
        assert_eq!(hard_limit(""), None);
    }

    #[test]
    fn settings_and_releases_are_read_as_the_kernel_writes_them() {
        assert_eq!(words("4096\t131072\t33554432\n"), "4096 131072 33554432");
        assert_eq!(kernel("6.18.44-generic\n"), Some((6, 18)));
        assert_eq!(kernel("odd"), None);
        let host = Host::default().with("net/ipv4/tcp_wmem", "4096 16384 4194304");
        assert_eq!(host.number("net/ipv4/tcp_wmem", 2), Some(4 << 20));
        assert_eq!(host.number("net/ipv4/tcp_rmem", 2), None);
    }
}
