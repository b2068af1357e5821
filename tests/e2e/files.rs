//! Jobs whose program and input are at one site only. files.sh has the commands.

use crate::grid::{self, root};
use crate::programs::{Expected, Item};

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_run_what_is_sent_to_sites_without_it_and_leave_nothing_but_what_is_fetched() {
    let script = root().join("tests/e2e/files.sh").display().to_string();
    let programs = root().join("target/mpi").display().to_string();
    let says = [
        "ring_mpi: 4 ranks, all right\nring_mpi: 4 ranks, all right\n",
        "own_world: 8 ranks, all right\n",
        "status 3\nout-nancy-1\nout-nancy-2\nout-rennes-1\nout-rennes-2\nsame\nsame.nancy\nsame.nancy-2\n",
        "a case\na case\na case\na case\n",
        "\nnothing is left\n",
        "status 137\n",
        "killed: nothing is left\n",
        "--fetch: this host: broken off by SIGINT; all that the job has left stays for a day in",
        "broken off with status 130, here: .causeway-fetch-* late-*\n",
        "late-nancy-1 late-nancy-2 late-rennes-1 late-rennes-2\nlate\nlate\nlate\nlate\nfetched: nothing is left\n",
        "causeway: no job has left files that could not be fetched\n",
        "4\ncopies after --send-anew: 0\n",
        "copies: 3\n4\ncopies again: 3\n",
        "of its own\nof its own\n",
        "are too many for node 10.2.0.1 of nancy: whoever runs nancy lets other sites' jobs send 5000000, by files in \
         [accept]",
        "--send lyon:input: the job does not run at lyon, but at rennes, nancy",
        "out-leads-away of nancy is left out",
        "--send ../of-rennes: name a file below the current directory",
        "--send nowhere: there is no such file here",
        "--fetch $(id): give a pattern",
    ];
    let item = Item {
        name: "files".to_owned(),
        command: format!("{script} {programs} 2>&1"),
        seconds: 90,
        expected: Expected::Says(says.map(str::to_owned).to_vec()),
    };
    grid::run("rennes-nancy", "files", vec![item]);
}
