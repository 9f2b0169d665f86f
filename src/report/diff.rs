//! Comparison of two runs of a server: findings that are new, fixed, changed or not judged again.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::Report;
use super::baseline_comparison::tools_of;
use super::json::write_escaped;
use super::markdown::{code, sentence};
use super::visible::{excerpt, visible};
use crate::event::CaseResult;
use crate::spec::{Revision, RevisionSet};
use crate::verdict::{Finding, Verdict};

/// The difference between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Diff {
    /// Findings of the later run only.
    pub new: Vec<Difference>,
    /// Findings of the earlier run that the later one judged again and did not make.
    pub fixed: Vec<Difference>,
    /// Findings of both runs whose verdict or message changed.
    pub changed: Vec<Difference>,
    /// Findings of the earlier run whose cases were not judged again.
    pub not_judged: Vec<Difference>,
}

/// A finding that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    /// The case.
    pub case: String,
    /// The requirement.
    pub requirement: String,
    /// The tool, if the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The revisions in which they differ.
    pub revisions: RevisionSet,
    /// The verdict of the later run, or of the earlier one if the later run has no such finding.
    pub verdict: Verdict,
    /// The message of the finding.
    pub message: String,
    /// The earlier verdict and message, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// The identity of a finding: case, requirement, tool and revision.
type Key<'a> = (&'a str, &'a str, Option<&'a str>, Revision);

fn findings(report: &Report) -> BTreeMap<Key<'_>, &Finding> {
    let mut found: BTreeMap<Key<'_>, &Finding> = BTreeMap::new();
    for result in report.results() {
        for finding in &result.findings {
            let tools = tools_of(finding);
            let tools = if tools.is_empty() { vec![None] } else { tools.into_iter().map(Some).collect() };
            for tool in tools {
                let key = (result.case.as_str(), finding.requirement.as_str(), tool, result.revision);
                let kept = found.entry(key).or_insert(finding);
                // The most severe finding represents all findings with the same key.
                if finding.verdict > kept.verdict {
                    *kept = finding;
                }
            }
        }
    }
    found
}

impl Diff {
    /// Compares an earlier run with a later one.
    #[must_use]
    pub fn of(old: &Report, new: &Report) -> Self {
        let was_judged = |result: &&CaseResult| !matches!(result.verdict, Verdict::Error | Verdict::Skip);
        let judged: std::collections::BTreeSet<(&str, Revision)> =
            new.results().filter(was_judged).map(|result| (result.case.as_str(), result.revision)).collect();
        let (before, after) = (findings(old), findings(new));
        let mut diff = Self::default();
        for (key, finding) in &after {
            match before.get(key) {
                None => add(&mut diff.new, key, finding, None),
                Some(known) if known.verdict != finding.verdict || known.message != finding.message => {
                    let describe = |finding: &Finding| format!("{}: {}", finding.verdict.as_str(), finding.message);
                    // A warning that became a failure counts as new, so that it fails the comparison.
                    let list = if finding.verdict > known.verdict { &mut diff.new } else { &mut diff.changed };
                    add(list, key, finding, Some(describe(known)));
                }
                Some(_) => {}
            }
        }
        for (key, finding) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
            let (case, _, _, revision) = key;
            let list = if judged.contains(&(*case, *revision)) { &mut diff.fixed } else { &mut diff.not_judged };
            add(list, key, finding, None);
        }
        diff
    }

    /// The lists with their titles.
    fn parts(&self) -> [(&'static str, &[Difference]); 4] {
        [("new", &self.new), ("fixed", &self.fixed), ("changed", &self.changed), ("not judged again", &self.not_judged)]
    }

    /// The result in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let counts: Vec<String> = self.parts().iter().map(|(title, list)| format!("{} {title}", list.len())).collect();
        format!("DIFF: {}; exit code {}", counts.join(", "), u8::from(!self.new.is_empty()))
    }

    /// Writes it for a terminal.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (title, list) in self.parts().into_iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(out, "{title}")?;
            for one in list {
                let tool =
                    one.tool.as_ref().map_or_else(String::new, |tool| format!(", tool {}", excerpt(tool, 80, 0)));
                let (verdict, requirement, case) =
                    (one.verdict.as_str(), visible(&one.requirement), visible(&one.case));
                writeln!(out, "  {verdict}  {requirement}  by {case}{tool} in {}", one.revisions.compact())?;
                writeln!(out, "        {}", excerpt(&one.message, 300, 0))?;
                if let Some(before) = &one.before {
                    writeln!(out, "        before: {}", excerpt(before, 300, 0))?;
                }
            }
            writeln!(out)?;
        }
        writeln!(out, "{}", self.line())
    }

    /// Writes it as Markdown, for a comment.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        const MAX_ENTRIES: usize = 60;
        writeln!(out, "**{}**\n", self.line())?;
        for (title, list) in self.parts().into_iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(out, "### {} {title}\n", list.len())?;
            for one in list.iter().take(MAX_ENTRIES) {
                let tool = one.tool.as_ref().map_or_else(String::new, |tool| format!(", tool {}", code(tool, 80)));
                write!(out, "- {} {}: ", one.verdict.as_str(), code(&one.requirement, 120))?;
                write!(out, "{} ", sentence(&excerpt(&one.message, 300, 0)))?;
                writeln!(out, "({}{tool}, {})", code(&one.case, 120), one.revisions.compact())?;
            }
            if list.len() > MAX_ENTRIES {
                writeln!(out, "- and {} more", list.len() - MAX_ENTRIES)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_escaped(self, out)
    }
}

/// Adds a difference, or only its revision if an equal difference is already listed.
fn add(list: &mut Vec<Difference>, key: &Key<'_>, finding: &Finding, before: Option<String>) {
    let (case, requirement, tool, revision) = *key;
    let tool = tool.map(str::to_owned);
    let same = list.iter_mut().find(|known| {
        known.case == case
            && known.requirement == requirement
            && known.tool == tool
            && known.verdict == finding.verdict
            && known.message == finding.message
            && known.before == before
    });
    match same {
        Some(known) => known.revisions = known.revisions.with(revision),
        None => list.push(Difference {
            case: case.to_owned(),
            requirement: requirement.to_owned(),
            tool,
            revisions: RevisionSet::default().with(revision),
            verdict: finding.verdict,
            message: finding.message.clone(),
            before,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, poison};

    fn text(diff: &Diff, write: fn(&Diff, &mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(diff, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("it is UTF-8")
    }

    #[test]
    fn a_run_compared_with_itself_has_no_differences() {
        let diff = Diff::of(&example(), &example());
        assert_eq!(diff, Diff::default());
        assert_eq!(diff.line(), "DIFF: 0 new, 0 fixed, 0 changed, 0 not judged again; exit code 0");
    }

    #[test]
    fn a_missing_finding_is_fixed_only_if_its_case_was_judged_again() {
        let mut later = example();
        later.targets[0].results[1].findings.clear();
        later.targets[0].results[1].verdict = Verdict::Pass;
        later.targets[1].results.retain(|result| result.case != "fuzz/crash");
        let diff = Diff::of(&example(), &later);
        assert_eq!([diff.new.len(), diff.fixed.len(), diff.changed.len(), diff.not_judged.len()], [0, 1, 0, 1]);
        assert_eq!(
            (diff.not_judged[0].case.as_str(), diff.not_judged[0].tool.as_deref()),
            ("fuzz/crash", Some("search"))
        );
        // In the other direction both are new.
        assert_eq!(Diff::of(&later, &example()).new.len(), 2);
    }

    #[test]
    fn a_warning_that_became_a_failure_is_new_and_the_reverse_is_a_change() {
        let mut later = example();
        later.targets[1].results[1].findings[0].verdict = Verdict::Fail;
        assert_eq!(Diff::of(&example(), &later).new.len(), 1);
        assert_eq!(Diff::of(&later, &example()).changed.len(), 1);
        let mut reworded = example();
        reworded.targets[1].results[1].findings[0].message = "Another sentence.".to_owned();
        let diff = Diff::of(&example(), &reworded);
        assert_eq!(diff.changed[0].before.as_deref(), Some("warn: An error message contains a stack trace."));
    }

    #[test]
    fn server_text_is_escaped_in_every_format() {
        let (mut later, mut empty) = (example(), example());
        poison(&mut later, &format!("\n## x `</b>` {HOSTILE}"));
        empty.targets.clear();
        let diff = Diff::of(&empty, &later);
        for write in [Diff::write_text, Diff::write_markdown, Diff::write_json] {
            let text = text(&diff, write);
            assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
            assert!(!text.lines().any(|line| line.starts_with("## x") || line.starts_with("PASS")), "{text}");
        }
        let back: serde_json::Value = serde_json::from_str(&text(&diff, Diff::write_json)).expect("JSON");
        assert_eq!(back["new"].as_array().map(Vec::len), Some(diff.new.len()));
    }
}
