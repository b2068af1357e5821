//! The form in which parts of a tunnel travel with its state, and their bounds.

use crate::settings::MAX_LANE_BYTES;

/// No window is larger: see [`Settings`].
pub(crate) const MAX_WINDOW: u64 = MAX_LANE_BYTES;

/// No stream comes this far: 300 years at 1 Gbit/s. Sums with a window stay far from the end of the numbers.
pub(crate) const MAX_POSITION: u64 = 1 << 60;

/// A reset of a stream, its reason by number.
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

/// What an open frame asks for, in its own format.
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
