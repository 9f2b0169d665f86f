//! The cases that a command line names.

use std::path::Path;
use std::sync::Arc;

use mcp_conformance::case::{self, Body, Case, Hint, Selection, Shard};
use mcp_conformance::reference::Fault;
use mcp_conformance::spec::{Revision, RevisionSet};

use super::args::Scope;
use super::error::CliError;
use super::word::RevisionChoice;

/// Every case: ours, and the user's own beside them, sorted by id.
pub(super) fn all(own: Option<&Path>) -> Result<Vec<Case>, CliError> {
    let faults: Vec<&str> = Fault::all().iter().map(|fault| fault.name()).collect();
    Ok(case::load(own, &faults)?)
}

/// The cases that the options select and that run in a revision that may be judged.
pub(super) fn selected(scope: &Scope) -> Result<Vec<Arc<Case>>, CliError> {
    let selection = Selection { select: scope.select.clone(), skip: scope.skip.clone() };
    let revisions = possible(&scope.revision);
    let cases = all(scope.cases.as_deref())?;
    let selected = selection.of(&cases)?.into_iter();
    Ok(selected
        .filter(|case| !case.revisions.intersection(revisions).is_empty())
        .filter(|case| scope.shard.is_none_or(|shard| is_of(shard, case)))
        .cloned()
        .map(Arc::new)
        .collect())
}

/// Whether a case runs in a shard. One that watches runs in each of them, as each sees messages of its own, and
/// so does one that looks at fuzzing, which is split by tool.
fn is_of(shard: Shard, case: &Case) -> bool {
    matches!(case.body, Body::Watch { .. } | Body::Fuzz(_)) || shard.holds(&case.id)
}

/// The hints of a file, if one is named; they may be for any case, selected or not.
pub(super) fn hints(file: Option<&Path>, own: Option<&Path>) -> Result<Vec<Hint>, CliError> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let cases = all(own)?;
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    case::load_hints(file, &ids).map_err(CliError::Hints)
}

/// The revisions that may come to be judged, as far as it is known before the server is asked.
pub(super) fn possible(choices: &[RevisionChoice]) -> RevisionSet {
    let released: RevisionSet = Revision::ALL.into_iter().filter(|revision| !revision.is_draft()).collect();
    if choices.is_empty() {
        return released;
    }
    choices.iter().fold(RevisionSet::default(), |set, choice| match choice {
        RevisionChoice::Named(revision) => set.with(*revision),
        RevisionChoice::Latest => set.union(released),
        RevisionChoice::All => RevisionSet::ALL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_is_judged_on_demand_only() {
        assert!(!possible(&[]).contains(Revision::V2024_10_07));
        assert!(!possible(&[RevisionChoice::Latest]).contains(Revision::V2024_10_07));
        assert!(possible(&[RevisionChoice::All]).contains(Revision::V2024_10_07));
        let named = possible(&[RevisionChoice::Named(Revision::V2024_10_07)]);
        assert_eq!(named.iter().collect::<Vec<_>>(), [Revision::V2024_10_07]);
    }
}
