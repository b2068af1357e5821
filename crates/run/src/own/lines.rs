//! What several commands print, line by line: no line of one is inside a line of another.

use std::io::Write;

/// A line that is longer than this is passed on in pieces.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// One command's output, which is passed on to one of ours.
pub struct Lines<W: Write> {
    output: W,
    /// The beginning of a line.
    partial: Vec<u8>,
    /// Whether nobody else prints here, so that nothing needs to wait for the end of its line.
    is_alone: bool,
}

impl<W: Write> Lines<W> {
    /// Creates this for an output.
    pub fn new(output: W, is_alone: bool) -> Lines<W> {
        Lines {
            output,
            partial: Vec::new(),
            is_alone,
        }
    }

    /// Receives what was printed, and passes on what is complete.
    pub fn take(&mut self, data: &[u8]) {
        self.partial.extend_from_slice(data);
        let end = self
            .partial
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let end = if self.is_alone || self.partial.len() > MAX_LINE_BYTES {
            self.partial.len()
        } else {
            end
        };
        if end > 0 {
            self.write(end);
        }
    }

    /// Passes on the beginning of a last line, and ends that line.
    pub fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.partial.push(b'\n');
            self.write(self.partial.len());
        }
    }

    fn write(&mut self, end: usize) {
        let bytes: Vec<u8> = self.partial.drain(..end).collect();
        // If nobody reads the output, nobody wants it; how the commands end still counts.
        let _ = self.output.write_all(&bytes).and_then(|()| self.output.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Records each write.
    #[derive(Clone, Default)]
    struct Writes(Rc<RefCell<Vec<String>>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0
                .borrow_mut()
                .push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_whole_lines_go_out_until_the_end() {
        let writes = Writes::default();
        let mut lines = Lines::new(writes.clone(), false);
        for data in ["a", "b\nc\nd", "", "e"] {
            lines.take(data.as_bytes());
        }
        lines.finish();
        lines.finish();
        assert_eq!(*writes.0.borrow(), ["ab\nc\n", "de\n"]);
    }

    #[test]
    fn a_command_alone_does_not_wait_for_the_ends_of_its_lines() {
        let writes = Writes::default();
        let mut lines = Lines::new(writes.clone(), true);
        lines.take(b"name? ");
        lines.finish();
        assert_eq!(*writes.0.borrow(), ["name? "]);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let writes = Writes::default();
        let mut lines = Lines::new(writes.clone(), false);
        for _ in 0..3 {
            lines.take(&[b'x'; MAX_LINE_BYTES]);
        }
        assert!(lines.partial.len() <= MAX_LINE_BYTES);
    }
}
