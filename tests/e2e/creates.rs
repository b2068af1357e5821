//! What Causeway makes in places that others can write. creates.sh has the commands; strace sees what all
//! their processes make, at all sites.

use crate::grid::{causeway, is_root_in_labs, root};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Places in which any user of a host can make any name first.
const SHARED: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];

/// How names begin that MPIs give what they make there.
const OF_MPIS: [&str; 6] = [
    "ompi.",
    "open_mpi.",
    "vader_segment.",
    "sm_segment.",
    "mpich_shm_",
    "psm_shm.",
];

/// Directories that may be there before, and what is looked at then: owner and mode of the one, by
/// crates/control; the other is the emulated grid's.
const LOOKED_AT: [&str; 2] = ["causeway-0", "causeway-lab-0"];

const MAKING: &str = "open,openat,openat2,creat,mkdir,mkdirat,symlink,symlinkat,link,linkat,mknod,mknodat,bind,rename,\
                      renameat,renameat2";

/// Who follows a system call's line up to here, by process: strace breaks lines where others come between.
#[derive(Default)]
struct Trace {
    unfinished: HashMap<String, String>,
    /// Directories of these places that a mkdir in the trace has made.
    made: BTreeSet<String>,
    /// What trusts in something that may have been there before.
    trusting: Vec<String>,
}

impl Trace {
    fn line(&mut self, line: &str) {
        let Some((process, rest)) = line.split_once(' ') else {
            return;
        };
        let rest = rest.trim_start();
        if let Some((begun, _)) = rest.split_once(" <unfinished") {
            self.unfinished.insert(process.to_owned(), begun.to_owned());
            return;
        }
        let resumed = rest
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once(" resumed>"));
        let call = match resumed {
            Some((_, end)) => self.unfinished.remove(process).unwrap_or_default() + end,
            None => rest.to_owned(),
        };
        // Short calls are filled up with blanks.
        if let Some((call, result)) = call.rsplit_once(" = ")
            && result.starts_with(|first: char| first.is_ascii_digit())
        {
            self.call(call);
        }
    }

    /// Judges a call that has made something, or opened what was there.
    fn call(&mut self, call: &str) {
        let (name, words) = call.split_once('(').unwrap_or((call, ""));
        let opens = name.starts_with("open");
        if opens && !words.contains("O_CREAT") {
            return;
        }
        // Whatever else has a path among its words names what it makes last.
        let Some(path) = named(words) else { return };
        let Some((place, below)) = SHARED
            .iter()
            .find_map(|place| Some((place, path.strip_prefix(place)?)))
        else {
            return;
        };
        let (first, deeper) = below.split_once('/').unwrap_or((below, ""));
        if OF_MPIS.iter().any(|theirs| first.starts_with(theirs)) || LOOKED_AT.contains(&first) {
            return;
        }
        let directory = format!("{place}{first}");
        let exclusive = match name {
            "creat" => false,
            // Whatever the umask.
            "mkdir" | "mkdirat" => words.contains(", 0700)"),
            "open" | "openat" | "openat2" => words.contains("O_EXCL"),
            "rename" | "renameat" | "renameat2" => words.contains("RENAME_NOREPLACE"),
            _ => true,
        };
        if deeper.is_empty() && exclusive {
            self.made.insert(directory);
        } else if deeper.is_empty() || !self.made.contains(&directory) {
            self.trusting.push(call.to_owned());
        }
    }
}

/// The last path among the words of a call, absolute: with -y, strace tells what a descriptor stands for.
fn named(words: &str) -> Option<String> {
    let (before, after) = words.rsplit_once('"').map(|(front, _)| front)?.rsplit_once('"')?;
    if after.starts_with('/') {
        return Some(after.to_owned());
    }
    let (_, directory) = before.rsplit_once('<')?;
    let (directory, _) = directory.split_once('>')?;
    Some(format!("{directory}/{after}"))
}

#[test]
fn a_trace_tells_what_was_made_from_what_may_have_been_there() {
    let mut trace = Trace::default();
    let lines = [
        r#"7 mkdir("/tmp/ours", 0700)   = 0"#,
        r#"7 openat(AT_FDCWD</home/u>, "/tmp/ours/file", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</tmp/ours/file>"#,
        r#"8 openat(AT_FDCWD</tmp>, "alone", O_WRONLY|O_CREAT|O_EXCL, 0600 <unfinished ...>"#,
        r#"9 mkdir("/tmp/theirs", 0700) = -1 EEXIST (File exists)"#,
        r"8 <... openat resumed>) = 3</tmp/alone>",
        r#"8 symlinkat("/tmp/theirs/x", 5</tmp/ours>, "link") = 0"#,
        r#"8 openat(AT_FDCWD</home/u>, "notes", O_WRONLY|O_CREAT, 0600) = 3</home/u/notes>"#,
    ];
    lines.iter().for_each(|line| trace.line(line));
    assert_eq!(trace.trusting, Vec::<String>::new());
    assert_eq!(trace.made, ["/tmp/alone", "/tmp/ours"].map(str::to_owned).into());
    let trusting = [
        r#"9 openat(AT_FDCWD</tmp>, "theirs/file", O_WRONLY|O_CREAT, 0600) = 3</tmp/theirs/file>"#,
        r#"9 openat(AT_FDCWD</>, "/tmp/log", O_WRONLY|O_CREAT|O_APPEND, 0600) = 3</tmp/log>"#,
        r#"9 renameat(4</tmp/ours>, "file", AT_FDCWD</>, "/tmp/file") = 0"#,
        r#"9 mkdir("/tmp/for-anybody", 0777) = 0"#,
        r#"9 bind(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/tmp/theirs/socket"}, 110) = 0"#,
    ];
    trusting.iter().for_each(|line| trace.line(line));
    assert_eq!(trace.trusting.len(), trusting.len(), "{:?}", trace.trusting);
}

#[test]
#[ignore = "needs namespaces, Debian's MPIs and strace; run by make test"]
fn debian_mpis_and_all_commands_trust_nothing_that_others_may_have_made_first() {
    if !is_root_in_labs("an ordinary user's own lab has one account") {
        return;
    }
    let directory = root().join("target/e2e/creates");
    fs::create_dir_all(&directory).unwrap();
    let traced = directory.join("trace");
    let state = tempfile::Builder::new()
        .prefix("causeway-e2e-")
        .tempdir()
        .unwrap();
    let output = Command::new("timeout")
        .args([
            "-k",
            "10",
            "600",
            "strace",
            "-f",
            "-y",
            "-qq",
            "--seccomp-bpf",
            "-s",
            "4096",
            "-e",
        ])
        .args([&format!("trace={MAKING}"), "-o"])
        .arg(&traced)
        .arg(causeway())
        .args([
            "lab",
            "run",
            "rennes-nancy",
            "--name",
            "creates",
            "--no-gateways",
            "--",
        ])
        .arg(root().join("tests/e2e/creates.sh"))
        .arg(causeway())
        .arg(root().join("target/mpi"))
        .env("XDG_RUNTIME_DIR", state.path())
        .current_dir(&directory)
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("\nall was done\n"), "{said}");
    let trace = judged(&traced, state.path());
    assert!(trace.trusting.is_empty(), "{:#?}", trace.trusting);
    for ours in ["causeway-files-", "cw-"] {
        let is_there = trace.made.iter().any(|made| made.contains(ours));
        assert!(is_there, "nothing of {ours} in {:#?}", trace.made);
    }
}

/// What the trace in that file shows, where `own` was there before.
fn judged(traced: &Path, own: &Path) -> Trace {
    let mut trace = Trace::default();
    trace.made.insert(own.display().to_string());
    // Paths need not be UTF-8.
    let text = fs::read(traced).unwrap();
    String::from_utf8_lossy(&text)
        .lines()
        .for_each(|line| trace.line(line));
    trace
}
