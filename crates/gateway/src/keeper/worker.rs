//! A worker's life, from the moment at which it is made.

use super::Keeper;
use crate::gateway::Gateway;
use crate::link::{Before, Ending, KeeperLink, KeptKeeper, Orphans};
use crate::sys::{priority, process};
use causeway_service::Lines;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::panic::PanicHookInfo;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

/// How long a failed start waits until somebody reads its reason.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves in the process that has just been made, and ends it.
pub(super) fn work(keeper: Keeper, before: Option<Before>) -> ! {
    // The descriptors in `keeper` are the keeper's, too: nothing in it is dropped here, because that would
    // close them.
    let mut keeper = ManuallyDrop::new(keeper);
    // The keeper may be gone already.
    let follows = process::stop_with_parent(keeper.process);
    if follows.is_err() || nix::unistd::getppid() != keeper.process {
        exit(1);
    }
    process::be_ended_first();
    priority::follow(keeper.process);
    let site = keeper.config.site.clone();
    std::panic::set_hook(Box::new(move |panic| end_by_panic(&site, panic)));
    let is_first = before.is_none();
    match serve(&mut keeper, before) {
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

fn serve(keeper: &mut Keeper, before: Option<Before>) -> Result<(), crate::GatewayError> {
    process::raise_file_limit();
    let mut inherited = process::open_descriptors()?;
    inherited.retain(|number| !keeper.own.contains(number) && *number > 2);
    let reader = process::duplicate(keeper.orphans.0.as_raw_fd())?;
    let kept = KeptKeeper {
        files: keeper.files.each_ref().map(AsRawFd::as_raw_fd),
        listeners: keeper.listeners.keep(),
        foreign: keeper.foreign.clone(),
        ends: keeper.ends,
    };
    let mut link = KeeperLink::new(
        Arc::clone(&keeper.memory),
        Orphans::new(reader),
        keeper.process.as_raw().cast_unsigned(),
        kept,
    );
    link.inherited = inherited;
    (link.before, link.stayed) = (before, keeper.stayed.take());
    let mut gateway = Gateway::for_worker(keeper.config.clone(), link)?;
    gateway.run()
}

/// Serves in this process if no worker can be made: when it dies, so does the gateway.
///
/// # Errors
/// Those of [`Gateway::listening`] and [`Gateway::run`].
pub(super) fn serve_alone(keeper: Keeper, why: &io::Error) -> Result<(), crate::GatewayError> {
    let mut gateway = Gateway::listening(keeper.config, keeper.listeners, None, None)?;
    gateway.driver.say(format_args!(
        "makes no worker ({why}): it ends when it is killed, and cannot be handed over"
    ));
    gateway.run()
}

/// Makes a panic end the process: a thread that has panicked leaves the others with something half done.
fn end_by_panic(site: &str, panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Lines::say_at_once(format_args!(
        "causeway gateway {site}: a fault of this program ends its worker: {} (thread {}, {place})",
        text.unwrap_or("no reason given"),
        thread.name().unwrap_or("without a name"),
    ));
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Makes this test's own program run the test once more, as the process that panics.
    const PANICS: &str = "CAUSEWAY_TEST_PANICS";

    #[test]
    fn a_panic_of_any_thread_is_one_line_and_ends_the_process() {
        if std::env::var_os(PANICS).is_some() {
            std::panic::set_hook(Box::new(|panic| end_by_panic("rennes", panic)));
            let thread = std::thread::Builder::new().name("spawner".to_owned());
            let _ = thread.spawn(|| panic!("no {}\nsuch thing", 7)).unwrap().join();
            exit(0);
        }
        let name = "keeper::worker::tests::a_panic_of_any_thread_is_one_line_and_ends_the_process";
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again.args(["--exact", name, "--nocapture"]).env(PANICS, "1");
        let ended = again.output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{ended:?}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.starts_with("causeway gateway rennes: a fault of this program ends its worker: no 7\\u000asuch thing (thread spawner, "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
