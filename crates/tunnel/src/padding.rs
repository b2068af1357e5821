//! Padding frames: they carry nothing, and show what a lane can carry before anybody needs it.

use crate::frame::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
use crate::tunnel::Tunnel;
use std::time::Instant;

impl Tunnel {
    /// Puts the largest padding frame onto a lane; false if the lane accepts no more now.
    pub fn pad(&mut self, lane: usize, now: Instant) -> bool {
        if !self.has_room(lane) {
            return false;
        }
        let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) else {
            return false;
        };
        // The number fits: MAX_PAYLOAD is below 64 KiB.
        let header = Header {
            kind: Kind::Ping,
            detail: 0,
            length: MAX_PAYLOAD as u16,
            stream: 0,
            position: 0,
        };
        let space = &mut state.ring.space(HEADER_BYTES + MAX_PAYLOAD)[..HEADER_BYTES + MAX_PAYLOAD];
        // The memory may still contain what streams have sent, none of which must be sent again.
        space.fill(0);
        space[..HEADER_BYTES].copy_from_slice(&header.encode());
        state.ring.commit(HEADER_BYTES + MAX_PAYLOAD);
        state.asked(now);
        true
    }
}
