//! What a tunnel may have to report to its driver; `telling` does so.

use crate::event::Event;
use std::collections::VecDeque;

/// Something that the tunnel may have to report.
#[derive(Debug)]
pub(crate) enum Due {
    /// Something about a stream.
    Stream(u32),
    /// Complete messages.
    Messages,
    /// Streams whose open, and the messages before it, have arrived.
    Opens,
    /// An event of a lane, or of the tunnel as a whole, that has already been recorded.
    Event(Event<'static>),
}

/// The list of what is due, in order. It is emptied before more input is read, so it stays short.
#[derive(Debug, Default)]
pub(crate) struct Dues(VecDeque<Due>);

impl Dues {
    pub(crate) fn stream(&mut self, id: u32) {
        self.0.push_back(Due::Stream(id));
    }

    pub(crate) fn messages(&mut self) {
        self.0.push_back(Due::Messages);
    }

    pub(crate) fn opens(&mut self) {
        self.0.push_back(Due::Opens);
    }

    pub(crate) fn event(&mut self, event: Event<'static>) {
        self.0.push_back(Due::Event(event));
    }

    pub(crate) fn take(&mut self) -> Option<Due> {
        self.0.pop_front()
    }

    /// Removes and returns the next event of a lane or of the whole tunnel, whatever precedes it.
    pub(crate) fn take_noted(&mut self) -> Option<Event<'static>> {
        let noted = self.0.iter().position(|due| matches!(due, Due::Event(_)))?;
        match self.0.remove(noted) {
            Some(Due::Event(event)) => Some(event),
            _ => None,
        }
    }

    /// Puts back something due, because there may be more of it.
    pub(crate) fn put_back(&mut self, due: Due) {
        self.0.push_front(due);
    }

    /// Marks everything as due: these streams, messages and opens.
    pub(crate) fn all(streams: impl Iterator<Item = u32>) -> Dues {
        let beside = [Due::Messages, Due::Opens];
        Dues(beside.into_iter().chain(streams.map(Due::Stream)).collect())
    }
}
