//! What the data promises: cases, requirements and faults.

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use mcp_conformance::case::{Body, Case, reasons};
use mcp_conformance::spec::{Catalogue, Revision};

use crate::builtin::cases;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("data/titles-are-unique", titles_are_unique),
        trial("data/every-case-names-a-fault", every_case_names_a_fault),
        trial("data/there-are-enough-cases", there_are_enough_cases),
        trial("data/every-case-has-a-chief-requirement-in-each-revision", every_case_has_a_chief_requirement),
        trial("data/a-reason-is-for-a-requirement-without-a-case", a_reason_is_for_a_requirement_without_a_case),
        trial("data/every-requirement-has-a-link", every_requirement_has_a_link),
    ]
}

fn titles_are_unique() -> Result<(), String> {
    let mut known = BTreeSet::new();
    let twice: Vec<&str> =
        cases().iter().map(|case| case.title.as_str()).filter(|title| !known.insert(*title)).collect();
    if twice.is_empty() { Ok(()) } else { Err(format!("used twice: {}", twice.join("; "))) }
}

fn every_case_names_a_fault() -> Result<(), String> {
    let acts_or_watches = |case: &&std::sync::Arc<Case>| !matches!(case.body, Body::Fuzz(_));
    let named = cases().iter().filter(acts_or_watches);
    let bare: Vec<&str> = named.filter(|case| case.fault.is_none()).map(|case| case.id.as_str()).collect();
    if bare.is_empty() { Ok(()) } else { Err(format!("without a fault: {}", bare.join(", "))) }
}

fn there_are_enough_cases() -> Result<(), String> {
    let count = cases().len();
    if count >= 120 { Ok(()) } else { Err(format!("{count} cases, of at least 120")) }
}

fn every_case_has_a_chief_requirement() -> Result<(), String> {
    for case in cases() {
        for revision in case.revisions.iter() {
            if case.requirement_in(revision).is_none() {
                return Err(format!("{} has no requirement that {revision} states", case.id));
            }
        }
    }
    Ok(())
}

fn a_reason_is_for_a_requirement_without_a_case() -> Result<(), String> {
    let mut known = BTreeSet::new();
    for (reason, id) in reasons() {
        let reason = reason.as_str();
        if Catalogue::embedded().get(id).is_none() {
            return Err(format!("`{reason}` is given for `{id}`, which is no requirement"));
        }
        if !known.insert(id) {
            return Err(format!("`{id}` has more than one reason"));
        }
        let cites = |case: &&std::sync::Arc<mcp_conformance::case::Case>| {
            case.requirements.iter().any(|requirement| requirement.id == id)
        };
        if let Some(case) = cases().iter().find(cites) {
            return Err(format!("`{reason}` is given for `{id}`, and {} checks it", case.id));
        }
    }
    Ok(())
}

fn every_requirement_has_a_link() -> Result<(), String> {
    for requirement in Catalogue::embedded().iter() {
        for revision in requirement.revisions().iter() {
            let link = requirement.link(revision);
            // Some rules stand on one page only, which a link of another revision leads to as well.
            let has_page = requirement.source.contains("{rev}") || requirement.source.contains(revision.as_str());
            let of_revision = !has_page || revision == Revision::V2024_10_07 || link.contains(revision.as_str());
            if !link.starts_with("https://") || !of_revision {
                return Err(format!("{} in {revision}: {link}", requirement.id));
            }
        }
    }
    Ok(())
}
