//! The request in an open frame.

use causeway_wire::Token;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest node name in a [`Target::Node`]: a DNS name.
pub const MAX_NODE_BYTES: usize = 255;

const CONNECTION: u8 = 1;
const NODE: u8 = 2;

/// A request to open a stream.
///
/// ```text
/// byte 0       1: connection, 2: node
/// byte 1-16    job token
/// connection:  source then destination, each: byte 4 or 6, address (4 or 16 bytes), port (2 bytes)
/// node:        the node's name, to the end
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// The job to which the stream belongs.
    pub token: Token,
    /// The address to reach.
    pub target: Target,
}

/// The other end of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An application's TCP connection.
    Connection {
        /// The address of the connecting process, in the form that its peer must see.
        source: SocketAddr,
        /// The address to which the application connects.
        destination: SocketAddr,
    },
    /// The remote shell to a node of the far site.
    Node(String),
}

impl OpenRequest {
    /// Returns the payload of an open frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.push(match self.target {
            Target::Connection { .. } => CONNECTION,
            Target::Node(_) => NODE,
        });
        bytes.extend(self.token.0);
        match &self.target {
            Target::Connection { source, destination } => {
                put_address(&mut bytes, *source);
                put_address(&mut bytes, *destination);
            }
            Target::Node(name) => bytes.extend(name.as_bytes()),
        }
        bytes
    }

    /// Reads an open frame's payload; `None` if it is anything else.
    pub fn decode(bytes: &[u8]) -> Option<OpenRequest> {
        let (kind, rest) = bytes.split_first()?;
        let (token, rest) = rest.split_first_chunk::<{ Token::BYTES }>()?;
        let target = match *kind {
            CONNECTION => {
                let (source, rest) = take_address(rest)?;
                let (destination, rest) = take_address(rest)?;
                rest.is_empty()
                    .then_some(Target::Connection { source, destination })?
            }
            NODE if (1..=MAX_NODE_BYTES).contains(&rest.len()) => {
                Target::Node(String::from_utf8(rest.to_vec()).ok()?)
            }
            _ => return None,
        };
        Some(OpenRequest {
            token: Token(*token),
            target,
        })
    }
}

fn put_address(bytes: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes.push(4);
            bytes.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.push(6);
            bytes.extend(ip.octets());
        }
    }
    bytes.extend(address.port().to_be_bytes());
}

fn take_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (family, rest) = bytes.split_first()?;
    let (ip, rest): (IpAddr, _) = match family {
        4 => rest
            .split_first_chunk::<4>()
            .map(|(ip, rest)| (Ipv4Addr::from(*ip).into(), rest))?,
        6 => rest
            .split_first_chunk::<16>()
            .map(|(ip, rest)| (Ipv6Addr::from(*ip).into(), rest))?,
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> [OpenRequest; 3] {
        let token = Token(*b"0123456789abcdef");
        let connection = |source: &str, destination: &str| Target::Connection {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        [
            OpenRequest {
                token,
                target: connection("10.1.0.1:40000", "10.2.0.1:1024"),
            },
            OpenRequest {
                token,
                target: connection("[fd00::1]:40000", "[fd00::2]:1024"),
            },
            OpenRequest {
                token,
                target: Target::Node("nancy-1".into()),
            },
        ]
    }

    #[test]
    fn literal_bytes_are_as_documented() {
        let mut expected = b"\x010123456789abcdef".to_vec();
        expected.extend([4, 10, 1, 0, 1, 0x9c, 0x40, 4, 10, 2, 0, 1, 4, 0]);
        assert_eq!(requests()[0].encode(), expected);
    }

    #[test]
    fn every_target_round_trips() {
        for request in requests() {
            assert_eq!(OpenRequest::decode(&request.encode()), Some(request));
        }
    }

    #[test]
    fn cut_or_damaged_requests_never_panic_and_cut_connections_are_refused() {
        for request in requests() {
            let bytes = request.encode();
            for cut in 0..bytes.len() {
                let decoded = OpenRequest::decode(&bytes[..cut]);
                assert!(decoded.is_none() || matches!(request.target, Target::Node(_)));
                for value in 0..=255 {
                    let mut damaged = bytes.clone();
                    damaged[cut] = value;
                    let _ = OpenRequest::decode(&damaged);
                }
            }
        }
    }
}
