//! One self-contained HTML page: headings, text, tables and plots, readable without a network and in print.

use crate::plot::{Plot, escape};
use causeway_bench::table::Table;

/// A page that grows downwards.
#[derive(Debug, Clone, Default)]
pub struct Page {
    title: String,
    body: String,
}

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
    table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}\
    td,th{padding:.15em .7em;border-bottom:1px solid #ddd;text-align:right}\
    pre{background:#f5f5f5;padding:.8em;overflow-x:auto;font-size:13px}svg{width:100%;height:auto}";

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Page {
        Page {
            title: title.to_owned(),
            body: format!("<h1>{}</h1>\n", escape(title)),
        }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.body.push_str(&format!("<h2>{}</h2>\n", escape(text)));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", escape(text)));
    }

    /// Shows a program's output as it was.
    pub fn verbatim(&mut self, text: &str) {
        self.body
            .push_str(&format!("<pre>{}</pre>\n", escape(text.trim_end())));
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        let row = |cells: &[String], tag: &str| {
            let cells: String = cells
                .iter()
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
                .collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
        self.body
            .push_str(&format!("<table>\n{}{rows}</table>\n", row(&table.head, "th")));
    }

    /// A plot.
    pub fn plot(&mut self, plot: &Plot) {
        self.body.push_str(&plot.svg());
    }

    /// The whole document.
    pub fn html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\
             <style>{STYLE}</style></head><body>\n{}</body></html>\n",
            escape(&self.title),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_escapes_what_programs_say_and_loads_nothing() {
        let mut page = Page::new("a & b");
        page.verbatim("<script>\n");
        page.table(&Table {
            head: vec!["x (ms)".into()],
            rows: vec![vec!["1".into()]],
        });
        let html = page.html();
        assert!(
            html.contains("<h1>a &amp; b</h1>") && html.contains("<pre>&lt;script&gt;</pre>"),
            "{html}"
        );
        assert!(!html.contains("http") && html.contains("<td>1</td>"), "{html}");
    }
}
