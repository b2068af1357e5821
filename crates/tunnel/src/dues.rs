//! What a tunnel may have to tell its driver. `telling` tells it.

use crate::event::Event;
use std::collections::VecDeque;

/// What there may be to tell.
#[derive(Debug)]
pub(crate) enum Due {
    /// Something of a stream.
    Stream(u32),
    /// Whole messages.
    Messages,
    /// Streams whose open and messages are here.
    Opens,
    /// Lanes, or the tunnel as a whole, have something to tell that has been noted already.
    Event(Event<'static>),
}

/// In what order it is to be told. Empty before more input is taken in, so it stays short.
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

    /// What of lanes and of the tunnel as a whole comes next, whatever is before it.
    pub(crate) fn take_noted(&mut self) -> Option<Event<'static>> {
        let noted = self.0.iter().position(|due| matches!(due, Due::Event(_)))?;
        match self.0.remove(noted) {
            Some(Due::Event(event)) => Some(event),
            _ => None,
        }
    }

    /// There may be more of it.
    pub(crate) fn put_back(&mut self, due: Due) {
        self.0.push_front(due);
    }

    /// All that there may be to tell of these streams, and beside.
    pub(crate) fn all(streams: impl Iterator<Item = u32>) -> Dues {
        let beside = [Due::Messages, Due::Opens];
        Dues(beside.into_iter().chain(streams.map(Due::Stream)).collect())
    }
}
