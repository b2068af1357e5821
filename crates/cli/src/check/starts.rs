//! How a site that keeps its own MPI starts programs, and which networks its MPI finds: for `causeway run
//! --at` and `--own-mpi`. Launchers and their versions are checked in `mpi`.

use super::Subject;
use super::nodes::{self, Remote};
use super::steps::Step;
use causeway_control::SiteMpi;
use causeway_mpis::starting::srun_types;
use std::path::Path;

/// Most names of one kind that a step shows: a host may have many cards.
const MOST_SHOWN: usize = 12;

/// Fast networks, recognised by what their drivers show.
const NETWORKS: [(&str, &str, &str); 3] = [
    ("/sys/class/infiniband", "", "InfiniBand or RoCE"),
    ("/dev", "cxi", "Slingshot"),
    ("/dev", "hfi", "Omni-Path"),
];

/// Checks this host, and what its gateway's configuration says.
pub fn look(subject: &Subject) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(subject.config().map(|config| configured_start(&config.mpi)));
    steps.extend(slurm(&said("srun --mpi=list 2>&1")));
    steps.push(network(Path::new("/")));
    let ucx = names(&said("ucx_info -d 2>/dev/null"), "# Transport: ");
    let libfabric = names(&said("fi_info 2>/dev/null"), "provider: ");
    for (what, tool, found) in [
        ("transports of UCX", "ucx_info", ucx),
        ("providers of libfabric", "fi_info", libfabric),
    ] {
        if !found.is_empty() {
            steps.push(Step::ok(what, format!("{} ({tool})", found.join(", "))));
        }
    }
    steps
}

fn configured_start(mpi: &SiteMpi) -> Step {
    let start = mpi.start.as_deref().map_or_else(
        || "programs are started by srun if there is Slurm, otherwise by a launcher in PATH".to_owned(),
        |start| format!("programs are started by {start}"),
    );
    let setup = mpi.setup.as_ref().map(|setup| format!("; before: {setup}"));
    Step::ok("[mpi]", start + &setup.unwrap_or_default())
}

/// What a command prints within a moment; empty if it fails or does not exist.
fn said(script: &str) -> String {
    // With a deadline, as for a node.
    let shell = ["sh", "-c"].map(str::to_owned);
    match nodes::ask(&shell, "", script) {
        Remote::Said(said) => said,
        Remote::Failed(_) => String::new(),
    }
}

/// What `srun --mpi=list` says; `None` if there is no Slurm.
fn slurm(list: &str) -> Option<Step> {
    let mut types = srun_types(list);
    if types.is_empty() {
        return None;
    }
    types.truncate(MOST_SHOWN);
    let detail = format!("srun --mpi= takes {}", types.join(", "));
    Some(if types.iter().any(|has| has == "pmix" || has == "pmi2") {
        Step::ok("Slurm", detail)
    } else {
        let remedy =
            "ask for Slurm's pmi2 (MPICH) or pmix (Open MPI) plugin, or start with mpirun inside salloc";
        Step::warn("Slurm", detail, remedy)
    })
}

/// The cards of fast networks, each with its kind.
pub fn fast_networks(root: &Path) -> Vec<String> {
    NETWORKS.iter().flat_map(|network| cards(root, network)).collect()
}

fn network(root: &Path) -> Step {
    let found = fast_networks(root);
    let name = "fast network";
    if found.is_empty() {
        return Step::ok(
            name,
            "none found on this host: ranks of a site communicate over TCP and shared memory",
        );
    }
    let detail = "; one MPI over all sites uses TCP here, with --at and --own-mpi the site's MPI chooses";
    Step::ok(name, found.join(", ") + detail)
}

fn cards(root: &Path, (directory, prefix, kind): &(&str, &str, &str)) -> Vec<String> {
    let directory = root.join(directory.trim_start_matches('/'));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names.truncate(MOST_SHOWN);
    names.iter().map(|name| format!("{kind} {name}")).collect()
}

/// What follows a word in lines, each once, in the order of the text; a run of blanks counts as one.
fn names(text: &str, before: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(name) = line.strip_prefix(before)
            && !names.iter().any(|known| known == name)
            && names.len() < MOST_SHOWN
        {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;

    #[test]
    fn slurm_is_of_use_where_it_has_a_way_to_mpis() {
        let list = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n";
        assert_eq!(
            slurm(list),
            Some(Step::ok("Slurm", "srun --mpi= takes none, pmi2, pmix"))
        );
        let none = slurm("MPI plugin types are...\n\tnone\n").map(|step| step.result);
        assert_eq!(none, Some(Verdict::Warn));
        assert_eq!(slurm("sh: 1: srun: not found"), None);
    }

    #[test]
    fn listings_of_ucx_and_libfabric_become_names() {
        let ucx = "#\n# Memory domain: posix\n#      Transport: posix\n#         Device: memory\n#      Transport: tcp\n\
                   #         Device: eth0\n#      Transport: tcp\n";
        assert_eq!(names(ucx, "# Transport: "), ["posix", "tcp"]);
        assert_eq!(
            names("provider: cxi\n    fabric: cxi\nprovider: shm\n", "provider: "),
            ["cxi", "shm"]
        );
    }

    #[test]
    fn cards_are_told_by_their_kind() {
        let root = tempfile::tempdir().unwrap();
        assert!(network(root.path()).detail.starts_with("none found"));
        for file in ["sys/class/infiniband/mlx5_0", "dev/cxi0", "dev/null"] {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let detail = network(root.path()).detail;
        assert!(
            detail.starts_with("InfiniBand or RoCE mlx5_0, Slingshot cxi0;"),
            "{detail}"
        );
    }
}
