//! An error about which there is nothing to say but one sentence.

use std::fmt;
use std::ops::Deref;

/// A sentence for whoever reads it, without a full stop. If a caller decides by the kind of an error, that
/// error is an enum instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError(String);

impl TextError {
    /// The sentence of another error.
    pub fn of(error: impl fmt::Display) -> TextError {
        TextError(error.to_string())
    }
}

impl Deref for TextError {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for TextError {}

impl From<String> for TextError {
    fn from(text: String) -> TextError {
        TextError(text)
    }
}

impl From<&str> for TextError {
    fn from(text: &str) -> TextError {
        TextError(text.to_owned())
    }
}

impl From<TextError> for String {
    fn from(error: TextError) -> String {
        error.0
    }
}
