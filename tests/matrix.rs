//! Every case without and with its fault: it passes on the conforming server, and the fault that it names makes it fail
//! or warn.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Body, Case, HttpKind};
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::{Finding, Verdict};

use crate::builtin::{
    ENDPOINTS, HTTP_VARIANTS, RunResults, cases, clean, clean_over_http, judge, judge_over_http, variants,
};
use crate::evaluation::{faults, fuzz_in};
use crate::openings;
use crate::reproduce::printed;
use crate::sequences;
use crate::variants::CONFORMING;
use crate::{trial, waiting_trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("case/the-conforming-server-has-no-finding", the_conforming_server_has_no_finding),
        trial("case/the-conforming-variants-have-no-finding", the_conforming_variants_have_no_finding),
        trial("case/the-conforming-server-has-no-finding-over-http", the_conforming_server_has_no_finding_over_http),
        trial("case/every-fault-is-named-by-a-case", every_fault_is_named_by_a_case),
    ];
    for case in cases() {
        let (green, red) = (Arc::clone(case), Arc::clone(case));
        if matches!(case.body, Body::Fuzz(_)) {
            trials.push(trial(format!("case/{}/green", case.id), move || it_passes_while_fuzzing(&green)));
            // Depends on timing, which is unreliable on a busy machine, so that this trial runs only on request.
            let depends_on_timing = case.id == "fuzz/latency";
            let turns_red = trial(format!("case/{}/red", case.id), move || its_fault_turns_it_red_while_fuzzing(&red));
            trials.push(turns_red.with_ignored_flag(depends_on_timing));
            continue;
        }
        trials
            .push(waiting_trial(format!("case/{}/green", case.id), move || it_passes_on_the_conforming_server(&green)));
        trials.push(waiting_trial(format!("case/{}/red", case.id), move || its_fault_turns_it_red(&red)));
    }
    trials
}

/// The name of the fault that a case names.
fn name_of_fault(case: &Case) -> Result<&str, String> {
    case.fault.as_deref().ok_or_else(|| "the case names no fault".to_owned())
}

/// The fault of the reference server that a case names.
fn fault_of(case: &Case) -> Result<Fault, String> {
    name_of_fault(case)?.parse::<Fault>().map_err(|error| error.to_string())
}

/// The revisions in which a case runs and its fault shows.
fn shared_revisions(case: &Case, fault: Fault) -> Vec<Revision> {
    let shows: BTreeSet<&str> = fault.revisions().iter().map(|revision| revision.name()).collect();
    case.revisions.iter().filter(|revision| shows.contains(revision.as_str())).collect()
}

fn the_conforming_server_has_no_finding() -> Result<(), String> {
    has_no_finding(clean())
}

fn the_conforming_variants_have_no_finding() -> Result<(), String> {
    variants()
        .iter()
        .try_for_each(|(variant, found)| has_no_finding(found).map_err(|message| format!("{variant}: {message}")))
}

/// Every case, those of every transport included, at both endpoints.
fn the_conforming_server_has_no_finding_over_http() -> Result<(), String> {
    let [(_, found), rest @ ..] = clean_over_http() else { return Err("no endpoint was judged".to_owned()) };
    has_no_finding(found)?;
    rest.iter()
        .try_for_each(|(name, found)| has_no_finding_in(found, &[]).map_err(|message| format!("{name}: {message}")))
}

fn has_no_finding(found: &RunResults) -> Result<(), String> {
    has_no_finding_in(found, &Revision::ALL)
}

fn has_no_finding_in(found: &RunResults, revisions: &[Revision]) -> Result<(), String> {
    let summary = found.summary.as_ref().ok_or("the run did not end")?;
    if let Some(problem) = &summary.problem {
        return Err(format!("the run had a problem: {}", problem.message));
    }
    for revision in revisions {
        if !found.results.iter().any(|result| result.revision == *revision) {
            return Err(format!("no case was judged in {revision}"));
        }
    }
    let findings: Vec<String> = found
        .results
        .iter()
        .filter(|result| !matches!(result.verdict, Verdict::Pass | Verdict::Skip))
        .map(|result| {
            format!(
                "{} {} in {}: {:?} {:#?}",
                result.verdict.as_str(),
                result.case,
                result.revision,
                result.reason,
                result.findings
            )
        })
        .collect();
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Faults that no case names, because they affect a whole run or are no violation; `tests/hostile.rs` uses some of them.
const FAULTS_WITHOUT_CASE: [&str; 38] = [
    // Further forms of a stream that is not well-formed: `tests/variants.rs` shows that the case finds them.
    "http-stream-without-data",
    "http-stream-cut-data",
    "parse-error-wedges",
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
    "floods",
    "huge-line",
    "deep-nesting",
    "no-newline",
    "never-answers",
    "answers-garbage",
    "silent-after-opening",
    "empty-after-opening",
    "errors-after-opening",
    "answers-empty-object",
    "answers-same-error",
    "ids-wrong-type",
    "slow-start",
    "slow-answers",
    "slow-calls",
    "slow-tool",
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
        .filter(|name| !openings::FAULTS.iter().any(|(fault, _, _)| fault == name))
        .filter(|name| !HTTP_VARIANTS.iter().chain(&CONFORMING).any(|variant| variant.name() == *name))
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("no case names {}", missed.join(", "))) }
}

/// Fails unless a case about HTTP passes on the conforming server or one of its variants.
fn it_passes_over_http(case: &Case) -> Result<(), String> {
    let runs = clean_over_http().iter().flat_map(|(_, found)| &found.results);
    let results: Vec<_> = runs.filter(|result| result.case == case.id).collect();
    if results.iter().any(|result| result.verdict == Verdict::Pass) {
        return Ok(());
    }
    Err(no_pass_message(&results))
}

/// The failure message for a case that passes in no revision.
fn no_pass_message(results: &[&CaseResult]) -> String {
    let outcomes: Vec<String> = results
        .iter()
        .map(|result| {
            format!("{} in {}: {}", result.verdict.as_str(), result.revision, result.reason.as_deref().unwrap_or(""))
        })
        .collect();
    format!("it passes in no revision:\n{}", outcomes.join("\n"))
}

fn it_passes_on_the_conforming_server(case: &Case) -> Result<(), String> {
    its_command_finds_nothing_without_the_fault(case)?;
    if case.speaks_of_http() {
        return it_passes_over_http(case);
    }
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
    let fault = sequences::faults::find(name).ok_or_else(|| format!("no state fault is named `{name}`"))?;
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

/// Fails unless a result has findings on the requirements of the case, with evidence and a command.
fn is_red(case: &Case, fault: &str, result: &CaseResult) -> Result<(), String> {
    if !matches!(result.verdict, Verdict::Fail | Verdict::Warn) || result.findings.is_empty() {
        return Err(format!(
            "with the fault `{fault}` in {} the verdict is {} ({})",
            result.revision,
            result.verdict.as_str(),
            result.reason.as_deref().unwrap_or("no reason")
        ));
    }
    let known_ids: Vec<&str> = case.requirements.iter().map(|requirement| requirement.id.as_str()).collect();
    if let Some(finding) = result.findings.iter().find(|finding| !known_ids.contains(&finding.requirement.as_str())) {
        return Err(format!("a finding is about `{}`, which the case does not name", finding.requirement));
    }
    // A finding on a definition or on many calls has no single message as evidence.
    let has_no_message = |finding: &Finding| finding.counterexample.is_none();
    let lacks_proof =
        |finding: &Finding| finding.reproduce.is_empty() || (finding.evidence.is_empty() && !has_no_message(finding));
    if result.findings.iter().any(lacks_proof) {
        return Err("a finding has no evidence, or no command that reproduces it".to_owned());
    }
    Ok(())
}

fn its_fault_turns_it_red(case: &Arc<Case>) -> Result<(), String> {
    let printed = printed().get(&case.id).ok_or("`explain` prints no command for it")?;
    let fault = fault_of(case)?;
    let revisions = shared_revisions(case, fault);
    // The command names the newest revision; the oldest and the newest represent those between them.
    let mut ends: Vec<Revision> = revisions.first().into_iter().chain(revisions.last()).copied().collect();
    ends.dedup();
    if ends.last() != Some(&printed.revision) || printed.fault != fault {
        return Err(format!("the printed command is not about `{fault}` in {:?}", ends.last()));
    }
    for revision in ends {
        let found = if runs_everything() { run_everything(case, fault, revision) } else { printed.run(revision, true) };
        let Some(result) = found.result(&case.id, revision) else {
            return Err(format!("no case was judged in {revision}: {:?}", found.summary.and_then(|s| s.problem)));
        };
        is_red(case, fault.name(), result)?;
        if result.findings.iter().any(|finding| finding.evidence.is_empty()) {
            return Err("a finding has no evidence".to_owned());
        }
    }
    Ok(())
}

/// Without its fault, the printed command finds nothing.
fn its_command_finds_nothing_without_the_fault(case: &Case) -> Result<(), String> {
    let printed = printed().get(&case.id).ok_or("`explain` prints no command for it")?;
    let found = printed.run(printed.revision, false);
    if let Some(other) = found.results.iter().find(|result| result.case != case.id) {
        return Err(format!("the command for one case reports {} as well", other.case));
    }
    has_no_finding_in(&found, &[])
}

/// Whether every case runs under every fault, rather than the case that names the fault and its stimuli.
fn runs_everything() -> bool {
    std::env::var_os("MCP_CONFORMANCE_MATRIX").is_some_and(|value| value == "full")
}

/// All cases against the server with a fault: the fault may show in what any of them sends.
fn run_everything(case: &Case, fault: Fault, revision: Revision) -> RunResults {
    if !case.speaks_of_http() {
        return judge(FaultSet::from(fault), &[revision], cases().to_vec());
    }
    let older = case.http_kind() == Some(HttpKind::Sse);
    judge_over_http(FaultSet::from(fault), &[revision], cases().to_vec(), ENDPOINTS[usize::from(older)])
}
