//! The profile of a job, in TOML or XML: what is read is written and read again the same, in either form that
//! can say it.
#![no_main]

use causeway_profile::{Job, Profile, read, to_toml, to_xml};

fn again(text: &str) -> Profile {
    match read(text, "fuzz").finish() {
        Ok(read) => read.value,
        Err(mistakes) => panic!("{mistakes}\n{text}"),
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let job = Job {
        sites: &[],
        ranks: None,
    };
    if let Ok(groups) = read(text, "fuzz").groups_for(job) {
        // Linux takes no longer variable.
        assert!(groups.value.len() < 128 << 10);
    }
    match read(text, "fuzz").finish() {
        Ok(read) => {
            assert_eq!(again(&to_toml(&read.value)), read.value);
            match to_xml(&read.value) {
                Ok(xml) => assert_eq!(again(&xml), read.value),
                Err(unsaid) => assert!(!unsaid.0.is_empty()),
            }
        }
        Err(mistakes) => assert!(!mistakes.0.is_empty()),
    }
});
