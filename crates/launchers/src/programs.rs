//! Programs that a launcher reads from a file (hydra's -configfile, Open MPI's --app): for each a line of
//! words, without quotes, and comments after `#`.

use crate::rewrite::{Libraries, rewrite};
use causeway_mpis::Mpi;
use causeway_mpis::options::{self, Value};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Larger files are not lists of programs.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// The words of each program.
    lines: Vec<Vec<OsString>>,
    /// Whether the file can be read again, because it is not a pipe.
    stays: bool,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("read programs from {}: {source}", path.display())]
pub struct ProgramsError {
    path: PathBuf,
    source: io::Error,
}

impl Programs {
    /// Reads the file that the command line names, if it names one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(mpi: Mpi, words: &[OsString]) -> Result<Option<Programs>, ProgramsError> {
        let Some(value) = named(mpi, words) else {
            return Ok(None);
        };
        let path = Path::new(value.of(words));
        let bytes = bytes(path).map_err(|source| ProgramsError {
            path: path.to_owned(),
            source,
        })?;
        Ok(Some(Programs {
            lines: lines(&bytes),
            stays: path.is_file(),
        }))
    }

    /// The words of all programs, as if they were on the command line.
    pub fn words(&self) -> Vec<OsString> {
        self.lines.join(&OsString::from(":"))
    }

    /// Rewrites the words. Returns what was left out, and whether the launcher needs another file: a pipe, as
    /// from `<(...)`, was read to its end, and the words of a file may have changed.
    pub fn rewrite(&mut self, mpi: Mpi, libraries: &Libraries) -> (Vec<String>, bool) {
        let mut left_out = Vec::new();
        let mut has_changed = !self.stays;
        for line in &mut self.lines {
            let rewritten = rewrite(mpi, line, libraries);
            left_out.extend(rewritten.left_out);
            has_changed |= *line != rewritten.words;
            *line = rewritten.words;
        }
        (left_out, has_changed)
    }

    /// The command line, naming this file in place of the user's.
    pub fn naming(mpi: Mpi, mut words: Vec<OsString>, file: &Path) -> Vec<OsString> {
        if let Some(value) = named(mpi, &words) {
            let word = &mut words[value.word];
            let before = &word.as_bytes()[..value.from];
            *word = OsString::from_vec([before, file.as_os_str().as_bytes()].concat());
        }
        words
    }

    /// The text of the file.
    pub fn text(&self) -> Vec<u8> {
        let lines = self
            .lines
            .iter()
            .map(|line| line.join(OsStr::new(" ")).into_vec());
        lines.flat_map(|line| [line, b"\n".to_vec()].concat()).collect()
    }
}

/// Where a command line names the file.
fn named(mpi: Mpi, words: &[OsString]) -> Option<Value> {
    let option = mpi.row().programs_option;
    let (given, _) = options::read(mpi, words, 0);
    let named = given.iter().find(|given| given.name == option)?;
    named.values.first().copied()
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_BYTES + 1), &mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

fn lines(bytes: &[u8]) -> Vec<Vec<OsString>> {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| {
        let words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let words = words.take_while(|word| !word.starts_with(b"#"));
        words.map(|word| OsString::from_vec(word.to_vec())).collect()
    });
    lines.filter(|line: &Vec<OsString>| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn programs_in_a_file_are_read_as_if_they_stood_on_the_command_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("programs");
        std::fs::write(&file, "# boss\n-n 1 ./boss\n\n  -n 3 ./worker a # all others\n").unwrap();
        for (mpi, line) in [
            (Mpi::OpenMpi4, format!("--app {}", file.display())),
            (Mpi::Mpich, format!("-genv A 1 -configfile {}", file.display())),
            (Mpi::Intel, format!("-configfile={}", file.display())),
        ] {
            let programs = Programs::read(mpi, &words(&line)).unwrap().unwrap();
            assert_eq!(programs.words(), words("-n 1 ./boss : -n 3 ./worker a"), "{line}");
            assert!(programs.stays);
        }
        assert_eq!(
            Programs::read(Mpi::OpenMpi4, &words("./app --app f")).unwrap(),
            None
        );
        let refusal = Programs::read(Mpi::Mpich, &words("-configfile /no/such")).unwrap_err();
        assert!(
            refusal.to_string().contains("/no/such: No such file"),
            "{refusal}"
        );
    }

    #[test]
    fn a_file_whose_ranks_preload_something_is_replaced_by_another() {
        let mut programs = Programs {
            lines: vec![words("-n 1 -env LD_PRELOAD /t.so ./boss"), words("-n 3 ./worker")],
            stays: true,
        };
        let first = [PathBuf::from("/shim.so")];
        let libraries = Libraries {
            first: &first,
            last: &[],
        };
        assert_eq!(programs.rewrite(Mpi::Mpich, &libraries), (vec![], true));
        let text = String::from_utf8(programs.text()).unwrap();
        assert_eq!(
            text,
            "-n 1 -env LD_PRELOAD /shim.so:/t.so ./boss\n-n 3 ./worker\n"
        );
        let line = Programs::naming(Mpi::Mpich, words("-configfile=f -v"), Path::new("/run/programs"));
        assert_eq!(line, words("-configfile=/run/programs -v"));
        let mut plain = Programs {
            lines: vec![words("-n 1 ./boss")],
            stays: true,
        };
        assert_eq!(plain.rewrite(Mpi::Mpich, &libraries), (vec![], false));
        plain.stays = false;
        assert_eq!(plain.rewrite(Mpi::Mpich, &libraries), (vec![], true));
    }
}
