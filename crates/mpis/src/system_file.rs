//! Settings that a distribution makes in a file for all of a host's users, and that Causeway must undo. Pure.
//!
//! Debian 14 builds Open MPI 6 with `btl_tcp_if_include=lo` in that file: it tests the package on a host
//! without a network. Ranks on two nodes then cannot reach each other, with Causeway or without it.

use crate::Mpi;
use crate::family::Family;
use std::ffi::OsString;

/// Debian's file of Open MPI parameters for all users.
pub const OPEN_MPI: &str = "/etc/openmpi/openmpi-mca-params.conf";

/// The variable that names the interfaces that ranks use, and the other variable, which excludes it.
const INTERFACES: &str = "OMPI_MCA_btl_tcp_if_include";
const OTHERS: &str = "OMPI_MCA_btl_tcp_if_exclude";

/// The variable that undoes a loopback interface, if that is the only one in the text of the file; `None` if
/// the user has named interfaces, in a variable or an option.
pub fn taken_back(
    mpi: Mpi,
    file: &str,
    words: &[OsString],
    is_set: impl Fn(&str) -> bool,
) -> Option<(&'static str, OsString)> {
    let mut lines = file.lines().filter_map(|line| line.split_once('='));
    let alone = lines.any(|(name, value)| name.trim() == parameter(INTERFACES) && value.trim() == "lo");
    let says = |variable: &str| is_set(variable) || words.iter().any(|word| word == parameter(variable));
    let is_free = !says(INTERFACES) && !says(OTHERS);
    // An empty value means all of them.
    (mpi.row().family == Family::OpenMpi && alone && is_free).then(|| (INTERFACES, OsString::new()))
}

fn parameter(variable: &str) -> &str {
    variable.strip_prefix("OMPI_MCA_").unwrap_or(variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN_14: &str = "# comment\nbtl_base_warn_component_unused=0\nbtl_tcp_if_include=lo\n";

    #[test]
    fn a_loopback_interface_that_a_distribution_names_alone_is_taken_back() {
        let back = |mpi, file| taken_back(mpi, file, &[], |_| false);
        assert_eq!(
            back(Mpi::OpenMpi5, DEBIAN_14),
            Some((INTERFACES, OsString::new()))
        );
        assert_eq!(back(Mpi::Mpich, DEBIAN_14), None);
        for chosen in ["", "btl_tcp_if_include = ib0\n", "# btl_tcp_if_include=lo\n"] {
            assert_eq!(back(Mpi::OpenMpi5, chosen), None, "{chosen}");
        }
    }

    #[test]
    fn what_the_user_says_of_interfaces_stays() {
        let typed = ["--mca", "btl_tcp_if_exclude", "docker0"].map(OsString::from);
        assert_eq!(taken_back(Mpi::OpenMpi5, DEBIAN_14, &typed, |_| false), None);
        for set in [INTERFACES, OTHERS] {
            assert_eq!(
                taken_back(Mpi::OpenMpi5, DEBIAN_14, &[], |name| name == set),
                None
            );
        }
    }
}
