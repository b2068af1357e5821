//! The description of an emulated grid.
#![no_main]

use causeway_lab::Scenario;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Scenario::parse(text, "fuzz.toml") {
        Ok(scenario) => {
            let names: Vec<&str> = scenario.sites.iter().map(|site| site.name.as_str()).collect();
            for (a, b) in names.iter().zip(&names[1..]) {
                assert_eq!(scenario.link(a, b), scenario.link(b, a));
            }
        }
        Err(mistakes) => assert!(!mistakes.to_string().is_empty()),
    }
});
