//! Builds one self-contained HTML page with headings, text, tables and plots, which can be read without a
//! network, on a phone, in dark mode, by keyboard and screen reader, and in print.

use crate::escape::escape;
use crate::plot::Plot;
use causeway_bench::table::Table;

/// A page that is written from top to bottom.
#[derive(Debug, Clone, Default)]
pub struct Page {
    title: String,
    body: String,
    /// Anchors and names of its headings.
    contents: Vec<(String, String)>,
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The tag in the head of each page that distinguishes the page of an earlier run from a user's file.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"causeway\">";

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Page {
        Page {
            title: title.to_owned(),
            ..Page::default()
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        let anchor = format!("part-{}", self.contents.len() + 1);
        self.body
            .push_str(&format!("<h2 id=\"{anchor}\">{}</h2>\n", escape(text)));
        self.contents.push((anchor, text.to_owned()));
    }

    /// Adds a heading of the next level.
    pub fn subheading(&mut self, text: &str) {
        self.body.push_str(&format!("<h3>{}</h3>\n", escape(text)));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", escape(text)));
    }

    /// Sets the paragraph above all others: the conclusion, which is known last.
    pub fn lead(&mut self, text: &str) {
        self.body.insert_str(0, &format!("<p>{}</p>\n", escape(text)));
    }

    /// Shows a program's output unchanged.
    pub fn verbatim(&mut self, text: &str) {
        self.body.push_str(&format!(
            "<pre tabindex=\"0\">{}</pre>\n",
            escape(text.trim_end())
        ));
    }

    /// Adds a table of numbers.
    pub fn table(&mut self, table: &Table) {
        self.body.push_str(&html_table(table, ""));
    }

    /// Adds a table of words.
    pub fn words(&mut self, table: &Table) {
        self.body.push_str(&html_table(table, " words"));
    }

    /// Adds a table that is shown only if the reader opens it, and in print.
    pub fn folded(&mut self, name: &str, table: &Table) {
        let (name, table) = (escape(name), html_table(table, ""));
        self.body.push_str(&format!(
            "<details><summary>{name}</summary>\n{table}</details>\n"
        ));
    }

    /// Adds a long text that is shown likewise.
    pub fn folded_text(&mut self, name: &str, text: &str) {
        let (name, text) = (escape(name), escape(text));
        self.body.push_str(&format!(
            "<details><summary>{name}</summary>\n<pre tabindex=\"0\">{text}</pre></details>\n"
        ));
    }

    /// Adds a plot.
    pub fn plot(&mut self, plot: &Plot) {
        self.body.push_str(&plot.svg());
    }

    /// Adds HTML that another module of this crate has composed.
    pub(crate) fn html_part(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// The whole document.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let link = |(anchor, name): &(String, String)| {
            format!("<li><a href=\"#{anchor}\">{}</a></li>", escape(name))
        };
        let contents: String = self.contents.iter().map(link).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{GENERATOR}\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\n\
             <style>{STYLE}</style></head><body>\n<a class=\"skip\" href=\"#main\">Skip to the figures</a>\n\
             <header><h1>{title}</h1><nav aria-label=\"Contents\"><ul>{contents}</ul></nav></header>\n\
             <main id=\"main\">\n{}</main>\n<script>{SCRIPT}</script></body></html>\n",
            self.body
        )
    }
}

fn html_table(table: &Table, class: &str) -> String {
    let cells = |cells: &[String]| -> String {
        let mut all = cells.iter();
        let first = all
            .next()
            .map(|cell| format!("<th scope=\"row\">{}</th>", escape(cell)));
        let rest = all.map(|cell| format!("<td>{}</td>", escape(cell)));
        first.into_iter().chain(rest).collect()
    };
    let head: String = table
        .head
        .iter()
        .map(|cell| format!("<th scope=\"col\">{}</th>", escape(cell)))
        .collect();
    let rows: String = table
        .rows
        .iter()
        .map(|row| format!("<tr>{}</tr>\n", cells(row)))
        .collect();
    format!(
        "<div class=\"wide{class}\" tabindex=\"0\"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_escapes_what_programs_say_and_loads_nothing() {
        let mut page = Page::new("a & b");
        page.heading("x > y");
        page.verbatim("<script>\n");
        page.table(&Table {
            head: vec!["size".into(), "x (ms)".into()],
            rows: vec![vec!["1 B".into(), "1".into()]],
        });
        let html = page.html();
        assert!(
            html.contains("<h1>a &amp; b</h1>") && html.contains("&lt;script&gt;</pre>"),
            "{html}"
        );
        assert!(html.contains("<a href=\"#part-1\">x &gt; y</a>"), "{html}");
        assert!(!html.contains("http") && !html.contains("src="), "{html}");
        assert!(html.contains("<th scope=\"row\">1 B</th><td>1</td>"), "{html}");
    }
}
