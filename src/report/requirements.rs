//! What a run came to for each requirement of a revision: judged, not applicable, not shown or not judged.
//!
//! Worked out from the results of the cases alone, since each says which requirements it speaks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{CaseResult, Skipped};
use crate::verdict::Verdict;

/// The requirements that the cases of a run speak for in one revision, by what came of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Requirements {
    /// Those that at least one case judged.
    pub judged: Vec<String>,
    /// Those that are for servers of another kind.
    pub not_applicable: Vec<OpenRequirements>,
    /// Those for which the server showed nothing that could have been judged; a hint may help.
    pub not_observed: Vec<OpenRequirements>,
    /// Those that could not be judged, for example because the server was gone.
    pub not_judged: Vec<OpenRequirements>,
}

/// Requirements that were left open for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenRequirements {
    /// The reason, as the first case gave it.
    pub reason: String,
    /// The requirements.
    pub requirements: Vec<String>,
}

/// What came of a requirement. Of several cases the greatest tells: one that judged it outweighs all others, and
/// one that might have judged it a case that does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    NotApplicable,
    NotShown,
    NotJudged,
    Judged,
}

impl Requirements {
    /// What the results of one revision come to.
    #[must_use]
    pub fn of(results: &[CaseResult]) -> Self {
        let mut came: BTreeMap<&str, (Came, &str)> = BTreeMap::new();
        for result in results {
            let how = match (result.verdict, result.skipped) {
                (Verdict::Pass | Verdict::Fail | Verdict::Warn, _) => Came::Judged,
                (Verdict::Error, _) => Came::NotJudged,
                (Verdict::Skip, Some(Skipped::NotApplicable)) => Came::NotApplicable,
                (Verdict::Skip, Some(Skipped::NotObserved) | None) => Came::NotShown,
            };
            let reason = result.reason.as_deref().unwrap_or("no reason was given");
            for requirement in &result.requirements {
                let known = came.entry(requirement).or_insert((how, reason));
                if how > known.0 {
                    *known = (how, reason);
                }
            }
        }
        let mut requirements = Self::default();
        for (id, (how, reason)) in came {
            let open = match how {
                Came::Judged => {
                    requirements.judged.push(id.to_owned());
                    continue;
                }
                Came::NotApplicable => &mut requirements.not_applicable,
                Came::NotShown => &mut requirements.not_observed,
                Came::NotJudged => &mut requirements.not_judged,
            };
            match open.iter_mut().find(|known| known.reason == reason) {
                Some(known) => known.requirements.push(id.to_owned()),
                None => open.push(OpenRequirements { reason: reason.to_owned(), requirements: vec![id.to_owned()] }),
            }
        }
        requirements
    }

    /// Whether a requirement was judged.
    #[must_use]
    pub fn has_judged(&self, id: &str) -> bool {
        self.judged.binary_search_by(|judged| judged.as_str().cmp(id)).is_ok()
    }

    /// Those that were left open, under a heading for each kind; kinds without any are left out.
    pub fn open(&self) -> impl Iterator<Item = (&'static str, &[OpenRequirements])> {
        let kinds = [
            ("not applicable", self.not_applicable.as_slice()),
            ("not shown", self.not_observed.as_slice()),
            ("not judged", self.not_judged.as_slice()),
        ];
        kinds.into_iter().filter(|(_, open)| !open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    fn result(requirements: &[&str], verdict: Verdict, reason: &str, skipped: Option<Skipped>) -> CaseResult {
        let template = example().targets[0].results[0].clone();
        let requirements = requirements.iter().map(|id| (*id).to_owned()).collect();
        CaseResult { requirements, verdict, reason: Some(reason.to_owned()), skipped, ..template }
    }

    #[test]
    fn of_several_cases_the_one_that_judged_tells() {
        let results = [
            result(&["a", "b", "c"], Verdict::Skip, "no image was seen", Some(Skipped::NotObserved)),
            result(&["d", "c"], Verdict::Skip, "it is for servers with tasks", Some(Skipped::NotApplicable)),
            result(&["b"], Verdict::Warn, "", None),
            result(&["e", "a"], Verdict::Error, "the server was gone", None),
        ];
        let requirements = Requirements::of(&results);
        let open =
            |reason: &str, id: &str| OpenRequirements { reason: reason.to_owned(), requirements: vec![id.to_owned()] };
        assert_eq!(requirements.judged, ["b"]);
        assert!(requirements.has_judged("b") && !requirements.has_judged("a"));
        assert_eq!(requirements.not_observed, [open("no image was seen", "c")]);
        assert_eq!(requirements.not_applicable, [open("it is for servers with tasks", "d")]);
        let gone = OpenRequirements {
            reason: "the server was gone".to_owned(),
            requirements: vec!["a".to_owned(), "e".to_owned()],
        };
        assert_eq!(requirements.not_judged, [gone]);
        assert_eq!(
            requirements.open().map(|(kind, _)| kind).collect::<Vec<_>>(),
            ["not applicable", "not shown", "not judged"]
        );
    }
}
