//! Gateways and brokers that start with their host: by the user's systemd where that starts with the host,
//! too, and otherwise by cron, with the line that is offered.

use crate::fresh::Fresh;
use crate::grid::{causeway, is_root_in_labs, root};

/// Where rennes, whose NAT lets nobody in, finds nancy.
pub const NANCY: &str = "198.51.100.5";

/// What a login has that PAM made.
pub const LOGIN: &str = "export XDG_RUNTIME_DIR=/run/user-0";

/// A host whose user lingers, before systemd runs.
pub const LINGERS: &str = "mkdir -p /run/home /run/systemd/system; mkdir -m 700 /run/user-0; mount --bind /run/home ~; \
    mount -t tmpfs tmpfs /var/lib/systemd; mkdir /var/lib/systemd/linger; touch /var/lib/systemd/linger/root";

/// What the host's own systemd does for a user who lingers.
pub const MANAGER: &str = "dbus-daemon --session --address=unix:path=/run/user-0/bus --fork --nopidfile; \
    setsid /lib/systemd/systemd --user >/run/manager.log 2>&1 </dev/null & \
    until systemctl --user show >/dev/null 2>&1; do sleep 0.1; done";

/// A host that has no systemd, and no crontab of anybody's.
const CRON: &str = "mkdir /run/home; mount --bind /run/home ~; \
    mount -t tmpfs -o mode=1730,gid=$(getent group crontab | cut -d : -f 3) tmpfs /var/spool/cron/crontabs";

/// A host that loses its power.
const OFF: &str = "pkill -9 -f 'systemd --use[r]|dbus-daemo[n]|causewa[y] (gateway|broker)' || true; \
    while pgrep -f 'causewa[y] (gateway|broker)'; do sleep 0.1; done";

#[test]
#[ignore = "needs namespaces, systemd and cron; run by make test"]
fn gateways_in_the_background_start_with_their_hosts_by_systemd_or_by_cron() {
    if !is_root_in_labs("only root can be root's cron") {
        return;
    }
    let fresh = Fresh::up("boot", &root().join("tests/e2e/nat.toml"));
    fresh.shell("rennes-head", LINGERS);
    fresh.shell("rennes-head", &format!("{LOGIN}; {MANAGER}"));
    fresh.shell("nancy-head", CRON);
    let causeway = causeway().display().to_string();
    let at_rennes = |words: &str| fresh.shell("rennes-head", &format!("cd; {LOGIN}; {words} 2>&1"));
    let up = at_rennes(&format!("{causeway} up --yes rennes=. nancy={NANCY}"));
    assert!(
        up.contains("runs as the service causeway-gateway-rennes of your systemd"),
        "{up}"
    );
    let offered: Vec<&str> = { up.lines().map(str::trim) }
        .filter(|line| line.starts_with("(crontab -l; "))
        .collect();
    assert_eq!(offered.len(), 2, "a broker and a gateway:\n{up}");
    offered.iter().for_each(|line| {
        fresh.shell("nancy-head", &format!("{line} 2>&1"));
    });

    fresh.shell("rennes-head", OFF);
    fresh.shell("nancy-head", OFF);
    fresh.shell("nancy-head", "cron");
    fresh.shell("rennes-head", &format!("{LOGIN}; {MANAGER}"));
    fresh.wait_for("the tunnel after both hosts were restarted", || {
        at_rennes("~/.local/bin/causeway status || true").contains("tunnel to nancy")
    });

    let down = at_rennes(&format!("{causeway} down --yes"));
    let left =
        "pgrep -fa 'causewa[y] (gateway|broker)' || true; find ~ -name 'causeway*' ! -path '*/state/*'";
    assert_eq!(fresh.shell("rennes-head", left), "", "{down}");
}
