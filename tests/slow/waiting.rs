//! Servers that are slow, or silent on one kind of request: they are judged like others, without waiting for the same
//! silence again and again.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use mcp_conformance::event::{CaseResult, FuzzSummary};
use mcp_conformance::internals::run::Launcher;
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;
use tempfile::TempDir;

use super::over_http::judge_over_http_with_timeout;
use crate::support::reference::{RunResults, TIMEOUT, cases, judge_at_once, judge_with_timeout};
use crate::support::{PROGRAM, Trial, limits, program, program_command, trial};

/// The revision that the trials use.
const REVISION: Revision = Revision::V2025_11_25;

/// A time limit of a request that no case reaches on a busy machine unless it waits in vain.
const LONG_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("waiting/a-slow-tool-is-used-like-any-other", a_slow_tool_is_used_like_any_other),
        trial("waiting/slow-answers-lose-no-case", || {
            slow_answers_lose_no_case(Fault::SlowAnswers, Duration::from_secs(5), limits::SLOW_ANSWERS)
        }),
        trial("waiting/slower-answers-lose-no-case", || {
            slow_answers_lose_no_case(Fault::SlowerAnswers, Duration::from_secs(5), limits::SLOWER_ANSWERS)
        }),
        trial("waiting/slow-turns-lose-no-case", || {
            slow_answers_lose_no_case(Fault::SlowInTurn, Duration::from_secs(5), limits::SLOW_TURNS)
        }),
        trial("waiting/slow-calls-lose-no-case", || {
            slow_answers_lose_no_case(Fault::SlowCalls, Duration::from_secs(5), limits::SLOW_CALLS)
        }),
        trial("waiting/calls-slower-than-the-timeout-lose-no-case", || {
            slow_answers_lose_no_case(Fault::SlowCalls, Duration::from_secs(3), limits::SLOW_CALLS)
        }),
        trial("waiting/few-processes-with-slow-answers-lose-no-case", || {
            few_processes_at_once_lose_no_case(&Revision::ALL, Fault::SlowAnswers)
        }),
        trial("waiting/few-processes-with-slow-calls-lose-no-case", || {
            few_processes_at_once_lose_no_case(&[REVISION], Fault::SlowCalls)
        }),
        trial("waiting/few-processes-with-slow-turns-lose-no-case", || {
            few_processes_at_once_lose_no_case(&[REVISION], Fault::SlowInTurn)
        }),
        trial("waiting/a-tool-much-slower-than-the-timeout-is-no-finding", a_very_slow_tool_is_no_finding),
        trial("waiting/slow-answers-overlap-over-http", || {
            slow_answers_overlap_over_http(Fault::SlowAnswers, Duration::from_secs(5))
        }),
        trial("waiting/slow-calls-overlap-over-http", || {
            slow_answers_overlap_over_http(Fault::SlowCalls, Duration::from_secs(5))
        }),
        trial("waiting/slow-turns-of-all-sessions-are-no-finding", slow_turns_of_all_sessions_are_no_finding),
        trial("waiting/pauses-are-no-finding", pauses_are_no_finding),
        trial("waiting/a-wedged-process-is-sent-nothing-more", a_wedged_process_is_sent_nothing_more),
        trial("waiting/a-process-that-starts-slowly-is-not-silent", a_process_that_starts_slowly_is_not_silent),
        trial("waiting/a-process-may-take-a-multiple-of-the-first", a_process_may_take_a_multiple_of_the_first),
        trial("waiting/an-idle-process-is-silent", an_idle_process_is_silent),
        trial("waiting/a-process-that-never-starts-is-waited-for-once", a_process_that_never_starts_is_waited_for_once),
        trial("waiting/a-rate-limit-is-no-finding", a_rate_limit_is_no_finding),
        trial("waiting/silence-on-invalid-arguments-is-one-cause", silence_on_invalid_arguments_is_one_cause),
        trial("waiting/a-malformed-response-is-a-response", a_malformed_response_is_a_response),
        trial("waiting/calls-of-a-slow-tool-overlap-while-fuzzing", calls_of_a_slow_tool_overlap_while_fuzzing),
        trial("waiting/a-time-limit-includes-shrinking", a_time_limit_includes_shrinking),
    ]
}

/// Judges the built-in server with these faults; also returns how long that took by the clock of the run, which only
/// waits move on.
fn judge_with(faults: FaultSet, timeout: Duration) -> Result<(RunResults, Duration), String> {
    let launcher = Launcher::Reference(Arc::new(faults));
    let found = judge_with_timeout(launcher, &[REVISION], cases().to_vec(), timeout);
    let summary = found.summary.as_ref().ok_or("the run did not end")?;
    let duration = Duration::from_secs_f64(summary.timing.wall_ms / 1_000.0);
    Ok((found, duration))
}

/// The cases with one of these verdicts.
fn cases_with(found: &RunResults, verdicts: &[Verdict]) -> Vec<String> {
    let results = found.results.iter().filter(|result| verdicts.contains(&result.verdict));
    results.map(|result| format!("{} {}: {:?}", result.verdict.as_str(), result.case, result.reason)).collect()
}

fn a_slow_tool_is_used_like_any_other() -> Result<(), String> {
    slow_answers_lose_no_case(Fault::SlowTool, TIMEOUT, limits::SLOW_TOOL)
}

/// A server that is busy with something else for a while, in the middle of any case.
fn pauses_are_no_finding() -> Result<(), String> {
    let (found, _) = judge_with(FaultSet::from(Fault::Pauses), Duration::from_secs(5))?;
    let findings = cases_with(&found, &[Verdict::Fail, Verdict::Warn, Verdict::Error]);
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// A tool whose first call takes much longer than the timeout is left out, and waited for as long as six of them.
fn a_very_slow_tool_is_no_finding() -> Result<(), String> {
    let (found, _) = judge_with(FaultSet::from(Fault::SlowTool), Duration::from_millis(400))?;
    let answered = found.result("tools/call/answered", REVISION).map(|result| result.verdict);
    // The tool answers although its call was cancelled, which is a warning.
    let findings = cases_with(&found, &[Verdict::Fail, Verdict::Error]);
    if answered == Some(Verdict::Pass) && findings.is_empty() {
        return Ok(());
    }
    Err(format!("tools/call/answered: {answered:?}\n{}", findings.join("\n")))
}

/// A case whose first request is sent to a process of its own while that starts, and its revision.
const ON_OWN_PROCESS: (&str, &str) = ("stateless/initialize-not-modern", "2026-07-28");

/// Such a case with two requests.
const TWO_ON_OWN_PROCESS: (&str, &str) = ("lifecycle/request-before-initialize", "2025-06-18");

/// A case with an ordinary session on a process of its own.
const ON_OTHER_SESSION: (&str, &str) = ("elicitation/form-undeclared", "2025-11-25");

/// Judges a case on a server whose processes do `work` before they read anything, except for the first one; its result.
fn judge_slow_start(selected: (&str, &str), work: &str) -> Result<CaseResult, String> {
    judge_slow_starts(selected, ":", work)
}

/// As [`judge_slow_start`], with other work for the first process.
fn judge_slow_starts((case, revision): (&str, &str), first: &str, work: &str) -> Result<CaseResult, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let script = format!("if mkdir first 2>/dev/null; then {first}; else {work}; fi; exec \"$0\" serve");
    let options =
        ["--fuzz", "off", "--quiet", "--timeout", "1s", "--startup-timeout", "8s", "--report", "json=report.json"];
    let selection = ["--revision", revision, "--select", case, "--", "sh", "-c", &script, PROGRAM];
    let output = program(folder.path(), &[options.as_slice(), &selection].concat())?;
    let text = fs::read_to_string(folder.path().join("report.json")).map_err(|_| output.text)?;
    let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let result = report.results().find(|result| result.case == case);
    result.cloned().ok_or_else(|| format!("{case} is not in the report"))
}

/// A machine that is busy with something else starts one process quickly and another slowly.
fn a_process_that_starts_slowly_is_not_silent() -> Result<(), String> {
    let work = "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done";
    let result = judge_slow_start(ON_OWN_PROCESS, work)?;
    if result.verdict == Verdict::Pass { Ok(()) } else { Err(format!("{result:?}")) }
}

/// A process that does nothing is not waited for as one that starts.
fn an_idle_process_is_silent() -> Result<(), String> {
    let result = judge_slow_start(ON_OWN_PROCESS, "sleep 40")?;
    let is_soon = result.duration_ms < 6_000.0;
    if result.verdict == Verdict::Warn && is_soon { Ok(()) } else { Err(format!("{result:?}")) }
}

/// All processes wait for the same service, which takes longer to serve several of them: idle for longer than usual, and
/// beyond the startup timeout.
fn a_process_may_take_a_multiple_of_the_first() -> Result<(), String> {
    for selected in [ON_OTHER_SESSION, ON_OWN_PROCESS] {
        let result = judge_slow_starts(selected, "sleep 3", "sleep 9")?;
        if result.verdict != Verdict::Pass {
            return Err(format!("{result:?}"));
        }
    }
    Ok(())
}

/// A process that works for ever is waited for as one that starts once, and not for each request.
fn a_process_that_never_starts_is_waited_for_once() -> Result<(), String> {
    let result = judge_slow_start(TWO_ON_OWN_PROCESS, "while :; do :; done")?;
    let is_once = (8_000.0..14_000.0).contains(&result.duration_ms);
    if result.verdict != Verdict::Pass && is_once { Ok(()) } else { Err(format!("{result:?}")) }
}

/// The case about a request of the server that its client leaves unanswered until the server stops waiting: a server as slow
/// as these may still wait when the run ends, and is then not judged by it.
const MAY_STILL_WAIT: &str = "cancellation/timed-out-request";

/// The cases about a call that runs: a server whose calls are all fast is not judged by them.
const ABOUT_RUNNING_CALLS: [&str; 5] = [
    "cancellation/running",
    "cancellation/running-late",
    "cancellation/running-twice",
    "cancellation/not-answered",
    "cancellation/stops",
];

/// Fails unless the verdicts are those of the fast server, within this time.
fn slow_answers_lose_no_case(fault: Fault, timeout: Duration, limit: Duration) -> Result<(), String> {
    let (fast, _) = judge_with(FaultSet::none(), TIMEOUT)?;
    let (slow, duration) = judge_with(FaultSet::from(fault), timeout)?;
    let mut problems = Vec::new();
    for expected in &fast.results {
        let Some(result) = slow.result(&expected.case, expected.revision) else { continue };
        let still_waits = result.case == MAY_STILL_WAIT && result.verdict == Verdict::Skip;
        let runs = ABOUT_RUNNING_CALLS.contains(&result.case.as_str()) && result.verdict == Verdict::Pass;
        if result.verdict != expected.verdict && !still_waits && !runs {
            let verdicts = format!("{:?} instead of {:?}", result.verdict, expected.verdict);
            problems.push(format!("{}: {verdicts}: {:?}", result.case, result.reason));
        }
    }
    if duration > limit {
        let mut slowest: Vec<_> = slow.results.iter().map(|result| (result.duration_ms, &result.case)).collect();
        slowest.sort_by(|left, right| right.0.total_cmp(&left.0));
        slowest.truncate(10);
        problems.push(format!("it took {duration:.1?}; the slowest cases, in milliseconds: {slowest:?}"));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// A slow server of which the user allows few processes at once: none of them waits for what only a further one would do.
fn few_processes_at_once_lose_no_case(revisions: &[Revision], fault: Fault) -> Result<(), String> {
    let launcher = |faults| Launcher::Reference(Arc::new(faults));
    let fast = judge_with_timeout(launcher(FaultSet::none()), revisions, cases().to_vec(), TIMEOUT);
    let problems: Vec<String> = (1..=5)
        .filter_map(|jobs| {
            let faulty = launcher(FaultSet::from(fault));
            let slow = judge_at_once(faulty, revisions, cases().to_vec(), Duration::from_secs(5), jobs);
            let problem = compare_verdicts(&fast, &slow).err()?;
            Some(format!("with {jobs} processes at once:\n{problem}"))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Fails unless a slow server over HTTP gets the verdicts of a fast one, and its cases take at least this many times
/// longer together than the run: they wait side by side.
fn slow_answers_overlap_over_http(fault: Fault, timeout: Duration) -> Result<(), String> {
    const MIN_OVERLAP: f64 = 3.0;
    let areas = ["completion/", "logging/", "prompts/", "resources/", "tools/call/"];
    let selected = || -> Vec<_> {
        cases().iter().filter(|case| areas.iter().any(|area| case.id.starts_with(area))).cloned().collect()
    };
    let fast = judge_over_http_with_timeout(FaultSet::none(), &[REVISION], selected(), TIMEOUT);
    let slow = judge_over_http_with_timeout(FaultSet::from(fault), &[REVISION], selected(), timeout);
    compare_verdicts(&fast, &slow)?;
    let summary = slow.summary.as_ref().ok_or("the run did not end")?;
    let of_cases: f64 = slow.results.iter().map(|result| result.duration_ms).sum();
    let overlap = of_cases / summary.timing.wall_ms;
    if overlap < MIN_OVERLAP {
        return Err(format!(
            "the cases take {:.1} s and the run {:.1} s: {overlap:.1} times, not {MIN_OVERLAP}",
            of_cases / 1_000.0,
            summary.timing.wall_ms / 1_000.0,
        ));
    }
    Ok(())
}

/// Over HTTP, each request waits for those of all other sessions, so that a whole run would take an hour.
fn slow_turns_of_all_sessions_are_no_finding() -> Result<(), String> {
    const SELECTED: [&str; 6] = [
        "jsonrpc/interleaved",
        "jsonrpc/long-message",
        "jsonrpc/params-missing",
        "lifecycle/keeps-answering",
        "ping/",
        "tools/list/",
    ];
    let is_selected = |id: &str| SELECTED.iter().any(|pattern| id.starts_with(pattern));
    let selected: Vec<_> = cases().iter().filter(|case| is_selected(&case.id)).cloned().collect();
    let faults = FaultSet::from(Fault::SlowInTurn);
    let found = judge_over_http_with_timeout(faults, &[REVISION], selected, Duration::from_secs(5));
    let findings = cases_with(&found, &[Verdict::Fail, Verdict::Warn, Verdict::Error]);
    if !findings.is_empty() {
        return Err(findings.join("\n"));
    }
    let passed = cases_with(&found, &[Verdict::Pass]).len();
    if passed < SELECTED.len() { Err(format!("only {passed} cases pass")) } else { Ok(()) }
}

/// Fails unless all that was judged of the fast server has the same verdict.
fn compare_verdicts(fast: &RunResults, slow: &RunResults) -> Result<(), String> {
    let mut problems = Vec::new();
    // More sessions may show what the fast server was not seen to do.
    for expected in fast.results.iter().filter(|result| result.verdict != Verdict::Skip) {
        let verdict = slow.result(&expected.case, expected.revision).map(|result| (result.verdict, &result.reason));
        if verdict.is_none_or(|(verdict, _)| verdict != expected.verdict) {
            problems.push(format!("{}: {verdict:?} instead of {:?}", expected.case, expected.verdict));
        }
    }
    if fast.results.is_empty() {
        return Err("nothing was judged".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// A server takes a request for the rest of a line that is not JSON, and exits at the line after it, as a parser does that reads
/// values and not lines. The case that asks for a response to the broken line says that there was none.
fn a_wedged_process_is_sent_nothing_more() -> Result<(), String> {
    let (found, _) = judge_with(FaultSet::from(Fault::ParseErrorWedges), TIMEOUT)?;
    let verdict = found.result("jsonrpc/parse-error-code", REVISION).map(|result| (result.verdict, &result.reason));
    if verdict.is_some_and(|(verdict, _)| verdict == Verdict::Warn) { Ok(()) } else { Err(format!("{verdict:?}")) }
}

/// Errors that name a rate limit come in the middle of cases, over both transports.
fn a_rate_limit_is_no_finding() -> Result<(), String> {
    let faults = || FaultSet::from(Fault::RateLimitError);
    let (over_stdio, _) = judge_with(faults(), TIMEOUT)?;
    let over_http = judge_over_http_with_timeout(faults(), &[REVISION], cases().to_vec(), TIMEOUT);
    for found in [over_stdio, over_http] {
        let findings = cases_with(&found, &[Verdict::Fail, Verdict::Warn]);
        if !findings.is_empty() {
            return Err(findings.join("\n"));
        }
        let limited = |reason: &String| reason.contains("limits the request rate");
        if !found.results.iter().any(|result| result.reason.as_ref().is_some_and(limited)) {
            return Err("no case names the rate limit".to_owned());
        }
    }
    Ok(())
}

fn silence_on_invalid_arguments_is_one_cause() -> Result<(), String> {
    let (_, fast) = judge_with(FaultSet::none(), TIMEOUT)?;
    let (found, duration) = judge_with(FaultSet::from(Fault::InvalidArgumentsIgnored), TIMEOUT)?;
    let errors = cases_with(&found, &[Verdict::Error]);
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    if cases_with(&found, &[Verdict::Fail]).is_empty() {
        return Err("no case fails".to_owned());
    }
    let limit = fast + TIMEOUT * 3;
    if duration > limit { Err(format!("it took {duration:.1?}, and {fast:.1?} without the fault")) } else { Ok(()) }
}

fn a_malformed_response_is_a_response() -> Result<(), String> {
    let (_, fast) = judge_with(FaultSet::none(), TIMEOUT)?;
    let (found, duration) = judge_with(FaultSet::from(Fault::ResponseWithoutResult), TIMEOUT)?;
    let case = found.result("jsonrpc/message-kind", REVISION).ok_or("the case did not run")?;
    if case.verdict != Verdict::Fail {
        return Err(format!("{:?}: {:?}", case.verdict, case.reason));
    }
    let limit = fast + TIMEOUT;
    if duration > limit {
        return Err(format!("it took {duration:.1?}, and {fast:.1?} without the fault"));
    }
    // Over HTTP, time passes by itself: no case waits for something after the response.
    let faults = FaultSet::from(Fault::ResponseWithoutResult);
    let found = judge_over_http_with_timeout(faults, &[REVISION], cases().to_vec(), LONG_TIMEOUT);
    let waited = found.results.iter().filter(|result| result.duration_ms >= LONG_TIMEOUT.as_secs_f64() * 1_000.0);
    let waited: Vec<_> = waited.map(|result| &result.case).collect();
    if waited.is_empty() { Ok(()) } else { Err(format!("these cases waited for another response: {waited:?}")) }
}

/// Fuzzes the slow tool of the built-in server with these faults for a limited time.
fn fuzz(faults: &[&str], seconds: u64) -> Result<(Report, FuzzSummary), String> {
    let in_context = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(in_context)?;
    let path = folder.path().join("report.json");
    let mut command = program_command();
    command.current_dir(folder.path()).args(["--select", "fuzz/*", "--revision", REVISION.as_str()]);
    command.args(["--timeout", "2s", "--tool", "count", "--regressions", "none", "--quiet"]);
    command.args([format!("--fuzz-time={seconds}s"), format!("--report=json={}", path.display())]);
    command.args(["--", PROGRAM, "serve"]);
    for fault in faults {
        command.args(["--fault", fault]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_err(in_context)?;
    let text = fs::read_to_string(&path).map_err(in_context)?;
    let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let summary = report.targets.iter().find_map(|target| target.summary.fuzz.clone()).ok_or("nothing was fuzzed")?;
    let limit = Duration::from_secs(seconds) + limits::here(limits::OVER_TIME_LIMIT);
    let duration = Duration::from_secs_f64(summary.wall_ms / 1_000.0);
    if duration > limit { Err(format!("fuzzing took {duration:.1?}, not {seconds} s")) } else { Ok((report, summary)) }
}

fn calls_of_a_slow_tool_overlap_while_fuzzing() -> Result<(), String> {
    const SECONDS: u64 = 8;
    let (_, summary) = fuzz(&[Fault::SlowTool.name()], SECONDS)?;
    // One after the other, there would be six.
    if summary.calls < 24 { Err(format!("{} calls in {SECONDS} s", summary.calls)) } else { Ok(()) }
}

fn a_time_limit_includes_shrinking() -> Result<(), String> {
    let (report, _) = fuzz(&[Fault::SlowTool.name(), Fault::InvalidArgumentsIgnored.name()], 12)?;
    let hang = report.results().any(|result| result.case == "fuzz/hang" && !result.findings.is_empty());
    if hang { Ok(()) } else { Err("no hang was found".to_owned()) }
}
