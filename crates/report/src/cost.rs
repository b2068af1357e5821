//! Says what a gain in run time is worth, as Vinter et al. (2004), section 6, define it: a share of the price
//! of a node, and of the electricity that it and its cooling consume.

use crate::escape::escape;
use crate::page::Page;
use std::fmt::Write as _;

/// What a node costs.
#[derive(Debug, Clone, Copy)]
struct Prices {
    node: f64,
    watts: f64,
    /// Power for cooling, as a share of the node's power.
    cooling: f64,
    kwh: f64,
    years: f64,
    /// The share of the time in which the node computes.
    usage: f64,
}

/// Today's assumptions, for a reader to replace: prices differ by country and contract.
const TODAY: Prices = Prices {
    node: 9000.0,
    watts: 600.0,
    cooling: 0.25,
    kwh: 0.20,
    years: 5.0,
    usage: 0.9,
};

/// The nodes of two small clusters.
const NODES: f64 = 16.0;

const HOURS_OF_A_YEAR: f64 = 8766.0;

impl Prices {
    /// What a gain is worth for one node over its life.
    fn value(&self, gain: f64) -> f64 {
        let hours = self.years * HOURS_OF_A_YEAR * self.usage;
        let electricity = self.watts * (1.0 + self.cooling) / 1000.0 * hours * self.kwh;
        gain * (self.node + electricity)
    }
}

/// Shows a table of what every choice but the best costs; its inputs can be changed.
pub fn show(page: &mut Page, gains: &[(String, f64)]) {
    page.subheading("What the difference is worth");
    page.text(
        "The time by which the suite is slower than with the best is worth that share of a node's price, and of the electricity that it \
         takes in its life with its cooling (Vinter et al. 2004, section 6). The values below are assumptions: put in your own. Times \
         are of the programs that all have run, by their geometric mean.",
    );
    let inputs = [
        ("node", "price of a node", TODAY.node),
        ("watts", "W that a node takes", TODAY.watts),
        ("cooling", "% of that for cooling", TODAY.cooling * 100.0),
        ("price_kwh", "for a kWh", TODAY.kwh),
        ("years", "years of life", TODAY.years),
        ("use", "% of the time in use", TODAY.usage * 100.0),
        ("nodes", "nodes", NODES),
    ];
    let mut html = "<form id=\"cost\" onsubmit=\"return false\">".to_owned();
    for (name, text, value) in inputs {
        let _ = write!(
            html,
            "<label><input name=\"{name}\" type=\"number\" min=\"0\" step=\"any\" value=\"{value}\">{text}</label>"
        );
    }
    html += "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">MPI, condition</th><th scope=\"col\">slower than the best</th>\
             <th scope=\"col\">worth, each node</th><th scope=\"col\">worth, all nodes</th></tr></thead><tbody>";
    for (name, gain) in gains {
        let value = TODAY.value(*gain);
        let _ = write!(
            html,
            "<tr data-gain=\"{gain:.6}\"><th scope=\"row\">{}</th><td>{:.1} %</td><td class=\"each\">{value:.0}</td>\
             <td class=\"all\">{:.0}</td></tr>",
            escape(name),
            gain * 100.0,
            value * NODES
        );
    }
    html += "</tbody></table></div></form>\n";
    page.html_part(&html);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_the_paper_comes_out_of_its_inputs() {
        // Vinter et al. 2004, section 6: 1428 euros, 210 W, 25 % for cooling; a gain of 14.5 % is worth 206
        // euros without electricity and 292 with Norway's, which then costs 0.086 euros a kWh over three
        // years.
        let paper = Prices {
            node: 1428.0,
            watts: 210.0,
            cooling: 0.25,
            kwh: 0.0,
            years: 3.0,
            usage: 1.0,
        };
        assert!((paper.value(0.145) - 206.0).abs() < 2.0);
        let norway = Prices { kwh: 0.086, ..paper };
        assert!((norway.value(0.145) - 292.0).abs() < 3.0);
        assert!((norway.value(0.371) - 749.0).abs() < 7.0);
        // 386 and 991 euros with Denmark's, which costs 0.18 euros a kWh.
        let denmark = Prices { kwh: 0.18, ..paper };
        assert!((denmark.value(0.145) - 386.0).abs() < 3.0);
        assert!((denmark.value(0.371) - 991.0).abs() < 7.0);
    }
}
