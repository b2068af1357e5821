//! Which MPI a program was built for, by the libraries that it asks the loader for.

use super::launcher::Mpi;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What names its libraries stands near the beginning of a program; reading ends here.
const MOST_READ: u64 = 32 << 20;

/// The binary interfaces for which launchers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    /// And what has its binary interface.
    Mpich,
}

impl Family {
    /// The family that a launcher starts.
    pub fn started_by(mpi: Mpi) -> Family {
        if mpi.is_open_mpi() {
            Family::OpenMpi
        } else {
            Family::Mpich
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH or Intel MPI",
        }
    }

    /// Reads a program; `None` where it is a script, needs no MPI's library, or cannot be read.
    pub fn of(program: &Path) -> Option<Family> {
        let mut bytes = Vec::new();
        let file = File::open(program).ok()?;
        file.take(MOST_READ).read_to_end(&mut bytes).ok()?;
        needed(&bytes)?.iter().find_map(|name| Family::of_library(name))
    }

    fn of_library(name: &[u8]) -> Option<Family> {
        let begins = |names: &[&[u8]]| names.iter().any(|known| name.starts_with(known));
        if begins(OPEN_MPI) {
            Some(Family::OpenMpi)
        } else if begins(MPICH) {
            Some(Family::Mpich)
        } else {
            None
        }
    }
}

/// How the names of the libraries for C and Fortran begin.
const OPEN_MPI: &[&[u8]] = &[b"libmpi.so.40", b"libmpi_mpifh.so", b"libmpi_usempi"];
const MPICH: &[&[u8]] = &[b"libmpich", b"libmpi.so.12", b"libmpifort.so.12"];

/// The libraries that a 64-bit, little-endian ELF file asks the loader for (DT_NEEDED; elf(5)). A program may
/// have the names of others in its data, as Causeway has.
fn needed(file: &[u8]) -> Option<Vec<&[u8]>> {
    const LOAD: u32 = 1;
    const DYNAMIC: u32 = 2;
    const NEEDED: u64 = 1;
    const STRINGS: u64 = 5;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (at, size, count) = (word(file, 0x20)?, half(file, 0x36)?, half(file, 0x38)?);
    let headers = (0..count).map(|number| {
        let at = at.checked_add(number.checked_mul(size)?)?;
        Some((
            quarter(file, at)?,
            word(file, at + 8)?,
            word(file, at + 16)?,
            word(file, at + 32)?,
        ))
    });
    // Of each: its kind, place in the file, address and length.
    let headers: Vec<(u32, u64, u64, u64)> = headers.collect::<Option<_>>()?;
    let (_, dynamic, _, length) = headers.iter().find(|header| header.0 == DYNAMIC)?;
    let entries = (0..length / 16).map_while(|number| {
        let at = dynamic.checked_add(16 * number)?;
        Some((word(file, at)?, word(file, at + 8)?))
    });
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != 0).collect();
    let address = entries.iter().find(|(tag, _)| *tag == STRINGS)?.1;
    let holds = |start: u64, length: u64| address >= start && address - start < length;
    let (_, place, start, _) = headers
        .iter()
        .find(|(kind, _, start, length)| *kind == LOAD && holds(*start, *length))?;
    let strings = place.checked_add(address - start)?;
    let names = entries
        .iter()
        .filter(|(tag, _)| *tag == NEEDED)
        .map(|(_, offset)| {
            let from = usize::try_from(strings.checked_add(*offset)?).ok()?;
            file.get(from..)?.split(|byte| *byte == 0).next()
        });
    names.collect()
}

fn field<const BYTES: usize>(file: &[u8], at: u64) -> Option<[u8; BYTES]> {
    let at = usize::try_from(at).ok()?;
    file.get(at..at.checked_add(BYTES)?)?.try_into().ok()
}

fn word(file: &[u8], at: u64) -> Option<u64> {
    field(file, at).map(u64::from_le_bytes)
}

fn quarter(file: &[u8], at: u64) -> Option<u32> {
    field(file, at).map(u32::from_le_bytes)
}

fn half(file: &[u8], at: u64) -> Option<u64> {
    field(file, at).map(|bytes| u16::from_le_bytes(bytes).into())
}

/// A program as a shell finds it.
pub fn in_path(path: &OsStr, program: &OsStr) -> Option<PathBuf> {
    let program = Path::new(program);
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let mut files = std::env::split_paths(path).map(|directory| directory.join(program));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::process::Command;

    /// A program that is linked with a library of this name.
    fn linked_with(directory: &Path, library: &str) -> PathBuf {
        let program = directory.join("app");
        std::fs::write(directory.join("app.c"), "int main(void) { return 0; }\n").unwrap();
        let cc = |words: &[&str]| {
            let status = Command::new("cc").args(words).current_dir(directory).status();
            assert!(status.unwrap().success(), "cc {words:?}");
        };
        let named = format!("-Wl,-soname,{library}");
        cc(&["-shared", "-x", "c", "/dev/null", &named, "-o", "library.so"]);
        cc(&["app.c", "-Wl,--no-as-needed", "./library.so", "-o", "app"]);
        program
    }

    #[test]
    fn a_programs_mpi_is_that_of_the_libraries_it_asks_for() {
        let directory = tempfile::tempdir().unwrap();
        for (library, family) in [
            ("libmpi.so.40", Some(Family::OpenMpi)),
            ("libmpi_mpifh.so.40", Some(Family::OpenMpi)),
            ("libmpich.so.12", Some(Family::Mpich)),
            ("libmpi.so.12", Some(Family::Mpich)),
            ("libmpi_abi.so.1", None),
        ] {
            let program = linked_with(directory.path(), library);
            assert_eq!(Family::of(&program), family, "{library}");
        }
    }

    #[test]
    fn names_in_a_programs_data_are_no_libraries_of_it() {
        // This very program has them, from the test above.
        assert_eq!(Family::of(&std::env::current_exe().unwrap()), None);
        assert_eq!(Family::of(Path::new("/no/such")), None);
    }

    #[test]
    fn damaged_programs_never_panic() {
        let directory = tempfile::tempdir().unwrap();
        let program = linked_with(directory.path(), "libmpi.so.40");
        let bytes = std::fs::read(program).unwrap();
        for end in 0..bytes.len().min(4096) {
            let _ = needed(&bytes[..end]);
        }
        for at in 0..4096 {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = needed(&damaged);
            }
        }
        assert_eq!(needed(b"#!/bin/sh\n# libmpi.so.40\n"), None);
    }
}
