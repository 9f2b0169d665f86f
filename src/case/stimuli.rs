//! What provokes the messages that a passive case watches.
//!
//! A passive case sends nothing: it judges what discovery provokes, and what the cases provoke that its
//! `provoked-by` names. Wherever a part of the cases runs, these stimuli are carried out as well, without a
//! result of their own. This module resolves the names and proves that they mean something; who carries a
//! stimulus out is for the plan to say.

use std::collections::{BTreeMap, BTreeSet};

use super::checks::Oracle;
use super::model::{Body, Case};
use super::problem::nearest;

/// What is wrong with a name in `provoked-by`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadStimulus {
    /// The case whose `provoked-by` it is in.
    pub(super) case: String,
    /// The name.
    pub(super) name: String,
    /// What is wrong with it.
    pub(super) message: String,
    /// The id or area that was perhaps meant.
    pub(super) suggestion: Option<String>,
}

/// The active cases whose messages the given cases watch, and the passive ones whose rules they check, which are not among them, in the order of `all`.
///
/// Names that mean nothing are passed over: the loader reports them.
#[must_use]
pub(crate) fn stimuli<'a>(of: &[&'a Case], all: &'a [Case]) -> Vec<&'a Case> {
    let given: BTreeSet<&str> = of.iter().map(|case| case.id.as_str()).collect();
    let names = of.iter().flat_map(|case| case.provoked_by()).map(String::as_str).collect();
    let mut stimuli = named_stimuli(names, all);
    if of.iter().any(|case| matches!(case.body, Body::Fuzz(Oracle::ResultRules))) {
        // It checks the rules of these in the results of generated calls.
        stimuli.extend(all.iter().filter(|case| case.is_about_calls()));
    }
    stimuli.retain(|case| !given.contains(case.id.as_str()));
    stimuli
}

/// The active cases that names of cases and areas lead to, in the order of `all`.
fn named_stimuli<'a>(mut waiting: Vec<&'a str>, all: &'a [Case]) -> Vec<&'a Case> {
    let cases = by_name(all);
    let mut reached = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        for case in cases.get(name).into_iter().flatten() {
            if reached.insert(case.id.as_str()) {
                waiting.extend(case.provoked_by().iter().map(String::as_str));
            }
        }
    }
    let sends = |case: &&Case| matches!(case.body, Body::Active(_));
    all.iter().filter(|case| reached.contains(case.id.as_str())).filter(sends).collect()
}

/// Everything that is wrong with the stimuli that cases name.
pub(super) fn bad_stimuli(all: &[Case]) -> Vec<BadStimulus> {
    let cases = by_name(all);
    let mut found = Vec::new();
    for case in all {
        for name in case.provoked_by() {
            let bad =
                |message: String| BadStimulus { case: case.id.clone(), name: name.clone(), message, suggestion: None };
            match cases.get(name.as_str()) {
                None => found.push(BadStimulus {
                    suggestion: nearest(name, cases.keys().copied()).map(str::to_owned),
                    ..bad(format!("`{name}` is neither a case nor an area"))
                }),
                Some(named) if named.iter().any(|named| named.id == *name && matches!(named.body, Body::Fuzz(_))) => {
                    found.push(bad(format!("`{name}` sends no messages of its own: it judges what fuzzing sends")));
                }
                Some(named) if reaches(named, &case.id, &cases) && is_case(named, name) => {
                    found.push(bad(format!("`{name}` is provoked by this case in turn: the circle has no stimulus")));
                }
                Some(_) if named_stimuli(vec![name], all).is_empty() => {
                    found.push(bad(format!("`{name}` names no case that sends anything")));
                }
                Some(_) => {}
            }
        }
    }
    found
}

fn is_case(named: &[&Case], name: &str) -> bool {
    named.iter().any(|case| case.id == name)
}

/// Whether following `provoked-by` from these cases leads to the case of that id.
fn reaches(from: &[&Case], id: &str, cases: &BTreeMap<&str, Vec<&Case>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<&Case> = from.to_vec();
    while let Some(case) = waiting.pop() {
        if case.id == id {
            return true;
        }
        if seen.insert(case.id.as_str()) {
            let next = case.provoked_by().iter().filter_map(|name| cases.get(name.as_str()));
            waiting.extend(next.flatten().copied());
        }
    }
    false
}

/// The cases by id, and by area.
fn by_name(all: &[Case]) -> BTreeMap<&str, Vec<&Case>> {
    let mut cases: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in all {
        cases.entry(case.id.as_str()).or_default().push(case);
        if case.area() != case.id {
            cases.entry(case.area()).or_default().push(case);
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::load::case_of;
    use super::*;

    fn passive(id: &str, provoked_by: &[&str]) -> Case {
        case_of(
            id,
            &json!({
                "title": "x", "fix": "y", "requirements": ["jsonrpc-message-format"], "provoked-by": provoked_by,
                "watch": {"kind": "message"}, "rules": [{"schema": {"type": "object"}}],
            }),
        )
    }

    fn active(id: &str) -> Case {
        case_of(
            id,
            &json!({
                "title": "x", "fix": "y", "requirements": ["jsonrpc-message-format"],
                "steps": [{"send": {"method": "ping"}, "expect": [{"outcome": ["result"]}]}],
            }),
        )
    }

    fn ids<'a>(cases: &[&'a Case]) -> Vec<&'a str> {
        cases.iter().map(|case| case.id.as_str()).collect()
    }

    #[test]
    fn a_case_an_area_and_the_stimuli_of_another_passive_case_are_resolved() {
        let all = [
            active("a/one"),
            active("a/two"),
            active("b/three"),
            passive("c/area", &["a"]),
            passive("c/case", &["b/three"]),
            passive("c/inherits", &["c/case", "a/two"]),
            passive("c/nothing", &[]),
        ];
        let of = |index: usize| ids(&stimuli(&[&all[index]], &all));
        assert_eq!(of(3), ["a/one", "a/two"]);
        assert_eq!(of(4), ["b/three"]);
        assert_eq!(of(5), ["a/two", "b/three"]);
        assert_eq!(of(6), Vec::<&str>::new());
        assert_eq!(ids(&stimuli(&[&all[3], &all[0]], &all)), ["a/two"], "what is selected is no stimulus");
        assert_eq!(bad_stimuli(&all), []);
    }

    #[test]
    fn the_rules_about_results_are_with_the_case_that_checks_them_in_generated_calls() {
        let results = json!({
            "title": "x", "fix": "y", "requirements": ["tools-call-content-array"],
            "watch": {"kind": "result", "methods": ["tools/call"]}, "rules": [{"schema": {"type": "object"}}],
        });
        let generated =
            json!({ "title": "x", "fix": "y", "requirements": ["tools-call-content-array"], "fuzz": "result-rules" });
        let all = [case_of("a/results", &results), passive("b/messages", &[]), case_of("fuzz/results", &generated)];
        assert_eq!(ids(&stimuli(&[&all[2]], &all)), ["a/results"]);
        assert_eq!(ids(&stimuli(&[&all[0], &all[2]], &all)), Vec::<&str>::new());
    }

    #[test]
    fn a_name_that_means_nothing_and_a_circle_are_reported() {
        let all = [
            active("tools/call"),
            passive("c/unknown", &["tools/cal"]),
            passive("d/first", &["d/second"]),
            passive("d/second", &["d/first"]),
            passive("e/silent", &["c/unknown"]),
        ];
        let bad = bad_stimuli(&all);
        let found: Vec<(&str, &str)> = bad.iter().map(|bad| (bad.case.as_str(), bad.message.as_str())).collect();
        assert_eq!(
            found,
            [
                ("c/unknown", "`tools/cal` is neither a case nor an area"),
                ("d/first", "`d/second` is provoked by this case in turn: the circle has no stimulus"),
                ("d/second", "`d/first` is provoked by this case in turn: the circle has no stimulus"),
                ("e/silent", "`c/unknown` names no case that sends anything"),
            ]
        );
        assert_eq!(bad[0].suggestion.as_deref(), Some("tools/call"));
    }
}
