//! The files of the audit, in which others' words stand: each line gives one entry or is counted as damaged,
//! what was read can be written and read again, and a line for people is one line that acts on no terminal.
#![no_main]

use causeway_control::audit::{AuditEntry, read_lines, shown};
use causeway_control::audit::line::{Columns, readable};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut entries: Vec<AuditEntry> = Vec::new();
    let damaged = read_lines(bytes, |entry| entries.push(entry)).expect("bytes in memory can be read");
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    let has_rest = bytes.last().is_some_and(|byte| *byte != b'\n');
    assert_eq!(entries.len() + damaged, ends + usize::from(has_rest));
    let mut again = Vec::new();
    for entry in &entries {
        again.extend(serde_json::to_vec(entry).expect("what was read can be written"));
        again.push(b'\n');
        assert!(shown(&entry.why).len() <= causeway_control::audit::MAX_TEXT);
    }
    let mut others = entries.iter();
    let damaged = read_lines(&again[..], |entry| assert_eq!(others.next(), Some(&entry)));
    assert_eq!(damaged.expect("as above"), 0);
    assert_eq!(others.next(), None);
    for wide in [false, true] {
        let columns = Columns::of(&entries, wide);
        for entry in &entries {
            // A tab moves within the line only.
            let acts = |letter: char| letter.is_control() && letter != '\t';
            assert!(!readable(entry, &columns).contains(acts));
        }
    }
});
