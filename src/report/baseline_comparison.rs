//! Compares a report with a baseline: which findings the baseline accepts, which it does not list, and which of its
//! entries are stale or expired.
//!
//! An accepted finding keeps its verdict and is shown; only the conclusion ignores it.

use std::collections::BTreeMap;

use super::{BaselineComparison, FailOn, Report, StaleEntry};
use crate::baseline::{Baseline, BaselineEntry, Change, NO_REASON_YET};
use crate::event::CaseResult;
use crate::spec::{Revision, RevisionSet};
use crate::text::first_chars;
use crate::verdict::{Confirmation, Finding, Verdict};

/// The tools that a finding is about, without duplicates.
#[must_use]
pub fn tools_of(finding: &Finding) -> Vec<&str> {
    if let Some(counterexample) = &finding.counterexample {
        return vec![&counterexample.tool];
    }
    let mut tools: Vec<&str> = Vec::new();
    for subject in &finding.subjects {
        // `tool echo`, or a location in its definition: `tool echo at /inputSchema`.
        let Some(rest) = subject.strip_prefix("tool ") else { continue };
        let name = rest.rsplit_once(" at /").map_or(rest, |(name, _)| name);
        if !tools.contains(&name) {
            tools.push(name);
        }
    }
    tools
}

/// Whether no retry reproduced the finding.
fn is_unconfirmed(finding: &Finding) -> bool {
    finding.confirmation.is_some_and(|confirmation| confirmation.is_flaky() && confirmation.failed == 0)
}

/// Whether an entry is about a finding, regardless of the tool.
fn matches(entry: &BaselineEntry, case: &str, finding: &Finding) -> bool {
    // A failure that no retry reproduced is reported as a warning; the entry still means the failure.
    let verdict = entry.verdict.is_none_or(|verdict| verdict == finding.verdict || is_unconfirmed(finding));
    entry.case == case
        && entry.requirement == finding.requirement
        && entry.within().contains(finding.revision)
        && verdict
}

/// The reason why entries accept a finding: one entry without a tool, or one for each tool of the finding.
fn reason<'a>(entries: &[&'a BaselineEntry], case: &str, finding: &Finding) -> Option<&'a str> {
    let about: Vec<&&BaselineEntry> = entries.iter().filter(|entry| matches(entry, case, finding)).collect();
    if let Some(entry) = about.iter().find(|entry| entry.tool.is_none()) {
        return Some(&entry.reason);
    }
    let tools = tools_of(finding);
    let of_tool = |tool: &&str| about.iter().find(|entry| entry.tool.as_deref() == Some(*tool));
    let first = tools.first().and_then(of_tool)?;
    tools.iter().all(|tool| of_tool(tool).is_some()).then_some(first.reason.as_str())
}

/// Whether a finding fails the run unless it is accepted.
fn fails(finding: &Finding, fail_on: FailOn) -> bool {
    !matches!(fail_on, FailOn::Must | FailOn::Untested) || finding.verdict == Verdict::Fail
}

/// Accepts the findings that a baseline lists, and stores the result of the comparison in the report.
///
/// `is_case` returns whether a case with that id exists. The start date of the run decides which entries have expired.
pub fn apply_baseline(report: &mut Report, baseline: &Baseline, file: &str, is_case: impl Fn(&str) -> bool) {
    let today = first_chars(&report.started, 10);
    let active: Vec<&BaselineEntry> = baseline.entries.iter().filter(|entry| !entry.is_expired(today)).collect();
    for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
        for finding in &mut result.findings {
            finding.accepted = reason(&active, &result.case, finding).map(str::to_owned);
        }
    }
    let judged: RevisionSet = report.targets.iter().map(|target| target.summary.revision).collect();
    let is_complete = report.summary.as_ref().is_some_and(|summary| summary.problem.is_none());
    let is_partial =
        !report.options.select.is_empty() || !report.options.skip.is_empty() || report.options.is_of_recording();
    let mut comparison = BaselineComparison {
        file: file.to_owned(),
        new: new_entries(report, &active),
        ..BaselineComparison::default()
    };
    // A run with a problem provokes less traffic for passive cases, so a missing finding proves nothing. A run of
    // selected cases carries out their stimuli, so what a selected case no longer finds is gone.
    if is_complete {
        comparison.supported = baseline.revisions.filter(|listed| {
            !is_partial && report.options.revisions.is_empty() && *listed != judged && !judged.is_empty()
        });
        for entry in &baseline.entries {
            let missing = if entry.flaky { RevisionSet::default() } else { missing_revisions(report, entry) };
            if !is_case(&entry.case) {
                comparison.stale.push(StaleEntry { entry: entry.clone(), missing_in: RevisionSet::default() });
            } else if !missing.is_empty() {
                comparison.stale.push(StaleEntry { entry: entry.clone(), missing_in: missing });
            }
        }
    }
    let is_found = |entry: &&BaselineEntry| report.results().any(|result| finds(result, entry));
    comparison.expired =
        baseline.entries.iter().filter(|entry| entry.is_expired(today)).filter(is_found).cloned().collect();
    report.baseline = Some(comparison);
}

/// Whether a case result contains the finding of an entry.
fn finds(result: &CaseResult, entry: &BaselineEntry) -> bool {
    result.findings.iter().any(|finding| {
        matches(entry, &result.case, finding)
            && entry.tool.as_deref().is_none_or(|tool| tools_of(finding).contains(&tool))
    })
}

/// The revisions in which the finding of an entry is missing; none if the entry names no revisions and its finding
/// is made in at least one.
fn missing_revisions(report: &Report, entry: &BaselineEntry) -> RevisionSet {
    // A skipped case, for example because the server was slow, proves nothing.
    let judged = |result: &&CaseResult| {
        result.case == entry.case
            && !matches!(result.verdict, Verdict::Error | Verdict::Skip)
            && entry.within().contains(result.revision)
    };
    let (found, missed): (Vec<&CaseResult>, Vec<&CaseResult>) =
        report.results().filter(judged).partition(|result| finds(result, entry));
    if entry.revisions.is_none() && !found.is_empty() {
        return RevisionSet::default();
    }
    missed.into_iter().map(|result| result.revision).collect()
}

/// The findings that fail the run and are not accepted, as entries with all their revisions.
fn new_entries(report: &Report, active: &[&BaselineEntry]) -> Vec<BaselineEntry> {
    type Key<'a> = (&'a str, &'a str, Option<&'a str>, &'static str);
    let mut found: BTreeMap<Key<'_>, (Verdict, Vec<Revision>, bool)> = BTreeMap::new();
    for result in report.results() {
        let open = result.findings.iter().filter(|finding| finding.accepted.is_none());
        for finding in open.filter(|finding| fails(finding, report.options.fail_on)) {
            let tools = tools_of(finding);
            let is_listed = |tool: &str| {
                active.iter().any(|entry| matches(entry, &result.case, finding) && entry.tool.as_deref() == Some(tool))
            };
            let tools: Vec<Option<&str>> = if tools.is_empty() {
                vec![None]
            } else {
                tools.into_iter().filter(|tool| !is_listed(tool)).map(Some).collect()
            };
            for tool in tools {
                let key = (result.case.as_str(), finding.requirement.as_str(), tool, finding.verdict.as_str());
                let (_, revisions, all_flaky) = found.entry(key).or_insert((finding.verdict, Vec::new(), true));
                revisions.push(result.revision);
                *all_flaky &= finding.confirmation.is_some_and(Confirmation::is_flaky);
            }
        }
    }
    let listing =
        |((case, requirement, tool, _), (verdict, revisions, flaky)): (Key<'_>, (Verdict, Vec<Revision>, bool))| {
            BaselineEntry {
                case: case.to_owned(),
                requirement: requirement.to_owned(),
                tool: tool.map(str::to_owned),
                revisions: Some(revisions.into_iter().collect()),
                verdict: Some(verdict),
                reason: NO_REASON_YET.to_owned(),
                expires: None,
                flaky,
            }
        };
    found.into_iter().map(listing).collect()
}

/// The changes that bring a baseline up to date with a report. Expired entries stay unchanged: only a person may
/// extend them.
#[must_use]
pub fn changes(comparison: &BaselineComparison, baseline: &Baseline) -> Vec<Change> {
    let mut changes = Vec::new();
    for (at, entry) in baseline.entries.iter().enumerate() {
        let Some(stale) = comparison.stale.iter().find(|stale| stale.entry == *entry) else { continue };
        let kept: RevisionSet = match entry.revisions {
            Some(listed) if !stale.missing_in.is_empty() => {
                listed.iter().filter(|revision| !stale.missing_in.contains(*revision)).collect()
            }
            Some(_) | None => RevisionSet::default(),
        };
        changes.push(if kept.is_empty() { Change::Remove(at) } else { Change::Narrow(at, kept) });
    }
    // The finding of an expired entry is not accepted, so it would be added a second time.
    let is_expired = |new: &BaselineEntry| {
        comparison.expired.iter().any(|old| old.case == new.case && old.requirement == new.requirement)
    };
    changes.extend(comparison.new.iter().filter(|entry| !is_expired(entry)).cloned().map(Change::Add));
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

    fn entry() -> BaselineEntry {
        BaselineEntry {
            case: "tools/call/unknown-tool".to_owned(),
            requirement: "tools-call-unknown-tool-error".to_owned(),
            tool: Some("echo".to_owned()),
            revisions: Some("2025-06-18..2025-11-25".parse().expect("a range")),
            verdict: Some(Verdict::Fail),
            reason: "known".to_owned(),
            expires: None,
            flaky: false,
        }
    }

    fn comparison_of(mut report: Report, entries: Vec<BaselineEntry>) -> (Conclusion, BaselineComparison) {
        apply_baseline(&mut report, &Baseline::of(None, entries), "b.jsonc", |case| !case.starts_with("old/"));
        (Conclusion::of(&report), report.baseline.expect("a comparison"))
    }

    #[test]
    fn each_row_has_its_conclusion() {
        use Conclusion::{Failed, Passed};
        let set = |text: &str| Some(text.parse::<RevisionSet>().expect("a set"));
        // The entries, the conclusion, and the numbers of new, stale and expired entries.
        let rows: Vec<(&str, Vec<BaselineEntry>, Conclusion, [usize; 3])> = vec![
            ("new", vec![], Failed, [1, 0, 0]),
            ("known", vec![entry()], Passed, [0, 0, 0]),
            ("known by any tool", vec![BaselineEntry { tool: None, ..entry() }], Passed, [0, 0, 0]),
            ("known in every revision", vec![BaselineEntry { revisions: None, ..entry() }], Passed, [0, 0, 0]),
            ("known as either", vec![BaselineEntry { verdict: None, ..entry() }], Passed, [0, 0, 0]),
            (
                "not yet expired",
                vec![BaselineEntry { expires: Some("2026-08-01".to_owned()), ..entry() }],
                Passed,
                [0, 0, 0],
            ),
            ("expired", vec![BaselineEntry { expires: Some("2026-07-31".to_owned()), ..entry() }], Failed, [1, 0, 1]),
            ("renamed tool", vec![BaselineEntry { tool: Some("renamed".to_owned()), ..entry() }], Failed, [1, 1, 0]),
            ("one revision of two", vec![BaselineEntry { revisions: set("2025-06-18"), ..entry() }], Failed, [1, 0, 0]),
            (
                "a revision not judged",
                vec![BaselineEntry { revisions: set("2025-06-18.."), ..entry() }],
                Passed,
                [0, 0, 0],
            ),
            (
                "only another revision",
                vec![BaselineEntry { revisions: set("2024-11-05"), ..entry() }],
                Failed,
                [1, 0, 0],
            ),
            (
                "a warning that became a failure",
                vec![BaselineEntry { verdict: Some(Verdict::Warn), ..entry() }],
                Failed,
                [1, 1, 0],
            ),
            (
                "flaky and gone",
                vec![entry(), BaselineEntry { requirement: "x".to_owned(), flaky: true, ..entry() }],
                Passed,
                [0, 0, 0],
            ),
            ("flaky and seen", vec![BaselineEntry { flaky: true, ..entry() }], Passed, [0, 0, 0]),
            (
                "a flaky case that is gone",
                vec![entry(), BaselineEntry { case: "old/x".to_owned(), flaky: true, ..entry() }],
                Failed,
                [0, 1, 0],
            ),
            (
                "another requirement",
                vec![entry(), BaselineEntry { requirement: "x".to_owned(), ..entry() }],
                Failed,
                [0, 1, 0],
            ),
            (
                "a case that is gone",
                vec![entry(), BaselineEntry { case: "old/x".to_owned(), ..entry() }],
                Failed,
                [0, 1, 0],
            ),
            (
                "a case that did not run",
                vec![entry(), BaselineEntry { case: "a/b".to_owned(), ..entry() }],
                Passed,
                [0, 0, 0],
            ),
        ];
        for (name, entries, conclusion, counts) in rows {
            let (actual, comparison) = comparison_of(report(), entries);
            assert_eq!(actual, conclusion, "{name}");
            assert_eq!(
                [comparison.new.len(), comparison.stale.len(), comparison.expired.len()],
                counts,
                "{name}: {comparison:?}"
            );
        }
    }

    #[test]
    fn a_stale_entry_says_what_to_edit() {
        let mut fixed = report();
        fixed.targets[0].results[0].findings.clear();
        fixed.targets[0].results[0].verdict = Verdict::Pass;
        let (conclusion, half) = comparison_of(fixed.clone(), vec![entry()]);
        assert_eq!(conclusion, Conclusion::Failed);
        let messages: Vec<String> = half.outdated_messages().collect();
        let wanted = "tools-call-unknown-tool-error by tools/call/unknown-tool, tool echo in b.jsonc was not found in \
                      2025-06-18: remove these revisions from the entry or run with --update-baseline";
        assert_eq!(messages, [wanted]);
        fixed.targets[1].results[0].findings.clear();
        let (_, whole) = comparison_of(fixed.clone(), vec![entry()]);
        assert!(whole.outdated_messages().all(|message| message.contains("delete the entry")));
        // A case that was skipped or not judged proves nothing about its entries, nor does a run with a problem.
        for verdict in [Verdict::Error, Verdict::Skip] {
            let mut unjudged = fixed.clone();
            unjudged.targets.iter_mut().for_each(|target| target.results[0].verdict = verdict);
            assert_eq!(comparison_of(unjudged, vec![entry()]).1.stale, []);
        }
        fixed.summary = example().summary;
        assert_eq!(comparison_of(fixed, vec![entry()]).1.stale, []);
    }

    /// A partial run used to leave every entry alone, so that an entry stayed after its finding was fixed wherever CI
    /// runs selected cases only. A selected case runs with its stimuli, so its verdict is as good as that of a whole run.
    #[test]
    fn a_run_of_selected_cases_reports_stale_entries_of_these_alone() {
        let partial = |entries: Vec<BaselineEntry>| {
            let mut report = report();
            report.options.select = vec!["tools".to_owned()];
            comparison_of(report, entries)
        };
        let gone = BaselineEntry { requirement: "x".to_owned(), ..entry() };
        let (conclusion, comparison) = partial(vec![entry(), gone.clone()]);
        assert_eq!((conclusion, comparison.stale.len()), (Conclusion::Failed, 1));
        assert_eq!(comparison.stale[0].entry, gone);
        let of_others = BaselineEntry { case: "stdio/log-line".to_owned(), ..gone };
        let (conclusion, comparison) = partial(vec![entry(), of_others]);
        assert_eq!((conclusion, comparison.stale.len()), (Conclusion::Passed, 0));
    }

    #[test]
    fn a_run_of_selected_cases_says_nothing_about_the_revisions_of_the_file() {
        let mut report = report();
        report.options.select = vec!["tools".to_owned()];
        let baseline = Baseline::of(Some("2025-06-18".parse().expect("a set")), vec![entry()]);
        apply_baseline(&mut report, &baseline, "b.jsonc", |_| true);
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
    }

    #[test]
    fn the_revisions_in_the_file_must_match_those_judged() {
        let mut report = report();
        let baseline = Baseline::of(Some("2025-06-18".parse().expect("a set")), vec![entry()]);
        apply_baseline(&mut report, &baseline, "b.jsonc", |_| true);
        assert_eq!(Conclusion::of(&report), Conclusion::Failed);
        let messages: Vec<String> = report.baseline.iter().flat_map(BaselineComparison::outdated_messages).collect();
        assert!(messages[0].starts_with("`revisions` in b.jsonc says 2025-06-18, but"), "{messages:?}");
    }

    #[test]
    fn an_entry_for_a_failure_also_accepts_it_when_no_retry_reproduced_it() {
        let mut report = report();
        for finding in report.targets.iter_mut().flat_map(|t| &mut t.results).flat_map(|r| &mut r.findings) {
            finding.verdict = Verdict::Warn;
            finding.confirmation = Some(crate::verdict::Confirmation { tried: 1, failed: 0 });
        }
        assert_eq!(
            comparison_of(report, vec![entry()]).1,
            BaselineComparison { file: "b.jsonc".to_owned(), ..BaselineComparison::default() }
        );
    }

    #[test]
    fn the_changes_bring_the_baseline_up_to_date() {
        let stale = BaselineEntry { requirement: "x".to_owned(), reason: "another".to_owned(), ..entry() };
        let half = BaselineEntry { revisions: Some("2025-06-18".parse().expect("a set")), ..entry() };
        let old = BaselineEntry { expires: Some("2020-01-01".to_owned()), ..entry() };
        for (entries, kept, expired) in [
            (vec![], vec!["new"], 0),
            (vec![stale.clone()], vec!["new"], 0),
            (vec![half.clone(), stale], vec!["known", "new"], 0),
            (vec![old], vec!["known"], 1),
        ] {
            let baseline = Baseline::of(None, entries);
            let (_, first) = comparison_of(report(), baseline.entries.clone());
            let mut text = Baseline::empty_text();
            let all: Vec<Change> = baseline.entries.iter().cloned().map(Change::Add).collect();
            text = Baseline::rewritten("b", &text, &all).expect("a baseline");
            text = Baseline::rewritten("b", &text, &changes(&first, &baseline)).expect("a baseline");
            let after = Baseline::read("b", &text).expect("it is valid");
            let reasons: Vec<&str> =
                after.entries.iter().map(|entry| if entry.reason == "known" { "known" } else { "new" }).collect();
            assert_eq!(reasons, kept, "{text}");
            let (conclusion, second) = comparison_of(report(), after.entries);
            assert_eq!((second.stale.len(), second.expired.len()), (0, expired));
            assert_eq!(conclusion, if expired == 0 { Conclusion::Passed } else { Conclusion::Failed });
        }
    }
}
