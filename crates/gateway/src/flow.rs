//! What flows between tunnels and their streams.

use crate::base::{Base, base};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::keys::{LaneKey, PairKey};
use crate::membership::Membership;
use crate::site::SiteSide;
use crate::traversal::Traversal;
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::LaneEnd;
use crate::tunnels::lanes::pump::Supply;
use crate::tunnels::lanes::receive::Read;
use crate::turn::Turn;
use causeway_tunnel::{Event, OpenRequest, StreamId};
use std::time::Instant;

/// Most reads of one lane before other lanes get their turn.
const ROUNDS: usize = 8;

/// Most fillings of one pair's lanes before other pairs get their turn.
const FILLINGS: usize = 8;

/// Everything that a tunnel's events may concern. `base` explains why the state is divided in this way.
pub(crate) struct Flow<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) membership: &'a mut Membership,
    pub(crate) site: &'a mut SiteSide,
    pub(crate) traversal: &'a mut Traversal,
    /// How many programs had this gateway before.
    pub(crate) handed_over: u64,
    pub(crate) commands: &'a mut Commands,
}

/// Borrows exactly these fields of a Gateway.
macro_rules! flow {
    ($gateway:ident) => {
        $crate::flow::Flow {
            driver: &mut $gateway.driver,
            tunnels: &mut $gateway.tunnels,
            membership: &mut $gateway.membership,
            site: &mut $gateway.site,
            traversal: &mut $gateway.traversal,
            handed_over: $gateway.lifecycle.handed_over(),
            commands: &mut $gateway.commands,
        }
    };
}
pub(crate) use flow;

impl Flow<'_> {
    /// Lends the smallest bundle.
    pub(crate) fn base(&mut self) -> Base<'_> {
        base!(self)
    }

    /// Lends the connections of this site, and what their methods act on.
    pub(crate) fn site_and_base(&mut self) -> (&mut SiteSide, Base<'_>) {
        (&mut *self.site, base!(self))
    }

    /// Lends the commands of this host, and what their methods act on.
    pub(crate) fn commands_and_context(&mut self) -> (&mut Commands, CommandContext<'_>) {
        let context = CommandContext {
            driver: self.driver,
            tunnels: self.tunnels,
            membership: self.membership,
            site: self.site,
            traversal: self.traversal,
            handed_over: self.handed_over,
        };
        (self.commands, context)
    }

    /// Acts on what the kernel reports about a lane: that it is readable or writable.
    pub(crate) fn on_lane(&mut self, key: LaneKey, event: &mio::event::Event) {
        if self.tunnels.traffic().on_lane_ready(self.driver, key, event) {
            self.receive(key);
        }
    }

    /// Takes in what has arrived.
    pub(crate) fn receive(&mut self, key: LaneKey) {
        match self.try_receive(key) {
            Ok(true) => self.tunnels.traffic().read_later(key),
            Ok(false) => {}
            Err(end) => self.tunnels.traffic().fail_lane(self.driver, key, &end),
        }
    }

    /// True when there may be more to read.
    fn try_receive(&mut self, key: LaneKey) -> Result<bool, LaneEnd> {
        let Some((mut turn, is_behind)) = self.tunnels.traffic().begin_turn(key) else {
            return Ok(false);
        };
        if is_behind && !self.digest(key, &mut turn)? {
            return Ok(true);
        }
        for _ in 0..ROUNDS {
            let emptied = match self.tunnels.traffic().read_lane(key)? {
                Read::Bytes { emptied } => emptied,
                Read::Interrupted => continue,
                Read::Nothing => return Ok(false),
            };
            if !self.digest(key, &mut turn)? {
                return Ok(true);
            }
            if emptied {
                return Ok(false);
            }
            // Frames that have no event take time, too.
            if turn.ended(Instant::now()) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Acts on the whole frames of a lane's input, and keeps the rest. False if the lane's turn was over
    /// before that.
    fn digest(&mut self, key: LaneKey, turn: &mut Turn) -> Result<bool, LaneEnd> {
        let now = self.driver.now;
        let Some(input) = self.tunnels.traffic().take_input(key) else {
            return Ok(true);
        };
        let mut rest = input.unread();
        let mut result = Ok(());
        let mut done = true;
        loop {
            result = match self.tunnels.traffic().next_event(&input, &mut rest, now) {
                Ok(None) => break,
                Ok(Some(event)) => self.on_tunnel_event(input.pair, event),
                Err(end) => Err(end),
            };
            if result.is_err() {
                break;
            }
            if turn.is_over(Instant::now) {
                done = false;
                break;
            }
        }
        let left = rest.len();
        self.tunnels.traffic().give_back(key, input, left, done);
        result.map(|()| done)
    }

    /// Runs the tunnels that are due, and goes on with events for which an earlier turn had no time.
    pub(crate) fn look_after_tunnels(&mut self) {
        for key in self.tunnels.traffic().on_time(self.driver.now) {
            self.take_events(key);
            self.tunnels.pairs_mut().touch(key);
        }
    }

    /// Acts on what a tunnel reports without any input.
    fn take_events(&mut self, key: PairKey) {
        let mut turn = Turn::begin(Instant::now(), 1);
        while let Some(event) = self.tunnels.traffic().poll_tunnel(key) {
            if let Err(end) = self.on_tunnel_event(key, event) {
                self.tunnels.traffic().end_pair(self.driver, key, &end);
            }
            if turn.is_over(Instant::now) {
                return self.tunnels.traffic().tell_later(key);
            }
        }
    }

    /// Fills and writes a pair's lanes until there is nothing to send, the kernel takes no more, or others
    /// must have their turn.
    pub(crate) fn pump(&mut self, key: PairKey) {
        for _ in 0..FILLINGS {
            let filled = match self.tunnels.traffic().supply(self.driver, key) {
                Supply::NoPair => return,
                Supply::Full => None,
                Supply::Lane(number) => {
                    let (site, mut base) = self.site_and_base();
                    site.fill(&mut base, key, number);
                    Some(number)
                }
            };
            if !self.tunnels.traffic().write_pair(self.driver, key, filled) {
                return;
            }
        }
        self.tunnels.pairs_mut().touch(key);
    }

    pub(crate) fn on_tunnel_event(&mut self, pair_key: PairKey, event: Event<'_>) -> Result<(), LaneEnd> {
        match event {
            Event::Open(id, request) => self.on_open(pair_key, id, request),
            Event::Message(bytes) => {
                let (commands, mut context) = self.commands_and_context();
                return commands.on_message(&mut context, pair_key, &bytes);
            }
            Event::LaneSilent(_) | Event::LaneDead(_) | Event::Expired => {
                self.tunnels
                    .traffic()
                    .on_lane_event(self.driver, pair_key, &event);
            }
            stream => {
                let (site, mut base) = self.site_and_base();
                site.on_stream_event(&mut base, pair_key, stream);
            }
        }
        Ok(())
    }

    fn on_open(&mut self, pair: PairKey, id: StreamId, request: OpenRequest) {
        let (site, mut base) = self.site_and_base();
        let opened = site.open(&mut base, pair, id, request);
        let opened = match opened {
            Ok(Some(process)) => {
                let (commands, mut context) = self.commands_and_context();
                commands.start_for_stream(&mut context, pair, id, process)
            }
            other => other.map(drop),
        };
        if let (Err(reason), Some(pair)) = (opened, self.tunnels.pair_mut(pair)) {
            pair.tunnel().reset(id, reason);
        }
    }
}
