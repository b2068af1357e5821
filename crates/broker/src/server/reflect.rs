//! Answers from which address a question came (`crate::reflection`): over UDP, at the port at which the
//! broker listens for TCP, and over TCP at the same port.

use super::Shared;
use super::pace::{Pace, Rate};
use crate::reflection;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

/// The most answers in a second; several sites behind one address together ask a few times a minute.
const ANSWERS: Rate = Rate {
    in_all: 2000,
    to_one: 32,
    every: Duration::from_secs(1),
};

/// How long the reflector waits after an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(shared: Arc<Shared>, socket: UdpSocket) {
    let mut stopping = shared.stopping.subscribe();
    let mut pace = Pace::new(ANSWERS, Instant::now());
    // One byte more than a question has: a longer datagram is not a question.
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
                    pace.know(members);
                }
                answer(&socket, &space[..count], from, &mut pace);
            }
            // For example, a host that was answered has refused the datagram.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => {
                shared.log.refuse("reflection", "a datagram", &error);
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves a connection that begins with a question instead of TLS. It stays open until the other side has met
/// its peer, so that the NAT keeps the port.
pub(super) async fn once(shared: &Shared, mut socket: TcpStream, from: SocketAddr) {
    let answered = async {
        let mut question = [0; reflection::BYTES];
        socket.read_exact(&mut question).await?;
        let id = reflection::asked(&question).ok_or(io::ErrorKind::InvalidData)?;
        socket.write_all(&reflection::answer(id, from)).await
    };
    match timeout(shared.limits.handshake, answered).await {
        // Any further byte ends the connection.
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
        // What the kernel does not accept counts as lost on the way: the other side asks again.
        let _ = socket.try_send_to(&reflection::answer(id, from), from);
    }
}
