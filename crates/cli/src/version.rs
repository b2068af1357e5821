//! What `causeway --version` prints beyond the version: which other versions this one works with, and for
//! which binary interfaces of MPI it has libraries.

use causeway_host::say;
use causeway_mpis::preload;
use causeway_remote::frame;
use causeway_rendezvous::message;
use clap::error::{Error, ErrorKind};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// The version, with the commit if the sources have one.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("CAUSEWAY_COMMIT"));

/// The binary interfaces, each with the ending of its libraries' names.
const INTERFACES: [(&str, &str); 4] = [
    ("openmpi", "Open MPI 4"),
    ("openmpi5", "Open MPI 5"),
    ("mpich", "MPICH"),
    ("abi", "standard (MPI 5)"),
];

/// Prints what clap prints when it runs no command. Only `--version` gets the long form, which looks for
/// files: no other command may wait for that.
pub fn main(said: &Error) -> ExitCode {
    let is_long = std::env::args_os().nth(1).is_some_and(|word| word == "--version");
    if said.kind() == ErrorKind::DisplayVersion && is_long {
        return say::result(long(&beside()));
    }
    said.exit()
}

/// The libraries that exist, and the directory in which they must be.
struct Libraries {
    directory: String,
    names: Vec<String>,
}

fn beside() -> Libraries {
    let own = std::env::current_exe().ok();
    let directory = own.as_deref().and_then(Path::parent);
    let files = directory.and_then(|directory| directory.read_dir().ok());
    let names = files.into_iter().flatten().flatten();
    Libraries {
        directory: directory.map_or_else(String::new, |directory| directory.display().to_string()),
        names: names
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect(),
    }
}

fn long(libraries: &Libraries) -> String {
    let mut text = format!("causeway {VERSION}\n");
    let _ = writeln!(
        text,
        "wire: lanes {}, control {}, nodes {}, worlds {}",
        causeway_tunnel::hello::VERSION,
        causeway_control::VERSION,
        frame::VERSION,
        message::VERSION,
    );
    let _ = writeln!(
        text,
        "state: gateway {}, broker {}",
        causeway_gateway::STATE_VERSION,
        causeway_broker::STORE_VERSION,
    );
    let there = |name: &str| libraries.names.iter().any(|file| file == name);
    let has_all = |interface: &str| needed(interface).iter().all(|name| there(name));
    let interfaces = INTERFACES.iter().filter(|(name, _)| has_all(name));
    let interfaces: Vec<&str> = interfaces.map(|(_, shown)| *shown).collect();
    let shown = if interfaces.is_empty() {
        "none".to_owned()
    } else {
        interfaces.join(", ")
    };
    let _ = write!(text, "interfaces: {shown}, in {}", libraries.directory);
    let all = INTERFACES.iter().flat_map(|(name, _)| needed(name));
    let all = preload::names().map(str::to_owned).chain(all);
    let mut missing: Vec<String> = all.filter(|name| !there(name)).collect();
    missing.sort();
    missing.dedup();
    if !missing.is_empty() {
        let _ = write!(text, "\nmissing there: {}", missing.join(", "));
    }
    text
}

/// The libraries of an interface. Both versions of Open MPI have the same world and messages libraries.
fn needed(interface: &str) -> Vec<String> {
    let shared = interface.strip_suffix('5').unwrap_or(interface);
    let kinds = [("mpi", interface), ("world", shared), ("messages", shared)];
    kinds
        .map(|(kind, interface)| format!("libcauseway_{kind}_{interface}.so"))
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_mpis::family::Family;

    #[test]
    fn the_version_says_which_interfaces_are_there_and_what_is_missing() {
        let with = |names: Vec<String>| {
            long(&Libraries {
                directory: "/c".to_owned(),
                names,
            })
        };
        let mut all: Vec<String> = preload::names().map(str::to_owned).collect();
        all.extend(INTERFACES.iter().flat_map(|(name, _)| needed(name)));
        let said = with(all.clone());
        assert!(
            said.starts_with(&format!("causeway {VERSION}\nwire: lanes ")),
            "{said}"
        );
        assert!(
            said.ends_with("interfaces: Open MPI 4, Open MPI 5, MPICH, standard (MPI 5), in /c"),
            "{said}"
        );
        all.retain(|name| name != "libcauseway_world_openmpi.so");
        let said = with(all);
        assert!(
            said.contains("interfaces: MPICH, standard (MPI 5), in /c\n"),
            "{said}"
        );
        assert!(
            said.ends_with("missing there: libcauseway_world_openmpi.so"),
            "{said}"
        );
        assert!(with(Vec::new()).contains("interfaces: none, in /c"));
    }

    #[test]
    fn the_libraries_are_those_that_the_mpis_get() {
        let all: Vec<String> = INTERFACES.iter().flat_map(|(name, _)| needed(name)).collect();
        let used = Family::ALL.iter().flat_map(|family| family.messages());
        for name in used.copied().chain(preload::names()) {
            assert!(
                name.ends_with("shim.so") || name == preload::UCX || all.iter().any(|other| other == name)
            );
        }
    }
}
