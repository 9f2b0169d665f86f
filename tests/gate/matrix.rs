//! Every case that needs neither HTTP nor the fuzzer, without and with its fault: it passes on the conforming server, and
//! the fault that it names makes it fail or warn.
//!
//! The server is a task of the same runtime, whose clock is paused: no wait takes time, and no answer is late.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_conformance::internals::case::{Body, Case};
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::verdict::Verdict;

use crate::support::opening_faults;
use crate::support::printed::printed;
use crate::support::reference::{CONFORMING, HTTP_VARIANTS, LARGE_VARIANTS, RunResults, cases, clean, judge, variants};
use crate::support::result::{
    has_no_finding, its_command_finds_nothing_without_the_fault, its_fault_turns_it_red, no_pass_message,
    runs_everything,
};
use crate::support::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("case/the-conforming-server-has-no-finding", the_conforming_server_has_no_finding),
        trial("case/the-conforming-variants-have-no-finding", the_conforming_variants_have_no_finding),
        trial("case/every-fault-is-named-by-a-case", every_fault_is_named_by_a_case),
        trial("reproduce/every-case-has-a-command", every_case_has_a_command),
    ];
    for case in cases().iter().filter(|case| !case.speaks_of_http() && !matches!(case.body, Body::Fuzz(_))) {
        let (green, red) = (Arc::clone(case), Arc::clone(case));
        trials.push(trial(format!("case/{}/green", case.id), move || it_passes_on_the_conforming_server(&green)));
        trials.push(trial(format!("case/{}/red", case.id), move || turns_red(&red)));
    }
    trials
}

fn the_conforming_server_has_no_finding() -> Result<(), String> {
    has_no_finding(clean())
}

fn the_conforming_variants_have_no_finding() -> Result<(), String> {
    variants()
        .iter()
        .try_for_each(|(variant, found)| has_no_finding(found).map_err(|message| format!("{variant}: {message}")))
}

/// Faults that no case names, because they affect a whole run or are no violation; `hostile/` uses some of them.
const FAULTS_WITHOUT_CASE: [&str; 63] = [
    // The fuzzer makes many calls at once: `fuzzing/many-calls-at-once-are-found-and-replayed`.
    "many-calls-exit",
    "many-calls-unanswered",
    // What a schema says of a member besides that of the fault of its case: `case/single-cause/` shows that the case finds it.
    "prompt-argument-title-number",
    "icon-theme-unknown",
    "embedded-meta-array",
    // Another way out of the roots than that of `reads-outside-roots`: `case/single-cause/follows-links-out-of-roots`.
    "follows-links-out-of-roots",
    // Another form of `notification-answered`: `case/single-cause/notification-answered-late`.
    "notification-answered-late",
    // It conforms, if a case whose session ends runs again: `hostile/http/an-ended-session-changes-no-verdict`.
    "http-session-expires",
    // Which case has the finding depends on what it sends: `hostile/http/a-case-that-ends-its-session-has-a-warning`.
    "http-cancellation-ends-session",
    "calls-unanswered",
    // Another violation of the case of `set-level-not-empty`: `case/single-cause/set-level-not-found`.
    "set-level-not-found",
    // Another form of `error-id-null`: `case/single-cause/error-id-empty`.
    "error-id-empty",
    // Further forms of a stream that is not well-formed: `case/http/stream-well-formed/` shows that the case finds them.
    "http-stream-without-data",
    "http-stream-cut-data",
    "parse-error-wedges",
    "long-line-ignored",
    "nested-request-ignored",
    "long-method-exits",
    "long-key-ignored",
    "many-members-exit",
    "empty-params-exit",
    "request-without-id-answered",
    "cancellation-wedges",
    "notification-wedges",
    "auth-bare-challenge",
    "result-null",
    "auth-path-only",
    "auth-defaults",
    "without-tasks",
    "awkward",
    "empty-cursor",
    "choosy-tools",
    "particular-tools",
    "render-kinds",
    "rendered-image-data-url",
    "template-resource-empty",
    "linked-resource-empty",
    "prompt-option-wrapped",
    // Another form of `http-first-part-only`: `case/http/paused-request/` shows that the case finds it.
    "http-parts-decoded",
    "floods",
    "huge-line",
    "deep-nesting",
    "no-newline",
    "never-answers",
    "answers-garbage",
    "empty-after-opening",
    "errors-after-opening",
    "answers-empty-object",
    "answers-same-error",
    "ids-wrong-type",
    "slow-start",
    "slow-answers",
    "slower-answers",
    "slow-in-turn",
    "pauses",
    "slow-calls",
    "slow-tool",
    "lasting-tool",
    "invalid-arguments-ignored",
    "response-without-result",
    "rate-limit-error",
    "stderr-noise",
    "hostile-text",
];

fn every_fault_is_named_by_a_case() -> Result<(), String> {
    let named: BTreeSet<&str> = cases().iter().filter_map(|case| case.fault.as_deref()).collect();
    let missed: Vec<&str> = Fault::all()
        .iter()
        .copied()
        .map(Fault::name)
        .filter(|name| !named.contains(name) && !FAULTS_WITHOUT_CASE.contains(name))
        .filter(|name| {
            !opening_faults::FAULTS.iter().chain(&opening_faults::ENDINGS).any(|(fault, _, _)| fault == name)
        })
        .filter(|name| {
            !HTTP_VARIANTS.iter().chain(&CONFORMING).chain(&LARGE_VARIANTS).any(|variant| variant.name() == *name)
        })
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("no case names {}", missed.join(", "))) }
}

fn it_passes_on_the_conforming_server(case: &Case) -> Result<(), String> {
    its_command_finds_nothing_without_the_fault(case, |printed| printed.run(printed.revision, false))?;
    let found = clean();
    let results: Vec<_> = case.revisions.iter().filter_map(|revision| found.result(&case.id, revision)).collect();
    if results.iter().any(|result| result.verdict == Verdict::Pass) {
        return Ok(());
    }
    let passes = |found: &RunResults| {
        found.results.iter().any(|result| result.case == case.id && result.verdict == Verdict::Pass)
    };
    if variants().iter().any(|(_, found)| passes(found)) {
        return Ok(());
    }
    Err(no_pass_message(&results))
}

fn turns_red(case: &Case) -> Result<(), String> {
    its_fault_turns_it_red(case, |printed, fault, revision| {
        if runs_everything() {
            judge(FaultSet::from(fault), &[revision], cases().to_vec())
        } else {
            printed.run(revision, true)
        }
    })
}

/// The faults that fuzzing finds are not in the program: only the tests have them.
fn every_case_has_a_command() -> Result<(), String> {
    let needed = cases().iter().filter(|case| !matches!(case.body, Body::Fuzz(_)));
    let without: Vec<&str> = needed.map(|case| case.id.as_str()).filter(|id| !printed().contains_key(*id)).collect();
    if without.is_empty() { Ok(()) } else { Err(format!("explain prints no command for {}", without.join(", "))) }
}
