//! Writes down what the next worker needs to know, or the program that this gateway is handed over to.

use crate::book::{Book, Numbers, kind};
use crate::flow::Flow;
use crate::inherited::STATE_VERSION;
use nix::sys::signal::{Signal, raise};
use std::io::ErrorKind;
use std::time::Duration;

/// If a worker younger than this gets no memory, there was none at its start, either.
const FRESH: Duration = Duration::from_secs(1);

/// Writes down what has changed, once in each turn, and then closes what nobody looks for any more.
pub(crate) fn write_down(flow: &mut Flow<'_>) {
    if let Some(mut book) = flow.driver.book.take() {
        let numbers = Numbers {
            handed_over: flow.handed_over,
            generations: flow.driver.generations,
            carried_bytes: flow.traversal.relayed().1,
        };
        book.put(kind::GATEWAY, 0, &(STATE_VERSION, numbers));
        flow.membership.write_down(&mut book);
        flow.tunnels.write_down(&mut book, flow.driver.now);
        flow.site.write_down(&mut book);
        flow.commands.write_down(&mut book);
        match book.commit(flow.driver.now) {
            Ok(()) => {
                flow.tunnels.written_down();
                flow.driver.arena.reclaim();
                flow.driver.book = Some(book);
            }
            Err(error) => without_memory(flow, book, &error),
        }
    }
    flow.driver.closing.clear();
}

/// Ends a worker that can no longer write down what it does: nothing of this turn has left it, so the next
/// one goes on from what was written last. A worker that has just begun goes on without writing anything
/// down, because the next one would not find more memory.
fn without_memory(flow: &mut Flow<'_>, book: Book, error: &std::io::Error) {
    let age = flow.driver.now.saturating_duration_since(flow.driver.began);
    if error.kind() == ErrorKind::OutOfMemory && age > FRESH {
        flow.driver.say(format_args!(
            "cannot write down what a worker that follows this one has to know: {error}; this one ends now, so that the \
             next one goes on"
        ));
        flow.driver.log.flush();
        // Not like a fault of the program: three of those in a row end all streams.
        let _ = raise(Signal::SIGKILL);
    }
    book.give_up();
    flow.driver.say(format_args!(
        "writes nothing down any more for a worker that would follow this one: {error}; if it is killed, its streams and \
         jobs end"
    ));
}

/// The same before another program continues: also writes what is worth writing only if nothing is lost in
/// between. False if nothing can be written.
pub(crate) fn write_all_down(flow: &mut Flow<'_>) -> bool {
    if let Some(mut book) = flow.driver.book.take() {
        flow.traversal.write_down(&mut book);
        book.put(kind::REFUSED, 0, flow.driver.log.refused());
        flow.driver.book = Some(book);
    }
    write_down(flow);
    flow.driver.book.is_some()
}
