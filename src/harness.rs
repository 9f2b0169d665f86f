//! Runs each case as a test of your crate, named by its id.
//!
//! In a test target with `harness = false`, one call makes a test of each case. `cargo test` and `cargo nextest run`
//! list, filter and run them like any other test:
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
//! use mcp_conformance::{Judge, Server, harness};
//!
//! fn main() -> std::process::ExitCode {
//! # const PROGRAM: &str = "./my-server"; /*
//!     harness::main(Judge::new(Server::command(env!("CARGO_BIN_EXE_my-server"))))
//! # */ harness::main(Judge::new(Server::command(PROGRAM)))
//! }
//! ```
//!
//! A server in the process of the test works as well: [`Server::in_process`](crate::Server::in_process).
//!
//! - `cargo test --test conformance tools/` runs the tests with `tools/` in their name, `-- --exact <id>` runs one,
//!   and `-- --list` lists them. The server is not started before the first test runs.
//! - The tests of one process share one run, so that each connection serves many of them. Under `cargo nextest run`,
//!   where each test has a process of its own, a run judges only that case. For a passive case, which sends nothing,
//!   the active cases of its area run too.
//! - A test fails if the case fails in any revision that the server supports; its output has the evidence. A warning
//!   fails it only under [`FailOn::Should`](crate::FailOn). A case that does not apply is ignored, with the reason.
//! - [`Settings::baseline`](crate::Settings::baseline) accepts known findings. The test `baseline` then checks, with a
//!   run of all cases, that no entry is out of date.
//! - Fuzzing is on unless [`Settings::fuzz`](crate::Settings::fuzz) is `None`.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

pub use libtest_mimic;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::case::{Body, Case, SelectedCases};
use crate::event::{CaseResult, ProblemKind};
use crate::judge::{Judge, JudgeError, Part, Server, Settings, block_on, load_cases, select_cases};
use crate::report::{FailOn, Report, test_output};
use crate::verdict::Verdict;

/// The name of the test that checks that no baseline entry is out of date.
const BASELINE_TEST: &str = "baseline";

/// Runs each selected case as a test, as the arguments of the process request.
///
/// # Examples
///
/// ```no_run
/// use mcp_conformance::{Judge, Server, Settings, harness};
///
/// fn main() -> std::process::ExitCode {
///     let settings = Settings { baseline: Some("tests/baseline.jsonc".into()), ..Settings::default() };
///     harness::main(Judge::new(Server::command("./my-server")).settings(settings))
/// }
/// ```
#[must_use = "the process must exit with this code, or a failure is not seen"]
pub fn main(judge: Judge) -> ExitCode {
    let arguments = Arguments::from_args();
    match trials(judge, &arguments) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            // A setting that cannot be used fails one test with the reason, whatever the filters are.
            let message = error.to_string();
            let trial = Trial::test("settings", move || Err(Failed::from(message)));
            libtest_mimic::run(&Arguments { list: arguments.list, ..Arguments::default() }, vec![trial]).exit_code()
        }
    }
}

/// The tests, for a test binary that has others as well. `arguments` determine which of them will run.
///
/// # Errors
/// When a setting cannot be used. Nothing has been started then.
///
/// # Examples
///
/// ```no_run
/// use mcp_conformance::harness::{self, libtest_mimic};
/// use mcp_conformance::{Judge, Server};
///
/// let arguments = libtest_mimic::Arguments::from_args();
/// let mut trials = harness::trials(Judge::new(Server::command("./my-server")), &arguments)?;
/// trials.push(libtest_mimic::Trial::test("one-of-mine", || Ok(())));
/// libtest_mimic::run(&arguments, trials).exit();
/// # Ok::<(), mcp_conformance::JudgeError>(())
/// ```
pub fn trials(judge: Judge, arguments: &Arguments) -> Result<Vec<Trial>, JudgeError> {
    let (server, settings) = judge.parts();
    let known = load_cases(settings.cases.as_deref())?;
    let selected = applicable_cases(server, settings, &known)?;
    let reported = selected.reported();
    let has_baseline = settings.baseline.is_some();
    let requested: BTreeSet<String> =
        reported.iter().map(|case| &case.id).filter(|id| will_run(id, arguments)).cloned().collect();
    let is_whole = requested.len() == reported.len() || (has_baseline && will_run(BASELINE_TEST, arguments));
    let ids: Vec<String> = reported.iter().map(|case| case.id.clone()).collect();
    let pending = PendingRun { judge, known, selected, requested, is_whole };
    let shared = Arc::new(SharedRun(Mutex::new(RunState::Pending(Box::new(pending)))));
    let mut trials: Vec<Trial> = ids
        .into_iter()
        .map(|id| {
            let shared = Arc::clone(&shared);
            Trial::ignorable_test(id.clone(), move || shared.report().and_then(|report| outcome(&report, &id)))
        })
        .collect();
    if has_baseline {
        trials.push(Trial::test(BASELINE_TEST, move || shared.report().and_then(|report| check_baseline(&report))));
    }
    Ok(trials)
}

/// The selected cases that can run with this server and these settings.
fn applicable_cases(server: &Server, settings: &Settings, known: &[Case]) -> Result<SelectedCases, JudgeError> {
    let can_run = |case: &Case| settings.fuzz.is_some() || !matches!(case.body, Body::Fuzz(_));
    Ok(select_cases(settings, known)?.retain(|case| can_run(case) && case.runs_over(server.transport())))
}

/// Whether a test of this name will run, by the rules of libtest.
fn will_run(name: &str, arguments: &Arguments) -> bool {
    let matches = |filter: &String| if arguments.exact { name == filter } else { name.contains(filter.as_str()) };
    // No test is ignored before it runs.
    !arguments.ignored && arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}

/// The one run that the tests of a process share.
struct SharedRun(Mutex<RunState>);

enum RunState {
    Pending(Box<PendingRun>),
    Finished(Result<Arc<Report>, String>),
}

struct PendingRun {
    judge: Judge,
    known: Vec<Case>,
    selected: SelectedCases,
    requested: BTreeSet<String>,
    /// Whether every selected case is judged, rather than those requested.
    is_whole: bool,
}

impl SharedRun {
    /// The report of the run, which the first test that needs it starts.
    fn report(&self) -> Result<Arc<Report>, Failed> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What the other tests see if this one panics.
        let panicked = RunState::Finished(Err("the run that this test shares with others failed".to_owned()));
        let report = match std::mem::replace(&mut *state, panicked) {
            RunState::Finished(report) => report,
            RunState::Pending(run) => run.judge(),
        };
        *state = RunState::Finished(report.clone());
        report.map_err(Failed::from)
    }
}

impl PendingRun {
    fn judge(self) -> Result<Arc<Report>, String> {
        let Self { judge, known, selected, requested, is_whole } = self;
        let (cases, part) = if is_whole {
            (selected, Part::Whole)
        } else {
            (selected.narrow(&requested, &known), Part::Some(requested.into_iter().collect()))
        };
        let report = block_on(judge.judge(&known, cases, part)).and_then(|report| report);
        report.map(Arc::new).map_err(|error| error.to_string())
    }
}

/// The outcome of a test: the verdicts of its case in all revisions.
fn outcome(report: &Report, id: &str) -> Result<Completion, Failed> {
    let results: Vec<&CaseResult> = report.results().filter(|result| result.case == id).collect();
    let verdict = results.iter().filter_map(|result| test_output::effective_verdict(result)).max();
    let fails = match report.options.fail_on {
        FailOn::Must | FailOn::Untested => verdict == Some(Verdict::Fail),
        FailOn::Should => matches!(verdict, Some(Verdict::Fail | Verdict::Warn)),
        FailOn::Never => false,
    };
    if fails {
        return Err(failure_message(&results, id).into());
    }
    match verdict {
        Some(Verdict::Error) => Err(reasons(&results, Verdict::Error).into()),
        Some(Verdict::Skip) => Ok(Completion::ignored_with(reasons(&results, Verdict::Skip))),
        Some(Verdict::Pass | Verdict::Warn | Verdict::Fail) => Ok(Completion::Completed),
        // The baseline accepts every finding.
        None if !results.is_empty() => Ok(Completion::Completed),
        None => outcome_without_result(report),
    }
}

/// The outcome of a test whose case was judged in no revision.
fn outcome_without_result(report: &Report) -> Result<Completion, Failed> {
    let problem = report.summary.as_ref().and_then(|summary| summary.problem.as_ref());
    match problem {
        Some(problem) if problem.kind != ProblemKind::NothingToJudge || report.targets.is_empty() => {
            Err(test_output::problem(problem).into())
        }
        _ => {
            let judged: Vec<&str> = report.targets.iter().map(|target| target.summary.revision.as_str()).collect();
            Ok(Completion::ignored_with(format!("the case applies to none of the revisions {}", judged.join(", "))))
        }
    }
}

/// The reasons of the results with a verdict, each with its revisions.
fn reasons(results: &[&CaseResult], verdict: Verdict) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for result in results.iter().filter(|result| result.verdict == verdict) {
        let reason = test_output::reason(result);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, revisions)) => revisions.push(result.revision.as_str()),
            None => reasons.push((reason, vec![result.revision.as_str()])),
        }
    }
    let lines: Vec<String> = match reasons.as_slice() {
        [(reason, revisions)] if revisions.len() == results.len() => vec![reason.clone()],
        several => several.iter().map(|(reason, in_these)| format!("{reason} ({})", in_these.join(", "))).collect(),
    };
    lines.join("; ")
}

/// The findings of a case, each with its evidence.
fn failure_message(results: &[&CaseResult], id: &str) -> String {
    let mut lines = Vec::new();
    for result in results {
        for finding in result.findings.iter().filter(|finding| finding.accepted.is_none()) {
            lines.push(format!("in {}:", result.revision));
            lines.extend(test_output::lines(finding).into_iter().map(|line| format!("  {line}")));
        }
    }
    lines.push(format!("to run only this case: cargo test -- --exact {id}"));
    lines.join("\n")
}

fn check_baseline(report: &Report) -> Result<(), Failed> {
    let Some(baseline) = &report.baseline else { return Ok(()) };
    let mut messages: Vec<String> = baseline.outdated_messages().collect();
    messages.extend(baseline.expiry_messages());
    if messages.is_empty() { Ok(()) } else { Err(messages.join("\n").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Fault;

    fn run(judge: Judge, arguments: &[&str]) -> libtest_mimic::Conclusion {
        // These tests make others fail on purpose, whose output would be misleading.
        let log = tempfile::NamedTempFile::new().expect("a file");
        let path = log.path().to_str().expect("a Unicode path");
        let own = ["test", "--quiet", "--color=never", "--logfile", path];
        let arguments = Arguments::from_iter(own.into_iter().chain(arguments.iter().copied()));
        let trials = trials(judge, &arguments).expect("valid settings");
        libtest_mimic::run(&arguments, trials)
    }

    fn reference(fault: &str) -> Judge {
        Judge::new(Server::reference([fault.parse::<Fault>().expect("a known fault")]))
    }

    #[test]
    fn only_tests_that_match_the_filter_will_run() {
        let arguments = |arguments: &[&str]| Arguments::from_iter(["test"].iter().chain(arguments));
        assert!(will_run("tools/call", &arguments(&[])) && will_run("tools/call", &arguments(&["tools/"])));
        assert!(!will_run("tools/call", &arguments(&["--exact", "tools"])));
        assert!(
            !will_run("tools/call", &arguments(&["--skip", "call"]))
                && !will_run("tools/call", &arguments(&["--ignored"]))
        );
    }

    #[test]
    fn a_conforming_server_fails_no_test_and_a_fault_fails_its_test() {
        let conforming = run(Judge::new(Server::reference([])), &["lifecycle/"]);
        assert!(conforming.num_failed == 0 && conforming.num_passed > 10, "{conforming:?}");
        let faulty = run(reference("structured-mismatch"), &["--exact", "content/structured-conforms"]);
        assert_eq!((faulty.num_failed, faulty.num_passed), (1, 0));
        // A violated SHOULD rule fails a test only on request.
        let should = reference("unknown-tool-is-error");
        assert_eq!(run(should.clone(), &["--exact", "tools/call/unknown-tool"]).num_failed, 0);
        let strict = should.settings(Settings { fail_on: FailOn::Should, ..Settings::default() });
        assert_eq!(run(strict, &["--exact", "tools/call/unknown-tool"]).num_failed, 1);
    }

    #[test]
    fn a_server_that_does_not_start_fails_every_test() {
        let result = run(Judge::new(Server::command("/no/such/program")), &["tools/list"]);
        assert!(result.num_failed > 0 && result.num_passed == 0 && result.num_ignored == 0, "{result:?}");
    }

    #[test]
    fn a_passive_case_runs_with_its_stimuli_and_no_others() {
        let known = load_cases(None).expect("valid cases");
        let selected = applicable_cases(&Server::reference([]), &Settings::default(), &known).expect("valid settings");
        let narrowed = |id: &str| {
            let narrowed = selected.narrow(&BTreeSet::from([id.to_owned()]), &known);
            let reported: Vec<String> = narrowed.reported().iter().map(|case| case.id.clone()).collect();
            (reported, narrowed.stimuli)
        };
        let provoked = known.iter().find(|case| case.id == "tasks/ids-unique").expect("a passive case with stimuli");
        let stimuli: BTreeSet<String> = provoked.provoked_by().iter().cloned().collect();
        assert_eq!(narrowed(&provoked.id), (vec![provoked.id.clone()], stimuli));
        let active = "tools/call/unknown-tool";
        assert_eq!(narrowed(active), (vec![active.to_owned()], BTreeSet::new()));
    }
}
