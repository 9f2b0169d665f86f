//! The report formats, read back by independent parsers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mcp_conformance::report::Report;
use mcp_conformance::report::visible::is_control_or_invisible;
use serde_json::Value;

pub(crate) const FORMATS: [(&str, &str); 8] = [
    ("junit", "r.xml"),
    ("sarif", "r.sarif"),
    ("tap", "r.tap"),
    ("markdown", "r.md"),
    ("github", "r.gh"),
    ("badge", "r.svg"),
    ("text", "r.txt"),
    ("html", "r.html"),
];

pub(crate) fn read(folder: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn check(what: &str, holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("this check fails: {what}")) }
}

/// Parses every format of a run with an independent parser; returns the number of case results.
pub(crate) fn check_formats(folder: &Path) -> Result<usize, String> {
    let report = Report::parse(&read(folder, "r.json")?).map_err(|error| error.to_string())?;
    let results = report.results().count();
    for (format, file) in FORMATS {
        let text = read(folder, file)?;
        let acting = text.chars().find(|c| *c != '\n' && is_control_or_invisible(*c));
        check(
            &format!("{format} contains no control or invisible characters, but it contains {acting:?}"),
            acting.is_none(),
        )?;
    }
    let xml = read(folder, "r.xml")?;
    let document = roxmltree::Document::parse(&xml).map_err(|error| format!("JUnit: {error}"))?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase")).count();
    check("JUnit has a test case for each case", cases == results)?;
    let read_back = quick_junit::Report::deserialize_from_str(&xml).map_err(|error| format!("JUnit: {error}"))?;
    let counted: usize = read_back.test_suites.iter().map(|suite| suite.test_cases.len()).sum();
    check("quick-junit parses the same test cases", counted == results)?;
    let sarif: Value = serde_json::from_str(&read(folder, "r.sarif")?).map_err(|error| format!("SARIF: {error}"))?;
    let findings = report.results().flat_map(|result| &result.findings);
    let mut shown = BTreeSet::new();
    for result in sarif["runs"][0]["results"].as_array().into_iter().flatten() {
        for revision in result["properties"]["revisions"].as_array().into_iter().flatten() {
            shown.insert((result["ruleId"].as_str().unwrap_or_default(), revision.as_str().unwrap_or_default()));
        }
    }
    let found = findings.map(|finding| (finding.requirement.as_str(), finding.revision.as_str())).collect();
    check("SARIF has each violated requirement in its revisions", shown == found)?;
    let tap = read(folder, "r.tap")?;
    let points = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    check("TAP has a point for each case", points == results && tap.contains(&format!("1..{results}")))?;
    check("Markdown is bounded", read(folder, "r.md")?.len() < 65_536)?;
    let commands = read(folder, "r.gh")?;
    let starts = ["::error title=", "::warning title=", "::notice title="];
    check("annotations are commands", commands.lines().all(|line| starts.iter().any(|start| line.starts_with(start))))?;
    let svg = read(folder, "r.svg")?;
    let image = roxmltree::Document::parse(&svg).is_ok_and(|d| d.root_element().has_tag_name("svg"));
    check("the badge is an image", image)?;
    check("the page is one", read(folder, "r.html")?.to_ascii_lowercase().starts_with("<!doctype html>"))?;
    Ok(results)
}
