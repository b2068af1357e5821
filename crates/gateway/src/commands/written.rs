//! What the next worker needs to know about commands and started processes if this one is killed.

use crate::book::{Book, Records, kind};
use crate::commands::command::{KeptCommand, KeptCommandStage};
use crate::commands::recording::Unrecorded;
use crate::commands::starter::KeptStarter;
use crate::commands::{Commands, KeptCommands};
use crate::inherited::StateError;
use crate::sys::process::borrow;
use crate::sys::socket::inode;
use causeway_control::{NEW_WORKER, Reply};
use causeway_memory::Key;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A command in the form in which it is written down.
#[derive(Serialize, Deserialize)]
struct WrittenCommand {
    command: KeptCommand,
    /// The inode, which distinguishes the socket from another one with the same descriptor.
    inode: u64,
}

impl Commands {
    /// Writes down what has changed.
    pub(crate) fn write_down(&mut self, book: &mut Book) {
        for key in self.connections.take_touched() {
            match self.connections.get(key) {
                Some(command) => {
                    let written = WrittenCommand {
                        inode: inode(command).unwrap_or(0),
                        command: command.keep(),
                    };
                    book.put(kind::COMMAND, key.0, &written);
                }
                None => book.remove(kind::COMMAND, key.0),
            }
        }
        if !std::mem::replace(&mut self.are_starters_noted, true) {
            let now = Instant::now();
            let starters = self.starters.iter();
            let starters = starters.chain(self.unrecorded.values().map(Unrecorded::starter));
            let kept: Vec<KeptStarter> = starters.map(|starter| starter.keep(now)).collect();
            book.put(kind::STARTERS, 0, &kept);
        }
    }

    /// Notes everything present as changed, and every change from now on.
    pub(crate) fn note_changes(&mut self) {
        self.connections.note_changes();
        self.are_starters_noted = false;
    }
}

/// Reads the processes that were written down. They are all that is needed if the rest is lost.
///
/// # Errors
/// The record cannot be read.
pub(crate) fn follow_starters(records: &Records) -> Result<Vec<KeptStarter>, StateError> {
    let starters = records.get(&Key::new(kind::STARTERS, 0, 0));
    let mut starters: Vec<KeptStarter> =
        starters.map_or(Ok(Vec::new()), |kept| postcard::from_bytes(kept))?;
    // kill(2) takes 0 and negative numbers for many processes at once, and 1 is nobody's child.
    starters.retain(|starter| starter.process > 1);
    Ok(starters)
}

/// Reads the commands and processes that were written down. Commands whose connection no longer exists are
/// left out. `was_killed`: the worker may have been in the middle of something.
///
/// # Errors
/// A record cannot be read.
pub(crate) fn follow(records: &Records, was_killed: bool) -> Result<KeptCommands, StateError> {
    let (from, until) = (
        Key::new(kind::COMMAND, 0, 0),
        Key::new(kind::COMMAND, 0, u64::MAX),
    );
    let mut commands = Vec::new();
    for (key, value) in records.range(from..=until) {
        let WrittenCommand {
            mut command,
            inode: expected,
        } = postcard::from_bytes(value)?;
        if borrow(command.descriptor).and_then(|socket| inode(&socket)) != Some(expected) {
            continue;
        }
        let is_asking = matches!(
            command.stage,
            KeptCommandStage::Reading(_) | KeptCommandStage::HandingOver
        );
        if was_killed && is_asking {
            // What the command said beyond that is lost.
            command.stage = KeptCommandStage::Answered;
            command.output = Reply::Error(NEW_WORKER.to_owned()).line();
        }
        // The number fits, because it was a usize before.
        commands.push((key.id as usize, command));
    }
    Ok(KeptCommands {
        starters: follow_starters(records)?,
        commands,
    })
}

/// Records of command 2 and of a process, for tests of the layout.
#[cfg(test)]
pub(crate) fn put_samples(book: &mut Book, descriptor: std::os::fd::BorrowedFd<'_>) {
    use std::os::fd::AsRawFd;
    use std::time::Duration;
    let command = WrittenCommand {
        command: KeptCommand {
            descriptor: descriptor.as_raw_fd(),
            generation: 1,
            stage: KeptCommandStage::Holding([7; 16]),
            output: Vec::new(),
        },
        inode: inode(&descriptor).unwrap(),
    };
    book.put(kind::COMMAND, 2, &command);
    let starter = KeptStarter {
        process: 4711,
        token: [7; 16],
        site: "nancy".into(),
        node: "rennes-1".into(),
        since: 1_795_327_857,
        doomed: Some(Duration::from_secs(2)),
    };
    book.put(kind::STARTERS, 0, &vec![starter]);
}
