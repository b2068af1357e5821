//! A graph of resources in JGF: what is read is written and read again the same, and can be shown.
#![no_main]

use causeway_resources::{picture, read_jgf, table, to_dot, to_jgf};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match read_jgf(text) {
        Ok(read) => {
            let again = match read_jgf(&to_jgf(&read.graph)) {
                Ok(again) => again,
                Err(mistakes) => panic!("{mistakes}\n{text}"),
            };
            assert_eq!(again.graph, read.graph);
            let shown = table(&read.graph, 0) + &picture(&read.graph);
            assert!(shown.lines().all(|line| line.chars().count() <= 100));
            assert!(to_dot(&read.graph).ends_with("}\n"));
        }
        Err(mistakes) => assert!(!mistakes.lines.is_empty()),
    }
});
