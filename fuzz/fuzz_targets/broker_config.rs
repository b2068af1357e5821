//! A broker's configuration.
#![no_main]

use causeway_broker::BrokerConfig;
use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match BrokerConfig::parse(text, Path::new("/grid/broker.toml")) {
        Ok(config) => {
            assert!(!config.listen.is_empty() && !config.public.is_empty() && config.connections > 0);
            assert_eq!(config.directory, Path::new("/grid"));
        }
        Err(mistakes) => assert!(!mistakes.to_string().is_empty()),
    }
});
