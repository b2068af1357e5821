//! Shows how far a measurement is: a bar on a terminal, a line for each run elsewhere.

use crate::matrix::Progress;
use causeway_host::say;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// What a bar looks like.
const BAR: &str = "{bar:24} {pos}/{len} runs, {msg}";

/// How often a bar is drawn while a run goes on.
const DRAWN: Duration = Duration::from_secs(1);

/// See the module.
pub struct Shown {
    /// `None` if nobody watches.
    bar: Option<ProgressBar>,
}

impl Shown {
    /// Nothing is shown yet.
    pub fn new() -> Shown {
        let style = ProgressStyle::with_template(BAR).ok();
        let style = style.filter(|_| std::io::stderr().is_terminal());
        let bar = style.map(|style| {
            let bar = ProgressBar::new(0).with_style(style);
            bar.enable_steady_tick(DRAWN);
            bar
        });
        Shown { bar }
    }

    /// Shows a step.
    pub fn show(&self, progress: &Progress<'_>) {
        if let Some((row, reason)) = progress.last.and_then(|row| Some((row, row.failure()?))) {
            self.say(&format!("causeway bench: {}: failed: {reason}", row.cell));
        }
        let Some(cell) = progress.cell else {
            return;
        };
        let text = match progress.left {
            Some(left) => format!("{cell}; {} left", words(left)),
            None => cell.to_string(),
        };
        let all = progress.done + progress.to_come;
        match &self.bar {
            Some(bar) => {
                bar.set_length(all);
                bar.set_position(progress.done);
                bar.set_message(text);
            }
            None => self.say(&format!(
                "causeway bench: run {} of {all}: {text}",
                progress.done + 1
            )),
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say::error(line)),
            None => say::error(line),
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A time that nobody needs to the second.
fn words(left: Duration) -> String {
    match left.as_secs() {
        0..=90 => format!("about {} s", left.as_secs().max(1)),
        91..=5399 => format!("about {} min", (left.as_secs() + 30) / 60),
        seconds => format!("about {:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_units_that_fit() {
        let shown = [0, 45, 100, 3000, 7200].map(|seconds| words(Duration::from_secs(seconds)));
        assert_eq!(
            shown,
            [
                "about 1 s",
                "about 45 s",
                "about 2 min",
                "about 50 min",
                "about 2.0 h"
            ]
        );
    }
}
