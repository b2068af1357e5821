//! Line plots as inline SVG: both axes logarithmic or the vertical one linear, no script and no outside
//! resource.

use std::fmt::Write as _;

/// One line of a plot.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// A CSS colour.
    pub colour: &'static str,
    /// Dashed: a limit and not a measurement.
    pub dashed: bool,
    /// Horizontal and vertical values, positive.
    pub points: Vec<(f64, f64)>,
}

/// A plot with its axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Above the plot.
    pub title: String,
    /// The text under the horizontal axis, with unit. The axis is logarithmic to base 2 and marked as message
    /// sizes.
    pub horizontal: String,
    /// Beside the vertical axis, with unit.
    pub vertical: String,
    /// Vertical axis to base 10, else linear from zero.
    pub logarithmic: bool,
    /// The series, drawn in this order.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Room for the marks and names of the axes.
const LEFT: f64 = 76.0;
const BOTTOM: f64 = 56.0;
const TOP: f64 = 34.0;
const RIGHT: f64 = 16.0;

/// Colours that differ in lightness too, for printing and for eyes that do not tell red from green.
pub const COLOURS: [&str; 4] = ["#0b62a4", "#e07b00", "#4d9a2a", "#a02c5d"];

/// Where values lie on the canvas.
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
        // A round step that gives four to ten marks.
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
    /// The `<svg>` element; empty text when there is nothing to draw.
    pub fn svg(&self) -> String {
        if self.series.iter().all(|series| series.points.is_empty()) {
            return String::new();
        }
        let scale = Scale::of(self);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
            escape(&self.title)
        );
        self.axes(&scale, &mut svg);
        for series in &self.series {
            line(series, &scale, &mut svg);
        }
        self.legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, scale: &Scale, svg: &mut String) {
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for mark in scale.vertical_marks() {
            let y = scale.y(mark);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                number(mark)
            );
        }
        let mut size = scale.x.0.max(1.0);
        while size <= scale.x.1 {
            let x = scale.x(size);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor}\" stroke=\"#eee\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                floor + 16.0,
                causeway_bench::table::size(size as u64)
            );
            size *= 16.0;
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

    fn legend(&self, svg: &mut String) {
        for (index, series) in self.series.iter().enumerate() {
            let y = TOP + 14.0 + 18.0 * index as f64;
            let dash = if series.dashed {
                " stroke-dasharray=\"6 4\""
            } else {
                ""
            };
            let _ = writeln!(
                svg,
                "<line x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{}\" stroke-width=\"2\"{dash}/>\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                LEFT + 14.0,
                LEFT + 44.0,
                series.colour,
                LEFT + 50.0,
                y + 4.0,
                escape(&series.name)
            );
        }
    }
}

fn line(series: &Series, scale: &Scale, svg: &mut String) {
    let points: Vec<_> = series
        .points
        .iter()
        .map(|&(x, y)| format!("{:.1},{:.1}", scale.x(x), scale.y(y)))
        .collect();
    let dash = if series.dashed {
        " stroke-dasharray=\"6 4\""
    } else {
        ""
    };
    let _ = writeln!(
        svg,
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash} points=\"{}\"/>",
        series.colour,
        points.join(" ")
    );
}

fn number(value: f64) -> String {
    if value >= 1.0 || value == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value}")
    }
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(logarithmic: bool, points: Vec<(f64, f64)>) -> Plot {
        let series = vec![Series {
            name: "a <b>".into(),
            colour: COLOURS[0],
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
        assert!(svg.contains("points=\"76.0,364.0 744.0,34.0\""), "{svg}");
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
