//! Holds a report against a baseline: which findings it accepts, which it does not list, and which of its lines
//! are not found any more.
//!
//! A finding that is accepted keeps its verdict and is shown; only the conclusion leaves it out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FailOn, Report};
use crate::case::{Baseline, Change, Line, NO_REASON_YET};
use crate::event::CaseResult;
use crate::spec::{Revision, RevisionSet};
use crate::verdict::{Finding, Verdict};

/// What came of holding a report against a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct BaselineComparison {
    /// The file of the baseline.
    pub file: String,
    /// What would fail the run and is not listed, as the lines that would accept it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new: Vec<Line>,
    /// Lines that were not found where they were looked for; they fail the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Stale>,
    /// Lines that accept nothing any more, though what they list is still there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expired: Vec<Line>,
    /// The revisions that the file says the server speaks, where it was judged in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported: Option<RevisionSet>,
}

/// A line of a baseline that is not found any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Stale {
    /// The line.
    pub line: Line,
    /// The revisions in which its case was judged without making the finding; empty where no case has its id.
    pub missing_in: RevisionSet,
}

impl BaselineComparison {
    /// Whether the baseline says what is not so any more, which fails the run.
    #[must_use]
    pub fn is_out_of_date(&self) -> bool {
        !self.stale.is_empty() || self.supported.is_some()
    }

    /// What has to be edited before the run can pass, a sentence for each line that is out of date.
    pub fn complaints(&self) -> impl Iterator<Item = String> {
        let spoken = self.supported.map(|said| {
            format!(
                "`revisions` in {} says {}, but the server was judged in others: mend it",
                self.file,
                said.compact()
            )
        });
        self.stale.iter().map(|stale| stale.complaint(&self.file)).chain(spoken)
    }

    /// What is to be said of lines that have expired, a sentence for each.
    pub fn reminders(&self) -> impl Iterator<Item = String> {
        self.expired.iter().map(|line| {
            let until = line.expires.as_deref().unwrap_or_default();
            format!(
                "{} in {} was accepted until {until}: mend the server, or give the line a later `expires`",
                named(line),
                self.file
            )
        })
    }
}

impl Stale {
    fn complaint(&self, file: &str) -> String {
        let line = named(&self.line);
        if self.missing_in.is_empty() {
            return format!("{line} in {file} names a case that does not exist: mend its id, or delete the line");
        }
        let gone = self.missing_in.compact();
        // A line that still holds somewhere loses the revisions in which it does not.
        let edit = match self.line.revisions {
            Some(listed) if listed != self.missing_in => "take these revisions off its line",
            Some(_) | None => "delete its line",
        };
        format!("{line} in {file} was not found in {gone}: {edit}, or run with --update-baseline")
    }
}

/// A line as a sentence names it.
fn named(line: &Line) -> String {
    let tool = line.tool.as_ref().map_or_else(String::new, |tool| format!(", tool {tool}"));
    format!("{} by {}{tool}", line.requirement, line.case)
}

/// The tools that a finding is about, each once; none where it is about no tool.
#[must_use]
pub fn tools_of(finding: &Finding) -> Vec<&str> {
    if let Some(counterexample) = &finding.counterexample {
        return vec![&counterexample.tool];
    }
    let mut tools: Vec<&str> = Vec::new();
    for subject in &finding.subjects {
        // `tool echo`, or a place in its definition: `tool echo at /inputSchema`.
        let Some(rest) = subject.strip_prefix("tool ") else { continue };
        let name = rest.rsplit_once(" at /").map_or(rest, |(name, _)| name);
        if !tools.contains(&name) {
            tools.push(name);
        }
    }
    tools
}

/// Whether a finding did not come back when it was tried again.
fn is_unconfirmed(finding: &Finding) -> bool {
    finding.confirmation.is_some_and(|confirmation| confirmation.is_flaky() && confirmation.failed == 0)
}

/// Whether a line is about a finding, whatever the tool.
fn speaks_of(line: &Line, case: &str, finding: &Finding) -> bool {
    // A failure that did not come back is told as a warning; it is the failure that the line knows.
    let verdict = line.verdict.is_none_or(|verdict| verdict == finding.verdict || is_unconfirmed(finding));
    line.case == case && line.requirement == finding.requirement && line.within().contains(finding.revision) && verdict
}

/// Why lines accept a finding: all of its tools, or whatever tool.
fn reason<'a>(lines: &[&'a Line], case: &str, finding: &Finding) -> Option<&'a str> {
    let about: Vec<&&Line> = lines.iter().filter(|line| speaks_of(line, case, finding)).collect();
    if let Some(line) = about.iter().find(|line| line.tool.is_none()) {
        return Some(&line.reason);
    }
    let tools = tools_of(finding);
    let of_tool = |tool: &&str| about.iter().find(|line| line.tool.as_deref() == Some(*tool));
    let first = tools.first().and_then(of_tool)?;
    tools.iter().all(|tool| of_tool(tool).is_some()).then_some(first.reason.as_str())
}

/// Whether a finding would fail the run if nobody accepted it.
fn fails(finding: &Finding, fail_on: FailOn) -> bool {
    fail_on != FailOn::Must || finding.verdict == Verdict::Fail
}

/// Accepts the findings that a baseline lists, and notes in the report what came of it.
///
/// `is_case` says whether a case of some id exists. The day of the run decides which lines have expired.
pub fn compare_with_baseline(report: &mut Report, baseline: &Baseline, file: &str, is_case: impl Fn(&str) -> bool) {
    let today: String = report.started.chars().take(10).collect();
    let live: Vec<&Line> = baseline.lines.iter().filter(|line| !line.is_expired(&today)).collect();
    for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
        for finding in &mut result.findings {
            finding.accepted = reason(&live, &result.case, finding).map(str::to_owned);
        }
    }
    let judged: RevisionSet = report.targets.iter().map(|target| target.summary.revision).collect();
    let is_whole = report.summary.as_ref().is_some_and(|summary| summary.problem.is_none());
    let narrowed = !is_whole || !report.options.select.is_empty() || !report.options.skip.is_empty();
    let mut held =
        BaselineComparison { file: file.to_owned(), new: new_lines(report, &live), ..BaselineComparison::default() };
    // A run that was narrowed, or that met a problem, shows less to the cases that watch, so that nothing follows
    // from what it lacks.
    if !narrowed {
        held.supported = baseline
            .revisions
            .filter(|said| report.options.revisions.is_empty() && *said != judged && !judged.is_empty());
        for line in &baseline.lines {
            let gone = gone(report, line);
            if !is_case(&line.case) {
                held.stale.push(Stale { line: line.clone(), missing_in: RevisionSet::default() });
            } else if !gone.is_empty() {
                held.stale.push(Stale { line: line.clone(), missing_in: gone });
            }
        }
    }
    let is_found = |line: &&Line| report.results().any(|result| finds(result, line));
    held.expired = baseline.lines.iter().filter(|line| line.is_expired(&today)).filter(is_found).cloned().collect();
    report.baseline = Some(held);
}

/// Whether a case makes the finding of a line.
fn finds(result: &CaseResult, line: &Line) -> bool {
    result.findings.iter().any(|finding| {
        speaks_of(line, &result.case, finding)
            && line.tool.as_deref().is_none_or(|tool| tools_of(finding).contains(&tool))
    })
}

/// The revisions in which a line was looked for in vain; none where it holds somewhere and names no revisions.
fn gone(report: &Report, line: &Line) -> RevisionSet {
    // A case that was skipped, as may happen where a server is slow, has looked for nothing.
    let judged = |result: &&CaseResult| {
        result.case == line.case
            && !matches!(result.verdict, Verdict::Error | Verdict::Skip)
            && line.within().contains(result.revision)
    };
    let (found, missed): (Vec<&CaseResult>, Vec<&CaseResult>) =
        report.results().filter(judged).partition(|result| finds(result, line));
    if line.revisions.is_none() && !found.is_empty() {
        return RevisionSet::default();
    }
    missed.into_iter().map(|result| result.revision).collect()
}

/// What would fail the run and is not accepted, as lines, each with all of its revisions.
fn new_lines(report: &Report, live: &[&Line]) -> Vec<Line> {
    type Key<'a> = (&'a str, &'a str, Option<&'a str>, &'static str);
    let mut found: BTreeMap<Key<'_>, (Verdict, Vec<Revision>)> = BTreeMap::new();
    for result in report.results() {
        let standing = result.findings.iter().filter(|finding| finding.accepted.is_none());
        for finding in standing.filter(|finding| fails(finding, report.options.fail_on)) {
            let tools = tools_of(finding);
            let is_listed = |tool: &str| {
                live.iter().any(|line| speaks_of(line, &result.case, finding) && line.tool.as_deref() == Some(tool))
            };
            let tools: Vec<Option<&str>> = if tools.is_empty() {
                vec![None]
            } else {
                tools.into_iter().filter(|tool| !is_listed(tool)).map(Some).collect()
            };
            for tool in tools {
                let key = (result.case.as_str(), finding.requirement.as_str(), tool, finding.verdict.as_str());
                found.entry(key).or_insert((finding.verdict, Vec::new())).1.push(result.revision);
            }
        }
    }
    let listing = |((case, requirement, tool, _), (verdict, revisions)): (Key<'_>, (Verdict, Vec<Revision>))| Line {
        case: case.to_owned(),
        requirement: requirement.to_owned(),
        tool: tool.map(str::to_owned),
        revisions: Some(revisions.into_iter().collect()),
        verdict: Some(verdict),
        reason: NO_REASON_YET.to_owned(),
        expires: None,
    };
    found.into_iter().map(listing).collect()
}

/// The changes that make a baseline fit the report that was held against it. Lines that have expired stay as they
/// are: to go on accepting is for a person to say.
#[must_use]
pub fn changes(held: &BaselineComparison, baseline: &Baseline) -> Vec<Change> {
    let mut changes = Vec::new();
    for (at, line) in baseline.lines.iter().enumerate() {
        let Some(stale) = held.stale.iter().find(|stale| stale.line == *line) else { continue };
        let kept: RevisionSet = match line.revisions {
            Some(listed) if !stale.missing_in.is_empty() => {
                listed.iter().filter(|revision| !stale.missing_in.contains(*revision)).collect()
            }
            Some(_) | None => RevisionSet::default(),
        };
        changes.push(if kept.is_empty() { Change::Remove(at) } else { Change::Narrow(at, kept) });
    }
    // What an expired line lists is not accepted, and would be added beside it.
    let is_expired =
        |new: &Line| held.expired.iter().any(|old| old.case == new.case && old.requirement == new.requirement);
    changes.extend(held.new.iter().filter(|line| !is_expired(line)).cloned().map(Change::Add));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Conclusion, example};

    /// A report of two revisions whose only finding is of the tool `echo`, in both of them.
    fn report() -> Report {
        let mut report = example();
        report.summary.as_mut().expect("a summary").problem = None;
        for target in &mut report.targets {
            target.results.retain(|result| result.case == "tools/call/unknown-tool");
            for finding in target.results.iter_mut().flat_map(|result| &mut result.findings) {
                finding.subjects = vec!["tool echo".to_owned(), "tool echo at /inputSchema".to_owned()];
            }
        }
        let verdicts = report.results().map(|result| result.verdict).collect();
        report.summary.as_mut().expect("a summary").totals = verdicts;
        report.options = crate::report::Options::default();
        report
    }

    fn line() -> Line {
        Line {
            case: "tools/call/unknown-tool".to_owned(),
            requirement: "tools-call-unknown-tool-error".to_owned(),
            tool: Some("echo".to_owned()),
            revisions: Some("2025-06-18..2025-11-25".parse().expect("a range")),
            verdict: Some(Verdict::Fail),
            reason: "known".to_owned(),
            expires: None,
        }
    }

    fn held(mut report: Report, lines: Vec<Line>) -> (Conclusion, BaselineComparison) {
        compare_with_baseline(&mut report, &Baseline::of(None, lines), "b.jsonc", |case| !case.starts_with("old/"));
        (Conclusion::of(&report), report.baseline.expect("it was held"))
    }

    #[test]
    fn every_row_of_the_table_comes_to_its_conclusion() {
        use Conclusion::{Failed, Passed};
        let set = |text: &str| Some(text.parse::<RevisionSet>().expect("a set"));
        // What the line says, the conclusion, and how many are new, stale and expired.
        let rows: Vec<(&str, Vec<Line>, Conclusion, [usize; 3])> = vec![
            ("new", vec![], Failed, [1, 0, 0]),
            ("known", vec![line()], Passed, [0, 0, 0]),
            ("known by any tool", vec![Line { tool: None, ..line() }], Passed, [0, 0, 0]),
            ("known in every revision", vec![Line { revisions: None, ..line() }], Passed, [0, 0, 0]),
            ("known as either", vec![Line { verdict: None, ..line() }], Passed, [0, 0, 0]),
            ("not yet expired", vec![Line { expires: Some("2026-08-01".to_owned()), ..line() }], Passed, [0, 0, 0]),
            ("expired", vec![Line { expires: Some("2026-07-31".to_owned()), ..line() }], Failed, [1, 0, 1]),
            ("renamed tool", vec![Line { tool: Some("say".to_owned()), ..line() }], Failed, [1, 1, 0]),
            ("one revision of two", vec![Line { revisions: set("2025-06-18"), ..line() }], Failed, [1, 0, 0]),
            ("a revision not judged", vec![Line { revisions: set("2025-06-18.."), ..line() }], Passed, [0, 0, 0]),
            ("only another revision", vec![Line { revisions: set("2024-11-05"), ..line() }], Failed, [1, 0, 0]),
            (
                "a warning that became a failure",
                vec![Line { verdict: Some(Verdict::Warn), ..line() }],
                Failed,
                [1, 1, 0],
            ),
            ("another requirement", vec![line(), Line { requirement: "x".to_owned(), ..line() }], Failed, [0, 1, 0]),
            ("a case that is gone", vec![line(), Line { case: "old/x".to_owned(), ..line() }], Failed, [0, 1, 0]),
            ("a case that did not run", vec![line(), Line { case: "a/b".to_owned(), ..line() }], Passed, [0, 0, 0]),
        ];
        for (name, lines, conclusion, counts) in rows {
            let (came_to, held) = held(report(), lines);
            assert_eq!(came_to, conclusion, "{name}");
            assert_eq!([held.new.len(), held.stale.len(), held.expired.len()], counts, "{name}: {held:?}");
        }
    }

    #[test]
    fn a_stale_line_says_what_to_edit() {
        let mut fixed = report();
        fixed.targets[0].results[0].findings.clear();
        fixed.targets[0].results[0].verdict = Verdict::Pass;
        let (conclusion, half) = held(fixed.clone(), vec![line()]);
        assert_eq!(conclusion, Conclusion::Failed);
        let told: Vec<String> = half.complaints().collect();
        let wanted = "tools-call-unknown-tool-error by tools/call/unknown-tool, tool echo in b.jsonc was not found in \
                      2025-06-18: take these revisions off its line, or run with --update-baseline";
        assert_eq!(told, [wanted]);
        fixed.targets[1].results[0].findings.clear();
        let (_, whole) = held(fixed.clone(), vec![line()]);
        assert!(whole.complaints().all(|told| told.contains("delete its line")));
        // A case that could not be judged or was skipped says nothing of its lines, nor does a run with a problem.
        for verdict in [Verdict::Error, Verdict::Skip] {
            let mut unjudged = fixed.clone();
            unjudged.targets.iter_mut().for_each(|target| target.results[0].verdict = verdict);
            assert_eq!(held(unjudged, vec![line()]).1.stale, []);
        }
        fixed.summary = example().summary;
        assert_eq!(held(fixed, vec![line()]).1.stale, []);
    }

    #[test]
    fn a_narrowed_run_tells_no_stale_line() {
        let mut report = report();
        report.options.select = vec!["tools".to_owned()];
        assert_eq!(held(report, vec![line(), Line { requirement: "x".to_owned(), ..line() }]).0, Conclusion::Passed);
    }

    #[test]
    fn the_revisions_of_the_file_are_those_that_the_server_speaks() {
        let mut report = report();
        let baseline = Baseline::of(Some("2025-06-18".parse().expect("a set")), vec![line()]);
        compare_with_baseline(&mut report, &baseline, "b.jsonc", |_| true);
        assert_eq!(Conclusion::of(&report), Conclusion::Failed);
        let told: Vec<String> = report.baseline.iter().flat_map(BaselineComparison::complaints).collect();
        assert!(told[0].starts_with("`revisions` in b.jsonc says 2025-06-18, but"), "{told:?}");
    }

    #[test]
    fn a_failure_that_did_not_come_back_is_the_one_that_its_line_knows() {
        let mut report = report();
        for finding in report.targets.iter_mut().flat_map(|t| &mut t.results).flat_map(|r| &mut r.findings) {
            finding.verdict = Verdict::Warn;
            finding.confirmation = Some(crate::verdict::Confirmation { tried: 1, failed: 0 });
        }
        assert_eq!(
            held(report, vec![line()]).1,
            BaselineComparison { file: "b.jsonc".to_owned(), ..BaselineComparison::default() }
        );
    }

    #[test]
    fn the_changes_make_the_baseline_fit() {
        let stale = Line { requirement: "x".to_owned(), reason: "another".to_owned(), ..line() };
        let half = Line { revisions: Some("2025-06-18".parse().expect("a set")), ..line() };
        let old = Line { expires: Some("2020-01-01".to_owned()), ..line() };
        for (lines, kept, expired) in [
            (vec![], vec!["new"], 0),
            (vec![stale.clone()], vec!["new"], 0),
            (vec![half.clone(), stale], vec!["known", "new"], 0),
            (vec![old], vec!["known"], 1),
        ] {
            let baseline = Baseline::of(None, lines);
            let (_, first) = held(report(), baseline.lines.clone());
            let mut text = Baseline::empty_text();
            let all: Vec<Change> = baseline.lines.iter().cloned().map(Change::Add).collect();
            text = Baseline::rewritten("b", &text, &all).expect("a baseline");
            text = Baseline::rewritten("b", &text, &changes(&first, &baseline)).expect("a baseline");
            let after = Baseline::read("b", &text).expect("it is sound");
            let reasons: Vec<&str> =
                after.lines.iter().map(|line| if line.reason == "known" { "known" } else { "new" }).collect();
            assert_eq!(reasons, kept, "{text}");
            let (conclusion, second) = held(report(), after.lines);
            assert_eq!((second.stale.len(), second.expired.len()), (0, expired));
            assert_eq!(conclusion, if expired == 0 { Conclusion::Passed } else { Conclusion::Failed });
        }
    }
}
