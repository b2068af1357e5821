//! The journal of `causeway tune`, which root undoes: whatever it says, what it changes is a kernel setting
//! or a file by its whole path, and it is written and read again the same.
#![no_main]

use causeway_host::journal_entry::{self as entry, Target};
use std::path::{Component, Path};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let entries = match entry::parse(text) {
        Ok(entries) => entries,
        Err(reason) => return assert!(!reason.to_string().is_empty()),
    };
    for entry in &entries {
        let (root, path) = match &entry.target {
            Target::Setting(name) => ("/proc/sys", Path::new("/proc/sys").join(name)),
            Target::File(path) => ("/", path.clone()),
        };
        assert!(path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir));
    }
    let again = serde_json::to_string_pretty(&entries).expect("what was read can be written");
    let read = entry::parse(&again).expect("what was written can be read");
    assert_eq!(read, entries);
});
