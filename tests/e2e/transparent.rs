//! Two sites whose head nodes are the routers to each other and take connections by the rules that `causeway
//! gateway --print-nft` prints, without the shim: a statically linked program and an MPI, and beside them a
//! job under the shim.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::mpi::{self, Mpi};
use crate::namespaces;
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
    let key = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(key);
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
             [accept]\njobs = [\"all\"]\n[grid]\nkey_file = \"grid.key\"\n[[peer]]\nsite = \"{}\"\n{dials}\n",
            other(site)
        );
        fs::write(fresh.directory.join(format!("{site}.toml")), text).unwrap();
    }
}

fn config(fresh: &Fresh, site: &str) -> String {
    fresh.directory.join(format!("{site}.toml")).display().to_string()
}

/// Types on a node what the administrator of a site types.
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

/// The commands that the printed rules mark so.
fn commands(fresh: &Fresh, site: &str, mark: &str) -> String {
    let file = fresh.directory.join(format!("{site}.nft")).display().to_string();
    format!("sed -n 's/^#{mark} //p' {file} | sh -e")
}

/// The printed rules, applied as they say themselves.
fn apply_rules(fresh: &Fresh, site: &str) {
    let printed = fresh.says(
        site,
        &["gateway", "--config", &config(fresh, site), "--print-nft"],
    );
    let file = fresh.directory.join(format!("{site}.nft"));
    fs::write(&file, &printed).unwrap();
    let script = format!("nft -f {}\n{}", file.display(), commands(fresh, site, "+"));
    // Twice: applying is the same when it was done before.
    for _ in 0..2 {
        administers(fresh, &format!("{site}-head"), &script);
    }
    for number in [1, 2] {
        administers(fresh, &format!("{site}-{number}"), &commands(fresh, site, "n"));
    }
}

fn job(fresh: &Fresh, options: &[&str], launcher: &str, program: &[&str]) -> String {
    let launcher: Vec<&str> = launcher.split(' ').collect();
    fresh.says(
        "rennes",
        &[&["run"], options, &["--"], &launcher, program].concat(),
    )
}

/// Checks what both ranks of `truth` say, the first at rennes, the second on nancy-1.
fn sees_the_truth(said: &str, first: &str) {
    for (rank, peer) in [(0, "10.2.0.1"), (1, first)] {
        for how in ["calls", "is called by"] {
            let line = format!("truth: rank {rank} {how} {peer}: all right");
            assert!(said.contains(&line), "{line} is not in\n{said}");
        }
    }
}

#[test]
#[ignore = "needs namespaces as root, and Debian's MPIs; run by make test"]
fn debian_mpis_and_a_static_program_run_without_the_shim_where_routers_hand_connections_over() {
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
        fresh.leave(site, &line, site);
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.on("rennes", &["status"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains("tunnel to nancy")
    });
    for (site, ..) in SITES {
        apply_rules(&fresh, site);
    }
    let program = |mpi: &Mpi, name: &str| mpi.programs.join(name).display().to_string();
    let debian_openmpi = mpi::debian_openmpi();

    // A reset, and one line that says what is missing.
    let knock = "exec 3<>/dev/tcp/10.2.0.2/1025 && read -u 3 byte";
    let knocked = fresh.typed("rennes-1", &["bash", "-c", knock]).output().unwrap();
    let complained = String::from_utf8_lossy(&knocked.stderr).into_owned();
    assert!(
        !knocked.status.success() && complained.contains("reset"),
        "{complained}"
    );
    let log = || fs::read_to_string(fresh.directory.join("rennes.log")).unwrap();
    // A thread of its own writes the log.
    fresh.wait_for("the line", || {
        log().matches("causeway run --transparent").count() == 1
    });

    // The listener goes with the gateway, and so does the right to deliver in other hosts' names.
    for (site, ..) in SITES {
        fresh.says(site, &["gateway", "--config", &config(&fresh, site), "--drain"]);
        // Answered over the lane that comes after it.
        let ping = || {
            fresh
                .on("rennes", &["ping", "-c", "1", "nancy"])
                .output()
                .unwrap()
        };
        fresh.wait_for("the lane", || ping().status.success());
    }
    let two = ["--transparent", "--sites", "rennes=1,nancy=1"];
    let four = ["--transparent", "--sites", "rennes=2,nancy=2"];
    let (truth, ring) = (
        program(&debian_openmpi, "truth"),
        program(&debian_openmpi, "ring"),
    );
    let told = |place: &str| {
        let place = fresh.directory.join(place);
        fs::create_dir(&place).unwrap();
        place.display().to_string()
    };
    let said = job(&fresh, &two, "mpirun.openmpi -n 2", &[&truth, &told("nodes")]);
    sees_the_truth(&said, "10.1.0.1");
    // The gateway's own host takes part, where mpirun itself is called by nancy's daemon in each of these
    // jobs.
    administers(&fresh, "rennes-head", &commands(&fresh, "rennes", "h"));
    let hosts = "mpirun.openmpi -n 2 --host rennes-head:1,nancy-1:1";
    let said = job(&fresh, &["--transparent"], hosts, &[&truth, &told("head")]);
    sees_the_truth(&said, "10.1.0.253");

    let shell = ["sh", "-c", "echo preloads: $LD_PRELOAD."];
    let preloads = job(&fresh, &two, "mpirun.openmpi -n 2", &shell);
    assert_eq!(preloads.matches("preloads: .").count(), 2, "{preloads}");
    let mpich = program(&mpi::debian_mpich(), "ring");
    for (options, launcher, ring) in [
        (&four[..], "mpirun.openmpi -n 4", &ring),
        (&four, "mpirun.mpich -n 4", &mpich),
        // Under the shim, on the same gateways.
        (&["--sites", "rennes=2,nancy=2"], "mpirun.openmpi -n 4", &ring),
    ] {
        let said = job(&fresh, options, launcher, &[ring]);
        assert!(said.contains("all right"), "{launcher}: {said}");
    }

    let remove = format!("{}\nnft list ruleset\nip rule", commands(&fresh, "rennes", "-"));
    let left = administers(&fresh, "rennes-head", &remove);
    assert!(!left.contains("causeway") && !left.contains("7002"), "{left}");
}
