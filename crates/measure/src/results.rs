//! The measurements of a bench, section by section, and their files: every row as CSV, README.md, which
//! begins with a summary, and report.html with the plots.

use crate::checkout::repository;
use crate::claim::Claim;
use causeway_bench::program::{ProgramError, io};
use causeway_bench::table::Table;
use causeway_report::page::Page;
use causeway_report::plot::Plot;
use std::fmt::Write as _;
use std::path::Path;

/// What one section of the bench found.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its heading.
    pub title: String,
    /// What was done and how to read it; paragraphs.
    pub text: Vec<String>,
    /// Figures with a bar, for the summary.
    pub claims: Vec<Claim>,
    /// Tables, each under its title.
    pub tables: Vec<(String, Table)>,
    /// Plots for the page.
    pub plots: Vec<Plot>,
    /// Files of rows, each with its name and its CSV text.
    pub files: Vec<(String, String)>,
    commands: Vec<String>,
}

impl Part {
    /// An empty part.
    pub fn new(title: &str, text: &str) -> Part {
        Part {
            title: title.to_owned(),
            text: vec![text.to_owned()],
            ..Part::default()
        }
    }

    /// Notes a command line, once, with paths relative to the repository.
    pub fn command(&mut self, command: &str) {
        let command = command.replace(&format!("{}/", repository().display()), "");
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }
}

/// Everything measured so far.
#[derive(Debug, Default)]
pub struct Report {
    host: Vec<(String, String)>,
    made_by: String,
    parts: Vec<Part>,
    failures: Vec<(String, String)>,
}

const TITLE: &str = "Direct and Causeway in turn, beside the physical limit";

const INTRODUCTION: &str = "Unless a section says otherwise: two emulated sites with a route between them, 11.6 ms round trip, \
    1 Gbit/s, 2 MB drop-tail queue, no loss, CUBIC in every node; a lab of its own for each section. Direct and Causeway run in \
    turn in it. One way is half of a round trip. 'of limit' is the median divided by the physical limit R/2 + s/B. No value is \
    removed; every row is in a CSV file.";

impl Report {
    /// An empty report, with `what: value` of the machine, and the command that asked for it.
    pub fn new(host: Vec<(String, String)>, made_by: String) -> Report {
        Report {
            host,
            made_by,
            ..Report::default()
        }
    }

    /// Adds a section.
    pub fn part(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Adds a section that broke off.
    pub fn failure(&mut self, section: &str, why: &str) {
        self.failures.push((section.to_owned(), why.to_owned()));
    }

    /// Sections that broke off.
    pub fn failed(&self) -> Vec<&str> {
        self.failures
            .iter()
            .map(|(section, _)| section.as_str())
            .collect()
    }

    /// Writes README.md, report.html and the rows into `out`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), ProgramError> {
        let put = |name: &str, text: &str| {
            std::fs::write(out.join(name), text).map_err(io(format!("write {}", out.join(name).display())))
        };
        for (name, rows) in self.parts.iter().flat_map(|part| &part.files) {
            put(name, rows)?;
        }
        put("README.md", &self.readme())?;
        put("report.html", &self.page().html())
    }

    fn summary(&self) -> Table {
        let mut table = Table::new(&Claim::HEAD);
        table.head.insert(0, "section".to_owned());
        for part in &self.parts {
            for claim in &part.claims {
                let mut row = claim.row();
                row.insert(0, part.title.clone());
                table.rows.push(row);
            }
        }
        table
    }

    fn readme(&self) -> String {
        let mut text = format!("# {TITLE}\n\n");
        for (what, value) in &self.host {
            let _ = writeln!(text, "- {what}: {value}");
        }
        let _ = writeln!(text, "- made by: `{}`", self.made_by);
        let _ = writeln!(text, "\n## Summary\n\n{}", self.summary().markdown());
        let _ = writeln!(text, "{INTRODUCTION}\n");
        for (section, why) in &self.failures {
            let _ = writeln!(text, "## {section}: broke off\n\n{}\n", indented(why));
        }
        for part in &self.parts {
            let _ = writeln!(text, "## {}\n", part.title);
            for paragraph in &part.text {
                let _ = writeln!(text, "{paragraph}\n");
            }
            for (title, table) in &part.tables {
                let _ = writeln!(text, "### {title}\n\n{}", table.markdown());
            }
            let files: Vec<_> = part.files.iter().map(|(name, _)| name.as_str()).collect();
            let _ = writeln!(
                text,
                "Rows: {}. Commands:\n\n{}\n",
                files.join(", "),
                indented(&part.commands.join("\n"))
            );
        }
        text
    }

    fn page(&self) -> Page {
        let mut page = Page::new(TITLE);
        let mut machine = Table::new(&["what", "value"]);
        let rows = self.host.iter();
        machine.rows = rows
            .map(|(what, value)| vec![what.clone(), value.clone()])
            .collect();
        page.table(&machine);
        page.heading("Summary");
        page.table(&self.summary());
        page.text(INTRODUCTION);
        for (section, why) in &self.failures {
            page.heading(&format!("{section}: broke off"));
            page.verbatim(why);
        }
        for part in &self.parts {
            page.heading(&part.title);
            part.text.iter().for_each(|text| page.text(text));
            for (title, table) in &part.tables {
                page.text(title);
                page.table(table);
            }
            part.plots.iter().for_each(|plot| page.plot(plot));
            page.verbatim(&part.commands.join("\n"));
        }
        page
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Bar;

    fn report() -> Report {
        let mut part = Part::new("One", "What it is.");
        part.claims.push(Claim {
            what: "a ratio".into(),
            direct: Some(2.0),
            figure: 1.05,
            unit: "",
            bar: Bar::AtMost(1.07),
        });
        part.files.push(("one.csv".into(), "a,b\n1,2\n".into()));
        let inside = repository().join("target/mpi/x");
        part.command(&format!("run {}", inside.display()));
        part.command(&format!("run {}", inside.display()));
        let mut report = Report::default();
        report.part(part);
        report.failure("two", "it\nbroke");
        report
    }

    #[test]
    fn the_readme_opens_with_the_bars_and_names_every_command_once() {
        let text = report().readme();
        let (summary, section) = (text.find("## Summary").unwrap(), text.find("## One").unwrap());
        let row = text.find("at most 1.07").unwrap();
        assert!(summary < row && row < section, "{text}");
        assert_eq!(text.matches("    run target/mpi/x").count(), 1, "{text}");
    }

    #[test]
    fn a_section_that_broke_off_says_why_and_leaves_the_others() {
        let report = report();
        let text = report.readme();
        assert!(
            text.contains("## two: broke off\n\n    it\n    broke\n") && text.contains("## One"),
            "{text}"
        );
        assert_eq!(report.failed(), ["two"]);
    }
}
