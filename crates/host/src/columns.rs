//! Lines of bounded width, whose fields are separated by two blanks. A full line is broken between fields,
//! and inside a field only if that alone is longer than a line.
//!
//! A column is a character; scripts whose characters take two columns are shown wider.

use causeway_wire::shown::Line;

/// What a terminal shows in one line if nobody has made it wider.
const COLUMNS: usize = 100;

/// How much further the second line is indented.
const FURTHER: usize = 4;

/// How wide lines may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Lines of 100 columns, with the fields that people look at first.
    Narrow,
    /// Lines as long as necessary, with all fields.
    Wide,
}

impl Width {
    /// The fields as lines, the first after `indent` blanks, each with its newline. Empty fields are left
    /// out.
    pub fn lines<'a>(self, indent: usize, fields: impl IntoIterator<Item = &'a str>) -> String {
        let mut lines = Lines {
            done: String::new(),
            last: " ".repeat(indent),
            indent,
            columns: match self {
                Width::Narrow => COLUMNS,
                Width::Wide => usize::MAX,
            },
        };
        for field in fields.into_iter().filter(|field| !field.is_empty()) {
            // Text that others chose gets neither a line of its own nor more columns than are counted.
            lines.add_field(&Line(field).to_string());
        }
        lines.done + &lines.last + "\n"
    }
}

struct Lines {
    done: String,
    last: String,
    indent: usize,
    columns: usize,
}

impl Lines {
    fn add_field(&mut self, field: &str) {
        if self.add("  ", field) {
            return;
        }
        self.end_line();
        for word in field.split(' ') {
            if !self.add(" ", word) {
                self.end_line();
                self.add_cut(word);
            }
        }
    }

    /// Adds the field after a gap, or without one at the beginning of a line; false if there is no room.
    fn add(&mut self, gap: &str, text: &str) -> bool {
        let gap = if self.is_new() { "" } else { gap };
        let fits = width(&self.last) + gap.len() + width(text) <= self.columns;
        if fits {
            self.last = format!("{}{gap}{text}", self.last);
        }
        fits
    }

    /// A word that is too long for any line continues in the next one.
    fn add_cut(&mut self, word: &str) {
        for character in word.chars() {
            if width(&self.last) == self.columns {
                self.end_line();
            }
            self.last.push(character);
        }
    }

    fn is_new(&self) -> bool {
        self.last.bytes().all(|byte| byte == b' ')
    }

    fn end_line(&mut self) {
        if !self.is_new() {
            self.done += &self.last;
            self.done.push('\n');
            self.last = " ".repeat(self.indent + FURTHER);
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_is_broken_between_fields() {
        let (one, two) = ("a".repeat(60), "b".repeat(38));
        assert_eq!(
            Width::Narrow.lines(0, [&one[..], &two]),
            format!("{one}  {two}\n")
        );
        assert_eq!(
            Width::Narrow.lines(2, [&one[..], "", &two, "c"]),
            format!("  {one}\n      {two}  c\n")
        );
        assert_eq!(
            Width::Wide.lines(2, [&one[..], &two, "c"]),
            format!("  {one}  {two}  c\n")
        );
    }

    #[test]
    fn a_field_makes_no_line_of_its_own() {
        let lines = Width::Wide.lines(0, ["job a\nsite forged\x1b[2J"]);
        assert_eq!(lines, "job a\\u000asite forged\\u001b[2J\n");
    }

    #[test]
    fn what_fills_more_than_a_line_is_broken_between_words_and_a_longer_word_anywhere() {
        let text = format!("{} {}", "word ".repeat(30), "é".repeat(250));
        for indent in [0, 2] {
            let lines = Width::Narrow.lines(indent, ["head", &text, "end"]);
            assert!(lines.lines().all(|line| width(line) <= COLUMNS), "{lines}");
            assert_eq!(lines.matches("word").count(), 30, "{lines}");
            assert_eq!(lines.matches('é').count(), 250, "{lines}");
            assert!(lines.ends_with("  end\n"), "{lines}");
        }
    }
}
