//! The report formats, written by the program for a server that tries to inject markup.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::report::Report;
use mcp_conformance::report::visible::is_control_or_invisible;
use mcp_conformance::verdict::Verdict;
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
        trial("formats/tap-is-read-by-another-parser", tap_is_read_by_another_parser).with_ignored_flag(!has_perl()),
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

/// The parser of `prove`, which comes with Perl.
fn perl(program: &str, file: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new("perl");
    command.args(["-MTAP::Parser", "-e", program]).args(file);
    let output = command.output().map_err(|error| error.to_string())?;
    let error = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && error.is_empty() { Ok(text.into_owned()) } else { Err(format!("{text}{error}")) }
}

fn has_perl() -> bool {
    perl("1", None).is_ok()
}

/// Reads TAP: the errors, whether the plan fits, the numbers of points, of those that are not ok, of those with SKIP and
/// TODO, of YAML blocks, and of findings in them.
const READ_TAP: &str = r#"
open(my $file, "<:utf8", $ARGV[0]) or die $!;
my $parser = TAP::Parser->new({ tap => do { local $/; <$file> } });
my ($failed, $skipped, $expected, $blocks, $findings) = (0, 0, 0, 0, 0);
while (my $part = $parser->next) {
    if ($part->is_test) {
        $failed++ if !$part->is_actual_ok;
        $skipped++ if $part->has_skip;
        $expected++ if $part->has_todo;
    }
    if ($part->is_yaml) {
        $blocks++;
        for my $finding (@{ $part->data->{findings} || [] }) {
            $findings++ if $finding->{requirement} && $finding->{details} =~ /rule: /;
        }
    }
}
my @errors = $parser->parse_errors;
print "@errors|", ($parser->is_good_plan ? "good" : "bad"), "|";
print join("|", $parser->tests_run, $failed, $skipped, $expected, $blocks, $findings);
"#;

fn tap_is_read_by_another_parser() -> Result<(), String> {
    let folder = hostile_run()?;
    let folder = folder.path();
    let baseline = ["--baseline", "b.jsonc"];
    let entry =
        r#"{"findings": [{"case": "content/image-base64", "requirement": "content-image", "reason": "known # SKIP"}]}"#;
    fs::write(folder.join("b.jsonc"), entry).map_err(|error| error.to_string())?;
    let words = ["report", "r.json", "--quiet", "--report", "tap=r.tap", "--report", "json=accepted.json"];
    program(folder, &[&words[..], &baseline].concat())?.with_code(0)?;
    let report = Report::parse(&read(folder, "accepted.json")?).map_err(|error| error.to_string())?;
    let count = |wanted: fn(&CaseResult) -> bool| report.results().filter(|result| wanted(result)).count();
    let expected = [
        report.results().count(),
        count(|result| matches!(result.verdict, Verdict::Fail | Verdict::Error)),
        count(|result| result.verdict == Verdict::Skip),
        count(|result| result.findings.iter().any(|finding| finding.accepted.is_some())),
        count(|result| !result.findings.is_empty() || result.verdict == Verdict::Error),
        report.results().map(|result| result.findings.len()).sum(),
    ];
    let expected = expected.map(|number| number.to_string()).join("|");
    let read = perl(READ_TAP, Some(&folder.join("r.tap")))?;
    check(&format!("Perl reads `{read}`, expected `|good|{expected}`"), read == format!("|good|{expected}"))?;
    // A missing point is noticed.
    let text = self::read(folder, "r.tap")?;
    let points = text.lines().filter(|line| !line.starts_with(' '));
    let cut: Vec<&str> = points.take(10).collect();
    fs::write(folder.join("cut.tap"), cut.join("\n") + "\n").map_err(|error| error.to_string())?;
    check("a part is no whole", perl(READ_TAP, Some(&folder.join("cut.tap"))).is_ok_and(|text| text.contains("|bad|")))
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
    for (format, start) in [("junit", "<?xml"), ("sarif", "{"), ("github", "::"), ("tap", "TAP version 13\n")] {
        let ran = program(folder.path(), &["report", "r.json", "--quiet", "--report", format])?.with_code(1)?;
        check(&format!("{format} is the only output"), ran.out.starts_with(start) && !ran.out.contains("\nFAIL: "))?;
        ran.shows("--- stderr\nFAIL: ")?;
    }
    Ok(())
}
