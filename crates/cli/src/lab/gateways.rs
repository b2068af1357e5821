//! A gateway on each head node of a lab, joined with the others as far as the sites' firewalls allow.

use super::{Failure, failed};
use causeway_control::{self as control, Reply, Request};
use causeway_host::say;
use causeway_lab::{
    Batch, Firewall, Lab, LabError, Node, NodeChild, NodeCommand, PBS_CONF, Role, Session, SiteView, Stdio,
};
use causeway_mpis::names;
use causeway_wire::Cidr;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The path of every head node's control socket; each node has its own /run.
const CONTROL: &str = "/run/causeway/gateway.sock";
/// The lab's state directory as nodes see it.
const STATE_IN_NODE: &str = "/run/causeway-lab";
/// 100.64.0.0: the first virtual address, which no network in a lab has.
const VIRTUAL_BASE: u32 = 0x6440_0000;
const LAN_PORT: u16 = 7000;
const WAN_PORT: u16 = 7001;
/// Tunnels need two round trips; the rest of this time is for a machine that is doing ten other things.
const TUNNELS_DEADLINE: Duration = Duration::from_secs(20);
/// How long to wait while lanes are trained; both ends together take a second or two for it.
const TRAINED: Duration = Duration::from_secs(5);

/// The gateways of a running lab. They end with it.
pub struct Gateways {
    running: Vec<Running>,
}

struct Running {
    site: String,
    /// The gateway's process; `None` once it has ended.
    child: Option<NodeChild>,
    log: PathBuf,
}

impl Running {
    /// Says, once, how the gateway ended and what the end of its log says.
    fn has_ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = said.lines().collect();
        let last = &last[last.len().saturating_sub(5)..];
        Some(format!(
            "gateway of {} ended ({status}): {}",
            self.site,
            last.join("; ")
        ))
    }
}

impl Gateways {
    /// Starts the gateways, and waits until every tunnel is up.
    pub fn start(lab: &Lab, logs: Option<&Path>, grid: &[String]) -> Result<Gateways, Failure> {
        let dir = lab.dir().join("gateway");
        let fail = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| Failure::new(format!("{what}: {error}"))
        };
        std::fs::create_dir_all(&dir).map_err(fail("make the gateways' directory"))?;
        let key = random_key()?;
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(dir.join("grid.key"));
        file.and_then(|mut file| file.write_all(key.as_bytes()))
            .map_err(fail("write the grid's key"))?;
        let logs = logs.unwrap_or(&dir);
        std::fs::create_dir_all(logs).map_err(fail("make the directory for logs"))?;
        let mut running = Vec::new();
        for (index, site) in lab.sites().iter().enumerate() {
            let text = configuration(lab, index, grid)?;
            std::fs::write(dir.join(format!("{}.toml", site.name)), text)
                .map_err(fail("write a configuration"))?;
            let log = logs.join(format!("{}.log", site.name));
            let output = File::create(&log).map_err(fail("make a log file"))?;
            let errors = output.try_clone().map_err(fail("make a log file"))?;
            let child = lab.spawn(NodeCommand {
                node: site.head.clone(),
                argv: gateway_command(&site.name)?,
                env: environment(),
                stdin: Stdio::Null,
                stdout: Stdio::Fd(output.into()),
                stderr: Stdio::Fd(errors.into()),
                session: Session::Own,
                // A head node is a separate host (docs/decisions/0004).
                before_ranks: true,
                ..NodeCommand::default()
            });
            let child = child.map_err(failed)?;
            running.push(Running {
                site: site.name.clone(),
                child: Some(child),
                log,
            });
        }
        let mut gateways = Gateways { running };
        gateways.wait_for_tunnels(lab)?;
        Ok(gateways)
    }

    /// Tells which gateways have ended since the last call. The grid goes on without them: somebody may have
    /// killed them to see what happens.
    pub fn tell_ended(&mut self) {
        for running in &mut self.running {
            if let Some(how) = running.has_ended() {
                say::error(format_args!("causeway lab: {how}; the grid continues without it"));
            }
        }
    }

    fn wait_for_tunnels(&mut self, lab: &Lab) -> Result<(), Failure> {
        let started = Instant::now();
        loop {
            if let Some(how) = self.running.iter_mut().find_map(Running::has_ended) {
                return Err(Failure::new(how));
            }
            let (missing, trains) = missing(lab);
            let waited = started.elapsed();
            if missing.is_empty() && (!trains || waited > TRAINED) {
                return Ok(());
            }
            if let Some(signal) = lab.poll_signal() {
                return Err(failed(LabError::Signal(signal.number)));
            }
            if waited > TUNNELS_DEADLINE {
                let text = format!(
                    "tunnels not up within {TUNNELS_DEADLINE:?}: {}",
                    missing.join("; ")
                );
                return Err(Failure::new(text));
            }
            // Nothing reports when a tunnel in another process comes up; asking is cheap.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Gateways {
    /// Ends the gateways and waits for them before their nodes end: a node does not end while it has a
    /// process that its parent, this one, has not waited for.
    fn drop(&mut self) {
        let running = self.running.iter_mut();
        for child in running.filter_map(|running| running.child.as_mut()) {
            let _ = child.signal(nix::libc::SIGKILL);
            let _ = child.wait();
        }
    }
}

/// Returns the variables by which a command in a node finds causeway and its gateway, and those that MPIs
/// demand if they run as root.
pub fn environment() -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = vec![("CAUSEWAY_CONTROL".into(), CONTROL.into())];
    if let Some(dir) = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()))
    {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(dir).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(path) {
            env.push(("PATH".into(), path));
        }
    }
    if nix::unistd::geteuid().is_root() {
        // Root inside the lab is no more dangerous than root outside it.
        for name in names::AS_ROOT {
            env.push((name.into(), "1".into()));
            env.push((format!("{name}_CONFIRM").into(), "1".into()));
        }
    }
    // The nodes share this machine's few cores.
    env.extend(names::SHARED_CORES.map(|(name, value)| (name.into(), value.into())));
    env
}

fn gateway_command(site: &str) -> Result<Vec<OsString>, Failure> {
    let exe = std::env::current_exe().map_err(|error| Failure::new(format!("find this program: {error}")))?;
    let config = format!("{STATE_IN_NODE}/gateway/{site}.toml");
    Ok(vec![
        exe.into(),
        "gateway".into(),
        "--config".into(),
        config.into(),
    ])
}

/// Pairs of sites without a tunnel, and why; and whether any lane is being trained: a program that started
/// now would distort what the training finds.
fn missing(lab: &Lab) -> (Vec<String>, bool) {
    let (mut missing, mut trains) = (Vec::new(), false);
    for node in lab.nodes().iter().filter(|node| node.role == Role::Head) {
        // The head node has its own /run, which can be reached only through its init.
        let socket = PathBuf::from(format!("/proc/{}/root{CONTROL}", node.pid));
        match control::ask(&socket, &Request::Status {}) {
            Ok((Reply::Status(status), _)) => {
                let mut lanes = status.tunnels.iter().flat_map(|tunnel| &tunnel.lanes);
                trains |= lanes.any(|lane| lane.trains);
                let sites = status
                    .sites
                    .iter()
                    .filter_map(|site| Some((&site.name, site.unreachable.as_ref()?)));
                missing.extend(sites.map(|(name, why)| format!("{} - {name}: {why}", node.site)));
            }
            Ok(_) => missing.push(format!("{}: unexpected answer", node.site)),
            Err(error) => missing.push(format!("{}: {error}", node.site)),
        }
    }
    (missing, trains)
}

fn configuration(lab: &Lab, index: usize, grid: &[String]) -> Result<String, Failure> {
    let site = &lab.sites()[index];
    let head = head_of(lab, site)?;
    let subnet = site.subnet.to_string();
    // Nodes have sshd at port 22, for `causeway connect`.
    let mut text = format!(
        "[accept]\njobs = [\"all\"]\nconnect_from = [\"all:22\", \"all:1024-65535\"]\n\
         [site]\nname = \"{}\"\nsubnets = [\"{subnet}\"]\n",
        site.name
    );
    // A user who asks for clear text in a lab wants to measure it.
    if grid.iter().any(|line| line.starts_with("insecure")) {
        text = text.replacen("[site]", "over_clear_text = true\n[site]", 1);
    }
    if let Some(range) = virtual_range(lab, index) {
        let _ = writeln!(text, "virtual_subnets = [\"{range}\"]");
    }
    text += &nodes_of(lab, site)?;
    let _ = write!(
        text,
        "[listen]\nlan = [\"{}:{LAN_PORT}\"]\ncontrol = \"{CONTROL}\"\n",
        head.lan
    );
    if let (Some(address), Some(port)) = (head.uplink, wan_port(&site.firewall)) {
        let _ = writeln!(text, "wan = \"{address}:{port}\"");
    }
    text += "[grid]\nkey_file = \"grid.key\"\n";
    if reachable(lab, site)?.is_some() && closed_sites(lab)? > 1 {
        text += "relay = true\n";
    }
    for line in grid {
        let _ = writeln!(text, "{line}");
    }
    for (other_index, other) in lab
        .sites()
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
    {
        let _ = write!(text, "[[peer]]\nsite = \"{}\"\n", other.name);
        let theirs = reachable(lab, other)?;
        let ours = reachable(lab, site)?;
        // One side dials: the earlier one, unless only the other direction is open.
        if let Some((address, port)) = theirs.filter(|_| index < other_index || ours.is_none()) {
            let _ = writeln!(text, "address = \"{address}:{port}\"");
        }
    }
    Ok(text)
}

/// The compute nodes of a site. Those of a batch system are listed if another site has none: jobs over both
/// run on nodes that the site starts by itself, where addresses identify them.
fn nodes_of(lab: &Lab, site: &SiteView) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(section) = section_of(site.batch) {
        let _ = write!(text, "[batch]\n{section}\nfrom = [\"all\"]\n");
        if lab.sites().iter().all(|site| site.batch != Batch::None) {
            return Ok(text);
        }
    }
    for name in &site.compute {
        let node = lab.nodes().iter().find(|node| node.name == *name);
        let address = node
            .map(|node| node.lan)
            .ok_or_else(|| Failure::new(format!("no node {name}")))?;
        let _ = write!(
            text,
            "[[site.nodes]]\nname = \"{name}\"\naddress = \"{address}\"\nslots = {}\n",
            site.slots
        );
    }
    Ok(text)
}

/// The `[batch]` section for a site's batch system.
fn section_of(batch: Batch) -> Option<String> {
    match batch {
        Batch::None => None,
        Batch::Slurm => Some("system = \"slurm\"".to_owned()),
        Batch::Pbs => Some(format!("system = \"pbs\"\nconf = \"{PBS_CONF}\"")),
        Batch::Oar => Some("system = \"oar\"".to_owned()),
    }
}

/// Returns the virtual subnet of a site whose addresses another site has, too.
fn virtual_range(lab: &Lab, index: usize) -> Option<Cidr> {
    let subnet = |site: &SiteView| site.subnet.to_string().parse::<Cidr>().ok();
    let own = subnet(&lab.sites()[index])?;
    let mut others = lab
        .sites()
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index);
    if !others.any(|(_, other)| subnet(other).is_some_and(|other| other.overlaps(&own))) {
        return None;
    }
    // A scenario has few sites, and the pool has room for all of them here.
    let offset = u32::try_from(index)
        .ok()?
        .checked_shl(32 - u32::from(own.prefix()))?;
    Cidr::new(IpAddr::V4((VIRTUAL_BASE + offset).into()), own.prefix())
}

fn head_of<'a>(lab: &'a Lab, site: &SiteView) -> Result<&'a Node, Failure> {
    let head = lab.nodes().iter().find(|node| node.name == site.head);
    head.ok_or_else(|| Failure::new(format!("site {} has no head node", site.name)))
}

/// Returns the address and port at which other sites can dial this site's gateway.
fn reachable(lab: &Lab, site: &SiteView) -> Result<Option<(IpAddr, u16)>, Failure> {
    let head = head_of(lab, site)?;
    Ok(head.wan.zip(wan_port(&site.firewall)))
}

/// Sites whose gateways nobody can dial: two of these meet at a third one's gateway.
fn closed_sites(lab: &Lab) -> Result<usize, Failure> {
    let reached: Result<Vec<_>, Failure> = lab.sites().iter().map(|site| reachable(lab, site)).collect();
    Ok(reached?.iter().filter(|address| address.is_none()).count())
}

/// The port the site's firewall lets in, if any.
fn wan_port(firewall: &Firewall) -> Option<u16> {
    match firewall {
        Firewall::Ports(ranges) if !firewall.lets_in(WAN_PORT) => ranges.first().map(|(low, _)| *low),
        _ => firewall.lets_in(WAN_PORT).then_some(WAN_PORT),
    }
}

fn random_key() -> Result<String, Failure> {
    let mut bytes = [0u8; 32];
    let mut source =
        File::open("/dev/urandom").map_err(|error| Failure::new(format!("/dev/urandom: {error}")))?;
    source
        .read_exact(&mut bytes)
        .map_err(|error| Failure::new(format!("/dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
