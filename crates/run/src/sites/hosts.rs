//! Finds the sites of hosts that a user names in a launcher's options, variables and files.
//!
//! The launchers have a dozen formats of host files and lists. All of them name hosts by words, so every word
//! that is the name or address of a node counts; one that has another meaning there makes a site take part
//! unnecessarily.

use causeway_control::name::means;
use causeway_control::{SiteInfo, Sites};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

/// Most bytes that are read of a file: more than the names of all nodes that a site may have.
const MOST_READ: u64 = 16 << 20;

/// The sites of the hosts in these values of options and variables, which are lists, or names of files.
pub fn sites_of(known: &Sites, values: &[OsString]) -> Vec<String> {
    let mut words = BTreeSet::new();
    for value in values {
        let text = read(Path::new(value)).unwrap_or_else(|| value.to_string_lossy().into_owned());
        words.extend(words_of(&text).map(str::to_owned));
    }
    let infos = known.sites.iter().filter_map(|site| site.info.as_ref());
    let named = infos.filter(|info| words.iter().any(|word| has(info, word, info.name == known.site)));
    named.map(|info| info.name.clone()).collect()
}

/// Reads a file of hosts; `None` if there is no such file. A pipe is left to the launcher.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok().filter(|_| path.is_file())?;
    let mut text = Vec::new();
    file.take(MOST_READ).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The words of a text, as wholes and in pieces: a host may follow `=` or precede `:`, and an IPv6 address
/// contains colons.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.split('#').next());
    let between = |letter: char| letter.is_whitespace() || ",;[]()".contains(letter);
    let whole = lines.flat_map(move |line| line.split(between));
    whole.flat_map(|word| std::iter::once(word).chain(word.split([':', '=', '@', '*'])))
}

fn has(info: &SiteInfo, word: &str, is_own: bool) -> bool {
    match word.parse::<IpAddr>() {
        Ok(address) => {
            { info.site() }.is_ok_and(|site| site.contains(address) || is_own && site.has_node(address))
        }
        Err(_) => info.nodes.iter().any(|node| means(word, &node.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::known;
    use super::*;

    #[test]
    fn hosts_are_found_in_lists_and_in_files_of_every_form() {
        let directory = tempfile::tempdir().unwrap();
        for (text, sites) in [
            ("rennes-1,nancy-2:4", "rennes nancy"),
            ("NANCY-1.cluster.example", "nancy"),
            ("10.2.0.77:2", "nancy"),
            ("rennes-1 slots=4\n# nancy-1 is down\n", "rennes"),
            ("rank 0=nancy-1 slot=0:0-1\nrank 1=+n1 slot=1", "nancy"),
            ("user@rennes-2", "rennes"),
            ("rennes-2:2 ifname=eth0\n10.1.0.1\n", "rennes"),
            ("localhost", ""),
            ("", ""),
            ("rennes-10", ""),
        ] {
            let file = directory.path().join("hosts");
            std::fs::write(&file, text).unwrap();
            for value in [OsString::from(text), file.into()] {
                assert_eq!(sites_of(&known(), &[value]).join(" "), sites, "{text}");
            }
        }
    }
}
