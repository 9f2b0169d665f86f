//! What the results of a run say: that nothing was found, or that a case found its fault.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Body, Case};
use mcp_conformance::reference::Fault;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::{Finding, Verdict};

use super::printed::{Printed, printed};
use super::reference::{RunResults, cases};

/// The text of an error.
pub(crate) fn describe_error(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Fails if a run found something, had a problem, or judged nothing in a revision.
pub(crate) fn has_no_finding(found: &RunResults) -> Result<(), String> {
    has_no_finding_in(found, &Revision::ALL)
}

/// The same, of which only some revisions have to be judged.
pub(crate) fn has_no_finding_in(found: &RunResults, revisions: &[Revision]) -> Result<(), String> {
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

/// The failure message for a case that passes in no revision.
pub(crate) fn no_pass_message(results: &[&CaseResult]) -> String {
    let outcomes: Vec<String> = results
        .iter()
        .map(|result| {
            format!("{} in {}: {}", result.verdict.as_str(), result.revision, result.reason.as_deref().unwrap_or(""))
        })
        .collect();
    format!("it passes in no revision:\n{}", outcomes.join("\n"))
}

/// The name of the fault that a case names.
pub(crate) fn name_of_fault(case: &Case) -> Result<&str, String> {
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

/// Fails unless a result has findings on the requirements of the case, with evidence and a command.
pub(crate) fn is_red(case: &Case, fault: &str, result: &CaseResult) -> Result<(), String> {
    if !matches!(result.verdict, Verdict::Fail | Verdict::Warn) || result.findings.is_empty() {
        return Err(format!(
            "with the fault `{fault}` in {} the verdict is {} ({})",
            result.revision,
            result.verdict.as_str(),
            result.reason.as_deref().unwrap_or("no reason")
        ));
    }
    // One case checks the rules of others, and its findings are about the requirements of these.
    let checked: Vec<&Case> = match &case.body {
        Body::Fuzz(oracle) if oracle.as_str() == "result-rules" => {
            cases().iter().map(Arc::as_ref).filter(|case| case.is_about_calls()).collect()
        }
        _ => vec![case],
    };
    let known_ids: Vec<&str> =
        checked.iter().flat_map(|case| &case.requirements).map(|requirement| requirement.id.as_str()).collect();
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

/// Fails unless a run of the printed command, in the oldest and the newest revision in which the fault shows, is red.
pub(crate) fn its_fault_turns_it_red(
    case: &Case,
    run: impl Fn(&Printed, Fault, Revision) -> RunResults,
) -> Result<(), String> {
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
        let found = run(printed, fault, revision);
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

/// Fails if a run of the printed command without its fault finds something.
pub(crate) fn its_command_finds_nothing_without_the_fault(
    case: &Case,
    run: impl Fn(&Printed) -> RunResults,
) -> Result<(), String> {
    let printed = printed().get(&case.id).ok_or("`explain` prints no command for it")?;
    let found = run(printed);
    if let Some(other) = found.results.iter().find(|result| result.case != case.id) {
        return Err(format!("the command for one case reports {} as well", other.case));
    }
    has_no_finding_in(&found, &[])
}

/// Whether every case runs under every fault, rather than the case that names the fault and its stimuli.
pub(crate) fn runs_everything() -> bool {
    std::env::var_os("MCP_CONFORMANCE_MATRIX").is_some_and(|value| value == "full")
}

/// Fails if the run had a problem, or another verdict than pass and skip for a case that is not allowed to have one.
pub(crate) fn has_findings_of_only(found: &RunResults, allowed: &[&str]) -> Result<(), String> {
    let summary = found.summary.as_ref().ok_or("the run did not end")?;
    if let Some(problem) = &summary.problem {
        return Err(format!("the run had a problem: {}", problem.message));
    }
    let wrong = found.results.iter().filter(|result| {
        !matches!(result.verdict, Verdict::Pass | Verdict::Skip) && !allowed.contains(&result.case.as_str())
    });
    let texts: Vec<String> = wrong
        .map(|result| {
            let messages: Vec<_> = result.findings.iter().map(|finding| (&finding.message, &finding.actual)).collect();
            format!(
                "{} {} in {}: {:?} {messages:?}",
                result.verdict.as_str(),
                result.case,
                result.revision,
                result.reason
            )
        })
        .collect();
    if let Some(missing) = allowed
        .iter()
        .find(|case| !found.results.iter().any(|result| result.case == **case && !result.findings.is_empty()))
    {
        return Err(format!("{missing} has no finding"));
    }
    if texts.is_empty() { Ok(()) } else { Err(texts.join("\n")) }
}
