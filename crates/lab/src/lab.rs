//! A running lab, owned by its supervisor. Dropping it, or the end of the process that has it, ends all of
//! it.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::emulators::Emulators;
use crate::enter::{NodeChild, NodeCommand};
use crate::error::LabError;
use crate::fabric;
use crate::keeper::{Device, Keeper, Report};
use crate::plan::{Node, Plan, SiteView};
use crate::preflight::{self, Owner, Tools};
use crate::scenario::Scenario;
use crate::signals::{Signals, wait};
use crate::state::{self, LabState, Router, STATE_VERSION};
use crate::state_dir::{self, StateDir};
use crate::wan::{LinkChange, LinkSpec, LinkStats};
use crate::{batches, commands, control, roots, slurm, ssh, sys, system};

/// How to start a lab, apart from what it should look like.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// Name of the lab; by default, the scenario's. Two labs need two names.
    pub name: Option<String>,
    /// Directory in which the lab's state directory is made; by default, the user's usual one.
    pub state_dir: Option<PathBuf>,
    /// Directories of this host that nodes with another system see at the same paths, besides the one in
    /// which the lab is started; they are left out if that system has them itself.
    pub shown: Vec<PathBuf>,
}

/// A running lab. Fields are dropped in this order: first everything in the nodes ends, then the WAN, then
/// the files.
pub struct Lab {
    _keeper: KeeperHandle,
    emulators: Emulators,
    listener: UnixListener,
    signals: Signals,
    state: LabState,
    dir: StateDir,
}

/// The keeper, and our end of the life pipe. Dropping it ends every process of the lab, and waits until they
/// are gone.
struct KeeperHandle {
    pid: i32,
    life: Option<OwnedFd>,
}

impl Lab {
    /// Starts the lab: namespaces, firewalls, sshd in every node, the WAN between them. It must be called
    /// from a thread that outlives the lab. From now on until the lab is dropped, SIGINT, SIGTERM, SIGHUP and
    /// SIGQUIT are blocked in this thread and those that it starts; [`Lab::serve`] reports them.
    ///
    /// As root, it may add the scenario's congestion control to the machine's
    /// net.ipv4.tcp_allowed_congestion_control, without which no new namespace can choose it, and leaves it
    /// there. Nothing else outside the lab is changed.
    ///
    /// # Errors
    /// The machine lacks something, a lab with this name already runs, or a step failed. Then nothing is left
    /// behind.
    pub fn start(scenario: &Scenario, options: &LabOptions) -> Result<Lab, LabError> {
        let owner = Owner::current();
        let scenario = &roots::with_roots(scenario)?;
        let tools = preflight::check(scenario, owner)?;
        let plan = Plan::of(scenario);
        let name = options.name.clone().unwrap_or_else(|| scenario.name.clone());
        let root = options.state_dir.clone().unwrap_or_else(state_dir::default_root);
        // This precedes anything that a signal could leave behind.
        let signals = Signals::block()?;
        let dir = StateDir::claim(&root, &name)?;
        write_files(&plan, dir.path(), &tools)?;
        let (keeper, report) = start_keeper(&plan, dir.path(), &tools, owner, &options.shown)?;
        let ready = hear(&report, &signals)?;
        let emulators = Emulators::start(scenario, &plan, ready.devices)?;
        let nodes = plan
            .nodes()
            .cloned()
            .zip(ready.pids)
            .map(|(node, pid)| Node { pid, ..node })
            .collect();
        let state = LabState {
            version: STATE_VERSION,
            name,
            scenario: scenario.clone(),
            supervisor: std::process::id(),
            keeper: keeper.pid,
            in_user_namespace: owner.needs_user_namespace(),
            sites: plan.sites.iter().map(|site| site.view()).collect(),
            nodes,
            routers: routers(&plan, &ready.routers),
            dir: dir.path().to_owned(),
        };
        slurm::start(&state, &plan, &signals)?;
        batches::start(&state, &plan, &signals)?;
        let listener = control::listen(dir.path())?;
        state::write(&state)?;
        Ok(Lab {
            _keeper: keeper,
            emulators,
            listener,
            signals,
            state,
            dir,
        })
    }

    /// Its nodes, head node first, site by site.
    pub fn nodes(&self) -> &[Node] {
        &self.state.nodes
    }

    /// Its sites in the order of the scenario.
    pub fn sites(&self) -> &[SiteView] {
        &self.state.sites
    }

    /// Returns what other processes can know about it.
    pub fn state(&self) -> &LabState {
        &self.state
    }

    /// Its state directory, removed when it ends. Nodes see it as `/run/causeway-lab`.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a command in a node, in all of its namespaces. It ends with the lab at the latest.
    ///
    /// # Errors
    /// The node is unknown, or a step failed.
    pub fn spawn(&self, command: NodeCommand) -> Result<NodeChild, LabError> {
        self.state.spawn(command)
    }

    /// Changes the link between two sites, and returns its present state.
    ///
    /// # Errors
    /// The pair is unknown, or a value is impossible.
    pub fn change_link(&self, a: &str, b: &str, change: &LinkChange) -> Result<LinkSpec, LabError> {
        Ok(self.emulators.wan.change(a, b, change)?)
    }

    /// Returns what each link has carried and lost, two entries for each link.
    pub fn link_stats(&self) -> Vec<LinkStats> {
        self.emulators.wan.stats()
    }

    /// Ends the lab and waits until every process is gone. Dropping the lab does the same.
    pub fn stop(self) {
        drop(self);
    }

    pub(crate) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.signals
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Drop for KeeperHandle {
    fn drop(&mut self) {
        drop(self.life.take());
        let keeper = Pid::from_raw(self.pid);
        // The keeper ends after the last init; if something holds it up, its end still ends the inits.
        if !ends_within(self.pid, STOP_DEADLINE) {
            let _ = nix::sys::signal::kill(keeper, Signal::SIGKILL);
        }
        let _ = waitpid(keeper, None);
    }
}

fn ends_within(pid: i32, deadline: Duration) -> bool {
    let Ok(handle) = sys::pidfd(pid) else { return true };
    let timeout = PollTimeout::try_from(deadline).unwrap_or(PollTimeout::MAX);
    let mut events = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
    !matches!(poll(&mut events, timeout), Ok(0))
}

/// Writes everything that the nodes will mount, before they exist.
fn write_files(plan: &Plan, dir: &Path, tools: &Tools) -> Result<(), LabError> {
    ssh::write_directory(&dir.join("ssh"), &tools.ssh_keygen)?;
    for site in &plan.sites {
        let hosts = commands::hosts(plan, site);
        let boot_ids = fabric::boot_ids(site).map_err(|error| LabError::setup("draw boot ids", error))?;
        for (node, boot_id) in site.nodes.iter().zip(boot_ids) {
            let own = dir.join("nodes").join(&node.name);
            let write = || -> io::Result<()> {
                fs::create_dir_all(&own)?;
                fs::write(own.join("hosts"), &hosts)?;
                fs::write(own.join("boot_id"), &boot_id)
            };
            write().map_err(|source| LabError::State {
                step: "fill",
                path: own.clone(),
                source,
            })?;
        }
    }
    let written = system::write_files(plan, dir)
        .and_then(|()| slurm::write_files(plan, dir))
        .and_then(|()| batches::write_files(plan, dir));
    written.map_err(|source| LabError::State {
        step: "fill",
        path: dir.to_owned(),
        source,
    })
}

fn start_keeper(
    plan: &Plan,
    state: &Path,
    tools: &Tools,
    owner: Owner,
    shown: &[PathBuf],
) -> Result<(KeeperHandle, OwnedFd), LabError> {
    let (life_of_keeper, life) =
        nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(LabError::kernel("make a pipe"))?;
    let (report, report_of_keeper) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .map_err(LabError::kernel("make a socket pair"))?;
    let supervisor = std::process::id() as i32;
    let keeper = Keeper {
        plan,
        state,
        tools,
        owner,
        shown,
        supervisor,
        life: life_of_keeper,
        report: report_of_keeper,
    };
    let mut keeper = Some(keeper);
    let pid =
        sys::fork(|| keeper.take().map_or(1, Keeper::run)).map_err(LabError::kernel("fork the keeper"))?;
    Ok((
        KeeperHandle {
            pid,
            life: Some(life),
        },
        report,
    ))
}

fn routers(plan: &Plan, descriptors: &[i32]) -> Vec<Router> {
    let names = plan.sites.iter().map(|site| format!("{}-router", site.site.name));
    names
        .zip(descriptors)
        .map(|(name, &descriptor)| Router { name, descriptor })
        .collect()
}

/// What the keeper has made.
struct Ready {
    pids: Vec<i32>,
    devices: Vec<(Device, OwnedFd)>,
    routers: Vec<i32>,
}

fn hear(report: &OwnedFd, signals: &Signals) -> Result<Ready, LabError> {
    let deadline = Instant::now() + START_DEADLINE;
    loop {
        let mut events = [PollFd::new(report.as_fd(), PollFlags::POLLIN)];
        if poll(&mut events, PollTimeout::ZERO).map_err(LabError::kernel("wait for the keeper"))? > 0 {
            break;
        }
        if let Some(signal) = signals.next() {
            return Err(LabError::Signal(signal.number));
        }
        if Instant::now() > deadline {
            return Err(LabError::Deadline {
                what: "start of all nodes".to_owned(),
                seconds: START_DEADLINE.as_secs(),
            });
        }
        wait(&[report.as_fd(), signals.reader.as_fd()], Some(deadline))?;
    }
    let (bytes, fds) = sys::receive(report.as_fd()).map_err(LabError::kernel("hear from the keeper"))?;
    match serde_json::from_slice(&bytes) {
        Ok(Report::Ready {
            pids,
            devices,
            routers,
        }) => Ok(Ready {
            pids,
            routers,
            devices: devices.into_iter().zip(fds).collect(),
        }),
        Ok(Report::Failed { step, reason }) => Err(LabError::Setup { step, reason }),
        Err(_) => Err(LabError::setup(
            "start keeper",
            "it ended without a word; its message is on stderr",
        )),
    }
}

/// How long a set-up may take: 27 nodes of nine sites on two busy cores take some seconds; after 60 s,
/// something hangs.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long the end may take: the kernel ends a node in milliseconds, unless one of its processes hangs in
/// the kernel.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
