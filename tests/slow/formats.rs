//! The report formats, read by the parsers and checked by the schemas of others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_conformance::event::CaseResult;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::formats::{FORMATS, check, check_formats, read};
use crate::support::{PROGRAM, Trial, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("formats/sarif-is-valid-by-the-official-schema", sarif_is_valid_by_the_official_schema),
        trial("formats/tap-is-read-by-another-parser", tap_is_read_by_another_parser),
        trial("formats/the-demo-writes-every-format", the_demo_writes_every_format),
    ]
}

/// Judges a server with hostile text wherever possible, in a new folder.
fn hostile_run() -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let mut args = vec!["--quiet", "--revision", "2025-11-25", "--report", "json=r.json", "--report", "sarif=r.sarif"];
    args.extend(["--", PROGRAM, "serve", "--fault", "hostile-text", "--fault", "image-data-url"]);
    program(folder.path(), &args)?.with_code(1)?;
    Ok(folder)
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

fn the_demo_writes_every_format() -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let outputs: Vec<String> = FORMATS.iter().map(|(format, file)| format!("--report={format}={file}")).collect();
    let mut args = vec!["demo", "--quiet", "--report", "json=r.json"];
    args.extend(outputs.iter().map(String::as_str));
    program(folder.path(), &args)?.with_code(0)?;
    check("something was judged", check_formats(folder.path())? > 500)
}
