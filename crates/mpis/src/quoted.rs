//! A word of a shell.

use std::ffi::OsStr;

/// A word for a shell: bare where that is safe, so that a remote shell that is none sees the path itself.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let text = word.as_ref().to_string_lossy();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,=:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_safe) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn only_odd_words_are_quoted() {
        assert_eq!(
            quoted(Path::new("/opt/causeway-1.0/bin/causeway")),
            "/opt/causeway-1.0/bin/causeway"
        );
        assert_eq!(quoted(Path::new("/home/o'neil/c w")), r"'/home/o'\''neil/c w'");
        assert_eq!(quoted("rennes-1=10.1.0.1:4"), "rennes-1=10.1.0.1:4");
        assert_eq!(quoted("~"), "'~'");
        assert_eq!(quoted(""), "''");
    }
}
