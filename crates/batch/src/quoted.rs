//! A path as a word of a shell.

use std::path::Path;

/// A path for a shell: bare where that is safe, so that a remote shell that is none sees a plain path.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,".contains(&byte);
    if text.bytes().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_odd_paths_are_quoted() {
        assert_eq!(
            quoted(Path::new("/opt/causeway-1.0/bin/causeway")),
            "/opt/causeway-1.0/bin/causeway"
        );
        assert_eq!(quoted(Path::new("/home/o'neil/c w")), r"'/home/o'\''neil/c w'");
    }
}
