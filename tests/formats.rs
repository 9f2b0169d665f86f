//! The report formats, written by the program for a server that tries to inject markup.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use mcp_conformance::report::Report;
use mcp_conformance::report::visible::is_control_or_invisible;
use serde_json::Value;
use tempfile::TempDir;

use crate::{PROGRAM, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_BROWSER").is_some_and(|value| value == "required");
    vec![
        trial("formats/one-run-writes-every-format", one_run_writes_every_format),
        trial("formats/the-demo-writes-every-format", the_demo_writes_every_format),
        trial("formats/sarif-is-valid-by-the-official-schema", sarif_is_valid_by_the_official_schema)
            .with_ignored_flag(!required && !sarif_schema().is_file()),
        trial("formats/a-stored-report-is-rendered-again", a_stored_report_is_rendered_again),
        trial("formats/another-format-is-rejected", another_format_is_rejected),
        trial("formats/only-the-report-is-on-standard-output", only_the_report_is_on_standard_output),
    ]
}

const FORMATS: [(&str, &str); 8] = [
    ("junit", "r.xml"),
    ("sarif", "r.sarif"),
    ("tap", "r.tap"),
    ("markdown", "r.md"),
    ("github", "r.gh"),
    ("badge", "r.svg"),
    ("text", "r.txt"),
    ("html", "r.html"),
];

/// Judges a server with hostile text wherever possible, in a new folder.
fn hostile_run() -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let outputs: Vec<String> = FORMATS.iter().map(|(format, file)| format!("--report={format}={file}")).collect();
    let mut args = vec!["--quiet", "--revision", "2025-11-25", "--report", "json=r.json"];
    args.extend(outputs.iter().map(String::as_str));
    args.extend(["--", PROGRAM, "serve", "--fault", "hostile-text", "--fault", "image-data-url"]);
    program(folder.path(), &args)?.with_code(1)?;
    Ok(folder)
}

fn read(folder: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
}

fn check(what: &str, holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("this check fails: {what}")) }
}

fn one_run_writes_every_format() -> Result<(), String> {
    let folder = hostile_run()?;
    let results = check_formats(folder.path())?;
    check("something was judged", results > 100)?;
    let markdown = read(folder.path(), "r.md")?;
    check("Markdown lists the violated requirement", markdown.contains("content-image"))
}

fn the_demo_writes_every_format() -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let outputs: Vec<String> = FORMATS.iter().map(|(format, file)| format!("--report={format}={file}")).collect();
    let mut args = vec!["demo", "--quiet", "--report", "json=r.json"];
    args.extend(outputs.iter().map(String::as_str));
    program(folder.path(), &args)?.with_code(0)?;
    check("something was judged", check_formats(folder.path())? > 500)
}

/// Parses every format of a run with an independent parser; returns the number of case results.
fn check_formats(folder: &Path) -> Result<usize, String> {
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
    let findings: usize = report.results().map(|result| result.findings.len()).sum();
    check("SARIF has each finding", sarif["runs"][0]["results"].as_array().map(Vec::len) == Some(findings))?;
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

/// The official schema of SARIF, from an npm package.
fn sarif_schema() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/node_modules/@microsoft/jest-sarif");
    folder.join("lib/schemas/sarif-2.1.0-rtm.5.json")
}

fn sarif_is_valid_by_the_official_schema() -> Result<(), String> {
    let path = sarif_schema();
    let text =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}; .ci/run installs it", path.display()))?;
    // One of its patterns has an extra bracket and is invalid.
    let text = text.replace("{2}]?$", "{2}$");
    let schema = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let folder = hostile_run()?;
    let sarif: Value = serde_json::from_str(&read(folder.path(), "r.sarif")?).map_err(|error| error.to_string())?;
    if let Some(error) = validator.iter_errors(&sarif).next() {
        return Err(format!("{}: {error}", error.instance_path()));
    }
    let mut invalid = sarif;
    invalid["runs"][0]["results"][0]["level"] = "grave".into();
    check("an unknown level is rejected", !validator.is_valid(&invalid))
}

fn a_stored_report_is_rendered_again() -> Result<(), String> {
    let folder = hostile_run()?;
    let folder = folder.path();
    for (format, file) in FORMATS {
        let output = format!("{format}=again");
        program(folder, &["report", "r.json", "--quiet", "--report", &output])?.with_code(1)?;
        // --quiet also applies to text that is written to a file.
        check(&format!("{format} is the same again"), read(folder, file)? == read(folder, "again")?)?;
    }
    program(folder, &["report", "r.json", "--quiet", "--report", "json=again"])?.with_code(1)?;
    check("the report itself is the same again", read(folder, "r.json")? == read(folder, "again")?)?;
    program(folder, &["report", "r.json", "--quiet", "--fail-on", "never"])?
        .with_code(0)?
        .shows("REPORT ONLY: ")
        .map(drop)
}

fn another_format_is_rejected() -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).map_err(|error| error.to_string());
    write("new.json", "{\"format\": 99}")?;
    write("none.json", "[]")?;
    let run = |args: &[&str]| program(folder.path(), args)?.with_code(2);
    run(&["report", "new.json"])?.shows("the report has format 99")?.shows("run again")?;
    run(&["report", "none.json"])?.shows("--report json=FILE writes one")?;
    run(&["report", "missing.json"])?.shows("failed to read the report missing.json")?;
    run(&["merge", "none.json"])?;
    run(&["diff", "none.json", "new.json"])?;
    run(&["fleet", "new.json"]).map(drop)
}

fn only_the_report_is_on_standard_output() -> Result<(), String> {
    let folder = hostile_run()?;
    for (format, start) in [("junit", "<?xml"), ("sarif", "{"), ("github", "::"), ("tap", "TAP version 14\n")] {
        let ran = program(folder.path(), &["report", "r.json", "--quiet", "--report", format])?.with_code(1)?;
        check(&format!("{format} is the only output"), ran.out.starts_with(start) && !ran.out.contains("\nFAIL: "))?;
        ran.shows("--- stderr\nFAIL: ")?;
    }
    Ok(())
}
