//! One command that is being served: its connection, and its progress.

use crate::inherited::{InheritError, descriptor};
use causeway_control::{NEW_WORKER, Reply};
use causeway_wire::Token;
use mio::net::UnixStream;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

pub(crate) struct Command {
    pub(super) socket: UnixStream,
    pub(crate) generation: u64,
    pub(crate) stage: Stage,
    pub(super) output: VecDeque<u8>,
    /// Whether the output waits for [`Commands::send_answers`](super::Commands::send_answers).
    pub(super) is_held: bool,
}

pub(crate) enum Stage {
    Reading(Vec<u8>),
    /// Other sites have not confirmed the job yet.
    Starting(Token),
    /// The job lives as long as this connection.
    Holding(Token),
    /// The gateway of this site has been asked for an answer, at this time.
    Pinging(String, Instant),
    /// The gateway of this site has been asked for the allocation with this id, and may answer until this
    /// time.
    Seeking(String, String, Instant),
    /// The program that asks will get this gateway, and answers the command itself, unless it is refused.
    HandingOver,
    /// Nothing more is expected; the connection is closed once the answer is sent.
    Answered,
}

impl Command {
    pub(crate) fn keep(&self) -> KeptCommand {
        KeptCommand {
            descriptor: self.socket.as_raw_fd(),
            generation: self.generation,
            stage: match &self.stage {
                Stage::Reading(line) => KeptCommandStage::Reading(line.clone()),
                Stage::Starting(token) => KeptCommandStage::Starting(token.0),
                Stage::Holding(token) => KeptCommandStage::Holding(token.0),
                Stage::HandingOver => KeptCommandStage::HandingOver,
                // Answered with the reason that the time is over.
                Stage::Pinging(..) | Stage::Seeking(..) | Stage::Answered => KeptCommandStage::Answered,
            },
            output: match &self.stage {
                Stage::Pinging(..) | Stage::Seeking(..) => Reply::Error(NEW_WORKER.to_owned()).line(),
                _ => self.output.iter().copied().collect(),
            },
        }
    }

    pub(super) fn inherit(kept: KeptCommand) -> Result<Command, InheritError> {
        Ok(Command {
            socket: UnixStream::from_std(descriptor(kept.descriptor)?.into()),
            generation: kept.generation,
            stage: match kept.stage {
                KeptCommandStage::Reading(line) => Stage::Reading(line),
                KeptCommandStage::Starting(token) => Stage::Starting(Token(token)),
                KeptCommandStage::Holding(token) => Stage::Holding(Token(token)),
                KeptCommandStage::HandingOver => Stage::HandingOver,
                KeptCommandStage::Answered => Stage::Answered,
            },
            output: kept.output.into(),
            is_held: false,
        })
    }
}

impl AsFd for Command {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptCommand {
    pub(crate) descriptor: RawFd,
    pub(crate) generation: u64,
    pub(crate) stage: KeptCommandStage,
    pub(crate) output: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum KeptCommandStage {
    Reading(Vec<u8>),
    Starting([u8; 16]),
    Holding([u8; 16]),
    /// The command asked for the hand-over.
    HandingOver,
    Answered,
}
