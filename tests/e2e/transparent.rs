//! Two sites whose head nodes are the routers to each other and take connections by the rules that `causeway gateway --print-nft` prints,
//! without the shim: a statically linked program and an MPI, and beside them a job under the shim.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::{mpi, namespaces};
use std::fs;
use std::io::Write;
use std::process::Output;

const NAME: &str = "transparent";

/// Site, its subnet, the other one's, where its gateway lets others in, and the line that has it dial.
const SITES: [(&str, &str, &str, &str); 2] = [
    (
        "rennes",
        "10.1.0",
        "198.51.100.1:7001",
        "address = \"198.51.100.5:7001\"",
    ),
    ("nancy", "10.2.0", "198.51.100.5:7001", ""),
];

fn other(site: &str) -> &'static str {
    if site == "rennes" { "nancy" } else { "rennes" }
}

fn write_configuration(fresh: &Fresh) {
    use std::os::unix::fs::OpenOptionsExt;
    let key = fresh.directory.join("grid.key");
    let key = fs::File::options().write(true).create(true).mode(0o600).open(key);
    key.unwrap()
        .write_all(b"nobody beyond this test needs it")
        .unwrap();
    for (site, net, wan, dials) in SITES {
        let nodes: String = (1..=2)
            .map(|number| {
                format!(
                    "[[site.nodes]]\nname = \"{site}-{number}\"\naddress = \"{net}.{number}\"\nslots = 4\n"
                )
            })
            .collect();
        let text = format!(
            "[site]\nname = \"{site}\"\nsubnets = [\"{net}.0/24\"]\n{nodes}\
             [listen]\nlan = [\"{net}.253:7000\"]\nwan = \"{wan}\"\ntransparent = \"127.0.0.1:7002\"\n\
             [grid]\nkey_file = \"grid.key\"\n[[peer]]\nsite = \"{}\"\n{dials}\n",
            other(site)
        );
        fs::write(fresh.directory.join(format!("{site}.toml")), text).unwrap();
    }
}

fn config(fresh: &Fresh, site: &str) -> String {
    fresh.directory.join(format!("{site}.toml")).display().to_string()
}

/// What the administrator of a site types, on a node.
fn administers(fresh: &Fresh, node: &str, script: &str) -> String {
    let output = fresh.typed(node, &["sh", "-ec", script]).output().unwrap();
    right(&output, script)
}

fn right(output: &Output, what: &str) -> String {
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        output.status.success(),
        "{what}: {}\n{said}\n{complained}",
        output.status
    );
    said
}

/// The printed rules, applied as they say themselves.
fn apply_rules(fresh: &Fresh, site: &str) {
    let printed = fresh.says(
        site,
        &["gateway", "--config", &config(fresh, site), "--print-nft"],
    );
    println!("{printed}");
    let file = fresh.directory.join(format!("{site}.nft"));
    fs::write(&file, &printed).unwrap();
    let commands = |mark: &str| format!("sed -n 's/^#{mark} //p' {}", file.display());
    let head = format!("{site}-head");
    // Twice: applying is the same when it was done before.
    for _ in 0..2 {
        administers(
            fresh,
            &head,
            &format!("nft -f {} && {} | sh -e", file.display(), commands("+")),
        );
    }
    for number in [1, 2] {
        administers(
            fresh,
            &format!("{site}-{number}"),
            &format!("{} | sh -e", commands("n")),
        );
    }
}

fn job(fresh: &Fresh, options: &[&str], ranks: &str, program: &[&str]) -> String {
    let line = [&["run"], options, &["--", "mpirun.openmpi", "-n", ranks], program].concat();
    fresh.says("rennes", &line)
}

#[test]
#[ignore = "needs namespaces as root, and Debian's Open MPI; run by make test"]
fn debian_open_mpi_and_a_static_program_run_without_the_shim_where_routers_hand_connections_over() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: nodes of a user's own lab have nobody who may change their rules and routes");
        return;
    }
    let mut fresh = Fresh::up(NAME, &root().join("scenarios/rennes-nancy.toml"));
    write_configuration(&fresh);
    for (site, ..) in SITES {
        let line = ["gateway", "--config", &config(&fresh, site)];
        fresh.leave(site, &line, &format!("{site}.log"));
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.on("rennes", &["status"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains("tunnel to nancy")
    });
    for (site, ..) in SITES {
        apply_rules(&fresh, site);
    }
    let programs = mpi::debian_openmpi().programs;
    let program = |name: &str| programs.join(name).display().to_string();

    // A reset, and one line that says what is missing.
    let knock = "exec 3<>/dev/tcp/10.2.0.2/1025 && read -u 3 byte";
    let knocked = fresh.typed("rennes-1", &["bash", "-c", knock]).output().unwrap();
    let complained = String::from_utf8_lossy(&knocked.stderr).into_owned();
    assert!(
        !knocked.status.success() && complained.contains("reset"),
        "{complained}"
    );
    let log = || fs::read_to_string(fresh.directory.join("rennes.log")).unwrap();
    assert_eq!(
        log().matches("causeway run --transparent").count(),
        1,
        "{}",
        log()
    );

    // The listener goes with the gateway, and so does the right to deliver in other hosts' names.
    for (site, ..) in SITES {
        fresh.says(site, &["gateway", "--config", &config(&fresh, site), "--drain"]);
    }
    let place = fresh.directory.display().to_string();
    let sites = ["--transparent", "--sites", "rennes=1,nancy=1"];
    let said = job(&fresh, &sites, "2", &[&program("truth"), &place]);
    for (rank, peer) in [(0, "10.2.0.1"), (1, "10.1.0.1")] {
        for how in ["calls", "is called by"] {
            let line = format!("truth: rank {rank} {how} {peer}: all right");
            assert!(said.contains(&line), "{line} is not in\n{said}");
        }
    }
    let preloads = job(&fresh, &sites, "2", &["sh", "-c", "echo preloads: $LD_PRELOAD."]);
    assert_eq!(preloads.matches("preloads: .").count(), 2, "{preloads}");
    let said = job(
        &fresh,
        &["--transparent", "--sites", "rennes=2,nancy=2"],
        "4",
        &[&program("ring")],
    );
    assert!(said.contains("all right"), "{said}");
    // Under the shim, on the same gateways.
    let said = job(&fresh, &["--sites", "rennes=2,nancy=2"], "4", &[&program("ring")]);
    assert!(said.contains("all right"), "{said}");

    let remove = format!("sed -n 's/^#- //p' {place}/rennes.nft | sh -e && nft list ruleset && ip rule");
    let left = administers(&fresh, "rennes-head", &remove);
    assert!(!left.contains("causeway") && !left.contains("7002"), "{left}");
}
