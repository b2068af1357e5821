//! Gives the running gateway to another program, such as its own next version, without ending a stream or a
//! job: `causeway gateway --drain`.
//!
//! The keeper stays and executes the other program, so that supervisors keep their process, starters their
//! parent, and sockets their descriptors. `state` is what the program goes on from, `inherit` how it does.
//! Lanes are closed: to both gateways that is a network that was away for a moment, and their tunnels make up
//! for it. What is carried for other sites goes on: theirs are no lanes of this gateway, and it knows nothing
//! of them but their bytes.
//!
//! ```text
//! --drain of the new program -- HandOver --> worker: looks (`vetting`), closes lanes, writes the state, ends
//!                                            keeper: exec, makes a worker of the new program
//!                     <-- HandedOver, on the same connection -- that one: reads the state, dials
//! ```
//! Up to exec everything can fail and nothing is lost: the old program goes on. Where exec itself fails, a
//! new worker of the old program goes on from the state.

pub(crate) mod inherit;
mod state;
pub(crate) mod vetting;

use crate::inherited::{STATE_VERSION, StateError};

use crate::config::{Config, Mistakes};
use crate::driver::Driver;
use crate::flow::Flow;
use crate::lifecycle::Lifecycle;
use crate::link::KeeperLink;
use crate::sys::process;
use causeway_control::Reply;
use causeway_control::private;
use causeway_tunnel::SnapshotError;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
pub(crate) use state::State;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vetting::Vetting;

/// The hidden option that names the state's descriptor to the successor. Like the order of the other words,
/// the same in every version: the old program calls the new one.
pub(crate) const INHERIT: &str = "--inherit";

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
    #[error("execute {}: its path or the configuration's is too long", .0.display())]
    Execute(PathBuf),
    #[error("it has no keeper that would execute another program")]
    NoKeeper,
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

/// Has the keeper execute another program in its place. Returns only where that fails; then everything goes
/// on here.
pub(crate) fn hand_over(successor: &Successor, flow: &mut Flow<'_>) {
    flow.driver.say(format_args!(
        "hands {} streams and {} jobs to {}",
        flow.site.legs().len(),
        flow.membership.jobs().len(),
        successor.program.display()
    ));
    let Err(error) = try_hand_over(successor, flow);
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

fn try_hand_over(successor: &Successor, flow: &mut Flow<'_>) -> Result<Infallible, HandOverError> {
    let (commands, mut context) = flow.commands_and_context();
    if !commands.await_starts(&mut context) {
        return Err(HandOverError::Starting);
    }
    let state = memfd_create("causeway-state", MFdFlags::MFD_CLOEXEC);
    let state = File::from(state.map_err(|error| HandOverError::System("make a file in memory", error))?);
    let kept = keep(flow)?;
    kept.check()?;
    kept.write(&state)?;
    // Writing may have taken a while. The configuration is not read again: that can take as long.
    private::check_program(&successor.program)
        .map_err(|error| HandOverError::Program(successor.program.clone(), error))?;
    // The threads that write lines end with this worker.
    flow.driver.flush();
    let mut kept: Vec<RawFd> = descriptors(flow).map(|kept| kept.as_raw_fd()).collect();
    let link = flow.driver.link.as_ref().ok_or(HandOverError::NoKeeper)?;
    kept.extend(link.kept().listeners.numbers());
    kept.push(state.as_raw_fd());
    // Nothing is started in between: whatever else is open closes with exec.
    let is_announced = set_inheritance(&kept, false)
        .map(|()| link.announce_hand_over(&successor.program, &successor.config, state.as_fd()));
    if matches!(is_announced, Ok(true)) {
        // Without dropping what would end what it stands for.
        std::process::exit(0);
    }
    set_inheritance(&kept, true)
        .and(is_announced)
        .map_err(|error| HandOverError::System("keep descriptors from other programs", error))?;
    Err(HandOverError::Execute(successor.program.clone()))
}

/// Everything that the successor needs to know, lanes being down.
fn keep<'k>(flow: &'k mut Flow<'_>) -> Result<State<'k>, HandOverError> {
    let now = Instant::now();
    let tunnels = flow.tunnels.keep(now);
    let tunnels = tunnels.map_err(|(site, error)| HandOverError::Tunnel(site, error))?;
    let membership = flow.membership.keep();
    let commands = flow.commands.keep(now);
    let traversal = flow.traversal.keep();
    let site = flow.site.keep();
    let link = flow.driver.link.as_ref();
    Ok(State {
        keeper: link.map(KeeperLink::kept).cloned().unwrap_or_default(),
        site: flow.driver.config.site.clone(),
        handed_over: flow.handed_over + 1,
        generations: flow.driver.generations,
        streams_opened: site.streams_opened,
        streams_peak: site.streams_peak,
        next_delivery_port: site.next_delivery_port,
        refused: flow.driver.log.refused().clone(),
        carried_bytes: traversal.carried_bytes,
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

/// What the state names by number, but for the keeper's.
fn descriptors<'k>(flow: &'k Flow<'_>) -> impl Iterator<Item = BorrowedFd<'k>> {
    let commands = flow.site.descriptors().chain(flow.commands.descriptors());
    commands.chain(flow.traversal.descriptors())
}

fn set_inheritance(descriptors: &[RawFd], closes: bool) -> nix::Result<()> {
    descriptors
        .iter()
        .try_for_each(|number| process::set_closes_on_exec(*number, closes))
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
