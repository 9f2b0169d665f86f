//! Each case a test of your crate, named by its id.
//!
//! In a test of yours with `harness = false`, one call makes a trial of each case. `cargo test` and `cargo nextest
//! run` list them, filter them and run them as they do any other test:
//!
//! ```toml
//! [dev-dependencies]
//! mcp-conformance = { version = "0.1", default-features = false, features = ["harness"] }
//!
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! ```no_run
//! // tests/conformance.rs
//! use mcp_conformance::{Judge, harness};
//!
//! fn main() -> std::process::ExitCode {
//! # const PROGRAM: &str = "./my-server"; /*
//!     harness::main(Judge::command([env!("CARGO_BIN_EXE_my-server")]))
//! # */ harness::main(Judge::command([PROGRAM]))
//! }
//! ```
//!
//! A server within the test's own process does as well: [`Judge::in_process`].
//!
//! - `cargo test --test conformance tools/` runs what has `tools/` in its name, `-- --exact <id>` one case,
//!   `-- --list` none: nothing is started until the first trial is.
//! - The trials of one process share one run of the server, so that each connection serves many of them. With
//!   `cargo nextest run`, where each trial has a process of its own, a run judges that case alone. A case that only
//!   watches is given the cases of its area for company, since it sends nothing itself.
//! - A trial fails where the case fails in any revision that the server speaks, with its proof. A warning fails it
//!   under [`FailOn::Should`](crate::FailOn) only. A case that does not apply is ignored, with the reason.
//! - A [`Judge::baseline`] accepts what is known; the trial `baseline` then holds that it says nothing that is not
//!   so any more, by a run of everything.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

pub use libtest_mimic;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::case::{Body, Case};
use crate::event::{CaseResult, ProblemKind};
use crate::judge::{Judge, JudgeError, Part, block_on};
use crate::report::{FailOn, Report, test_output};
use crate::verdict::Verdict;

/// The trial that holds a baseline to what a whole run finds.
const BASELINE: &str = "baseline";

/// Runs each selected case as a test, as the arguments of the process say.
///
/// # Examples
///
/// ```no_run
/// use mcp_conformance::{Judge, harness};
///
/// fn main() -> std::process::ExitCode {
///     harness::main(Judge::command(["./my-server"]).baseline("tests/baseline.jsonc"))
/// }
/// ```
#[must_use = "the process has to end with this code for a failure to be seen"]
pub fn main(judge: Judge) -> ExitCode {
    let arguments = Arguments::from_args();
    match trials(judge, &arguments) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            // A setting that cannot be used is one failing test with the reason, however it is filtered.
            let told = error.to_string();
            let trial = Trial::test("settings", move || Err(Failed::from(told)));
            libtest_mimic::run(&Arguments { list: arguments.list, ..Arguments::default() }, vec![trial]).exit_code()
        }
    }
}

/// The trials, for a test binary that has others as well. The `arguments` say which of them will be run.
///
/// # Errors
/// When a setting of the judge cannot be used. Nothing is started yet.
///
/// # Examples
///
/// ```no_run
/// use mcp_conformance::harness::{self, libtest_mimic};
/// use mcp_conformance::Judge;
///
/// let arguments = libtest_mimic::Arguments::from_args();
/// let mut trials = harness::trials(Judge::command(["./my-server"]), &arguments)?;
/// trials.push(libtest_mimic::Trial::test("one-of-mine", || Ok(())));
/// libtest_mimic::run(&arguments, trials).exit();
/// # Ok::<(), mcp_conformance::JudgeError>(())
/// ```
pub fn trials(judge: Judge, arguments: &Arguments) -> Result<Vec<Trial>, JudgeError> {
    let all = judge.all_cases()?;
    let selected = judge.selected(&all)?;
    let baseline = judge.has_baseline();
    let wanted: BTreeSet<String> =
        selected.iter().map(|case| &case.id).filter(|id| runs(id, arguments)).cloned().collect();
    let whole = wanted.len() == selected.len() || (baseline && runs(BASELINE, arguments));
    let ids: Vec<String> = selected.iter().map(|case| case.id.clone()).collect();
    let shared =
        Arc::new(Shared { once: Mutex::new(Once::Asked { judge: Box::new(judge), all, selected, wanted, whole }) });
    let mut trials: Vec<Trial> = ids
        .into_iter()
        .map(|id| {
            let shared = Arc::clone(&shared);
            Trial::ignorable_test(id.clone(), move || shared.report().and_then(|report| outcome(&report, &id)))
        })
        .collect();
    if baseline {
        trials.push(Trial::test(BASELINE, move || shared.report().and_then(|report| up_to_date(&report))));
    }
    Ok(trials)
}

/// Whether a trial of this name will be run, by the rules of libtest.
fn runs(name: &str, arguments: &Arguments) -> bool {
    let fits = |filter: &String| if arguments.exact { name == filter } else { name.contains(filter.as_str()) };
    // No trial is ignored before it runs.
    !arguments.ignored && arguments.filter.as_ref().is_none_or(fits) && !arguments.skip.iter().any(fits)
}

/// The one run that the trials of a process share.
struct Shared {
    once: Mutex<Once>,
}

enum Once {
    Asked { judge: Box<Judge>, all: Vec<Case>, selected: Vec<Arc<Case>>, wanted: BTreeSet<String>, whole: bool },
    Known(Result<Arc<Report>, String>),
}

impl Shared {
    /// The report, for which the first trial that asks has everybody judged.
    fn report(&self) -> Result<Arc<Report>, Failed> {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = Once::Known(Err("the run that this trial shares with others has failed".to_owned()));
        let known = match std::mem::replace(&mut *once, unknown) {
            Once::Known(known) => known,
            Once::Asked { judge, all, selected, wanted, whole } => {
                let (cases, part) =
                    if whole { (selected, Part::Whole) } else { (with_company(&selected, &wanted), some(&wanted)) };
                let judged = block_on(judge.judge(&all, cases, part)).and_then(|report| report);
                judged.map(Arc::new).map_err(|error| error.to_string())
            }
        };
        *once = Once::Known(known.clone());
        known.map_err(Failed::from)
    }
}

fn some(wanted: &BTreeSet<String>) -> Part {
    Part::Some(wanted.iter().cloned().collect())
}

/// The wanted cases, and what those among them that only watch are to see.
fn with_company(selected: &[Arc<Case>], wanted: &BTreeSet<String>) -> Vec<Arc<Case>> {
    let area = |case: &Case| case.id.split('/').next().unwrap_or_default().to_owned();
    let is_wanted = |case: &Case| wanted.contains(&case.id);
    let watched: BTreeSet<String> = selected
        .iter()
        .filter(|case| is_wanted(case) && matches!(case.body, Body::Watch { .. }))
        .map(|case| area(case))
        .collect();
    let keeps_company = |case: &Case| matches!(case.body, Body::Act(_)) && watched.contains(&area(case));
    selected.iter().filter(|case| is_wanted(case) || keeps_company(case)).cloned().collect()
}

/// What a case says of the server, all revisions together.
fn outcome(report: &Report, id: &str) -> Result<Completion, Failed> {
    let results: Vec<&CaseResult> = report.results().filter(|result| result.case == id).collect();
    let verdict = results.iter().filter_map(|result| test_output::effective_verdict(result)).max();
    let fails = match report.options.fail_on {
        FailOn::Must => verdict == Some(Verdict::Fail),
        FailOn::Should => matches!(verdict, Some(Verdict::Fail | Verdict::Warn)),
        FailOn::Never => false,
    };
    if fails {
        return Err(proof(&results, id).into());
    }
    match verdict {
        Some(Verdict::Error) => Err(reasons(&results, Verdict::Error).into()),
        Some(Verdict::Skip) => Ok(Completion::ignored_with(reasons(&results, Verdict::Skip))),
        Some(Verdict::Pass | Verdict::Warn | Verdict::Fail) => Ok(Completion::Completed),
        // All that it finds is accepted.
        None if !results.is_empty() => Ok(Completion::Completed),
        None => unseen(report),
    }
}

/// What it means that a case was judged in no revision.
fn unseen(report: &Report) -> Result<Completion, Failed> {
    let problem = report.summary.as_ref().and_then(|summary| summary.problem.as_ref());
    match problem {
        Some(problem) if problem.kind != ProblemKind::NothingToJudge || report.targets.is_empty() => {
            Err(test_output::problem(problem).into())
        }
        _ => {
            let spoken: Vec<&str> = report.targets.iter().map(|target| target.summary.revision.as_str()).collect();
            Ok(Completion::ignored_with(format!("it is for other revisions than {}", spoken.join(", "))))
        }
    }
}

/// The reasons of the results with a verdict, each with its revisions.
fn reasons(results: &[&CaseResult], verdict: Verdict) -> String {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for result in results.iter().filter(|result| result.verdict == verdict) {
        let reason = test_output::reason(result);
        match told.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, revisions)) => revisions.push(result.revision.as_str()),
            None => told.push((reason, vec![result.revision.as_str()])),
        }
    }
    let lines: Vec<String> = match told.as_slice() {
        [(reason, revisions)] if revisions.len() == results.len() => vec![reason.clone()],
        several => several.iter().map(|(reason, of)| format!("{reason} ({})", of.join(", "))).collect(),
    };
    lines.join("; ")
}

/// The findings of a case, each with its proof.
fn proof(results: &[&CaseResult], id: &str) -> String {
    let mut lines = Vec::new();
    for result in results {
        for finding in result.findings.iter().filter(|finding| finding.accepted.is_none()) {
            lines.push(format!("in {}:", result.revision));
            lines.extend(test_output::lines(finding).into_iter().map(|line| format!("  {line}")));
        }
    }
    lines.push(format!("this case alone: cargo test -- --exact {id}"));
    lines.join("\n")
}

fn up_to_date(report: &Report) -> Result<(), Failed> {
    let Some(held) = &report.baseline else { return Ok(()) };
    let mut told: Vec<String> = held.complaints().collect();
    told.extend(held.reminders());
    if told.is_empty() { Ok(()) } else { Err(told.join("\n").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(judge: Judge, words: &[&str]) -> libtest_mimic::Conclusion {
        // What fails here is meant to, so it is no part of what these tests print.
        let told = tempfile::NamedTempFile::new().expect("a file");
        let path = told.path().to_str().expect("a name in Unicode");
        let words = ["test", "--quiet", "--color=never", "--logfile", path].into_iter().chain(words.iter().copied());
        let arguments = Arguments::from_iter(words);
        let trials = trials(judge, &arguments).expect("the settings are sound");
        libtest_mimic::run(&arguments, trials)
    }

    #[test]
    fn only_what_is_filtered_for_is_judged() {
        let arguments = |words: &[&str]| Arguments::from_iter(["test"].iter().chain(words));
        assert!(runs("tools/call", &arguments(&[])) && runs("tools/call", &arguments(&["tools/"])));
        assert!(!runs("tools/call", &arguments(&["--exact", "tools"])));
        assert!(
            !runs("tools/call", &arguments(&["--skip", "call"])) && !runs("tools/call", &arguments(&["--ignored"]))
        );
    }

    #[test]
    fn a_conforming_server_fails_no_trial_and_a_fault_fails_its_own() {
        let fine = ended(Judge::built_in([]), &["lifecycle/"]);
        assert!(fine.num_failed == 0 && fine.num_passed > 10, "{fine:?}");
        let fault: crate::reference::Fault = "structured-mismatch".parse().expect("it is known");
        let broken = ended(Judge::built_in([fault]), &["--exact", "content/structured-conforms"]);
        assert_eq!((broken.num_failed, broken.num_passed), (1, 0));
        // What only ought to be is no failure, unless it is asked for.
        let slack: crate::reference::Fault = "unknown-tool-is-error".parse().expect("it is known");
        let lenient = Judge::built_in([slack]);
        assert_eq!(ended(lenient.clone(), &["--exact", "tools/call/unknown-tool"]).num_failed, 0);
        assert_eq!(ended(lenient.fail_on(FailOn::Should), &["--exact", "tools/call/unknown-tool"]).num_failed, 1);
    }

    #[test]
    fn a_server_that_does_not_start_fails_every_trial() {
        let nothing = ended(Judge::command(["/no/such/program"]), &["tools/list"]);
        assert!(nothing.num_failed > 0 && nothing.num_passed == 0 && nothing.num_ignored == 0, "{nothing:?}");
    }

    #[test]
    fn a_case_that_watches_has_its_area_for_company() {
        let judge = Judge::built_in([]);
        let all = judge.all_cases().expect("the cases are sound");
        let selected = judge.selected(&all).expect("all of them");
        let watches = |case: &&Arc<Case>| matches!(case.body, Body::Watch { .. }) && case.id.starts_with("tools/");
        let watching = selected.iter().find(watches).expect("some watch");
        let company = with_company(&selected, &BTreeSet::from([watching.id.clone()]));
        assert!(company.len() > 5 && company.iter().all(|case| case.id.starts_with("tools/")));
        let acts = |case: &&Arc<Case>| matches!(case.body, Body::Act(_));
        let acting = selected.iter().find(acts).expect("some act");
        assert_eq!(with_company(&selected, &BTreeSet::from([acting.id.clone()])).len(), 1);
    }
}
