//! A site whose remote shell gives each site's jobs an account of their own, with the commands of
//! docs/security-officer.md. The accounts are those of the emulated nodes alone.

use crate::fresh::{Fresh, right};
use crate::grid::{causeway, is_root_in_labs, root};
use crate::mpi;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const ACCOUNTS: &str = "root:x:0:0::/root:/bin/sh\n\
    sshd:x:61000:61000::/nonexistent:/usr/sbin/nologin\n\
    jobs-rennes:*:61001:61001::/tmp:/bin/sh\n\
    jobs-nancy:*:61002:61002::/tmp:/bin/sh\n";

/// Where every account finds causeway, its libraries and the program.
struct Installed(tempfile::TempDir);

impl Installed {
    fn new(program: &Path) -> Installed {
        let directory = tempfile::Builder::new()
            .prefix("causeway-e2e-")
            .tempdir_in("/tmp")
            .unwrap();
        let all = fs::read_dir(causeway().parent().unwrap()).unwrap();
        let libraries = all.map(|entry| entry.unwrap().path());
        let libraries = libraries.filter(|path| path.extension().is_some_and(|end| end == "so"));
        for file in libraries.chain([causeway(), program.to_owned()]) {
            fs::copy(&file, directory.path().join(file.file_name().unwrap())).unwrap();
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Installed(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

fn write_configuration(fresh: &Fresh) -> [PathBuf; 2] {
    let key = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(fresh.directory.join("grid.key"));
    key.unwrap()
        .write_all(b"nobody beyond this test needs it")
        .unwrap();
    let sites = [
        (
            "rennes",
            "10.1.0",
            "198.51.100.1",
            "remote_shell = [\"ssh\", \"-l\", \"jobs-{site}\", \"-o\", \"BatchMode=yes\", \"{node}\"]",
            "jobs = [\"nancy\"]",
            "site = \"nancy\"",
        ),
        (
            "nancy",
            "10.2.0",
            "198.51.100.5",
            "",
            "partners = [\"rennes\"]",
            "site = \"rennes\"\naddress = \"198.51.100.1:7001\"",
        ),
    ];
    sites.map(|(site, net, wan, shell, accept, peer)| {
        let file = fresh.directory.join(format!("{site}.toml"));
        let text = format!(
            "[site]\nname = \"{site}\"\nsubnets = [\"{net}.0/24\"]\n{shell}\n\
             [[site.nodes]]\nname = \"{site}-1\"\naddress = \"{net}.1\"\nslots = 2\n\
             [listen]\nlan = [\"{net}.253:7000\"]\nwan = \"{wan}:7001\"\n\
             [accept]\n{accept}\n[grid]\nkey_file = \"grid.key\"\n[[peer]]\n{peer}\n"
        );
        fs::write(&file, text).unwrap();
        file
    })
}

#[test]
#[ignore = "needs namespaces as root, and Debian's MPIs; run by make test"]
fn debian_mpis_run_as_the_account_of_the_site_where_the_job_began_and_cannot_read_each_others() {
    if !is_root_in_labs("an ordinary user's own lab has one account") {
        return;
    }
    let openmpi = mpi::debian_openmpi();
    let installed = Installed::new(&openmpi.programs.join("ring"));
    let (program, ring) = (installed.path("causeway"), installed.path("ring"));
    let mut fresh = Fresh::up("accounts", &root().join("scenarios/rennes-nancy.toml"));
    let files = write_configuration(&fresh);
    let accounts = fresh.directory.join("passwd");
    fs::write(&accounts, ACCOUNTS).unwrap();
    let mount = format!("mount --bind {} /etc/passwd", accounts.display());
    fresh.shell("rennes-1", &mount);
    for (site, file) in ["rennes", "nancy"].into_iter().zip(&files) {
        let line = [&program, "gateway", "--config", &file.display().to_string()];
        fresh.leave_any(site, &line, site);
    }
    fresh.wait_for("the tunnel", || {
        let sites = fresh.status("nancy").map_or_else(Vec::new, |status| status.sites);
        sites
            .iter()
            .any(|site| site.name == "rennes" && site.unreachable.is_none())
    });

    let check = [&program, "check", "--config", &files[0].display().to_string()];
    let check = fresh.typed(
        "rennes-head",
        &[&["env", "XDG_RUNTIME_DIR=/run"], &check[..]].concat(),
    );
    let checked = { check }.output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    for line in [
        "[ok]   keys: jobs cannot read them, as checked on",
        "[ok]   accounts: jobs of each site run as a user of their own",
    ] {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }

    let run = |fresh: &Fresh, site: &str, sites: &str, words: &[&str]| {
        let launcher = ["--", "mpirun.openmpi", "-n"];
        fresh.says_any(
            site,
            &[&[&program, "run", "--sites", sites], &launcher[..], words].concat(),
        )
    };
    let said = run(&fresh, "nancy", "nancy=1,rennes=1", &["2", &ring]);
    assert!(said.contains("all right"), "{said}");
    let who = ["1", "sh", "-c", "id -un"];
    assert_eq!(run(&fresh, "nancy", "rennes=1", &who), "jobs-nancy");
    assert_eq!(run(&fresh, "rennes", "rennes=1", &who), "jobs-rennes");

    // What a job of nancy's sees of one of rennes' that runs on the same node.
    let ready = fresh.directory.join("ready");
    let long = format!("echo $$ > {}; exec sleep 600", ready.display());
    fs::set_permissions(&fresh.directory, fs::Permissions::from_mode(0o777)).unwrap();
    let words = [
        &program,
        "run",
        "--sites",
        "rennes=1",
        "--",
        "mpirun.openmpi",
        "-n",
        "1",
        "sh",
        "-c",
        &long,
    ];
    fresh.leave_any("rennes", &words, "long");
    fresh.wait_for("a job of rennes", || {
        fs::read_to_string(&ready).is_ok_and(|text| text.ends_with('\n'))
    });
    let process = fs::read_to_string(&ready).unwrap();
    let read = format!(
        "tr '\\0' '\\n' </proc/{}/environ | grep -c CAUSEWAY_TOKEN; id -un",
        process.trim()
    );
    let said = run(
        &fresh,
        "nancy",
        "rennes=1",
        &["1", "sh", "-c", &format!("{read}; true")],
    );
    assert_eq!(said, "0\njobs-nancy", "{said}");
    let own = fresh.typed("rennes-1", &["sh", "-c", &read]).output().unwrap();
    right(&own);
    assert_eq!(String::from_utf8_lossy(&own.stdout), "1\nroot\n");
}
