//! Whether this machine can hold a lab, asked before anything is started: tools, devices and settings. Each
//! answer names what is missing and the remedy.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::pbs;
use crate::scenario::{Batch, Scenario, Site};

/// Programs of the host that the lab runs.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) ip: PathBuf,
    pub(crate) tc: PathBuf,
    pub(crate) nft: PathBuf,
    pub(crate) sshd: PathBuf,
    pub(crate) ssh_keygen: PathBuf,
}

/// Who runs the lab: for root, only the namespaces are new; for an ordinary user, a user namespace is, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Owner {
    pub(crate) fn current() -> Owner {
        Owner {
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
        }
    }

    pub(crate) fn needs_user_namespace(&self) -> bool {
        self.uid != 0
    }
}

pub(crate) fn check(scenario: &Scenario, owner: Owner) -> Result<Tools, LabError> {
    let tools = Tools {
        ip: tool("ip", "iproute2")?,
        tc: tool("tc", "iproute2")?,
        nft: tool("nft", "nftables")?,
        sshd: tool("sshd", "openssh-server")?,
        ssh_keygen: tool("ssh-keygen", "openssh-client")?,
    };
    tool("ssh", "openssh-client")?;
    let slurm = |site: &&Site| site.batch == Batch::Slurm;
    if scenario
        .sites
        .iter()
        .filter(slurm)
        .any(|site| site.root.is_none())
    {
        for (name, package) in SLURM {
            tool(name, package)?;
        }
    }
    for site in &scenario.sites {
        if let Some(root) = &site.root {
            root_has_programs(site, Path::new(root))?;
        }
    }
    if scenario.sites.iter().any(|site| site.batch == Batch::Pbs) {
        openpbs(owner)?;
    }
    if scenario.sites.iter().any(|site| site.batch == Batch::Oar) {
        oar(owner)?;
    }
    tun_device()?;
    if owner.needs_user_namespace() {
        user_namespaces()?;
    }
    if let Some(algorithm) = &scenario.congestion_control {
        congestion_control(algorithm, owner)?;
    }
    Ok(tools)
}

/// Whether a root contains what the lab runs there.
///
/// # Errors
/// The root lacks something.
fn root_has_programs(site: &Site, root: &Path) -> Result<(), LabError> {
    let has = |program: &str| {
        let mut places = ["usr/sbin", "usr/bin", "sbin", "bin"].iter();
        places.any(|place| root.join(place).join(program).symlink_metadata().is_ok())
    };
    let slurm = SLURM.iter().filter(|_| site.batch == Batch::Slurm);
    let needed = [
        ("sh", "dash"),
        ("sshd", "openssh-server"),
        ("ssh", "openssh-client"),
    ];
    match needed.iter().chain(slurm).find(|(program, _)| !has(program)) {
        None => Ok(()),
        Some((program, package)) => Err(LabError::Machine {
            what: format!("site {}: {} has no program {program}", site.name, root.display()),
            remedy: format!("install {package} there"),
        }),
    }
}

/// Refuses unless root runs the lab: OpenPBS's daemons need several users.
fn openpbs(owner: Owner) -> Result<(), LabError> {
    if owner.needs_user_namespace() {
        return Err(LabError::Machine {
            what: "a site of OpenPBS needs root: its database runs as another user".to_owned(),
            remedy: "start the grid as root".to_owned(),
        });
    }
    match Path::new(pbs::PROGRAMS).join("sbin/pbs_server").is_file() {
        true => Ok(()),
        false => Err(LabError::Machine {
            what: format!("OpenPBS is not in {}", pbs::PROGRAMS),
            remedy: "build it with tools/setup/openpbs.sh".to_owned(),
        }),
    }
}

/// Refuses unless root runs the lab: OAR's user is not root, and its database's is another one.
fn oar(owner: Owner) -> Result<(), LabError> {
    if owner.needs_user_namespace() {
        return Err(LabError::Machine {
            what: "a site of OAR needs root: its daemons run as other users".to_owned(),
            remedy: "start the grid as root".to_owned(),
        });
    }
    match OAR.into_iter().find(|file| !Path::new(file).is_file()) {
        None => Ok(()),
        Some(file) => Err(LabError::Machine {
            what: format!("there is no {file}"),
            remedy: "install OAR and PostgreSQL with tools/setup/install.sh oar".to_owned(),
        }),
    }
}

fn tool(name: &str, package: &str) -> Result<PathBuf, LabError> {
    // An ordinary user's PATH often lacks the sbin directories, where ip, nft and sshd live.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    let found = std::env::split_paths(&path)
        .chain(more)
        .map(|directory| directory.join(name));
    found
        .into_iter()
        .find(|path| path.is_absolute() && path.is_file())
        .ok_or_else(|| LabError::Machine {
            what: format!("the program {name} is not installed"),
            remedy: format!("install the package {package} (Debian: apt-get install {package})"),
        })
}

fn tun_device() -> Result<(), LabError> {
    let remedy = match OpenOptions::new().read(true).write(true).open(TUN) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            format!("allow it as distributions do: chmod 0666 {TUN} (as root)")
        }
        Err(_) => format!("as root: modprobe tun; mkdir -p /dev/net; mknod -m 0666 {TUN} c 10 200"),
    };
    Err(LabError::Machine {
        what: format!("{TUN} cannot be opened"),
        remedy,
    })
}

fn user_namespaces() -> Result<(), LabError> {
    // Each of these does not exist if the distribution or kernel has no such switch.
    let switches = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "10000"),
        ("user.max_net_namespaces", "0", "10000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    for (name, forbidding, allowing) in switches {
        if setting(name).is_some_and(|value| value == forbidding) {
            return Err(LabError::Machine {
                what: format!("{name} = {forbidding} forbids ordinary users to make namespaces"),
                remedy: format!("run as root, or as root once: sysctl -w {name}={allowing}"),
            });
        }
    }
    Ok(())
}

/// A new network namespace may choose only an algorithm that the first one lists as allowed, no matter who
/// asks. Root adds it to that list (which only widens what programs may ask for); an ordinary user is told
/// how to do so.
fn congestion_control(algorithm: &str, owner: Owner) -> Result<(), LabError> {
    let listed = |name: &str| {
        setting(name)
            .unwrap_or_default()
            .split_whitespace()
            .any(|word| word == algorithm)
    };
    // New namespaces start with the first one's default, whether it is allowed or not.
    if listed(ALLOWED) || setting(DEFAULT).as_deref() == Some(algorithm) {
        return Ok(());
    }
    let list = format!("{} {algorithm}", setting(ALLOWED).unwrap_or_default());
    if owner.uid == 0 && fs::write(path_of(ALLOWED), &list).is_ok() {
        return Ok(());
    }
    let remedy = if owner.uid == 0 {
        format!("load it with modprobe tcp_{algorithm}, or choose one of {ALLOWED}")
    } else {
        format!("as root: sysctl -w {ALLOWED}=\"{list}\"")
    };
    Err(LabError::Machine {
        what: format!("congestion control {algorithm} is not in {ALLOWED}"),
        remedy,
    })
}

fn setting(name: &str) -> Option<String> {
    fs::read_to_string(path_of(name))
        .ok()
        .map(|value| value.trim().to_owned())
}

fn path_of(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// The programs that a site of Slurm runs.
const SLURM: [(&str, &str); 4] = [
    ("munged", "munge"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("srun", "slurm-client"),
];

/// The programs that a site of OAR has, each with its package.
const OAR: [&str; 4] = [
    "/usr/sbin/Almighty",
    "/etc/oar/job_resource_manager.pl",
    "/usr/bin/oarsub",
    "/usr/bin/psql",
];

const TUN: &str = "/dev/net/tun";
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
