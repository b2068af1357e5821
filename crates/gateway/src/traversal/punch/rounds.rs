//! How two gateways that cannot be dialled meet, without sockets or clock.
//!
//! ```text
//! Locating ── where am I seen? ──> Calling ── the far one answers ──> Knocking ── a knock ──> Dialling ──> Met
//!    |                                |                                   |       (one of both)   |
//!    └────────────────────────────────┴─── nothing in time: Resting <─────┴───────────────────────┘
//! ```
//! The site that sorts first dials, at the address that the first knock came from. So a NAT that maps one of
//! the two anew for each destination is no obstacle, if the other's firewall lets in other ports of an
//! address to which it has sent.
//!
//! Over TCP, a knock is a connection that both try to make at the same time, and a connection that comes up
//! is the lane's: there, dialling means speaking first.

use super::message::{Key, MAX_ADDRESSES};
use crate::tunnels::origin::Way;
use crate::tunnels::peers::dial::REDIAL;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Pause before the first round, and the longest between two.
const FIRST_BACKOFF: Duration = Duration::from_secs(2);
const LAST_BACKOFF: Duration = Duration::from_secs(60);

/// How long the broker is asked, once for each step: the broker is close compared with this.
pub(crate) const LOCATING: Duration = Duration::from_secs(4);

/// How long the far gateway may take to answer: a poll of its may just have broken off, and it has to ask the
/// broker its own question.
pub(crate) const CALLING: Duration = Duration::from_secs(10);

/// How long to knock: some round trips around the Earth after both know of each other, for a busy far
/// gateway.
pub(crate) const KNOCKING: Duration = Duration::from_secs(6);

/// Time between questions, and between knocks.
const STEP: Duration = Duration::from_millis(250);

/// Time between connections that are refused: some NATs and hosts refuse what they do not know yet, and only
/// what crosses on the way gets through. The two sites keep different paces, so that they soon both try
/// within a few milliseconds, however they began.
const PACES: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(47)];

/// How much later the site that sorts first connects: by then, the other's first segments have opened the
/// other's firewall, unless the broker is far away. If not, the kernel sends another segment after a second.
const HOLD: Duration = Duration::from_millis(150);

/// An order of a meeting to its owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask the broker at which address it sees this gateway.
    Locate,
    /// Tell the far gateway where to find this one.
    Call { answers: bool },
    /// Send a knock; over TCP, connect, unless that is in progress.
    Knock { to: SocketAddr, key: Key },
    /// Dial a lane to this address, or begin one on the connection to it.
    Dial { at: SocketAddr },
    /// The round failed; the meeting's `trouble` says why. The meeting continues later.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A lane exists, or nothing can be done yet.
    Met,
    Resting {
        until: Instant,
    },
    /// The far gateway is told once it is known at which address this one is seen; `answers`: it has asked.
    Locating {
        until: Instant,
        step: Instant,
        answers: bool,
    },
    Calling {
        until: Instant,
    },
    Knocking {
        until: Instant,
        step: Instant,
    },
    /// A handshake is in progress, which has deadlines of its own.
    Dialling,
}

/// The state of meeting one far gateway.
#[derive(Debug)]
pub(crate) struct Meeting {
    /// The key that the far gateway's knocks contain.
    pub(crate) key: Key,
    /// Why the last round failed.
    pub(crate) trouble: String,
    way: Way,
    /// Whether this site sorts first.
    dials: bool,
    phase: Phase,
    backoff: Duration,
    /// What the far gateway has told: where to knock, with which key.
    addresses: Vec<SocketAddr>,
    their_key: Key,
}

impl Meeting {
    pub(crate) fn new(way: Way, key: Key, dials: bool) -> Meeting {
        Meeting {
            key,
            trouble: String::new(),
            way,
            dials,
            phase: Phase::Met,
            backoff: FIRST_BACKOFF,
            addresses: Vec::new(),
            their_key: Key::default(),
        }
    }

    /// The last lane was lost or is silent. If it never led to a tunnel, lanes are not punched anew at the
    /// same pace for ever.
    pub(crate) fn on_lost(&mut self, introduced: bool, head_start: Duration, now: Instant) {
        match (introduced, self.phase) {
            (true, _) => self.begin_after(REDIAL + head_start, now),
            (false, Phase::Met) => self.rest(now),
            (false, _) => {}
        }
    }

    /// There is no lane: a round begins after a pause, unless one is in progress.
    pub(crate) fn begin_after(&mut self, pause: Duration, now: Instant) {
        let until = now + pause;
        match self.phase {
            Phase::Met => self.phase = Phase::Resting { until },
            Phase::Resting { until: later } if later > until => self.phase = Phase::Resting { until },
            _ => {}
        }
    }

    /// Begins after the usual pause, so that a gateway that can dial after all does so first.
    pub(crate) fn begin(&mut self, head_start: Duration, now: Instant) {
        self.begin_after(FIRST_BACKOFF + head_start, now);
    }

    /// A lane is up.
    pub(crate) fn on_met(&mut self) {
        self.phase = Phase::Met;
    }

    /// The lane leads to a tunnel.
    pub(crate) fn on_introduced(&mut self) {
        self.trouble.clear();
        self.backoff = FIRST_BACKOFF;
    }

    /// Whether a round is in progress.
    pub(crate) fn is_in_round(&self) -> bool {
        matches!(
            self.phase,
            Phase::Locating { .. } | Phase::Calling { .. } | Phase::Knocking { .. }
        )
    }

    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting { .. })
    }

    /// The lane that was dialled did not come up. False if none was dialled.
    pub(crate) fn on_dial_failed(&mut self, why: &str, now: Instant) -> bool {
        let dialled = self.phase == Phase::Dialling;
        if dialled {
            why.clone_into(&mut self.trouble);
            self.rest(now);
        }
        dialled
    }

    /// The broker cannot be asked.
    pub(crate) fn on_locating_failed(&mut self, why: String, now: Instant, out: &mut Vec<Action>) {
        if let Phase::Locating { .. } = self.phase {
            self.fail(why, now, out);
        }
    }

    /// This gateway now knows at which address it is seen.
    pub(crate) fn on_located(&mut self, now: Instant, out: &mut Vec<Action>) {
        let Phase::Locating { answers, .. } = self.phase else {
            return;
        };
        out.push(Action::Call { answers });
        self.phase = match answers {
            true => self.knocking(now),
            false => Phase::Calling { until: now + CALLING },
        };
        self.on_time(now, out);
    }

    /// The far gateway says where to find it.
    pub(crate) fn on_call(
        &mut self,
        their_key: Key,
        addresses: Vec<SocketAddr>,
        answers: bool,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        (self.their_key, self.addresses) = (their_key, addresses);
        match &mut self.phase {
            // Either the lane that is being dialled comes up, or there is a next round.
            Phase::Dialling => return,
            Phase::Locating { answers: owed, .. } => {
                *owed |= !answers;
                return;
            }
            // An answer that arrives too late.
            Phase::Met | Phase::Resting { .. } if answers => return,
            Phase::Met | Phase::Resting { .. } => self.phase = locating(now, true),
            Phase::Calling { .. } | Phase::Knocking { .. } => {
                if !answers {
                    out.push(Action::Call { answers: true });
                }
                self.phase = self.knocking(now);
            }
        }
        self.on_time(now, out);
    }

    /// A knock with our key came from this address: that is where the far gateway is seen from here.
    pub(crate) fn on_knock(&mut self, from: SocketAddr, out: &mut Vec<Action>) {
        let (Phase::Calling { .. } | Phase::Knocking { .. }) = self.phase else {
            return;
        };
        if self.dials {
            self.phase = Phase::Dialling;
            out.push(Action::Dial { at: from });
        } else if !self.addresses.contains(&from) && self.addresses.len() < MAX_ADDRESSES {
            self.addresses.push(from);
        }
    }

    /// When something is due next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Met | Phase::Dialling => None,
            Phase::Resting { until } | Phase::Calling { until } => Some(until),
            Phase::Locating { until, step, .. } | Phase::Knocking { until, step } => Some(until.min(step)),
        }
    }

    /// Acts on what is due.
    pub(crate) fn on_time(&mut self, now: Instant, out: &mut Vec<Action>) {
        if let Phase::Resting { until } = self.phase
            && until <= now
        {
            self.phase = locating(now, false);
        }
        match &mut self.phase {
            Phase::Locating { until, .. } if *until <= now => {
                let why = format!(
                    "the broker's port does not answer over {} within {LOCATING:?}",
                    self.way
                );
                self.fail(why, now, out);
            }
            Phase::Locating { step, .. } if *step <= now => {
                *step = now + STEP;
                out.push(Action::Locate);
            }
            Phase::Calling { until } if *until <= now => {
                let why = format!("no answer by way of the broker within {CALLING:?}");
                self.fail(why, now, out);
            }
            Phase::Knocking { until, .. } if *until <= now => {
                let (what, lets_out) = match self.way {
                    Way::Udp => ("no datagram came through", "no UDP out"),
                    Way::Tcp => ("no connection came up", "no TCP out to any port"),
                };
                let why = format!(
                    "{what} within {KNOCKING:?}: a firewall lets {lets_out}, or a NAT at one of the sites uses a different port for each \
                     destination"
                );
                self.fail(why, now, out);
            }
            Phase::Knocking { step, .. } if *step <= now => {
                *step = now
                    + match (self.way, self.dials) {
                        (Way::Udp, _) => STEP,
                        (Way::Tcp, true) => PACES[0],
                        (Way::Tcp, false) => PACES[1],
                    };
                let key = self.their_key;
                out.extend(self.addresses.iter().map(|to| Action::Knock { to: *to, key }));
            }
            _ => {}
        }
    }

    fn knocking(&self, now: Instant) -> Phase {
        let holds = self.way == Way::Tcp && self.dials;
        Phase::Knocking {
            until: now + KNOCKING,
            step: if holds { now + HOLD } else { now },
        }
    }

    fn fail(&mut self, why: String, now: Instant, out: &mut Vec<Action>) {
        self.trouble = why;
        self.rest(now);
        out.push(Action::Failed);
    }

    fn rest(&mut self, now: Instant) {
        self.phase = Phase::Resting {
            until: now + self.backoff,
        };
        self.backoff = (self.backoff * 2).min(LAST_BACKOFF);
    }
}

fn locating(now: Instant, answers: bool) -> Phase {
    Phase::Locating {
        until: now + LOCATING,
        step: now,
        answers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn knock(port: u16, key: Key) -> Action {
        Action::Knock { to: at(port), key }
    }

    fn time(meeting: &mut Meeting, now: Instant) -> Vec<Action> {
        let mut out = Vec::new();
        meeting.on_time(now, &mut out);
        out
    }

    #[test]
    fn two_gateways_tell_each_other_where_they_are_and_the_first_one_dials_where_a_knock_came_from() {
        let now = Instant::now();
        let (mut first, mut second) = (
            Meeting::new(Way::Udp, [1; 16], true),
            Meeting::new(Way::Udp, [2; 16], false),
        );
        first.begin(Duration::ZERO, now);
        assert_eq!(time(&mut first, now + SECOND), []);
        let now = now + FIRST_BACKOFF;
        assert_eq!(time(&mut first, now), [Action::Locate]);
        assert_eq!(time(&mut first, now), [], "once in a step");
        assert_eq!(time(&mut first, now + STEP), [Action::Locate], "it may be lost");
        let mut out = Vec::new();
        first.on_located(now, &mut out);
        assert_eq!(std::mem::take(&mut out), [Action::Call { answers: false }]);
        second.on_call([1; 16], vec![at(1)], false, now, &mut out);
        assert_eq!(std::mem::take(&mut out), [Action::Locate]);
        second.on_located(now, &mut out);
        let answer = Action::Call { answers: true };
        assert_eq!(std::mem::take(&mut out), [answer, knock(1, [1; 16])]);
        first.on_call([2; 16], vec![at(2)], true, now, &mut out);
        assert_eq!(std::mem::take(&mut out), [knock(2, [2; 16])]);
        second.on_knock(at(9), &mut out);
        assert_eq!(out, []);
        let knocks = time(&mut second, now + STEP);
        assert_eq!(
            knocks,
            [knock(1, [1; 16]), knock(9, [1; 16])],
            "and where one came from"
        );
        first.on_knock(at(8), &mut out);
        assert_eq!(std::mem::take(&mut out), [Action::Dial { at: at(8) }]);
        first.on_knock(at(8), &mut out);
        assert_eq!(out, [], "once");
        first.on_met();
        assert_eq!(first.deadline(), None);
    }

    #[test]
    fn two_gateways_that_call_at_the_same_time_meet_as_well() {
        let now = Instant::now();
        let mut meeting = Meeting::new(Way::Udp, [1; 16], false);
        let mut out = Vec::new();
        meeting.begin_after(Duration::ZERO, now);
        meeting.on_time(now, &mut out);
        meeting.on_call([2; 16], vec![at(2)], false, now, &mut out);
        meeting.on_located(now, &mut out);
        let answer = Action::Call { answers: true };
        assert_eq!(out, [Action::Locate, answer, knock(2, [2; 16])]);
        out.clear();
        meeting.on_call([2; 16], vec![at(3)], false, now + SECOND, &mut out);
        let answer = Action::Call { answers: true };
        assert_eq!(out, [answer, knock(3, [2; 16])], "it has moved");
    }

    #[test]
    fn every_phase_ends_in_time_says_why_and_is_tried_again_ever_more_rarely() {
        let mut now = Instant::now();
        let mut meeting = Meeting::new(Way::Udp, [1; 16], true);
        let mut pauses = Vec::new();
        meeting.begin(Duration::ZERO, now);
        for round in 0..8 {
            now = meeting.deadline().unwrap();
            let mut out = time(&mut meeting, now);
            if round > 0 {
                meeting.on_located(now, &mut out);
            }
            if round > 1 {
                meeting.on_call([2; 16], vec![at(2)], true, now, &mut out);
            }
            let failed = loop {
                now = meeting.deadline().unwrap();
                if let Some(Action::Failed) = time(&mut meeting, now).pop() {
                    break meeting.trouble.clone();
                }
            };
            let expected = ["does not answer over UDP", "no answer by way of", "no datagram"][round.min(2)];
            assert!(failed.contains(expected), "{failed}");
            pauses.push((meeting.deadline().unwrap() - now).as_secs());
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_lane_that_fails_or_dies_is_punched_anew_and_late_words_begin_nothing() {
        let now = Instant::now();
        let mut meeting = Meeting::new(Way::Udp, [1; 16], true);
        let mut out = Vec::new();
        meeting.on_knock(at(1), &mut out);
        meeting.on_call([2; 16], vec![at(2)], true, now, &mut out);
        meeting.on_located(now, &mut out);
        assert_eq!((out.len(), meeting.deadline()), (0, None));
        assert!(!meeting.on_dial_failed("none", now));
        meeting.on_call([2; 16], vec![at(2)], false, now, &mut out);
        meeting.on_located(now, &mut out);
        meeting.on_knock(at(2), &mut out);
        assert_eq!(out.pop(), Some(Action::Dial { at: at(2) }));
        meeting.begin_after(Duration::ZERO, now);
        assert_eq!(meeting.deadline(), None, "a handshake is under way");
        assert!(meeting.on_dial_failed("refused", now));
        assert_eq!(meeting.trouble, "refused");
        assert_eq!(meeting.deadline(), Some(now + FIRST_BACKOFF));
        meeting.on_met();
        meeting.begin_after(STEP, now);
        assert_eq!(meeting.deadline(), Some(now + STEP));
    }

    #[test]
    fn over_tcp_both_connect_until_one_comes_up_on_which_the_first_speaks() {
        let now = Instant::now();
        let mut meetings = [true, false].map(|dials| Meeting::new(Way::Tcp, Key::default(), dials));
        let mut out = Vec::new();
        for meeting in &mut meetings {
            meeting.begin(STEP, now);
            assert_eq!(
                time(meeting, now + FIRST_BACKOFF),
                [],
                "the other way has a head start"
            );
            assert_eq!(time(meeting, now + FIRST_BACKOFF + STEP), [Action::Locate]);
            meeting.on_located(now, &mut out);
            out.clear();
            meeting.on_call(Key::default(), vec![at(1)], true, now, &mut out);
        }
        assert_eq!(out, [knock(1, Key::default())], "the first one's comes later");
        // However far apart they began, sooner or later a knock of each falls on the same moment.
        let knocks = |meeting: &mut Meeting, began: Duration| -> Vec<Duration> {
            let mut moments = Vec::new();
            while moments.len() < 40 {
                let at = meeting.deadline().unwrap();
                assert_eq!(time(meeting, at), [knock(1, Key::default())]);
                moments.push(at - now + began);
            }
            moments
        };
        let first = knocks(&mut meetings[0], Duration::ZERO);
        let second = knocks(&mut meetings[1], Duration::from_millis(20));
        let apart = first
            .iter()
            .flat_map(|one| second.iter().map(|other| one.abs_diff(*other)));
        assert!(apart.min().unwrap() <= Duration::from_millis(4));
        let [first, second] = &mut meetings;
        out.clear();
        second.on_knock(at(1), &mut out);
        assert_eq!((out.len(), second.is_in_round()), (0, true));
        first.on_knock(at(1), &mut out);
        assert_eq!(out, [Action::Dial { at: at(1) }]);
        assert!(!first.is_in_round() && first.on_dial_failed("refused", now));
        let late = time(second, now + KNOCKING);
        assert_eq!(late, [Action::Failed]);
        assert!(second.trouble.starts_with("no connection came up within 6s"));
    }
}
