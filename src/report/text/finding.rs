//! The findings with evidence, fix and the command that reproduces them, and the comparison with the baseline.
//!
//! Responsible for how much of a finding is shown. Grouping and merging is up to [`group`](crate::report::group).

use std::io::{self, Write};

use serde_json::Value;

use super::fuzzing;
use super::page::{LABEL_WIDTH, MAX_LINE_CHARS_VERBOSE, MAX_NAMES, Page, join_revisions, one_line, write_hanging};
use crate::report::Report;
use crate::report::finding_text::{flaky_note, level_reason, wire_line};
use crate::report::group::{GroupedFinding, Parts, RequirementGroup};
use crate::report::layout::wrap;
use crate::report::palette::paint;
use crate::report::sdk::Sdk;
use crate::report::visible::{excerpt, visible};
use crate::spec::{Catalogue, Revision, book_address, requirement_page};
use crate::verdict::{Direction, Evidence, Finding, Verdict};

/// The number of lines that the findings of the author may take in any case, unless the report is verbose.
const MIN_LINES: usize = 14;
/// The number of lines about findings that are not shown, and about those whose verdict is not that of their level.
const LINES_AFTER_FINDINGS: usize = 4;
/// The number of lines above open questions of interpretation.
const LINES_ABOVE_INTERPRETATIONS: usize = 5;
/// The number of these lines that are left for warnings if there are any.
const LINES_FOR_WARNINGS: usize = 8;
/// The number of findings of the SDK, and of questions of interpretation, that are listed unless the report is verbose.
const MAX_SENTENCES: usize = 3;
/// The number of messages shown of a finding unless the report is verbose; the JSON report has all.
const MAX_MESSAGES: usize = 4;
/// How many tools have to fail alike before one place in common is likely.
const MANY_TOOLS: usize = 4;
/// The number of diff lines shown.
const MAX_DIFF_LINES: usize = 24;
/// The indent of what belongs to a finding, in columns.
const INDENT: usize = 6;

/// How much of a finding is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With its evidence.
    Full,
    /// What is wrong, what to do, the rule and the command that reproduces it.
    Brief,
    /// What is wrong, and the rule.
    Line,
}

/// Writes the findings, in so many lines unless the report is verbose.
pub(super) fn write_findings(page: &Page, report: &Report, lines: usize, out: &mut dyn Write) -> io::Result<()> {
    let parts = if page.is_verbose() { Parts::of(report) } else { Parts::of(report).fold() };
    let [author, sdk, interpretation] = [&parts.author, &parts.sdk, &parts.interpretation]
        .map(|groups| groups.iter().flat_map(|group| &group.findings).collect::<Vec<_>>());
    let judged = Judged::of(report);
    if page.is_verbose() {
        write_in_full(page, &judged, &author, out)?;
        write_of_sdk(page, &judged, &sdk, out)?;
        write_interpretations(page, &judged, &interpretation, None, out)?;
        let accepted = parts.accepted.iter().flat_map(|group| &group.findings);
        let all = author.into_iter().chain(sdk).chain(interpretation).chain(accepted);
        write_level_reasons(page, &all.map(|one| one.finding).collect::<Vec<_>>(), out)?;
        return write_accepted(page, &judged, &parts.accepted, out);
    }
    let (mut of_sdk, mut interpretations, mut accepted) = (Vec::new(), Vec::new(), Vec::new());
    write_of_sdk(page, &judged, &sdk, &mut of_sdk)?;
    write_accepted(page, &judged, &parts.accepted, &mut accepted)?;
    let is_alone = author.is_empty() && sdk.is_empty();
    let room = lines.saturating_sub(count_lines(&accepted) + LINES_ABOVE_INTERPRETATIONS + LINES_AFTER_FINDINGS);
    write_interpretations(page, &judged, &interpretation, is_alone.then_some(room), &mut interpretations)?;
    let others = [&of_sdk, &interpretations, &accepted].into_iter().map(|text| count_lines(text)).sum::<usize>();
    let room = lines.saturating_sub(others + LINES_AFTER_FINDINGS);
    let shown = write_as_fits(page, &judged, &author, room.max(MIN_LINES), out)?;
    write_level_reasons(page, &shown.iter().map(|one| one.finding).collect::<Vec<_>>(), out)?;
    [of_sdk, interpretations, accepted].iter().try_for_each(|text| out.write_all(text))
}

/// The number of lines of a text.
pub(super) fn count_lines(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

fn write_in_full(
    page: &Page,
    judged: &Judged,
    findings: &[&GroupedFinding<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    findings.iter().try_for_each(|finding| out.write_all(rendered(page, judged, finding, Form::Full)?.as_bytes()))
}

/// Writes the findings that the SDK causes, after those of the author: whose they are, what to do, and one line each.
fn write_of_sdk(page: &Page, judged: &Judged, findings: &[&GroupedFinding<'_>], out: &mut dyn Write) -> io::Result<()> {
    let Some(name) = findings.iter().find_map(|grouped| grouped.finding.sdk.as_deref()) else { return Ok(()) };
    let of = if findings.len() == 1 { "1 finding is" } else { &format!("{} findings are", findings.len()) };
    page.write_heading(&format!("Not from your code: {of} from {}", excerpt(name, 60, 0)), out)?;
    if let Some(sdk) = Sdk::named(name) {
        let measured = if page.is_verbose() { format!(" Measured on {}.", sdk.measured) } else { String::new() };
        let all: Vec<&Finding> = findings.iter().map(|grouped| grouped.finding).collect();
        page.write_faint(2, &format!("To get rid of them, {}.{measured}", sdk.remedy_for(&all)), out)?;
    }
    if page.is_verbose() { write_in_full(page, judged, findings, out) } else { write_sentences(page, findings, out) }
}

/// Writes the questions of interpretation: why they only warn, and one line each, or more if there is nothing else and so
/// there is `room` for so many lines.
fn write_interpretations(
    page: &Page,
    judged: &Judged,
    findings: &[&GroupedFinding<'_>],
    room: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(reason) = findings.first().and_then(|grouped| level_reason(grouped.finding)) else { return Ok(()) };
    let count = if findings.len() == 1 { "1 finding" } else { &format!("{} findings", findings.len()) };
    page.write_heading(&format!("Open questions of interpretation: {count}"), out)?;
    page.write_faint(2, &format!("How binding these rules are is {reason}."), out)?;
    if page.is_verbose() {
        write_in_full(page, judged, findings, out)
    } else if let Some(room) = room {
        writeln!(out)?;
        write_as_fits(page, judged, findings, room.max(MIN_LINES), out).map(drop)
    } else {
        write_sentences(page, findings, out)
    }
}

/// Writes the first few findings in one line each.
fn write_sentences(page: &Page, findings: &[&GroupedFinding<'_>], out: &mut dyn Write) -> io::Result<()> {
    for grouped in findings.iter().take(MAX_SENTENCES) {
        let verdict = grouped.finding.verdict;
        let mark = paint(page.palette.of(verdict), format_args!("{:<4}", verdict.as_str()));
        let sentence = excerpt(&with_tools(page, grouped), page.max_line_chars(), 0);
        writeln!(out, "  {mark}  {}", one_line(&sentence, page.room(8)))?;
    }
    if findings.len() > MAX_SENTENCES {
        let text = format!("and {} more: -v shows all of them", findings.len() - MAX_SENTENCES);
        page.write_faint(8, &text, out)?;
    }
    writeln!(out)
}

/// The judged revisions of a report.
struct Judged(Vec<Revision>);

impl Judged {
    fn of(report: &Report) -> Self {
        Self(report.targets.iter().map(|target| target.summary.revision).collect())
    }

    /// The revisions of a finding: `in all revisions`, or their names.
    fn name(&self, revisions: &[Revision]) -> String {
        match (self.0.as_slice(), revisions) {
            (all, found) if all.len() > 1 && all == found => "in all revisions".to_owned(),
            (_, [first, .., last]) if self.are_adjacent(revisions) && revisions.len() > 2 => {
                format!("in {first} to {last}")
            }
            (_, found) => format!("in {}", join_revisions(found)),
        }
    }

    /// Whether no judged revision lies between the first and the last of these that is not one of them.
    fn are_adjacent(&self, revisions: &[Revision]) -> bool {
        self.0.windows(revisions.len()).any(|window| window == revisions)
    }
}

/// Writes the findings in the most detailed forms that fit into so many lines, and at the end how to see the rest.
/// Failures keep their details longer than warnings. Returns those that were written.
fn write_as_fits<'f, 'r>(
    page: &Page,
    judged: &Judged,
    findings: &[&'f GroupedFinding<'r>],
    max_lines: usize,
    out: &mut dyn Write,
) -> io::Result<Vec<&'f GroupedFinding<'r>>> {
    let render = |findings: &[&GroupedFinding<'_>], form| -> io::Result<Vec<String>> {
        findings.iter().map(|finding| rendered(page, judged, finding, form)).collect()
    };
    let lines = |blocks: &[String]| blocks.iter().map(|block| block.lines().count()).sum::<usize>();
    let (failures, warnings): (Vec<_>, Vec<_>) =
        findings.iter().copied().partition(|finding| finding.finding.verdict == Verdict::Fail);
    let for_warnings = if warnings.is_empty() { 0 } else { LINES_FOR_WARNINGS.min(max_lines / 3) };
    // Where failures leave nothing for warnings, they have it all.
    let leaves_room = lines(&render(&failures, Form::Line)?) + for_warnings <= max_lines;
    let room = if leaves_room { max_lines - for_warnings } else { max_lines };
    let mut shortened = false;
    let mut blocks = render(&failures, Form::Full)?;
    // The last ones are shortened first, so that as many as possible of the first keep their evidence.
    for form in [Form::Brief, Form::Line] {
        for (at, failure) in failures.iter().enumerate().rev() {
            // The first always says what to do.
            if lines(&blocks) <= room || (form == Form::Line && at == 0) {
                break;
            }
            shortened = true;
            blocks[at] = rendered(page, judged, failure, form)?;
        }
    }
    let full = render(&warnings, Form::Full)?;
    if lines(&blocks) + lines(&full) <= max_lines {
        blocks.extend(full);
    } else {
        shortened = true;
        blocks.extend(render(&warnings, Form::Line)?);
    }
    let mut left = max_lines;
    let mut shown = 0;
    for block in &blocks {
        let lines = block.lines().count();
        // The first is shown however long it is.
        if lines > left && shown > 0 {
            break;
        }
        out.write_all(block.as_bytes())?;
        left = left.saturating_sub(lines);
        shown += 1;
    }
    if shown < blocks.len() {
        let text = format!("and {} more findings: -v shows all of them with their messages", blocks.len() - shown);
        writeln!(out, "{}\n", paint(page.palette.faint, text))?;
    } else if shortened {
        writeln!(out, "{}\n", paint(page.palette.faint, "-v shows every finding with its messages and the fix"))?;
    }
    Ok(failures.into_iter().chain(warnings).take(shown).collect())
}

/// Says once why findings have another verdict than the level of their rule says.
fn write_level_reasons(page: &Page, findings: &[&Finding], out: &mut dyn Write) -> io::Result<()> {
    let mut written: Vec<String> = Vec::new();
    for finding in findings {
        let Some(reason) = level_reason(finding) else { continue };
        let of = if finding.derived { String::new() } else { format!("{}: ", finding.level) };
        let line = format!("{}, {of}{reason}", finding.verdict.as_str().to_uppercase());
        if !written.contains(&line) {
            page.write_faint(0, &line, out)?;
            written.push(line);
        }
    }
    if written.is_empty() { Ok(()) } else { writeln!(out) }
}

fn rendered(page: &Page, judged: &Judged, grouped: &GroupedFinding<'_>, form: Form) -> io::Result<String> {
    let mut block = Vec::new();
    write_finding(page, judged, grouped, form, &mut block)?;
    String::from_utf8(block).map_err(io::Error::other)
}

/// Writes the accepted findings, each in a few lines.
fn write_accepted(
    page: &Page,
    judged: &Judged,
    groups: &[RequirementGroup<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let is_of_sdk = groups.iter().flat_map(|group| &group.findings).any(|grouped| grouped.finding.sdk.is_some());
    page.write_heading(if is_of_sdk { "Accepted" } else { "Accepted by the baseline" }, out)?;
    for group in groups {
        for grouped in &group.findings {
            let verdict = grouped.finding.verdict.as_str();
            let requirement = visible(group.requirement);
            page.write_wrapped(2, &format!("{verdict}  {requirement}  {}", place(page, judged, grouped)), out)?;
            let reason = grouped.finding.accepted.as_deref().unwrap_or_default();
            page.write_wrapped(4, &excerpt(reason, page.max_line_chars(), 0), out)?;
            if page.is_verbose() {
                write_finding(page, judged, grouped, Form::Full, out)?;
            }
        }
    }
    writeln!(out)
}

/// Writes what is outdated in the baseline, and the findings that it does not list.
pub(super) fn write_baseline(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(comparison) = &report.baseline else { return Ok(()) };
    let sentences: Vec<String> = comparison.outdated_messages().chain(comparison.expiry_messages()).collect();
    if !sentences.is_empty() {
        page.write_heading("The baseline is out of date", out)?;
        for sentence in &sentences {
            write_hanging(&excerpt(sentence, page.max_line_chars(), 0), page.room(4), out)?;
        }
        writeln!(out)?;
    }
    if comparison.new.is_empty() {
        return Ok(());
    }
    page.write_heading("Not in the baseline", out)?;
    let shown = if page.is_verbose() { comparison.new.len() } else { comparison.new.len().min(MAX_NAMES) };
    for line in &comparison.new[..shown] {
        let text = serde_json::to_string(line).unwrap_or_default();
        writeln!(out, "  {}", excerpt(&text, MAX_LINE_CHARS_VERBOSE, 0))?;
    }
    if shown < comparison.new.len() {
        writeln!(out, "  and {} more", comparison.new.len() - shown)?;
    }
    let file = excerpt(&comparison.file, page.max_line_chars(), 0);
    let advice =
        format!("fix the server, or add these entries to {file} with a reason; --update-baseline adds them for you");
    for line in wrap(&advice, page.width()) {
        writeln!(out, "  {}", paint(page.palette.faint, line))?;
    }
    writeln!(out)
}

fn write_finding(
    page: &Page,
    judged: &Judged,
    grouped: &GroupedFinding<'_>,
    form: Form,
    out: &mut dyn Write,
) -> io::Result<()> {
    let finding = grouped.finding;
    write_sentence(page, grouped, out)?;
    if form == Form::Line {
        return page.write_faint(INDENT, &rule(page, judged, grouped), out);
    }
    page.write_labelled("fix", &visible(&finding.fix), out)?;
    if form == Form::Full {
        write_proof(page, grouped, out)?;
    }
    page.write_labelled_faint("rule", &rule(page, judged, grouped), out)?;
    if form == Form::Full {
        page.write_labelled_faint("", &visible(&finding.link), out)?;
        if let Some(upstream) = &finding.upstream {
            page.write_labelled_faint("origin", &visible(&upstream.to_string()), out)?;
        }
        let rule = Catalogue::embedded().get(&finding.requirement);
        if let Some(page_of_rule) = rule.and_then(|rule| book_address(&requirement_page(rule))) {
            page.write_labelled_faint("", &page_of_rule, out)?;
        }
    }
    // The command is not wrapped, so that it can be copied.
    writeln!(
        out,
        "{:INDENT$}{}{}",
        "",
        paint(page.palette.faint, format_args!("{:<LABEL_WIDTH$}", "reproduce")),
        visible(&finding.reproduce)
    )?;
    writeln!(out)
}

/// Writes the verdict and what is wrong, in one sentence.
fn write_sentence(page: &Page, grouped: &GroupedFinding<'_>, out: &mut dyn Write) -> io::Result<()> {
    let verdict = grouped.finding.verdict;
    let mut mark = paint(page.palette.of(verdict), format_args!("{:<INDENT$}", verdict.as_str().to_uppercase()));
    let sentence = excerpt(&with_tools(page, grouped), page.max_line_chars(), 0);
    for line in wrap(&sentence, page.room(INDENT)) {
        writeln!(out, "{mark}{}", paint(page.palette.strong, line))?;
        mark = " ".repeat(INDENT);
    }
    Ok(())
}

/// What is wrong, with the tools of which the fuzzer found it.
fn with_tools(page: &Page, grouped: &GroupedFinding<'_>) -> String {
    let names: Vec<String> = grouped.tools.iter().map(|tool| excerpt(tool, 60, 0)).collect();
    match names.as_slice() {
        [] if grouped.alike.is_empty() => grouped.message.to_owned(),
        [] if grouped.alike.len() == 1 => format!("{} (and 1 finding alike)", grouped.message),
        [] => format!("{} (and {} findings alike)", grouped.message, grouped.alike.len()),
        [name] => format!("{name}: {}", grouped.message),
        names => format!("{} tools: {} ({})", names.len(), grouped.message, page.join_names(names)),
    }
}

/// The rule: the requirement, how binding it is, and where and by which cases the finding was made.
fn rule(page: &Page, judged: &Judged, grouped: &GroupedFinding<'_>) -> String {
    let finding = grouped.finding;
    // The level of an inferred rule is ours. What follows from it is said once, after the findings.
    let level = if finding.derived { "inferred".to_owned() } else { finding.level.to_string() };
    format!("{} ({level}), {}", visible(&finding.requirement), place(page, judged, grouped))
}

/// In which revisions and by which cases the finding was made, and how often.
fn place(page: &Page, judged: &Judged, grouped: &GroupedFinding<'_>) -> String {
    let times = match grouped.count {
        0 | 1 => String::new(),
        2 => "twice ".to_owned(),
        count => format!("{count} times "),
    };
    let cases: Vec<String> = grouped.cases.iter().map(|case| visible(case).into_owned()).collect();
    format!("{times}{} by {}", judged.name(&grouped.revisions), page.join_names(&cases))
}

/// Writes what shows the finding: where, expected and actual behaviour, the call and the messages.
fn write_proof(page: &Page, grouped: &GroupedFinding<'_>, out: &mut dyn Write) -> io::Result<()> {
    let finding = grouped.finding;
    page.write_labelled_broken("expected", &excerpt(&finding.expected, page.max_line_chars(), 0), out)?;
    page.write_labelled_broken("actual", &excerpt(&finding.actual, page.max_line_chars(), 0), out)?;
    if !grouped.subjects.is_empty() {
        let subjects: Vec<String> = grouped.subjects.iter().map(|subject| excerpt(subject, 80, 0)).collect();
        page.write_labelled_broken("where", &page.join_places(&subjects), out)?;
    }
    if grouped.tools.len() >= MANY_TOOLS && finding.sdk.is_none() {
        let cause =
            "so many tools do the same that one place is likely: what they share, or how the SDK is set to validate";
        page.write_labelled("cause", cause, out)?;
    }
    for (label, text) in fuzzing::counterexample_fields(finding) {
        page.write_labelled_broken(label, &text, out)?;
    }
    if let Some(note) = flaky_note(finding) {
        page.write_labelled_broken("retries", &note, out)?;
    }
    if let Some(diff) = &finding.diff {
        write_diff(page, diff, out)?;
    }
    if page.is_verbose() {
        return write_evidence(page, &finding.evidence, out);
    }
    // The last messages are those that the finding is about.
    let of_server = |item: &&Evidence| item.direction != Direction::Stderr;
    let messages: Vec<&Evidence> = finding.evidence.iter().filter(of_server).collect();
    for item in &messages[messages.len().saturating_sub(MAX_MESSAGES)..] {
        // `actual` shows the member that is wrong; the rest of the message would hide it.
        if finding.value.is_some() && item.direction == Direction::Received {
            continue;
        }
        let label = match item.direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
            Direction::Stderr | Direction::Event => "",
        };
        let line = one_line(&visible(&in_short(item)), page.room(INDENT + LABEL_WIDTH));
        writeln!(
            out,
            "{:INDENT$}{}{}",
            "",
            paint(page.palette.faint, format_args!("{label:<LABEL_WIDTH$}")),
            paint(page.palette.of_direction(item.direction), line)
        )?;
    }
    Ok(())
}

/// A message without what all messages have: of a request its method and parameters.
fn in_short(item: &Evidence) -> String {
    let Ok(Value::Object(mut message)) = serde_json::from_str::<Value>(&item.text) else { return item.text.clone() };
    if message.get("jsonrpc").is_some_and(|version| version == "2.0") {
        message.shift_remove("jsonrpc");
    }
    for content in ["params", "result"] {
        if let Some(content) = message.get_mut(content).and_then(Value::as_object_mut) {
            content.shift_remove("_meta");
        }
    }
    match message.get("method").and_then(Value::as_str) {
        Some(method) => message.get("params").map_or_else(|| method.to_owned(), |params| format!("{method} {params}")),
        None => Value::Object(message).to_string(),
    }
}

fn write_diff(page: &Page, diff: &str, out: &mut dyn Write) -> io::Result<()> {
    let all = diff.lines().count();
    let shown = if page.is_verbose() { all } else { all.min(MAX_DIFF_LINES) };
    let mut label = "diff";
    for line in diff.lines().take(shown) {
        let style = match line.as_bytes().first() {
            Some(b'-') => page.palette.of(Verdict::Fail),
            Some(b'+') => page.palette.of(Verdict::Pass),
            _ => page.palette.faint,
        };
        let label_text = paint(page.palette.faint, format_args!("{label:<LABEL_WIDTH$}"));
        writeln!(out, "{:INDENT$}{label_text}{}", "", paint(style, excerpt(line, page.max_line_chars(), 0)))?;
        label = "";
    }
    if shown < all {
        writeln!(out, "{:INDENT$}{:<LABEL_WIDTH$}({} more lines)", "", "", all - shown)?;
    }
    Ok(())
}

pub(super) fn write_evidence(page: &Page, evidence: &[Evidence], out: &mut dyn Write) -> io::Result<()> {
    let shown = if page.is_verbose() { evidence.len() } else { evidence.len().min(MAX_MESSAGES) };
    for item in &evidence[..shown] {
        writeln!(out, "      {}", wire_line(item, page.palette, page.max_line_chars()))?;
    }
    if shown < evidence.len() {
        writeln!(out, "      ({} more messages; the JSON report contains all of them)", evidence.len() - shown)?;
    }
    Ok(())
}
