//! Findings gathered by requirement: the same finding of several revisions or cases is told once.
//!
//! Decides what belongs together and in which order; how it looks is each format's own.

use std::collections::BTreeMap;

use super::Report;
use crate::spec::{Level, Revision};
use crate::verdict::{Finding, Verdict};

/// Everything that is wrong with one requirement.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The requirement.
    pub requirement: &'a str,
    /// How strongly it binds.
    pub level: Level,
    /// Whether the level is our reading of a text without a keyword.
    pub derived: bool,
    /// The heaviest verdict among its findings that no baseline lists, or among all where it lists each.
    pub verdict: Verdict,
    /// Its findings: what no baseline lists before what is accepted, failures before warnings.
    pub told: Vec<Told<'a>>,
}

impl Group<'_> {
    /// Whether a baseline lists everything that is wrong with the requirement.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.told.iter().all(|told| told.finding.accepted.is_some())
    }

    /// What stands and what is accepted, each as a group of its own.
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let Self { requirement, level, derived, told, .. } = self;
        let (accepted, standing): (Vec<_>, Vec<_>) = told.into_iter().partition(|told| told.finding.accepted.is_some());
        [standing, accepted].into_iter().filter_map(move |told| {
            let verdict = told.first()?.finding.verdict;
            Some(Self { requirement, level, derived, verdict, told })
        })
    }
}

/// One finding, wherever it was made.
#[derive(Debug, Clone)]
pub struct Told<'a> {
    /// The finding as it was made in the newest revision, to stand for all.
    pub finding: &'a Finding,
    /// The cases that made it, sorted.
    pub cases: Vec<&'a str>,
    /// The revisions in which it was made, oldest first.
    pub revisions: Vec<Revision>,
    /// How often it was seen, over all of them.
    pub count: usize,
    /// Where it was seen, each place once.
    pub subjects: Vec<&'a str>,
}

/// Gathers the findings of a report: what is accepted last, failures before warnings, then by level, then by
/// requirement.
#[must_use]
pub fn group(report: &Report) -> Vec<Group<'_>> {
    // By requirement, then by what is the same finding: verdict and message.
    let mut gathered: BTreeMap<&str, Vec<Told<'_>>> = BTreeMap::new();
    for result in report.results() {
        for finding in &result.findings {
            let told = gathered.entry(&finding.requirement).or_default();
            match told.iter_mut().find(|told| same(told.finding, finding)) {
                Some(told) => told.join(finding, &result.case),
                None => told.push(Told {
                    finding,
                    cases: vec![&result.case],
                    revisions: vec![finding.revision],
                    count: finding.count,
                    subjects: finding.subjects.iter().map(String::as_str).collect(),
                }),
            }
        }
    }
    let mut groups: Vec<Group<'_>> = gathered
        .into_iter()
        .filter_map(|(requirement, mut told)| {
            told.sort_by(|a, b| {
                let accepted = a.finding.accepted.is_some().cmp(&b.finding.accepted.is_some());
                let weight = b.finding.verdict.cmp(&a.finding.verdict);
                accepted.then(weight).then(a.finding.message.cmp(&b.finding.message))
            });
            let first = told.first()?.finding;
            Some(Group { requirement, level: first.level, derived: first.derived, verdict: first.verdict, told })
        })
        .collect();
    groups.sort_by(|a, b| {
        let accepted = a.is_accepted().cmp(&b.is_accepted());
        let weight = b.verdict.cmp(&a.verdict).then(a.level.cmp(&b.level));
        accepted.then(weight).then_with(|| a.requirement.cmp(b.requirement))
    });
    groups
}

/// How many requirements have a failing finding that no baseline lists.
pub(super) fn broken_requirements(report: &Report) -> usize {
    group(report).iter().filter(|group| group.verdict == Verdict::Fail && !group.is_accepted()).count()
}

fn same(a: &Finding, b: &Finding) -> bool {
    a.verdict == b.verdict && a.message == b.message && a.accepted.is_some() == b.accepted.is_some()
}

impl<'a> Told<'a> {
    fn join(&mut self, finding: &'a Finding, case: &'a str) {
        if finding.revision > self.finding.revision {
            self.finding = finding;
        }
        if let Err(at) = self.cases.binary_search(&case) {
            self.cases.insert(at, case);
        }
        if let Err(at) = self.revisions.binary_search(&finding.revision) {
            self.revisions.insert(at, finding.revision);
        }
        self.count += finding.count;
        for subject in &finding.subjects {
            if !self.subjects.contains(&subject.as_str()) {
                self.subjects.push(subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn the_same_finding_of_two_revisions_is_told_once() {
        let report = example();
        let groups = group(&report);
        let told = groups
            .iter()
            .find(|group| group.requirement == "tools-call-unknown-tool-error")
            .map(|group| &group.told)
            .expect("the example breaks it");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].revisions, [Revision::V2025_06_18, Revision::V2025_11_25]);
        assert_eq!(told[0].finding.revision, Revision::V2025_11_25);
        assert_eq!(told[0].count, 3);
    }

    #[test]
    fn failures_come_first_and_must_comes_before_should() {
        let report = example();
        let groups = group(&report);
        let order: Vec<_> = groups.iter().map(|group| (group.is_accepted(), group.verdict, group.level)).collect();
        let mut sorted = order.clone();
        sorted.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        assert_eq!(order, sorted);
        assert!(order.len() > 2 && order.iter().filter(|(accepted, ..)| *accepted).count() == 1);
    }
}
