//! The user's words, in the form in which the launcher gets them. Pure.
//!
//! Two kinds of options would keep the job from running over sites. One gives the ranks another LD_PRELOAD:
//! the ranks would lose the shim, so Causeway's libraries are added to its value. The other says how to start
//! processes on the nodes: that is the gateways' task, so the option is left out, and the user is told.

use causeway_mpis::Mpi;
use causeway_mpis::options::{self, Given, Value};
use causeway_mpis::preload::preload;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Causeway's libraries for the ranks.
#[derive(Debug, Clone, Copy)]
pub struct Libraries<'a> {
    /// Libraries that come before the user's.
    pub first: &'a [PathBuf],
    /// Libraries that come after the user's.
    pub last: &'a [PathBuf],
}

/// The words, and the options that were left out, as the user wrote them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// The words that the launcher receives.
    pub words: Vec<OsString>,
    /// The words that the launcher does not receive.
    pub left_out: Vec<String>,
}

/// The name of the loader's list.
const PRELOAD: &[u8] = b"LD_PRELOAD";

/// The words after the launcher's name, for one program or several, changed for a job over sites.
pub fn rewrite(mpi: Mpi, words: &[OsString], libraries: &Libraries) -> Rewritten {
    let mut left_out = Vec::new();
    let kept = each_option(mpi, words, |option| {
        let own = &words[option.at..option.end()];
        if options::is_starter(mpi, words, option) {
            let own: Vec<_> = own.iter().map(|word| word.to_string_lossy()).collect();
            left_out.push(own.join(" "));
            return Vec::new();
        }
        own.to_vec()
    });
    Rewritten {
        words: with_libraries(mpi, &kept, libraries),
        left_out,
    }
}

/// The words, with Causeway's libraries in every LD_PRELOAD that they give the ranks.
pub fn with_libraries(mpi: Mpi, words: &[OsString], libraries: &Libraries) -> Vec<OsString> {
    each_option(mpi, words, |option| {
        let mut own = words[option.at..option.end()].to_vec();
        if let Some((value, text)) = preload_of(mpi, words, option, libraries) {
            let before = &words[value.word].as_bytes()[..value.from];
            own[value.word - option.at] = OsString::from_vec([before, text.as_bytes()].concat());
        }
        own
    })
}

/// The words, with each option replaced.
fn each_option(
    mpi: Mpi,
    words: &[OsString],
    mut instead: impl FnMut(&Given) -> Vec<OsString>,
) -> Vec<OsString> {
    let mut all = Vec::new();
    let mut from = 0;
    while from < words.len() {
        let (given, end) = options::read(mpi, words, from);
        all.extend(given.iter().flat_map(&mut instead));
        // The program with its arguments, and the `:` after them.
        let next = words[end..].iter().position(|word| word == ":");
        let next = next.map_or(words.len(), |next| end + next + 1);
        all.extend_from_slice(&words[end..next]);
        from = next;
    }
    all
}

/// The value of an option that sets LD_PRELOAD for ranks, and its new value.
fn preload_of(
    mpi: Mpi,
    words: &[OsString],
    option: &Given,
    libraries: &Libraries,
) -> Option<(Value, OsString)> {
    if let Some(list) = options::list_of_variables(mpi, words, option) {
        return Some((list, in_list(list.of(words), libraries)?));
    }
    let value = |number: usize| option.values.get(number).copied();
    let first = value(0).filter(|_| options::sets_a_variable(mpi, option))?;
    // `-x LD_PRELOAD` alone passes on the value that Causeway has set.
    if first.of(words).as_bytes() == PRELOAD {
        let value = value(1)?;
        return Some((value, libraries.around(Some(value.of(words)))));
    }
    Some((first, setting(first.of(words), libraries)?))
}

impl Libraries<'_> {
    /// The loader's list of Causeway's libraries and the user's.
    pub fn around(&self, theirs: Option<&OsStr>) -> OsString {
        preload(self.first, theirs, self.last)
    }
}

/// `LD_PRELOAD=...` with Causeway's libraries; `None` for another setting.
fn setting(text: &OsStr, libraries: &Libraries) -> Option<OsString> {
    let theirs = text.as_bytes().strip_prefix(PRELOAD)?.strip_prefix(b"=")?;
    let mut whole = OsString::from("LD_PRELOAD=");
    whole.push(libraries.around(Some(OsStr::from_bytes(theirs))));
    Some(whole)
}

/// A list of settings separated by `;`; `None` if none of them is LD_PRELOAD.
fn in_list(list: &OsStr, libraries: &Libraries) -> Option<OsString> {
    let entries: Vec<&[u8]> = list.as_bytes().split(|byte| *byte == b';').collect();
    let changed = |entry: &&[u8]| setting(OsStr::from_bytes(entry), libraries);
    entries.iter().find_map(&changed)?;
    let entries = entries.iter().map(|entry| match changed(entry) {
        Some(setting) => setting.into_vec(),
        None => entry.to_vec(),
    });
    Some(OsString::from_vec(entries.collect::<Vec<_>>().join(&b';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(mpi: Mpi, line: &str) -> (String, Vec<String>) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (first, last) = ([PathBuf::from("/c/shim.so")], [PathBuf::from("/c/mpi.so")]);
        let libraries = Libraries {
            first: &first,
            last: &last,
        };
        let rewritten = rewrite(mpi, &words, &libraries);
        let words: Vec<_> = rewritten
            .words
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect();
        (words.join(" "), rewritten.left_out)
    }

    #[test]
    fn what_the_ranks_preload_gets_causeways_libraries_however_it_is_set() {
        let all = "/c/shim.so:/t/tool.so:/c/mpi.so";
        for (mpi, line) in [
            (Mpi::OpenMpi4, "-n 2 -x LD_PRELOAD=@ ./app"),
            (Mpi::OpenMpi4, "--mca mca_base_env_list A=1;LD_PRELOAD=@;B ./app"),
            (Mpi::OpenMpi5, "--x=LD_PRELOAD=@ ./app"),
            (Mpi::Mpich, "-genv LD_PRELOAD @ -n 2 ./app"),
            (Mpi::Mpich, "-genv LD_PRELOAD=@ ./app"),
            (Mpi::Intel, "-n 1 ./boss : -n 3 -env LD_PRELOAD @ ./worker"),
            (
                Mpi::OpenMpi4,
                "-n 1 ./boss -x LD_PRELOAD=/own : -n 3 -x LD_PRELOAD=@ ./worker",
            ),
        ] {
            let typed = line.replace('@', "/t/tool.so");
            assert_eq!(rewritten(mpi, &typed), (line.replace('@', all), vec![]), "{line}");
        }
    }

    #[test]
    fn other_settings_and_the_programs_own_arguments_stay_as_they_are() {
        for (mpi, line) in [
            (
                Mpi::OpenMpi4,
                "-x LD_PRELOAD -x LD_PRELOAD_X=1 ./app -x LD_PRELOAD=/own",
            ),
            (
                Mpi::Mpich,
                "-genv A LD_PRELOAD -env LD_PRELOADED 1 ./app -launcher ssh",
            ),
            (
                Mpi::OpenMpi5,
                "--mca mca_base_env_list A=1;B ./app : ./other --mca plm slurm",
            ),
            (Mpi::Mpich, "-genv LD_PRELOAD"),
            (Mpi::Mpich, "-n 2"),
        ] {
            assert_eq!(rewritten(mpi, line), (line.to_owned(), vec![]), "{line}");
        }
    }

    #[test]
    fn what_starts_processes_is_left_out_and_told() {
        let told = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            rewritten(Mpi::OpenMpi4, "--mca plm_rsh_agent ssh -n 2 ./app"),
            ("-n 2 ./app".to_owned(), told(&["--mca plm_rsh_agent ssh"]))
        );
        assert_eq!(
            rewritten(Mpi::Mpich, "-bootstrap-exec ssh -launcher=ssh -n 2 ./app"),
            (
                "-n 2 ./app".to_owned(),
                told(&["-bootstrap-exec ssh", "-launcher=ssh"])
            )
        );
    }
}
