//! The one process that makes and holds the lab's namespaces: forked by the supervisor, single-threaded,
//! owner of the user namespace if one is needed, parent of every node's init. It reports once and then only
//! waits to be the last one out. No namespace has a name or a mount outside, so when these processes are
//! gone, so is everything.
//!
//! ```text
//! supervisor --fork--> keeper --clone--> init of rennes-head, init of rennes-1, ...
//!      '--- life pipe: closed when the supervisor ends, read by all of them ---'
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal};
use serde::{Deserialize, Serialize};

use crate::fabric::{self, Host};
use crate::init::{Init, map_ids};
use crate::plan::{Node, Plan, Role, SitePlan};
use crate::preflight::{Owner, Tools};
use crate::scenario::Batch;
use crate::system::{self, System};
use crate::{commands, sys, wan};

pub(crate) struct Keeper<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) state: &'a Path,
    pub(crate) tools: &'a Tools,
    pub(crate) owner: Owner,
    pub(crate) shown: &'a [PathBuf],
    pub(crate) supervisor: i32,
    pub(crate) life: OwnedFd,
    pub(crate) report: OwnedFd,
}

/// What the supervisor is told; the devices' descriptors come with it, in the same order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Ready {
        pids: Vec<i32>,
        devices: Vec<Device>,
        routers: Vec<i32>,
    },
    Failed {
        step: String,
        reason: String,
    },
}

/// A device whose other end belongs to an emulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Device {
    /// The router's end of the WAN.
    Wan { site: String },
    /// One port of a LAN that is emulated, too.
    Lan { site: String, port: String },
}

/// The step that failed, and why.
type Failure = (String, String);

struct SiteNamespaces {
    router: File,
    nodes: Vec<File>,
}

struct Standing {
    pids: Vec<i32>,
    devices: Vec<(Device, OwnedFd)>,
    namespaces: Vec<SiteNamespaces>,
}

impl Keeper<'_> {
    pub(crate) fn run(self) -> i32 {
        sys::close_all_but(&[self.life.as_raw_fd(), self.report.as_raw_fd()]);
        let (report, fds, standing) = match self.stand_up() {
            Ok(standing) => {
                let (devices, fds): (Vec<Device>, Vec<OwnedFd>) = standing.devices.into_iter().unzip();
                let routers = standing
                    .namespaces
                    .iter()
                    .map(|site| site.router.as_raw_fd())
                    .collect();
                (
                    Report::Ready {
                        pids: standing.pids,
                        devices,
                        routers,
                    },
                    fds,
                    Some(standing.namespaces),
                )
            }
            Err((step, reason)) => (Report::Failed { step, reason }, Vec::new(), None),
        };
        let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let bytes = serde_json::to_vec(&report).unwrap_or_default();
        let sent = sys::send(self.report.as_fd(), &bytes, &raw);
        // The supervisor holds the devices now; with a copy here they would outlive it.
        drop(fds);
        match (sent, standing) {
            (Ok(()), Some(namespaces)) => wait_for_the_end(&self.life, namespaces),
            _ => 1,
        }
    }

    fn stand_up(&self) -> Result<Standing, Failure> {
        self.set_up_process()
            .map_err(|error| ("start keeper".to_owned(), error.to_string()))?;
        if self.owner.needs_user_namespace() {
            let failed = |error: &dyn ToString| ("make user namespace".to_owned(), error.to_string());
            unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| failed(&error))?;
            map_ids(0, self.owner.uid, 0, self.owner.gid).map_err(|error| failed(&error))?;
        }
        // After the user namespace: a change of credentials clears it.
        prctl::set_pdeathsig(Signal::SIGKILL)
            .map_err(|error| ("start keeper".to_owned(), error.to_string()))?;
        if nix::unistd::getppid().as_raw() != self.supervisor {
            return Err((
                "start keeper".to_owned(),
                "the supervisor ended meanwhile".to_owned(),
            ));
        }
        let mut standing = Standing {
            pids: Vec::new(),
            devices: Vec::new(),
            namespaces: Vec::new(),
        };
        fabric::mount_memory(self.state, self.plan)
            .map_err(|error| ("mount the memory that nodes share".to_owned(), remedied(&error)))?;
        for site in &self.plan.sites {
            let namespaces = self.site_namespaces(site)?;
            self.router(site, &namespaces, &mut standing.devices)?;
            standing.namespaces.push(namespaces);
        }
        let mut waiting = Vec::new();
        for (site, namespaces) in self.plan.sites.iter().zip(&standing.namespaces) {
            let failed = |error: io::Error| {
                let step = format!("make one host of the nodes of site {}", site.site.name);
                (step, remedied(&error))
            };
            let mut host = Host::begin(site).map_err(failed)?;
            for (node, netns) in site.nodes.iter().zip(&namespaces.nodes) {
                let (pid, ready) = self.node(site, node, netns, host.own())?;
                host.has(pid).map_err(failed)?;
                standing.pids.push(pid);
                waiting.push((node, ready));
            }
        }
        for (node, ready) in waiting {
            node_is_ready(node, ready)?;
        }
        Ok(standing)
    }

    /// Gives this process its name and a session, and leaves signals to their defaults.
    fn set_up_process(&self) -> io::Result<()> {
        let _ = prctl::set_name(c"lab-keeper");
        // A session of its own: Ctrl-C is for the supervisor, which then ends us in order.
        nix::unistd::setsid()?;
        // SAFETY: the default action is installed, no handler of ours runs.
        unsafe { nix::sys::signal::signal(Signal::SIGCHLD, SigHandler::SigDfl)? };
        nix::sys::signal::SigSet::empty().thread_set_mask()?;
        Ok(())
    }

    fn site_namespaces(&self, site: &SitePlan) -> Result<SiteNamespaces, Failure> {
        let make = |whose: &str, router: bool| -> Result<File, Failure> {
            let step = format!("make network namespace of {whose}");
            let netns = sys::new_network_namespace().map_err(|error| (step, remedied(&error)))?;
            self.set_all(whose, router)?;
            Ok(netns)
        };
        let router = make(&format!("{}'s router", site.site.name), true)?;
        let nodes = site
            .nodes
            .iter()
            .map(|node| make(&node.name, false))
            .collect::<Result<_, _>>()?;
        Ok(SiteNamespaces { router, nodes })
    }

    /// Writes the settings of the network namespace the keeper is in.
    fn set_all(&self, whose: &str, router: bool) -> Result<(), Failure> {
        for (path, value, required) in commands::settings(router) {
            let written = fs::write(format!("/proc/sys/{path}"), value);
            if let (Err(error), true) = (written, required) {
                return Err((format!("set {path} = {value} on {whose}"), error.to_string()));
            }
        }
        if let Some(wanted) = self.plan.slow_start_after_idle {
            let path = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
            let step = || format!("set slow start after idle on {whose}");
            fs::write(path, if wanted { "1" } else { "0" }).map_err(|error| (step(), error.to_string()))?;
        }
        let Some(algorithm) = &self.plan.congestion_control else {
            return Ok(());
        };
        let path = "/proc/sys/net/ipv4/tcp_congestion_control";
        if fs::read_to_string(path).is_ok_and(|current| current.trim() == algorithm) {
            return Ok(());
        }
        let step = || format!("set congestion control {algorithm} on {whose}");
        fs::write(path, algorithm).map_err(|error| (step(), error.to_string()))
    }

    fn router(
        &self,
        site: &SitePlan,
        namespaces: &SiteNamespaces,
        devices: &mut Vec<(Device, OwnedFd)>,
    ) -> Result<(), Failure> {
        let name = &site.site.name;
        let whose = format!("{name}'s router");
        self.enter(&namespaces.router, &whose)?;
        let tun =
            wan::open_tun("wan0").map_err(|error| (format!("open wan0 of {whose}"), error.to_string()))?;
        devices.push((Device::Wan { site: name.clone() }, tun));
        let emulated_lan = !site.site.lan_rtt.is_zero();
        if emulated_lan {
            self.lan_port(name, "br0", &whose, devices)?;
        }
        let paths = |node: &Node| {
            let at = site
                .nodes
                .iter()
                .position(|other| other.name == node.name)
                .unwrap_or_default();
            format!(
                "/proc/{}/fd/{}",
                std::process::id(),
                namespaces.nodes[at].as_raw_fd()
            )
        };
        self.ip(&commands::router_links(site, paths), &whose)?;
        self.ip(&commands::router_routes(self.plan, site), &whose)?;
        let ports: Vec<String> = (0..site.nodes.len()).map(|port| format!("lan{port}")).collect();
        self.tc(&commands::lan_rate(site, &ports), &whose)?;
        feed(
            Command::new(&self.tools.nft).args(["-f", "-"]),
            &commands::firewall(self.plan, site),
        )
        .map_err(|reason| (format!("nft rules of {whose}"), reason))?;
        for (node, netns) in site.nodes.iter().zip(&namespaces.nodes) {
            self.enter(netns, &node.name)?;
            if emulated_lan {
                self.lan_port(name, "eth0", &node.name, devices)?;
            }
            self.ip(&commands::node_links(self.plan, site, node), &node.name)?;
            self.tc(&commands::lan_rate(site, &["eth0".to_owned()]), &node.name)?;
        }
        Ok(())
    }

    fn lan_port(
        &self,
        site: &str,
        device: &str,
        whose: &str,
        devices: &mut Vec<(Device, OwnedFd)>,
    ) -> Result<(), Failure> {
        let tap = wan::open_tap(device)
            .map_err(|error| (format!("open {device} of {whose}"), error.to_string()))?;
        devices.push((
            Device::Lan {
                site: site.to_owned(),
                port: whose.to_owned(),
            },
            tap,
        ));
        Ok(())
    }

    fn enter(&self, netns: &File, whose: &str) -> Result<(), Failure> {
        setns(netns, CloneFlags::CLONE_NEWNET).map_err(|error| (format!("enter {whose}"), error.to_string()))
    }

    fn ip(&self, batch: &str, whose: &str) -> Result<(), Failure> {
        feed(Command::new(&self.tools.ip).args(["-batch", "-"]), batch)
            .map_err(|reason| (format!("ip settings of {whose}"), reason))
    }

    fn tc(&self, batch: &str, whose: &str) -> Result<(), Failure> {
        if batch.is_empty() {
            return Ok(());
        }
        feed(Command::new(&self.tools.tc).args(["-batch", "-"]), batch)
            .map_err(|reason| (format!("tc settings of {whose}"), reason))
    }

    fn node(
        &self,
        site: &SitePlan,
        node: &Node,
        netns: &File,
        more: CloneFlags,
    ) -> Result<(i32, OwnedFd), Failure> {
        let failed = |error: io::Error| {
            (
                format!("start {} of site {}", node.name, site.site.name),
                error.to_string(),
            )
        };
        self.enter(netns, &node.name)?;
        let (read, write) =
            nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| failed(error.into()))?;
        let life = self.life.try_clone().map_err(failed)?;
        let takes_ssh = node.role == Role::Head || matches!(site.site.batch, Batch::None | Batch::Pbs);
        let system =
            System::of(site, self.state, (self.owner.uid, self.owner.gid), self.shown).map_err(failed)?;
        let sshd = match &system {
            Some(_) => Path::new(system::SSHD),
            None => &self.tools.sshd,
        };
        let init = Init {
            name: &node.name,
            state: self.state,
            memory: fabric::memory(self.state, site),
            system,
            sshd: takes_ssh.then_some(sshd),
            owner: self.owner,
            life,
            ready: write,
        };
        let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | more;
        let mut init = Some(init);
        let pid = sys::clone_with(own, || init.take().map_or(1, Init::run)).map_err(failed)?;
        Ok((pid, read))
    }
}

/// Waits until the node says that it is up.
fn node_is_ready(node: &Node, ready: OwnedFd) -> Result<(), Failure> {
    let mut said = String::new();
    let step = || format!("start {}", node.name);
    File::from(ready)
        .read_to_string(&mut said)
        .map_err(|error| (step(), error.to_string()))?;
    match said.as_str() {
        "\n" => Ok(()),
        "" => Err((step(), "its init ended without a word".to_owned())),
        reason => Err((step(), reason.trim().to_owned())),
    }
}

/// Runs a tool with `text` as its input, and returns its complaints.
fn feed(command: &mut Command, text: &str) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(text.as_bytes())
            .map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))
}

fn wait_for_the_end(life: &OwnedFd, namespaces: Vec<SiteNamespaces>) -> i32 {
    // SAFETY: no handler is installed; ignoring makes the kernel reap the inits.
    let _ = unsafe { nix::sys::signal::signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    loop {
        let mut events = [PollFd::new(life.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut events, PollTimeout::NONE);
        if events[0].revents().is_some_and(|events| !events.is_empty()) {
            break;
        }
    }
    drop(namespaces);
    // With SIGCHLD ignored this returns (ECHILD) once the last init, and so the last process of the lab, is
    // gone.
    let _ = nix::sys::wait::wait();
    0
}

fn remedied(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => format!(
            "{error}; the lab needs CAP_SYS_ADMIN (root outside a container), or run it as an ordinary user where user namespaces are allowed"
        ),
        Some(libc::ENOSPC) => format!("{error}; raise user.max_net_namespaces with sysctl -w"),
        _ => error.to_string(),
    }
}
