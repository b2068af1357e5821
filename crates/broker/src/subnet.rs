//! An address range as text, in the form that requests, records and the store have.

use causeway_wire::{Cidr, TextError};
use serde::{Deserialize, Serialize};

/// Most ranges that a token grants: as many as a record may have.
pub(crate) const MAX_GRANTED: usize = 64;

/// An address range, as text such as `10.1.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet(pub Cidr);

impl TryFrom<String> for Subnet {
    type Error = TextError;

    fn try_from(text: String) -> Result<Subnet, TextError> {
        text.parse().map(Subnet).map_err(TextError::of)
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> String {
        subnet.0.to_string()
    }
}
