//! Every case of the fuzzer, without and with its fault.

use std::sync::{Arc, OnceLock};

use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Body, Case};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use super::evaluation::fuzz_in;
use super::sequences;
use crate::support::reference::cases;
use crate::support::result::{is_red, name_of_fault, no_pass_message};
use crate::support::{Trial, evaluation_faults as faults, state_faults, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for case in cases().iter().filter(|case| matches!(case.body, Body::Fuzz(_))) {
        let (green, red) = (Arc::clone(case), Arc::clone(case));
        trials.push(trial(format!("case/{}/green", case.id), move || it_passes_while_fuzzing(&green)));
        // Depends on timing, which is unreliable on a busy machine, so that this trial runs only on request.
        let depends_on_timing = case.id == "fuzz/latency";
        let turns_red = trial(format!("case/{}/red", case.id), move || its_fault_turns_it_red_while_fuzzing(&red));
        trials.push(turns_red.with_ignored_flag(depends_on_timing));
    }
    trials
}

/// Options that fuzz every selected revision, with enough time for the same calls on a busy machine.
const THOROUGH_FUZZING: [&str; 4] = ["--fuzz-revisions", "all", "--fuzz-time", "10m"];

/// The results of fuzzing the conforming server in every revision.
fn fuzzed_conforming_server() -> &'static Result<Vec<CaseResult>, String> {
    static FUZZED: OnceLock<Result<Vec<CaseResult>, String>> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        fuzz_in(&[&["--revision", "all"], &THOROUGH_FUZZING[..]].concat(), None, 1, folder.path())
            .map(|fuzzed| fuzzed.results)
    })
}

/// The results of calls in sequences of the conforming application.
fn conforming_sequences() -> &'static Result<Report, String> {
    static JUDGED: OnceLock<Result<Report, String>> = OnceLock::new();
    JUDGED.get_or_init(|| sequences::judge("plain", None, 1, &SEQUENCES))
}

/// The settings for calls in sequences: the oldest and the newest revision, and tools that delete.
const SEQUENCES: [&str; 9] = [
    "--call-destructive",
    "--regressions",
    "none",
    "--revision",
    "2025-06-18",
    "--revision",
    "2026-07-28",
    "--fuzz-revisions",
    "all",
];

fn it_passes_in_sequences(case: &Case) -> Result<(), String> {
    let report = conforming_sequences().as_ref().map_err(Clone::clone)?;
    let results: Vec<&CaseResult> = report.results().filter(|result| result.case == case.id).collect();
    if results.len() == 2 && results.iter().all(|result| result.verdict == Verdict::Pass) {
        return Ok(());
    }
    Err(no_pass_message(&results))
}

fn its_fault_turns_it_red_in_sequences(case: &Case) -> Result<(), String> {
    let name = name_of_fault(case)?;
    let fault = state_faults::find(name).ok_or_else(|| format!("no state fault is named `{name}`"))?;
    let report = sequences::judge("plain", Some(fault), 1, &SEQUENCES)?;
    let results: Vec<&CaseResult> = report.results().filter(|result| result.case == case.id).collect();
    if results.len() != 2 {
        return Err(format!("the case was judged in {} revisions", results.len()));
    }
    results.into_iter().try_for_each(|result| is_red(case, name, result))
}

fn it_passes_while_fuzzing(case: &Case) -> Result<(), String> {
    if is_sequence(case) {
        return it_passes_in_sequences(case);
    }
    let results = fuzzed_conforming_server().as_ref().map_err(Clone::clone)?;
    for revision in case.revisions.iter() {
        let result = results.iter().find(|result| result.case == case.id && result.revision == revision);
        let result = result.ok_or_else(|| format!("no case was judged in {revision}"))?;
        if result.verdict != Verdict::Pass {
            return Err(format!(
                "{} in {revision}: {:?} {:#?}",
                result.verdict.as_str(),
                result.reason,
                result.findings
            ));
        }
    }
    Ok(())
}

/// Whether only calls in sequences show the fault of a case.
fn is_sequence(case: &Case) -> bool {
    matches!(&case.body, Body::Fuzz(oracle) if oracle.needs_sequence())
}

fn its_fault_turns_it_red_while_fuzzing(case: &Case) -> Result<(), String> {
    if is_sequence(case) {
        return its_fault_turns_it_red_in_sequences(case);
    }
    let fault = faults::find(name_of_fault(case)?)?;
    let shows = |revision: &Revision| revision.as_str() >= faults::FIRST_REVISION.name();
    let revisions: Vec<Revision> = case.revisions.iter().filter(shows).collect();
    let (Some(oldest), Some(newest)) = (revisions.first(), revisions.last()) else {
        return Err(format!("the fault `{}` shows in no revision that the case runs in", fault.name()));
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = [&["--revision", oldest.as_str(), "--revision", newest.as_str()], &THOROUGH_FUZZING[..]].concat();
    let found = fuzz_in(&settings, Some(fault), 1, folder.path())?.results;
    for revision in [oldest, newest] {
        let result = found.iter().find(|result| result.case == case.id && result.revision == *revision);
        let result = result.ok_or_else(|| format!("no case was judged in {revision}"))?;
        is_red(case, fault.name(), result)?;
    }
    Ok(())
}
