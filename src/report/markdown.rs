//! Markdown for a pull request's comment and for `$GITHUB_STEP_SUMMARY`: verdict, table, findings, and what to
//! do; never longer than a comment may be.
//!
//! Text that a server had a hand in stands in code spans, where neither markup nor a mention has a meaning.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::account::{doubt, level, transcript};
use super::conclusion::{Standing, tone};
use super::group::{Group, Told, group};
use super::visible::excerpt;
use super::{Renderer, Report, verdict_line};
use crate::verdict::Verdict;

/// Writes a report as Markdown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

/// A comment on GitHub holds 65,536 characters; what is told beyond this many bytes is counted instead.
const MOST: usize = 60_000;

/// How many messages prove a finding before the rest is left to the JSON report.
const PROOFS: usize = 6;

impl Renderer for Markdown {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut page = head(report);
        table(report, &mut page);
        baseline(report, &mut page);
        problem(report, &mut page);
        let (accepted, broken): (Vec<_>, Vec<_>) =
            group(report).into_iter().flat_map(Group::split).partition(Group::is_accepted);
        let mut left_out = 0;
        for (title, groups) in [("", broken), ("### Accepted\n\n", accepted)] {
            let mut title = title;
            for group in groups {
                let mut part = title.to_owned();
                told(&group, &mut part);
                if page.len() + part.len() > MOST {
                    left_out += 1;
                } else {
                    page.push_str(&part);
                    title = "";
                }
            }
        }
        if left_out > 0 {
            let what = if left_out == 1 { "requirement is" } else { "requirements are" };
            writeln!(page, "{left_out} more {what} left out here; the JSON report has them all.").expect(INTO_TEXT);
        }
        out.write_all(page.as_bytes())
    }
}

const INTO_TEXT: &str = "a string takes all that is written";

fn head(report: &Report) -> String {
    let mark = match tone(report) {
        Verdict::Pass => "✅",
        Verdict::Warn => "⚠",
        Verdict::Fail => "❌",
        Verdict::Error | Verdict::Skip => "❔",
    };
    let server = code(&report.server, 300);
    let line = prose(&verdict_line(report));
    format!("## {mark} MCP conformance\n\n**{line}**\n\n{server}\n\n")
}

fn table(report: &Report, page: &mut String) {
    if report.targets.is_empty() {
        return;
    }
    let any_accepted = Standing::of(report).accepted > 0;
    let extra = if any_accepted { [" accepted |", " ---: |"] } else { ["", ""] };
    writeln!(page, "| revision | pass | fail | warn | skip | error |{}", extra[0]).expect(INTO_TEXT);
    writeln!(page, "| --- | ---: | ---: | ---: | ---: | ---: |{}", extra[1]).expect(INTO_TEXT);
    for target in &report.targets {
        let Standing { totals, accepted, .. } = Standing::of_results(&target.results);
        write!(page, "| {} ", target.summary.revision).expect(INTO_TEXT);
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error] {
            write!(page, "| {} ", totals.of(verdict)).expect(INTO_TEXT);
        }
        page.push('|');
        if any_accepted {
            write!(page, " {accepted} |").expect(INTO_TEXT);
        }
        page.push('\n');
    }
    page.push('\n');
}

fn baseline(report: &Report, page: &mut String) {
    let complaints: Vec<String> = report.baseline.iter().flat_map(super::BaselineComparison::complaints).collect();
    if complaints.is_empty() {
        return;
    }
    page.push_str("### The baseline is out of date\n\n");
    for complaint in complaints.iter().take(50) {
        writeln!(page, "- {}", prose(&excerpt(complaint, 400, 0))).expect(INTO_TEXT);
    }
    if complaints.len() > 50 {
        writeln!(page, "- and {} more", complaints.len() - 50).expect(INTO_TEXT);
    }
    page.push('\n');
}

fn problem(report: &Report, page: &mut String) {
    let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) else { return };
    let (message, hint) = (prose(&excerpt(&problem.message, 600, 0)), prose(&excerpt(&problem.hint, 600, 0)));
    write!(page, "### Problem\n\n{message}\n\n{hint}\n\n").expect(INTO_TEXT);
    let lines: Vec<&str> = problem.stderr.lines().collect();
    let shown: Vec<String> = lines[lines.len().saturating_sub(20)..].iter().map(|line| excerpt(line, 300, 0)).collect();
    if !shown.is_empty() {
        block(&shown, page);
    }
}

fn told(group: &Group<'_>, page: &mut String) {
    let word = if group.verdict == Verdict::Fail { "❌" } else { "⚠" };
    let first = group.told.first().map(|told| level(told.finding)).unwrap_or_default();
    let title = escaped(&code(group.requirement, 200));
    writeln!(page, "<details><summary>{word} {title} {first}</summary>\n").expect(INTO_TEXT);
    for told in &group.told {
        finding(told, page);
    }
    page.push_str("</details>\n\n");
}

fn finding(told: &Told<'_>, page: &mut String) {
    let finding = told.finding;
    let revisions: Vec<&str> = told.revisions.iter().map(|revision| revision.as_str()).collect();
    let cases: Vec<String> = told.cases.iter().take(8).map(|case| code(case, 120)).collect();
    write!(page, "{}\n\n", prose(&excerpt(&finding.message, 600, 0))).expect(INTO_TEXT);
    let mut item = |label: &str, text: &str| writeln!(page, "- **{label}** {text}").expect(INTO_TEXT);
    item("seen", &format!("{}× in {} by {}", told.count, revisions.join(", "), cases.join(", ")));
    if !told.subjects.is_empty() {
        let places: Vec<String> = told.subjects.iter().take(8).map(|place| code(place, 120)).collect();
        item("at", &places.join(", "));
    }
    item("expected", &prose(&excerpt(&finding.expected, 600, 0)));
    item("actual", &code(&finding.actual, 600));
    if let Some(doubt) = doubt(finding) {
        item("confidence", &doubt);
    }
    if let Some(why) = &finding.accepted {
        item("accepted", &prose(&excerpt(why, 600, 0)));
    }
    item("mend", &prose(&excerpt(&finding.fix, 600, 0)));
    item("rule", &link(&finding.link));
    item("again", &code(&finding.reproduce, 1000));
    page.push('\n');
    let proof: Vec<String> = transcript(finding).into_iter().take(PROOFS).map(|line| excerpt(&line, 600, 0)).collect();
    if !proof.is_empty() {
        block(&proof, page);
    }
}

/// Lines in a fence that none of them can close.
fn block(lines: &[String], page: &mut String) {
    let fence = "`".repeat(longest_run(lines.iter().map(String::as_str)).max(2) + 1);
    writeln!(page, "{fence}text\n{}\n{fence}\n", lines.join("\n")).expect(INTO_TEXT);
}

fn longest_run<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.flat_map(|text| text.split(|c| c != '`')).map(str::len).max().unwrap_or_default()
}

/// A text in a code span that it cannot leave.
pub(super) fn code(text: &str, limit: usize) -> String {
    let shown = excerpt(text, limit, 0);
    if shown.trim().is_empty() {
        return "(nothing)".to_owned();
    }
    let ticks = "`".repeat(longest_run(std::iter::once(shown.as_str())) + 1);
    // In a table a bar ends a cell even within code.
    let shown = shown.replace('|', "\\|");
    format!("{ticks} {shown} {ticks}")
}

/// A sentence as it is where it holds nothing that Markdown gives a meaning to; else in a code span.
pub(super) fn prose(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " .,;:'\"()/-=+?!".contains(c);
    // What looks like an address would become a link, and a line may begin a list or a heading.
    let inert = !text.contains("://") && !text.contains("www.");
    let begins_plain = text.starts_with(|c: char| c.is_alphabetic());
    // Our own sentences set words in code spans; what stands within them is inert.
    let parts: Vec<&str> = text.split('`').collect();
    let spans_close = parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(|inner| !inner.trim().is_empty());
    let outside_is_plain = parts.iter().step_by(2).all(|outer| outer.chars().all(plain));
    let apart = parts.len() < 4 || parts[2..parts.len() - 1].iter().step_by(2).all(|outer| !outer.is_empty());
    let stays = inert && begins_plain && spans_close && outside_is_plain && apart;
    if stays { text.to_owned() } else { code(text, 4000) }
}

/// An address of ours as a link, and anything else as code.
fn link(address: &str) -> String {
    let known = ["https://modelcontextprotocol.io/", "https://github.com/modelcontextprotocol/"];
    let clean = address.chars().all(|c| c.is_ascii_alphanumeric() || "-._~/:#".contains(c));
    if clean && known.iter().any(|start| address.starts_with(start)) {
        format!("<{address}>")
    } else {
        code(address, 400)
    }
}

/// A code span as HTML, for where Markdown is not read.
fn escaped(span: &str) -> String {
    let text = span.trim_matches('`').trim().replace("\\|", "|");
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    format!("<code>{text}</code>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_treacherous;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Markdown.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("Markdown is UTF-8")
    }

    #[test]
    fn the_example_render_is_fixed() {
        golden::compare("example.md", &rendered(&example()));
    }

    #[test]
    fn nothing_that_a_server_wrote_is_read_as_markup() {
        let nasty = format!("`` ` ``` |\n# owned\n</code></summary><b>@octocat [x](https://evil.example) {HOSTILE}");
        let mut report = example();
        poison(&mut report, &nasty);
        let text = rendered(&report);
        assert!(!text.chars().any(|c| c != '\n' && is_treacherous(c)));
        let outside = golden::outside_code(&text);
        for sign in ["<b>", "[x]", "evil.example", "# owned\n#"] {
            assert!(!outside.lines().any(|line| !line.starts_with("<details>") && line.contains(sign)), "{sign}");
        }
        let summaries: Vec<&str> = outside.lines().filter(|line| line.starts_with("<details>")).collect();
        assert!(summaries.iter().all(|line| !line.contains("<b>") && line.matches("</summary>").count() == 1));
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }

    #[test]
    fn a_page_is_never_longer_than_a_comment_may_be() {
        let mut report = example();
        let result = report.targets[1].results[1].clone();
        for number in 0..2000 {
            let mut more = result.clone();
            more.findings[0].requirement = format!("rule-{number:04}");
            report.targets[1].results.push(more);
        }
        let text = rendered(&report);
        assert!(text.len() < 65_536 && text.contains("more requirements are left out here"), "{}", text.len());
    }

    #[test]
    fn plain_sentences_stay_prose_and_addresses_do_not_become_links() {
        assert_eq!(prose("An error message holds a stack trace."), "An error message holds a stack trace.");
        assert_eq!(prose("see https://evil.example"), "` see https://evil.example `");
        assert_eq!(prose("a `b|<i>` c"), "a `b|<i>` c");
        assert_eq!(prose("a `b"), "`` a `b ``");
        assert_eq!(prose("a `b``c` <i>"), "``` a `b``c` <i> ```");
        assert_eq!(prose("a `b``c` d"), "``` a `b``c` d ```");
        assert_eq!(link("https://modelcontextprotocol.io/a#b"), "<https://modelcontextprotocol.io/a#b>");
        assert_eq!(link("https://evil.example/"), "` https://evil.example/ `");
    }
}
