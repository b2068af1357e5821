//! Draws horizontal bars with intervals as inline SVG: ratios, with a mark at 1.

use crate::escape::escape;
use crate::plot::COLOURS;
use causeway_bench::interval::Interval;
use std::fmt::Write as _;

/// Bars in groups.
#[derive(Debug, Clone)]
pub struct Bars {
    /// The title above the bars.
    pub title: String,
    /// What the length of a bar is.
    pub unit: String,
    /// Names of the bars of each group.
    pub series: Vec<String>,
    /// Names of the groups and the values of their bars.
    pub groups: Vec<(String, Vec<Option<Interval>>)>,
}

const WIDTH: f64 = 720.0;
/// Room for the groups' names on the left, and for the value of the longest bar on the right.
const LEFT: f64 = 140.0;
const RIGHT: f64 = 90.0;
const BAR: f64 = 16.0;
const GAP: f64 = 10.0;
const TOP: f64 = 8.0;
/// Room for a line for the mark at 1, and another below it for what the length of a bar is.
const BOTTOM: f64 = 40.0;

/// The value of the longest bar: a longer one is cut, which its value shows.
const MOST: f64 = 4.0;

impl Bars {
    /// The `<figure>` element; an empty text if there is nothing to draw.
    pub fn svg(&self) -> String {
        let values = || self.groups.iter().flat_map(|(_, bars)| bars).flatten();
        let longest = values().map(|bar| bar.high.max(bar.median)).fold(1.0, f64::max);
        if values().next().is_none() {
            return String::new();
        }
        let most = longest.min(MOST);
        let x = |value: f64| LEFT + value.clamp(0.0, most) / most * (WIDTH - LEFT - RIGHT);
        let group = self.series.len() as f64 * BAR + GAP;
        let height = TOP + group * self.groups.len() as f64 + BOTTOM;
        let mut svg = format!(
            "<figure><figcaption>{title}</figcaption>{}<div class=\"wide\">\
             <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}: {}\">\n",
            self.legend(),
            escape(&self.in_words()),
            title = escape(&self.title)
        );
        for (at, (name, bars)) in self.groups.iter().enumerate() {
            let top = TOP + group * at as f64;
            let middle = top + (group - GAP) / 2.0 + 5.0;
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                escape(name)
            );
            for (index, bar) in bars.iter().enumerate() {
                if let Some(bar) = bar {
                    self.bar((index, name), bar, top + BAR * index as f64, &x, &mut svg);
                }
            }
        }
        let (one, floor) = (x(1.0), height - BOTTOM);
        let _ = writeln!(
            svg,
            "<line class=\"one\" x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"{TOP}\" y2=\"{floor}\"/>\
             <text x=\"{one:.1}\" y=\"{:.1}\" text-anchor=\"middle\">1</text>\
             <text x=\"{LEFT}\" y=\"{:.1}\">{}</text></svg></div></figure>",
            floor + 14.0,
            height - 6.0,
            escape(&self.unit)
        );
        svg
    }

    fn bar(
        &self,
        (index, group): (usize, &str),
        bar: &Interval,
        top: f64,
        x: &dyn Fn(f64) -> f64,
        svg: &mut String,
    ) {
        let (end, middle) = (x(bar.median), top + BAR / 2.0);
        let number = match bar.median > MOST {
            true => format!("{:.1}, cut", bar.median),
            false => format!("{:.3}", bar.median),
        };
        let mut cuts = String::new();
        // Two strokes across the end show that a bar goes on beyond the drawing.
        if bar.median > MOST {
            for stroke in [end - 16.0, end - 10.0] {
                let _ = writeln!(
                    cuts,
                    "<line class=\"cut\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                    stroke - 3.0,
                    stroke + 3.0,
                    top + BAR,
                    top
                );
            }
        }
        let _ = writeln!(
            svg,
            "<rect class=\"s{}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}, {}: {:.3} ({:.3} to {:.3})</title></rect>\
             <line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             {cuts}<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            index % COLOURS,
            top + 1.0,
            end - LEFT,
            BAR - 2.0,
            escape(group),
            escape(self.series.get(index).map_or("", String::as_str)),
            bar.median,
            bar.low,
            bar.high,
            x(bar.low),
            x(bar.high),
            x(bar.high.max(bar.median)) + 6.0,
            middle + 5.0,
            number
        );
    }

    fn legend(&self) -> String {
        let all = self.series.iter().enumerate().map(|(index, name)| {
            format!(
                "<li><svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><rect width=\"30\" height=\"10\" class=\"s{}\"/></svg>{}</li>",
                index % COLOURS,
                escape(name)
            )
        });
        format!("<ul class=\"legend\">{}</ul>", all.collect::<String>())
    }

    fn in_words(&self) -> String {
        let group = |(name, bars): &(String, Vec<Option<Interval>>)| {
            let all = bars.iter().zip(&self.series).filter_map(|(bar, series)| {
                let median = bar.as_ref()?.median;
                Some(format!("{series} {median:.2}"))
            });
            format!("{name}: {}", all.collect::<Vec<_>>().join(", "))
        };
        let groups: Vec<String> = self.groups.iter().map(group).collect();
        format!("{}; {}", self.unit, groups.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(median: f64) -> Option<Interval> {
        let (low, high) = (median * 0.9, median * 1.1);
        Some(Interval { median, low, high })
    }

    #[test]
    fn a_bar_ends_at_its_median_and_one_that_is_too_long_is_cut() {
        let bars = Bars {
            title: "t".into(),
            unit: "ratio".into(),
            series: vec!["direct".into(), "<b>".into()],
            groups: vec![
                ("cg".into(), vec![bar(1.0), None]),
                ("is".into(), vec![bar(50.0), bar(0.5)]),
            ],
        };
        let svg = bars.svg();
        assert_eq!(svg.matches("<rect class").count(), 3);
        // 50 is cut at 4, which is marked, and 1 is a quarter of that.
        assert_eq!(svg.matches("class=\"cut\"").count(), 2);
        assert!(svg.contains(">50.0, cut</text>"), "{svg}");
        assert!(
            svg.contains("width=\"490.0\"") && svg.contains("width=\"122.5\""),
            "{svg}"
        );
        assert!(
            svg.contains("cg: direct 1.00") && svg.contains("&lt;b&gt;"),
            "{svg}"
        );
    }

    #[test]
    fn nothing_to_draw_draws_nothing() {
        let bars = Bars {
            title: "t".into(),
            unit: "ratio".into(),
            series: vec!["direct".into()],
            groups: vec![("cg".into(), vec![None])],
        };
        assert_eq!(bars.svg(), "");
    }
}
