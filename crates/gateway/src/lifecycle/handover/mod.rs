//! Gives the running gateway to another program, such as its own next version, without ending a stream or a
//! job: `causeway gateway --drain`.
//!
//! The process stays and executes the other program, so that supervisors keep their process, starters their
//! parent, and sockets their descriptors. `state` is what the program goes on from, `inherit` how it does.
//! Lanes are closed: to both gateways that is a network that was away for a moment, and their tunnels make up
//! for it. What is carried for other sites goes on: theirs are no lanes of this gateway, and it knows nothing
//! of them but their bytes.
//!
//! ```text
//! --drain of the new program -- HandOver --> old program: looks (`vetting`), closes lanes, writes the state,
//! exec
//!                     <-- HandedOver, on the same connection -- new program: reads the state, dials
//! ```
//! Up to exec everything can fail and nothing is lost: the old program goes on.

pub(crate) mod inherit;
mod state;
pub(crate) mod vetting;

use crate::inherited::{STATE_VERSION, StateError};

use crate::config::{Config, Mistakes};
use crate::driver::Driver;
use crate::flow::Flow;
use crate::lifecycle::Lifecycle;
use crate::listeners::Listeners;
use crate::sys::socket;
use causeway_control::Reply;
use causeway_control::private;
use causeway_tunnel::SnapshotError;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::execv;
use state::State;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vetting::Vetting;

/// The hidden option that names the state's descriptor to the successor. Like the order of the other words,
/// the same in every version: the old program calls the new one.
const INHERIT: &str = "--inherit";

/// Another program that is to have this gateway.
#[derive(Clone)]
pub(crate) struct Successor {
    program: PathBuf,
    config: PathBuf,
}

/// Why the gateway is not handed over. It goes on as before.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandOverError {
    #[error("a hand-over is under way")]
    Again,
    #[error(
        "the running gateway hands over a state of version {STATE_VERSION}, but the new program needs version {0}; let the jobs end, \
         stop the gateway and start the new one"
    )]
    Version(u32),
    #[error("{} is no absolute path", .0.display())]
    Relative(PathBuf),
    #[error("program {}: {}", .0.display(), .1)]
    Program(PathBuf, io::Error),
    #[error("{0}")]
    Config(#[from] Mistakes),
    #[error(
        "{file}: {key} differs from the running gateway, and cannot change in a hand-over; restart the gateway"
    )]
    Changed { file: String, key: String },
    #[error("the tunnel to {0} cannot be handed over: {1}")]
    Tunnel(String, SnapshotError),
    #[error("a process is just being started on a node; try again in a moment")]
    Starting,
    #[error("state: {0}")]
    State(#[from] StateError),
    #[error("{0}: {1}")]
    System(&'static str, Errno),
    #[error("execute {}: {}", .0.display(), .1)]
    Execute(PathBuf, Errno),
}

impl Lifecycle {
    /// Begins to look whether this program may have the gateway; [`Lifecycle::on_vetted`] hears the end.
    pub(crate) fn consider_successor(
        &mut self,
        driver: &Driver,
        version: u32,
        program: PathBuf,
        config: PathBuf,
    ) -> Result<(), HandOverError> {
        if self.successor.is_some() || self.vetting.is_some() {
            return Err(HandOverError::Again);
        }
        if version != STATE_VERSION {
            return Err(HandOverError::Version(version));
        }
        if let Some(relative) = [&program, &config].into_iter().find(|path| !path.is_absolute()) {
            return Err(HandOverError::Relative(relative.clone()));
        }
        self.vetting = Some(Vetting::begin(driver, Successor { program, config })?);
        Ok(())
    }

    /// Acts on the end of the look: who may have the gateway gets it before the loop sleeps.
    pub(crate) fn on_vetted(&mut self, running: &Config) -> Result<(), HandOverError> {
        if let Some(vetting) = self.vetting.take() {
            self.successor = Some(vetting.end(running)?);
        }
        Ok(())
    }
}

/// Executes another program in this one's place. Returns only where that fails; then everything goes on here.
pub(crate) fn hand_over(successor: &Successor, flow: &mut Flow<'_>, listeners: &Listeners) {
    flow.driver.say(format_args!(
        "hands {} streams and {} jobs to {}",
        flow.site.legs().len(),
        flow.membership.jobs().len(),
        successor.program.display()
    ));
    let Err(error) = try_hand_over(successor, flow, listeners);
    flow.driver.say(format_args!("goes on itself: {error}"));
    let (commands, mut context) = flow.commands_and_context();
    commands.answer_hand_over(&mut context, &Reply::Error(error.to_string()));
    for index in flow.tunnels.peers().indexes() {
        flow.tunnels
            .connecting()
            .dial_all(flow.driver, index, Duration::ZERO);
    }
}

/// Closes what is not handed over. What the tunnels have to tell is acted on first.
pub(crate) fn let_go(flow: &mut Flow<'_>) {
    flow.tunnels.departure().end_handshakes();
    for pair in flow.tunnels.pairs().keys() {
        while let Some(event) = flow.tunnels.traffic().poll_tunnel(pair) {
            if let Err(end) = flow.on_tunnel_event(pair, event) {
                flow.tunnels.traffic().end_pair(flow.driver, pair, &end);
            }
        }
    }
    flow.tunnels.departure().let_lanes_go(flow.driver);
}

fn try_hand_over(
    successor: &Successor,
    flow: &mut Flow<'_>,
    listeners: &Listeners,
) -> Result<Infallible, HandOverError> {
    let (commands, mut context) = flow.commands_and_context();
    if !commands.await_starts(&mut context) {
        return Err(HandOverError::Starting);
    }
    let state = memfd_create("causeway-state", MFdFlags::MFD_CLOEXEC);
    let state = File::from(state.map_err(|error| HandOverError::System("make a file in memory", error))?);
    let kept = keep(flow, listeners)?;
    kept.check()?;
    kept.write(&state)?;
    // Writing may have taken a while. The configuration is not read again: that can take as long.
    private::check_program(&successor.program)
        .map_err(|error| HandOverError::Program(successor.program.clone(), error))?;
    let number = state.as_raw_fd().to_string();
    let words: [&[u8]; 6] = [
        successor.program.as_os_str().as_bytes(),
        b"gateway",
        b"--config",
        successor.config.as_os_str().as_bytes(),
        INHERIT.as_bytes(),
        number.as_bytes(),
    ];
    let invalid = |_| HandOverError::Execute(successor.program.clone(), Errno::EINVAL);
    let words = words.map(CString::new).into_iter();
    let words = words.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
    // The threads that write lines end with exec.
    flow.driver.flush();
    let mut kept = descriptors(flow, listeners);
    kept.push(state.as_fd());
    // Nothing is started in between: whatever else is open closes with exec.
    socket::pass_net_admin_on(flow.driver.config.transparent.is_some());
    let executed = set_inheritance(&kept, FdFlag::empty()).and_then(|()| execv(&words[0], &words));
    let error = executed.map_or_else(|error| error, |never| match never {});
    socket::pass_net_admin_on(false);
    set_inheritance(&kept, FdFlag::FD_CLOEXEC)
        .map_err(|error| HandOverError::System("keep descriptors from other programs", error))?;
    Err(HandOverError::Execute(successor.program.clone(), error))
}

/// Everything that the successor needs to know, lanes being down.
fn keep<'k>(flow: &'k mut Flow<'_>, listeners: &Listeners) -> Result<State<'k>, HandOverError> {
    let now = Instant::now();
    let tunnels = flow.tunnels.keep(now);
    let tunnels = tunnels.map_err(|(site, error)| HandOverError::Tunnel(site, error))?;
    let membership = flow.membership.keep();
    let commands = flow.commands.keep(now);
    let traversal = flow.traversal.keep();
    let site = flow.site.keep();
    Ok(State {
        site: flow.driver.config.site.clone(),
        handed_over: flow.handed_over + 1,
        generations: flow.driver.generations,
        streams_opened: site.streams_opened,
        streams_peak: site.streams_peak,
        next_delivery_port: site.next_delivery_port,
        refused: flow.driver.log.refused().clone(),
        carried_bytes: traversal.carried_bytes,
        listeners: listeners.keep(),
        virtual_subnets: membership.virtual_subnets,
        others: membership.others,
        unrecorded: membership.unrecorded,
        peers: tunnels.peers,
        jobs: membership.jobs,
        starters: commands.starters,
        pairs: tunnels.pairs,
        legs: site.legs,
        intakes: site.intakes,
        commands: commands.commands,
        splices: traversal.splices,
    })
}

/// What the state names by number.
fn descriptors<'k>(flow: &'k Flow<'_>, listeners: &'k Listeners) -> Vec<BorrowedFd<'k>> {
    let tcp = listeners
        .lan
        .iter()
        .chain(&listeners.wan)
        .chain(&listeners.metrics)
        .chain(&listeners.transparent);
    tcp.map(AsFd::as_fd)
        .chain([listeners.control.as_fd()])
        .chain(flow.site.descriptors())
        .chain(flow.commands.descriptors())
        .chain(flow.traversal.descriptors())
        .collect()
}

fn set_inheritance(descriptors: &[BorrowedFd<'_>], flags: FdFlag) -> nix::Result<()> {
    descriptors
        .iter()
        .try_for_each(|descriptor| fcntl(descriptor, FcntlArg::F_SETFD(flags)).map(drop))
}

impl Config {
    /// The first key on which streams and jobs of a running gateway rest and that another configuration has
    /// otherwise.
    fn lasting_difference(&self, other: &Config) -> Option<String> {
        let same = [
            ("site.name", self.site == other.site),
            ("site.subnets", self.subnets == other.subnets),
            (
                "site.virtual_subnets",
                self.membership.is_some() || self.virtual_subnets == other.virtual_subnets,
            ),
            (
                "site.overlap_ok",
                self.membership.is_none() || self.overlap_ok == other.overlap_ok,
            ),
            ("listen.lan", self.lan == other.lan),
            ("listen.wan", self.wan == other.wan),
            ("listen.control", self.control == other.control),
            ("listen.metrics", self.metrics == other.metrics),
            ("listen.transparent", self.transparent == other.transparent),
            (
                "listen.delivery_ports",
                self.delivery_ports == other.delivery_ports,
            ),
            ("grid.membership", self.membership == other.membership),
            (
                "grid.key_file",
                self.membership.is_some() || self.key == other.key,
            ),
        ];
        let changed = same.iter().find(|(_, same)| !same);
        let missing = || {
            let is_there = |site: &str| other.peers.iter().any(|peer| peer.site == site);
            let missing = self.peers.iter().find(|peer| !is_there(&peer.site))?;
            Some(format!("[[peer]] of {}", missing.site))
        };
        let changed = changed.map(|(key, _)| (*key).to_owned());
        // The broker names the peers of a member.
        changed.or_else(|| missing().filter(|_| self.membership.is_none()))
    }
}
