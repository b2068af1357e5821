//! Gives the running gateway to another program, such as its own next version, without ending a stream or a
//! job: `causeway gateway --drain`.
//!
//! The keeper stays and executes the other program, so that supervisors keep their process, starters their
//! parent, and sockets their descriptors. To the other program, it looks as if a worker of its own had been
//! killed at the end of a turn (`takeup`). Lanes are closed: to both gateways, it looks as if the network had
//! been away for a moment, and their tunnels recover from that. Connections that are carried for other sites
//! go on: they are not lanes of this gateway, which knows only their bytes.
//!
//! ```text
//! --drain of the new program -- HandOver --> worker: looks (`vetting`), closes lanes, writes all down, ends
//!                                            keeper: exec, makes a worker of the new program
//!                     <-- HandedOver, on the same connection -- that one: reads it, dials
//! ```
//! Until exec, anything may fail without a loss: the old program goes on. If exec itself fails, a new worker
//! of the old program goes on.

mod handed;
pub(crate) mod vetting;

use crate::inherited::{STATE_VERSION, StateError};

use crate::config::{Config, Mistakes};
use crate::driver::Driver;
use crate::flow::Flow;
use crate::lifecycle::Lifecycle;
use crate::lifecycle::record::write_all_down;
use crate::sys::process;
use causeway_control::private;
use causeway_control::{HandedOver, Reply};
use handed::Handed;
pub(crate) use handed::read;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;
use vetting::Vetting;

/// The hidden option that names the state's descriptor to the successor. Like the order of the other words,
/// it is the same in every version, because the old program calls the new one.
pub(crate) const INHERIT: &str = "--inherit";

/// Another program that is to get this gateway.
#[derive(Clone)]
pub(crate) struct Successor {
    program: PathBuf,
    config: PathBuf,
}

/// Why the gateway is not handed over. It continues as before.
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
    #[error("there is no memory to write down what it has")]
    Unwritten,
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
    /// Begins to check whether this program may have the gateway; the result reaches
    /// [`Lifecycle::on_vetted`].
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

    /// Acts on the result: a program that may have the gateway gets it before the loop sleeps again.
    pub(crate) fn on_vetted(&mut self, running: &Config) -> Result<(), HandOverError> {
        if let Some(vetting) = self.vetting.take() {
            self.successor = Some(vetting.end(running)?);
        }
        Ok(())
    }
}

/// Makes the keeper execute another program in its place. Returns only if that fails; then everything goes on
/// here.
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

/// Closes what is not handed over. What the tunnels still report is acted on first.
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
    let link = flow.driver.link.as_ref().ok_or(HandOverError::NoKeeper)?;
    let handed = Handed {
        site: flow.driver.config.site.clone(),
        keeper: link.kept().clone(),
    };
    let file = memfd_create("causeway-handed", MFdFlags::MFD_CLOEXEC);
    let file = File::from(file.map_err(|error| HandOverError::System("make a file in memory", error))?);
    handed.write(&file)?;
    // Writing may have taken a while. The configuration is not read again, because that could take as long.
    private::check_program(&successor.program)
        .map_err(|error| HandOverError::Program(successor.program.clone(), error))?;
    // The threads that write lines end with this worker.
    flow.driver.flush();
    flow.handed_over += 1;
    if !write_all_down(flow) {
        return Err(HandOverError::Unwritten);
    }
    let mut kept: Vec<RawFd> = descriptors(flow).map(|kept| kept.as_raw_fd()).collect();
    let link = flow.driver.link.as_ref().ok_or(HandOverError::NoKeeper)?;
    kept.extend(link.kept().listeners.numbers());
    kept.extend(link.kept().files);
    kept.push(file.as_raw_fd());
    // No process is started in between: everything else that is open closes at exec.
    let is_announced = set_inheritance(&kept, false)
        .map(|()| link.announce_hand_over(&successor.program, &successor.config, file.as_fd()));
    if matches!(is_announced, Ok(true)) {
        // The process exits without dropping values, because that would end what they stand for.
        std::process::exit(0);
    }
    set_inheritance(&kept, true)
        .and(is_announced)
        .map_err(|error| HandOverError::System("keep descriptors from other programs", error))?;
    Err(HandOverError::Execute(successor.program.clone()))
}

/// Answers the command that asked for the hand-over; `stayed` says why this program still goes on, if it
/// does.
pub(crate) fn answer(flow: &mut Flow<'_>, stayed: Option<String>) {
    let (driver, membership) = (&flow.driver, &flow.membership);
    let (streams, jobs) = (flow.site.legs().len(), membership.jobs().len());
    let reply = match stayed {
        Some(why) => {
            driver.say(format_args!("goes on itself: {why}"));
            Reply::Error(why)
        }
        None => {
            driver.say(format_args!(
                "goes on as {} (process {}) with {streams} streams and {jobs} jobs",
                driver.program.display(),
                driver.process(),
            ));
            Reply::HandedOver(HandedOver {
                site: driver.config.site.clone(),
                streams,
                jobs,
            })
        }
    };
    let (commands, mut context) = flow.commands_and_context();
    commands.answer_hand_over(&mut context, &reply);
}

/// The descriptors that the other program goes on with, except the keeper's.
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
    /// The first setting in which another configuration differs, among those on which the streams and jobs of
    /// a running gateway depend.
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
