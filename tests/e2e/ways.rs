//! The ways in which a user's commands are started on a head node: a login session, cron, `su`, `sudo`,
//! `env -i`, a systemd unit, another shell. ways.sh has the commands.

use crate::boot::{LINGERS, LOGIN, MANAGER, NANCY};
use crate::fresh::Fresh;
use crate::grid::{causeway, is_root_in_labs, root};

const COMMANDS: [&str; 7] = ["status", "check", "run", "files", "submit", "wait", "up"];

#[test]
#[ignore = "needs namespaces, Debian's MPIs, systemd, cron and sudo; run by make test"]
fn debian_mpis_run_from_cron_su_sudo_a_systemd_unit_and_any_shell_by_the_gateway_of_a_login_session() {
    if !is_root_in_labs("only root can be root's cron") {
        return;
    }
    let fresh = Fresh::up("ways", &root().join("tests/e2e/nat.toml"));
    fresh.shell("rennes-head", LINGERS);
    fresh.shell("rennes-head", &format!("{LOGIN}; {MANAGER}"));
    fresh.shell("nancy-head", "mkdir /run/home; mount --bind /run/home ~");
    let causeway = causeway().display().to_string();
    let up = format!("cd; {LOGIN}; {causeway} up --yes rennes=. nancy={NANCY} 2>&1");
    let up = fresh.shell("rennes-head", &up);
    assert!(up.contains("2 sites are one grid"), "{up}");
    let script = root().join("tests/e2e/ways.sh").display().to_string();
    let ways = [
        ("login", format!("{LOGIN}; {script} login")),
        ("env-i", format!("env -i {script} env-i")),
        ("su", format!("su - root -c '{script} su'")),
        ("sudo", format!("{LOGIN}; sudo -u root {script} sudo")),
        (
            "unit",
            format!("{LOGIN}; systemd-run --user --wait --pipe -q {script} unit"),
        ),
        ("tcsh", format!("{script} tcsh tcsh -c")),
        ("fish", format!("{script} fish fish -c")),
        ("cron", cron(&script)),
    ];
    let mut wrong = Vec::new();
    for (way, words) in ways {
        let said = fresh.shell("rennes-head", &format!("cd; {words} 2>&1"));
        println!("{said}");
        let is_there = |command: &&str| said.contains(&format!("{way} {command}: ok\n"));
        let missing = COMMANDS.iter().filter(|command| !is_there(command));
        wrong.extend(missing.map(|command| format!("{way} {command}")));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// One line of a crontab, whose output is shown once it is there whole.
fn cron(script: &str) -> String {
    let mount = "mount -t tmpfs -o mode=1730,gid=$(getent group crontab | cut -d : -f 3) tmpfs /var/spool/cron/crontabs";
    format!(
        "{mount}; echo '@reboot {script} cron >/run/ways.log 2>&1' | crontab -; rm -f /run/crond.reboot; cron; \
         until grep -q 'been through all' /run/ways.log; do sleep 0.2; done; cat /run/ways.log; pkill -x cron"
    )
}
