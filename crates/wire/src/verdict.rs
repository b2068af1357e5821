//! The verdict on a connection: four bytes from the gateway to a shim that has asked for it.

/// Why a connection was not established. A number never gets a second meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The destination's host answered that nothing listens there.
    Refused = 1,
    /// The destination's gateway cannot reach the host.
    Unreachable = 2,
    /// The destination did not answer in time.
    TimedOut = 3,
    /// The token, the source or the destination is not allowed.
    Denied = 4,
    /// There is no tunnel to the destination's site at present.
    NoTunnel = 5,
    /// A limit was reached: streams, memory or open files.
    Exhausted = 6,
    /// The peer has reset an established connection.
    Reset = 7,
    /// The two ends have different versions, or one of them sent something that makes no sense.
    Protocol = 8,
}

impl Reason {
    /// The reason with this number, if there is one.
    pub fn from_code(code: u8) -> Option<Reason> {
        use Reason::*;
        [
            Refused,
            Unreachable,
            TimedOut,
            Denied,
            NoTunnel,
            Exhausted,
            Reset,
            Protocol,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == code)
    }

    /// The same in words, for a log line or a message to the user.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Refused => "connection refused by the destination host",
            Reason::Unreachable => "destination host unreachable from its gateway",
            Reason::TimedOut => "destination host did not answer in time",
            Reason::Denied => "not allowed (job token, source or destination)",
            Reason::NoTunnel => "no tunnel to the destination's site",
            Reason::Exhausted => "a limit of the gateway is reached",
            Reason::Reset => "reset by peer",
            Reason::Protocol => "protocol error",
        }
    }
}

/// The answer to a preface that has asked for a verdict ([`crate::Wants::Verdict`]).
///
/// ```text
/// byte 0     version, 1
/// byte 1     0 = connected, else a Reason
/// byte 2-3   zero
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The far side has accepted; raw bytes follow.
    Connected,
    /// The far side has not accepted; the gateway closes the connection.
    Failed(Reason),
}

impl Verdict {
    /// Length on the wire.
    pub const BYTES: usize = 4;
    const VERSION: u8 = 1;

    /// The bytes to send.
    pub fn encode(self) -> [u8; Verdict::BYTES] {
        [Self::VERSION, self.code(), 0, 0]
    }

    /// The one byte that is sent as urgent data.
    pub fn code(self) -> u8 {
        match self {
            Verdict::Connected => 0,
            Verdict::Failed(reason) => reason as u8,
        }
    }

    /// Reads that byte; `None` if the reason is unknown.
    pub fn from_code(code: u8) -> Option<Verdict> {
        match code {
            0 => Some(Verdict::Connected),
            code => Reason::from_code(code).map(Verdict::Failed),
        }
    }

    /// Reads a verdict; `None` if the version or the reason is unknown.
    pub fn decode(bytes: [u8; Verdict::BYTES]) -> Option<Verdict> {
        match bytes {
            [Self::VERSION, code, 0, 0] => Verdict::from_code(code),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_are_as_documented() {
        assert_eq!(Verdict::Connected.encode(), [1, 0, 0, 0]);
        assert_eq!(Verdict::Failed(Reason::Denied).encode(), [1, 4, 0, 0]);
    }

    #[test]
    fn every_four_bytes_either_round_trip_or_are_refused() {
        for version in 0..=2 {
            for code in 0..=255 {
                let bytes = [version, code, 0, 0];
                if let Some(verdict) = Verdict::decode(bytes) {
                    assert_eq!(verdict.encode(), bytes);
                    assert_eq!(Verdict::from_code(verdict.code()), Some(verdict));
                }
            }
        }
        assert_eq!(Verdict::decode([1, 99, 0, 0]), None);
        assert_eq!(Verdict::decode([1, 0, 0, 1]), None);
    }
}
