//! Packet buffers for reuse, so that packets cost no allocations once the lab is warm.

use std::sync::Arc;

use super::packet::Packet;

/// Idle buffers by size: those of `free[n]` hold `2^n` bytes, so that a packet in flight takes at most twice
/// its bytes.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: [Vec<Vec<u8>>; CLASSES],
    free_bytes: usize,
}

/// 2^17 bytes or less: the longest packet that is read has 64 KiB and its headers.
const CLASSES: usize = 18;

/// The smallest buffer: below this, the allocator's own overhead matters.
const SMALLEST_CLASS: usize = 7;

/// Bytes of idle buffers kept: the in-flight data of 1 Gbit/s at 100 ms.
const KEPT_BYTES: usize = 16 << 20;

impl Pool {
    /// A copy of `packet` in a buffer of its size.
    pub(crate) fn copy(&mut self, packet: &[u8]) -> Vec<u8> {
        let class = class_that_holds(packet.len());
        let kept = self.free.get_mut(class).and_then(Vec::pop);
        self.free_bytes -= kept.as_ref().map_or(0, Vec::capacity);
        let mut copy = kept.unwrap_or_else(|| Vec::with_capacity(1 << class));
        copy.extend_from_slice(packet);
        copy
    }

    /// Takes back a packet that is no longer needed.
    pub(crate) fn give(&mut self, packet: Packet) {
        let mut buffer = packet.into_bytes();
        let (bytes, class) = (buffer.capacity(), class_that_holds(buffer.capacity()));
        // A buffer from elsewhere may have any capacity; one that is kept must have exactly what its class
        // promises.
        let fits = bytes == 1 << class && self.free_bytes + bytes <= KEPT_BYTES;
        if let Some(free) = self.free.get_mut(class).filter(|_| fits) {
            buffer.clear();
            free.push(buffer);
            self.free_bytes += bytes;
        }
    }

    #[cfg(test)]
    pub(crate) fn idle_bytes(&self) -> usize {
        self.free_bytes
    }

    /// Takes back a share in a packet: the last share brings back the buffer.
    pub(crate) fn give_share(&mut self, packet: Arc<Packet>) {
        if let Some(packet) = Arc::into_inner(packet) {
            self.give(packet);
        }
    }
}

fn class_that_holds(bytes: usize) -> usize {
    (bytes.next_power_of_two().trailing_zeros() as usize).max(SMALLEST_CLASS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_used_again_for_its_size() {
        let mut pool = Pool::default();
        let first = pool.copy(&[1; 1500]);
        let place = first.as_ptr();
        pool.give(Packet::plain(first));
        assert_eq!(pool.free_bytes, 2048);
        let small = pool.copy(&[2; 52]);
        assert_ne!(small.as_ptr(), place);
        let second = pool.copy(&[3; 1400]);
        assert_eq!((second.as_ptr(), second.len()), (place, 1400));
        assert_eq!(pool.free_bytes, 0);
    }

    #[test]
    fn idle_buffers_are_bounded_in_bytes() {
        let mut pool = Pool::default();
        let many: Vec<_> = (0..400).map(|_| pool.copy(&[0; 65_536])).collect();
        many.into_iter()
            .for_each(|buffer| pool.give(Packet::plain(buffer)));
        assert_eq!(pool.free_bytes, KEPT_BYTES);
    }

    #[test]
    fn a_shared_packet_comes_back_with_its_last_share() {
        let mut pool = Pool::default();
        let packet = Arc::new(Packet::plain(pool.copy(&[0; 100])));
        pool.give_share(Arc::clone(&packet));
        assert_eq!(pool.free_bytes, 0);
        pool.give_share(packet);
        assert_eq!(pool.free_bytes, 128);
    }
}
