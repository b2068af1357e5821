//! A worker's life, from the moment when it is made.

use super::Keeper;
use crate::gateway::Gateway;
use crate::link::{Ending, KeeperLink, KeptKeeper, Left, Orphans};
use crate::sys::process;
use causeway_service::Lines;
use causeway_wire::shown::Line;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fmt::Display;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::PanicHookInfo;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

/// What a start that has failed waits for a reader of its reason.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves in the process that has just been made, and ends it.
pub(super) fn work(keeper: Keeper, left: Option<Left>) -> ! {
    // Its descriptors are the keeper's, too: nothing of it is dropped here, or they would be closed.
    let mut keeper = ManuallyDrop::new(keeper);
    // The keeper has gone already where this is refused.
    let keeper_process = nix::unistd::getppid();
    let follows = process::end_with_parent();
    if follows.is_err() || nix::unistd::getppid() != keeper_process {
        exit(1);
    }
    process::be_ended_first();
    let site = keeper.config.site.clone();
    std::panic::set_hook(Box::new(move |panic| end_by_panic(&site, panic)));
    let is_first = left.is_none() && keeper.state.is_none();
    match serve(&mut keeper, keeper_process.as_raw().cast_unsigned(), left) {
        Ok(()) => exit(0),
        Err(error) => {
            if is_first && !keeper.memory.has_served() {
                keeper.memory.announce(Ending::Stops);
            }
            Lines::stderr().say(format_args!("causeway gateway: {error}"));
            Lines::stderr().flush(FAREWELL);
            exit(1);
        }
    }
}

fn serve(keeper: &mut Keeper, process: u32, left: Option<Left>) -> Result<(), crate::GatewayError> {
    let reader = process::duplicate(keeper.orphans.0.as_raw_fd())?;
    let kept = KeptKeeper {
        listeners: keeper.listeners.keep(),
        foreign: keeper.foreign.clone(),
        ends: keeper.ends,
    };
    let mut link = KeeperLink::new(Arc::clone(&keeper.memory), Orphans::new(reader), process, kept);
    (link.left, link.stayed) = (left, keeper.stayed.take());
    let mut gateway = Gateway::of_worker(keeper.config.clone(), link, keeper.state)?;
    gateway.run()
}

/// A thread that has panicked leaves the others with half of something: all end.
fn end_by_panic(site: &str, panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    say_at_once(format_args!(
        "causeway gateway {site}: a fault of this program ends its worker: {} (thread {}, {place})",
        text.unwrap_or("no reason given"),
        thread.name().unwrap_or("without a name"),
    ));
    std::process::abort();
}

/// Writes a line without the thread that writes others, which may be the one that cannot any more.
fn say_at_once(text: impl Display) {
    let line = format!("{}\n", Line(text));
    let stderr = io::stderr();
    let mut writable = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let timeout = PollTimeout::from(200_u8);
    if poll(&mut writable, timeout).is_ok_and(|ready| ready > 0) {
        let _ = io::stderr().write_all(line.as_bytes());
    }
}
