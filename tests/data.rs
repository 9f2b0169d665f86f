//! What the data promises: cases, requirements and faults.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use mcp_conformance::internals::case::{Answer, Body, Case, Coverage, Reason, reasons};
use mcp_conformance::spec::{Catalogue, Level, Requirement, Revision};
use similar::TextDiff;

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
        trial("data/every-requirement-is-answered", every_requirement_is_answered),
        trial("data/no-reason-where-its-like-has-a-case", no_reason_where_its_like_has_a_case),
        trial("data/the-coverage-document-is-up-to-date", the_coverage_document_is_up_to_date),
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
        let cites = |case: &&std::sync::Arc<mcp_conformance::internals::case::Case>| {
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

fn every_requirement_is_answered() -> Result<(), String> {
    let coverage = Coverage::of_shared(cases());
    let unanswered: Vec<&str> = coverage
        .entries
        .iter()
        .filter(|entry| matches!(entry.answer, Answer::None))
        .map(|entry| entry.requirement.id.as_str())
        .collect();
    if unanswered.is_empty() {
        return Ok(());
    }
    Err(format!("neither a case nor a reason answers for {}", unanswered.join(", ")))
}

/// The requirements that have a reason although their like has a case, each with what makes it differ.
const UNLIKE: [(&str, &str); 9] = [
    (
        "auth-audience-validation",
        "its like are about tokens that anybody can make up, this about one that is good for another server",
    ),
    ("auth-no-token-passthrough", "its like are about what is answered, this about what the server sends to others"),
    ("auth-scope-hierarchy", "its like are about tokens that anybody can make up, this about one of a broader scope"),
    (
        "completion-rate-limit",
        "its like are about what is answered, this about how often, which only a flood would show",
    ),
    ("elicit-identity-binding", "its like are about what is asked, this about whom the answers are kept for"),
    (
        "elicit-third-party-credentials",
        "its like are about what is asked, this about what becomes of a login on the server's page",
    ),
    ("errors-no-new-legacy-codes", "its like are about codes that may not be used, this about when one was first used"),
    ("sampling-sensitive-data", "its like are about the shape of messages, this about what they mean to somebody"),
    ("security-rate-limit", "its like are about what is answered, this about how often, which only a flood would show"),
];

/// A MUST that has a reason is looked at again where another requirement of the same shape has a case: one
/// of the same area that applies under the same condition over the same transport, and is a MUST or a rule
/// of the schema too. Then either a case can be made after all, or it stands in the list with what makes it
/// differ. A permission, which nothing breaks, has no like.
fn no_reason_where_its_like_has_a_case() -> Result<(), String> {
    let coverage = Coverage::of_shared(cases());
    let binds = |requirement: &Requirement| matches!(requirement.level, Level::Must | Level::Schema);
    let alike = |one: &Requirement, other: &Requirement| {
        binds(other) && (&one.area, &one.applies_if, one.transport) == (&other.area, &other.applies_if, other.transport)
    };
    let mut excused = BTreeSet::new();
    for entry in &coverage.entries {
        let Answer::Reason(reason) = entry.answer else { continue };
        let requirement = entry.requirement;
        if requirement.level != Level::Must || reason == Reason::Permission {
            continue;
        }
        let like = coverage.entries.iter().find_map(|other| match &other.answer {
            Answer::Cases(cases) if alike(requirement, other.requirement) => Some((&other.requirement.id, cases)),
            _ => None,
        });
        let Some((like, cases)) = like else { continue };
        if !UNLIKE.iter().any(|(id, _)| *id == requirement.id) {
            let (id, reason) = (&requirement.id, reason.as_str());
            return Err(format!(
                "`{id}` is `{reason}`, while `{like}` of the same shape is checked by {}",
                cases.join(", ")
            ));
        }
        excused.insert(requirement.id.as_str());
    }
    match UNLIKE.iter().find(|(id, _)| !excused.contains(id)) {
        Some((id, _)) => Err(format!("`{id}` needs no excuse any more: take it off the list")),
        None => Ok(()),
    }
}

/// `cases/COVERAGE.md` is what `coverage --format markdown --all` writes, below a heading.
fn the_coverage_document_is_up_to_date() -> Result<(), String> {
    const HEADING: &str = "# What is covered

Every requirement of the specification that concerns a server, and the cases that check it or the reason why
none does. This file is written by `UPDATE_GOLDEN=1 cargo test --test suite -- data/the-coverage` from what
`mcp-conformance coverage --format markdown --all` prints; do not edit it.

";
    let command = Command::new(env!("CARGO_BIN_EXE_mcp-conformance"))
        .args(["coverage", "--format", "markdown", "--all"])
        .output()
        .map_err(|error| format!("failed to run coverage: {error}"))?;
    if !command.status.success() {
        return Err(format!("coverage ends with {}:\n{}", command.status, String::from_utf8_lossy(&command.stderr)));
    }
    let actual = format!("{HEADING}{}", String::from_utf8_lossy(&command.stdout));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/COVERAGE.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        return fs::write(&path, actual).map_err(|error| format!("failed to write {}: {error}", path.display()));
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    let diff = TextDiff::from_lines(&expected, &actual).unified_diff().context_radius(0).to_string();
    Err(format!("cases/COVERAGE.md is stale (UPDATE_GOLDEN=1 rewrites it):\n{diff}"))
}
