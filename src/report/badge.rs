//! A badge: what the run comes to, as a small SVG that needs no font and no network of its own.
//!
//! It shows words and numbers of ours alone; its title is the verdict line, which may tell a server's words.

use std::io::{self, Write};

use super::conclusion::{Conclusion, Standing};
use super::{Renderer, Report, verdict_line};
use crate::verdict::Verdict;

/// Writes a report as an SVG badge.
#[derive(Debug, Clone, Copy, Default)]
pub struct Badge;

/// What stands on its left.
const LABEL: &str = "MCP conformance";

impl Renderer for Badge {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let message = message(report);
        let color = match super::conclusion::tone(report) {
            Verdict::Pass => "#2f7d32",
            Verdict::Warn => "#8a6d00",
            Verdict::Fail => "#b3261e",
            Verdict::Error | Verdict::Skip => "#5f6368",
        };
        let (left, right) = (width(LABEL), width(&message));
        let whole = left + right;
        // A problem of the run may be told in words of the server's; `]]>` is no text in XML.
        let title = verdict_line(report).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        writeln!(
            out,
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{LABEL}: {message}">
  <title>{title}</title>
  <clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#r)">
    <rect width="{left}" height="20" fill="#3c4043"/>
    <rect x="{left}" width="{right}" height="20" fill="{color}"/>
  </g>
  <g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="{}" y="14" textLength="{}">{LABEL}</text>
    <text x="{}" y="14" textLength="{}">{message}</text>
  </g>
</svg>"##,
            left / 2,
            left - 12,
            left + right / 2,
            right - 12
        )
    }
}

fn message(report: &Report) -> String {
    let standing = Standing::of(report);
    let broken = super::group::broken_requirements(report);
    match Conclusion::of(report) {
        Conclusion::Failed if broken > 0 => format!("{broken} broken"),
        Conclusion::Failed if report.baseline.as_ref().is_some_and(super::BaselineComparison::is_out_of_date) => {
            "stale baseline".to_owned()
        }
        Conclusion::Passed | Conclusion::Failed if standing.totals.warn > 0 => {
            format!("{} pass, {} warn", standing.totals.pass, standing.totals.warn)
        }
        Conclusion::Passed | Conclusion::Failed => format!("{} pass", standing.totals.pass),
        Conclusion::Unjudged => "not judged".to_owned(),
        Conclusion::Nothing => "nothing judged".to_owned(),
    }
}

/// About how wide a text of ours is in pixels, with its margins.
fn width(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, 'i' | 'l' | 'j' | 't' | 'f' | 'r' | ',' | ' ') { 5 } else { 7 }).sum::<usize>()
        + 12
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Badge.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("SVG is UTF-8")
    }

    #[test]
    fn the_example_render_is_fixed() {
        golden::compare("example.badge.svg", &rendered(&example()));
    }

    #[test]
    fn another_parser_reads_it_and_finds_nothing_that_acts() {
        let mut report = example();
        poison(&mut report, &format!("\"/><script>alert(1)</script>&{HOSTILE}"));
        let text = rendered(&report);
        let document = roxmltree::Document::parse(&text).expect("it is XML");
        let names: std::collections::BTreeSet<&str> =
            document.descendants().filter(roxmltree::Node::is_element).map(|node| node.tag_name().name()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["clipPath", "g", "rect", "svg", "text", "title"]);
        let words: Vec<_> = document.descendants().filter(|node| node.has_tag_name("text")).map(|t| t.text()).collect();
        assert_eq!(words, [Some("MCP conformance"), Some("2 broken")]);
    }
}
