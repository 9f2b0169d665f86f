//! Views of the findings, one for each cause, by whose they are.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{DiffRow, diff_texts, split_unified};
use super::display::{InlineText, area, display, https_link, inline_code, revisions, slug};
use super::wire::{Row, indent, indent_fully, timeline};
use crate::report::Report;
use crate::report::attribution::Attribution;
use crate::report::finding_text::{describe_retries, failing_arguments, level_label, level_reason};
use crate::report::group::{GroupedFinding, Parts, RequirementGroup, message_without_tool};
use crate::report::sdk::Sdk;
use crate::spec::Revision;
use crate::verdict::{Confirmation, Counterexample, Direction, Evidence, Finding, MessageSummary, Verdict};

/// The findings of one section of the page.
#[derive(Debug)]
pub(super) struct Part {
    /// Its id in the URL fragment that leads to it.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Its name in the navigation.
    pub(super) name: &'static str,
    /// What is common to its findings, one paragraph each.
    pub(super) lead: Vec<InlineText>,
    /// The findings, failures first.
    pub(super) findings: Vec<FindingView>,
}

/// One cause: equal findings of several cases, revisions or tools.
#[derive(Debug)]
pub(super) struct FindingView {
    /// Its id in the URL fragment that opens it.
    pub(super) slug: String,
    pub(super) requirement: String,
    pub(super) level: String,
    /// Why the verdict is not the one of the level, if so.
    pub(super) reason: Option<&'static str>,
    /// The same, unless the lead of the part gives the reason.
    pub(super) heading_reason: Option<&'static str>,
    /// Whose it is: `author`, `SDK` or `interpretation`.
    pub(super) attribution: &'static str,
    /// The SDK that causes it.
    pub(super) sdk: Option<String>,
    /// What is known of it in the SDK, and the issue there.
    pub(super) upstream: Option<String>,
    pub(super) issue: Option<String>,
    pub(super) verdict: &'static str,
    /// The areas of its cases, separated by spaces.
    pub(super) areas: String,
    /// The revisions in which it was made, separated by spaces.
    pub(super) revisions: String,
    /// The indices of the tools that it is about, separated by spaces.
    pub(super) tools: String,
    pub(super) message: InlineText,
    /// The names of the tools that behave alike, if there are several.
    pub(super) alike: Vec<String>,
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
    /// The other findings that probably have the same cause.
    pub(super) folded: Vec<FoldedView>,
    /// The minimal failing calls of the other tools that behave alike.
    pub(super) other_counterexamples: Vec<CounterexampleView>,
    /// How many retries failed, if there were any.
    pub(super) retries: Option<String>,
    pub(super) flaky: bool,
    /// Whether an earlier run did not make it.
    pub(super) is_new: bool,
    pub(super) accepted: Option<String>,
}

/// A finding that is shown with another one, as both probably have one cause.
#[derive(Debug)]
pub(super) struct FoldedView {
    pub(super) message: InlineText,
    pub(super) requirement: String,
    pub(super) level: String,
    pub(super) occurrences: String,
    pub(super) cases: Vec<String>,
    pub(super) actual: InlineText,
    pub(super) link: String,
    pub(super) link_target: Option<String>,
    pub(super) reproduce: String,
    pub(super) rows: Vec<Row>,
}

/// The minimal failing call, compared with the original one.
#[derive(Debug)]
pub(super) struct CounterexampleView {
    pub(super) tool: String,
    pub(super) kind: &'static str,
    pub(super) violated: Option<String>,
    pub(super) diff: Vec<DiffRow>,
    /// For which other arguments it fails; empty if unknown.
    pub(super) fails_for: String,
    pub(super) preceding: Vec<String>,
    pub(super) attempts: usize,
    /// The lines to send.
    pub(super) lines: String,
    pub(super) file: Option<String>,
    /// The id of the finding.
    pub(super) slug: String,
    pub(super) message: InlineText,
}

/// The findings by whose they are, and an index from results to findings.
#[derive(Debug)]
pub(super) struct Findings {
    /// The sections: the author's findings, even if there are none, and those of the other sections that have some.
    pub(super) parts: Vec<Part>,
    /// Ids of findings by the finding and its case.
    slugs: BTreeMap<Key, String>,
}

/// What distinguishes the findings of a case: its id, and what they are grouped by.
type Key = (String, Revision, String, Verdict, Option<String>, bool);

impl Findings {
    pub(super) fn of(report: &Report, tools: &[String]) -> Self {
        let groups = Parts::of(report).fold();
        let mut views = Views { taken: BTreeSet::new(), slugs: BTreeMap::new(), tools };
        let [author, sdk, interpretation, accepted] =
            [&groups.author, &groups.sdk, &groups.interpretation, &groups.accepted].map(|groups| views.of(groups));
        let is_divided = !sdk.is_empty() || !interpretation.is_empty();
        let mut parts = vec![Part {
            id: "findings",
            title: if is_divided { "Findings in your code" } else { "Findings" },
            name: if is_divided { "Your code" } else { "Findings" },
            lead: Vec::new(),
            findings: author,
        }];
        parts.push(Part {
            id: "sdk",
            title: "Not from your code: the SDK causes these",
            name: "SDK",
            lead: sdk_lead(&groups.sdk),
            findings: sdk,
        });
        parts.push(Part {
            id: "interpretations",
            title: "Open questions of interpretation",
            name: "Interpretation",
            lead: vec![inline_code(INTERPRETATION_LEAD)],
            findings: interpretation,
        });
        parts.push(Part {
            id: "accepted",
            title: "Accepted findings",
            name: "Accepted",
            lead: vec![inline_code("These findings do not fail the run, each for the reason that it shows.")],
            findings: accepted,
        });
        parts.retain(|part| part.id == "findings" || !part.findings.is_empty());
        Self { parts, slugs: views.slugs }
    }

    /// The id of a finding that a case made.
    pub(super) fn slug(&self, case: &str, finding: &Finding) -> Option<&str> {
        self.slugs.get(&key(case, finding.revision, message_without_tool(finding), finding)).map(String::as_str)
    }

    /// Marks the findings with these ids as new.
    pub(super) fn mark_new(&mut self, slugs: &BTreeSet<&str>) {
        for finding in self.parts.iter_mut().flat_map(|part| &mut part.findings) {
            finding.is_new = slugs.contains(finding.slug.as_str());
        }
    }

    /// All findings, accepted ones last.
    pub(super) fn all(&self) -> impl Iterator<Item = &FindingView> {
        self.parts.iter().flat_map(|part| &part.findings)
    }

    /// The number of findings that are not accepted.
    pub(super) fn count_open(&self) -> usize {
        self.parts.iter().filter(|part| part.id != "accepted").map(|part| part.findings.len()).sum()
    }
}

const INTERPRETATION_LEAD: &str = "The specification states these rules without a keyword such as MUST, so their levels \
    are inferred, and a fair reader may see them differently. They only warn.";

/// What the SDK does, and how its findings are got rid of.
fn sdk_lead(groups: &[RequirementGroup<'_>]) -> Vec<InlineText> {
    let findings: Vec<&Finding> =
        groups.iter().flat_map(|group| &group.findings).map(|grouped| grouped.finding).collect();
    let names: BTreeSet<&str> = findings.iter().filter_map(|finding| finding.sdk.as_deref()).collect();
    let lead = |name: &str| match Sdk::named(name) {
        Some(sdk) => inline_code(&format!(
            "A clean server on the {name} does the same: measured on {}. To get rid of these findings, {}.",
            sdk.measured,
            sdk.remedy_for(&findings)
        )),
        None => inline_code(&format!("A clean server on the {name} does the same.")),
    };
    names.into_iter().map(lead).collect()
}

/// Turns groups into views with ids of their own.
struct Views<'a> {
    taken: BTreeSet<String>,
    slugs: BTreeMap<Key, String>,
    tools: &'a [String],
}

impl Views<'_> {
    fn of(&mut self, groups: &[RequirementGroup<'_>]) -> Vec<FindingView> {
        let mut views = Vec::new();
        for grouped in groups.iter().flat_map(|group| &group.findings) {
            let slug = unique_slug(&mut self.taken, &slug(&grouped.finding.requirement));
            for one in std::iter::once(grouped).chain(&grouped.alike) {
                for (case, revision) in one.cases.iter().flat_map(|case| one.revisions.iter().map(move |at| (case, at)))
                {
                    self.slugs.insert(key(case, *revision, one.message, one.finding), slug.clone());
                }
            }
            views.push(FindingView::of(grouped, slug, self.tools));
        }
        // The findings of a rule may have several verdicts; those that fail come first. The order is stable.
        views.sort_by_key(|view| view.verdict != Verdict::Fail.as_str());
        views
    }
}

fn key(case: &str, revision: Revision, message: &str, finding: &Finding) -> Key {
    let text = format!("{}\n{message}", finding.requirement);
    (case.to_owned(), revision, text, finding.verdict, finding.sdk.clone(), finding.accepted.is_some())
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

impl FindingView {
    fn of(grouped: &GroupedFinding<'_>, slug: String, tools: &[String]) -> Self {
        let finding = grouped.finding;
        let mut areas: Vec<String> = grouped.cases.iter().map(|case| display(area(case))).collect();
        areas.dedup();
        let value = finding.value.as_ref().map(|value| indent(&value.to_string()));
        // The lead of their part says why open questions of interpretation only warn.
        let has_lead = finding.accepted.is_none() && Attribution::of(finding) == Attribution::Interpretation;
        let message = inline_code(&grouped.headline());
        let mut by_tool: Vec<&Finding> = grouped.by_tool.clone();
        // The call of the finding that represents all is shown first.
        by_tool.sort_by_key(|of_tool| !std::ptr::eq(*of_tool, finding));
        let examples = by_tool.iter().filter_map(|of_tool| of_tool.counterexample.as_ref());
        let mut examples = examples.map(|one| CounterexampleView::of(one, &slug, &message));
        Self {
            counterexample: examples.next(),
            other_counterexamples: examples.collect(),
            slug,
            requirement: display(&finding.requirement),
            reason: level_reason(finding),
            heading_reason: level_reason(finding).filter(|_| !has_lead),
            attribution: Attribution::of(finding).as_str(),
            sdk: finding.sdk.as_deref().map(display),
            upstream: finding.upstream.as_ref().map(|upstream| display(&upstream.history())),
            issue: finding.upstream.as_ref().and_then(|upstream| https_link(upstream.issue.as_deref()?)),
            folded: grouped.alike.iter().map(FoldedView::of).collect(),
            alike: grouped.tools.iter().filter(|_| grouped.tools.len() > 1).map(|tool| display(tool)).collect(),
            level: finding.level.to_string(),
            verdict: finding.verdict.as_str(),
            areas: areas.join(" "),
            revisions: grouped.revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(" "),
            tools: tool_numbers(grouped, tools),
            message,
            occurrences: occurrences(grouped),
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
            is_new: false,
            accepted: finding.accepted.as_deref().map(display),
        }
    }
}

impl FoldedView {
    fn of(grouped: &GroupedFinding<'_>) -> Self {
        let finding = grouped.finding;
        Self {
            message: inline_code(&grouped.headline()),
            requirement: display(&finding.requirement),
            level: level_label(finding),
            occurrences: occurrences(grouped),
            cases: grouped.cases.iter().map(|case| display(case)).collect(),
            actual: inline_code(&finding.actual),
            link: display(&finding.link),
            link_target: https_link(&finding.link),
            reproduce: display(&finding.reproduce),
            rows: timeline(&finding.evidence),
        }
    }
}

/// How often and in which revisions a finding was made.
fn occurrences(grouped: &GroupedFinding<'_>) -> String {
    let times = match grouped.count {
        0 | 1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    };
    format!("{times} in {}", revisions(&grouped.revisions))
}

impl CounterexampleView {
    fn of(one: &Counterexample, slug: &str, message: &InlineText) -> Self {
        Self {
            tool: display(&one.tool),
            kind: one.kind.as_str(),
            violated: one.violated.as_deref().map(display),
            diff: diff_texts(&indent_fully(&one.original.to_string()), &indent_fully(&one.arguments.to_string())),
            fails_for: failing_arguments(one),
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
    names.extend(grouped.tools.iter().map(|tool| display(tool)));
    names.extend(grouped.finding.evidence.iter().filter_map(called_tool));
    let numbers = tools.iter().enumerate().filter(|(_, tool)| names.contains(*tool));
    numbers.map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn called_tool(item: &Evidence) -> Option<String> {
    match &item.message {
        Some(MessageSummary::Request { tool: Some(tool), .. }) if item.direction == Direction::Sent => {
            Some(display(tool))
        }
        _ => None,
    }
}
