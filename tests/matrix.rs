//! Every case in both colours: it passes on the conforming server, and the fault that it names turns it red.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Body, Case, HttpKind};
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::{Finding, Verdict};

use crate::builtin::{
    ENDPOINTS, HTTP_VARIANTS, RunResults, cases, clean, clean_over_http, judge, judge_over_http, variants,
};
use crate::evaluation::fuzz_in;
use crate::reproduce::printed;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("case/the-conforming-server-has-no-finding", the_conforming_server_has_no_finding),
        trial("case/the-conforming-variants-have-no-finding", the_conforming_variants_have_no_finding),
        trial("case/the-conforming-server-has-no-finding-over-http", the_conforming_server_has_no_finding_over_http),
        trial("case/every-fault-is-caught", every_fault_is_named_by_a_case),
    ];
    for case in cases() {
        let (green, red) = (Arc::clone(case), Arc::clone(case));
        if matches!(case.body, Body::Fuzz(_)) {
            trials.push(trial(format!("case/{}/green", case.id), move || it_passes_while_fuzzing(&green)));
            // On a busy machine a climb is lost among the waits; asked for by name, it is tried.
            let by_the_clock = case.id == "fuzz/latency";
            let turns_red = trial(format!("case/{}/red", case.id), move || its_fault_turns_it_red_while_fuzzing(&red));
            trials.push(turns_red.with_ignored_flag(by_the_clock));
            continue;
        }
        trials.push(trial(format!("case/{}/green", case.id), move || it_passes_on_the_conforming_server(&green)));
        trials.push(trial(format!("case/{}/red", case.id), move || its_fault_turns_it_red(&red)));
    }
    trials
}

/// The fault that a case names.
fn fault_of(case: &Case) -> Result<Fault, String> {
    let name = case.fault.as_deref().ok_or("the case names no fault")?;
    name.parse::<Fault>().map_err(|error| error.to_string())
}

/// The revisions in which a case runs and its fault shows.
fn common(case: &Case, fault: Fault) -> Vec<Revision> {
    let shows: BTreeSet<&str> = fault.revisions().iter().map(|revision| revision.name()).collect();
    case.revisions.iter().filter(|revision| shows.contains(revision.as_str())).collect()
}

fn the_conforming_server_has_no_finding() -> Result<(), String> {
    has_no_finding(clean())
}

fn the_conforming_variants_have_no_finding() -> Result<(), String> {
    variants()
        .iter()
        .try_for_each(|(variant, found)| has_no_finding(found).map_err(|told| format!("{variant}: {told}")))
}

/// Every case, those of every transport included, at both endpoints.
fn the_conforming_server_has_no_finding_over_http() -> Result<(), String> {
    let [(_, found), rest @ ..] = clean_over_http() else { return Err("nothing was run".to_owned()) };
    has_no_finding(found)?;
    rest.iter().try_for_each(|(name, found)| has_no_finding_in(found, &[]).map_err(|told| format!("{name}: {told}")))
}

fn has_no_finding(found: &RunResults) -> Result<(), String> {
    has_no_finding_in(found, &Revision::ALL)
}

fn has_no_finding_in(found: &RunResults, revisions: &[Revision]) -> Result<(), String> {
    let summary = found.summary.as_ref().ok_or("the run did not end")?;
    if let Some(problem) = &summary.problem {
        return Err(format!("the run met a problem: {}", problem.message));
    }
    for revision in revisions {
        if !found.results.iter().any(|result| result.revision == *revision) {
            return Err(format!("nothing was judged in {revision}"));
        }
    }
    let wrong: Vec<String> = found
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
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Faults that no case names, because the run as a whole has to bear them: `tests/hostile.rs` does.
const BORNE: [&str; 19] = [
    "auth-path-only",
    "auth-defaults",
    "without-tools",
    "without-tasks",
    "awkward",
    "empty-cursor",
    "choosy-tools",
    "floods",
    "huge-line",
    "deep-nesting",
    "no-newline",
    "never-answers",
    "answers-garbage",
    "answers-empty-object",
    "answers-same-error",
    "ids-wrong-type",
    "slow-start",
    "stderr-noise",
    "hostile-text",
];

fn every_fault_is_named_by_a_case() -> Result<(), String> {
    let named: BTreeSet<&str> = cases().iter().filter_map(|case| case.fault.as_deref()).collect();
    let missed: Vec<&str> = Fault::all()
        .iter()
        .copied()
        .filter(|fault| !fault.is_evaluation_fault())
        .map(Fault::name)
        .filter(|name| !named.contains(name) && !BORNE.contains(name))
        .filter(|name| !HTTP_VARIANTS.iter().any(|variant| variant.name() == *name))
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("no case names {}", missed.join(", "))) }
}

/// What a case that speaks of HTTP says of the conforming server and of its variants.
fn it_passes_over_http(case: &Case) -> Result<(), String> {
    let runs = clean_over_http().iter().flat_map(|(_, found)| &found.results);
    let results: Vec<_> = runs.filter(|result| result.case == case.id).collect();
    if results.iter().any(|result| result.verdict == Verdict::Pass) {
        return Ok(());
    }
    Err(passed_nowhere(&results))
}

/// What a case said that passed in no revision.
fn passed_nowhere(results: &[&CaseResult]) -> String {
    let told: Vec<String> = results
        .iter()
        .map(|result| {
            format!("{} in {}: {}", result.verdict.as_str(), result.revision, result.reason.as_deref().unwrap_or(""))
        })
        .collect();
    format!("it passes in no revision:\n{}", told.join("\n"))
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
    Err(passed_nowhere(&results))
}

/// Fuzzes in every revision that is asked for, and makes the same calls however busy the machine is.
const PATIENTLY: [&str; 4] = ["--fuzz-revisions", "all", "--fuzz-time", "10m"];

/// The conforming server, fuzzed in every revision.
fn fuzzed() -> &'static Result<Vec<CaseResult>, String> {
    static FUZZED: OnceLock<Result<Vec<CaseResult>, String>> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        fuzz_in(&[&["--revision", "all"], &PATIENTLY[..]].concat(), None, 1, folder.path()).map(|fuzzed| fuzzed.results)
    })
}

fn it_passes_while_fuzzing(case: &Case) -> Result<(), String> {
    let results = fuzzed().as_ref().map_err(Clone::clone)?;
    for revision in case.revisions.iter() {
        let result = results.iter().find(|result| result.case == case.id && result.revision == revision);
        let result = result.ok_or_else(|| format!("nothing was judged in {revision}"))?;
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

fn its_fault_turns_it_red_while_fuzzing(case: &Case) -> Result<(), String> {
    let fault = fault_of(case)?;
    let Fault::Evaluation(hidden) = fault else { return Err(format!("`{fault}` is not one for the fuzzer")) };
    let revisions = common(case, fault);
    let (Some(oldest), Some(newest)) = (revisions.first(), revisions.last()) else {
        return Err(format!("the fault `{fault}` shows in no revision that the case runs in"));
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = [&["--revision", oldest.as_str(), "--revision", newest.as_str()], &PATIENTLY[..]].concat();
    let found = fuzz_in(&settings, Some(hidden), 1, folder.path())?.results;
    for revision in [oldest, newest] {
        let result = found.iter().find(|result| result.case == case.id && result.revision == *revision);
        let result = result.ok_or_else(|| format!("nothing was judged in {revision}"))?;
        is_red(case, fault, result)?;
    }
    Ok(())
}

/// Whether a result tells of the fault, in words of the case and with proof.
fn is_red(case: &Case, fault: Fault, result: &CaseResult) -> Result<(), String> {
    if !matches!(result.verdict, Verdict::Fail | Verdict::Warn) || result.findings.is_empty() {
        return Err(format!(
            "with the fault `{fault}` in {} it says {} ({})",
            result.revision,
            result.verdict.as_str(),
            result.reason.as_deref().unwrap_or("no reason")
        ));
    }
    let stated: Vec<&str> = case.requirements.iter().map(|requirement| requirement.id.as_str()).collect();
    if let Some(foreign) = result.findings.iter().find(|finding| !stated.contains(&finding.requirement.as_str())) {
        return Err(format!("a finding speaks for `{}`, which the case does not name", foreign.requirement));
    }
    // What is wrong with a definition, or with many calls together, no single message proves.
    let of_many = |finding: &Finding| finding.counterexample.is_none();
    let unproven =
        |finding: &Finding| finding.reproduce.is_empty() || (finding.evidence.is_empty() && !of_many(finding));
    if result.findings.iter().any(unproven) {
        return Err("a finding comes without evidence, or without a command that replays it".to_owned());
    }
    Ok(())
}

fn its_fault_turns_it_red(case: &Arc<Case>) -> Result<(), String> {
    let printed = printed().get(&case.id).ok_or("`explain` prints no command for it")?;
    let fault = fault_of(case)?;
    let revisions = common(case, fault);
    // The newest is what the command names; the oldest and the newest represent those between them.
    let mut ends: Vec<Revision> = revisions.first().into_iter().chain(revisions.last()).copied().collect();
    ends.dedup();
    if ends.last() != Some(&printed.revision) || printed.fault != fault {
        return Err(format!("the printed command is not about `{fault}` in {:?}", ends.last()));
    }
    for revision in ends {
        let found = if runs_everything() { run_everything(case, fault, revision) } else { printed.run(revision, true) };
        let Some(result) = found.result(&case.id, revision) else {
            return Err(format!("nothing was judged in {revision}: {:?}", found.summary.and_then(|s| s.problem)));
        };
        is_red(case, fault, result)?;
        if result.findings.iter().any(|finding| finding.evidence.is_empty()) {
            return Err("a finding comes without evidence".to_owned());
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
