//! Groups findings by requirement and merges equal findings of several revisions, cases or tools.
//!
//! Responsible for grouping and order; the presentation is up to each format.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Report;
use super::attribution::Attribution;
#[cfg(feature = "reports")]
use crate::event::CaseResult;
use crate::spec::{Level, Revision};
use crate::verdict::{Direction, Evidence, Finding, MessageSummary, Verdict};

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

    /// Separates the findings by whose they are, and accepted ones from the others, each as a group.
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let Self { requirement, level, derived, findings, .. } = self;
        let mut parts: BTreeMap<(bool, Attribution), Vec<GroupedFinding<'_>>> = BTreeMap::new();
        for grouped in findings {
            let key = (grouped.finding.accepted.is_some(), Attribution::of(grouped.finding));
            parts.entry(key).or_default().push(grouped);
        }
        parts.into_values().filter_map(move |findings| {
            let verdict = findings.first()?.finding.verdict;
            Some(Self { requirement, level, derived, verdict, findings })
        })
    }

    /// The order of groups: accepted groups last, failures before warnings, then by level and requirement.
    pub(super) fn compare(a: &Self, b: &Self) -> Ordering {
        let accepted = a.is_accepted().cmp(&b.is_accepted());
        let weight = b.verdict.cmp(&a.verdict).then(a.level.cmp(&b.level));
        accepted.then(weight).then_with(|| a.requirement.cmp(b.requirement))
    }
}

/// Equal findings of several cases, revisions or tools.
#[derive(Debug, Clone)]
pub struct GroupedFinding<'a> {
    /// The finding of the newest revision, which represents all.
    pub finding: &'a Finding,
    /// What is wrong, in one sentence; without the tool's name if equal findings of several tools are merged.
    pub message: &'a str,
    /// The tools of which the fuzzer found it, in the order of the report.
    pub tools: Vec<&'a str>,
    /// For each of these tools, the finding of the newest revision.
    pub by_tool: Vec<&'a Finding>,
    /// The cases that made it, sorted.
    pub cases: Vec<&'a str>,
    /// The revisions in which it was made, oldest first.
    pub revisions: Vec<Revision>,
    /// How often it occurred in total.
    pub count: usize,
    /// Where it occurred, without duplicates.
    pub subjects: Vec<&'a str>,
    /// The other findings that probably have the same cause, if they were folded into this one.
    pub alike: Vec<Self>,
}

/// Groups the findings of a report: accepted groups last, failures before warnings, then by level and requirement.
/// Each tool of which the fuzzer found something has its own finding.
#[must_use]
pub fn group_findings(report: &Report) -> Vec<RequirementGroup<'_>> {
    group(findings(report), |finding| &finding.message)
}

/// The same, but what the fuzzer found of several tools alike is one finding: it probably has one cause.
#[must_use]
pub fn group_causes(report: &Report) -> Vec<RequirementGroup<'_>> {
    group(findings(report), message_without_tool)
}

/// The message without the name of the tool with which the fuzzer begins it.
pub(super) fn message_without_tool(finding: &Finding) -> &str {
    let tool = finding.counterexample.as_ref().map(|example| example.tool.as_str());
    let rest = tool.and_then(|tool| finding.message.strip_prefix(tool)?.strip_prefix(": "));
    rest.unwrap_or(&finding.message)
}

/// The findings of one case, those of several tools alike as one.
#[cfg(feature = "reports")]
pub(super) fn causes_of(result: &CaseResult) -> Vec<GroupedFinding<'_>> {
    let findings = result.findings.iter().map(|finding| (result.case.as_str(), finding));
    group(findings, message_without_tool).into_iter().flat_map(|group| group.findings).collect()
}

/// All findings of a report, with their cases.
fn findings(report: &Report) -> impl Iterator<Item = (&str, &Finding)> {
    report.results().flat_map(|result| result.findings.iter().map(|finding| (result.case.as_str(), finding)))
}

/// Groups findings; those of a requirement are equal if the verdict and what `message_of` makes of them are.
fn group<'a>(
    findings: impl Iterator<Item = (&'a str, &'a Finding)>,
    message_of: fn(&Finding) -> &str,
) -> Vec<RequirementGroup<'a>> {
    let mut by_requirement: BTreeMap<&str, Vec<GroupedFinding<'_>>> = BTreeMap::new();
    for (case, finding) in findings {
        let findings = by_requirement.entry(&finding.requirement).or_default();
        let message = message_of(finding);
        match findings.iter_mut().find(|known| known.message == message && is_same(known.finding, finding)) {
            Some(findings) => findings.join(finding, case),
            None => findings.push(GroupedFinding {
                finding,
                message,
                tools: finding.counterexample.iter().map(|example| example.tool.as_str()).collect(),
                by_tool: finding.counterexample.iter().map(|_| finding).collect(),
                cases: vec![case],
                revisions: vec![finding.revision],
                count: finding.count,
                subjects: finding.subjects.iter().map(String::as_str).collect(),
                alike: Vec::new(),
            }),
        }
    }
    let mut groups: Vec<RequirementGroup<'_>> = by_requirement
        .into_iter()
        .filter_map(|(requirement, mut findings)| {
            findings.sort_by(|a, b| {
                let accepted = a.finding.accepted.is_some().cmp(&b.finding.accepted.is_some());
                let weight = b.finding.verdict.cmp(&a.finding.verdict);
                // What most tools do is the most general; of one case, what came first is the cause of what follows.
                accepted
                    .then(weight)
                    .then(b.tools.len().cmp(&a.tools.len()))
                    .then(a.cases.first().cmp(&b.cases.first()))
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
    groups.sort_by(RequirementGroup::compare);
    groups
}

/// The number of requirements with a failing finding that is not accepted.
pub(super) fn count_violated_requirements(report: &Report) -> usize {
    group_findings(report).iter().filter(|group| group.verdict == Verdict::Fail && !group.is_accepted()).count()
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    a.verdict == b.verdict && a.sdk == b.sdk && a.accepted.is_some() == b.accepted.is_some()
}

impl<'a> GroupedFinding<'a> {
    /// What is wrong, with the tool, or with the number of tools that behave alike.
    pub(super) fn headline(&self) -> String {
        match self.tools.as_slice() {
            [] | [_] => self.finding.message.clone(),
            tools => format!("{} tools: {}", tools.len(), self.message),
        }
    }

    /// Whether another finding probably has the same cause: it is the same in the SDK, the sentence is the same, or, for one
    /// rule, neighbouring cases made both, or the server sent the same kind of request in both. What the fuzzer found is as
    /// different as its calls.
    fn has_cause_of(&self, other: &Self) -> bool {
        if !is_same(self.finding, other.finding) || !self.tools.is_empty() || !other.tools.is_empty() {
            return false;
        }
        if self.message == other.message
            || self.finding.upstream.is_some() && self.finding.upstream == other.finding.upstream
        {
            return true;
        }
        let requested = |grouped: &Self| {
            let received = |item: &&Evidence| item.direction == Direction::Received;
            match &grouped.finding.evidence.iter().rev().find(received)?.message {
                Some(MessageSummary::Request { method, .. }) => Some(method.clone()),
                _ => None,
            }
        };
        self.finding.requirement == other.finding.requirement
            && (self.cases.iter().any(|a| other.cases.iter().any(|b| are_neighbours(a, b)))
                || requested(self).is_some_and(|method| requested(other) == Some(method)))
    }

    /// Folds a finding with the same cause into this one.
    fn absorb(&mut self, other: Self) {
        self.cases.extend(&other.cases);
        self.revisions.extend(&other.revisions);
        self.count += other.count;
        self.cases.sort_unstable();
        self.cases.dedup();
        self.revisions.sort_unstable();
        self.revisions.dedup();
        other.subjects.iter().for_each(|subject| {
            if !self.subjects.contains(subject) {
                self.subjects.push(subject);
            }
        });
        self.alike.push(other);
    }

    fn join(&mut self, finding: &'a Finding, case: &'a str) {
        // The one that says most represents those of a revision.
        let explains = |finding: &Finding| finding.counterexample.as_ref().is_some_and(|one| !one.parts.is_empty());
        let rank = |finding: &Finding| (finding.revision, explains(finding));
        if rank(finding) > rank(self.finding) {
            self.finding = finding;
        }
        if let Err(at) = self.cases.binary_search(&case) {
            self.cases.insert(at, case);
        }
        if let Err(at) = self.revisions.binary_search(&finding.revision) {
            self.revisions.insert(at, finding.revision);
        }
        self.count += finding.count;
        if let Some(example) = &finding.counterexample {
            match self.tools.iter().position(|tool| *tool == example.tool) {
                Some(at) if finding.revision > self.by_tool[at].revision => self.by_tool[at] = finding,
                Some(_) => {}
                None => {
                    self.tools.push(&example.tool);
                    self.by_tool.push(finding);
                }
            }
        }
        for subject in &finding.subjects {
            if !self.subjects.contains(&subject.as_str()) {
                self.subjects.push(subject);
            }
        }
    }
}

/// Whether two cases vary one thing: `jsonrpc/batch-served` and `jsonrpc/batch-rejected`, or `tools/list/invalid-cursor` and
/// `prompts/list/invalid-cursor`.
fn are_neighbours(a: &str, b: &str) -> bool {
    let parts = |case: &str| {
        let (area, name) = case.rsplit_once('/').unwrap_or(("", case));
        let first = name.split('-').next().unwrap_or(name);
        (area.to_owned(), first.to_owned(), name.to_owned())
    };
    let ((area_a, first_a, name_a), (area_b, first_b, name_b)) = (parts(a), parts(b));
    name_a == name_b || (area_a == area_b && first_a == first_b)
}

/// Folds each finding into the first that probably has the same cause, of whichever rule.
fn fold(groups: Vec<RequirementGroup<'_>>) -> Vec<RequirementGroup<'_>> {
    let mut folded: Vec<RequirementGroup<'_>> = Vec::new();
    for RequirementGroup { requirement, level, derived, verdict, findings } in groups {
        let mut own: Vec<GroupedFinding<'_>> = Vec::new();
        for grouped in findings {
            let known = folded.iter_mut().flat_map(|group| &mut group.findings).chain(&mut own);
            match known.into_iter().find(|known| known.has_cause_of(&grouped)) {
                Some(known) => known.absorb(grouped),
                None => own.push(grouped),
            }
        }
        if !own.is_empty() {
            folded.push(RequirementGroup { requirement, level, derived, verdict, findings: own });
        }
    }
    folded
}

/// The findings of a report, one for each cause, by whose they are.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    /// What the author has to fix.
    pub(super) author: Vec<RequirementGroup<'a>>,
    /// What the SDK causes.
    pub(super) sdk: Vec<RequirementGroup<'a>>,
    /// What fair readers of the specification may see differently.
    pub(super) interpretation: Vec<RequirementGroup<'a>>,
    /// What is accepted, whoever it is from.
    pub(super) accepted: Vec<RequirementGroup<'a>>,
}

impl<'a> Parts<'a> {
    /// The same with the findings folded that probably have one cause.
    pub(super) fn fold(self) -> Self {
        let Self { author, sdk, interpretation, accepted } = self;
        Self { author: fold(author), sdk: fold(sdk), interpretation: fold(interpretation), accepted: fold(accepted) }
    }

    /// The findings of a report.
    pub(super) fn of(report: &'a Report) -> Self {
        let mut parts = Self::default();
        for group in group_causes(report).into_iter().flat_map(RequirementGroup::split) {
            let Some(first) = group.findings.first() else { continue };
            match (first.finding.accepted.is_some(), Attribution::of(first.finding)) {
                (true, _) => parts.accepted.push(group),
                (false, Attribution::Author) => parts.author.push(group),
                (false, Attribution::Sdk) => parts.sdk.push(group),
                (false, Attribution::Interpretation) => parts.interpretation.push(group),
            }
        }
        // A group without its failures is a group of warnings.
        for groups in [&mut parts.author, &mut parts.sdk, &mut parts.interpretation, &mut parts.accepted] {
            groups.sort_by(RequirementGroup::compare);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn neighbouring_cases_of_a_rule_have_one_cause() {
        for (a, b, expected) in [
            ("jsonrpc/batch-served", "jsonrpc/batch-rejected", true),
            ("tools/list/invalid-cursor", "prompts/list/invalid-cursor", true),
            ("http-session/ended", "http-session/ended-for-get", true),
            ("jsonrpc/deep-nesting", "jsonrpc/lone-surrogate-id", false),
            ("tools/call/unknown-tool", "prompts/get/unknown", false),
        ] {
            assert_eq!(are_neighbours(a, b), expected, "{a} {b}");
        }
        let mut report = example();
        let results = report.targets.iter_mut().flat_map(|target| &mut target.results);
        let result = results.filter(|result| !result.findings.is_empty()).find(|one| !one.case.starts_with("fuzz/"));
        let result = result.expect("the example has such a finding");
        let requirement = result.findings[0].requirement.clone();
        let mut other = result.findings[0].clone();
        other.message = "The same in another way.".to_owned();
        let mut milder = other.clone();
        milder.verdict = if other.verdict == Verdict::Fail { Verdict::Warn } else { Verdict::Fail };
        result.findings.extend([other, milder]);
        let groups = group_causes(&report).into_iter().filter(|group| group.requirement == requirement);
        let of_rule: Vec<_> = groups.collect();
        let before: usize = of_rule.iter().map(|group| group.findings.len()).sum();
        let folded = fold(of_rule);
        let after: usize = folded.iter().map(|group| group.findings.len()).sum();
        assert_eq!(before - after, 1, "of another verdict is another finding");
        let alike: Vec<_> = folded.iter().flat_map(|group| &group.findings).flat_map(|one| &one.alike).collect();
        assert_eq!(alike.len(), 1);
    }

    #[test]
    fn findings_of_several_rules_are_folded_by_sentence_and_by_what_the_sdk_does() {
        let grouped = |change: fn(&mut Finding)| {
            let mut report = example();
            let warned = |result: &&mut crate::event::CaseResult| result.case == "jsonrpc/error-message";
            let results = &mut report.targets[1].results;
            let mut other = results.iter_mut().find(warned).expect("a warning").clone();
            (other.case, other.findings[0].requirement) = ("tasks/other".to_owned(), "another-rule".to_owned());
            change(&mut other.findings[0]);
            results.push(other);
            let Parts { sdk, .. } = Parts::of(&report).fold();
            sdk.iter().map(|group| group.findings.len()).sum::<usize>()
        };
        let unchanged = grouped(|_| ());
        assert_eq!(
            grouped(|other| other.message = "Something else.".to_owned()),
            unchanged,
            "the SDK's cause is the same"
        );
        assert_eq!(grouped(|other| other.upstream = None), unchanged, "the sentence is the same");
        let differs = grouped(|other| (other.upstream, other.message) = (None, "Something else.".to_owned()));
        assert_eq!(differs, unchanged + 1);
    }

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
    fn what_several_tools_do_alike_has_one_cause() {
        let mut report = example();
        let crash = |result: &&crate::event::CaseResult| result.case == "fuzz/crash";
        let position = report.targets[1].results.iter().position(|result| crash(&result)).expect("the example has one");
        let result = &mut report.targets[1].results[position];
        result.findings[0].message = "search: the server exits".to_owned();
        let mut other = result.findings[0].clone();
        other.message = "delete: the server exits".to_owned();
        other.counterexample.as_mut().expect("the fuzzer found it").tool = "delete".to_owned();
        // The first one was not explained.
        result.findings[0].counterexample.as_mut().expect("the fuzzer found it").parts.clear();
        result.findings.push(other);
        let explained = |groups: Vec<RequirementGroup<'_>>| {
            let found = groups.iter().flat_map(|group| &group.findings).find(|found| found.cases == ["fuzz/crash"]);
            found.and_then(|found| found.finding.counterexample.as_ref()).map(|example| example.tool.clone())
        };
        assert_eq!(explained(group_causes(&report)).as_deref(), Some("delete"));
        let crashes = |groups: Vec<RequirementGroup<'_>>| -> Vec<(String, usize)> {
            let of_crash =
                groups.iter().flat_map(|group| &group.findings).filter(|found| found.cases == ["fuzz/crash"]);
            of_crash.map(|found| (found.message.to_owned(), found.tools.len())).collect()
        };
        assert_eq!(crashes(group_causes(&report)), [("the server exits".to_owned(), 2)]);
        assert_eq!(crashes(group_findings(&report)).len(), 2);
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

    #[test]
    fn the_findings_of_one_rule_are_split_by_whose_they_are() {
        let mut report = example();
        let warned = |result: &&mut crate::event::CaseResult| result.case == "jsonrpc/error-message";
        let result = report.targets[1].results.iter_mut().find(warned).expect("a warning");
        result.findings[0].sdk = None;
        let mut of_sdk = result.findings[0].clone();
        of_sdk.sdk = Some("Python SDK 1".to_owned());
        let mut inferred = result.findings[0].clone();
        (inferred.derived, inferred.message) = (true, "Another sentence.".to_owned());
        result.findings.extend([of_sdk, inferred]);
        let parts = Parts::of(&report);
        let count = |groups: &[RequirementGroup<'_>]| {
            groups.iter().filter(|group| group.requirement == "jsonrpc-error-message-concise").count()
        };
        assert_eq!([&parts.author, &parts.sdk, &parts.interpretation].map(|part| count(part)), [1, 1, 1]);
        assert_eq!(count(&parts.accepted), 0);
        assert_eq!(parts.accepted.len(), 1);
    }
}
