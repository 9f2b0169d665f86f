//! The findings with evidence, fix and the command that reproduces them, and the comparison with the baseline.
//!
//! Responsible for how much of a finding is shown. Grouping and merging is up to [`group`](crate::report::group).

use std::io::{self, Write};

use super::fuzzing;
use super::page::{
    LABEL_WIDTH, MAX_LINE_CHARS, MAX_LINE_CHARS_VERBOSE, MAX_NAMES, Page, join_revisions, write_hanging,
};
use crate::report::Report;
use crate::report::finding_text::flaky_note;
use crate::report::group::{GroupedFinding, RequirementGroup, group_findings};
use crate::report::layout::wrap;
use crate::report::palette::{Palette, paint};
use crate::report::visible::{excerpt, visible};
use crate::verdict::{Direction, Evidence, Verdict};

/// The number of warnings from which they are shown in short form.
const MAX_FULL_WARNINGS: usize = 8;
/// The number of messages shown per finding; the JSON report has all.
const MAX_MESSAGES: usize = 8;
/// The number of diff lines shown.
const MAX_DIFF_LINES: usize = 24;

impl Page {
    pub(super) fn write_findings(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let (accepted, groups): (Vec<_>, Vec<_>) = group_findings(report)
            .into_iter()
            .flat_map(RequirementGroup::split)
            .partition(RequirementGroup::is_accepted);
        let warnings: usize = groups
            .iter()
            .flat_map(|group| &group.findings)
            .filter(|grouped| grouped.finding.verdict != Verdict::Fail)
            .count();
        let shorten = warnings > MAX_FULL_WARNINGS && !self.is_verbose();
        for group in &groups {
            let short = shorten && group.verdict != Verdict::Fail;
            self.write_group(group, shorten, out)?;
            if !short {
                writeln!(out)?;
            }
        }
        if shorten {
            writeln!(out, "{}", paint(self.palette.faint, "  (use -v to show every warning with its evidence)"))?;
            writeln!(out)?;
        }
        self.write_accepted(&accepted, out)
    }

    /// Writes the accepted findings, each in a few lines.
    fn write_accepted(&self, groups: &[RequirementGroup<'_>], out: &mut dyn Write) -> io::Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.write_heading("Accepted by the baseline", out)?;
        for group in groups {
            for grouped in &group.findings {
                let verdict = grouped.finding.verdict.as_str();
                let requirement = visible(group.requirement);
                writeln!(out, "  {verdict}  {requirement}  {}", paint(self.palette.faint, self.occurrences(grouped)))?;
                let reason = grouped.finding.accepted.as_deref().unwrap_or_default();
                self.write_wrapped(4, &excerpt(reason, self.max_line_chars(), 0), out)?;
                if self.is_verbose() {
                    self.write_finding(grouped, out)?;
                }
            }
        }
        writeln!(out)
    }

    /// Writes what is outdated in the baseline, and the findings that it does not list.
    pub(super) fn write_baseline(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let Some(comparison) = &report.baseline else { return Ok(()) };
        let sentences: Vec<String> = comparison.outdated_messages().chain(comparison.expiry_messages()).collect();
        if !sentences.is_empty() {
            self.write_heading("The baseline is out of date", out)?;
            for sentence in &sentences {
                write_hanging(&excerpt(sentence, self.max_line_chars(), 0), self.width(), out)?;
            }
            writeln!(out)?;
        }
        if comparison.new.is_empty() {
            return Ok(());
        }
        self.write_heading("Not in the baseline", out)?;
        let shown = if self.is_verbose() { comparison.new.len() } else { comparison.new.len().min(MAX_NAMES) };
        for line in &comparison.new[..shown] {
            let text = serde_json::to_string(line).unwrap_or_default();
            writeln!(out, "  {}", excerpt(&text, MAX_LINE_CHARS_VERBOSE, 0))?;
        }
        if shown < comparison.new.len() {
            writeln!(out, "  and {} more", comparison.new.len() - shown)?;
        }
        let file = excerpt(&comparison.file, self.max_line_chars(), 0);
        let advice = format!(
            "fix the server, or add these entries to {file} with a reason; --update-baseline adds them for you"
        );
        for line in wrap(&advice, self.width()) {
            writeln!(out, "  {}", paint(self.palette.faint, line))?;
        }
        writeln!(out)
    }

    fn write_group(&self, group: &RequirementGroup<'_>, shorten: bool, out: &mut dyn Write) -> io::Result<()> {
        let level = if group.derived && group.verdict == Verdict::Fail {
            format!("{} (inferred: the specification uses no keyword, but no interpretation allows this)", group.level)
        } else if group.derived {
            format!("{} (inferred: the specification uses no keyword)", group.level)
        } else {
            group.level.to_string()
        };
        writeln!(
            out,
            "{}  {}  {}",
            paint(self.palette.of(group.verdict), group.verdict.as_str().to_uppercase()),
            paint(self.palette.strong, visible(group.requirement)),
            paint(self.palette.faint, level)
        )?;
        for (index, grouped) in group.findings.iter().enumerate() {
            if index > 0 && !(shorten && grouped.finding.verdict != Verdict::Fail) {
                writeln!(out)?;
            }
            if shorten && grouped.finding.verdict != Verdict::Fail {
                self.write_short_finding(grouped, out)?;
            } else {
                self.write_finding(grouped, out)?;
            }
        }
        Ok(())
    }

    fn write_short_finding(&self, grouped: &GroupedFinding<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.write_wrapped(2, &excerpt(&grouped.finding.message, MAX_LINE_CHARS, 0), out)?;
        writeln!(out, "    {}", paint(self.palette.faint, self.occurrences(grouped)))
    }

    /// How often, in which revisions and by which cases the finding was made.
    fn occurrences(&self, grouped: &GroupedFinding<'_>) -> String {
        let times = match grouped.count {
            0 | 1 => "once".to_owned(),
            2 => "twice".to_owned(),
            count => format!("{count} times"),
        };
        let cases: Vec<String> = grouped.cases.iter().map(|case| visible(case).into_owned()).collect();
        format!("{times} in {} by {}", join_revisions(&grouped.revisions), self.join_names(&cases))
    }

    fn write_finding(&self, grouped: &GroupedFinding<'_>, out: &mut dyn Write) -> io::Result<()> {
        let finding = grouped.finding;
        self.write_wrapped(2, &excerpt(&finding.message, self.max_line_chars(), 0), out)?;
        self.write_labelled("found", &self.occurrences(grouped), out)?;
        if let Some(note) = flaky_note(finding) {
            self.write_labelled("retries", &note, out)?;
        }
        if !grouped.subjects.is_empty() {
            let subjects: Vec<String> = grouped.subjects.iter().map(|subject| excerpt(subject, 80, 0)).collect();
            self.write_labelled("where", &self.join(&subjects, "; "), out)?;
        }
        self.write_labelled("expected", &excerpt(&finding.expected, self.max_line_chars(), 0), out)?;
        self.write_labelled("actual", &excerpt(&finding.actual, self.max_line_chars(), 0), out)?;
        for (label, text) in fuzzing::counterexample_fields(finding) {
            self.write_labelled(label, &text, out)?;
        }
        if let Some(diff) = &finding.diff {
            self.write_diff(diff, out)?;
        }
        if !finding.evidence.is_empty() {
            let of = match grouped.revisions.as_slice() {
                [_] => String::new(),
                _ => format!("in {}", finding.revision),
            };
            writeln!(out, "{}", format!("    {} {of}", paint(self.palette.faint, "evidence")).trim_end())?;
            self.write_evidence(&finding.evidence, out)?;
        }
        self.write_labelled("rule", &visible(&finding.link), out)?;
        self.write_labelled("fix", &visible(&finding.fix), out)?;
        // The command is not wrapped, so that it can be copied.
        writeln!(
            out,
            "    {}{}",
            paint(self.palette.faint, format_args!("{:<LABEL_WIDTH$}", "reproduce")),
            visible(&finding.reproduce)
        )
    }

    fn write_diff(&self, diff: &str, out: &mut dyn Write) -> io::Result<()> {
        let all = diff.lines().count();
        let shown = if self.is_verbose() { all } else { all.min(MAX_DIFF_LINES) };
        let mut label = "diff";
        for line in diff.lines().take(shown) {
            let style = match line.as_bytes().first() {
                Some(b'-') => self.palette.of(Verdict::Fail),
                Some(b'+') => self.palette.of(Verdict::Pass),
                _ => self.palette.faint,
            };
            let label_text = paint(self.palette.faint, format_args!("{label:<LABEL_WIDTH$}"));
            writeln!(out, "    {label_text}{}", paint(style, excerpt(line, self.max_line_chars(), 0)))?;
            label = "";
        }
        if shown < all {
            writeln!(out, "    {:<LABEL_WIDTH$}({} more lines)", "", all - shown)?;
        }
        Ok(())
    }

    pub(super) fn write_evidence(&self, evidence: &[Evidence], out: &mut dyn Write) -> io::Result<()> {
        let shown = if self.is_verbose() { evidence.len() } else { evidence.len().min(MAX_MESSAGES) };
        for item in &evidence[..shown] {
            writeln!(out, "      {}", wire_line(item, self.palette, self.max_line_chars()))?;
        }
        if shown < evidence.len() {
            writeln!(out, "      ({} more messages; the JSON report contains all of them)", evidence.len() - shown)?;
        }
        Ok(())
    }
}

/// One line of evidence: direction, time, text.
pub(in crate::report) fn wire_line(item: &Evidence, palette: Palette, limit: usize) -> String {
    let (direction, style) = match item.direction {
        Direction::Sent => ("sent", palette.sent()),
        Direction::Received => ("received", palette.received()),
        Direction::Stderr => ("stderr", palette.of(Verdict::Warn)),
        Direction::Event => ("event", palette.faint),
    };
    format!(
        "{} {}  {}",
        paint(style, format_args!("{direction:<8}")),
        paint(palette.faint, format_args!("{:>9.1} ms", item.at_ms)),
        excerpt(&item.text, limit, item.omitted)
    )
}
