//! A figure, and the bar that it is compared with.

/// The bar that a figure has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
    /// No farther from this value than this share of it.
    Near(f64, f64),
}

impl Bar {
    /// Whether `figure` reaches it.
    pub fn is_reached(self, figure: f64) -> bool {
        match self {
            Bar::AtMost(most) => figure <= most,
            Bar::AtLeast(least) => figure >= least,
            Bar::Near(aim, part) => (figure - aim).abs() <= aim.abs() * part,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Bar::AtMost(most) => format!("at most {most}{unit}"),
            Bar::AtLeast(least) => format!("at least {least}{unit}"),
            Bar::Near(aim, part) => format!("{aim}{unit} +- {} %", part * 100.0),
        }
    }
}

/// One line of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What the figure is, and of which MPI.
    pub what: String,
    /// The same figure of the direct way, if there is one.
    pub direct: Option<f64>,
    /// What was measured through Causeway.
    pub figure: f64,
    /// The unit of figures and bar, with a blank before it; empty for ratios.
    pub unit: &'static str,
    /// The bar.
    pub bar: Bar,
}

impl Claim {
    /// Cells under [`Claim::HEAD`].
    pub fn row(&self) -> Vec<String> {
        let number = |value: f64| format!("{}{}", figure(value), self.unit);
        vec![
            self.what.clone(),
            self.direct.map_or_else(|| "-".to_owned(), number),
            number(self.figure),
            self.bar.text(self.unit),
            if self.bar.is_reached(self.figure) {
                "holds"
            } else {
                "does NOT hold"
            }
            .to_owned(),
        ]
    }

    /// Heads of the summary.
    pub const HEAD: [&str; 5] = ["figure", "direct", "Causeway", "bar", "verdict"];
}

/// About four digits: more than the measurements justify, but enough to show on which side of a bar a figure
/// is.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.3}"),
        10.0..100.0 => format!("{value:.2}"),
        100.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_reached_from_its_own_side() {
        assert!(Bar::AtMost(1.07).is_reached(1.07) && !Bar::AtMost(1.07).is_reached(1.0701));
        assert!(Bar::AtLeast(10.0).is_reached(10.0) && !Bar::AtLeast(10.0).is_reached(9.99));
        let near = Bar::Near(400.0, 0.05);
        assert!(near.is_reached(381.0) && near.is_reached(419.0));
        assert!(!near.is_reached(379.0) && !near.is_reached(421.0));
    }

    #[test]
    fn nothing_measured_reaches_no_bar() {
        for bar in [Bar::AtMost(1.0), Bar::AtLeast(1.0), Bar::Near(1.0, 0.1)] {
            assert!(!bar.is_reached(f64::NAN));
        }
    }

    #[test]
    fn a_claim_says_figure_bar_and_verdict() {
        let claim = Claim {
            what: "1 B, added".into(),
            direct: None,
            figure: 57.25,
            unit: " us",
            bar: Bar::AtMost(40.0),
        };
        assert_eq!(
            claim.row(),
            ["1 B, added", "-", "57.25 us", "at most 40 us", "does NOT hold"]
        );
    }
}
