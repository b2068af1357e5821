//! Starts a lab and runs a command on the first site's head node: `lab SCENARIO [-- COMMAND]`. For trying the
//! library by hand and for its tests; the product's own command is `causeway lab`.

use std::ffi::OsString;
use std::process::ExitCode;

use causeway_lab::{Ended, Lab, LabError, LabOptions, NodeCommand, Scenario};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let name = words.next().unwrap_or_else(|| "rennes-nancy".into());
    let command: Vec<OsString> = words.skip_while(|word| word == "--").collect();
    let scenario = match Scenario::find(&name.to_string_lossy()) {
        Ok(scenario) => scenario,
        Err(mistakes) => {
            eprintln!("{mistakes}");
            return ExitCode::from(2);
        }
    };
    match run(&scenario, command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let mut text = error.to_string();
            let mut next = std::error::Error::source(&error);
            while let Some(source) = next {
                text += &format!(": {source}");
                next = source.source();
            }
            eprintln!("lab: {text}");
            match error {
                // EX_UNAVAILABLE: the tests skip.
                LabError::Machine { .. } => ExitCode::from(69),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn run(scenario: &Scenario, command: Vec<OsString>) -> Result<u8, LabError> {
    let state_dir = std::env::var_os("LAB_STATE_DIR").map(Into::into);
    let mut lab = Lab::start(
        scenario,
        &LabOptions {
            state_dir,
            ..LabOptions::default()
        },
    )?;
    let mut child = match command.is_empty() {
        true => None,
        false => Some(lab.spawn(NodeCommand {
            node: lab.nodes()[0].name.clone(),
            argv: command,
            ..NodeCommand::default()
        })?),
    };
    println!("ready {}", lab.state().name);
    let ended = lab.serve(child.as_mut(), None)?;
    lab.stop();
    match ended {
        Ended::Child(status) => Ok(u8::try_from(status.code().unwrap_or(255)).unwrap_or(255)),
        Ended::Signal(signal) => Ok(128 + signal.number as u8),
        Ended::Down | Ended::Timeout => Ok(0),
    }
}
