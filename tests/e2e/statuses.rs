//! What a job's status is if one of its ranks ends before its time: that which the launcher gives without
//! Causeway. statuses.sh has the commands.

use crate::grid::{self, root};
use crate::programs::{Expected, Item};

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_give_the_status_of_a_rank_that_fails_as_they_do_without_causeway() {
    let script = root().join("tests/e2e/statuses.sh").display().to_string();
    let programs = root().join("target/mpi").display().to_string();
    let ways = |mpi: &str, ways: &[&str]| -> Vec<String> {
        let ranks = |how: &&str| [0, 3].map(|rank| format!("{mpi} {how} rank {rank}: "));
        ways.iter().flat_map(ranks).collect()
    };
    let openmpi = ways("openmpi", &["segv", "kill", "abrt", "abort5", "exit3", "last3"]);
    let mpich = ways("mpich", &["segv", "kill", "abrt", "abort5", "last3"]);
    let all = openmpi.len() + mpich.len();
    let item = Item {
        name: "statuses".to_owned(),
        command: format!(
            "{script} {programs} >statuses; cat statuses; \
             [ $(grep -c ': alike$' statuses) = {all} ] && echo 'each is as without Causeway'"
        ),
        seconds: 600,
        expected: Expected::Says([openmpi, mpich, vec!["each is as without Causeway".to_owned()]].concat()),
    };
    grid::run("rennes-nancy", "statuses", vec![item]);
}
