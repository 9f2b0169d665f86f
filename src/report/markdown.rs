//! Markdown for pull request comments and for `$GITHUB_STEP_SUMMARY`: verdict, table and findings, within the size
//! limit of a comment.
//!
//! Text that a server can influence is put into code spans, where markup and mentions have no effect.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::conclusion::{CaseCounts, color_verdict};
use super::finding_text::{evidence_lines, flaky_note, level_label};
use super::group::{GroupedFinding, Parts, RequirementGroup};
use super::markup::escape;
use super::sdk::Sdk;
use super::visible::excerpt;
use super::{Renderer, Report, verdict_line};
use crate::verdict::Verdict;

/// Writes a report as Markdown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

/// The size from which findings are only counted; a comment on GitHub holds 65,536 characters.
const MAX_BYTES: usize = 60_000;

/// The number of messages shown per finding; the JSON report has all.
const MAX_MESSAGES: usize = 6;

/// The number of findings of the same cause that are shown with one.
const MAX_ALIKE: usize = 6;

impl Renderer for Markdown {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut page = header(report);
        write_table(report, &mut page);
        write_baseline(report, &mut page);
        write_problem(report, &mut page);
        write_untested(report, &mut page);
        let Parts { author, sdk, interpretation, accepted } = Parts::of(report).fold();
        let mut omitted = 0;
        for (title, groups) in [
            (String::new(), author),
            (sdk_title(&sdk), sdk),
            (INTERPRETATION_TITLE.to_owned(), interpretation),
            ("### Accepted\n\n".to_owned(), accepted),
        ] {
            let mut title = title.as_str();
            for group in groups {
                let mut part = title.to_owned();
                write_group(&group, &mut part);
                if page.len() + part.len() > MAX_BYTES {
                    omitted += 1;
                } else {
                    page.push_str(&part);
                    title = "";
                }
            }
        }
        if omitted > 0 {
            let what = if omitted == 1 { "requirement is" } else { "requirements are" };
            writeln!(page, "{omitted} more {what} omitted here; the JSON report contains all of them.")
                .expect(STRING_WRITE);
        }
        out.write_all(page.as_bytes())
    }
}

const INTERPRETATION_TITLE: &str = "### Open questions of interpretation\n\n\
    The specification states these rules without a keyword such as MUST, so they only warn.\n\n";

/// The title of what the SDK causes, with how to get rid of it.
fn sdk_title(groups: &[RequirementGroup<'_>]) -> String {
    let names = groups.iter().flat_map(|group| &group.findings).filter_map(|grouped| grouped.finding.sdk.as_deref());
    let Some(name) = names.into_iter().next() else { return String::new() };
    let mut title = format!("### Not from your code: {}\n\n", sentence(&excerpt(name, 60, 0)));
    if let Some(sdk) = Sdk::named(name) {
        write!(title, "To get rid of them, {}.\n\n", sdk.remedy).expect(STRING_WRITE);
    }
    title
}

const STRING_WRITE: &str = "a string takes all that is written";

fn header(report: &Report) -> String {
    let icon = match color_verdict(report) {
        Verdict::Pass => "✅",
        Verdict::Warn => "⚠",
        Verdict::Fail => "❌",
        Verdict::Error | Verdict::Skip => "❔",
    };
    let server = code(&report.server, 300);
    let line = sentence(&verdict_line(report));
    format!("## {icon} MCP conformance\n\n**{line}**\n\n{server}\n\n")
}

fn write_table(report: &Report, page: &mut String) {
    if report.targets.is_empty() {
        return;
    }
    let any_accepted = CaseCounts::of(report).accepted > 0;
    let extra = if any_accepted { [" accepted |", " ---: |"] } else { ["", ""] };
    writeln!(page, "| revision | pass | fail | warn | skip | error |{}", extra[0]).expect(STRING_WRITE);
    writeln!(page, "| --- | ---: | ---: | ---: | ---: | ---: |{}", extra[1]).expect(STRING_WRITE);
    for target in &report.targets {
        let CaseCounts { totals, accepted, .. } = CaseCounts::of_results(&target.results);
        write!(page, "| {} ", target.summary.revision).expect(STRING_WRITE);
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error] {
            write!(page, "| {} ", totals.of(verdict)).expect(STRING_WRITE);
        }
        page.push('|');
        if any_accepted {
            write!(page, " {accepted} |").expect(STRING_WRITE);
        }
        page.push('\n');
    }
    page.push('\n');
}

fn write_baseline(report: &Report, page: &mut String) {
    let outdated_messages: Vec<String> =
        report.baseline.iter().flat_map(super::BaselineComparison::outdated_messages).collect();
    if outdated_messages.is_empty() {
        return;
    }
    page.push_str("### The baseline is out of date\n\n");
    for complaint in outdated_messages.iter().take(50) {
        writeln!(page, "- {}", sentence(&excerpt(complaint, 400, 0))).expect(STRING_WRITE);
    }
    if outdated_messages.len() > 50 {
        writeln!(page, "- and {} more", outdated_messages.len() - 50).expect(STRING_WRITE);
    }
    page.push('\n');
}

/// The tools that no generated call could satisfy.
fn write_untested(report: &Report, page: &mut String) {
    const MAX_LINES: usize = 20;
    let summaries = report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref());
    let lines: Vec<String> = summaries.flat_map(super::untested::lines).collect();
    if lines.is_empty() {
        return;
    }
    page.push_str("### Not tested\n\n");
    for line in lines.iter().take(MAX_LINES) {
        writeln!(page, "- {}", code(line, 700)).expect(STRING_WRITE);
    }
    if lines.len() > MAX_LINES {
        writeln!(page, "- and {} more", lines.len() - MAX_LINES).expect(STRING_WRITE);
    }
    page.push('\n');
}

fn write_problem(report: &Report, page: &mut String) {
    let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) else { return };
    let (message, hint) = (sentence(&excerpt(&problem.message, 600, 0)), sentence(&excerpt(&problem.hint, 600, 0)));
    write!(page, "### Problem\n\n{message}\n\n{hint}\n\n").expect(STRING_WRITE);
    let lines: Vec<&str> = problem.stderr.lines().collect();
    let shown: Vec<String> = lines[lines.len().saturating_sub(20)..].iter().map(|line| excerpt(line, 300, 0)).collect();
    if !shown.is_empty() {
        write_code_block(&shown, page);
    }
}

fn write_group(group: &RequirementGroup<'_>, page: &mut String) {
    let icon = if group.verdict == Verdict::Fail { "❌" } else { "⚠" };
    let level = group.findings.first().map(|grouped| level_label(grouped.finding)).unwrap_or_default();
    let title = html_code(&code(group.requirement, 200));
    writeln!(page, "<details><summary>{icon} {title} {level}</summary>\n").expect(STRING_WRITE);
    for grouped in &group.findings {
        write_finding(grouped, page);
    }
    page.push_str("</details>\n\n");
}

fn write_finding(grouped: &GroupedFinding<'_>, page: &mut String) {
    let finding = grouped.finding;
    let revisions: Vec<&str> = grouped.revisions.iter().map(|revision| revision.as_str()).collect();
    let cases: Vec<String> = grouped.cases.iter().take(8).map(|case| code(case, 120)).collect();
    write!(page, "{}\n\n", sentence(&excerpt(grouped.message, 600, 0))).expect(STRING_WRITE);
    let mut item = |label: &str, text: &str| writeln!(page, "- **{label}** {text}").expect(STRING_WRITE);
    item("found", &format!("{}× in {} by {}", grouped.count, revisions.join(", "), cases.join(", ")));
    if !grouped.tools.is_empty() {
        let tools: Vec<String> = grouped.tools.iter().take(8).map(|tool| code(tool, 120)).collect();
        let more = match grouped.tools.len().saturating_sub(8) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        item("tools", &format!("{}{more}", tools.join(", ")));
    }
    if !grouped.subjects.is_empty() {
        let places: Vec<String> = grouped.subjects.iter().take(8).map(|place| code(place, 120)).collect();
        item("where", &places.join(", "));
    }
    item("expected", &sentence(&excerpt(&finding.expected, 600, 0)));
    item("actual", &code(&finding.actual, 600));
    for other in grouped.alike.iter().take(MAX_ALIKE) {
        let cases: Vec<String> = other.cases.iter().take(8).map(|case| code(case, 120)).collect();
        item("likewise", &format!("{} By {}", sentence(&excerpt(other.message, 600, 0)), cases.join(", ")));
    }
    if grouped.alike.len() > MAX_ALIKE {
        item("likewise", &format!("{} more findings", grouped.alike.len() - MAX_ALIKE));
    }
    if let Some(note) = flaky_note(finding) {
        item("retries", &note);
    }
    if let Some(why) = &finding.accepted {
        item("accepted", &sentence(&excerpt(why, 600, 0)));
    }
    item("fix", &sentence(&excerpt(&finding.fix, 600, 0)));
    item("rule", &link(&finding.link));
    item("reproduce", &code(&finding.reproduce, 1000));
    page.push('\n');
    let messages: Vec<String> =
        evidence_lines(finding).into_iter().take(MAX_MESSAGES).map(|line| excerpt(&line, 600, 0)).collect();
    if !messages.is_empty() {
        write_code_block(&messages, page);
    }
}

/// Writes lines in a code fence that is longer than any run of backticks in them.
fn write_code_block(lines: &[String], page: &mut String) {
    let fence = "`".repeat(longest_run(lines.iter().map(String::as_str)).max(2) + 1);
    writeln!(page, "{fence}text\n{}\n{fence}\n", lines.join("\n")).expect(STRING_WRITE);
}

fn longest_run<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.flat_map(|text| text.split(|c| c != '`')).map(str::len).max().unwrap_or_default()
}

/// A text in a code span that is longer than any run of backticks in it.
pub(super) fn code(text: &str, limit: usize) -> String {
    let shown = excerpt(text, limit, 0);
    if shown.trim().is_empty() {
        return "(nothing)".to_owned();
    }
    let ticks = "`".repeat(longest_run(std::iter::once(shown.as_str())) + 1);
    // In a table, a bar ends a cell even within code.
    let shown = shown.replace('|', "\\|");
    format!("{ticks} {shown} {ticks}")
}

/// A sentence as it is if it contains nothing with a meaning in Markdown, otherwise in a code span.
pub(super) fn sentence(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " .,;:'\"()/-=+?!".contains(c);
    // URLs would become links, and the first character could start a list or a heading.
    let has_no_url = !text.contains("://") && !text.contains("www.");
    let begins_plain = text.starts_with(|c: char| c.is_alphabetic());
    // Sentences may contain code spans, and markup within them has no effect.
    let parts: Vec<&str> = text.split('`').collect();
    let spans_close = parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(|inner| !inner.trim().is_empty());
    let outside_is_plain = parts.iter().step_by(2).all(|outer| outer.chars().all(plain));
    let spans_are_separate =
        parts.len() < 4 || parts[2..parts.len() - 1].iter().step_by(2).all(|outer| !outer.is_empty());
    let is_safe = has_no_url && begins_plain && spans_close && outside_is_plain && spans_are_separate;
    if is_safe { text.to_owned() } else { code(text, 4000) }
}

/// A link to the specification as a link, and anything else as code.
fn link(address: &str) -> String {
    let known = ["https://modelcontextprotocol.io/", "https://github.com/modelcontextprotocol/"];
    let clean = address.chars().all(|c| c.is_ascii_alphanumeric() || "-._~/:#".contains(c));
    if clean && known.iter().any(|start| address.starts_with(start)) {
        format!("<{address}>")
    } else {
        code(address, 400)
    }
}

/// A code span as HTML, for positions where Markdown is not interpreted.
fn html_code(span: &str) -> String {
    let text = span.trim_matches('`').trim().replace("\\|", "|");
    format!("<code>{}</code>", escape(&text, &['"']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Markdown.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("Markdown is UTF-8")
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.md", &rendered(&example()));
    }

    #[test]
    fn server_text_never_becomes_markup() {
        let nasty = format!("`` ` ``` |\n# owned\n</code></summary><b>@octocat [x](https://evil.example) {HOSTILE}");
        let mut report = example();
        poison(&mut report, &nasty);
        let text = rendered(&report);
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
        let outside = golden::outside_code(&text);
        for sign in ["<b>", "[x]", "evil.example", "# owned\n#"] {
            assert!(!outside.lines().any(|line| !line.starts_with("<details>") && line.contains(sign)), "{sign}");
        }
        let summaries: Vec<&str> = outside.lines().filter(|line| line.starts_with("<details>")).collect();
        assert!(summaries.iter().all(|line| !line.contains("<b>") && line.matches("</summary>").count() == 1));
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }

    #[test]
    fn a_page_fits_into_a_comment() {
        let mut report = example();
        let result = report.targets[1].results[1].clone();
        for number in 0..2000 {
            let mut more = result.clone();
            more.findings[0].requirement = format!("rule-{number:04}");
            more.findings[0].message = format!("The server breaks rule {number}.");
            more.findings[0].upstream = None;
            report.targets[1].results.push(more);
        }
        let text = rendered(&report);
        assert!(text.len() < 65_536 && text.contains("more requirements are omitted here"), "{}", text.len());
    }

    #[test]
    fn plain_sentences_stay_unchanged_and_urls_do_not_become_links() {
        assert_eq!(sentence("An error message contains a stack trace."), "An error message contains a stack trace.");
        assert_eq!(sentence("see https://evil.example"), "` see https://evil.example `");
        assert_eq!(sentence("a `b|<i>` c"), "a `b|<i>` c");
        assert_eq!(sentence("a `b"), "`` a `b ``");
        assert_eq!(sentence("a `b``c` <i>"), "``` a `b``c` <i> ```");
        assert_eq!(sentence("a `b``c` d"), "``` a `b``c` d ```");
        assert_eq!(link("https://modelcontextprotocol.io/a#b"), "<https://modelcontextprotocol.io/a#b>");
        assert_eq!(link("https://evil.example/"), "` https://evil.example/ `");
    }
}
