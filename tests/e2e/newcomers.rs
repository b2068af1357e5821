//! The way of somebody who has never used Causeway: a grid, its broker, a token and one line for each of two
//! sites, a job. One of the sites is behind a NAT; nobody is root of anything but the emulated nodes, which
//! have but one user.

use crate::fresh::Fresh;
use crate::grid::{causeway, root};
use crate::mpi;
use crate::namespaces;
use std::time::Instant;

/// Where rennes, whose NAT lets nobody in, finds nancy.
const NANCY: &str = "198.51.100.5";

const NAME: &str = "nat-newcomers";

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_after_one_command_that_sets_up_two_fresh_sites_and_another_takes_all_away() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up("nat-up", &root().join("tests/e2e/nat.toml"));
    let another = ["setpriv", "--reuid", "65534", "--clear-groups"];
    fresh.leave_any(
        "nancy",
        &[&another[..], &["/usr/bin/python3", "-c", LISTENS]].concat(),
        "another",
    );
    fresh.shell("nancy-head", &format!("timeout 20 python3 -c '{LISTENED_TO}'"));
    for site in ["rennes", "nancy"] {
        // A home of their own, which the emulated hosts share otherwise.
        fresh.shell(
            &format!("{site}-head"),
            "mkdir /run/home; mount --bind /run/home ~",
        );
    }
    let causeway = causeway().display().to_string();
    let said = |words: &str| fresh.shell("rennes-head", &format!("cd; {causeway} {words} 2>&1"));
    let sites = format!("rennes=. nancy={NANCY}");
    let dry = said(&format!("up --dry-run {sites}"));
    assert!(dry.contains("Nothing was changed"), "{dry}");
    for head in ["rennes-head", "nancy-head"] {
        assert_eq!(fresh.shell(head, "ls -A ~"), "", "{head}");
    }
    let began = Instant::now();
    let up = said(&format!("up --yes {sites}"));
    println!("    from nothing to the first job: {:.1?}", began.elapsed());
    for part in [
        // Nobody reaches rennes, and another user of nancy's head node has the usual ports.
        "nancy$ causeway grid create grid --broker 198.51.100.5:7453\n",
        " --lan 10.2.0.253:7010 --wan 198.51.100.5:7011 --accept-jobs rennes,nancy ",
        "rennes$ causeway gateway --background --join - --subnet 10.1.0.0/24 --node rennes-head=10.1.0.253:",
        "answer from nancy",
        "run --sites rennes=1,nancy=1 -- mpirun -n 2 hostname",
        "    nancy-head\n",
        "    a message of 1 byte and its answer, rennes - nancy: ",
        "; the least that the kernel has seen of the network is ",
        "2 sites are one grid",
    ] {
        assert!(up.contains(part), "{part:?} is not in:\n{up}");
    }
    let again = said(&format!("up --yes {sites}"));
    assert!(again.contains("All sites are in the grid"), "{again}");
    // As a user at the site goes on.
    let run = "~/.local/bin/causeway run --sites rennes=1,nancy=1 -- mpirun.mpich -n 2 hostname";
    assert!(fresh.shell("rennes-head", run).contains("nancy-head"));
    // As after a job with --send.
    let sent = "mkdir -p ~/.cache/causeway/sent && echo copy >~/.cache/causeway/sent/ab12";
    fresh.shell("rennes-head", sent);
    // As when systemd removes a user's runtime directory after the last logout.
    let gone = "find /run /tmp -name gateway.sock -print -delete";
    assert!(fresh.shell("rennes-head", gone).contains("gateway.sock"));
    let down = said("down --yes");
    for head in ["rennes-head", "nancy-head"] {
        let left = fresh.shell(
            head,
            "pgrep -fa 'installe[d]' || true; find ~ -type f ! -path '*/state/*' ! -name 'audit-*'",
        );
        assert_eq!(left, "", "{down}");
    }
}

/// Listens where gateways and brokers usually do.
const LISTENS: &str = "import socket, time\n\
    all = [socket.create_server((\"0.0.0.0\", port)) for port in (7000, 7001, 7443)]\n\
    time.sleep(600)";

/// Ends once somebody does.
const LISTENED_TO: &str = "import socket, time\n\
    while socket.socket().connect_ex((\"127.0.0.1\", 7443)): time.sleep(0.02)";

/// What the user at orsay has in ~/.ssh/config: only rennes knows the name of bordeaux's head node.
const JUMP: &str = "Host far\\n  HostName login.bordeaux\\n  ProxyJump 198.51.100.5\\n";

/// Bordeaux takes ssh from rennes alone.
const FROM_RENNES: &str = "nft 'add table inet door; \
    add chain inet door in { type filter hook input priority 0; }; \
    add rule inet door in tcp dport 22 ip saddr != 198.51.100.5 reject with tcp reset'";

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_at_a_site_whose_head_node_is_behind_a_jump_host() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let fresh = Fresh::up("jump-up", &root().join("scenarios/orsay-rennes-bordeaux.toml"));
    for head in ["orsay-head", "bordeaux-head"] {
        fresh.shell(head, "mkdir /run/home; mount --bind /run/home ~");
    }
    fresh.shell("rennes-head", "echo 198.51.100.9 login.bordeaux >>/etc/hosts");
    fresh.shell("bordeaux-head", FROM_RENNES);
    fresh.shell(
        "orsay-head",
        &format!("mkdir ~/.ssh; printf '{JUMP}' >~/.ssh/config"),
    );
    let direct = "ssh 198.51.100.9 true 2>&1 || true";
    assert!(fresh.shell("orsay-head", direct).contains("Connection refused"));
    let causeway = causeway().display().to_string();
    let said = |words: &str| fresh.shell("orsay-head", &format!("cd; {causeway} {words} 2>&1"));
    let up = said("up --yes orsay=. bordeaux=far");
    for part in ["198.51.100.9", "    bordeaux-head\n", "2 sites are one grid"] {
        assert!(up.contains(part), "{part:?} is not in:\n{up}");
    }
    assert!(said("up --yes orsay=. bordeaux=far").contains("All sites are in the grid"));
    let down = said("down --yes");
    for head in ["orsay-head", "bordeaux-head"] {
        let left = "pgrep -fa 'installe[d]' || true; \
             find ~ -path '*causeway*' -type f ! -path '*/state/*' ! -name 'audit-*'";
        assert_eq!(fresh.shell(head, left), "", "{down}");
    }
}

/// A firewall at rennes that lets nothing in, and nothing but ssh and a web proxy out.
const PROXY_ALONE: &str = "nft 'add table inet door; add chain inet door in { type filter hook input priority 0; }; \
    add chain inet door out { type filter hook output priority 0; }; \
    add rule inet door in tcp dport { 7001, 7443 } ip saddr 198.51.100.0/24 drop; \
    add rule inet door out tcp dport { 7001, 7443 } ip daddr 198.51.100.0/24 drop; \
    add rule inet door out meta l4proto udp ip daddr 198.51.100.0/24 drop'; \
    (umask 077; echo ada:secret >/run/proxy.txt)";

/// The proxy, at orsay.
const PROXY: &str = "printf '%s\n' 'Port 3128' 'Timeout 600' 'MaxClients 100' 'BasicAuth ada secret' \
    'ConnectPort 7001' 'ConnectPort 7443' 'LogLevel Error' 'LogFile \"/run/tinyproxy.log\"' >/run/tinyproxy.conf; \
    tinyproxy -c /run/tinyproxy.conf";

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_at_a_site_that_gets_out_through_a_web_proxy_alone() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let fresh = Fresh::up("proxy-up", &root().join("scenarios/orsay-rennes-bordeaux.toml"));
    for head in ["rennes-head", "bordeaux-head"] {
        fresh.shell(head, "mkdir /run/home; mount --bind /run/home ~");
    }
    fresh.shell("orsay-head", PROXY);
    fresh.shell("rennes-head", PROXY_ALONE);
    let proxy = fresh.shell("rennes-head", "getent hosts orsay-head.wan | cut -d ' ' -f 1");
    let causeway = causeway().display().to_string();
    let said = |words: &str| fresh.shell("rennes-head", &format!("cd; {causeway} 2>&1 {words}"));
    let sites = "rennes=. bordeaux=198.51.100.9";
    let refused = said(&format!("up --yes {sites} || true"));
    assert!(
        refused.contains("no head node is reached by all others") && refused.contains("--proxy"),
        "{refused}"
    );
    let through = format!("--proxy rennes={proxy}:3128");
    let refused = said(&format!("up --yes {sites} {through} || true"));
    assert!(refused.contains("it wants a user and a password"), "{refused}");
    let up = said(&format!(
        "up --yes {sites} {through} --proxy-credentials rennes=/run/proxy.txt"
    ));
    for part in [
        "bordeaux$ causeway grid create",
        "    bordeaux-head\n",
        "2 sites are one grid",
    ] {
        assert!(up.contains(part), "{part:?} is not in:\n{up}");
    }
    let status = fresh.shell("rennes-head", "~/.local/bin/causeway status --json");
    let status: causeway_control::Status = serde_json::from_str(&status).unwrap();
    let lanes = &status.tunnels[0].lanes;
    assert!(
        !lanes.is_empty() && lanes.iter().all(|lane| lane.technique == "direct"),
        "{lanes:?}"
    );
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_for_newcomers_who_join_two_sites_with_tokens() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up(NAME, &root().join("tests/e2e/nat.toml"));
    let grid = fresh.directory.join("grid").display().to_string();
    let began = Instant::now();
    let broker = format!("{NANCY}:7443");
    fresh.says(
        "nancy",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    fresh.start_broker("nancy", &grid);
    let wan = format!("{NANCY}:7001");
    for (site, subnet, more) in [
        ("nancy", "10.2.0.0/24", ["--wan", wan.as_str()].as_slice()),
        ("rennes", "10.1.0.0/24", &[]),
    ] {
        let token = fresh.says("nancy", &["grid", "token", "--site", site, "--dir", &grid]);
        let nodes = [1, 2].map(|number| format!("{site}-{number}:4"));
        let line = [
            "gateway",
            "--join",
            &token,
            "--subnet",
            subnet,
            "--node",
            &nodes[0],
            "--node",
            &nodes[1],
            "--accept-jobs",
            "rennes,nancy",
        ];
        fresh.leave(site, &[&line, more].concat(), site);
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.on("rennes", &["status"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains("tunnel to nancy")
    });
    let met = began.elapsed();
    let programs = mpi::debian_openmpi().programs;
    let ring = programs.join("ring").display().to_string();
    let said = fresh.says("rennes", &["run", "--", "mpirun.openmpi", "-n", "4", &ring]);
    assert!(said.contains("all right"), "{said}");
    println!(
        "    two sites have met {met:.1?} after 'grid create', their first job has ended after {:.1?}: {said}",
        began.elapsed()
    );
}
