//! Frames of a lane: each is a header of sixteen bytes, then the payload. The lane's hello carries the
//! version.
//!
//! ```text
//! byte 0       kind
//! byte 1       detail: reason of a reset, "more follows" of a message, else zero
//! byte 2-3     payload length
//! byte 4-7     stream (0: the tunnel itself)
//! byte 8-15    position: where in the stream the payload begins (data), where the stream ends (finish), up to
//!              where the receiver takes bytes (open, opened, credit), what was sent before it (reset), number of
//!              the frame among those of messages (message), bytes of this lane received (ack)
//! ```
//! All numbers are big-endian. Because of the positions, every frame means the same on whatever lane it is
//! sent, whatever has overtaken it and whatever was received twice; only an ack is about its own lane.

/// Length of every header.
pub const HEADER_BYTES: usize = 16;

/// Longest payload. With 60 kB, a small frame waits less than 0.5 ms behind a large one at 1 Gbit/s, and the
/// header's share stays under 0.03 %.
pub const MAX_PAYLOAD: usize = 60 * 1024;

/// The kind of a frame. A number never gets a second meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of a stream.
    Data = 1,
    /// The sender opens a stream; payload: how many message frames were sent before it (8 bytes), then
    /// [`crate::OpenRequest`].
    Open = 2,
    /// The receiver of an open has reached the destination.
    Opened = 3,
    /// The sender's half of the stream ends at `position`.
    Finish = 4,
    /// The stream ends in both directions once the bytes up to `position` have arrived; detail: reason. This
    /// is also the refusal of an open.
    Reset = 5,
    /// The sender accepts bytes up to `position`.
    Credit = 6,
    /// Nothing, whatever the payload. Like every frame but an ack it is acknowledged, so it shows whether a
    /// silent lane is alive.
    Ping = 7,
    // 8 was the pong of version 1.
    /// Bytes for the gateway itself, in order; detail 1: the message continues in the next frame.
    Message = 9,
    /// The sender has received `position` bytes on this lane since it came up.
    Ack = 10,
    /// The sender skips this stream id, which is still in use when the ids start again.
    Skip = 11,
}

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        use Kind::*;
        [
            Data, Open, Opened, Finish, Reset, Credit, Ping, Message, Ack, Skip,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == code)
    }
}

/// The first sixteen bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The frame's kind.
    pub kind: Kind,
    /// See the module's picture.
    pub detail: u8,
    /// How many bytes of payload follow.
    pub length: u16,
    /// The number of the stream; 0 is the tunnel itself.
    pub stream: u32,
    /// See the module's picture.
    pub position: u64,
}

impl Header {
    /// Returns the bytes to send.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind as u8;
        bytes[1] = self.detail;
        bytes[2..4].copy_from_slice(&self.length.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.stream.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.position.to_be_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// [`ProtocolError::Kind`] and [`ProtocolError::Length`].
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, ProtocolError> {
        let [kind, detail, l0, l1, s0, s1, s2, s3, position @ ..] = *bytes;
        let header = Header {
            kind: Kind::from_code(kind).ok_or(ProtocolError::Kind(kind))?,
            detail,
            length: u16::from_be_bytes([l0, l1]),
            stream: u32::from_be_bytes([s0, s1, s2, s3]),
            position: u64::from_be_bytes(position),
        };
        if usize::from(header.length) > MAX_PAYLOAD {
            return Err(ProtocolError::Length(header.length));
        }
        Ok(header)
    }
}

/// A violation of the protocol by the far gateway: no gateway of this version commits it. The lane is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The kind of a frame is unknown.
    #[error("frame kind {0} is unknown")]
    Kind(u8),
    /// A payload is longer than [`MAX_PAYLOAD`].
    #[error("frame payload of {0} bytes is too long")]
    Length(u16),
    /// An open cannot be read.
    #[error("open request of stream {0} cannot be read")]
    Open(u32),
    /// The far side may not choose this stream id, or it is in use.
    #[error("stream {0} may not be opened by the far side")]
    StreamId(u32),
    /// The stream has sent more bytes than were granted.
    #[error("stream {0}: bytes beyond the granted window")]
    Window(u32),
    /// Bytes come after the end, or an end comes before bytes.
    #[error("stream {0}: position {1} contradicts what was said before")]
    Position(u32, u64),
    /// A message is longer than the limit.
    #[error("message of more than {0} bytes")]
    Message(usize),
    /// Bytes are acknowledged that were not sent.
    #[error("acknowledgement of byte {0}, which was not sent")]
    Ack(u64),
    /// More bytes arrived ahead of their stream's open, or more pieces out of order, than this end keeps. If
    /// they are sent again once what is missing has arrived, they are accepted.
    #[error("too much arrived out of turn")]
    Early,
    /// The far gateway makes this end queue answers, but does not read them.
    #[error("the far gateway takes no answers: {0} bytes of them wait")]
    Unread(u64),
}

/// Cuts a lane's bytes into frames. The payload of data frames is handed over as it arrives, so that a large
/// frame costs neither waiting nor a buffer; other frames are handed over as wholes.
#[derive(Debug, Default)]
pub struct LaneReader {
    data: Option<Header>,
}

/// One piece of a lane's input.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The frame's header. For data, position and length are those of this piece, not of the whole frame.
    pub header: Header,
    /// The piece's bytes.
    pub payload: &'a [u8],
}

impl LaneReader {
    /// Reads the next piece from the front of `input`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Those of [`Header::decode`].
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, ProtocolError> {
        let header = match self.data.take() {
            Some(rest) => rest,
            None => {
                let Some((bytes, after)) = input.split_first_chunk::<HEADER_BYTES>() else {
                    return Ok(None);
                };
                let header = Header::decode(bytes)?;
                if header.kind != Kind::Data && after.len() < usize::from(header.length) {
                    return Ok(None);
                }
                *input = after;
                header
            }
        };
        let take = usize::from(header.length).min(input.len());
        let (payload, after) = input.split_at(take);
        *input = after;
        // The number fits: it is at most header.length.
        let taken = take as u16;
        if taken < header.length {
            self.data = Some(Header {
                length: header.length - taken,
                position: header.position.wrapping_add(u64::from(taken)),
                ..header
            });
            if taken == 0 {
                return Ok(None);
            }
        }
        Ok(Some(Piece {
            header: Header {
                length: taken,
                ..header
            },
            payload,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(stream: u32, position: u64, payload: &[u8]) -> Vec<u8> {
        let length = payload.len() as u16;
        let mut bytes = Header {
            kind: Kind::Data,
            detail: 0,
            length,
            stream,
            position,
        }
        .encode()
        .to_vec();
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn literal_bytes_are_as_documented() {
        let header = Header {
            kind: Kind::Reset,
            detail: 7,
            length: 0x0102,
            stream: 0x03040506,
            position: 0x0708090a0b0c0d0e,
        };
        assert_eq!(
            header.encode(),
            [5, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
        );
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn data_is_handed_on_as_it_arrives() {
        let bytes = data(3, 100, b"hello");
        let mut input = &bytes[..18];
        let mut reader = LaneReader::default();
        let piece = reader.next(&mut input).unwrap().unwrap();
        assert_eq!((piece.header.position, piece.payload), (100, &b"he"[..]));
        assert_eq!(reader.next(&mut input), Ok(None));
        let mut input = &bytes[18..];
        let piece = reader.next(&mut input).unwrap().unwrap();
        assert_eq!((piece.header.position, piece.payload), (102, &b"llo"[..]));
        assert_eq!(reader.next(&mut input), Ok(None));
    }

    #[test]
    fn other_frames_wait_until_they_are_whole() {
        let mut bytes = Header {
            kind: Kind::Message,
            detail: 0,
            length: 3,
            stream: 0,
            position: 0,
        }
        .encode()
        .to_vec();
        bytes.extend(b"abc");
        let mut reader = LaneReader::default();
        for cut in 0..bytes.len() {
            let mut input = &bytes[..cut];
            assert_eq!(reader.next(&mut input), Ok(None));
            assert_eq!(input.len(), cut);
        }
        assert_eq!(reader.next(&mut &bytes[..]).unwrap().unwrap().payload, b"abc");
    }

    #[test]
    fn unknown_kinds_and_long_payloads_are_refused_at_the_header() {
        let mut reader = LaneReader::default();
        let mut bytes = data(1, 0, b"");
        bytes[0] = 200;
        assert_eq!(reader.next(&mut &bytes[..]), Err(ProtocolError::Kind(200)));
        bytes[0] = 1;
        bytes[2..4].copy_from_slice(&u16::MAX.to_be_bytes());
        assert_eq!(reader.next(&mut &bytes[..]), Err(ProtocolError::Length(u16::MAX)));
    }

    #[test]
    fn an_empty_data_frame_is_one_empty_piece() {
        let bytes = data(1, 5, b"");
        let piece = LaneReader::default()
            .next(&mut &bytes[..])
            .unwrap()
            .map(|piece| piece.header.length);
        assert_eq!(piece, Some(0));
    }
}
