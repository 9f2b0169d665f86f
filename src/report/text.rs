//! The report for a reader at a terminal: findings first, each with its proof, then what was left out,
//! then a summary that fits a screen, and the verdict line last.
//!
//! Every text that a server had a hand in passes [`visible`](super::visible) before it is written.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::account::doubt;
use super::conclusion;
use super::fuzz_text;
use super::group::{Group, Told, group};
use super::palette::{Palette, paint};
use super::prose::{time, wrap};
use super::visible::{excerpt, visible};
use super::{LeftOpen, Renderer, Report, Standing, Target};
use crate::event::{CaseResult, Problem, RunSummary};
use crate::spec::Revision;
use crate::verdict::{Direction, Evidence, Verdict};

/// How much a reader wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The verdict line alone.
    Verdict,
    /// Findings, what was left out, and the summary.
    #[default]
    Usual,
    /// Also every warning in full, notes, reasons for skips, processes and error streams.
    Everything,
}

/// Writes a report for a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// Whether to colour it.
    pub color: bool,
    /// How much to show.
    pub detail: Detail,
    /// How many columns prose may take.
    pub width: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { color: false, detail: Detail::default(), width: 100 }
    }
}

/// From how many warnings on they are shown shortened.
const MANY_WARNINGS: usize = 8;
/// How many characters of a line of proof are shown.
const LINE: usize = 300;
/// The same where everything is asked for.
const LONG_LINE: usize = 4000;
/// How many messages prove a finding before the rest is left to the JSON report.
const PROOFS: usize = 8;
/// How many names of a kind are listed.
const NAMES: usize = 12;

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let page = Page { text: *self, palette: Palette::new(self.color) };
        if self.detail != Detail::Verdict {
            page.head(report, out)?;
            page.findings(report, out)?;
            page.baseline(report, out)?;
            page.unjudged(report, out)?;
            if self.detail == Detail::Everything {
                page.notes(report, out)?;
                page.skips(report, out)?;
                page.requirements(report, out)?;
                page.processes(report, out)?;
            }
            page.tools(report, out)?;
            page.hints(report, out)?;
            fuzz_text::tables(report, page.palette, page.everything(), out)?;
            if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
                page.problem(problem, out)?;
            }
            page.summary(report, out)?;
        }
        page.verdict(report, out)
    }
}

/// A label of the column to the left of a finding's parts.
const LABEL: usize = 10;

struct Page {
    text: Text,
    palette: Palette,
}

impl Page {
    fn everything(&self) -> bool {
        self.text.detail == Detail::Everything
    }

    fn line(&self) -> usize {
        if self.everything() { LONG_LINE } else { LINE }
    }

    fn heading(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", paint(self.palette.strong, title))
    }

    /// Writes prose beside a label, wrapped, its later lines below its first.
    fn labelled(&self, label: &str, prose: &str, out: &mut dyn Write) -> io::Result<()> {
        let room = self.text.width.saturating_sub(4 + LABEL).max(40);
        let mut label = label;
        for line in wrap(prose, room) {
            writeln!(out, "    {}{line}", paint(self.palette.faint, format_args!("{label:<LABEL$}")))?;
            label = "";
        }
        Ok(())
    }

    fn head(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let server = if report.server.is_empty() { "no server" } else { &report.server };
        writeln!(
            out,
            "{} {} on {}",
            paint(self.palette.strong, visible(&report.tool.name)),
            visible(&report.tool.version),
            paint(self.palette.strong, excerpt(server, self.line(), 0))
        )?;
        // What the server calls itself, each name once: it usually says the same in every revision.
        let mut names: Vec<String> = Vec::new();
        for info in report.targets.iter().filter_map(|target| target.summary.server_info.as_ref()) {
            let part = |name| info.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            let name = excerpt(format!("{} {}", part("name"), part("version")).trim(), 120, 0);
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names.iter().take(3) {
            writeln!(out, "{}", paint(self.palette.faint, format_args!("it calls itself {name}")))?;
        }
        writeln!(out)
    }

    fn findings(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
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
                for line in wrap(&excerpt(reason, self.line(), 0), self.text.width.saturating_sub(4).max(40)) {
                    writeln!(out, "    {line}")?;
                }
                if self.everything() {
                    self.told(told, out)?;
                }
            }
        }
        writeln!(out)
    }

    /// What a baseline says that is not so, and what it does not say.
    fn baseline(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let Some(held) = &report.baseline else { return Ok(()) };
        let sentences: Vec<String> = held.complaints().chain(held.reminders()).collect();
        if !sentences.is_empty() {
            self.heading("The baseline is out of date", out)?;
            for sentence in &sentences {
                for (index, line) in wrap(&excerpt(sentence, self.line(), 0), self.text.width).into_iter().enumerate() {
                    writeln!(out, "{}{line}", if index == 0 { "  " } else { "    " })?;
                }
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
        for line in wrap(&advice, self.text.width) {
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
        for line in wrap(&excerpt(&told.finding.message, LINE, 0), self.text.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
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

    /// Names, the first few of them.
    fn listed(&self, names: &[String]) -> String {
        self.joined(names, ", ")
    }

    fn joined(&self, names: &[String], by: &str) -> String {
        let shown = if self.everything() { names.len() } else { names.len().min(NAMES) };
        let list = names[..shown].join(by);
        if shown < names.len() { format!("{list} and {} more", names.len() - shown) } else { list }
    }

    fn told(&self, told: &Told<'_>, out: &mut dyn Write) -> io::Result<()> {
        let finding = told.finding;
        for line in wrap(&excerpt(&finding.message, self.line(), 0), self.text.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
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
        for (label, text) in fuzz_text::details(finding) {
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
        self.labelled("mend", &visible(&finding.hint), out)?;
        // The command is not wrapped: it is there to be copied.
        writeln!(
            out,
            "    {}{}",
            paint(self.palette.faint, format_args!("{:<LABEL$}", "again")),
            visible(&finding.replay)
        )
    }

    fn diff(&self, diff: &str, out: &mut dyn Write) -> io::Result<()> {
        const LINES: usize = 24;
        let all = diff.lines().count();
        let shown = if self.everything() { all } else { all.min(LINES) };
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

    fn evidence(&self, evidence: &[Evidence], out: &mut dyn Write) -> io::Result<()> {
        let shown = if self.everything() { evidence.len() } else { evidence.len().min(PROOFS) };
        for item in &evidence[..shown] {
            writeln!(out, "      {}", wire_line(item, self.palette, self.line()))?;
        }
        if shown < evidence.len() {
            writeln!(out, "      ({} more messages; the JSON report has them all)", evidence.len() - shown)?;
        }
        Ok(())
    }

    fn unjudged(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut reasons = Reasons::default();
        for result in report.results().filter(|result| result.verdict == Verdict::Error) {
            reasons.add(result.reason.as_deref().unwrap_or("no reason was given"), &result.case, result.revision);
        }
        if !reasons.0.is_empty() {
            self.heading("Could not be judged", out)?;
            self.reasons(&reasons, usize::MAX, out)?;
            writeln!(out)?;
        }
        let mut early = false;
        for target in &report.targets {
            if let Some(reason) = &target.summary.ended_early {
                let text = format!("{} ended early: {}", target.summary.revision, excerpt(reason, self.line(), 0));
                for line in wrap(&text, self.text.width) {
                    writeln!(out, "{line}")?;
                }
                early = true;
            }
        }
        if early {
            writeln!(out)?;
        }
        Ok(())
    }

    fn notes(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut notes = Reasons::default();
        for result in report.results() {
            for note in &result.notes {
                notes.add(note, &result.case, result.revision);
            }
        }
        if notes.0.is_empty() {
            return Ok(());
        }
        self.heading("Worth knowing", out)?;
        self.reasons(&notes, usize::MAX, out)?;
        writeln!(out)
    }

    fn skips(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut reasons = Reasons::default();
        for result in report.results().filter(|result| result.verdict == Verdict::Skip) {
            reasons.add(result.reason.as_deref().unwrap_or("no reason was given"), &result.case, result.revision);
        }
        if reasons.0.is_empty() {
            return Ok(());
        }
        self.heading("Skipped", out)?;
        self.reasons(&reasons, usize::MAX, out)?;
        writeln!(out)
    }

    /// Which requirements were judged, and why the others were not.
    fn requirements(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let count = |open: &[LeftOpen]| open.iter().map(|one| one.requirements.len()).sum::<usize>();
        for target in report.targets.iter().filter(|target| !target.results.is_empty()) {
            let requirements = &target.requirements;
            let mut counts = format!("{} judged", requirements.judged.len());
            for (kind, open) in requirements.open() {
                let _infallible = write!(counts, ", {} {kind}", count(open));
            }
            self.heading(&format!("Requirements of {}: {counts}", target.summary.revision), out)?;
            for (kind, open) in requirements.open() {
                for LeftOpen { reason, requirements } in open {
                    let text = format!("{kind}: {}", excerpt(reason, self.line(), 0));
                    for line in wrap(&text, self.text.width.saturating_sub(2).max(40)) {
                        writeln!(out, "  {line}")?;
                    }
                    let ids: Vec<String> = requirements.iter().map(|id| visible(id).into_owned()).collect();
                    for line in wrap(&self.listed(&ids), self.text.width.saturating_sub(4).max(40)) {
                        writeln!(out, "    {}", paint(self.palette.faint, line))?;
                    }
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// The hints that did not help: what was not served, and what did not show what it is for.
    fn hints(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut told: Vec<(String, Vec<Revision>)> = Vec::new();
        for target in &report.targets {
            let shown = |id: &String| {
                let judged = |result: &CaseResult| result.verdict != Verdict::Skip;
                target.requirements.has_judged(id)
                    || target.results.iter().any(|result| result.case == *id && judged(result))
                    // What is not stated in the revision, or was not selected, cannot be missed.
                    || !target.results.iter().any(|result| result.case == *id || result.requirements.contains(id))
            };
            for hint in &target.summary.hints {
                let missed: Vec<&str> = hint.purposes.iter().filter(|id| !shown(id)).map(String::as_str).collect();
                let why = match &hint.note {
                    Some(note) if hint.purposes.is_empty() || !missed.is_empty() => note.clone(),
                    None if !missed.is_empty() => format!("it did not show {}", missed.join(", ")),
                    Some(_) | None => continue,
                };
                let text = format!("{}: {}", excerpt(&hint.asked, LINE, 0), excerpt(&why, self.line(), 0));
                match told.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, revisions)) => revisions.push(target.summary.revision),
                    None => told.push((text, vec![target.summary.revision])),
                }
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        self.heading("Hints that did not help", out)?;
        for (text, of) in told {
            let text = format!("{text} ({})", revisions(&of));
            for (index, line) in wrap(&text, self.text.width.saturating_sub(4).max(40)).into_iter().enumerate() {
                writeln!(out, "{}{line}", if index == 0 { "  " } else { "    " })?;
            }
        }
        writeln!(out)
    }

    fn reasons(&self, reasons: &Reasons<'_>, most: usize, out: &mut dyn Write) -> io::Result<()> {
        for (reason, cases) in reasons.0.iter().take(most) {
            for line in wrap(&excerpt(reason, self.line(), 0), self.text.width.saturating_sub(2).max(40)) {
                writeln!(out, "  {line}")?;
            }
            let cases: Vec<String> =
                cases.iter().map(|(case, of)| format!("{} ({})", visible(case), revisions(of))).collect();
            for line in wrap(&self.listed(&cases), self.text.width.saturating_sub(4).max(40)) {
                writeln!(out, "    {}", paint(self.palette.faint, line))?;
            }
        }
        Ok(())
    }

    fn processes(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        for Target { summary, .. } in &report.targets {
            self.heading(&format!("Processes of {}", summary.revision), out)?;
            for launch in &summary.launches {
                let startup =
                    launch.startup_ms.map_or_else(|| "no answer".to_owned(), |ms| format!("up in {}", time(ms)));
                let shutdown = launch.shutdown.as_deref().unwrap_or("not ended by us");
                writeln!(
                    out,
                    "  {}: {startup}, {} sent, {} lines received, end: {}",
                    excerpt(&launch.purpose, 80, 0),
                    launch.sent,
                    launch.received,
                    visible(shutdown)
                )?;
            }
            self.stderr("its error stream ends", &summary.stderr, usize::MAX, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn stderr(&self, title: &str, text: &str, most: usize, out: &mut dyn Write) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        writeln!(out, "  {title}")?;
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(most)..] {
            writeln!(out, "    {} {}", paint(self.palette.faint, "|"), excerpt(line, self.line(), 0))?;
        }
        Ok(())
    }

    fn tools(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        for (called, title) in
            [(false, "Tools that were not called"), (true, "Tools that were called, but not used further")]
        {
            // By reason; a tool is named once however many revisions list it.
            let mut by_note: Vec<(&str, Vec<String>)> = Vec::new();
            for tool in report.targets.iter().flat_map(|target| &target.summary.tools) {
                let note = match (&tool.note, called) {
                    (Some(note), _) => note.as_str(),
                    (None, false) => "no case needed it",
                    (None, true) => continue,
                };
                if tool.called != called {
                    continue;
                }
                let name = excerpt(&tool.name, 60, 0);
                match by_note.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, names)) if names.contains(&name) => {}
                    Some((_, names)) => names.push(name),
                    None => by_note.push((note, vec![name])),
                }
            }
            if by_note.is_empty() {
                continue;
            }
            self.heading(title, out)?;
            for (note, names) in by_note {
                let text = format!("{}: {}", excerpt(note, self.line(), 0), self.listed(&names));
                for (index, line) in wrap(&text, self.text.width.saturating_sub(4).max(40)).into_iter().enumerate() {
                    writeln!(out, "{}{line}", if index == 0 { "  " } else { "    " })?;
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn problem(&self, problem: &Problem, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{}  {}",
            paint(self.palette.of(Verdict::Error), "PROBLEM"),
            paint(self.palette.strong, excerpt(&problem.message, self.line(), 0))
        )?;
        for line in wrap(&excerpt(&problem.hint, self.line(), 0), self.text.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
        if !problem.evidence.is_empty() {
            writeln!(out, "  the last messages")?;
            self.evidence(&problem.evidence, out)?;
        }
        let most = if self.everything() { usize::MAX } else { 20 };
        self.stderr("its error stream ends", &problem.stderr, most, out)?;
        writeln!(out)
    }

    fn summary(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let any_accepted = Standing::of(report).accepted > 0;
        if !report.targets.is_empty() {
            let words: Vec<String> = [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error]
                .map(|verdict| format!("{:>6}", verdict.as_str()))
                .to_vec();
            let accepted = if any_accepted { "  accepted" } else { "" };
            let words = format!("{:<10}{}{accepted}", "revision", words.concat());
            writeln!(out, "{}", paint(self.palette.faint, words))?;
        }
        for Target { summary, results, .. } in &report.targets {
            let Standing { totals, accepted, .. } = match results.as_slice() {
                [] => Standing { totals: summary.totals, ..Standing::default() },
                results => Standing::of_results(results),
            };
            write!(out, "{:<10}", summary.revision)?;
            for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error] {
                let count = totals.of(verdict);
                let style = if count == 0 { self.palette.faint } else { self.palette.of(verdict) };
                write!(out, "{}", paint(style, format_args!("{count:>6}")))?;
            }
            if any_accepted {
                write!(out, "{accepted:>10}")?;
            }
            writeln!(out)?;
        }
        if let Some(RunSummary { timing, .. }) = &report.summary {
            let launches = if timing.launches == 1 { "1 launch" } else { &format!("{} launches", timing.launches) };
            // A server that never answered has no start-up time.
            let startup = match timing.startup_ms {
                ms if ms > 0.0 => format!(", median start-up {}", time(ms)),
                _ => String::new(),
            };
            writeln!(
                out,
                "{} in all; {launches}{startup}; judging took {}",
                time(timing.wall_ms),
                time(timing.judging_ms)
            )?;
        }
        Ok(())
    }

    fn verdict(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let (word, why) = conclusion::verdict_words(report);
        writeln!(out, "{}: {why}", paint(self.palette.of(conclusion::tone(report)), word))
    }
}

/// One line of proof: which way, when, what.
pub(super) fn wire_line(item: &Evidence, palette: Palette, limit: usize) -> String {
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
        excerpt(&item.text, limit, item.cut)
    )
}

fn revisions(of: &[Revision]) -> String {
    of.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
}

/// Cases by what is said of them, and the revisions in which it is.
#[derive(Default)]
struct Reasons<'a>(Vec<(&'a str, Cases<'a>)>);

/// Cases, each with the revisions that are meant.
type Cases<'a> = Vec<(&'a str, Vec<Revision>)>;

impl<'a> Reasons<'a> {
    fn add(&mut self, reason: &'a str, case: &'a str, revision: Revision) {
        let at = self.0.iter().position(|(known, _)| *known == reason).unwrap_or_else(|| {
            self.0.push((reason, Vec::new()));
            self.0.len() - 1
        });
        let cases = &mut self.0[at].1;
        match cases.iter_mut().find(|(known, _)| *known == case) {
            Some((_, revisions)) => revisions.push(revision),
            None => cases.push((case, vec![revision])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_treacherous;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report, text: Text) -> String {
        let mut bytes = Vec::new();
        text.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("text is UTF-8")
    }

    #[test]
    fn the_example_renders_are_fixed() {
        let report = example();
        golden::compare("example.txt", &rendered(&report, Text::default()));
        golden::compare("example-color.txt", &rendered(&report, Text { color: true, ..Text::default() }));
        golden::compare(
            "example-verbose.txt",
            &rendered(&report, Text { detail: Detail::Everything, ..Text::default() }),
        );
    }

    #[test]
    fn nothing_that_a_server_wrote_acts_on_the_terminal() {
        let mut report = example();
        // Every text of the report is hostile, ours included.
        poison(&mut report, HOSTILE);
        for detail in [Detail::Verdict, Detail::Usual, Detail::Everything] {
            let text = rendered(&report, Text { detail, ..Text::default() });
            let strange: Vec<char> = text.chars().filter(|c| *c != '\n' && is_treacherous(*c)).collect();
            assert_eq!(strange, Vec::<char>::new());
            assert!(!text.lines().any(|line| line.starts_with("PASS")), "a server forged a line");
        }
        // With colour the only escapes are ours: those that set a style.
        let text = rendered(&report, Text { color: true, detail: Detail::Everything, width: 100 });
        for escape in text.split('\u{1b}').skip(1) {
            let style = escape.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(style, _)| style);
            assert!(style.is_some_and(|style| style.chars().all(|c| c.is_ascii_digit() || c == ';')), "{escape}");
        }
    }

    #[test]
    fn many_warnings_are_shortened_unless_everything_is_asked_for() {
        let mut report = example();
        let warned = |result: &&crate::event::CaseResult| result.case == "jsonrpc/error-message";
        let result = report.targets[1].results.iter().find(warned).expect("a warning").clone();
        for number in 0..20 {
            let mut more = result.clone();
            more.findings[0].requirement = format!("rule-{number:02}");
            report.targets[1].results.push(more);
        }
        let usual = rendered(&report, Text::default());
        assert_eq!(usual.matches("WARN  ").count(), 21);
        assert_eq!(usual.matches("--select jsonrpc/error-message").count(), 0);
        assert_eq!(usual.matches("--select tools/call/unknown-tool").count(), 1, "failures keep their proof");
        assert!(usual.contains("-v shows"));
        let all = rendered(&report, Text { detail: Detail::Everything, ..Text::default() });
        assert_eq!(all.matches("--select jsonrpc/error-message").count(), 21);
    }

    #[test]
    fn the_verdict_line_stands_alone_where_nothing_else_is_asked_for() {
        let text = rendered(&example(), Text { detail: Detail::Verdict, ..Text::default() });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("FAIL: 2 requirements are broken"), "{text}");
        assert!(text.ends_with("exit code 1\n"), "{text}");
    }

    #[test]
    fn a_server_that_never_speaks_is_told_with_its_stderr_and_what_to_do() {
        let mut report = example();
        report.targets.clear();
        report.baseline = None;
        let summary = report.summary.as_mut().expect("a summary");
        summary.totals = crate::verdict::Totals::default();
        let text = rendered(&report, Text::default());
        assert!(text.contains("PROBLEM  the server ended"), "{text}");
        assert!(text.contains("Start it by hand") && text.contains("| Error: listen EADDRINUSE"), "{text}");
        assert!(text.contains("NOT JUDGED: ") && text.ends_with("exit code 2\n"), "{text}");
    }
}
