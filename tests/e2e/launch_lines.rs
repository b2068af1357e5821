//! Launch lines as users type them: wherever the options and variables of a launcher stand, the ranks are
//! where Causeway has placed them, they have the shim, and what cannot be done is said.

use crate::grid::{self, root};
use crate::mpi::{self, Mpi};
use crate::programs::{Expected, Item};

/// Two ranks at each site, one on each node.
const EACH: &str = "nancy-1 nancy-2 rennes-1 rennes-2";
const SITES: &str = "--sites rennes=2,nancy=2";
/// What users preload: an allocator in the place of libc's, which the shim and the collectives then use, too.
const TOOL: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

/// A run of `hostname`, whose ranks must be on `hosts`, and which must say `says`.
fn placed(name: &str, variables: &str, line: &str, hosts: &str, says: &str) -> Item {
    Item {
        name: name.to_owned(),
        command: format!(
            "{variables} eval 'causeway run {line}' >hosts 2>said; echo status $?; cat said; \
             [ \"$(sort hosts | xargs)\" = \"{hosts}\" ] && echo the ranks are where they are to be"
        ),
        seconds: 60,
        expected: Expected::Says(vec![
            "the ranks are where they are to be".to_owned(),
            says.to_owned(),
        ]),
    }
}

/// A run of a program that checks what it receives from the other site.
fn passes(mpi: &Mpi, name: &str, line: &str) -> Item {
    Item {
        name: format!("{}-{name}", mpi.name),
        command: format!("causeway run {SITES} -- {line}"),
        seconds: 90,
        expected: Expected::Says(vec!["all right".to_owned()]),
    }
}

/// A run that Ctrl-C ends, once its ranks are there: hydra gives 2 or calls it a success.
fn interrupted(mpi: &Mpi) -> Item {
    Item {
        name: format!("{}-interrupted", mpi.name),
        command: format!(
            "set -m; causeway run {SITES} -- {} -n 4 sh -c 'echo here; exec sleep 100' >said 2>&1 & pid=$!; set +m; \
             until [ $(grep -o here said | wc -l) -ge 4 ]; do read -rt 0.05 <> <(:) || :; done; kill -INT $pid; wait $pid && echo ended well || echo no success",
            mpi.launcher
        ),
        seconds: 60,
        expected: Expected::Says(vec!["no success".to_owned()]),
    }
}

/// A file of programs, without hosts.
const PROGRAMS: &str = "printf '# two\\n-n 2 hostname\\n-n 2 hostname\\n' > programs;";
const LEFT_OUT: &str = "causeway: left out: ";

fn hydra_items() -> Vec<Item> {
    let mpich = mpi::debian_mpich();
    let ring = format!("{}/ring", mpich.programs.display());
    let run = |words: &str| format!("{SITES} -- {} {words}", mpich.launcher);
    vec![
        placed(
            "env-word",
            "",
            &run("-n 4 -env OMP_NUM_THREADS=1 hostname"),
            EACH,
            "status 0",
        ),
        placed("genv-word", "", &run("-genv A=1 hostname"), EACH, "status 0"),
        placed(
            "genv-words",
            "",
            &run("-genv A 1 -n 4 hostname"),
            EACH,
            "status 0",
        ),
        placed(
            "any-case",
            "",
            &run("--Genv=A=1 -NP 4 hostname"),
            EACH,
            "status 0",
        ),
        placed(
            "configfile",
            PROGRAMS,
            &run("-configfile programs"),
            EACH,
            "status 0",
        ),
        placed(
            "configfile-of-a-pipe",
            PROGRAMS,
            &run("-configfile <(cat programs)"),
            EACH,
            "status 0",
        ),
        placed(
            "launcher",
            "",
            &run("-bootstrap-exec ssh -n 4 hostname"),
            EACH,
            LEFT_OUT,
        ),
        placed(
            "launcher-variable",
            "HYDRA_LAUNCHER=fork",
            &run("-n 4 hostname"),
            EACH,
            LEFT_OUT,
        ),
        placed(
            "hosts-variable",
            "echo rennes-1 > hosts-1; HYDRA_HOST_FILE=hosts-1",
            &run("-n 4 hostname"),
            EACH,
            LEFT_OUT,
        ),
        placed(
            "names",
            "",
            &format!(
                "-- {} -hosts RENNES-1,nancy-2.cluster.example -n 2 hostname",
                mpich.launcher
            ),
            "nancy-2 rennes-1",
            "status 0",
        ),
        placed(
            "one-site",
            "",
            &run("-n 4 -ppn 4 hostname"),
            "rennes-1 rennes-1 rennes-1 rennes-1",
            "the launcher has started nothing at nancy",
        ),
        placed(
            "full",
            "",
            &format!(
                "--sites rennes,nancy -- {} -n 18 hostname | sort -u",
                mpich.launcher
            ),
            EACH,
            "causeway: 18 ranks share the 16 slots",
        ),
        placed(
            "blank",
            "mkdir 'a b'; TMPDIR=\"$PWD/a b\" XDG_RUNTIME_DIR=",
            &run("-n 4 hostname"),
            EACH,
            "status 0",
        ),
        placed(
            "not-writable",
            "XDG_RUNTIME_DIR=/proc/self",
            &run("-n 4 hostname"),
            EACH,
            "status 0",
        ),
        placed(
            "not-utf-8",
            "LD_LIBRARY_PATH=/x$(printf '\\351')",
            &run("-n 4 hostname"),
            EACH,
            "status 0",
        ),
        interrupted(&mpich),
        passes(
            &mpich,
            "preload",
            &format!("{} -genv LD_PRELOAD {TOOL} -n 4 {ring}", mpich.launcher),
        ),
        passes(
            &mpich,
            "preload-word",
            &format!("{} -n 4 -env LD_PRELOAD={TOOL} {ring}", mpich.launcher),
        ),
    ]
}

fn open_mpi_items() -> Vec<Item> {
    let open_mpi = mpi::debian_openmpi();
    let ring = format!("{}/ring", open_mpi.programs.display());
    let run = |words: &str| format!("{SITES} -- {} {words}", open_mpi.launcher);
    vec![
        placed(
            "numbers",
            "",
            &run("-H +n0,+n3 -n 8 hostname | sort -u"),
            "nancy-2 rennes-1",
            "status 0",
        ),
        placed(
            "names-open-mpi",
            "",
            &format!(
                "-- {} -H RENNES-1,nancy-2.cluster.example -n 2 hostname",
                open_mpi.launcher
            ),
            "nancy-2 rennes-1",
            "status 0",
        ),
        passes(
            &open_mpi,
            "spawn",
            &format!("{} -n 4 {}/spawn", open_mpi.launcher, open_mpi.programs.display()),
        ),
        placed("app", PROGRAMS, &run("--app programs"), EACH, "status 0"),
        placed(
            "agent",
            "",
            &run("--mca plm_rsh_agent ssh -n 4 hostname"),
            EACH,
            LEFT_OUT,
        ),
        placed(
            "agent-variable",
            "OMPI_MCA_plm_rsh_agent=ssh",
            &run("-n 4 hostname"),
            EACH,
            LEFT_OUT,
        ),
        passes(
            &open_mpi,
            "preload",
            &format!("{} -x LD_PRELOAD={TOOL} -n 4 {ring}", open_mpi.launcher),
        ),
        passes(
            &open_mpi,
            "preload-list",
            &format!(
                "{} --mca mca_base_env_list 'A=1;LD_PRELOAD={TOOL}' -n 4 {ring}",
                open_mpi.launcher
            ),
        ),
    ]
}

/// What stands between a launcher and its ranks, and what they are built with.
fn wrapper_items(mpi: &Mpi, compiler: &str) -> Vec<Item> {
    let ring = format!("{}/ring", mpi.programs.display());
    let launch = format!("{} -n 4", mpi.launcher);
    let emptied = "env -i $(env | grep -E \"^(OMPI|PMI|HYD|UCX|LD_LIB)\" | grep -v \" \") \"$@\"";
    let wrapped = |script: &str| format!("{launch} sh -c '{script}' sh {ring}");
    let source = root().join("tests/programs/ring.c");
    let sanitized = Item {
        name: format!("{}-sanitized", mpi.name),
        command: format!(
            "{compiler} -g -fsanitize=address -o ring {} && \
             ASAN_OPTIONS=detect_leaks=0 causeway run {SITES} -- {launch} ./ring",
            source.display()
        ),
        seconds: 90,
        expected: Expected::Says(vec!["all right".to_owned()]),
    };
    vec![
        passes(
            mpi,
            "wrapper-sets",
            &wrapped(&format!("LD_PRELOAD={TOOL} exec \"$@\"")),
        ),
        passes(mpi, "wrapper-unsets", &wrapped("unset LD_PRELOAD; \"$@\"")),
        passes(mpi, "wrapper-empties", &wrapped(emptied)),
        sanitized,
    ]
}

/// A wrapper that loads no library, so that the shim cannot stay: the rank is told of by its number and host.
/// MPICH ends by itself then.
fn without_shim() -> Item {
    let mpich = mpi::debian_mpich();
    let ring = format!("{}/ring", mpich.programs.display());
    let wrapper = "extern int execv(), unsetenv(); \
                   int main(int c, char **v) { unsetenv(\"LD_PRELOAD\"); return execv(v[1], v + 1); }";
    Item {
        name: "wrapper-static".to_owned(),
        command: format!(
            "echo '{wrapper}' | gcc -w -static -x c -o wrapper - && \
             causeway run {SITES} -- {} -n 4 $PWD/wrapper {ring} >said 2>&1; \
             grep -oE 'rank [0-3] on (rennes|nancy)-[12] .* without Causeway.s shim' said",
            mpich.launcher
        ),
        seconds: 60,
        expected: Expected::Says(vec!["on nancy-".to_owned(), "on rennes-".to_owned()]),
    }
}

/// A rank into which nothing can be loaded, and that is told of with the reason once it has connections.
fn static_rank() -> Item {
    let mpich = mpi::debian_mpich();
    let rank = "extern int socket(), listen(); extern unsigned sleep(); \
                int main() { listen(socket(2, 1, 0), 1); sleep(4); return 0; }";
    Item {
        name: "rank-static".to_owned(),
        command: format!(
            "echo '{rank}' | gcc -w -static -x c -o rank - && \
             causeway run {SITES} -- {} -n 4 $PWD/rank >said 2>&1; cat said",
            mpich.launcher
        ),
        seconds: 60,
        expected: Expected::Says(vec![
            "on rennes-".to_owned(),
            "on nancy-".to_owned(),
            "has connections without Causeway's shim and cannot reach other sites: it is statically linked"
                .to_owned(),
        ]),
    }
}

/// A program that opens its MPI so that nothing preloaded stands before it: the rank is told of likewise.
fn past_shim() -> Item {
    let mpich = mpi::debian_mpich();
    let host = "int main(int c, char **v) { \
                void *plugin = dlopen(v[1], RTLD_NOW | RTLD_DEEPBIND); \
                return ((int (*)(int, char **))dlsym(plugin, \"ring\"))(c - 1, v + 1); }";
    Item {
        name: "mpi-opened-deep".to_owned(),
        command: format!(
            "echo '{host}' | gcc -w -D_GNU_SOURCE -include dlfcn.h -x c -o host - && mpicc.mpich -shared -fPIC -Dmain=ring -o plugin.so {} && \
             causeway run {SITES} -- {} -n 4 $PWD/host $PWD/plugin.so >said 2>&1; cat said; \
             grep -oE 'rank [0-3] on (rennes|nancy)-[12] .* has loaded lib.* past Causeway.s shim' said",
            root().join("tests/programs/ring.c").display(),
            mpich.launcher
        ),
        seconds: 60,
        expected: Expected::Says(vec!["has loaded".to_owned()]),
    }
}

/// A script that starts MPI by itself: one job after the other, two beside one another, and its own status.
/// What a launcher starts has no launchers of Causeway's in its PATH.
fn script_item() -> Item {
    let (openmpi, mpich) = (mpi::debian_openmpi(), mpi::debian_mpich());
    let ring = |mpi: &Mpi| format!("{} -n 4 {}/ring", mpi.launcher, mpi.programs.display());
    let driver = format!(
        "set -e; {0} >one; {1} >two & {0} >three; wait; \
         {2} -n 4 sh -c \"command -v mpirun.mpich; env\" | grep -c ^CAUSEWAY_SCRIPT= || true; \
         {2} -n 4 sh -c \"command -v mpirun.mpich\" | sort -u; \
         cat one two three | grep -c \"ring: 4 ranks.*all right\"; exit 5",
        ring(&openmpi),
        ring(&mpich),
        mpich.launcher
    );
    Item {
        name: "script".to_owned(),
        command: format!(
            "causeway run --script {SITES} -- sh -c '{driver}'; echo status $?; ls /tmp | grep -c causeway-run || true"
        ),
        seconds: 90,
        expected: Expected::Says(vec!["0\n/usr/bin/mpirun.mpich\n3\nstatus 5\n0".to_owned()]),
    }
}

/// A rank that starts a launcher by itself: a job of its own, on its host. What Causeway has set for the
/// rank's own launcher is not there, whichever MPI that has.
fn nested() -> Vec<Item> {
    let (openmpi, mpich) = (mpi::debian_openmpi(), mpi::debian_mpich());
    let inner = format!("mpirun.mpich -n 2 {}/ring", mpich.programs.display());
    let starts = Item {
        name: "nested".to_owned(),
        command: format!(
            "causeway run {SITES} -- {} -n 4 sh -c '{inner} >inner.$PMI_RANK; cat inner.$PMI_RANK' | \
             grep -c 'ring: 2 ranks.*all right'",
            mpich.launcher
        ),
        seconds: 60,
        expected: Expected::Says(vec!["4".to_owned()]),
    };
    let lacks = Item {
        name: "nested-openmpi".to_owned(),
        command: format!(
            "causeway run {SITES} -- {} -n 4 sh -c 'sleep 0; env' >all; grep -c ^OMPI_COMM_WORLD_RANK= all; \
             grep -c ^OMPI_MCA_btl= all; grep -c -e ^OMPI_MCA_plm_rsh_agent= -e ^OMPI_MCA_orte_default_hostfile= all || true",
            openmpi.launcher
        ),
        seconds: 60,
        expected: Expected::Says(vec!["4\n4\n0".to_owned()]),
    };
    vec![starts, lacks]
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_ranks_are_where_they_are_to_be_whatever_the_launch_line() {
    let mut items = hydra_items();
    items.extend(open_mpi_items());
    items.extend(wrapper_items(&mpi::debian_mpich(), "mpicc.mpich"));
    items.extend(wrapper_items(&mpi::debian_openmpi(), "mpicc.openmpi"));
    items.push(without_shim());
    items.push(static_rank());
    items.push(past_shim());
    items.push(script_item());
    items.extend(nested());
    grid::run("rennes-nancy", "launch-lines", items);
}
