//! Groups findings by requirement and merges equal findings of several revisions or cases.
//!
//! Responsible for grouping and order; the presentation is up to each format.

use std::collections::BTreeMap;

use super::Report;
use crate::spec::{Level, Revision};
use crate::verdict::{Finding, Verdict};

/// All findings about one requirement.
#[derive(Debug, Clone)]
pub struct RequirementGroup<'a> {
    /// The requirement.
    pub requirement: &'a str,
    /// The level of the requirement.
    pub level: Level,
    /// Whether the level is inferred because the specification uses no keyword.
    pub derived: bool,
    /// The most severe verdict among its findings that are not accepted, or among all if each is accepted.
    pub verdict: Verdict,
    /// Its findings: accepted ones last, failures before warnings.
    pub findings: Vec<GroupedFinding<'a>>,
}

impl RequirementGroup<'_> {
    /// Whether the baseline accepts all its findings.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.findings.iter().all(|grouped| grouped.finding.accepted.is_some())
    }

    /// Separates accepted findings from the others, each as a group.
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let Self { requirement, level, derived, findings, .. } = self;
        let (accepted, open): (Vec<_>, Vec<_>) =
            findings.into_iter().partition(|grouped| grouped.finding.accepted.is_some());
        [open, accepted].into_iter().filter_map(move |findings| {
            let verdict = findings.first()?.finding.verdict;
            Some(Self { requirement, level, derived, verdict, findings })
        })
    }
}

/// Equal findings of several cases or revisions.
#[derive(Debug, Clone)]
pub struct GroupedFinding<'a> {
    /// The finding of the newest revision, which represents all.
    pub finding: &'a Finding,
    /// The cases that made it, sorted.
    pub cases: Vec<&'a str>,
    /// The revisions in which it was made, oldest first.
    pub revisions: Vec<Revision>,
    /// How often it occurred in total.
    pub count: usize,
    /// Where it occurred, without duplicates.
    pub subjects: Vec<&'a str>,
}

/// Groups the findings of a report: accepted groups last, failures before warnings, then by level and requirement.
#[must_use]
pub fn group_findings(report: &Report) -> Vec<RequirementGroup<'_>> {
    // Findings are equal if verdict and message are.
    let mut by_requirement: BTreeMap<&str, Vec<GroupedFinding<'_>>> = BTreeMap::new();
    for result in report.results() {
        for finding in &result.findings {
            let findings = by_requirement.entry(&finding.requirement).or_default();
            match findings.iter_mut().find(|findings| is_same(findings.finding, finding)) {
                Some(findings) => findings.join(finding, &result.case),
                None => findings.push(GroupedFinding {
                    finding,
                    cases: vec![&result.case],
                    revisions: vec![finding.revision],
                    count: finding.count,
                    subjects: finding.subjects.iter().map(String::as_str).collect(),
                }),
            }
        }
    }
    let mut groups: Vec<RequirementGroup<'_>> = by_requirement
        .into_iter()
        .filter_map(|(requirement, mut findings)| {
            findings.sort_by(|a, b| {
                let accepted = a.finding.accepted.is_some().cmp(&b.finding.accepted.is_some());
                let weight = b.finding.verdict.cmp(&a.finding.verdict);
                accepted.then(weight).then(a.finding.message.cmp(&b.finding.message))
            });
            let first = findings.first()?.finding;
            Some(RequirementGroup {
                requirement,
                level: first.level,
                derived: first.derived,
                verdict: first.verdict,
                findings,
            })
        })
        .collect();
    groups.sort_by(|a, b| {
        let accepted = a.is_accepted().cmp(&b.is_accepted());
        let weight = b.verdict.cmp(&a.verdict).then(a.level.cmp(&b.level));
        accepted.then(weight).then_with(|| a.requirement.cmp(b.requirement))
    });
    groups
}

/// The number of requirements with a failing finding that is not accepted.
pub(super) fn count_violated_requirements(report: &Report) -> usize {
    group_findings(report).iter().filter(|group| group.verdict == Verdict::Fail && !group.is_accepted()).count()
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    a.verdict == b.verdict && a.message == b.message && a.accepted.is_some() == b.accepted.is_some()
}

impl<'a> GroupedFinding<'a> {
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
    fn an_equal_finding_of_two_revisions_is_listed_once() {
        let report = example();
        let groups = group_findings(&report);
        let findings = groups
            .iter()
            .find(|group| group.requirement == "tools-call-unknown-tool-error")
            .map(|group| &group.findings)
            .expect("the example violates it");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].revisions, [Revision::V2025_06_18, Revision::V2025_11_25]);
        assert_eq!(findings[0].finding.revision, Revision::V2025_11_25);
        assert_eq!(findings[0].count, 3);
    }

    #[test]
    fn failures_come_first_and_must_comes_before_should() {
        let report = example();
        let groups = group_findings(&report);
        let order: Vec<_> = groups.iter().map(|group| (group.is_accepted(), group.verdict, group.level)).collect();
        let mut sorted = order.clone();
        sorted.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        assert_eq!(order, sorted);
        assert!(order.len() > 2 && order.iter().filter(|(accepted, ..)| *accepted).count() == 1);
    }
}
