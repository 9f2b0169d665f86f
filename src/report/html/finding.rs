//! Views of the findings, grouped by requirement.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::{DiffRow, diff_texts, split_unified};
use super::display::{InlineText, area, display, https_link, inline_code, revisions, slug};
use super::wire::{Row, indent, indent_fully, timeline};
use crate::report::Report;
use crate::report::finding_text::describe_retries;
use crate::report::group::{GroupedFinding, RequirementGroup, group_findings};
use crate::verdict::{Confirmation, Counterexample, Direction, Evidence, Finding, Verdict};

/// The findings about one requirement.
#[derive(Debug)]
pub(super) struct GroupView {
    pub(super) requirement: String,
    pub(super) level: String,
    /// A note if the level is inferred.
    pub(super) inferred: Option<&'static str>,
    pub(super) verdict: &'static str,
    pub(super) findings: Vec<FindingView>,
}

/// Equal findings of several cases or revisions.
#[derive(Debug)]
pub(super) struct FindingView {
    /// Its id in the URL fragment that opens it.
    pub(super) slug: String,
    pub(super) level: String,
    pub(super) verdict: &'static str,
    /// The areas of its cases, separated by spaces.
    pub(super) areas: String,
    /// The revisions in which it was made, separated by spaces.
    pub(super) revisions: String,
    /// The indices of the tools that it is about, separated by spaces.
    pub(super) tools: String,
    pub(super) message: InlineText,
    /// How often and in which revisions it was made.
    pub(super) occurrences: String,
    pub(super) cases: Vec<String>,
    pub(super) subjects: Vec<String>,
    pub(super) expected: InlineText,
    pub(super) actual: InlineText,
    pub(super) value: Option<String>,
    pub(super) diff: Vec<DiffRow>,
    /// The revision of the evidence, if the finding was made in several.
    pub(super) evidence_revision: Option<&'static str>,
    pub(super) rows: Vec<Row>,
    pub(super) link: String,
    pub(super) link_target: Option<String>,
    pub(super) fix: InlineText,
    pub(super) reproduce: String,
    pub(super) counterexample: Option<CounterexampleView>,
    /// How many retries failed, if there were any.
    pub(super) retries: Option<String>,
    pub(super) flaky: bool,
    pub(super) accepted: Option<String>,
}

/// The minimal failing call, compared with the original one.
#[derive(Debug)]
pub(super) struct CounterexampleView {
    pub(super) tool: String,
    pub(super) kind: &'static str,
    pub(super) violated: Option<String>,
    pub(super) diff: Vec<DiffRow>,
    pub(super) preceding: Vec<String>,
    pub(super) attempts: usize,
    /// The lines to send.
    pub(super) lines: String,
    pub(super) file: Option<String>,
    /// The id of the finding.
    pub(super) slug: String,
    pub(super) message: InlineText,
}

/// The findings, with accepted ones separate, and an index from results to findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) open: Vec<GroupView>,
    pub(super) accepted: Vec<GroupView>,
    /// Ids of findings by case, revision, and requirement with message.
    slugs: BTreeMap<(String, String, String), String>,
}

impl Findings {
    pub(super) fn of(report: &Report, tools: &[String]) -> Self {
        let mut findings = Self::default();
        let mut taken = BTreeSet::new();
        for group in &group_findings(report) {
            for accepted in [false, true] {
                let views: Vec<FindingView> = group
                    .findings
                    .iter()
                    .filter(|grouped| grouped.finding.accepted.is_some() == accepted)
                    .map(|grouped| {
                        let slug = unique_slug(&mut taken, &slug(group.requirement));
                        for case in &grouped.cases {
                            for revision in &grouped.revisions {
                                let key = (
                                    (*case).to_owned(),
                                    revision.to_string(),
                                    key(&grouped.finding.requirement, &grouped.finding.message),
                                );
                                findings.slugs.insert(key, slug.clone());
                            }
                        }
                        FindingView::of(grouped, slug, tools)
                    })
                    .collect();
                if views.is_empty() {
                    continue;
                }
                let view = GroupView::of(group, views);
                if accepted { findings.accepted.push(view) } else { findings.open.push(view) }
            }
        }
        findings
    }

    /// The id of a finding that a case made.
    pub(super) fn slug(&self, case: &str, finding: &Finding) -> Option<&str> {
        let key = (case.to_owned(), finding.revision.to_string(), key(&finding.requirement, &finding.message));
        self.slugs.get(&key).map(String::as_str)
    }

    /// All findings, accepted ones last.
    pub(super) fn all(&self) -> impl Iterator<Item = &FindingView> {
        self.open.iter().chain(&self.accepted).flat_map(|group| &group.findings)
    }
}

fn key(requirement: &str, message: &str) -> String {
    format!("{requirement}\n{message}")
}

/// Makes an id unique by appending a number.
fn unique_slug(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut candidate = name.to_owned();
    let mut number = 1;
    while !taken.insert(candidate.clone()) {
        number += 1;
        candidate = format!("{name}-{number}");
    }
    candidate
}

impl GroupView {
    fn of(group: &RequirementGroup<'_>, findings: Vec<FindingView>) -> Self {
        let worst = findings.iter().any(|finding| finding.verdict == Verdict::Fail.as_str());
        let inferred = match (group.derived, worst) {
            (false, _) => None,
            (true, true) => Some("inferred: the specification uses no keyword, but no interpretation allows this"),
            (true, false) => Some("inferred: the specification uses no keyword"),
        };
        let verdict = if worst { Verdict::Fail } else { Verdict::Warn };
        Self {
            requirement: display(group.requirement),
            level: group.level.to_string(),
            inferred,
            verdict: verdict.as_str(),
            findings,
        }
    }
}

impl FindingView {
    fn of(grouped: &GroupedFinding<'_>, slug: String, tools: &[String]) -> Self {
        let finding = grouped.finding;
        let times = match grouped.count {
            0 | 1 => "once".to_owned(),
            2 => "twice".to_owned(),
            count => format!("{count} times"),
        };
        let mut areas: Vec<String> = grouped.cases.iter().map(|case| display(area(case))).collect();
        areas.dedup();
        let value = finding.value.as_ref().map(|value| indent(&value.to_string()));
        let message = inline_code(&finding.message);
        Self {
            counterexample: finding.counterexample.as_ref().map(|one| CounterexampleView::of(one, &slug, &message)),
            slug,
            level: finding.level.to_string(),
            verdict: finding.verdict.as_str(),
            areas: areas.join(" "),
            revisions: grouped.revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(" "),
            tools: tool_numbers(grouped, tools),
            message,
            occurrences: format!("{times} in {}", revisions(&grouped.revisions)),
            cases: grouped.cases.iter().map(|case| display(case)).collect(),
            subjects: grouped.subjects.iter().map(|subject| display(subject)).collect(),
            expected: inline_code(&finding.expected),
            actual: inline_code(&finding.actual),
            value,
            diff: finding.diff.as_deref().map(split_unified).unwrap_or_default(),
            evidence_revision: (grouped.revisions.len() > 1).then(|| finding.revision.as_str()),
            rows: timeline(&finding.evidence),
            link: display(&finding.link),
            link_target: https_link(&finding.link),
            fix: inline_code(&finding.fix),
            reproduce: display(&finding.reproduce),
            retries: finding.confirmation.map(describe_retries),
            flaky: finding.confirmation.is_some_and(Confirmation::is_flaky),
            accepted: finding.accepted.as_deref().map(display),
        }
    }
}

impl CounterexampleView {
    fn of(one: &Counterexample, slug: &str, message: &InlineText) -> Self {
        Self {
            tool: display(&one.tool),
            kind: one.kind.as_str(),
            violated: one.violated.as_deref().map(display),
            diff: diff_texts(&indent_fully(&one.original.to_string()), &indent_fully(&one.arguments.to_string())),
            preceding: one.preceding.iter().map(|call| indent(&call.to_string())).collect(),
            attempts: one.attempts,
            lines: one.messages.iter().map(|line| display(line)).collect::<Vec<_>>().join("\n"),
            file: one.file.as_deref().map(display),
            slug: slug.to_owned(),
            message: message.clone(),
        }
    }
}

/// The indices of the tools that a finding is about: those that it names and those that its evidence calls.
fn tool_numbers(grouped: &GroupedFinding<'_>, tools: &[String]) -> String {
    let mut names: BTreeSet<String> = grouped.subjects.iter().map(|subject| display(subject)).collect();
    names.extend(grouped.finding.counterexample.as_ref().map(|one| display(&one.tool)));
    names.extend(grouped.finding.evidence.iter().filter_map(called_tool));
    let numbers = tools.iter().enumerate().filter(|(_, tool)| names.contains(*tool));
    numbers.map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn called_tool(item: &Evidence) -> Option<String> {
    if item.direction != Direction::Sent || !item.text.contains("tools/call") {
        return None;
    }
    let message: Value = serde_json::from_str(&item.text).ok()?;
    message.pointer("/params/name").and_then(Value::as_str).map(display)
}
