//! What changed since an earlier run: a list each of new, fixed, changed and unjudged findings, one entry for each cause.

use std::collections::{BTreeMap, BTreeSet};

use super::display::{InlineText, display, format_start, inline_code};
use super::finding::Findings;
use crate::report::Report;
use crate::report::diff::{Diff, Difference};
use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// What changed since an earlier run.
#[derive(Debug)]
pub(super) struct Changes {
    /// The start of the earlier run.
    pub(super) since: String,
    /// The lists that have entries.
    pub(super) lists: Vec<ChangeList>,
}

/// One kind of change.
#[derive(Debug)]
pub(super) struct ChangeList {
    pub(super) title: &'static str,
    pub(super) entries: Vec<Change>,
}

/// A cause that changed.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) verdict: &'static str,
    pub(super) message: InlineText,
    pub(super) requirement: String,
    pub(super) revisions: String,
    /// The earlier verdict and message, if they changed.
    pub(super) before: Option<InlineText>,
    /// The id of the finding, if the later run made it.
    pub(super) slug: Option<String>,
}

/// What the differences of one cause have in common.
type Cause<'a> = (&'a str, &'a str, Verdict, Option<&'a str>);

impl Changes {
    /// Compares a report with an earlier one.
    pub(super) fn of(earlier: &Report, later: &Report, findings: &Findings) -> Self {
        let diff = Diff::of(earlier, later);
        let slugs = slugs(later, findings);
        let lists = [
            ("New", &diff.new),
            ("Fixed", &diff.fixed),
            ("Changed", &diff.changed),
            ("Not judged again", &diff.not_judged),
        ];
        let lists = lists.into_iter().filter(|(_, differences)| !differences.is_empty());
        Self {
            since: format_start(&earlier.started).1,
            lists: lists
                .map(|(title, differences)| ChangeList { title, entries: entries(differences, &slugs) })
                .collect(),
        }
    }

    /// The ids of the findings that are new.
    pub(super) fn new_slugs(&self) -> BTreeSet<&str> {
        let new = self.lists.iter().filter(|list| list.title == "New");
        new.flat_map(|list| &list.entries).filter_map(|entry| entry.slug.as_deref()).collect()
    }
}

/// The ids of the findings by case, requirement, verdict and message.
fn slugs<'a>(report: &'a Report, findings: &'a Findings) -> BTreeMap<(&'a str, &'a str, Verdict, &'a str), &'a str> {
    let mut slugs = BTreeMap::new();
    for result in report.results() {
        for finding in &result.findings {
            if let Some(slug) = findings.slug(&result.case, finding) {
                let key =
                    (result.case.as_str(), finding.requirement.as_str(), finding.verdict, finding.message.as_str());
                slugs.insert(key, slug);
            }
        }
    }
    slugs
}

/// One entry for each cause, failures first.
fn entries(differences: &[Difference], slugs: &BTreeMap<(&str, &str, Verdict, &str), &str>) -> Vec<Change> {
    let mut by_cause: BTreeMap<Cause<'_>, Vec<&Difference>> = BTreeMap::new();
    for difference in differences {
        let tool = difference.tool.as_deref();
        let rest = tool.and_then(|tool| difference.message.strip_prefix(tool)?.strip_prefix(": "));
        let message = rest.unwrap_or(&difference.message);
        let cause = (difference.requirement.as_str(), message, difference.verdict, difference.before.as_deref());
        by_cause.entry(cause).or_default().push(difference);
    }
    let mut entries: Vec<Change> = by_cause
        .into_iter()
        .map(|((requirement, message, verdict, before), all)| {
            let tools: BTreeSet<&str> = all.iter().filter_map(|one| one.tool.as_deref()).collect();
            let revisions = all.iter().map(|one| one.revisions).reduce(RevisionSet::union).unwrap_or_default();
            let slug =
                all.iter().find_map(|one| slugs.get(&(one.case.as_str(), requirement, verdict, one.message.as_str())));
            Change {
                verdict: verdict.as_str(),
                message: match (tools.len(), all.first()) {
                    (0 | 1, Some(one)) => inline_code(&one.message),
                    (count, _) => inline_code(&format!("{count} tools: {message}")),
                },
                requirement: display(requirement),
                revisions: revisions.compact(),
                before: before.map(inline_code),
                slug: slug.map(|slug| (*slug).to_owned()),
            }
        })
        .collect();
    entries.sort_by_key(|entry| entry.verdict != Verdict::Fail.as_str());
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    /// The texts of the lists, each with its title.
    fn lists(earlier: &Report, later: &Report) -> Vec<(&'static str, Vec<String>)> {
        let findings = Findings::of(later, &[]);
        let text = |entry: &Change| entry.message.iter().map(|(_, text)| text.as_str()).collect::<String>();
        let changes = Changes::of(earlier, later, &findings);
        changes.lists.iter().map(|list| (list.title, list.entries.iter().map(text).collect())).collect()
    }

    #[test]
    fn a_run_compared_with_itself_has_no_changes() {
        assert!(lists(&example(), &example()).is_empty());
    }

    #[test]
    fn a_cause_of_several_tools_is_one_entry_that_leads_to_its_finding() {
        let (earlier, mut later) = (example(), example());
        let crash = |result: &&mut crate::event::CaseResult| result.case == "fuzz/crash";
        let result = later.targets[1].results.iter_mut().find(crash).expect("the example has one");
        result.findings[0].message = "search: The server exits.".to_owned();
        for tool in ["delete", "list"] {
            let mut other = result.findings[0].clone();
            other.message = format!("{tool}: The server exits.");
            other.subjects = vec![tool.to_owned()];
            tool.clone_into(&mut other.counterexample.as_mut().expect("the fuzzer found it").tool);
            result.findings.push(other);
        }
        let expected = [
            ("New", vec!["2 tools: The server exits.".to_owned()]),
            ("Changed", vec!["search: The server exits.".to_owned()]),
        ];
        assert_eq!(lists(&earlier, &later), expected);
        let findings = Findings::of(&later, &[]);
        let changes = Changes::of(&earlier, &later, &findings);
        assert_eq!(changes.new_slugs().into_iter().collect::<Vec<_>>(), ["jsonrpc-request-answered"]);
        assert_eq!(lists(&later, &earlier)[0].0, "Fixed");
    }
}
