//! Draws line plots as inline SVG: the horizontal axis is logarithmic, the vertical one logarithmic or
//! linear; there is no script and no outside resource. Colours are the page's, so that they follow its light
//! and dark modes, and print.

use crate::escape::escape;
use causeway_bench::table::size;
use std::fmt::Write as _;

/// One line in a plot.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Whether the line is dashed: it is a limit, not a measurement.
    pub dashed: bool,
    /// Horizontal and vertical values, all positive.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Creates the line of a measurement.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            dashed: false,
            points,
        }
    }

    /// Creates the line of the physical limit.
    pub fn limit(points: Vec<(f64, f64)>) -> Series {
        Series {
            name: "limit R/2 + s/B".into(),
            dashed: true,
            points,
        }
    }

    /// The CSS class that gives the line a colour; a limit is grey.
    fn class(&self, index: usize) -> String {
        match self.dashed {
            true => "limit".to_owned(),
            false => format!("s{}", index % COLOURS),
        }
    }
}

/// A plot with its axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The title above the plot.
    pub title: String,
    /// The text under the horizontal axis, with its unit. The axis is logarithmic to base 2, and its marks
    /// are message sizes.
    pub horizontal: String,
    /// The text beside the vertical axis, with its unit.
    pub vertical: String,
    /// Whether the vertical axis is logarithmic to base 10; if not, it is linear and begins at zero.
    pub logarithmic: bool,
    /// The lines, drawn in this order.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Room for the marks and the texts of the axes.
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 60.0;
const TOP: f64 = 16.0;
const RIGHT: f64 = 16.0;

/// The number of colours in the page's style: `s0` and so on. They differ in lightness, too, for printing and
/// for readers who cannot distinguish red from green.
pub const COLOURS: usize = 6;

/// Maps values to places on the canvas.
struct Scale {
    x: (f64, f64),
    y: (f64, f64),
    logarithmic: bool,
}

impl Scale {
    fn of(plot: &Plot) -> Scale {
        let all = || plot.series.iter().flat_map(|series| &series.points);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let x = (least(&mut all().map(|p| p.0)), most(&mut all().map(|p| p.0)));
        let y = (least(&mut all().map(|p| p.1)), most(&mut all().map(|p| p.1)));
        let y = if plot.logarithmic {
            (10f64.powf(y.0.log10().floor()), 10f64.powf(y.1.log10().ceil()))
        } else {
            (0.0, y.1 * 1.05)
        };
        Scale {
            x,
            y,
            logarithmic: plot.logarithmic,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let span = (self.x.1 / self.x.0).log2().max(1.0);
        LEFT + (value / self.x.0).log2() / span * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value / self.y.0).log10() / (self.y.1 / self.y.0).log10().max(1.0)
        } else {
            value / self.y.1
        };
        HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
    }

    fn vertical_marks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = (self.y.1 / self.y.0).log10().round() as i32;
            return (0..=decades)
                .map(|decade| self.y.0 * 10f64.powi(decade))
                .collect();
        }
        // A round step that gives three to six marks, zero among them.
        let rough = self.y.1 / 5.0;
        let step = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * step)
            .into_iter()
            .find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        (0..)
            .map(|count| f64::from(count) * step)
            .take_while(|mark| *mark <= self.y.1)
            .collect()
    }
}

impl Plot {
    /// The `<svg>` element; an empty text if there is nothing to draw.
    pub fn svg(&self) -> String {
        if self.series.iter().all(|series| series.points.is_empty()) {
            return String::new();
        }
        let scale = Scale::of(self);
        let mut svg = format!(
            "<figure><figcaption>{title}</figcaption>{}<div class=\"wide\">\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}: {}\">\n",
            self.legend(),
            escape(&self.in_words()),
            title = escape(&self.title)
        );
        self.axes(&scale, &mut svg);
        for (index, series) in self.series.iter().enumerate() {
            self.line(index, series, &scale, &mut svg);
        }
        svg.push_str("</svg></div></figure>\n");
        svg
    }

    fn axes(&self, scale: &Scale, svg: &mut String) {
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for mark in scale.vertical_marks() {
            let y = scale.y(mark);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                number(mark)
            );
        }
        let mut bytes = scale.x.0.max(1.0);
        while bytes <= scale.x.1 {
            let x = scale.x(bytes);
            // The text of a mark at the right edge would exceed the drawing.
            let anchor = if x > right - RIGHT { "end" } else { "middle" };
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor}\" class=\"grid\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                floor + 16.0,
                size(bytes as u64)
            );
            bytes *= 16.0;
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 12.0,
            escape(&self.horizontal),
            (TOP + floor) / 2.0,
            escape(&self.vertical)
        );
    }

    /// The legend, which is above the plot, because lines may be anywhere in it.
    fn legend(&self) -> String {
        let all = self.series.iter().enumerate().map(|(index, series)| {
            let class = series.class(index);
            format!(
                "<li><svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><line x1=\"0\" x2=\"30\" y1=\"5\" y2=\"5\" class=\"line {class}\"/></svg>{}</li>",
                escape(&series.name)
            )
        });
        format!("<ul class=\"legend\">{}</ul>", all.collect::<String>())
    }

    /// Describes the plot for readers who cannot see it.
    fn in_words(&self) -> String {
        let all = self.series.iter().filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            let place = |point: &(f64, f64)| format!("{} at {}", number(point.1), size(point.0 as u64));
            Some(format!("{}: {} to {}", series.name, place(first), place(last)))
        });
        format!("{}; {}", self.vertical, all.collect::<Vec<_>>().join("; "))
    }

    fn line(&self, index: usize, series: &Series, scale: &Scale, svg: &mut String) {
        let class = series.class(index);
        let places = series.points.iter().map(|&(x, y)| (scale.x(x), scale.y(y)));
        let points: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline class=\"line {class}\" points=\"{}\"/>",
            points.join(" ")
        );
        if series.dashed {
            return;
        }
        for &(x, y) in &series.points {
            let _ = writeln!(
                svg,
                "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}, {}: {} {}</title></circle>",
                scale.x(x),
                scale.y(y),
                escape(&series.name),
                size(x as u64),
                number(y),
                escape(&self.vertical)
            );
        }
    }
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => {
            let text = format!("{value:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(logarithmic: bool, points: Vec<(f64, f64)>) -> Plot {
        let series = vec![Series {
            name: "a <b>".into(),
            dashed: true,
            points,
        }];
        Plot {
            title: "t".into(),
            horizontal: "size (B)".into(),
            vertical: "ms".into(),
            logarithmic,
            series,
        }
    }

    #[test]
    fn the_first_and_last_point_touch_the_edges() {
        let svg = plot(true, vec![(1.0, 1.0), (1024.0, 1000.0)]).svg();
        assert!(svg.contains("points=\"80.0,360.0 704.0,16.0\""), "{svg}");
        assert!(svg.contains("a &lt;b&gt;") && svg.contains("1 B"), "{svg}");
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_has_round_marks() {
        let svg = plot(false, vec![(1.0, 10.0), (2.0, 940.0)]).svg();
        assert!(
            svg.contains(">0</text>") && svg.contains(">200</text>") && svg.contains(">800</text>"),
            "{svg}"
        );
    }

    #[test]
    fn nothing_to_draw_draws_nothing() {
        assert_eq!(plot(true, vec![]).svg(), "");
    }

    #[test]
    fn a_single_point_gives_numbers_and_no_nan() {
        assert!(!plot(true, vec![(8.0, 10.0)]).svg().contains("NaN"));
    }
}
