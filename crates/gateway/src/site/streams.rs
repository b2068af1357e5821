//! Streams between a tunnel and its legs: what each event of either side does to the other.

use crate::base::Base;
use crate::keys::{LegKey, PairKey};
use crate::site::SiteSide;
use crate::site::deliver;
use crate::site::leg::{Leg, Socket, Stage};
use crate::site::transparent;
use crate::sys::source::Class;
use crate::sys::timers::SiteDeadline;
use causeway_control::audit::AuditEvent;
use causeway_tunnel::{Event, StreamId};
use causeway_wire::{Preface, Reason, Token, Verdict};
use mio::net::TcpStream;
use std::io;
use std::net::SocketAddr;

/// What becomes of a stream that is to reach an address of this site.
pub(crate) enum Delivery {
    /// A connection is under way.
    Begun,
    /// It is for a process that counts, which is still to be started.
    Sink,
}

/// Writes down that a connection of `causeway connect` is let in. Those of an MPI's processes are too many,
/// and the processes themselves are written down.
fn record_connection(base: &Base<'_>, token: Token, site: &str, destination: SocketAddr) -> io::Result<()> {
    let Some(job) = base.membership.jobs().get(&token).filter(|job| job.plain) else {
        return Ok(());
    };
    let mut entry = base.driver.audit.entry(AuditEvent::Connect);
    site.clone_into(&mut entry.site);
    entry.user.clone_from(&job.user);
    entry.name.clone_from(&job.name);
    entry.job = token.hint();
    entry.node = destination.to_string();
    base.driver.audit.write(entry)
}

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

    /// One site may have three quarters of the files that this gateway may open, in streams: connections of
    /// its own site, of the others and of commands need some too.
    pub(crate) fn refuse_stream(&mut self, base: &mut Base<'_>, pair_key: PairKey) -> Result<(), Reason> {
        let site = base.tunnels.pairs().get(pair_key).map(|pair| pair.site());
        let text = "it has as many streams as three quarters of this gateway's files (ulimit -n)";
        base.driver
            .log
            .refuse("streams", format_args!("site {}", site.unwrap_or_default()), text);
        Err(Reason::Exhausted)
    }

    pub(crate) fn open_delivery(
        &mut self,
        base: &mut Base<'_>,
        pair_key: PairKey,
        id: StreamId,
        token: Token,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Result<Delivery, Reason> {
        let site = base
            .tunnels
            .pairs()
            .get(pair_key)
            .map(|pair| pair.site().to_owned())
            .unwrap_or_default();
        let asked = destination;
        let own_site = base.membership.directory().own_site();
        let destination = SocketAddr::new(own_site.real(asked.ip()), asked.port());
        match self.judge_delivery(base, &site, token, source, asked, destination) {
            Ok(Delivery::Begun) => {}
            Ok(Delivery::Sink) => return Ok(Delivery::Sink),
            Err((kind, why)) => {
                base.membership
                    .record_refusal(base.driver, kind, &site, token, why);
                return Err(Reason::Denied);
            }
        }
        if let Err(error) = record_connection(base, token, &site, destination) {
            base.driver.log.refuse("audit", &site, error);
            return Err(Reason::Exhausted);
        }
        let asked = Preface {
            source,
            destination: asked,
            token,
            wants_verdict: false,
        };
        let (preface, socket) = self.connect(base, &asked, destination)?;
        let leg = self.add_leg(
            base,
            Socket::Tcp(socket),
            pair_key,
            id,
            token,
            Stage::Connecting { preface },
        )?;
        let generation = self.legs[leg].generation;
        base.driver
            .set_deadline(deliver::CONNECT_DEADLINE, SiteDeadline::Delivery(leg, generation));
        Ok(Delivery::Begun)
    }

    /// Begins the connection that a job's streams of its kind get, and says what goes first over it.
    fn connect(
        &mut self,
        base: &mut Base<'_>,
        asked: &Preface,
        destination: SocketAddr,
    ) -> Result<(Vec<u8>, TcpStream), Reason> {
        let (jobs, lan) = (base.membership.jobs(), &base.driver.config.lan);
        let (preface, socket) = if jobs.is_transparent(&asked.token) {
            (Vec::new(), transparent::connect(asked.source, destination))
        } else if jobs.is_plain(&asked.token) {
            (Vec::new(), deliver::connect_plainly(lan, destination))
        } else {
            let preface = asked.encode().map_err(|_| Reason::Protocol)?;
            (preface, self.ports.connect(lan, destination))
        };
        match socket {
            Ok(socket) => Ok((preface, socket)),
            Err(error) => {
                let text = format_args!("connect: {error}");
                base.driver.log.refuse("delivery", destination, text);
                Err(deliver::reason(&error))
            }
        }
    }

    /// Puts a new socket under the loop's care as the local end of a stream.
    pub(crate) fn add_leg(
        &mut self,
        base: &mut Base<'_>,
        socket: Socket,
        pair: PairKey,
        id: StreamId,
        token: Token,
        stage: Stage,
    ) -> Result<LegKey, Reason> {
        let generation = base.driver.next_generation();
        let job = (token, base.membership.jobs().weight(&token));
        let key = self
            .legs
            .insert(Leg::new(socket, pair, id, job, generation, stage));
        self.legs[key].lingers = base.membership.jobs().lingers(&token);
        let registered = self.legs[key]
            .socket
            .register(base.driver.registry(), Class::Leg.token(key.0));
        let Some(pair) = base.tunnels.pair_mut(pair).filter(|_| registered.is_ok()) else {
            drop(self.legs.try_remove(key));
            return Err(Reason::Exhausted);
        };
        pair.join_leg(id, key);
        self.streams_peak = self.streams_peak.max(self.legs.len());
        Ok(key)
    }

    /// The kernel has news of a leg's socket.
    pub(in crate::site) fn on_leg(&mut self, base: &mut Base<'_>, key: LegKey, event: &mio::event::Event) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if leg.is_connecting() {
            return self.on_delivery(base, key);
        }
        if leg.is_to_come() {
            // What the process does first is looked at when it is known to run.
            return;
        }
        if event.is_error() && leg.socket.take_error().is_some() {
            return self.on_reset_by_process(base, key);
        }
        if event.is_readable() {
            leg.readable = true;
            leg.end_known |= event.is_read_closed();
            self.schedule(base, key);
        }
        if event.is_writable() {
            self.flush_leg(base, key);
        }
    }

    /// A delivery's connect has ended, one way or the other.
    fn on_delivery(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        let Socket::Tcp(socket) = &leg.socket else { return };
        let error = match leg.socket.take_error() {
            Some(error) => error,
            None if socket.peer_addr().is_err() => return,
            None => return self.begin_flow(base, key),
        };
        self.break_leg(base, key, deliver::reason(&error));
    }

    /// The process that a leg waits for runs, or could not be started.
    pub(crate) fn on_process(&mut self, base: &mut Base<'_>, key: LegKey, generation: u64, runs: bool) {
        // It may have ended meanwhile; then the process has read the end.
        let waits = |leg: &&Leg| leg.generation == generation && matches!(leg.stage, Stage::Starting);
        match self.legs.get(key).filter(waits) {
            Some(_) if runs => self.begin_flow(base, key),
            Some(_) => self.break_leg(base, key, Reason::Exhausted),
            None => {}
        }
    }

    /// Somebody is at the other end of the socket: the far side learns of it, and bytes flow.
    fn begin_flow(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if let Err(error) = leg.connected() {
            return self.break_leg(base, key, deliver::reason(&error));
        }
        let (pair, id) = (leg.pair, leg.id);
        if let Some(pair) = base.tunnels.pair_mut(pair) {
            pair.tunnel().opened(id);
        }
        self.schedule(base, key);
        self.flush_leg(base, key);
    }

    /// Writes what waits for a process and tells the tunnel what has left.
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
                base.tunnels.pairs_mut().touch(pair_key);
                if done {
                    self.drop_leg(base, key);
                }
            }
            Err(_) => self.on_reset_by_process(base, key),
        }
    }

    /// The process has reset its connection. The kernel still has what it sent before, and hands it out
    /// first; so does the stream.
    fn on_reset_by_process(&mut self, base: &mut Base<'_>, key: LegKey) {
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
        let flows = !leg.is_to_come();
        if leg.readable && flows && !leg.scheduled && !leg.read_ended {
            let pair_key = leg.pair;
            if let Some(pair) = base.tunnels.pair_mut(pair_key) {
                leg.take_turn(key, pair.turns(), base.driver.now);
            }
            base.tunnels.pairs_mut().touch(pair_key);
        }
    }

    fn schedule_stream(&mut self, base: &mut Base<'_>, pair_key: PairKey, id: StreamId) {
        if let Some(leg) = self.leg_of(base, pair_key, id) {
            self.schedule(base, leg);
        }
    }

    /// The process is gone, or could not be reached: the far side learns of it.
    pub(in crate::site) fn break_leg(&mut self, base: &mut Base<'_>, key: LegKey, reason: Reason) {
        let Some(leg) = self.legs.get(key) else {
            return;
        };
        let (pair_key, id) = (leg.pair, leg.id);
        if let Some(pair) = base.tunnels.pair_mut(pair_key) {
            pair.tunnel().reset(id, reason);
        }
        leg.socket.reset_on_close();
        base.tunnels.pairs_mut().touch(pair_key);
        self.drop_leg(base, key);
    }

    /// The far side is gone, or refused: the process learns of it.
    pub(crate) fn abort_leg(&mut self, base: &mut Base<'_>, key: LegKey, reason: Reason) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        if matches!(leg.stage, Stage::Awaiting | Stage::Spawning) {
            // The shim reads the verdict, then the end; a reset could overtake the verdict.
            let far = base.tunnels.pairs().get(leg.pair).map(|pair| pair.site());
            let _ = leg.verdict(Verdict::Failed(reason), far.unwrap_or("a site that is gone"));
        } else {
            leg.socket.reset_on_close();
        }
        self.drop_leg(base, key);
    }

    /// Forgets a leg and closes its socket.
    pub(crate) fn drop_leg(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.try_remove(key) else {
            return;
        };
        self.handed.remove(&key);
        if let Some(pair) = base.tunnels.pair_mut(leg.pair) {
            pair.part_leg(leg.id);
        }
        if let Some(job) = base.membership.jobs_mut().get_mut(&leg.token) {
            job.sent_bytes += leg.sent_bytes;
            job.received_bytes += leg.received_bytes;
        }
        // Closing deregisters: a leg's descriptor has no duplicate.
    }

    /// Ends all streams of a job.
    pub(crate) fn end_streams(&mut self, base: &mut Base<'_>, token: &Token) {
        for key in self.legs.of_job(token) {
            self.break_leg(base, key, Reason::Reset);
        }
    }
}
