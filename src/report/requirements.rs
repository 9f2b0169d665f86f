//! The status of each requirement in a revision: judged, not applicable, not observed or not judged.
//!
//! It is computed from the case results, since each lists the requirements that it checks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{CaseResult, SkipKind};
use crate::verdict::Verdict;

/// The requirements that the cases of a run check in one revision, by status.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Requirements {
    /// Requirements that at least one case judged.
    pub judged: Vec<String>,
    /// Requirements that do not apply to this server.
    pub not_applicable: Vec<UnjudgedRequirements>,
    /// Requirements for which the server showed no relevant behaviour; a hint may help.
    pub not_observed: Vec<UnjudgedRequirements>,
    /// Requirements that could not be judged, for example because the server had exited.
    pub not_judged: Vec<UnjudgedRequirements>,
}

/// Requirements that were not judged for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct UnjudgedRequirements {
    /// The reason given by the first case.
    pub reason: String,
    /// The requirements.
    pub requirements: Vec<String>,
}

/// The status of a requirement, in ascending order of precedence when several cases check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequirementStatus {
    NotApplicable,
    NotObserved,
    NotJudged,
    Judged,
}

impl Requirements {
    /// Computes the status of each requirement from the results of one revision.
    #[must_use]
    pub fn of(results: &[CaseResult]) -> Self {
        let mut statuses: BTreeMap<&str, (RequirementStatus, &str)> = BTreeMap::new();
        for result in results {
            let status = match (result.verdict, result.skipped) {
                (Verdict::Pass | Verdict::Fail | Verdict::Warn, _) => RequirementStatus::Judged,
                (Verdict::Error, _) => RequirementStatus::NotJudged,
                (Verdict::Skip, Some(SkipKind::NotApplicable)) => RequirementStatus::NotApplicable,
                (Verdict::Skip, Some(SkipKind::NotObserved) | None) => RequirementStatus::NotObserved,
            };
            let reason = result.reason.as_deref().unwrap_or("no reason given");
            for requirement in &result.requirements {
                let known = statuses.entry(requirement).or_insert((status, reason));
                if status > known.0 {
                    *known = (status, reason);
                }
            }
        }
        let mut requirements = Self::default();
        for (id, (status, reason)) in statuses {
            let open = match status {
                RequirementStatus::Judged => {
                    requirements.judged.push(id.to_owned());
                    continue;
                }
                RequirementStatus::NotApplicable => &mut requirements.not_applicable,
                RequirementStatus::NotObserved => &mut requirements.not_observed,
                RequirementStatus::NotJudged => &mut requirements.not_judged,
            };
            match open.iter_mut().find(|known| known.reason == reason) {
                Some(known) => known.requirements.push(id.to_owned()),
                None => {
                    open.push(UnjudgedRequirements { reason: reason.to_owned(), requirements: vec![id.to_owned()] });
                }
            }
        }
        requirements
    }

    /// Whether a requirement was judged.
    #[must_use]
    pub fn has_judged(&self, id: &str) -> bool {
        self.judged.binary_search_by(|judged| judged.as_str().cmp(id)).is_ok()
    }

    /// The requirements that were not judged, by status; a status without requirements is omitted.
    pub fn unjudged(&self) -> impl Iterator<Item = (&'static str, &[UnjudgedRequirements])> {
        let kinds = [
            ("not applicable", self.not_applicable.as_slice()),
            ("not observed", self.not_observed.as_slice()),
            ("not judged", self.not_judged.as_slice()),
        ];
        kinds.into_iter().filter(|(_, open)| !open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    fn result(requirements: &[&str], verdict: Verdict, reason: &str, skipped: Option<SkipKind>) -> CaseResult {
        let template = example().targets[0].results[0].clone();
        let requirements = requirements.iter().map(|id| (*id).to_owned()).collect();
        CaseResult { requirements, verdict, reason: Some(reason.to_owned()), skipped, ..template }
    }

    #[test]
    fn a_case_that_judged_a_requirement_takes_precedence() {
        let results = [
            result(&["a", "b", "c"], Verdict::Skip, "no image was returned", Some(SkipKind::NotObserved)),
            result(&["d", "c"], Verdict::Skip, "it is for servers with tasks", Some(SkipKind::NotApplicable)),
            result(&["b"], Verdict::Warn, "", None),
            result(&["e", "a"], Verdict::Error, "the server had exited", None),
        ];
        let requirements = Requirements::of(&results);
        let open = |reason: &str, id: &str| UnjudgedRequirements {
            reason: reason.to_owned(),
            requirements: vec![id.to_owned()],
        };
        assert_eq!(requirements.judged, ["b"]);
        assert!(requirements.has_judged("b") && !requirements.has_judged("a"));
        assert_eq!(requirements.not_observed, [open("no image was returned", "c")]);
        assert_eq!(requirements.not_applicable, [open("it is for servers with tasks", "d")]);
        let gone = UnjudgedRequirements {
            reason: "the server had exited".to_owned(),
            requirements: vec!["a".to_owned(), "e".to_owned()],
        };
        assert_eq!(requirements.not_judged, [gone]);
        assert_eq!(
            requirements.unjudged().map(|(kind, _)| kind).collect::<Vec<_>>(),
            ["not applicable", "not observed", "not judged"]
        );
    }
}
