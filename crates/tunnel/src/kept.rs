//! The format in which parts of a tunnel are stored with its state, and their limits.

use crate::settings::MAX_LANE_BYTES;
use std::collections::VecDeque;

/// The largest window: see [`crate::Settings`].
pub(crate) const MAX_WINDOW: u64 = MAX_LANE_BYTES;

/// A position that no stream reaches: it would take 300 years at 1 Gbit/s. Sums with a window stay far below
/// overflow.
pub(crate) const MAX_POSITION: u64 = 1 << 60;

/// How far the frames that wait for a lane have been written to the journal.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Where each of their records begins and ends.
    pub(crate) control: VecDeque<(u64, u64)>,
    pub(crate) end: u64,
}

/// The kinds of a tunnel's records. Others that write to the journal use kinds from [`kind::BEYOND`] on.
pub mod kind {
    pub(crate) const CORE: u8 = 1;
    pub(crate) const STREAM: u8 = 2;
    pub(crate) const AHEAD: u8 = 3;
    pub(crate) const SEEN: u8 = 4;
    pub(crate) const MESSAGE: u8 = 5;
    pub(crate) const BEGUN: u8 = 6;
    pub(crate) const PRE_OPEN: u8 = 7;
    pub(crate) const CONTROL: u8 = 8;
    /// The first kind that others may use.
    pub const BEYOND: u8 = 16;
}

/// A stream's reset, with its reason as a number.
pub(crate) mod reset {
    use causeway_wire::Reason;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(
        reset: &Option<(u64, Reason)>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let reset = reset.map(|(position, reason)| (position, reason as u8));
        reset.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<(u64, Reason)>, D::Error> {
        let Some((position, code)) = Option::<(u64, u8)>::deserialize(deserializer)? else {
            return Ok(None);
        };
        let reason = Reason::from_code(code).ok_or_else(|| de::Error::custom("unknown reason of a reset"))?;
        Ok(Some((position, reason)))
    }
}

/// What an open frame requests, in the format of such a frame.
pub(crate) mod request {
    use crate::open::OpenRequest;
    use serde::{Deserialize, Deserializer, Serializer, de};
    use serde_bytes::ByteBuf;

    pub(crate) fn serialize<S: Serializer>(request: &OpenRequest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&request.encode())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OpenRequest, D::Error> {
        let bytes = ByteBuf::deserialize(deserializer)?;
        OpenRequest::decode(&bytes).ok_or_else(|| de::Error::custom("an open request cannot be read"))
    }
}
