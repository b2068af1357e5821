//! Text of the user's system that is sent to a node: paths and values of variables, which need not be UTF-8.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A text that is a string in JSON; its bytes as numbers if they are not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// Valid UTF-8, as nearly all texts are.
    Utf8(String),
    /// Bytes that no string of JSON represents.
    Bytes(Vec<u8>),
}

impl Text {
    /// The text as the system represents it.
    pub fn as_os(&self) -> &OsStr {
        match self {
            Text::Utf8(text) => OsStr::new(text),
            Text::Bytes(bytes) => OsStr::from_bytes(bytes),
        }
    }
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Text {
        match text.into_string() {
            Ok(text) => Text::Utf8(text),
            Err(text) => Text::Bytes(text.into_vec()),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::Utf8(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_utf_8_keeps_its_bytes_and_any_other_is_a_string() {
        let odd = OsString::from_vec(b"/home/jos\xe9".to_vec());
        for (text, json) in [
            (OsString::from("/home/josé"), "\"/home/josé\""),
            (odd, "[47,104,111,109,101,47,106,111,115,233]"),
        ] {
            let sent = Text::from(text.clone());
            assert_eq!(serde_json::to_string(&sent).unwrap(), json);
            let received: Text = serde_json::from_str(json).unwrap();
            assert_eq!(received.as_os(), text);
        }
        assert!(serde_json::from_str::<Text>("[256]").is_err());
        assert!(serde_json::from_str::<Text>("{}").is_err());
    }
}
