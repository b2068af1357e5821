//! Decides whose bytes are sent next. Small frames overtake bulk; bulk is sent in turns by jobs and their
//! streams.

use crate::frame::MAX_PAYLOAD;
use causeway_wire::Token;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The largest read that counts as a message, not as a part of bulk. MPIs send up to this size at once.
const SMALL_READ: usize = 4096;

/// How long a stream must have had nothing to send to be urgent again, as small frames are: longer than the
/// gap between two chunks of a sender that is merely slow.
const IDLE: Duration = Duration::from_millis(10);

/// How many small frames in a row precede a turn of bulk: so bulk slows a flood of small frames by a few per
/// cent, and never stops.
const SMALL_RUN: u32 = 32;

/// How one stream has behaved.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    bulk: bool,
    emptied: Option<Instant>,
}

impl Pace {
    /// Records that `count` bytes were read from the stream's socket; `emptied` says that there were no more.
    pub fn on_read(&mut self, count: usize, emptied: bool, now: Instant) {
        self.bulk = count > SMALL_READ;
        self.emptied = emptied.then_some(now);
    }

    /// Whether the stream's next frame precedes bulk.
    pub fn is_urgent(&self, now: Instant) -> bool {
        !self.bulk
            || self
                .emptied
                .is_some_and(|at| now.saturating_duration_since(at) >= IDLE)
    }
}

/// How much a job of weight 1 may send before the next job has its turn: one large frame.
const QUANTUM: i64 = MAX_PAYLOAD as i64;

/// Streams that may have something to send, by the keys of a driver. Small frames are sent in the order in
/// which they came; bulk by deficit round robin over the jobs (Shreedhar and Varghese 1995), and in turn over
/// the streams of each job.
#[derive(Debug, Default)]
pub struct Turns {
    urgent: VecDeque<usize>,
    /// The jobs; the first one has the turn.
    jobs: VecDeque<Job>,
    run: u32,
    /// Whether the last turn was one of bulk.
    bulk: bool,
}

#[derive(Debug)]
struct Job {
    token: Token,
    weight: u32,
    credit: i64,
    streams: VecDeque<usize>,
}

impl Turns {
    /// Queues an urgent stream behind the other urgent ones.
    pub fn push_urgent(&mut self, key: usize) {
        self.urgent.push_back(key);
    }

    /// Queues a stream of bulk behind the others of its job. A job sends `weight` times as many bytes as one
    /// of weight 1.
    pub fn push_bulk(&mut self, key: usize, token: Token, weight: u32) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.token == token) {
            return job.streams.push_back(key);
        }
        let weight = weight.max(1);
        self.jobs.push_back(Job {
            token,
            weight,
            credit: QUANTUM * i64::from(weight),
            streams: VecDeque::from([key]),
        });
    }

    /// Removes and returns the stream whose turn it is. Before the next call, [`Turns::spent`] must be told
    /// how much it has sent, and the stream must be queued again if it has more.
    pub fn pop(&mut self) -> Option<usize> {
        let starved = self.run >= SMALL_RUN && self.jobs.iter().any(|job| !job.streams.is_empty());
        let urgent = if starved { None } else { self.urgent.pop_front() };
        self.bulk = urgent.is_none();
        if self.bulk {
            self.run = 0;
            return self.pop_bulk();
        }
        self.run += 1;
        urgent
    }

    fn pop_bulk(&mut self) -> Option<usize> {
        while let Some(mut job) = self.jobs.pop_front() {
            if job.streams.is_empty() {
                // The job had nothing left after its last turn.
                continue;
            }
            if job.credit <= 0 {
                job.credit += QUANTUM * i64::from(job.weight);
                self.jobs.push_back(job);
                continue;
            }
            let key = job.streams.pop_front();
            self.jobs.push_front(job);
            return key;
        }
        None
    }

    /// Counts the bytes that were sent in the last turn.
    pub fn spent(&mut self, bytes: usize) {
        if let Some(job) = self.jobs.front_mut().filter(|_| self.bulk) {
            job.credit -= bytes as i64;
        }
    }

    /// Whether no stream waits.
    pub fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.jobs.iter().all(|job| job.streams.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const A: Token = Token([1; Token::BYTES]);
    const B: Token = Token([2; Token::BYTES]);

    #[test]
    fn small_frames_overtake_bulk_and_do_not_starve_it() {
        let mut turns = Turns::default();
        turns.push_bulk(1, A, 1);
        turns.push_bulk(2, A, 1);
        turns.push_urgent(3);
        assert_eq!(
            [turns.pop(), turns.pop(), turns.pop(), turns.pop()],
            [Some(3), Some(1), Some(2), None]
        );
        turns.push_bulk(1, A, 1);
        let mut waited = 0;
        loop {
            turns.push_urgent(3);
            match turns.pop() {
                Some(1) => break,
                _ => waited += 1,
            }
        }
        assert_eq!(waited, SMALL_RUN);
    }

    /// How many bytes each stream sends if all always have more; `streams` are key, job, weight and bytes per
    /// turn.
    fn shares(streams: &[(usize, Token, u32, usize)], turns_taken: usize) -> HashMap<usize, usize> {
        let mut turns = Turns::default();
        for (key, token, weight, _) in streams {
            turns.push_bulk(*key, *token, *weight);
        }
        let mut sent = HashMap::new();
        for _ in 0..turns_taken {
            let key = turns.pop().unwrap();
            let (_, token, weight, bytes) = streams[key];
            *sent.entry(key).or_default() += bytes;
            turns.spent(bytes);
            turns.push_bulk(key, token, weight);
        }
        sent
    }

    #[test]
    fn jobs_share_by_weight_however_many_streams_they_have_and_however_short_their_frames_are() {
        let heavy = shares(&[(0, A, 3, 60_000), (1, B, 1, 20_000)], 60_000);
        let ratio = heavy[&0] as f64 / heavy[&1] as f64;
        assert!((2.99..3.01).contains(&ratio), "{ratio}");
        let many = shares(
            &[
                (0, A, 1, 60_000),
                (1, B, 1, 60_000),
                (2, B, 1, 60_000),
                (3, B, 1, 60_000),
            ],
            60_000,
        );
        let ratio = many[&0] as f64 / (many[&1] + many[&2] + many[&3]) as f64;
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
        assert!(many[&1].abs_diff(many[&3]) <= 120_000);
    }

    #[test]
    fn a_job_that_pauses_does_not_hold_up_the_others_and_gathers_no_credit() {
        let mut turns = Turns::default();
        turns.push_bulk(0, A, 100);
        turns.push_bulk(1, B, 1);
        assert_eq!(turns.pop(), Some(0));
        turns.spent(1);
        assert_eq!(turns.pop(), Some(1));
        turns.spent(MAX_PAYLOAD);
        assert!(turns.is_empty());
        assert_eq!(turns.pop(), None);
    }

    #[test]
    fn a_stream_is_urgent_until_it_fills_frames_and_again_when_it_was_idle() {
        let now = Instant::now();
        let mut pace = Pace::default();
        assert!(pace.is_urgent(now));
        pace.on_read(60_000, true, now);
        assert!(!pace.is_urgent(now));
        assert!(pace.is_urgent(now + IDLE));
        pace.on_read(60_000, false, now);
        assert!(!pace.is_urgent(now + IDLE));
        pace.on_read(100, true, now);
        assert!(pace.is_urgent(now));
    }
}
