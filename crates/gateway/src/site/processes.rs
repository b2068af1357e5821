//! Streams between other sites and processes of this host, which `commands` starts or serves.

use crate::base::Base;
use crate::keys::{LegKey, PairKey};
use crate::site::SiteSide;
use crate::site::leg::{Leg, Stage};
use crate::site::socket::Socket;
use crate::sys::source::Class;
use causeway_tunnel::{OpenRequest, StreamId, Target};
use causeway_wire::{Reason, Token};
use mio::net::TcpStream;

/// Lends what gives streams to processes of this host.
pub(crate) struct Processes<'a> {
    site: &'a mut SiteSide,
}

impl SiteSide {
    /// Lends what gives streams to processes of this host.
    pub(crate) fn processes(&mut self) -> Processes<'_> {
        Processes { site: self }
    }
}

impl Processes<'_> {
    /// Asks another site for a process on one of its nodes, with this socket as its input and output.
    pub(crate) fn ask_for(
        &mut self,
        base: &mut Base<'_>,
        pair: PairKey,
        socket: TcpStream,
        token: Token,
        node: &str,
    ) -> Result<LegKey, Reason> {
        let target = Target::Node(node.to_owned());
        let request = OpenRequest { token, target };
        let mut socket = Socket::accepted(socket);
        // The number that `open_stream` will give it.
        let number = Class::Leg.token(self.site.legs.vacant_key().0);
        let registered = socket.register(base.registry(), number);
        registered.map_err(|_| Reason::Exhausted)?;
        self.site
            .open_stream(base, pair, &request, socket, Stage::Spawning)
    }

    /// Keeps the near end of a stream whose process is being started. Returns its key, and the number that
    /// distinguishes it from others that get the same key.
    pub(crate) fn begin(
        &mut self,
        base: &mut Base<'_>,
        pair: PairKey,
        id: StreamId,
        socket: TcpStream,
        token: Token,
    ) -> Result<(LegKey, u64), Reason> {
        let leg = self
            .site
            .add_leg(base, Socket::accepted(socket), pair, id, token, Stage::Starting)?;
        Ok((leg, self.site.legs[leg].generation))
    }

    /// Forgets the near end of a stream whose process was not even begun.
    pub(crate) fn forget(&mut self, base: &mut Base<'_>, leg: LegKey) {
        self.site.drop_leg(base, leg);
    }

    /// Goes on once the process that a leg waits for runs, or could not be started.
    pub(crate) fn on_begun(&mut self, base: &mut Base<'_>, key: LegKey, generation: u64, runs: bool) {
        // The leg may have ended meanwhile; then the process has read the end.
        let waits = |leg: &&Leg| leg.generation == generation && matches!(leg.stage, Stage::Starting);
        match self.site.legs.get(key).filter(waits) {
            Some(_) if runs => self.site.begin_flow(base, key),
            Some(_) => self.site.break_leg(base, key, Reason::Exhausted),
            None => {}
        }
    }
}
