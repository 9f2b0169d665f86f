//! The findings as the page shows them, gathered by requirement.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::{Pair, of_texts, of_unified};
use super::shown::{Prose, address, area, prose, revisions, shown, slug};
use super::wire::{Row, indent, indent_fully, time_line};
use crate::report::Report;
use crate::report::group::{Group as Gathered, Told as GatheredOne, group};
use crate::verdict::{Confirmation, Counterexample, Direction, Evidence, Finding, Verdict};

/// Everything that is wrong with one requirement.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) requirement: String,
    pub(super) level: String,
    /// What the level means where the text has no keyword.
    pub(super) reading: Option<&'static str>,
    pub(super) verdict: &'static str,
    pub(super) told: Vec<Told>,
}

/// One finding, wherever it was made.
#[derive(Debug)]
pub(super) struct Told {
    /// Its name in the fragment that opens it.
    pub(super) slug: String,
    pub(super) level: String,
    pub(super) verdict: &'static str,
    /// The areas of its cases, by spaces.
    pub(super) areas: String,
    /// The revisions in which it was made, by spaces.
    pub(super) revisions: String,
    /// The numbers of the tools that it is about, by spaces.
    pub(super) tools: String,
    pub(super) message: Prose,
    /// How often and in which revisions.
    pub(super) seen: String,
    pub(super) cases: Vec<String>,
    pub(super) subjects: Vec<String>,
    pub(super) expected: Prose,
    pub(super) actual: Prose,
    pub(super) value: Option<String>,
    pub(super) compared: Vec<Pair>,
    /// The revision that the time-line is of, where there are several.
    pub(super) of: Option<&'static str>,
    pub(super) rows: Vec<Row>,
    pub(super) link: String,
    pub(super) address: Option<String>,
    pub(super) hint: Prose,
    pub(super) replay: String,
    pub(super) smallest: Option<Smallest>,
    /// How often it came back, where it was tried again.
    pub(super) confirmed: Option<String>,
    pub(super) flaky: bool,
    pub(super) accepted: Option<String>,
}

/// A call made as small as it could be, beside the one that failed first.
#[derive(Debug)]
pub(super) struct Smallest {
    pub(super) tool: String,
    pub(super) kind: &'static str,
    pub(super) breaks: Option<String>,
    pub(super) compared: Vec<Pair>,
    pub(super) before: Vec<String>,
    pub(super) attempts: usize,
    /// The lines to paste.
    pub(super) lines: String,
    pub(super) file: Option<String>,
    /// The finding that it proves.
    pub(super) slug: String,
    pub(super) message: Prose,
}

/// The findings, those that a baseline accepts apart, and where each result finds its own.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) open: Vec<Group>,
    pub(super) accepted: Vec<Group>,
    /// The finding of a case and revision by its message: its name in the fragment.
    slugs: BTreeMap<(String, String, String), String>,
}

impl Findings {
    pub(super) fn of(report: &Report, tools: &[String]) -> Self {
        let mut findings = Self::default();
        let mut taken = BTreeSet::new();
        for gathered in &group(report) {
            for accepted in [false, true] {
                let told: Vec<Told> = gathered
                    .told
                    .iter()
                    .filter(|told| told.finding.accepted.is_some() == accepted)
                    .map(|told| {
                        let slug = free(&mut taken, &slug(gathered.requirement));
                        for case in &told.cases {
                            for revision in &told.revisions {
                                let key = (
                                    (*case).to_owned(),
                                    revision.to_string(),
                                    key(&told.finding.requirement, &told.finding.message),
                                );
                                findings.slugs.insert(key, slug.clone());
                            }
                        }
                        Told::of(told, slug, tools)
                    })
                    .collect();
                if told.is_empty() {
                    continue;
                }
                let group = Group::of(gathered, told);
                if accepted { findings.accepted.push(group) } else { findings.open.push(group) }
            }
        }
        findings
    }

    /// The name of a finding that a case made.
    pub(super) fn slug(&self, case: &str, finding: &Finding) -> Option<&str> {
        let key = (case.to_owned(), finding.revision.to_string(), key(&finding.requirement, &finding.message));
        self.slugs.get(&key).map(String::as_str)
    }

    /// Every finding, the open ones first.
    pub(super) fn told(&self) -> impl Iterator<Item = &Told> {
        self.open.iter().chain(&self.accepted).flat_map(|group| &group.told)
    }
}

fn key(requirement: &str, message: &str) -> String {
    format!("{requirement}\n{message}")
}

/// A name that is not taken yet.
fn free(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut candidate = name.to_owned();
    let mut number = 1;
    while !taken.insert(candidate.clone()) {
        number += 1;
        candidate = format!("{name}-{number}");
    }
    candidate
}

impl Group {
    fn of(gathered: &Gathered<'_>, told: Vec<Told>) -> Self {
        let worst = told.iter().any(|told| told.verdict == Verdict::Fail.as_str());
        let reading = match (gathered.derived, worst) {
            (false, _) => None,
            (true, true) => Some("by our reading: the text has no keyword, but no reading allows this"),
            (true, false) => Some("by our reading: the text has no keyword"),
        };
        let verdict = if worst { Verdict::Fail } else { Verdict::Warn };
        Self {
            requirement: shown(gathered.requirement),
            level: gathered.level.to_string(),
            reading,
            verdict: verdict.as_str(),
            told,
        }
    }
}

impl Told {
    fn of(told: &GatheredOne<'_>, slug: String, tools: &[String]) -> Self {
        let finding = told.finding;
        let times = match told.count {
            0 | 1 => "once".to_owned(),
            2 => "twice".to_owned(),
            count => format!("{count} times"),
        };
        let mut areas: Vec<String> = told.cases.iter().map(|case| shown(area(case))).collect();
        areas.dedup();
        let value = finding.value.as_ref().map(|value| indent(&value.to_string()));
        let message = prose(&finding.message);
        Self {
            smallest: finding.counterexample.as_ref().map(|one| Smallest::of(one, &slug, &message)),
            slug,
            level: finding.level.to_string(),
            verdict: finding.verdict.as_str(),
            areas: areas.join(" "),
            revisions: told.revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(" "),
            tools: about(told, tools),
            message,
            seen: format!("{times} in {}", revisions(&told.revisions)),
            cases: told.cases.iter().map(|case| shown(case)).collect(),
            subjects: told.subjects.iter().map(|subject| shown(subject)).collect(),
            expected: prose(&finding.expected),
            actual: prose(&finding.actual),
            value,
            compared: finding.diff.as_deref().map(of_unified).unwrap_or_default(),
            of: (told.revisions.len() > 1).then(|| finding.revision.as_str()),
            rows: time_line(&finding.evidence),
            link: shown(&finding.link),
            address: address(&finding.link),
            hint: prose(&finding.fix),
            replay: shown(&finding.reproduce),
            confirmed: finding.confirmation.map(confirmed),
            flaky: finding.confirmation.is_some_and(Confirmation::is_flaky),
            accepted: finding.accepted.as_deref().map(shown),
        }
    }
}

fn confirmed(confirmation: Confirmation) -> String {
    let times = |number: usize| match number {
        1 => "once".to_owned(),
        number => format!("{number} times"),
    };
    let Confirmation { tried, failed } = confirmation;
    let came = match failed {
        0 => "did not come back".to_owned(),
        failed if failed >= tried => "came back each time".to_owned(),
        failed => format!("came back {failed} of them"),
    };
    format!("tried again {} on a fresh process, it {came}", times(tried))
}

impl Smallest {
    fn of(one: &Counterexample, slug: &str, message: &Prose) -> Self {
        Self {
            tool: shown(&one.tool),
            kind: one.kind.as_str(),
            breaks: one.violated.as_deref().map(shown),
            compared: of_texts(&indent_fully(&one.original.to_string()), &indent_fully(&one.arguments.to_string())),
            before: one.preceding.iter().map(|call| indent(&call.to_string())).collect(),
            attempts: one.attempts,
            lines: one.messages.iter().map(|line| shown(line)).collect::<Vec<_>>().join("\n"),
            file: one.file.as_deref().map(shown),
            slug: slug.to_owned(),
            message: message.clone(),
        }
    }
}

/// The numbers of the tools that a finding is about: those that it names, and those that its proof calls.
fn about(told: &GatheredOne<'_>, tools: &[String]) -> String {
    let mut names: BTreeSet<String> = told.subjects.iter().map(|subject| shown(subject)).collect();
    names.extend(told.finding.counterexample.as_ref().map(|one| shown(&one.tool)));
    names.extend(told.finding.evidence.iter().filter_map(called));
    let numbers = tools.iter().enumerate().filter(|(_, tool)| names.contains(*tool));
    numbers.map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn called(item: &Evidence) -> Option<String> {
    if item.direction != Direction::Sent || !item.text.contains("tools/call") {
        return None;
    }
    let message: Value = serde_json::from_str(&item.text).ok()?;
    message.pointer("/params/name").and_then(Value::as_str).map(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_again_is_told_in_words() {
        let told = |tried, failed| confirmed(Confirmation { tried, failed });
        assert_eq!(told(1, 0), "tried again once on a fresh process, it did not come back");
        assert_eq!(told(3, 2), "tried again 3 times on a fresh process, it came back 2 of them");
        assert_eq!(told(2, 2), "tried again 2 times on a fresh process, it came back each time");
    }
}
