//! The hello, which opens a lane: it names the sender and carries a challenge. Each side sends it once,
//! before any frame.
//!
//! ```text
//! byte 0       version, 2
//! byte 1-4     "CWLN"
//! byte 5-36    nonce for the proof of the grid key
//! byte 37-44   session: random, new whenever the speaker has lost or given up the tunnel's state
//! byte 45      number of the lane within its tunnel
//! byte 46      length of the site's name
//! byte 47-     name
//! ```
//! The two sessions identify a tunnel: a lane whose two hellos name an existing tunnel resumes it, and any
//! other lane begins a new one. The proof (32 bytes, an HMAC that the driver computes over
//! [`Hello::transcript`]) follows in each direction. Frames begin after it.

/// Length of a nonce.
pub const NONCE_BYTES: usize = 32;

/// Length of a proof: HMAC-SHA-256.
pub const PROOF_BYTES: usize = 32;

/// The version of what lanes carry: gateways with different versions refuse each other.
pub const VERSION: u8 = 2;
const MAGIC: [u8; 4] = *b"CWLN";
const FIXED_BYTES: usize = 47;
const SESSION_AT: usize = 5 + NONCE_BYTES;
const LANE_AT: usize = SESSION_AT + 8;

/// Longest hello.
pub const MAX_BYTES: usize = FIXED_BYTES + 63;

/// The first bytes of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The sender's site; see [`causeway_wire::grid::is_site_name`].
    pub site: String,
    /// Fresh random bytes.
    pub nonce: [u8; NONCE_BYTES],
    /// The sender's half of the tunnel's identity.
    pub session: u64,
    /// Which lane of the tunnel this is, a number below [`crate::tunnel::MAX_LANES`]; the side that dials
    /// chooses it, and the other repeats it.
    pub lane: u8,
}

/// Why bytes are not a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The bytes come from another program, or have another version.
    #[error("the far side is not a gateway of this version")]
    Magic,
    /// The name is not valid for a site.
    #[error("the far side's site name is not valid")]
    Name,
    /// The number is too large for a lane of a tunnel.
    #[error("the far side's lane number is not valid")]
    Lane,
}

impl Hello {
    /// Returns the bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(causeway_wire::grid::is_site_name(&self.site));
        let mut bytes = Vec::with_capacity(MAX_BYTES);
        bytes.push(VERSION);
        bytes.extend(MAGIC);
        bytes.extend(self.nonce);
        bytes.extend(self.session.to_be_bytes());
        bytes.push(self.lane);
        bytes.push(self.site.len() as u8);
        bytes.extend(self.site.as_bytes());
        bytes
    }

    /// Reads a hello from the front of `bytes`, and returns it with its length; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// The bytes can no longer become a hello.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Hello, usize)>, HelloError> {
        let expected = [VERSION, MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3]];
        let known = bytes.len().min(expected.len());
        if bytes[..known] != expected[..known] {
            return Err(HelloError::Magic);
        }
        let Some(fixed) = bytes.get(..FIXED_BYTES) else {
            return Ok(None);
        };
        let length = FIXED_BYTES + usize::from(fixed[FIXED_BYTES - 1]);
        if length > MAX_BYTES {
            return Err(HelloError::Name);
        }
        if usize::from(fixed[LANE_AT]) >= crate::tunnel::MAX_LANES {
            return Err(HelloError::Lane);
        }
        let Some(name) = bytes.get(FIXED_BYTES..length) else {
            return Ok(None);
        };
        let site = std::str::from_utf8(name)
            .ok()
            .filter(|name| causeway_wire::grid::is_site_name(name));
        let site = site.ok_or(HelloError::Name)?.to_owned();
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&fixed[5..SESSION_AT]);
        let mut session = [0; 8];
        session.copy_from_slice(&fixed[SESSION_AT..LANE_AT]);
        let hello = Hello {
            site,
            nonce,
            session: u64::from_be_bytes(session),
            lane: fixed[LANE_AT],
        };
        Ok(Some((hello, length)))
    }

    /// Returns the bytes over which the sender of `self` proves the grid key after receiving `other`: both
    /// hellos, the prover's first, so that a proof cannot be sent back to the side that made it.
    pub fn transcript(&self, other: &Hello) -> Vec<u8> {
        let mut bytes = b"causeway lane 2".to_vec();
        bytes.extend(self.encode());
        bytes.extend(other.encode());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_round_trips_and_every_prefix_asks_for_more() {
        let hello = Hello {
            site: "rennes".into(),
            nonce: [7; NONCE_BYTES],
            session: 3,
            lane: 1,
        };
        let bytes = hello.encode();
        assert_eq!(&bytes[..6], b"\x02CWLN\x07");
        assert_eq!(&bytes[37..], b"\0\0\0\0\0\0\0\x03\x01\x06rennes");
        for cut in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..cut]), Ok(None));
        }
        assert_eq!(Hello::decode(&bytes), Ok(Some((hello, bytes.len()))));
    }

    #[test]
    fn damaged_hellos_never_panic_and_other_protocols_are_refused_at_the_first_byte() {
        assert_eq!(Hello::decode(b"GET / HTTP/1.1"), Err(HelloError::Magic));
        let bytes = Hello {
            site: "rennes".into(),
            nonce: [7; NONCE_BYTES],
            session: 3,
            lane: 1,
        }
        .encode();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = Hello::decode(&damaged);
            }
        }
    }

    #[test]
    fn the_two_proofs_of_a_lane_differ() {
        let one = Hello {
            site: "rennes".into(),
            nonce: [1; NONCE_BYTES],
            session: 3,
            lane: 1,
        };
        let other = Hello {
            site: "nancy".into(),
            nonce: [2; NONCE_BYTES],
            session: 3,
            lane: 1,
        };
        assert_ne!(one.transcript(&other), other.transcript(&one));
    }
}
