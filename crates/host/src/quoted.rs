//! Quotes words for a shell.

use std::ffi::OsStr;

/// A word for a shell: bare if that is safe, so that a remote command that is not a shell sees the path
/// itself.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let text = word.as_ref().to_string_lossy();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,=:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_safe) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A line that runs an sh script in any shell: bash, zsh, tcsh and fish read it in the same way.
///
/// tcsh expands `!` and ends a word at a line's end, fish removes backslashes, both also between single
/// quotes. A script that contains one of these characters is sent as octal numbers, which sh decodes.
pub fn for_any_shell(script: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"'!\\".contains(&byte);
    if script.bytes().all(is_plain) {
        return format!("exec /bin/sh -c '{script}'");
    }
    let numbers: String = script.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    format!("exec /bin/sh -c 'eval \"$(printf \"$0\")\"' '{numbers}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn every_shell_runs_a_script_of_sh_as_it_is() {
        let odd = r#"x='it'\''s "odd"! \\ 100%'
if [ -n "$x" ]; then printf '%s|' "$x" 'second !line'; fi
"#;
        let plain = r#"x=1; [ $x = 1 ] && printf %s "$x~*{a,b}""#;
        let shells = ["/bin/sh", "/bin/bash", "/bin/tcsh", "/usr/bin/fish", "/bin/zsh"];
        let there: Vec<&str> = shells
            .into_iter()
            .filter(|shell| Path::new(shell).exists())
            .collect();
        assert!(
            there.contains(&"/bin/tcsh") && there.contains(&"/usr/bin/fish"),
            "make setup installs them"
        );
        for shell in there {
            let cases = [(odd, r#"it's "odd"! \\ 100%|second !line|"#), (plain, "1~*{a,b}")];
            for (script, says) in cases {
                let said = Command::new(shell)
                    .args(["-c", &for_any_shell(script)])
                    .output()
                    .unwrap();
                let errors = String::from_utf8_lossy(&said.stderr);
                assert_eq!(String::from_utf8_lossy(&said.stdout), says, "{shell}: {errors}");
            }
        }
        assert_eq!(
            for_any_shell("a b"),
            "exec /bin/sh -c 'a b'",
            "readable where that can be"
        );
    }

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
