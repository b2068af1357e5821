//! Holds a line to each broker that serves, as the records say, and gives them the gateway's commands.

use super::Command;
use super::cache::BrokerKey;
use super::line::Line;
use super::session::Session;
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_local};

/// Runs a session until it is given up.
pub(super) async fn run(session: &Rc<Session>, mut commands: mpsc::Receiver<Command>) {
    session.begin();
    let share_out = async {
        while let Some(command) = commands.recv().await {
            session.share_out(&command);
        }
    };
    tokio::join!(keep(session), share_out);
}

async fn keep(session: &Rc<Session>) {
    let mut known = session.known.subscribe();
    let mut tasks: BTreeMap<BrokerKey, JoinHandle<()>> = BTreeMap::new();
    loop {
        let (wanted, present) = (session.wanted(), session.lines());
        for (key, addresses) in &present {
            if wanted.get(key) != Some(addresses) {
                if let Some(task) = tasks.remove(key) {
                    task.abort();
                }
                session.remove_line(*key);
            }
        }
        for (key, addresses) in wanted {
            if present.get(&key) != Some(&addresses) {
                let (line, orders) = Line::new(key, addresses.clone());
                session.add_line(key, addresses, orders);
                tasks.insert(key, spawn_local(line.run(session.clone())));
            }
        }
        if known.changed().await.is_err() {
            return;
        }
    }
}
