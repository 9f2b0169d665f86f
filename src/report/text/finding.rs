//! The findings: each with its proof, how to mend it and how to see it again, and what a baseline says of them.
//!
//! Owns how much is shown of one. Which findings are the same thing told twice is for [`group`](crate::report::group)
//! to say.

use std::io::{self, Write};

use super::fuzzing;
use super::page::{LABEL, LINE, LONG_LINE, NAMES, Page, hanging, revisions};
use crate::report::Report;
use crate::report::account::doubt;
use crate::report::group::{Group, Told, group};
use crate::report::palette::{Palette, paint};
use crate::report::prose::wrap;
use crate::report::visible::{excerpt, visible};
use crate::verdict::{Direction, Evidence, Verdict};

/// From how many warnings on they are shown shortened.
const MANY_WARNINGS: usize = 8;
/// How many messages prove a finding before the rest is left to the JSON report.
const PROOFS: usize = 8;
/// How many lines of a difference are shown.
const DIFF_LINES: usize = 24;

impl Page {
    pub(super) fn findings(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let (accepted, groups): (Vec<_>, Vec<_>) =
            group(report).into_iter().flat_map(Group::split).partition(Group::is_accepted);
        let warnings: usize =
            groups.iter().flat_map(|group| &group.told).filter(|told| told.finding.verdict != Verdict::Fail).count();
        let shorten = warnings > MANY_WARNINGS && !self.everything();
        for group in &groups {
            let short = shorten && group.verdict != Verdict::Fail;
            self.group(group, shorten, out)?;
            if !short {
                writeln!(out)?;
            }
        }
        if shorten {
            writeln!(out, "{}", paint(self.palette.faint, "  (-v shows every warning with its proof)"))?;
            writeln!(out)?;
        }
        self.accepted(&accepted, out)
    }

    /// What a baseline lists, a line or two for each: it is known.
    fn accepted(&self, groups: &[Group<'_>], out: &mut dyn Write) -> io::Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.heading("Accepted by the baseline", out)?;
        for group in groups {
            for told in &group.told {
                let word = told.finding.verdict.as_str();
                let requirement = visible(group.requirement);
                writeln!(out, "  {word}  {requirement}  {}", paint(self.palette.faint, self.seen(told)))?;
                let reason = told.finding.accepted.as_deref().unwrap_or_default();
                self.wrapped(4, &excerpt(reason, self.line(), 0), out)?;
                if self.everything() {
                    self.told(told, out)?;
                }
            }
        }
        writeln!(out)
    }

    /// What a baseline says that is not so, and what it does not say.
    pub(super) fn baseline(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let Some(held) = &report.baseline else { return Ok(()) };
        let sentences: Vec<String> = held.complaints().chain(held.reminders()).collect();
        if !sentences.is_empty() {
            self.heading("The baseline is out of date", out)?;
            for sentence in &sentences {
                hanging(&excerpt(sentence, self.line(), 0), self.width(), out)?;
            }
            writeln!(out)?;
        }
        if held.new.is_empty() {
            return Ok(());
        }
        self.heading("Not in the baseline", out)?;
        let shown = if self.everything() { held.new.len() } else { held.new.len().min(NAMES) };
        for line in &held.new[..shown] {
            let text = serde_json::to_string(line).unwrap_or_default();
            writeln!(out, "  {}", excerpt(&text, LONG_LINE, 0))?;
        }
        if shown < held.new.len() {
            writeln!(out, "  and {} more", held.new.len() - shown)?;
        }
        let file = excerpt(&held.file, self.line(), 0);
        let advice =
            format!("mend the server, or add these to {file} with a reason; --update-baseline does it for you");
        for line in wrap(&advice, self.width()) {
            writeln!(out, "  {}", paint(self.palette.faint, line))?;
        }
        writeln!(out)
    }

    fn group(&self, group: &Group<'_>, shorten: bool, out: &mut dyn Write) -> io::Result<()> {
        let level = if group.derived && group.verdict == Verdict::Fail {
            format!("{} by our reading, as the text has no keyword; but no reading allows this", group.level)
        } else if group.derived {
            format!("{}, by our reading: the text has no keyword", group.level)
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
        for (index, told) in group.told.iter().enumerate() {
            if index > 0 && !(shorten && told.finding.verdict != Verdict::Fail) {
                writeln!(out)?;
            }
            if shorten && told.finding.verdict != Verdict::Fail {
                self.told_short(told, out)?;
            } else {
                self.told(told, out)?;
            }
        }
        Ok(())
    }

    fn told_short(&self, told: &Told<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.wrapped(2, &excerpt(&told.finding.message, LINE, 0), out)?;
        writeln!(out, "    {}", paint(self.palette.faint, self.seen(told)))
    }

    /// How often, in which revisions and by which cases it was seen.
    fn seen(&self, told: &Told<'_>) -> String {
        let times = match told.count {
            0 | 1 => "once".to_owned(),
            2 => "twice".to_owned(),
            count => format!("{count} times"),
        };
        let cases: Vec<String> = told.cases.iter().map(|case| visible(case).into_owned()).collect();
        format!("{times} in {} by {}", revisions(&told.revisions), self.listed(&cases))
    }

    fn told(&self, told: &Told<'_>, out: &mut dyn Write) -> io::Result<()> {
        let finding = told.finding;
        self.wrapped(2, &excerpt(&finding.message, self.line(), 0), out)?;
        self.labelled("seen", &self.seen(told), out)?;
        if let Some(doubt) = doubt(finding) {
            self.labelled("doubt", &doubt, out)?;
        }
        if !told.subjects.is_empty() {
            let subjects: Vec<String> = told.subjects.iter().map(|subject| excerpt(subject, 80, 0)).collect();
            self.labelled("at", &self.joined(&subjects, "; "), out)?;
        }
        self.labelled("expected", &excerpt(&finding.expected, self.line(), 0), out)?;
        self.labelled("actual", &excerpt(&finding.actual, self.line(), 0), out)?;
        for (label, text) in fuzzing::details(finding) {
            self.labelled(label, &text, out)?;
        }
        if let Some(diff) = &finding.diff {
            self.diff(diff, out)?;
        }
        if !finding.evidence.is_empty() {
            let of = match told.revisions.as_slice() {
                [_] => String::new(),
                _ => format!("in {}", finding.revision),
            };
            writeln!(out, "{}", format!("    {} {of}", paint(self.palette.faint, "proof")).trim_end())?;
            self.evidence(&finding.evidence, out)?;
        }
        self.labelled("rule", &visible(&finding.link), out)?;
        self.labelled("mend", &visible(&finding.fix), out)?;
        // The command is not wrapped: it is there to be copied.
        writeln!(
            out,
            "    {}{}",
            paint(self.palette.faint, format_args!("{:<LABEL$}", "again")),
            visible(&finding.reproduce)
        )
    }

    fn diff(&self, diff: &str, out: &mut dyn Write) -> io::Result<()> {
        let all = diff.lines().count();
        let shown = if self.everything() { all } else { all.min(DIFF_LINES) };
        let mut label = "diff";
        for line in diff.lines().take(shown) {
            let style = match line.as_bytes().first() {
                Some(b'-') => self.palette.of(Verdict::Fail),
                Some(b'+') => self.palette.of(Verdict::Pass),
                _ => self.palette.faint,
            };
            let label_text = paint(self.palette.faint, format_args!("{label:<LABEL$}"));
            writeln!(out, "    {label_text}{}", paint(style, excerpt(line, self.line(), 0)))?;
            label = "";
        }
        if shown < all {
            writeln!(out, "    {:<LABEL$}({} more lines)", "", all - shown)?;
        }
        Ok(())
    }

    pub(super) fn evidence(&self, evidence: &[Evidence], out: &mut dyn Write) -> io::Result<()> {
        let shown = if self.everything() { evidence.len() } else { evidence.len().min(PROOFS) };
        for item in &evidence[..shown] {
            writeln!(out, "      {}", wire_line(item, self.palette, self.line()))?;
        }
        if shown < evidence.len() {
            writeln!(out, "      ({} more messages; the JSON report has them all)", evidence.len() - shown)?;
        }
        Ok(())
    }
}

/// One line of proof: which way, when, what.
pub(in crate::report) fn wire_line(item: &Evidence, palette: Palette, limit: usize) -> String {
    let (word, style) = match item.direction {
        Direction::Sent => ("sent", palette.sent()),
        Direction::Received => ("received", palette.received()),
        Direction::Stderr => ("stderr", palette.of(Verdict::Warn)),
        Direction::Event => ("event", palette.faint),
    };
    format!(
        "{} {}  {}",
        paint(style, format_args!("{word:<8}")),
        paint(palette.faint, format_args!("{:>9.1} ms", item.at_ms)),
        excerpt(&item.text, limit, item.omitted)
    )
}
