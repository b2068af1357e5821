//! The ports that `causeway up` gives to a site's gateway and a grid's broker: the usual ones, or the next
//! ones if something else has these, such as a gateway of another user of the same head node.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// Distance between the ports that are tried: a gateway's two ports are adjacent.
const APART: u16 = 10;
const MOST_TRIES: u16 = 100;

/// The first port that every user may use.
const FIRST: u16 = 1024;

/// Ports of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// Where a gateway listens for its site's processes.
    pub lan: u16,
    /// Where it listens for other gateways.
    pub wan: u16,
    /// Where a broker listens.
    pub broker: u16,
}

impl Ports {
    /// The ports that gateways and brokers have by default.
    pub const USUAL: Ports = Ports {
        lan: crate::join::LAN_PORT,
        wan: 7001,
        broker: causeway_broker::config::PORT,
    };

    /// Ports that nothing on this host uses.
    pub fn free() -> Ports {
        Ports {
            lan: free(Ports::USUAL.lan, is_free),
            wan: free(Ports::USUAL.wan, is_free),
            broker: free(Ports::USUAL.broker, is_free),
        }
    }

    /// Whether a user's programs can use all these ports.
    pub fn can_be(self) -> bool {
        let Ports { lan, wan, broker } = self;
        let differ = lan != wan && lan != broker && wan != broker;
        differ && [lan, wan, broker].into_iter().all(|port| port >= FIRST)
    }
}

/// The first free port from the usual one on; the usual one if there is none, for a message that names it.
fn free(usual: u16, is_free: impl Fn(u16) -> bool) -> u16 {
    let mut all = (0..MOST_TRIES).map(|number| usual + number * APART);
    all.find(|port| is_free(*port)).unwrap_or(usual)
}

/// Whether nothing uses the port at any address, over TCP or UDP: a gateway's lanes over QUIC have the same
/// number.
fn is_free(port: u16) -> bool {
    let any = (Ipv4Addr::UNSPECIFIED, port);
    TcpListener::bind(any).is_ok() && UdpSocket::bind(any).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_somebody_has_is_not_free_and_the_next_free_one_is_taken() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_free(taken.local_addr().unwrap().port()));
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!is_free(taken.local_addr().unwrap().port()));
        assert_eq!(free(7001, |_| true), 7001);
        assert_eq!(free(7001, |port| port > 7020), 7021);
        assert_eq!(free(7001, |_| false), 7001);
    }

    #[test]
    fn a_host_cannot_name_a_port_that_no_user_may_have_nor_one_twice() {
        assert!(Ports::USUAL.can_be() && Ports::free().can_be());
        assert!(
            !Ports {
                wan: 22,
                ..Ports::USUAL
            }
            .can_be()
        );
        assert!(
            !Ports {
                wan: 7000,
                ..Ports::USUAL
            }
            .can_be()
        );
    }
}
