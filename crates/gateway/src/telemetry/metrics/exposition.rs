//! Prometheus's text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats): families of
//! samples, each with a help line and a type. It knows no metric.

use std::fmt::{Display, Write};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that only grows while the gateway lives; its name ends in `_total`.
    Counter,
    Gauge,
}

#[derive(Default)]
pub(super) struct Exposition(String);

/// One metric, with all its samples together.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    pub(super) fn family<'a>(&'a mut self, kind: Kind, name: &'a str, help: &str) -> Family<'a> {
        debug_assert_eq!(kind == Kind::Counter, name.ends_with("_total"), "{name}");
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let text = &mut self.0;
        // Writing to a String does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text, name }
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// A label's value in the form that it has between quotation marks.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_a_help_line_a_type_and_their_samples() {
        let mut exposition = Exposition::default();
        let mut lanes = exposition.family(Kind::Counter, "lane_timeouts_total", "Two\nlines, one \\.");
        lanes.sample(&[("site", "nancy"), ("lane", "0")], 3);
        lanes.sample(&[("site", "nancy"), ("lane", "1")], u64::MAX);
        exposition
            .family(Kind::Gauge, "rtt_seconds", "Time.")
            .sample(&[], 0.0116);
        assert_eq!(
            exposition.into_text(),
            "# HELP lane_timeouts_total Two\\nlines, one \\\\.\n\
             # TYPE lane_timeouts_total counter\n\
             lane_timeouts_total{site=\"nancy\",lane=\"0\"} 3\n\
             lane_timeouts_total{site=\"nancy\",lane=\"1\"} 18446744073709551615\n\
             # HELP rtt_seconds Time.\n\
             # TYPE rtt_seconds gauge\n\
             rtt_seconds 0.0116\n"
        );
    }

    #[test]
    fn label_values_cannot_end_their_line_or_their_quotation_marks() {
        assert_eq!(escaped("a\\b\"} 1\nup 0"), "a\\\\b\\\"} 1\\nup 0");
    }
}
