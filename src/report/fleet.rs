//! A summary of many servers: which of them violate which requirements.
//!
//! It is built from one report per server and keeps only names and counts, so that thousands of reports fit.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::conclusion::{CaseCounts, Conclusion};
use super::json::write_escaped;
use super::markdown::{code, sentence};
use super::{Report, finding_text};
use crate::spec::{Level, Revision, RevisionSet};
use crate::verdict::{Totals, Verdict};

/// The summary of many servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fleet {
    /// The servers, in the order in which they were added.
    pub servers: Vec<Server>,
    /// The requirements that at least one server violates, by id.
    pub requirements: BTreeMap<String, ViolatedRequirement>,
}

/// One server of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Server {
    /// Its name and version from `serverInfo`, or its command line.
    pub name: String,
    /// The file of its report.
    pub file: String,
    /// The file that the page links to, relative to it.
    #[serde(skip)]
    pub link: String,
    /// The revisions in which it was judged.
    pub revisions: RevisionSet,
    /// Its cases by verdict in each of these revisions.
    pub by_revision: Vec<RevisionResult>,
    /// The conclusion of its run: `passed`, `failed`, `not-judged` or `nothing-judged`.
    pub conclusion: &'static str,
    /// Its cases by verdict, without those that its baseline accepts.
    pub totals: Totals,
    /// The cases whose findings its baseline accepts.
    pub accepted: usize,
    /// The number of requirements that it violates, without warnings.
    pub violated: usize,
}

/// A server in one revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RevisionResult {
    /// The revision.
    pub revision: Revision,
    /// Its cases by verdict, without those that its baseline accepts.
    pub totals: Totals,
}

/// A requirement that at least one server violates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ViolatedRequirement {
    /// The level of the requirement.
    pub level: Level,
    /// The text of the requirement, if the catalogue lists it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// The page of the specification.
    pub link: String,
    /// The servers that fail it, as indices into the list of servers.
    pub failing: Vec<usize>,
    /// The servers with warnings about it.
    pub warned: Vec<usize>,
    /// Why failures of it fail, if its level does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_reason: Option<&'static str>,
    /// Why warnings about it only warn, if its level does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning_reason: Option<&'static str>,
}

impl ViolatedRequirement {
    pub(super) fn weight(&self) -> (usize, usize) {
        (self.failing.len(), self.warned.len())
    }

    /// Its level, with the reasons for other verdicts than it says.
    pub(super) fn level_text(&self) -> String {
        let prefix = if self.failing.is_empty() { "" } else { "as a warning: " };
        let warning = self.warning_reason.map(|reason| format!("{prefix}{reason}"));
        let reasons: Vec<String> = self.failing_reason.map(str::to_owned).into_iter().chain(warning).collect();
        if reasons.is_empty() { self.level.to_string() } else { format!("{} ({})", self.level, reasons.join("; ")) }
    }
}

/// The number of servers that are named next to a requirement.
const MAX_NAMES: usize = 12;

impl Fleet {
    /// Adds the report of a server; `file` is the name of the report, and `link` is what the page links to.
    pub fn add(&mut self, file: &str, link: &str, report: &Report) {
        let index = self.servers.len();
        let mut heaviest: BTreeMap<&str, (Verdict, &crate::verdict::Finding)> = BTreeMap::new();
        for finding in report.results().flat_map(|result| &result.findings) {
            let known = heaviest.entry(&finding.requirement).or_insert((finding.verdict, finding));
            if finding.verdict > known.0 {
                *known = (finding.verdict, finding);
            }
        }
        let violated = heaviest.values().filter(|(verdict, _)| *verdict == Verdict::Fail).count();
        for (requirement, (verdict, finding)) in heaviest {
            let known = self.requirements.entry(requirement.to_owned()).or_insert_with(|| ViolatedRequirement {
                level: finding.level,
                rule: finding_text::rule_text(requirement),
                link: finding.link.clone(),
                failing: Vec::new(),
                warned: Vec::new(),
                failing_reason: None,
                warning_reason: None,
            });
            let (servers, reason) = if verdict == Verdict::Fail {
                (&mut known.failing, &mut known.failing_reason)
            } else {
                (&mut known.warned, &mut known.warning_reason)
            };
            servers.push(index);
            *reason = reason.or_else(|| finding_text::level_reason(finding));
        }
        let CaseCounts { totals, accepted, .. } = CaseCounts::of(report);
        let conclusion = match Conclusion::of(report) {
            Conclusion::Passed => "passed",
            Conclusion::Failed => "failed",
            Conclusion::Unjudged => "not-judged",
            Conclusion::NothingJudged => "nothing-judged",
        };
        self.servers.push(Server {
            name: name(report),
            file: file.to_owned(),
            link: link.to_owned(),
            revisions: report.targets.iter().map(|target| target.summary.revision).collect(),
            by_revision: report
                .targets
                .iter()
                .map(|target| RevisionResult {
                    revision: target.summary.revision,
                    totals: CaseCounts::of_results(&target.results).totals,
                })
                .collect(),
            conclusion,
            totals,
            accepted,
            violated,
        });
    }

    /// The requirements, those that most servers violate first.
    pub(super) fn ranked(&self) -> Vec<(&str, &ViolatedRequirement)> {
        let mut ranked: Vec<(&str, &ViolatedRequirement)> =
            self.requirements.iter().map(|(id, violated)| (id.as_str(), violated)).collect();
        ranked.sort_by(|a, b| b.1.weight().cmp(&a.1.weight()).then(a.0.cmp(b.0)));
        ranked
    }

    /// The names of the first few servers, each written by `write`.
    pub(super) fn names(&self, indices: &[usize], write: fn(&str) -> String) -> String {
        let known = indices.iter().filter_map(|index| self.servers.get(*index));
        let names: Vec<String> = known.take(MAX_NAMES).map(|server| write(&server.name)).collect();
        let rest = indices.len().saturating_sub(names.len());
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!("{}{more}", names.join(", "))
    }

    pub(super) fn line(&self) -> String {
        let count = |conclusion: &str| self.servers.iter().filter(|server| server.conclusion == conclusion).count();
        format!(
            "{} servers: {} passed, {} failed, {} not judged",
            self.servers.len(),
            count("passed"),
            count("failed"),
            count("not-judged") + count("nothing-judged")
        )
    }

    /// Writes the page as Markdown.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "# MCP conformance of multiple servers\n\n**{}**\n\n## Servers\n", self.line())?;
        writeln!(out, "| server | outcome | violated | pass | fail | warn | skip | error | accepted | revisions |")?;
        writeln!(out, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")?;
        for server in &self.servers {
            let Totals { pass, fail, warn, skip, error } = server.totals;
            let (name, violated, accepted) = (code(&server.name, 120), server.violated, server.accepted);
            let revisions = server.revisions.compact();
            writeln!(
                out,
                "| {name} | {} | {violated} | {pass} | {fail} | {warn} | {skip} | {error} | {accepted} | {revisions} |",
                server.conclusion
            )?;
        }
        writeln!(out, "\n## Requirements\n\n| requirement | level | fail | warn | servers |")?;
        writeln!(out, "| --- | --- | ---: | ---: | --- |")?;
        for (id, violated) in self.ranked() {
            let indices: Vec<usize> = violated.failing.iter().chain(&violated.warned).copied().collect();
            let names = self.names(&indices, |name| code(name, 60));
            let (fail, warn) = violated.weight();
            writeln!(out, "| {} | {} | {fail} | {warn} | {names} |", code(id, 120), violated.level_text())?;
        }
        writeln!(out, "\n{}", sentence("Generated by mcp-conformance from one JSON report per server."))
    }

    /// Writes the summary as JSON.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_escaped(self, out)
    }
}

/// The name and version of a server in the newest revision, or its command line.
fn name(report: &Report) -> String {
    let info = report.targets.iter().rev().find_map(|target| target.summary.server_info.as_ref());
    let part = |name| info.and_then(|info| info.get(name)?.as_str()).unwrap_or_default();
    let name = format!("{} {}", part("name"), part("version"));
    if name.trim().is_empty() { report.server.clone() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn fleet() -> Fleet {
        let mut other = example();
        (other.baseline, other.targets) = (None, vec![other.targets[0].clone()]);
        let mut fleet = Fleet::default();
        fleet.add("a.json", "a.html", &example());
        fleet.add("b.json", "b.json", &other);
        fleet
    }

    fn text(fleet: &Fleet, write: fn(&Fleet, &mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(fleet, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("it is UTF-8")
    }

    #[test]
    fn the_rendered_pages_match_the_golden_files() {
        golden::compare("fleet.md", &text(&fleet(), Fleet::write_markdown));
        golden::compare("fleet.html", &text(&fleet(), Fleet::write_html));
    }

    #[test]
    fn servers_are_counted_per_requirement() {
        let fleet = fleet();
        let (id, first) = fleet.ranked()[0];
        assert_eq!((id, &first.failing), ("tools-call-unknown-tool-error", &vec![0, 1]));
        assert_eq!(fleet.servers[1].name, "files 1.4.2");
        assert!(fleet.line().starts_with("2 servers: 0 passed, 2 failed"), "{}", fleet.line());
        let back: serde_json::Value = serde_json::from_str(&text(&fleet, Fleet::write_json)).expect("JSON");
        assert_eq!(back["servers"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_warning_about_a_rule_that_binds_has_its_reason() {
        let mut report = example();
        let findings = report.targets.iter_mut().flat_map(|target| &mut target.results);
        for finding in findings.flat_map(|result| &mut result.findings) {
            finding.verdict = finding.verdict.min(Verdict::Warn);
        }
        let mut fleet = Fleet::default();
        fleet.add("a.json", "a.html", &report);
        for write in [Fleet::write_markdown, Fleet::write_html] {
            let page = text(&fleet, write);
            assert!(page.contains("SCHEMA (only warns, as the rule can be"), "{page}");
            assert!(page.contains("MUST (inferred: "), "{page}");
        }
        fleet.add("b.json", "b.json", &example());
        let page = text(&fleet, Fleet::write_markdown);
        assert!(page.contains("SCHEMA (as a warning: only warns, as the rule can be"), "{page}");
        assert!(page.contains("SHOULD (inferred: the specification uses no keyword, but no"), "{page}");
        let unexplained = |fleet: &Fleet| {
            let binds = |one: &ViolatedRequirement| matches!(one.level, Level::Must | Level::Schema);
            fleet
                .requirements
                .values()
                .filter(|one| binds(one) && !one.warned.is_empty() && one.warning_reason.is_none())
                .count()
        };
        assert_eq!(unexplained(&fleet), 0);
    }

    #[test]
    fn server_text_is_escaped_in_every_format() {
        let mut report = example();
        poison(&mut report, &format!("</td><script>alert(1)</script>' onload=x | `` {HOSTILE}"));
        let mut fleet = Fleet::default();
        fleet.add("a.json", "a.html", &report);
        for write in [Fleet::write_markdown, Fleet::write_html, Fleet::write_json] {
            let text = text(&fleet, write);
            assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
        }
        let page = text(&fleet, Fleet::write_html);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        let rows = text(&fleet, Fleet::write_markdown);
        // A bar within a cell is escaped, so that every row keeps its columns.
        for row in rows.lines().filter(|line| line.starts_with("| `")) {
            let bars = row.replace("\\|", "").matches('|').count();
            assert!(bars == 11 || bars == 6, "{row}");
        }
    }
}
