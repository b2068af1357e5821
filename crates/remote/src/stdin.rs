//! Sends this process's standard input to a command on a node, with no more in flight than the window allows.

use super::frame::{Frame, MAX_DATA, MOST_STDIN, STDIN_WINDOW};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// By how much the time of a window may exceed the shortest one so far if the window is to grow: an interrupt
/// waits behind the bytes in flight, so these must take little longer than a round trip.
const SLACK: Duration = Duration::from_millis(250);

/// The bytes of standard input that may be in flight, see [`STDIN_WINDOW`].
#[derive(Default)]
pub struct Window {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    size: usize,
    used: usize,
    /// Bytes that were sent, and that were given back, since the beginning.
    sent: u64,
    back: u64,
    /// A full window whose time is measured: its last byte, and when that was sent.
    timed: Option<(u64, Instant)>,
    shortest: Option<Duration>,
}

impl Default for State {
    fn default() -> State {
        State {
            size: STDIN_WINDOW,
            used: 0,
            sent: 0,
            back: 0,
            timed: None,
            shortest: None,
        }
    }
}

impl State {
    fn room(&self) -> usize {
        self.size.saturating_sub(self.used)
    }

    fn take(&mut self, bytes: usize, now: Instant) {
        self.used += bytes;
        self.sent += bytes as u64;
        if self.room() == 0 {
            self.timed.get_or_insert((self.sent, now));
        }
    }

    /// Makes the window grow if a whole one was given back soon: only then does the window bound the rate,
    /// and not the link or the command.
    fn give_back(&mut self, bytes: usize, now: Instant) {
        self.used = self.used.saturating_sub(bytes);
        self.back += bytes as u64;
        let Some((_, began)) = self.timed.filter(|(last, _)| *last <= self.back) else {
            return;
        };
        self.timed = None;
        let took = now.saturating_duration_since(began);
        let shortest = self.shortest.map_or(took, |shortest| shortest.min(took));
        self.shortest = Some(shortest);
        if took < shortest + SLACK {
            self.size = (2 * self.size).min(MOST_STDIN);
        }
    }
}

impl Window {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for room and returns how much there is.
    fn room(&self) -> usize {
        let state = self.changed.wait_while(self.state(), |state| state.room() == 0);
        state.unwrap_or_else(|poisoned| poisoned.into_inner()).room()
    }

    fn take(&self, bytes: usize) {
        self.state().take(bytes, Instant::now());
    }

    /// Gives bytes back that the command has read.
    pub fn give_back(&self, bytes: usize) {
        self.state().give_back(bytes, Instant::now());
        self.changed.notify_all();
    }
}

/// Sends standard input until it or the stream ends.
pub fn send(writer: &Mutex<UnixStream>, window: &Window) {
    let mut buffer = vec![0; MAX_DATA];
    loop {
        let room = window.room().min(MAX_DATA);
        let read = match io::stdin().read(&mut buffer[..room]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        window.take(read);
        let frame = if read == 0 {
            Frame::StdinEnd
        } else {
            Frame::Stdin(buffer[..read].to_vec())
        };
        let mut writer = writer.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The thread that reads reports a broken stream.
        if frame.write(&mut *writer).is_err() || read == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_waits_for_credit() {
        let window = Window::default();
        window.take(STDIN_WINDOW - 1);
        assert_eq!(window.room(), 1);
        window.take(1);
        window.give_back(5);
        assert_eq!(window.room(), 5);
    }

    /// Sends whatever there is room for, over a link with this round trip and rate (in bytes a second), to a
    /// command that reads at this rate. Returns the resulting rate, and the size of the window.
    fn sent(round_trip: Duration, link: f64, command: f64) -> (f64, usize) {
        let began = Instant::now();
        let (mut state, mut now) = (State::default(), Duration::ZERO);
        // When the link is free, and when the command has read everything sent so far.
        let (mut free, mut taken) = (Duration::ZERO, Duration::ZERO);
        let mut coming = std::collections::VecDeque::new();
        while now < Duration::from_secs(30) {
            while state.room() > 0 {
                let bytes = state.room().min(MAX_DATA);
                state.take(bytes, began + now);
                free = free.max(now) + Duration::from_secs_f64(bytes as f64 / link);
                taken = taken.max(free) + Duration::from_secs_f64(bytes as f64 / command);
                coming.push_back((taken + round_trip, bytes));
            }
            let Some((at, bytes)) = coming.pop_front() else {
                break;
            };
            now = now.max(at);
            state.give_back(bytes, began + now);
        }
        (state.back as f64 / now.as_secs_f64(), state.size)
    }

    #[test]
    fn a_long_fast_link_is_filled_and_what_is_under_way_takes_no_time_on_a_slow_one() {
        let fast = 125e6;
        for milliseconds in [1, 12, 100] {
            let round_trip = Duration::from_millis(milliseconds);
            let (rate, _) = sent(round_trip, fast, 1e9);
            assert!(rate > 0.8 * fast, "{milliseconds} ms: {rate}");
        }
        for (link, command) in [(1.25e6, 1e9), (fast, 1e6)] {
            for milliseconds in [12, 300] {
                let round_trip = Duration::from_millis(milliseconds);
                let (rate, size) = sent(round_trip, link, command);
                let least = link.min(command);
                assert!(rate > 0.7 * least, "{link} {command} {milliseconds} ms: {rate}");
                let waits = size as f64 / least;
                // Twice the longest time that a window may take and still grow.
                let first = (STDIN_WINDOW + MAX_DATA) as f64 / least;
                let most = 2.0 * (first + (round_trip + SLACK).as_secs_f64());
                assert!(waits < most, "{link} {command}: {waits} s");
            }
        }
    }

    #[test]
    fn a_command_that_never_reads_holds_a_window_and_no_more() {
        let window = Window::default();
        window.take(window.room());
        assert_eq!(window.state().room(), 0);
        assert_eq!(window.state().size, STDIN_WINDOW);
    }
}
