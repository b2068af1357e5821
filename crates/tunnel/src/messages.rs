//! Messages between the gateways themselves: numbered frames, which are put in order and joined.

use crate::frame::ProtocolError;
use crate::kept::kind;
use crate::steps;
use crate::touched::Touched;
use causeway_memory::{Journal, Key};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Longest message of a gateway to its peer: the description of a site with ten thousand nodes. The receiver
/// reads it in one turn of its loop.
pub const MAX_MESSAGE: usize = 2 << 20;

#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Messages {
    /// How many frames of messages were sent.
    pub(crate) sent: u64,
    /// How many frames of messages were received in order.
    pub(crate) received: u64,
    ahead: BTreeMap<u64, (bool, Vec<u8>)>,
    ahead_bytes: usize,
    begun: Vec<u8>,
    touched: Touched<u64>,
}

impl Messages {
    /// Restores what was stored.
    pub(crate) fn of(
        (sent, received): (u64, u64),
        ahead: BTreeMap<u64, (bool, Vec<u8>)>,
        begun: Vec<u8>,
    ) -> Messages {
        Messages {
            sent,
            received,
            ahead_bytes: ahead.values().map(|(_, bytes)| bytes.len()).sum(),
            ahead,
            begun,
            touched: Touched::default(),
        }
    }

    /// Records everything present as changed, and records every change from now on.
    pub(crate) fn note_all(&mut self) {
        self.touched.turn_on();
        self.touched.note(self.received);
        self.ahead.keys().for_each(|number| self.touched.note(*number));
    }

    /// Writes to the journal what has changed, except the counters.
    pub(crate) fn write_down(&mut self, journal: &mut Journal, owner: u64) {
        let touched = self.touched.take();
        if !touched.is_empty() {
            journal.put_bytes(Key::new(kind::BEGUN, owner, 0), &self.begun);
        }
        for number in touched {
            let key = Key::new(kind::MESSAGE, owner, number);
            match self.ahead.get(&number) {
                Some(message) => journal.put(key, message),
                None => journal.remove(key),
            }
        }
    }

    /// Receives the frame with this number; `more` says that its message continues in the next.
    pub(crate) fn on_frame(&mut self, number: u64, more: bool, payload: &[u8]) -> Result<(), ProtocolError> {
        if number < self.received || self.ahead.contains_key(&number) {
            return Ok(());
        }
        // A lane that stands still may delay a frame while others bring any number of later messages.
        let is_next = number == self.received;
        if !is_next && (self.ahead_bytes + payload.len() > 2 * MAX_MESSAGE || number > self.received + 4096) {
            return Err(ProtocolError::Early);
        }
        self.ahead_bytes += payload.len();
        self.ahead.insert(number, (more, payload.to_vec()));
        self.touched.note(number);
        Ok(())
    }

    /// The next complete message.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        while let Entry::Occupied(next) = self.ahead.entry(self.received) {
            steps::step();
            if self.begun.len() + next.get().1.len() > MAX_MESSAGE {
                return Err(ProtocolError::Message(MAX_MESSAGE));
            }
            let (more, bytes) = next.remove();
            self.touched.note(self.received);
            self.received += 1;
            self.ahead_bytes -= bytes.len();
            self.begun.extend(bytes);
            if !more {
                return Ok(Some(std::mem::take(&mut self.begun)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_in_order_and_once() {
        let mut messages = Messages::default();
        let frames = [(0, true, "a"), (1, false, "b"), (2, false, "c")];
        let mut got = Vec::new();
        for index in [2, 1, 1, 0, 0, 2] {
            let (number, more, text) = frames[index];
            messages.on_frame(number, more, text.as_bytes()).unwrap();
            while let Some(message) = messages.next().unwrap() {
                got.push(message);
            }
        }
        assert_eq!(got, [b"ab".to_vec(), b"c".to_vec()]);
        assert_eq!(messages.on_frame(1 << 40, false, b""), Err(ProtocolError::Early));
    }

    #[test]
    fn later_messages_are_put_off_when_too_much_of_them_is_kept_and_the_next_one_never() {
        let mut messages = Messages::default();
        let part = vec![7; MAX_MESSAGE / 2];
        for number in 1..=4 {
            messages.on_frame(number, false, &part).unwrap();
        }
        assert_eq!(messages.on_frame(5, false, &part), Err(ProtocolError::Early));
        messages.on_frame(0, false, &part).unwrap();
        for _ in 0..5 {
            assert_eq!(messages.next().unwrap(), Some(part.clone()));
        }
        messages.on_frame(5, false, &part).unwrap();
        assert_eq!(messages.next().unwrap(), Some(part));
    }

    #[test]
    fn a_message_longer_than_the_bound_breaks_the_protocol() {
        let mut messages = Messages::default();
        let part = vec![7; MAX_MESSAGE / 2 + 1];
        messages.on_frame(0, true, &part).unwrap();
        assert_eq!(messages.next(), Ok(None));
        messages.on_frame(1, true, &part).unwrap();
        assert_eq!(messages.next(), Err(ProtocolError::Message(MAX_MESSAGE)));
    }
}
