//! What a whole run comes to: one of four words, each with its exit code.
//!
//! Drawn from the report alone, so that every format and the process agree.

use super::account::standing;
use super::{BaselineComparison, FailOn, Report};
use crate::event::{CaseResult, ProblemKind};
use crate::verdict::{Confirmation, Totals, Verdict};

/// What a whole run comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conclusion {
    /// Everything that was judged passes, but for what a baseline accepts; warnings are allowed unless the run
    /// is strict.
    Passed,
    /// Something that binds is broken, or anything at all under `--strict`; or the baseline is out of date.
    Failed,
    /// Nothing binding is broken as far as we saw, but something could not be judged.
    Unjudged,
    /// No case applied.
    Nothing,
}

impl Conclusion {
    /// Every conclusion, by exit code.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Unjudged, Self::Nothing];

    /// The conclusion of a report.
    ///
    /// A broken rule is proved whatever else went wrong, so a failure outranks what could not be judged.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let Standing { totals, accepted, .. } = Standing::of(report);
        let fails = match report.options.fail_on {
            FailOn::Must => totals.fail > 0 || is_out_of_date(report),
            FailOn::Should => totals.fail > 0 || totals.warn > 0 || is_out_of_date(report),
            FailOn::Never => false,
        };
        if fails {
            return Self::Failed;
        }
        let Some(summary) = &report.summary else { return Self::Unjudged };
        let usual = match (totals.error, totals.judged() + accepted) {
            (0, 0) => Self::Nothing,
            (0, _) => Self::Passed,
            (_, _) => Self::Unjudged,
        };
        match summary.problem.as_ref().map(|problem| problem.kind) {
            None => usual,
            // The server is there and speaks; we were asked for something else.
            Some(ProblemKind::NothingToJudge) if usual == Self::Nothing => Self::Nothing,
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
            Self::Nothing => 3,
        }
    }
}

fn is_out_of_date(report: &Report) -> bool {
    report.baseline.as_ref().is_some_and(BaselineComparison::is_out_of_date)
}

/// How many cases stand at each verdict once what a baseline accepts is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// The cases by the heaviest verdict that nobody accepts.
    pub totals: Totals,
    /// The cases all of whose findings are accepted; they are in no total.
    pub accepted: usize,
    /// The cases with a failure that did not come back each time it was tried again, accepted ones left out.
    pub flaky: usize,
}

impl Standing {
    /// The standing of a report. Where the run was cut off before its summary, its cases are counted anew.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let counted: Vec<&CaseResult> = report.results().collect();
        match &report.summary {
            // A report without its cases, as it may be made for a summary, has its totals all the same.
            Some(summary) if counted.is_empty() => Self { totals: summary.totals, ..Self::default() },
            _ => Self::of_results(counted),
        }
    }

    /// The standing of some cases.
    pub(super) fn of_results<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let mut whole = Self::default();
        for result in results {
            match standing(result) {
                Some(verdict) => whole.totals.add(verdict),
                None => whole.accepted += 1,
            }
            let flaky = result
                .findings
                .iter()
                .any(|finding| finding.accepted.is_none() && finding.confirmation.is_some_and(Confirmation::is_flaky));
            whole.flaky += usize::from(flaky);
        }
        whole
    }
}

/// The verdict line: what the run comes to, why, and the exit code that follows.
#[must_use]
pub fn verdict_line(report: &Report) -> String {
    let (word, rest) = verdict_words(report);
    format!("{word}: {rest}")
}

/// The verdict line in two parts: the word, and the sentence after it.
pub(super) fn verdict_words(report: &Report) -> (&'static str, String) {
    let Standing { totals, accepted, flaky } = Standing::of(report);
    let problem = report.summary.as_ref().and_then(|summary| summary.problem.as_ref());
    let conclusion = Conclusion::of(report);
    // A case counts once a revision, which the reader has to know to make sense of the numbers.
    let over = match report.targets.len() {
        0 | 1 => String::new(),
        revisions => format!(" over {revisions} revisions"),
    };
    let besides = besides(accepted, flaky);
    let (word, why) = match conclusion {
        Conclusion::Passed if totals.fail > 0 || (totals.warn > 0 && report.options.fail_on == FailOn::Never) => {
            let broken = [number(totals.fail, "fails", "fail"), number(totals.warn, "warns", "warn")].join(", ");
            ("TOLD", format!("{}, {broken}{besides}; --fail-on never lets all of that through", judged(totals, &over)))
        }
        Conclusion::Passed if totals.warn == 0 => ("PASS", format!("{}{besides}", judged(totals, &over))),
        Conclusion::Passed => (
            "PASS",
            format!(
                "{}, {}{besides} (--strict would make that exit code 1)",
                judged(totals, &over),
                number(totals.warn, "warns", "warn")
            ),
        ),
        Conclusion::Failed if totals.fail > 0 => {
            let broken = super::group::broken_requirements(report);
            let warned = match totals.warn {
                0 => String::new(),
                warn => format!(", {}", number(warn, "case warns", "cases warn")),
            };
            let unjudged = match totals.error {
                0 => String::new(),
                error => format!(", {} not be judged", number(error, "case could", "cases could")),
            };
            let problem = problem.map_or_else(String::new, |p| format!("; besides, {}", sentence(&p.message)));
            let broken = number(broken, "requirement is", "requirements are");
            let failing = number(totals.fail, "case fails", "cases fail");
            let stale = if is_out_of_date(report) { "; the baseline is out of date too" } else { "" };
            ("FAIL", format!("{broken} broken ({failing}{over}){warned}{unjudged}{besides}{stale}{problem}"))
        }
        Conclusion::Failed if is_out_of_date(report) => {
            let lines = report.baseline.iter().flat_map(BaselineComparison::complaints).count();
            let lines = number(lines, "thing", "things");
            ("FAIL", format!("{}{besides}, but the baseline is out of date in {lines}", judged(totals, &over)))
        }
        Conclusion::Failed => {
            let warn = number(totals.warn, "case warns", "cases warn");
            ("FAIL", format!("{warn}{over}{besides}, and --strict counts that as failing"))
        }
        Conclusion::Unjudged => {
            let why = match problem {
                Some(problem) => sentence(&problem.message),
                None if totals.error > 0 => {
                    format!("{} not be judged", number(totals.error, "case could", "cases could"))
                }
                None => "the run was cut off before its end".to_owned(),
            };
            let seen = if totals.judged() == 0 { String::new() } else { format!(" ({})", judged(totals, &over)) };
            ("NOT JUDGED", format!("{why}{seen}"))
        }
        Conclusion::Nothing => (
            "NOTHING JUDGED",
            match (problem, totals.skip) {
                (Some(problem), _) => sentence(&problem.message),
                (None, 0) => "no case was selected".to_owned(),
                (None, skip) => {
                    format!("{} to what this server offers", number(skip, "case does not apply", "cases, none applies"))
                }
            },
        ),
    };
    (word, format!("{why}; exit code {}", conclusion.code()))
}

/// The verdict whose colour the conclusion wears.
pub(super) fn tone(report: &Report) -> Verdict {
    match Conclusion::of(report) {
        Conclusion::Passed if Standing::of(report).totals.warn + Standing::of(report).totals.fail > 0 => Verdict::Warn,
        Conclusion::Passed => Verdict::Pass,
        Conclusion::Failed => Verdict::Fail,
        Conclusion::Unjudged | Conclusion::Nothing => Verdict::Error,
    }
}

/// What the reader has to know beside the totals: what is accepted and what is in doubt.
fn besides(accepted: usize, flaky: usize) -> String {
    let accepted = match accepted {
        0 => String::new(),
        accepted => format!(", {} as the baseline accepts", number(accepted, "fails or warns", "fail or warn")),
    };
    if flaky > 0 { format!("{accepted}, {flaky} flaky") } else { accepted }
}

fn judged(totals: Totals, over: &str) -> String {
    let judged = number(totals.judged(), "case", "cases");
    match totals.pass {
        pass if pass == totals.judged() && pass > 1 => format!("{judged} judged{over}, all pass"),
        pass => format!("{judged} judged{over}, {}", number(pass, "passes", "pass")),
    }
}

fn number(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A sentence of the run's, made fit to stand inside another one.
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
    fn a_run_comes_to_one_of_four_conclusions() {
        let none = Totals::default();
        let of = |pass, fail, warn, error| Totals { pass, fail, warn, skip: 4, error };
        let rows = [
            (of(3, 0, 0, 0), false, false, Conclusion::Passed),
            (of(3, 0, 2, 0), false, false, Conclusion::Passed),
            (of(0, 0, 2, 0), false, false, Conclusion::Passed),
            (of(3, 0, 2, 0), false, true, Conclusion::Failed),
            (of(3, 1, 0, 0), false, false, Conclusion::Failed),
            // What is proved stays proved, whatever else went wrong.
            (of(3, 1, 0, 5), true, false, Conclusion::Failed),
            (of(3, 0, 0, 1), false, false, Conclusion::Unjudged),
            (of(3, 0, 0, 0), true, false, Conclusion::Unjudged),
            (of(0, 0, 0, 1), false, false, Conclusion::Unjudged),
            (none, true, false, Conclusion::Unjudged),
            (none, false, false, Conclusion::Nothing),
            (of(0, 0, 0, 0), false, true, Conclusion::Nothing),
        ];
        for (totals, problem, strict, expected) in rows {
            let report = report(totals, problem, strict);
            assert_eq!(Conclusion::of(&report), expected, "{totals:?} {problem} {strict}");
            let line = verdict_line(&report);
            assert!(line.ends_with(&format!("; exit code {}", expected.code())), "{line}");
        }
    }

    #[test]
    fn a_server_that_speaks_none_of_what_was_asked_for_leaves_nothing_to_judge() {
        let mut report = report(Totals::default(), true, false);
        let problem = report.summary.as_mut().and_then(|summary| summary.problem.as_mut()).expect("a problem");
        problem.kind = ProblemKind::NothingToJudge;
        problem.message = "it speaks 2024-11-05 only".to_owned();
        assert_eq!(verdict_line(&report), "NOTHING JUDGED: it speaks 2024-11-05 only; exit code 3");
    }

    #[test]
    fn a_run_that_was_cut_off_has_not_passed() {
        let mut report = example();
        report.targets.clear();
        report.baseline = None;
        report.summary = None;
        assert_eq!(Conclusion::of(&report), Conclusion::Unjudged);
    }

    #[test]
    fn what_is_accepted_does_not_fail_the_run_and_is_told() {
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
        assert_eq!(Standing::of(&report).accepted, 1);
        let line = verdict_line(&report);
        assert_eq!(
            line,
            "PASS: 2 cases judged over 2 revisions, all pass, 1 fails or warns as the baseline accepts; exit code 0"
        );
        report.targets[1].results[1].findings[0].accepted = None;
        assert_eq!(Conclusion::of(&report), Conclusion::Failed);
        report.options.fail_on = FailOn::Never;
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
        assert!(verdict_line(&report).starts_with("TOLD: "), "{}", verdict_line(&report));
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
            "FAIL: 3 cases judged over 2 revisions, all pass, but the baseline is out of date in 2 things; exit code 1"
        );
        report.options.fail_on = FailOn::Never;
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
    }

    #[test]
    fn exit_codes_are_distinct_and_in_order() {
        assert_eq!(Conclusion::ALL.map(Conclusion::code), [0, 1, 2, 3]);
    }

    #[test]
    fn the_line_says_what_it_counts() {
        let line = |totals| verdict_line(&report(totals, false, false));
        let passed = Totals { pass: 2, skip: 1, ..Totals::default() };
        assert_eq!(line(passed), "PASS: 2 cases judged, all pass; exit code 0");
        let warned = Totals { pass: 2, warn: 1, ..Totals::default() };
        assert_eq!(
            line(warned),
            "PASS: 3 cases judged, 2 pass, 1 warns (--strict would make that exit code 1); exit code 0"
        );
        let skipped = Totals { skip: 5, ..Totals::default() };
        assert_eq!(line(skipped), "NOTHING JUDGED: 5 cases, none applies to what this server offers; exit code 3");
    }
}
