//! The preload libraries, and a program into which they are to be loaded.

use super::steps::Step;
use causeway_mpis::preload::{SHIM, UCX, unsayable};
use causeway_remote::unloaded::has_capabilities;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Most program headers that are read: linkers write about a dozen.
const MAX_HEADERS: u16 = 256;

/// Type of the program header that names the dynamic loader (elf(5)).
const PT_INTERP: u32 = 3;

/// Whether the libraries are beside this program, and whether the loader accepts them.
pub fn libraries() -> Vec<Step> {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return vec![Step::fail("causeway", error.to_string(), "is /proc mounted?")],
    };
    if let Some(what) = unsayable(&own) {
        let remedy = "install it below a directory whose path has none, at the same path on every node";
        let why = format!(
            "lies at {}, and {what} is in that path: the loader and MPI's launchers take it for several",
            own.display()
        );
        return vec![Step::fail("causeway", why, remedy)];
    }
    let shim = library(&own.with_file_name(SHIM), Step::fail);
    // Only MPICH needs this library.
    let ucx = library(&own.with_file_name(UCX), Step::warn);
    vec![shim, ucx]
}

fn library(path: &Path, amiss: fn(String, String, String) -> Step) -> Step {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if !path.is_file() {
        let remedy = "put it beside causeway ('make build' builds both), at the same path on every node";
        return amiss(name, format!("{} is missing", path.display()), remedy.to_owned());
    }
    let mut command = Command::new("true");
    command.env("LD_PRELOAD", path).stdin(Stdio::null());
    match command.output() {
        // The loader continues without a library that it cannot load, and says so (ld.so(8)).
        Ok(output) if output.status.success() && output.stderr.is_empty() => {
            Step::ok(name, format!("{} can be loaded", path.display()))
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let remedy = "build it on this system, or on one with an older C library".to_owned();
            amiss(
                name,
                if said.is_empty() {
                    output.status.to_string()
                } else {
                    said
                },
                remedy,
            )
        }
        Err(error) => Step::warn(name, format!("run true: {error}"), "is there a 'true' in PATH?"),
    }
}

/// Whether the loader would preload anything into a program.
pub fn look(program: &Path) -> Vec<Step> {
    let name = program.display().to_string();
    let step = match kind(program) {
        Ok(Kind::Dynamic) => Step::ok(name, "is linked dynamically: the shim sees its connections"),
        Ok(Kind::Static) => Step::fail(
            name,
            "is linked statically: no library can be preloaded, so the shim does not see its connections to other sites",
            "link it dynamically (without -static), or run it with --transparent if the sites' routers support it (docs/transparent.md)",
        ),
        Ok(Kind::Privileged) => Step::fail(
            name,
            "is set-user-ID or set-group-ID: the loader preloads none of Causeway's libraries into it",
            format!("chmod ug-s {}", program.display()),
        ),
        Ok(Kind::Capable) => Step::fail(
            name,
            "has file capabilities: the loader preloads none of Causeway's libraries into it",
            format!(
                "run a copy without them (setcap -r takes them from {}), or run it with --transparent if the sites' routers support it \
                 (docs/transparent.md)",
                program.display()
            ),
        ),
        Ok(Kind::Foreign(processor)) => Step::fail(
            name,
            format!(
                "is for {processor}, and Causeway here is for {}: the loader preloads none of its libraries",
                own_processor()
            ),
            "compile it for this processor; Causeway has no libraries for 32 bits",
        ),
        Ok(Kind::Script) => Step::ok(
            name,
            "is not an ELF program: what counts is the interpreter that runs it",
        ),
        Err(error) => Step::fail(name, error.to_string(), "give the path of the program"),
    };
    vec![step]
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Dynamic,
    Static,
    Privileged,
    /// The program has capabilities of its own (capabilities(7)).
    Capable,
    Script,
    /// The program is for this other processor, or for 32 bits.
    Foreign(String),
}

/// Processors by their numbers in ELF files, with the names that distributions use (elf(5), linux/elf-em.h).
const PROCESSORS: [(u16, &str); 7] = [
    (3, "i386"),
    (21, "ppc64le"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86-64"),
    (183, "arm64"),
    (243, "riscv64"),
];
const OWN: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

fn processor(number: u16) -> String {
    let known = PROCESSORS.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("processor {number}"), |(_, name)| (*name).to_owned())
}

fn own_processor() -> String {
    processor(OWN)
}

fn kind(program: &Path) -> io::Result<Kind> {
    let mut file = File::open(program)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    if found.mode() & 0o6000 != 0 {
        return Ok(Kind::Privileged);
    }
    if has_capabilities(&file) {
        return Ok(Kind::Capable);
    }
    kind_of(&mut file)
}

/// The kind of a program, from its first bytes (elf(5)).
fn kind_of(file: &mut (impl Read + Seek)) -> io::Result<Kind> {
    let mut header = [0; 64];
    match file.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Kind::Script),
        read => read?,
    }
    if !header.starts_with(b"\x7fELF") {
        return Ok(Kind::Script);
    }
    let (bits, is_big) = (if header[4] == 1 { 32 } else { 64 }, header[5] == 2);
    let machine = [header[18], header[19]];
    let machine = if is_big {
        u16::from_be_bytes(machine)
    } else {
        u16::from_le_bytes(machine)
    };
    if bits == 32 {
        return Ok(Kind::Foreign(format!("{} of 32 bits", processor(machine))));
    }
    if machine != OWN || is_big {
        return Ok(Kind::Foreign(processor(machine)));
    }
    let short = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let mut offset = [0; 8];
    offset.copy_from_slice(&header[32..40]);
    let (size, count) = (short(54), short(56).min(MAX_HEADERS));
    for index in 0..u64::from(count) {
        let at = u64::from_ne_bytes(offset).checked_add(index * u64::from(size));
        file.seek(SeekFrom::Start(at.ok_or(io::ErrorKind::InvalidData)?))?;
        let mut kind = [0; 4];
        file.read_exact(&mut kind)?;
        if u32::from_ne_bytes(kind) == PT_INTERP {
            return Ok(Kind::Dynamic);
        }
    }
    Ok(Kind::Static)
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use std::io::Cursor;
    use std::os::unix::fs::PermissionsExt;

    /// An ELF header with program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&OWN.to_le_bytes());
        bytes[32..40].copy_from_slice(&64u64.to_ne_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_ne_bytes());
        bytes[56..58].copy_from_slice(&(types.len() as u16).to_ne_bytes());
        for kind in types {
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_without_a_loader_is_static() {
        let kind = |bytes: Vec<u8>| kind_of(&mut Cursor::new(bytes));
        assert_eq!(kind(elf(&[1, 6, 3])).unwrap(), Kind::Dynamic);
        assert_eq!(kind(elf(&[1, 6])).unwrap(), Kind::Static);
        assert_eq!(kind(b"#!/bin/sh\n".to_vec()).unwrap(), Kind::Script);
        assert_eq!(kind(vec![0; 100]).unwrap(), Kind::Script);
    }

    #[test]
    fn a_program_for_another_processor_is_told_by_its_name() {
        let is_for = |change: fn(&mut Vec<u8>)| {
            let mut program = elf(&[1, 6, 3]);
            change(&mut program);
            kind_of(&mut Cursor::new(program)).unwrap()
        };
        let foreign = |name: &str| Kind::Foreign(name.to_owned());
        assert_eq!(
            is_for(|elf| (elf[4], elf[18]) = (1, 3)),
            foreign("i386 of 32 bits")
        );
        assert_eq!(
            is_for(|elf| (elf[4], elf[18]) = (1, 62)),
            foreign("x86-64 of 32 bits")
        );
        assert_eq!(
            is_for(|elf| (elf[5], elf[18], elf[19]) = (2, 0, 22)),
            foreign("s390x")
        );
        assert_eq!(
            is_for(|elf| elf[19] = 0x40),
            foreign(if OWN == 62 {
                "processor 16446"
            } else {
                "processor 16567"
            })
        );
    }

    #[test]
    fn damaged_programs_never_panic() {
        let whole = elf(&[1, 6, 3]);
        for at in 0..whole.len() {
            let _ = kind_of(&mut Cursor::new(whole[..at].to_vec()));
            for value in [0, 1, 127, 255] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = kind_of(&mut Cursor::new(damaged));
            }
        }
    }

    #[test]
    fn programs_that_the_shim_cannot_enter_fail_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app");
        let result = |bytes: &[u8], mode: u32| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            look(&path).remove(0).result
        };
        assert_eq!(result(&elf(&[3]), 0o755), Verdict::Ok);
        assert_eq!(result(&elf(&[1]), 0o755), Verdict::Fail);
        assert_eq!(result(&elf(&[3]), 0o4755), Verdict::Fail);
        assert_eq!(result(b"#!/bin/sh\n", 0o755), Verdict::Ok);
        assert_eq!(look(dir.path()).remove(0).result, Verdict::Fail);
        assert_eq!(look(&dir.path().join("missing")).remove(0).result, Verdict::Fail);
        assert_eq!(kind(&std::env::current_exe().unwrap()).unwrap(), Kind::Dynamic);
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_told_by_the_loader() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libnothing.so");
        assert_eq!(library(&path, Step::fail).result, Verdict::Fail);
        std::fs::write(&path, "no library").unwrap();
        let step = library(&path, Step::fail);
        assert!(
            step.result == Verdict::Fail && step.detail.contains("libnothing.so"),
            "{step}"
        );
    }
}
