//! The badge: the conclusion of a run as a small SVG that loads no fonts or other resources.
//!
//! Its label contains only fixed words and numbers; its title is the verdict line, which may quote the server.

use std::io::{self, Write};

use super::conclusion::{CaseCounts, Conclusion};
use super::markup::escape;
use super::{Renderer, Report, verdict_line};
use crate::verdict::Verdict;

/// Writes a report as an SVG badge.
#[derive(Debug, Clone, Copy, Default)]
pub struct Badge;

/// The left part of the badge.
const LABEL: &str = "MCP conformance";

impl Renderer for Badge {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let message = message(report);
        let color = match super::conclusion::color_verdict(report) {
            Verdict::Pass => "#2f7d32",
            Verdict::Warn => "#8a6d00",
            Verdict::Fail => "#b3261e",
            Verdict::Error | Verdict::Skip => "#5f6368",
        };
        let (left, right) = (width(LABEL), width(&message));
        let total = left + right;
        // The verdict line may quote the server, and `]]>` is not allowed in XML text.
        let title = escape(&verdict_line(report), &[]);
        writeln!(
            out,
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img" aria-label="{LABEL}: {message}">
  <title>{title}</title>
  <clipPath id="r"><rect width="{total}" height="20" rx="3"/></clipPath>
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
    let counts = CaseCounts::of(report);
    let violated = super::group::count_violated_requirements(report);
    match Conclusion::of(report) {
        Conclusion::Failed if violated > 0 => format!("{violated} violated"),
        Conclusion::Failed if report.baseline.as_ref().is_some_and(super::BaselineComparison::is_out_of_date) => {
            "stale baseline".to_owned()
        }
        Conclusion::Passed | Conclusion::Failed if counts.totals.warn > 0 => {
            format!("{} pass, {} warn", counts.totals.pass, counts.totals.warn)
        }
        Conclusion::Passed | Conclusion::Failed => format!("{} pass", counts.totals.pass),
        Conclusion::Unjudged => "not judged".to_owned(),
        Conclusion::NothingJudged => "nothing judged".to_owned(),
    }
}

/// The approximate width of a text in pixels, including its margins.
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
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.badge.svg", &rendered(&example()));
    }

    #[test]
    fn the_badge_is_well_formed_xml_without_injected_elements() {
        let mut report = example();
        poison(&mut report, &format!("\"/><script>alert(1)</script>&{HOSTILE}"));
        let text = rendered(&report);
        let document = roxmltree::Document::parse(&text).expect("it is XML");
        let names: std::collections::BTreeSet<&str> =
            document.descendants().filter(roxmltree::Node::is_element).map(|node| node.tag_name().name()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["clipPath", "g", "rect", "svg", "text", "title"]);
        let texts: Vec<_> = document.descendants().filter(|node| node.has_tag_name("text")).map(|t| t.text()).collect();
        assert_eq!(texts, [Some("MCP conformance"), Some("2 violated")]);
    }
}
