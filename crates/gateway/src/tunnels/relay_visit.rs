//! Shows a ticket at a relay, and waits for the far gateway there, before a handshake begins.

use crate::keys::PeerIndex;
use crate::tunnels::origin::Through;
use causeway_tunnel::ticket::{MET, Ticket};
use causeway_wire::TextError;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};

/// A visit to a relay, before a handshake begins.
#[derive(Debug)]
pub(crate) struct RelayVisit {
    pub(crate) through: Through,
    /// Index of the peer that is to be met.
    pub(crate) peer: PeerIndex,
    /// The number of the request, or of the meeting.
    pub(crate) id: u64,
    ticket: Ticket,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The ticket has yet to be shown.
    Arriving,
    /// The other gateway has not arrived yet.
    Waiting,
    Met,
}

impl RelayVisit {
    pub(crate) fn new(through: Through, peer: PeerIndex, id: u64, ticket: Ticket) -> RelayVisit {
        RelayVisit {
            through,
            peer,
            id,
            ticket,
            stage: Stage::Arriving,
        }
    }

    pub(crate) fn has_met(&self) -> bool {
        self.stage == Stage::Met
    }

    /// Goes on over an established connection; true once the far gateway is at its other end.
    pub(crate) fn advance(&mut self, mut socket: &TcpStream) -> Result<bool, TextError> {
        let relay = &self.through.site;
        let failed = |error: io::Error| TextError::from(format!("relay {relay}: {error}"));
        if self.stage == Stage::Arriving {
            let preface = self.ticket.preface();
            // Some bytes on a fresh connection: they fit into its buffer, or it is broken.
            match socket.write(&preface).map_err(failed)? {
                count if count == preface.len() => self.stage = Stage::Waiting,
                _ => return Err(failed(ErrorKind::WriteZero.into())),
            }
        }
        let mut answer = [0];
        while self.stage == Stage::Waiting {
            match socket.read(&mut answer) {
                Ok(1) if answer[0] == MET => self.stage = Stage::Met,
                Ok(0) => {
                    return Err(format!(
                        "relay {relay} closed: the far gateway did not come there in time, or the ticket was not taken"
                    ).into());
                }
                Ok(_) => return Err(format!("relay {relay} answers something else").into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(true)
    }
}
