//! Streams between a tunnel and its legs: what each event of either side does to the other.

use crate::base::{Base, Bundle};
use crate::keys::{LegKey, PairKey};
use crate::membership::jobs::Job;
use crate::membership::pair_token;
use crate::site::SiteSide;
use crate::site::deliver;
use crate::site::leg::{Leg, Stage};
use crate::site::socket::Socket;
use crate::sys::source::Class;
use crate::sys::timers::SiteDeadline;
use causeway_tunnel::{Event, OpenRequest, StreamId};
use causeway_wire::{Reason, Token, Verdict};
use std::time::Duration;

/// How long a connection of `causeway connect` has, once its command has ended, to deliver what was sent last
/// and to end in order.
pub(in crate::site) const FAREWELL: Duration = Duration::from_secs(10);

impl SiteSide {
    fn leg_of(&self, base: &Base<'_>, pair_key: PairKey, id: StreamId) -> Option<LegKey> {
        base.tunnels.pairs().get(pair_key)?.leg_of(id)
    }

    /// Acts on an event of a stream.
    pub(crate) fn on_stream_event(&mut self, base: &mut Base<'_>, pair: PairKey, event: Event<'_>) {
        match event {
            Event::Data(id, bytes) => self.on_data(base, pair, id, &bytes),
            Event::Sendable(id) => self.schedule_stream(base, pair, id),
            Event::Opened(id) => self.on_opened(base, pair, id),
            Event::Finished(id) => self.on_finished(base, pair, id),
            Event::Reset(id, reason) => self.on_reset(base, pair, id, reason),
            // The loop acts on these.
            Event::Open(..)
            | Event::Message(_)
            | Event::LaneSilent(_)
            | Event::LaneDead(_)
            | Event::Expired => {}
        }
    }

    fn on_data(&mut self, base: &mut Base<'_>, pair_key: PairKey, id: StreamId, bytes: &[u8]) {
        let Some(pair) = base.tunnels.pair_mut(pair_key) else {
            return;
        };
        pair.count_received(bytes.len());
        let Some(leg_key) = pair.leg_of(id) else {
            return;
        };
        let Some(leg) = self.legs.get_mut(leg_key) else {
            return;
        };
        match leg.deliver(bytes) {
            Ok(0) => {}
            Ok(count) => pair.tunnel().consumed(id, count),
            Err(_) => self.on_reset_by_process(base, leg_key),
        }
    }

    /// The far side has ended its half of a stream.
    fn on_finished(&mut self, base: &mut Base<'_>, pair_key: PairKey, id: StreamId) {
        if let Some(leg) = self.leg_of(base, pair_key, id) {
            self.legs[leg].peer_finished = true;
            self.flush_leg(base, leg);
        }
    }

    /// The far side has reset a stream.
    fn on_reset(&mut self, base: &mut Base<'_>, pair_key: PairKey, id: StreamId, reason: Reason) {
        if let Some(leg) = self.leg_of(base, pair_key, id) {
            self.abort_leg(base, leg, reason);
        }
    }

    fn on_opened(&mut self, base: &mut Base<'_>, pair_key: PairKey, id: StreamId) {
        let Some(leg_key) = self.leg_of(base, pair_key, id) else {
            return;
        };
        self.handed.remove(&leg_key);
        if self.legs[leg_key].verdict(Verdict::Connected, "").is_err() {
            return self.break_leg(base, leg_key, Reason::Reset);
        }
        self.flush_leg(base, leg_key);
        self.schedule(base, leg_key);
    }

    /// The kernel has news of a leg's socket.
    pub(in crate::site) fn on_leg(&mut self, base: &mut Base<'_>, key: LegKey, event: &mio::event::Event) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if leg.is_connecting() {
            return self.on_delivery(base, key);
        }
        if leg.is_greeting() {
            leg.end_known |= event.is_read_closed();
            let has_failed = event.is_error() && leg.socket.take_error().is_some();
            return self.on_greeting(base, key, has_failed);
        }
        if leg.is_to_come() {
            // What the process does first is handled once it is known to run.
            return;
        }
        if event.is_error() && leg.socket.take_error().is_some() {
            return self.on_reset_by_process(base, key);
        }
        leg.has_urgent |= event.is_priority();
        if event.is_readable() || event.is_priority() {
            leg.readable = true;
            leg.end_known |= event.is_read_closed();
            self.schedule(base, key);
        }
        if event.is_writable() {
            self.flush_leg(base, key);
        }
    }

    /// A delivery's connect has succeeded or failed.
    fn on_delivery(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        let error = match leg.socket.take_error() {
            Some(error) => error,
            None if leg.socket.stream().peer_addr().is_err() => return,
            None => return self.begin_flow(base, key),
        };
        self.break_leg(base, key, deliver::reason(&error));
    }

    /// Somebody is at the other end of the socket: the far side is told, and bytes flow.
    pub(in crate::site) fn begin_flow(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if let Err(error) = leg.connected() {
            return self.break_leg(base, key, deliver::reason(&error));
        }
        let (pair, id) = (leg.pair, leg.id);
        let is_greeting = leg.is_greeting();
        if let Some(pair) = base.tunnels.pair_mut(pair) {
            pair.tunnel().opened(id);
        }
        if is_greeting {
            return self.begin_greeting(base, key);
        }
        self.flow(base, key);
    }

    /// Bytes may flow both ways.
    pub(in crate::site) fn flow(&mut self, base: &mut Base<'_>, key: LegKey) {
        self.schedule(base, key);
        self.flush_leg(base, key);
    }

    /// Writes the bytes that wait for a process, and tells the tunnel how many were passed on.
    fn flush_leg(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        let (pair_key, id) = (leg.pair, leg.id);
        match leg.flush() {
            Ok(count) => {
                let done = leg.is_done();
                if let Some(pair) = base.tunnels.pair_mut(pair_key).filter(|_| count > 0) {
                    pair.tunnel().consumed(id, count);
                }
                base.touch(pair_key);
                if done {
                    self.drop_leg(base, key);
                }
            }
            Err(_) => self.on_reset_by_process(base, key),
        }
    }

    /// The process has reset its connection. The kernel still has what it sent before, and hands that out
    /// first; so does the stream.
    pub(in crate::site) fn on_reset_by_process(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if leg.read_ended {
            return self.break_leg(base, key, Reason::Reset);
        }
        leg.broken = true;
        leg.readable = true;
        leg.end_known = true;
        self.schedule(base, key);
    }

    /// Queues a leg to be read by its pair's lanes.
    pub(in crate::site) fn schedule(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        let (flows, now) = (!leg.is_to_come(), base.now());
        if leg.readable && flows && !leg.scheduled && !leg.read_ended {
            let pair_key = leg.pair;
            if let Some(pair) = base.tunnels.pair_mut(pair_key) {
                leg.take_turn(key, pair.turns(), now);
            }
            base.touch(pair_key);
        }
    }

    fn schedule_stream(&mut self, base: &mut Base<'_>, pair_key: PairKey, id: StreamId) {
        if let Some(leg) = self.leg_of(base, pair_key, id) {
            self.schedule(base, leg);
        }
    }

    /// The process is gone, or could not be reached: the far side is told.
    pub(in crate::site) fn break_leg(&mut self, base: &mut Base<'_>, key: LegKey, reason: Reason) {
        let Some(leg) = self.legs.get(key) else {
            return;
        };
        let (pair_key, id) = (leg.pair, leg.id);
        if let Some(pair) = base.tunnels.pair_mut(pair_key) {
            pair.tunnel().reset(id, reason);
        }
        leg.socket.reset_on_close();
        base.touch(pair_key);
        self.drop_leg(base, key);
    }

    /// Opens a stream for a socket of this site that the loop has already registered as another kind of
    /// source.
    pub(in crate::site) fn open_stream(
        &mut self,
        base: &mut Base<'_>,
        pair_key: PairKey,
        request: &OpenRequest,
        mut socket: Socket,
        stage: Stage,
    ) -> Result<LegKey, Reason> {
        let Some(pair) = base.tunnels.pair_mut(pair_key) else {
            return Err(Reason::NoTunnel);
        };
        if !pair.tunnel().may_open() {
            return Err(Reason::Exhausted);
        }
        // The name that crosses is useless for any other pair of sites.
        let shared = pair_token::token_for_pair(&request.token, &base.driver.config.site, pair.site());
        let id = pair.tunnel().open(&OpenRequest {
            token: shared,
            target: request.target.clone(),
        });
        self.legs.count_opened();
        let generation = base.driver.next_generation();
        let entry = self.legs.vacant_key();
        let number = Class::Leg.token(entry.0);
        let registered = socket.reregister(base.registry(), number);
        let Some(pair) = base.tunnels.pair_mut(pair_key) else {
            return Err(Reason::NoTunnel);
        };
        if registered.is_err() {
            pair.tunnel().reset(id, Reason::Exhausted);
            return Err(Reason::Exhausted);
        }
        pair.join_leg(id, entry);
        self.legs.insert(Leg::new(
            socket,
            pair_key,
            id,
            (request.token, base.jobs().weight(&request.token)),
            generation,
            stage,
            &base.driver.arena,
        ));
        self.legs[entry].lingers = base.jobs().lingers(&request.token);
        self.legs.count_present();
        self.schedule(base, entry);
        base.touch(pair_key);
        Ok(entry)
    }

    /// Registers a new socket with the loop, as the local end of a stream.
    pub(in crate::site) fn add_leg(
        &mut self,
        base: &mut Base<'_>,
        socket: Socket,
        pair: PairKey,
        id: StreamId,
        token: Token,
        stage: Stage,
    ) -> Result<LegKey, Reason> {
        let generation = base.driver.next_generation();
        let job = (token, base.jobs().weight(&token));
        let key = self.legs.insert(Leg::new(
            socket,
            pair,
            id,
            job,
            generation,
            stage,
            &base.driver.arena,
        ));
        self.legs[key].lingers = base.jobs().lingers(&token);
        let registered = self.legs[key]
            .socket
            .register(base.registry(), Class::Leg.token(key.0));
        let Some(pair) = base.tunnels.pair_mut(pair).filter(|_| registered.is_ok()) else {
            drop(self.legs.try_remove(key));
            return Err(Reason::Exhausted);
        };
        pair.join_leg(id, key);
        self.legs.count_present();
        Ok(key)
    }

    /// The far side is gone, or has refused: the process is told.
    pub(in crate::site) fn abort_leg(&mut self, base: &mut Base<'_>, key: LegKey, reason: Reason) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if matches!(leg.stage, Stage::Asked) {
            if let Some(mut leg) = self.take_leg(base, key) {
                // With unread bytes in it, the socket would be reset at once.
                let _ = leg.take_preface_off();
                let mut socket = leg.socket.into_stream();
                // The socket was registered, or this would not be a leg.
                let _ = base.registry().deregister(&mut socket);
                self.refuse_beside(base, socket, reason);
            }
            return;
        }
        if leg.owes() && !leg.is_last {
            return self.postpone_reset(base, key);
        }
        if matches!(leg.stage, Stage::Awaiting | Stage::Spawning) {
            // The shim reads the verdict, and then the end; a reset could overtake the verdict.
            let far = base.tunnels.pairs().get(leg.pair).map(|pair| pair.site());
            let _ = leg.verdict(Verdict::Failed(reason), far.unwrap_or("a site that is gone"));
        } else {
            leg.socket.reset_on_close();
        }
        self.drop_leg(base, key);
    }

    /// Forgets a leg and closes its socket, which deregisters it: a leg's descriptor has no duplicate. The
    /// socket is closed once the leg's removal is written down: until then, the next worker would look for
    /// it.
    pub(in crate::site) fn drop_leg(&mut self, base: &mut Base<'_>, key: LegKey) {
        if let Some(leg) = self.take_leg(base, key) {
            base.driver.closing.push(leg.socket.into_stream().into());
        }
    }

    /// Forgets a leg, and leaves it to the caller.
    fn take_leg(&mut self, base: &mut Base<'_>, key: LegKey) -> Option<Leg> {
        let leg = self.legs.try_remove(key)?;
        self.handed.remove(&key);
        if let Some(pair) = base.tunnels.pair_mut(leg.pair) {
            pair.part_leg(leg.id);
        }
        if let Some(job) = base.membership.jobs_mut().get_mut(&leg.token) {
            job.sent_bytes += leg.sent_bytes;
            job.received_bytes += leg.received_bytes;
        }
        Some(leg)
    }

    /// Ends all streams of a job.
    pub(in crate::site) fn end_streams(&mut self, base: &mut Base<'_>, token: &Token) {
        for key in self.legs.keys_for_job(token) {
            self.break_leg(base, key, Reason::Reset);
        }
    }

    /// Ends the streams of a job that is over.
    pub(crate) fn end_job(&mut self, base: &mut Base<'_>, token: &Token, job: &Job) {
        // A bare connection ends when its two ends do, which have a moment for that: a reset at once would
        // discard what was sent last to the far side.
        if job.bare {
            if !job.lingers {
                base.set_deadline(FAREWELL, SiteDeadline::Streams(*token));
            }
            return;
        }
        if job.transparent {
            self.leave_transparent_streams(base, token);
        }
        self.end_streams(base, token);
    }

    /// Ends these streams, whose tunnel is over or about to end.
    pub(crate) fn abort(&mut self, base: &mut Base<'_>, legs: Vec<LegKey>) {
        for leg in legs {
            self.abort_leg(base, leg, Reason::NoTunnel);
        }
    }
}
