//! What a round over UDP does: asks the broker, takes knocks.

use super::message;
use crate::base::{Base, Bundle};
use crate::keys::PeerIndex;
use crate::traversal::Traversal;
use crate::tunnels::origin::Way;
use crate::tunnels::peers::reach::may_be_gateway;
use crate::tunnels::quic::KNOCK;
use causeway_broker::reflection::{self, Id};
use std::io;
use std::net::SocketAddr;

impl Traversal {
    /// Asks the broker at which address it sees the UDP socket.
    pub(super) fn locate(&mut self, base: &mut Base<'_>) -> io::Result<()> {
        let meetings = &mut self.meetings;
        let Some(broker) = meetings.broker else {
            return Ok(());
        };
        let id = match meetings.asked {
            Some(id) => id,
            None => {
                let mut id = Id::default();
                getrandom::fill(&mut id).map_err(io::Error::other)?;
                *meetings.asked.insert(id)
            }
        };
        base.tunnels
            .connecting()
            .say_datagram(broker, &reflection::question(id))
    }

    /// The UDP socket has received something that does not belong to QUIC.
    pub(in crate::traversal) fn on_datagram(
        &mut self,
        base: &mut Base<'_>,
        datagram: &[u8],
        from: SocketAddr,
    ) {
        match datagram.first() {
            Some(&reflection::ANSWER) => self.on_reflection(base, datagram),
            Some(&KNOCK) => self.on_knock(base, datagram, from),
            _ => {}
        }
    }

    /// A datagram whose first byte marks it as the answer to that question.
    fn on_reflection(&mut self, base: &mut Base<'_>, datagram: &[u8]) {
        let now = base.now();
        let Some((id, mapped)) = reflection::answered(datagram) else {
            return;
        };
        let meetings = &mut self.meetings;
        if meetings.asked != Some(id) {
            return;
        }
        (meetings.asked, meetings.mapped) = (None, Some(mapped));
        let all = meetings.by_peer.keys().filter(|(_, way)| *way == Way::Udp);
        let all: Vec<PeerIndex> = all.map(|(index, _)| *index).collect();
        for index in all {
            self.with_meeting(base, index, Way::Udp, |meeting, out| meeting.on_located(now, out));
        }
    }

    /// A datagram whose first byte marks it as a knock.
    fn on_knock(&mut self, base: &mut Base<'_>, datagram: &[u8], from: SocketAddr) {
        let Some(key) = message::knocked(datagram) else {
            return;
        };
        let mut meetings = self.meetings.by_peer.iter();
        let whose = meetings.find(|((_, way), meeting)| *way == Way::Udp && meeting.key == key);
        if let Some(index) = whose.map(|((index, _), _)| *index) {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            // Whoever knows the key can name any sender.
            let config = base.config();
            if !may_be_gateway(from, config.is_on_loopback(), &config.subnets) {
                return base.refuse("punch-address", from.ip(), "a knock from where no gateway can be");
            }
            self.with_meeting(base, index, Way::Udp, |meeting, out| meeting.on_knock(from, out));
        }
    }
}
