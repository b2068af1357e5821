//! The ticket, which opens a connection to a relay: a gateway that carries lanes of two others. The relay
//! answers with one byte, [`MET`], once both have connected; everything after that belongs to these two
//! alone.
//!
//! ```text
//! byte 0-3     "CWRL"; the first of them begins neither a hello nor TLS
//! byte 4       version, 2
//! byte 5-36    digest of the ticket, of one use
//! ```
//!
//! The digest is shown, not the ticket itself: a relay has chosen the ticket, and if the relay's name leads
//! to another host, none of the bytes that it has chosen must be written there. `CWRL` with version 1 showed
//! the ticket itself.

/// Length of a ticket: nobody guesses 256 bits.
pub const TICKET_BYTES: usize = 32;

/// Length of a preface.
pub const PREFACE_BYTES: usize = TICKET_AT + TICKET_BYTES;

/// The answer that says that both have connected.
pub const MET: u8 = 1;

const TICKET_AT: usize = 5;
const HEAD: [u8; TICKET_AT] = *b"CWRL\x02";

/// A ticket admits one gateway once, to meet one other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub [u8; TICKET_BYTES]);

impl std::fmt::Debug for Ticket {
    /// Prints no secret: a ticket must not appear in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ticket(..)")
    }
}

/// Why bytes are not a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// The bytes belong to another protocol, or have another version.
    #[error("this is not how a ticket of this version begins")]
    Magic,
    /// The text does not have as many hexadecimal digits as a ticket.
    #[error("a ticket has {} hexadecimal digits", 2 * TICKET_BYTES)]
    Digits,
}

/// What a connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// More bytes are needed.
    Incomplete,
    /// A complete preface.
    Ticket(Ticket),
}

impl Ticket {
    /// Returns the preface to send.
    pub fn preface(&self) -> [u8; PREFACE_BYTES] {
        let mut bytes = [0; PREFACE_BYTES];
        bytes[..TICKET_AT].copy_from_slice(&HEAD);
        bytes[TICKET_AT..].copy_from_slice(&self.0);
        bytes
    }

    /// Whether a connection that begins with this byte shows a ticket.
    pub fn begins_with(first: u8) -> bool {
        first == HEAD[0]
    }

    /// Reads a preface from the front of `bytes`.
    ///
    /// # Errors
    /// The bytes can no longer become a preface.
    pub fn read(bytes: &[u8]) -> Result<Opening, TicketError> {
        let known = bytes.len().min(HEAD.len());
        if bytes[..known] != HEAD[..known] {
            return Err(TicketError::Magic);
        }
        let ticket = bytes.get(TICKET_AT..PREFACE_BYTES);
        let ticket = ticket.and_then(|ticket| ticket.try_into().ok());
        Ok(ticket.map_or(Opening::Incomplete, |ticket| Opening::Ticket(Ticket(ticket))))
    }

    /// Returns hexadecimal digits, for a message.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads what [`Ticket::to_hex`] has returned.
    ///
    /// # Errors
    /// [`TicketError::Digits`] for any other text.
    pub fn from_hex(text: &str) -> Result<Ticket, TicketError> {
        let digits = text.as_bytes();
        if digits.len() != 2 * TICKET_BYTES {
            return Err(TicketError::Digits);
        }
        let mut bytes = [0; TICKET_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            for digit in pair {
                let value = char::from(*digit).to_digit(16).ok_or(TicketError::Digits)?;
                // The number fits: it is below 16.
                *byte = *byte << 4 | value as u8;
            }
        }
        Ok(Ticket(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::Hello;

    #[test]
    fn a_preface_round_trips_and_every_prefix_asks_for_more() {
        let ticket = Ticket([7; TICKET_BYTES]);
        let bytes = ticket.preface();
        assert_eq!(&bytes[..6], b"CWRL\x02\x07");
        assert_eq!(bytes.len(), 37);
        for cut in 0..bytes.len() {
            assert_eq!(Ticket::read(&bytes[..cut]), Ok(Opening::Incomplete));
        }
        assert_eq!(Ticket::read(&bytes), Ok(Opening::Ticket(ticket)));
        assert_eq!(Ticket::from_hex(&ticket.to_hex()), Ok(ticket));
    }

    #[test]
    fn damaged_prefaces_never_panic_and_other_protocols_are_refused_at_the_first_wrong_byte() {
        let bytes = Ticket([7; TICKET_BYTES]).preface();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut damaged = bytes;
                damaged[at] = value;
                let right = at >= TICKET_AT || value == bytes[at];
                assert_eq!(Ticket::read(&damaged).is_ok(), right, "{value} at {at}");
            }
        }
        assert_eq!(Ticket::read(b"CONNECT"), Err(TicketError::Magic));
        for text in ["", "7", &"g".repeat(64), &"é".repeat(32), &"0".repeat(66)] {
            assert_eq!(Ticket::from_hex(text), Err(TicketError::Digits), "{text}");
        }
    }

    #[test]
    fn a_ticket_is_told_from_a_hello_and_from_tls_by_its_first_byte_and_is_not_shown_in_a_log() {
        let hello = Hello {
            site: "rennes".into(),
            nonce: [7; 32],
            session: 3,
            lane: 1,
        };
        assert!(!Ticket::begins_with(hello.encode()[0]));
        assert!(!Ticket::begins_with(22));
        let ticket = Ticket([7; TICKET_BYTES]);
        assert!(Ticket::begins_with(ticket.preface()[0]));
        assert_eq!(format!("{ticket:?}"), "Ticket(..)");
    }
}
