//! Users whose login shell reads no lines of sh. shells.sh has the commands.

use crate::grid::{self, root};
use crate::programs::{Expected, Item};

#[test]
#[ignore = "needs namespaces as root, Debian's MPIs, tcsh and fish; run by make test"]
fn debian_mpis_run_for_users_of_tcsh_and_fish_whose_shells_print_something_first() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: an ordinary user's own lab has one account");
        return;
    }
    let script = root().join("tests/e2e/shells.sh").display().to_string();
    let programs = root().join("target/mpi").display().to_string();
    let of = |shell: &str, login: &str| {
        [
            format!("{shell}: {login}"),
            format!("{shell}, Open MPI: ring: 4 ranks, 49 passes of 1 to 8388608 bytes, all right"),
            format!("{shell}, MPICH: ring: 4 ranks, 49 passes of 1 to 8388608 bytes, all right"),
            format!("{shell}, --at: own_world: 4 ranks, all right"),
            format!("{shell}, files: status 0\n{shell}, files: out-nancy-1\n{shell}, files: out-rennes-1"),
            format!("{shell}, what check finds wrong: 0"),
        ]
    };
    let says = [of("tcsh", "/bin/tcsh"), of("fish", "/usr/bin/fish")].concat();
    let item = Item {
        name: "shells".to_owned(),
        command: format!("{script} {programs} 2>&1"),
        seconds: 120,
        expected: Expected::Says(says),
    };
    grid::run("rennes-nancy", "shells", vec![item]);
}
