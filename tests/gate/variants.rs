//! Conforming servers that are easily mistaken for deviating ones, and faults that must not lead to findings of cases
//! about something else, in this process.

use std::sync::Arc;

use mcp_conformance::internals::case::Case;
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::support::reference::{CONFORMING, cases, judge, revisions_of};
use crate::support::result::has_findings_of_only;
use crate::support::single_causes::SINGLE_CAUSES;
use crate::support::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for variant in CONFORMING.into_iter().filter(|variant| !variant.is_http_only()) {
        let name = format!("case/variant/{variant}/stdio");
        trials.push(trial(name, move || has_findings_of(variant, &[])));
    }
    for (fault, allowed) in SINGLE_CAUSES {
        trials.push(trial(format!("case/single-cause/{fault}"), move || has_findings_of(fault, allowed)));
    }
    trials.push(trial("case/single-cause/an-error-without-a-readable-id", an_error_without_a_readable_id));
    trials
}

/// Runs every case on a server with a fault, and fails unless these cases, and no others, have a finding.
fn has_findings_of(fault: Fault, allowed: &[&str]) -> Result<(), String> {
    let found = judge(FaultSet::from(fault), &revisions_of(fault), cases().to_vec());
    has_findings_of_only(&found, allowed)
}

/// An error without the id of a malformed request is left to the case about that, also where the session saw nothing but
/// one such request.
fn an_error_without_a_readable_id() -> Result<(), String> {
    const WATCHING: &str = "jsonrpc/answered-once";
    let is_malformed = |id: &str| {
        id.starts_with("jsonrpc/invalid-request-") || ["jsonrpc/params-array", "jsonrpc/params-null"].contains(&id)
    };
    let malformed: Vec<&Arc<Case>> = cases().iter().filter(|case| is_malformed(&case.id)).collect();
    if malformed.len() < 4 {
        return Err(format!("{} cases send a malformed request", malformed.len()));
    }
    for case in malformed {
        let chosen: Vec<_> =
            cases().iter().filter(|other| other.id == case.id || other.id == WATCHING).cloned().collect();
        let found = judge(FaultSet::from(Fault::ReadableIdOmitted), &[Revision::V2025_11_25], chosen);
        let result = found.result(WATCHING, Revision::V2025_11_25).ok_or("the case did not run")?;
        if result.verdict != Verdict::Pass {
            return Err(format!("after {}: {:?} {:?}", case.id, result.verdict, result.findings));
        }
    }
    Ok(())
}
