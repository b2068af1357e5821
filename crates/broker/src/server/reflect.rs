//! Answers from which address a question came (`crate::reflection`): over UDP, at the port where the broker
//! listens for TCP, and there too.

use super::Shared;
use crate::reflection;
use causeway_service::admission::network_of;
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

/// The most answers in a second: to strangers in all and to members in all, so that a flood costs the host
/// little and members nothing, and to one address (in IPv6: one network of 64 bits), behind which there may
/// be several sites that ask a few times in a minute.
const IN_ALL: u32 = 2000;
const TO_ONE: u32 = 32;

const SECOND: Duration = Duration::from_secs(1);

/// How long it waits after an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(shared: Arc<Shared>, socket: UdpSocket) {
    let mut stopping = shared.stopping.subscribe();
    let mut pace = Pace::new(Instant::now());
    // One byte more than a question: a longer datagram is none.
    let mut space = [0; reflection::BYTES + 1];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut space) => received,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match received {
            Ok((count, from)) => {
                if pace.turns(Instant::now())
                    && let Some(members) = shared.networks_of_members()
                {
                    pace.members = members;
                }
                answer(&socket, &space[..count], from, &mut pace);
            }
            // Such as a refusal by a host that was answered.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => {
                shared.log.refuse("reflection", "a datagram", &error);
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves a connection that begins with a question instead of TLS. It stays open until the other side has met
/// its peer: its NAT keeps the port meanwhile.
pub(super) async fn once(shared: &Shared, mut socket: TcpStream, from: SocketAddr) {
    let answered = async {
        let mut question = [0; reflection::BYTES];
        socket.read_exact(&mut question).await?;
        let id = reflection::asked(&question).ok_or(io::ErrorKind::InvalidData)?;
        socket.write_all(&reflection::answer(id, from)).await
    };
    match timeout(shared.limits.handshake, answered).await {
        // Whatever is said further ends it.
        Ok(Ok(())) => drop(timeout(shared.limits.stranger_life, socket.read(&mut [0])).await),
        Ok(Err(error)) => shared.log.refuse("reflection", from.ip(), error),
        Err(_) => shared
            .log
            .refuse("reflection", from.ip(), "the question did not arrive in time"),
    }
}

fn answer(socket: &UdpSocket, datagram: &[u8], from: SocketAddr, pace: &mut Pace) {
    if let Some(id) = reflection::asked(datagram)
        && pace.admits(from.ip())
    {
        // What the kernel does not take is as good as lost on the way: who asks does so again.
        let _ = socket.try_send_to(&reflection::answer(id, from), from);
    }
}

/// How many were answered in this second.
struct Pace {
    began: Instant,
    /// Answers to strangers, and to members.
    strangers: u32,
    members_answers: u32,
    /// Answers to each network that asks. It holds at most as many as are answered in all.
    each: HashMap<IpAddr, u32>,
    /// From where gateways of members poll.
    members: HashSet<IpAddr>,
}

impl Pace {
    fn new(now: Instant) -> Pace {
        Pace {
            began: now,
            strangers: 0,
            members_answers: 0,
            each: HashMap::new(),
            members: HashSet::new(),
        }
    }

    /// Begins another second, if it is time; true where it does.
    fn turns(&mut self, now: Instant) -> bool {
        let is_over = now.saturating_duration_since(self.began) >= SECOND;
        if is_over {
            let members = std::mem::take(&mut self.members);
            *self = Pace {
                members,
                ..Pace::new(now)
            };
        }
        is_over
    }

    fn admits(&mut self, from: IpAddr) -> bool {
        let network = network_of(from);
        let all = match self.members.contains(&network) {
            true => &mut self.members_answers,
            false => &mut self.strangers,
        };
        if *all >= IN_ALL {
            return false;
        }
        let count = self.each.entry(network).or_default();
        if *count >= TO_ONE {
            return false;
        }
        *count += 1;
        *all += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn a_flood_is_answered_up_to_a_bound_from_one_address_and_from_all() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let from = |number: u32| IpAddr::from(number.to_be_bytes());
        let answered = (0..100).filter(|_| pace.admits(from(1))).count();
        assert_eq!(answered, TO_ONE as usize);
        assert!(pace.admits(from(2)));
        let others = (3..10_000).filter(|number| pace.admits(from(*number))).count();
        assert_eq!(others, (IN_ALL - TO_ONE - 1) as usize);
        assert!(pace.each.len() <= IN_ALL as usize);
        assert!(pace.turns(now + SECOND) && !pace.turns(now + SECOND));
        assert!(pace.admits(from(1)));
    }

    #[test]
    fn members_are_answered_whatever_strangers_ask() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let from = |number: u32| IpAddr::from(number.to_be_bytes());
        pace.members = HashSet::from([from(7)]);
        let strangers = (1000..10_000).filter(|number| pace.admits(from(*number)));
        assert_eq!(strangers.count(), IN_ALL as usize);
        let member = (0..100).filter(|_| pace.admits(from(7)));
        assert_eq!(member.count(), TO_ONE as usize);
        assert!(pace.turns(now + SECOND) && pace.members.contains(&from(7)));
    }

    #[test]
    fn all_addresses_of_one_network_of_ipv6_are_answered_as_often_as_one_address() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let from =
            |network: u128, host: u128| Ipv6Addr::from_bits(0x2001_0db8 << 96 | network << 64 | host).into();
        let answered = (0..100).filter(|host| pace.admits(from(1, *host))).count();
        assert_eq!(answered, TO_ONE as usize);
        assert!(pace.admits(from(2, 1)));
    }
}
