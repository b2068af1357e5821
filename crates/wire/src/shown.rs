//! Text that somebody else has chosen, in a form that is safe for a log or a terminal: names of sites, nodes
//! and jobs, reasons, messages. Whoever prints such text passes the whole line through here, not its parts
//! one by one.
//!
//! An escape sequence could change what a terminal shows elsewhere, or what its keys do; a newline could
//! create a line that nobody has written; a bidirectional override could show a line in the wrong order. They
//! are shown as JSON escapes them, so that JSON keeps its meaning.

use std::fmt::{self, Display, Formatter, Write};

/// Shows one line. A newline in it is escaped, too.
#[derive(Debug, Clone, Copy)]
pub struct Line<T>(pub T);

/// Shows lines that the program itself has composed. Newlines are kept.
#[derive(Debug, Clone, Copy)]
pub struct Block<T>(pub T);

impl<T: Display> Display for Line<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            Escaping {
                to: f,
                newlines: false
            },
            "{}",
            self.0
        )
    }
}

impl<T: Display> Display for Block<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            Escaping {
                to: f,
                newlines: true
            },
            "{}",
            self.0
        )
    }
}

struct Escaping<'a, 'b> {
    to: &'a mut Formatter<'b>,
    newlines: bool,
}

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(|letter| self.escapes(letter)) {
            let (plain, odd) = rest.split_at(at);
            self.to.write_str(plain)?;
            let mut letters = odd.chars();
            for unit in letters.next().into_iter().flat_map(units) {
                write!(self.to, "\\u{unit:04x}")?;
            }
            rest = letters.as_str();
        }
        self.to.write_str(rest)
    }
}

impl Escaping<'_, '_> {
    fn escapes(&self, letter: char) -> bool {
        match letter {
            // A tab only moves within the line.
            '\t' => false,
            '\n' => !self.newlines,
            letter => letter.is_control() || is_hidden(letter),
        }
    }
}

/// The character in UTF-16, as JSON escapes it.
fn units(letter: char) -> impl Iterator<Item = u16> {
    let mut units = [0; 2];
    let count = letter.encode_utf16(&mut units).len();
    units.into_iter().take(count)
}

/// Whether a character changes the order of a line, breaks it, or is invisible (Unicode 16, general
/// categories Cf, Zl and Zp, but without those of Cf that scripts need, such as joiners).
fn is_hidden(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_obey_or_hide_is_escaped_and_all_else_stays() {
        for (text, shown) in [
            ("plain, é, 日本, 👩‍💻 and\ta tab", "plain, é, 日本, 👩‍💻 and\ta tab"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\u{9b}2J\u{7f}\r", "\\u009b2J\\u007f\\u000d"),
            ("one\ntwo\u{2028}", "one\\u000atwo\\u2028"),
            ("user\u{202e}gnp.exe\u{2066}", "user\\u202egnp.exe\\u2066"),
            ("tag\u{e0041}", "tag\\udb40\\udc41"),
        ] {
            assert_eq!(Line(text).to_string(), shown);
        }
        assert_eq!(Block("one\ntwo\x1b").to_string(), "one\ntwo\\u001b");
    }

    #[test]
    fn what_is_shown_twice_is_shown_as_once() {
        let once = Line("a\x1b\\\u{202e}").to_string();
        assert_eq!(Line(&once).to_string(), once);
    }
}
