//! Says why a command failed, with the exit status that it ends with.

use std::fmt::{self, Display};

/// The status is 2 if the user can correct the command, otherwise 1.
#[derive(Debug)]
pub struct Failure {
    /// The reason.
    pub text: String,
    /// The status.
    pub code: u8,
}

impl Failure {
    /// The command is wrong.
    pub fn usage(text: impl Display) -> Failure {
        Failure {
            text: text.to_string(),
            code: 2,
        }
    }

    /// The command is right, but something else is wrong.
    pub fn new(text: impl Display) -> Failure {
        Failure {
            text: text.to_string(),
            code: 1,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
