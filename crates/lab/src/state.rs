//! Lets other processes list, enter, change and stop a running lab.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::control::{self, Answer, Request};
use crate::enter::{self, Door, NodeChild, NodeCommand, Place};
use crate::error::LabError;
use crate::plan::{Node, SiteView};
use crate::scenario::Scenario;
use crate::{signals, state_dir};

/// Description of a running lab, as its supervisor wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabState {
    /// Format of this description.
    pub version: u32,
    /// Name of the lab.
    pub name: String,
    /// The scenario that it was made from.
    pub scenario: Scenario,
    /// Process that emulates the WAN; the lab ends with it.
    pub supervisor: u32,
    /// Process that holds the namespaces.
    pub keeper: i32,
    /// Whether the lab lives in a user namespace of an ordinary user.
    pub in_user_namespace: bool,
    /// Its sites in the order of the scenario.
    pub sites: Vec<SiteView>,
    /// Its nodes, head node first, site by site.
    pub nodes: Vec<Node>,
    /// Its routers: only networks, for inspecting rules and packets, not hosts.
    pub routers: Vec<Router>,
    /// Its state directory.
    pub dir: PathBuf,
}

/// A router's network namespace. Commands run "on" it see the host's files and processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// `<site>-router`.
    pub name: String,
    /// Descriptor of the namespace in the keeper.
    pub descriptor: i32,
}

impl LabState {
    /// This user's running labs, by name.
    pub fn list() -> Vec<LabState> {
        LabState::list_in(&state_dir::default_root())
    }

    /// The running labs with their state directories under `root`.
    pub fn list_in(root: &Path) -> Vec<LabState> {
        let alive = state_dir::all(root)
            .into_iter()
            .filter(|path| state_dir::is_alive(path));
        alive.filter_map(|path| read(&path).ok()).collect()
    }

    /// The running lab with this name, or the only one, if no name is given.
    ///
    /// # Errors
    /// There is none, or there are several to choose from.
    pub fn open(name: Option<&str>) -> Result<LabState, LabError> {
        LabState::open_in(&state_dir::default_root(), name)
    }

    /// The same as [`LabState::open`], with the state directories under `root`.
    ///
    /// # Errors
    /// As [`LabState::open`].
    pub fn open_in(root: &Path, name: Option<&str>) -> Result<LabState, LabError> {
        let mut labs = LabState::list_in(root);
        let names: Vec<&str> = labs.iter().map(|lab| lab.name.as_str()).collect();
        let known = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        let found = match name {
            Some(name) => labs.iter().position(|lab| lab.name == name),
            None => (labs.len() == 1).then_some(0),
        };
        match found {
            Some(found) => Ok(labs.swap_remove(found)),
            None => {
                let name = name.unwrap_or("to choose without a name").to_owned();
                Err(LabError::NoSuchLab { name, known })
            }
        }
    }

    /// The node of this name.
    ///
    /// # Errors
    /// There is none; the error lists those that exist.
    pub fn node(&self, name: &str) -> Result<&Node, LabError> {
        self.nodes.iter().find(|node| node.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            LabError::NoSuchNode {
                node: name.to_owned(),
                lab: self.name.clone(),
                known: known.join(", "),
            }
        })
    }

    /// Starts a command in a node, or on a router (`rennes-router`); see [`crate::Lab::spawn`].
    ///
    /// # Errors
    /// The node is unknown, or a step failed.
    pub fn spawn(&self, command: NodeCommand) -> Result<NodeChild, LabError> {
        let router = self.routers.iter().find(|router| router.name == command.node);
        let place = match router {
            Some(router) => Place::Router {
                descriptor: router.descriptor,
            },
            None => Place::Node {
                init: self.node(&command.node)?.pid,
            },
        };
        enter::spawn(
            Door {
                place,
                keeper: self.keeper,
                in_user_namespace: self.in_user_namespace,
            },
            command,
        )
    }

    /// Runs a command in a node to its end; signals that reach this process meanwhile are passed on to it.
    ///
    /// # Errors
    /// The node is unknown, or a step failed.
    pub fn exec(&self, command: NodeCommand) -> Result<ExitStatus, LabError> {
        let session = command.session;
        let signals = signals::Signals::block()?;
        let child = self.spawn(command)?;
        signals::wait_passing_signals(child, session, &signals)
    }

    /// Puts a request to the supervisor.
    ///
    /// # Errors
    /// The lab is gone, or it refused.
    pub fn ask(&self, request: &Request) -> Result<Answer, LabError> {
        control::ask(&self.dir, &self.name, request)
    }

    /// Stops the lab and waits until it is gone.
    ///
    /// # Errors
    /// The supervisor did not answer or did not end in time.
    pub fn down(&self) -> Result<(), LabError> {
        if state_dir::is_alive(&self.dir) {
            self.ask(&Request::Down)?;
        }
        wait_until_gone(&self.dir)
    }
}

/// Stops every lab of this user, and removes what killed ones left behind; returns the names of both.
///
/// # Errors
/// The first lab that could not be stopped or cleaned up.
pub fn down_all() -> Result<Vec<String>, LabError> {
    down_all_in(&state_dir::default_root())
}

/// The same as [`down_all`], with the state directories under `root`.
///
/// # Errors
/// As [`down_all`].
pub fn down_all_in(root: &Path) -> Result<Vec<String>, LabError> {
    let mut gone = Vec::new();
    for path in state_dir::all(root) {
        if !state_dir::remove_stale(&path)? {
            read(&path)?.down()?;
        }
        gone.push(
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
    }
    let _ = fs::remove_dir(root);
    Ok(gone)
}

pub(crate) fn write(state: &LabState) -> Result<(), LabError> {
    let path = state.dir.join(STATE_FILE);
    // The file is renamed into place, so that a reader sees all of it or nothing.
    let new = state.dir.join("state.json.new");
    let bytes = serde_json::to_vec_pretty(state).map_err(io::Error::from);
    bytes
        .and_then(|bytes| fs::write(&new, bytes))
        .and_then(|()| fs::rename(&new, &path))
        .map_err(|source| LabError::State {
            step: "write",
            path,
            source,
        })
}

fn read(dir: &Path) -> Result<LabState, LabError> {
    let path = dir.join(STATE_FILE);
    let bytes = fs::read(&path).and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from));
    bytes.map_err(|source| LabError::State {
        step: "read",
        path,
        source,
    })
}

fn wait_until_gone(dir: &Path) -> Result<(), LabError> {
    let deadline = Instant::now() + DOWN_DEADLINE;
    while dir.exists() && state_dir::is_alive(dir) {
        if Instant::now() > deadline {
            return Err(LabError::Deadline {
                what: "end of the lab".to_owned(),
                seconds: DOWN_DEADLINE.as_secs(),
            });
        }
        // Polled, because the lock's release cannot be waited for with a deadline; it takes some 50 ms.
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Version 1: the first.
pub(crate) const STATE_VERSION: u32 = 1;
const STATE_FILE: &str = "state.json";
const DOWN_DEADLINE: Duration = Duration::from_secs(10);
