//! What two gateways that cannot be dialled tell each other: messages through the broker, and knocks over
//! UDP.
//!
//! ```text
//! knock, 18 bytes
//! byte 0       0x32. Neither QUIC's own datagrams nor a lane's nor the broker's answers begin so
//! byte 1       version, 1
//! byte 2-17    key that the receiver told the sender in its message
//! ```

use crate::tunnels::peers::reach::is_of_a_host;
use crate::tunnels::quic::KNOCK;
use causeway_wire::TextError;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The broker's words for these kinds of message: those about UDP, and those about TCP, which gateways of
/// earlier versions ignore.
pub(crate) const KIND: &str = "punch";
pub(crate) const TCP_KIND: &str = "punch-tcp";

const VERSION: u32 = 1;

/// Most addresses that are knocked at: the mapped one, and some of hosts with several.
pub(crate) const MAX_ADDRESSES: usize = 8;

const KNOCK_VERSION: u8 = 1;

/// Shows a gateway whose knock it is. It proves nothing: the certificates of the lane do.
pub(crate) type Key = [u8; 16];

/// Where to knock to reach the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Punch {
    version: u32,
    /// Whether this is an answer, which is not answered.
    pub(crate) answers: bool,
    /// In hexadecimal, the key that the receiver's knocks must contain. Connections over TCP need none,
    /// because nothing is sent on them before TLS begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The address of the sender's socket, as the broker sees it.
    pub(crate) mapped: SocketAddr,
    /// Its addresses in its own network, which work if both gateways are behind the same NAT.
    local: Vec<SocketAddr>,
}

impl Punch {
    pub(crate) fn new(answers: bool, key: Option<Key>, mapped: SocketAddr, local: &[SocketAddr]) -> Punch {
        Punch {
            version: VERSION,
            answers,
            key: key.map(|key| format!("{:032x}", u128::from_be_bytes(key))),
            mapped,
            local: local.iter().copied().take(MAX_ADDRESSES - 1).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads a message, whose length the broker bounds.
    pub(crate) fn decode(text: &str) -> Result<Punch, TextError> {
        let punch: Punch = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if punch.version != VERSION {
            return Err(format!("version {}, expected {VERSION}", punch.version).into());
        }
        if punch.key.is_some() && punch.key().is_none() {
            return Err("its key is not one of 32 hexadecimal digits".into());
        }
        if punch.local.len() >= MAX_ADDRESSES {
            return Err(format!("more than {} local addresses", MAX_ADDRESSES - 1).into());
        }
        Ok(punch)
    }

    pub(crate) fn key(&self) -> Option<Key> {
        let key = self.key.as_ref()?;
        let digits = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u128::from_str_radix(key, 16).ok())??;
        Some(number.to_be_bytes())
    }

    /// If its sender claims another address than that at which the broker saw it, says so in a sentence. The
    /// broker has seen both, so they differ only if the sender lies, or its NAT has several addresses and
    /// mixes them. A claim that was not checked could name anybody's address: this site's own, or a third
    /// party's.
    pub(crate) fn claims_to_be_elsewhere(&self, seen: Option<IpAddr>) -> Option<String> {
        let (seen, mapped) = (seen?.to_canonical(), self.mapped.ip().to_canonical());
        (seen != mapped).then(|| {
            format!("it says that it is at {mapped}, but the broker sees it at {seen}: no way is punched")
        })
    }

    /// Lists where to knock: the addresses that a single host can have, each once.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = Vec::new();
        for address in std::iter::once(&self.mapped).chain(&self.local) {
            if is_of_a_host(*address) && !addresses.contains(address) {
                addresses.push(*address);
            }
        }
        addresses
    }
}

/// A knock with the receiver's key.
pub(crate) fn knock(key: Key) -> Vec<u8> {
    let mut datagram = vec![KNOCK, KNOCK_VERSION];
    datagram.extend_from_slice(&key);
    datagram
}

/// A knock's key; `None` for anything else.
pub(crate) fn knocked(datagram: &[u8]) -> Option<Key> {
    let [KNOCK, KNOCK_VERSION, key @ ..] = datagram else {
        return None;
    };
    key.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [7; 16];

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn literal_text_is_as_the_other_end_expects() {
        let text = r#"{"version":1,"answers":true,"key":"07070707070707070707070707070707","mapped":"192.0.2.1:7001","local":["10.0.0.1:7001"]}"#;
        let told = |key| Punch::new(true, key, address("192.0.2.1:7001"), &[address("10.0.0.1:7001")]);
        let punch = told(Some(KEY));
        assert_eq!(punch.encode().unwrap(), text);
        assert_eq!(Punch::decode(text), Ok(punch.clone()));
        assert_eq!(punch.key(), Some(KEY));
        let text = r#"{"version":1,"answers":true,"mapped":"192.0.2.1:7001","local":["10.0.0.1:7001"]}"#;
        assert_eq!(told(None).encode().unwrap(), text);
        assert_eq!(Punch::decode(text), Ok(told(None)));
    }

    #[test]
    fn what_is_no_such_message_is_refused_with_the_reason() {
        let good = Punch::new(false, Some(KEY), address("192.0.2.1:1"), &[])
            .encode()
            .unwrap();
        for (from, to, why) in [
            ("\"version\":1", "\"version\":2", "version 2"),
            ("0707", "zz07", "hexadecimal"),
            ("0707", "+707", "hexadecimal"),
            ("192.0.2.1:1", "192.0.2.1", "socket address"),
        ] {
            let error = Punch::decode(&good.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let many = ["\"10.0.0.1:1\""; MAX_ADDRESSES].join(",");
        let error = Punch::decode(&good.replace("[]", &format!("[{many}]"))).unwrap_err();
        assert!(error.contains("more than 7"), "{error}");
        assert!(Punch::decode("").is_err());
    }

    #[test]
    fn nobody_knocks_where_no_single_host_is() {
        let local = [
            "224.0.0.1:1",
            "0.0.0.0:1",
            "255.255.255.255:1",
            "10.0.0.1:0",
            "[ff02::1]:1",
            "10.0.0.2:1",
        ];
        let punch = Punch::new(false, Some(KEY), address("10.0.0.2:1"), &local.map(address));
        assert_eq!(punch.addresses(), [address("10.0.0.2:1")]);
    }

    #[test]
    fn a_sender_that_names_another_address_than_the_brokers_sight_of_it_is_told_apart() {
        let punch = Punch::new(false, Some(KEY), address("192.0.2.1:7001"), &[]);
        let elsewhere = |seen: &str| punch.claims_to_be_elsewhere(Some(seen.parse().unwrap()));
        assert_eq!(elsewhere("192.0.2.1"), None);
        assert_eq!(elsewhere("::ffff:192.0.2.1"), None);
        let why = elsewhere("198.51.100.7").unwrap();
        assert!(
            why.contains("at 192.0.2.1, but the broker sees it at 198.51.100.7"),
            "{why}"
        );
        assert_eq!(
            punch.claims_to_be_elsewhere(None),
            None,
            "a broker that does not tell"
        );
    }

    #[test]
    fn a_knock_has_its_key_and_nothing_else_is_one() {
        let datagram = knock(KEY);
        assert_eq!(datagram[..3], [0x32, 1, 7]);
        assert_eq!(knocked(&datagram), Some(KEY));
        for length in (0..40).filter(|length| *length != datagram.len()) {
            let mut other = datagram.clone();
            other.resize(length, 7);
            assert_eq!(knocked(&other), None);
        }
        assert_eq!(knocked(&[0x20; 18]), None);
    }
}
