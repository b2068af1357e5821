//! What another user of a head node does to jobs and gateways, all at once, while jobs run.

use crate::fresh::Fresh;
use crate::programs::{Expected, Item};
use crate::{grid, namespaces};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// Runs both of Debian's MPIs beside a hostile neighbour, which must have held something of each kind.
#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_go_on_beside_a_hostile_neighbour() {
    let script = grid::root().join("tests/e2e/hostile.sh");
    let item = |mpi: &str| Item {
        name: format!("beside-{mpi}"),
        command: format!("{} {mpi}", script.display()),
        seconds: 120,
        expected: Expected::Says(vec!["all right".to_owned()]),
    };
    grid::run("rennes-nancy", "hostile", vec![item("openmpi"), item("mpich")]);
}

/// Site, its subnet, where its gateway lets others in, and whom it dials.
const SITES: [(&str, &str, &str, &[&str]); 2] = [
    ("orsay", "10.1.0", "198.51.100.1:7001", &[]),
    ("rennes", "10.2.0", "198.51.100.5:7001", &["orsay"]),
];

/// A grid in clear text, whose third member is hostile.
fn write_configuration(fresh: &Fresh) {
    let key = fresh.directory.join("grid.key");
    let made = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&key);
    made.unwrap()
        .write_all(b"nobody beyond this test needs it")
        .unwrap();
    for (site, net, wan, dials) in SITES {
        let nodes: String = [1, 2]
            .map(|number| {
                format!(
                    "[[site.nodes]]\nname = \"{site}-{number}\"\naddress = \"{net}.{number}\"\nslots = 4\n"
                )
            })
            .concat();
        let peers: String = ["orsay", "rennes", "bordeaux"]
            .into_iter()
            .filter(|other| *other != site)
            .map(|other| {
                let address = match dials.contains(&other) {
                    true => "address = \"198.51.100.1:7001\"\n",
                    false => "",
                };
                format!("[[peer]]\nsite = \"{other}\"\n{address}")
            })
            .collect();
        let text = format!(
            "[site]\nname = \"{site}\"\nsubnets = [\"{net}.0/24\"]\n{nodes}\
             [listen]\nlan = [\"{net}.253:7000\"]\nwan = \"{wan}\"\n\
             [accept]\njobs = [\"orsay\", \"rennes\"]\nover_clear_text = true\n\
             [grid]\nkey_file = \"grid.key\"\ninsecure = true\nrelay = true\n{peers}"
        );
        fs::write(fresh.directory.join(format!("{site}.toml")), text).unwrap();
    }
}

/// Starts an attacker. Where they really are, their cores are not ours: it has the lowest priority, and no
/// more of a core than the group of processes has that HOSTILE_CGROUP names.
const AS_ELSEWHERE: &str =
    r#"[ -z "${HOSTILE_CGROUP-}" ] || echo $$ >"$HOSTILE_CGROUP/cgroup.procs"; exec nice -n 19 "$@""#;

/// The disk of one site's audit stands still, a member says all that it can to both gateways, and another
/// user of the head node holds connections to all that listens, while jobs of both MPIs run.
#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_go_on_beside_a_hostile_member_neighbour_and_disk_all_at_once() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up(
        "hostile-all",
        &grid::root().join("scenarios/orsay-rennes-bordeaux.toml"),
    );
    write_configuration(&fresh);
    // Nobody reads: what is written there waits for ever.
    for file in ["audit-orsay.jsonl", "audit-orsay.jsonl.refused"] {
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
        nix::unistd::mkfifo(&fresh.directory.join(file), mode).unwrap();
    }
    for (site, ..) in SITES {
        let file = fresh.directory.join(format!("{site}.toml")).display().to_string();
        fresh.leave(site, &["gateway", "--config", &file], site);
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.status("orsay").map_or_else(Vec::new, |status| status.sites);
        status
            .iter()
            .any(|site| site.name == "rennes" && site.unreachable.is_none())
    });
    let member = grid::root()
        .join("tests/programs/hostile_member.py")
        .display()
        .to_string();
    let (key, attack) = (fresh.directory.join("grid.key"), fresh.directory.join("attack"));
    let gateways = SITES.map(|(site, net, wan, _)| format!("{site}={wan}={net}"));
    let pause = std::env::var("HOSTILE_PAUSE").unwrap_or_else(|_| "0.02".to_owned());
    let words = [
        "sh",
        "-c",
        AS_ELSEWHERE,
        "sh",
        &member,
        &key.display().to_string(),
        "bordeaux",
        "10.3.0",
        &attack.display().to_string(),
        &pause,
        &gateways[0],
        &gateways[1],
    ];
    fresh.leave_any("bordeaux", &words, "member");
    let script = grid::root()
        .join("tests/e2e/hostile-all.sh")
        .display()
        .to_string();
    let setting = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let (phases, seconds) = (setting("HOSTILE_PHASES", "2"), setting("HOSTILE_SECONDS", "2"));
    for mpi in ["openmpi", "mpich"] {
        let directory = fresh.directory.display().to_string();
        let said = fresh.says_any("orsay", &[&script, mpi, &directory, &phases, &seconds]);
        assert!(said.contains("all right"), "{said}");
    }
    // All of it was done, and both gateways have refused and counted it, the one with a disk in few lines.
    let counts = fs::read_to_string(fresh.directory.join("attack.count")).unwrap();
    let counts: BTreeMap<String, u64> = serde_json::from_str(&counts).unwrap();
    assert_eq!(counts.len(), 10, "{counts:?}");
    for (site, ..) in SITES {
        let refused = fresh.status(site).unwrap().refused;
        for kind in ["unknown-token", "not-accepted", "relay-come", "handshake"] {
            assert!(
                refused.get(kind).is_some_and(|count| *count > 0),
                "{site}: {kind}: {refused:?}"
            );
        }
    }
    let lines = fs::read_to_string(fresh.directory.join("audit-rennes.jsonl.refused")).unwrap();
    let of_member = lines
        .lines()
        .filter(|line| line.contains("\"site\":\"bordeaux\""))
        .count();
    assert!((1..1000).contains(&of_member), "{lines}");
    println!("{counts:?}");
}
