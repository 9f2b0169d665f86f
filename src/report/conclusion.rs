//! The conclusion of a run: one of four, each with its exit code.
//!
//! It is computed from the report alone, so that every format and the exit code of the process agree.

use std::collections::BTreeSet;

use super::finding_text::effective_verdict;
use super::untested::untested;
use super::{BaselineComparison, FailOn, Report};
use crate::event::{CaseResult, ProblemKind};
use crate::verdict::{Confirmation, Totals, Verdict};

/// The conclusion of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conclusion {
    /// Every judged case passes or is accepted by the baseline. Warnings are allowed unless the run is strict.
    Passed,
    /// A case fails, or warns under `--strict`, or the baseline is out of date.
    Failed,
    /// No case fails, but at least one could not be judged.
    Unjudged,
    /// No case applied.
    NothingJudged,
}

impl Conclusion {
    /// Every conclusion, by exit code.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Unjudged, Self::NothingJudged];

    /// The conclusion of a report.
    ///
    /// A proven violation stays proven whatever else went wrong, so a failure outranks cases that could not be judged.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let CaseCounts { totals, accepted, .. } = CaseCounts::of(report);
        let fails = match report.options.fail_on {
            FailOn::Must => totals.fail > 0 || is_out_of_date(report),
            FailOn::Should => totals.fail > 0 || totals.warn > 0 || is_out_of_date(report),
            FailOn::Untested => totals.fail > 0 || untested(report).next().is_some() || is_out_of_date(report),
            FailOn::Never => false,
        };
        if fails {
            return Self::Failed;
        }
        let Some(summary) = &report.summary else { return Self::Unjudged };
        let by_counts = match (totals.error, totals.judged() + accepted) {
            (0, 0) => Self::NothingJudged,
            (0, _) => Self::Passed,
            (_, _) => Self::Unjudged,
        };
        match summary.problem.as_ref().map(|problem| problem.kind) {
            None => by_counts,
            // The server works, but supports nothing that was selected.
            Some(ProblemKind::NothingToJudge) if by_counts == Self::NothingJudged => Self::NothingJudged,
            Some(
                ProblemKind::NothingToJudge | ProblemKind::NotAServer | ProblemKind::Stopped | ProblemKind::Interrupted,
            ) => Self::Unjudged,
        }
    }

    /// The exit code of the process.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Unjudged => 2,
            Self::NothingJudged => 3,
        }
    }

    /// What the exit code means, as Markdown. The help, the README and the documentation have this text.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Passed => {
                "the server passed: every judged case passes, or its findings are in the baseline; warnings are allowed \
                 without `--strict`, and a failure that does not reproduce (see `--retries`) counts as a warning"
            }
            Self::Failed => {
                "the server failed: it violates a MUST, or another rule in a way that no reading of it allows; with \
                 `--strict` any rule; or the baseline is out of date"
            }
            Self::Unjudged => {
                "the run could not be completed: wrong usage, an invalid file, or a server that does not start or never \
                 speaks MCP"
            }
            Self::NothingJudged => "nothing was judged: no case was selected, or no selected case applies",
        }
    }
}

impl Report {
    /// The conclusion of the run.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        Conclusion::of(self)
    }
}

fn is_out_of_date(report: &Report) -> bool {
    report.baseline.as_ref().is_some_and(BaselineComparison::is_out_of_date)
}

/// The number of cases by verdict, with accepted cases counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaseCounts {
    /// The cases by their most severe verdict that the baseline does not accept.
    pub totals: Totals,
    /// The cases whose findings are all accepted; not included in `totals`.
    pub accepted: usize,
    /// The cases with a failure that not every retry reproduced, without accepted ones.
    pub flaky: usize,
}

impl CaseCounts {
    /// Counts the cases of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let results: Vec<&CaseResult> = report.results().collect();
        match &report.summary {
            // A report without its cases, made for a summary, still has totals.
            Some(summary) if results.is_empty() => Self { totals: summary.totals, ..Self::default() },
            _ => Self::of_results(results),
        }
    }

    /// Counts the given cases.
    pub(super) fn of_results<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let mut counts = Self::default();
        for result in results {
            match effective_verdict(result) {
                Some(verdict) => counts.totals.add(verdict),
                None => counts.accepted += 1,
            }
            let flaky = result
                .findings
                .iter()
                .any(|finding| finding.accepted.is_none() && finding.confirmation.is_some_and(Confirmation::is_flaky));
            counts.flaky += usize::from(flaky);
        }
        counts
    }
}

/// The verdict line: the conclusion, the reason and the exit code.
#[must_use]
pub fn verdict_line(report: &Report) -> String {
    let (keyword, rest) = verdict_parts(report);
    format!("{keyword}: {rest}")
}

/// The verdict line in two parts: the keyword and the sentence after it.
pub(super) fn verdict_parts(report: &Report) -> (&'static str, String) {
    let CaseCounts { totals, accepted, flaky } = CaseCounts::of(report);
    let problem = report.summary.as_ref().and_then(|summary| summary.problem.as_ref());
    let conclusion = Conclusion::of(report);
    // A case counts once per revision; without saying so, the numbers would be puzzling.
    let across = match report.targets.len() {
        0 | 1 => String::new(),
        revisions => format!(" across {revisions} revisions"),
    };
    let extra = accepted_and_flaky(report, accepted, flaky);
    let (keyword, why) = match conclusion {
        Conclusion::Passed if totals.fail > 0 || (totals.warn > 0 && report.options.fail_on == FailOn::Never) => {
            let findings = [number(totals.fail, "fails", "fail"), number(totals.warn, "warns", "warn")].join(", ");
            ("REPORT ONLY", format!("{}, {findings}{extra}; --fail-on never ignores findings", judged(totals, &across)))
        }
        Conclusion::Passed if totals.warn == 0 => ("PASS", format!("{}{extra}", judged(totals, &across))),
        Conclusion::Passed => (
            "PASS",
            format!(
                "{}, {}{extra} (with --strict the exit code would be 1)",
                judged(totals, &across),
                number(totals.warn, "warns", "warn")
            ),
        ),
        Conclusion::Failed if totals.fail > 0 => {
            let violated = super::group::count_violated_requirements(report);
            let warned = match totals.warn {
                0 => String::new(),
                warn => format!(", {}", number(warn, "case warns", "cases warn")),
            };
            let unjudged = match totals.error {
                0 => String::new(),
                error => format!(", {} not be judged", number(error, "case could", "cases could")),
            };
            let problem = problem.map_or_else(String::new, |p| format!("; in addition, {}", sentence(&p.message)));
            let violated = number(violated, "requirement", "requirements");
            let failing = number(totals.fail, "case fails", "cases fail");
            let stale = if is_out_of_date(report) { "; the baseline is also out of date" } else { "" };
            ("FAIL", format!("{violated} violated ({failing}{across}){warned}{unjudged}{extra}{stale}{problem}"))
        }
        Conclusion::Failed if is_out_of_date(report) => {
            let places = report.baseline.iter().flat_map(BaselineComparison::outdated_messages).count();
            let places = number(places, "place", "places");
            ("FAIL", format!("{}{extra}, but the baseline is out of date in {places}", judged(totals, &across)))
        }
        Conclusion::Failed if report.options.fail_on == FailOn::Untested => {
            let names: BTreeSet<&str> = untested(report).map(|(tool, _)| tool).collect();
            let count = number(names.len(), "tool was", "tools were");
            ("FAIL", format!("{count} not tested: no generated call succeeded{extra}"))
        }
        Conclusion::Failed => {
            let warn = number(totals.warn, "case warns", "cases warn");
            ("FAIL", format!("{warn}{across}{extra}, and --strict counts warnings as failures"))
        }
        Conclusion::Unjudged => {
            let why = match problem {
                Some(problem) => sentence(&problem.message),
                None if totals.error > 0 => {
                    format!("{} not be judged", number(totals.error, "case could", "cases could"))
                }
                None => "the run was aborted".to_owned(),
            };
            let judged_cases =
                if totals.judged() == 0 { String::new() } else { format!(" ({})", judged(totals, &across)) };
            ("NOT JUDGED", format!("{why}{judged_cases}"))
        }
        Conclusion::NothingJudged => (
            "NOTHING JUDGED",
            match (problem, totals.skip) {
                (Some(problem), _) => sentence(&problem.message),
                (None, 0) => "no case was selected".to_owned(),
                (None, skip) => match skip {
                    1 => "the selected case does not apply to this server".to_owned(),
                    _ => format!("none of the {skip} selected cases applies to this server"),
                },
            },
        ),
    };
    (keyword, format!("{why}; exit code {}", conclusion.code()))
}

/// The verdict whose colour represents the conclusion.
pub(super) fn color_verdict(report: &Report) -> Verdict {
    match Conclusion::of(report) {
        Conclusion::Passed if CaseCounts::of(report).totals.warn + CaseCounts::of(report).totals.fail > 0 => {
            Verdict::Warn
        }
        Conclusion::Passed => Verdict::Pass,
        Conclusion::Failed => Verdict::Fail,
        Conclusion::Unjudged | Conclusion::NothingJudged => Verdict::Error,
    }
}

/// The number of accepted and of flaky cases, as a continuation of the totals.
fn accepted_and_flaky(report: &Report, accepted: usize, flaky: usize) -> String {
    let mut findings = report.results().flat_map(|result| &result.findings);
    let is_of_sdk = findings.any(|finding| finding.accepted.is_some() && finding.sdk.is_some());
    let accepted = match accepted {
        0 => String::new(),
        accepted if is_of_sdk => format!(", {accepted} accepted"),
        accepted => format!(", {accepted} accepted by the baseline"),
    };
    if flaky > 0 { format!("{accepted}, {flaky} flaky") } else { accepted }
}

fn judged(totals: Totals, across: &str) -> String {
    let judged = number(totals.judged(), "case", "cases");
    match totals.pass {
        pass if pass == totals.judged() && pass > 1 => format!("{judged} judged{across}, all pass"),
        pass => format!("{judged} judged{across}, {}", number(pass, "passes", "pass")),
    }
}

fn number(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A sentence shortened so that it can be embedded in another one.
fn sentence(message: &str) -> String {
    super::visible::excerpt(message.trim_end_matches('.'), 300, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    fn report(totals: Totals, problem: bool, strict: bool) -> Report {
        let mut report = example();
        report.options.fail_on = if strict { FailOn::Should } else { FailOn::Must };
        report.targets.clear();
        report.baseline = None;
        let summary = report.summary.as_mut().expect("the example has a summary");
        summary.totals = totals;
        if !problem {
            summary.problem = None;
        }
        report
    }

    #[test]
    fn a_run_has_one_of_four_conclusions() {
        let none = Totals::default();
        let of = |pass, fail, warn, error| Totals { pass, fail, warn, skip: 4, error };
        let rows = [
            (of(3, 0, 0, 0), false, false, Conclusion::Passed),
            (of(3, 0, 2, 0), false, false, Conclusion::Passed),
            (of(0, 0, 2, 0), false, false, Conclusion::Passed),
            (of(3, 0, 2, 0), false, true, Conclusion::Failed),
            (of(3, 1, 0, 0), false, false, Conclusion::Failed),
            // A proven violation stays proven, whatever else went wrong.
            (of(3, 1, 0, 5), true, false, Conclusion::Failed),
            (of(3, 0, 0, 1), false, false, Conclusion::Unjudged),
            (of(3, 0, 0, 0), true, false, Conclusion::Unjudged),
            (of(0, 0, 0, 1), false, false, Conclusion::Unjudged),
            (none, true, false, Conclusion::Unjudged),
            (none, false, false, Conclusion::NothingJudged),
            (of(0, 0, 0, 0), false, true, Conclusion::NothingJudged),
        ];
        for (totals, problem, strict, expected) in rows {
            let report = report(totals, problem, strict);
            assert_eq!(Conclusion::of(&report), expected, "{totals:?} {problem} {strict}");
            let line = verdict_line(&report);
            assert!(line.ends_with(&format!("; exit code {}", expected.code())), "{line}");
        }
    }

    #[test]
    fn a_server_without_a_selected_revision_leaves_nothing_to_judge() {
        let mut report = report(Totals::default(), true, false);
        let problem = report.summary.as_mut().and_then(|summary| summary.problem.as_mut()).expect("a problem");
        problem.kind = ProblemKind::NothingToJudge;
        problem.message = "it supports 2024-11-05 only".to_owned();
        assert_eq!(verdict_line(&report), "NOTHING JUDGED: it supports 2024-11-05 only; exit code 3");
    }

    #[test]
    fn an_aborted_run_has_not_passed() {
        let mut report = example();
        report.targets.clear();
        report.baseline = None;
        report.summary = None;
        assert_eq!(Conclusion::of(&report), Conclusion::Unjudged);
    }

    #[test]
    fn an_accepted_finding_does_not_fail_the_run_and_is_counted() {
        let mut report = example();
        report.baseline = None;
        let summary = report.summary.as_mut().expect("a summary");
        summary.problem = None;
        for target in &mut report.targets {
            target.results.retain(|result| {
                ["stdio/stdout-only-messages", "tools/call/image-data"].contains(&result.case.as_str())
            });
        }
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
        assert_eq!(CaseCounts::of(&report).accepted, 1);
        let line = verdict_line(&report);
        assert_eq!(line, "PASS: 2 cases judged across 2 revisions, all pass, 1 accepted by the baseline; exit code 0");
        report.targets[1].results[1].findings[0].accepted = None;
        assert_eq!(Conclusion::of(&report), Conclusion::Failed);
        report.options.fail_on = FailOn::Never;
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
        assert!(verdict_line(&report).starts_with("REPORT ONLY: "), "{}", verdict_line(&report));
    }

    #[test]
    fn a_baseline_that_is_out_of_date_fails_a_run_that_passes() {
        let mut report = example();
        report.targets.iter_mut().for_each(|target| target.results.truncate(0));
        let summary = report.summary.as_mut().expect("a summary");
        summary.problem = None;
        summary.totals = Totals { pass: 3, ..Totals::default() };
        assert_eq!(
            verdict_line(&report),
            "FAIL: 3 cases judged across 2 revisions, all pass, but the baseline is out of date in 2 places; exit code 1"
        );
        report.options.fail_on = FailOn::Never;
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
    }

    #[test]
    fn exit_codes_are_distinct_and_in_order() {
        assert_eq!(Conclusion::ALL.map(Conclusion::code), [0, 1, 2, 3]);
    }

    #[test]
    fn the_verdict_line_names_its_counts() {
        let line = |totals| verdict_line(&report(totals, false, false));
        let passed = Totals { pass: 2, skip: 1, ..Totals::default() };
        assert_eq!(line(passed), "PASS: 2 cases judged, all pass; exit code 0");
        let warned = Totals { pass: 2, warn: 1, ..Totals::default() };
        assert_eq!(
            line(warned),
            "PASS: 3 cases judged, 2 pass, 1 warns (with --strict the exit code would be 1); exit code 0"
        );
        let skipped = Totals { skip: 5, ..Totals::default() };
        assert_eq!(line(skipped), "NOTHING JUDGED: none of the 5 selected cases applies to this server; exit code 3");
    }
}
