//! What fails a run: baselines, the threshold and flaky failures; and commands over several reports.

use std::fs;
use std::path::Path;

use crate::support::{PROGRAM, ProgramOutput, Trial, program, trial};
use mcp_conformance::report::Report;
use mcp_conformance::verdict::{Confirmation, Verdict};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("gating/each-baseline-has-its-exit-code", each_baseline_has_its_exit_code),
        trial("gating/a-baseline-is-written-and-updated", a_baseline_is_written_and_updated),
        trial("gating/an-invalid-baseline-starts-no-server", an_invalid_baseline_starts_no_server),
        trial("gating/the-threshold-decides", the_threshold_decides),
        trial("gating/a-failure-that-a-retry-reproduces-is-confirmed", a_failure_that_a_retry_reproduces_is_confirmed),
        trial("gating/runs-are-compared", runs_are_compared),
        trial("gating/a-fleet-is-summarized", a_fleet_is_summarized),
    ]
}

fn folder() -> Result<TempDir, String> {
    TempDir::new().map_err(|error| error.to_string())
}

/// Judges the built-in server with faults in one revision.
fn judge(folder: &Path, options: &[&str], faults: &[&str]) -> Result<ProgramOutput, String> {
    // Most trials are about verdicts; those about fuzzing override this.
    let mut args = vec!["--revision", "2025-06-18", "--fuzz", "off"];
    args.extend(options);
    args.extend(["--", PROGRAM, "serve"]);
    args.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
    program(folder, &args)
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(file), text).map_err(|error| format!("{file}: {error}"))
}

fn report(folder: &Path, file: &str) -> Result<Report, String> {
    let text = fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    Report::parse(&text).map_err(|error| format!("{file}: {error}"))
}

/// The fault of these trials and its finding.
const FAULT: &str = "image-data-url";
const CASE: &str = "content/image-base64";
const REQUIREMENT: &str = "content-image";
const TOOL: &str = "image";

fn each_baseline_has_its_exit_code() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    judge(folder, &["--quiet", "--report", "json=red.json"], &[FAULT])?.with_code(1)?;
    judge(folder, &["--quiet", "--report", "json=green.json"], &[])?.with_code(0)?;
    let entry = |more: &str| {
        format!(
            "{{\"findings\": [{{\"case\": \"{CASE}\", \"requirement\": \"{REQUIREMENT}\", \"reason\": \"known\"{more}}}]}}"
        )
    };
    let tool = |name: &str| entry(&format!(", \"tool\": \"{name}\""));
    // The baseline, the run, the exit code and a part of the output.
    let rows = [
        ("new", "{\"findings\": []}".to_owned(), "red.json", 1, "add these entries to b.jsonc"),
        ("known", entry(""), "red.json", 0, "Accepted by the baseline"),
        ("known by its tool", tool(TOOL), "red.json", 0, "    known"),
        ("stale", entry(""), "green.json", 1, "delete the entry"),
        ("expired", entry(", \"expires\": \"2020-01-31\""), "red.json", 1, "was accepted until 2020-01-31"),
        ("not expired", entry(", \"expires\": \"2999-01-31\""), "red.json", 0, "1 accepted by the baseline"),
        ("expired and gone", entry(", \"expires\": \"2020-01-31\""), "green.json", 1, "delete the entry"),
        ("flaky and seen", entry(", \"flaky\": true"), "red.json", 0, "1 accepted by the baseline"),
        ("flaky and gone", entry(", \"flaky\": true"), "green.json", 0, "all pass"),
        ("renamed tool", tool("picture"), "red.json", 1, "tool picture in b.jsonc was not found in 2025-06-18"),
        ("other revision", entry(", \"revisions\": \"2025-11-25\""), "red.json", 1, "add these entries to b.jsonc"),
        ("other revision, gone", entry(", \"revisions\": \"2025-11-25\""), "green.json", 0, "PASS"),
        ("other verdict", entry(", \"verdict\": \"warn\""), "red.json", 1, "was not found"),
        ("unknown case", entry("").replace(CASE, "content/imge"), "red.json", 1, "names a case that does not exist"),
    ];
    for (name, baseline, run, code, expected) in rows {
        write(folder, "b.jsonc", &baseline)?;
        program(folder, &["report", run, "--baseline", "b.jsonc"])?
            .with_code(code)
            .and_then(|ran| ran.shows(expected))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    // One of them with a real run instead of a stored report.
    write(folder, "b.jsonc", &entry(""))?;
    judge(folder, &["--baseline", "b.jsonc"], &[FAULT])?.with_code(0)?.shows("Accepted by the baseline")?;
    judge(folder, &["--baseline", "b.jsonc"], &[])?.with_code(1)?.shows("The baseline is out of date")?;
    // A partial run knows about its own cases only.
    judge(folder, &["--baseline", "b.jsonc", "--select", CASE], &[])?.with_code(1)?.shows("delete the entry")?;
    judge(folder, &["--baseline", "b.jsonc", "--select", CASE], &[FAULT])?.with_code(0)?;
    judge(folder, &["--baseline", "b.jsonc", "--skip", CASE], &[])?.with_code(0).map(drop)
}

fn a_baseline_is_written_and_updated() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let update = ["--quiet", "--baseline", "b.jsonc", "--update-baseline"];
    let compare = ["--quiet", "--baseline", "b.jsonc"];
    judge(folder, &compare, &[FAULT])?.with_code(2)?.shows("--update-baseline writes it")?;
    judge(folder, &update, &[FAULT])?.with_code(0)?;
    judge(folder, &compare, &[FAULT])?.with_code(0)?;
    // The user edits the reason and adds a comment.
    let path = folder.join("b.jsonc");
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let edited = text.replace("TODO: explain why this finding is accepted", "fixed in 2.0").replacen(
        "    {",
        "    // Ticket 12.\n    {",
        1,
    );
    write(folder, "b.jsonc", &edited)?;
    judge(folder, &update, &[FAULT, "unknown-tool-succeeds"])?.with_code(0)?;
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    if !(text.contains("// Ticket 12.") && text.contains("fixed in 2.0") && text.contains("TODO: explain")) {
        return Err(format!("a comment, a reason or a new entry is missing:\n{text}"));
    }
    // The entry whose finding is gone is removed, and nothing else changes.
    judge(folder, &update, &[FAULT])?.with_code(0)?;
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    if text.contains("TODO: explain") || !text.contains("fixed in 2.0") {
        return Err(format!("the wrong entry was removed:\n{text}"));
    }
    judge(folder, &compare, &[FAULT])?.with_code(0).map(drop)
}

fn an_invalid_baseline_starts_no_server() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "b.jsonc", "{\"findings\": [{\"case\": \"a/b\", \"requirment\": \"x\", \"reason\": \"\"}]}")?;
    let invalid = ["--baseline", "b.jsonc", "--", "/no/such/server"];
    let ran = program(folder, &invalid)?.with_code(2)?;
    ran.shows("unknown member `requirment`")?.shows("did you mean `requirement`?")?.shows("it must not be empty")?;
    let nowhere = ["--baseline", "missing/b.jsonc", "--update-baseline", "--", "/no/such/server"];
    program(folder, &nowhere)?.with_code(2)?.shows("failed to write the baseline missing/b.jsonc")?;
    write(folder, "b.jsonc", "{\"findings\": []}")?;
    program(folder, &["--shard", "1/2", "--baseline", "b.jsonc", "--", "/no/such/server"])?
        .with_code(2)?
        .shows("mcp-conformance merge")
        .map(drop)
}

fn the_threshold_decides() -> Result<(), String> {
    let folder = folder()?;
    let run = |options: &[&str], fault: &str| judge(folder.path(), options, &[fault]);
    // This fault leads to a warning.
    let warns = "unknown-tool-is-error";
    run(&["--quiet"], warns)?.with_code(0)?.shows("with --strict the exit code would be 1")?;
    run(&["--quiet", "--strict"], warns)?.with_code(1)?;
    run(&["--quiet", "--fail-on", "should"], warns)?.with_code(1)?;
    run(&["--quiet", "--fail-on", "never"], FAULT)?.with_code(0)?.shows("REPORT ONLY: ").map(drop)
}

fn a_failure_that_a_retry_reproduces_is_confirmed() -> Result<(), String> {
    let folder = folder()?;
    let fault = ["unknown-tool-succeeds"];
    judge(folder.path(), &["--quiet", "--report", "json=r.json"], &fault)?.with_code(1)?;
    let read = report(folder.path(), "r.json")?;
    let failed =
        |result: &&mcp_conformance::event::CaseResult| result.verdict == Verdict::Fail && result.duration_ms > 0.0;
    let result = read.results().find(failed).ok_or("no active case fails")?;
    match result.findings[0].confirmation {
        Some(Confirmation { tried: 1, failed: 1 }) => Ok(()),
        other => Err(format!("{}: {other:?}", result.case)),
    }
}

fn runs_are_compared() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    judge(folder, &["--quiet", "--report", "json=a.json"], &[FAULT])?.with_code(1)?;
    judge(folder, &["--quiet", "--report", "json=b.json"], &["unknown-tool-succeeds"])?.with_code(1)?;
    judge(folder, &["--quiet", "--report", "json=c.json"], &[])?.with_code(0)?;
    program(folder, &["diff", "a.json", "a.json"])?.with_code(0)?.shows("DIFF: 0 new, 0 fixed, 0 changed")?;
    program(folder, &["diff", "a.json", "c.json"])?.with_code(0)?.shows("0 new, 1 fixed")?;
    let ran = program(folder, &["diff", "a.json", "b.json"])?.with_code(1)?;
    ran.shows("new\n  fail  tools-call-unknown-tool-error")?.shows("fixed\n  fail  content-image")?;
    let json = program(folder, &["diff", "a.json", "b.json", "--format", "json"])?.with_code(1)?;
    let value: Value = serde_json::from_str(&json.out).map_err(|error| error.to_string())?;
    if value["fixed"][0]["tool"] != TOOL {
        return Err(value.to_string());
    }
    program(folder, &["diff", "a.json", "b.json", "--format", "markdown"])?.with_code(1)?.shows("### 1 fixed").map(drop)
}

fn a_fleet_is_summarized() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    judge(folder, &["--quiet", "--report", "json=a.json"], &[FAULT])?.with_code(1)?;
    judge(folder, &["--quiet", "--report", "json=b.json"], &["hostile-text", FAULT])?;
    program(folder, &["fleet", "a.json", "b.json"])?.with_code(0)?.shows("2 servers: 0 passed, 2 failed")?;
    let page = program(folder, &["fleet", "a.json", "b.json", "--format", "html"])?.with_code(0)?;
    let rows = page.out.matches("<tr>").count();
    if rows < 5 || page.out.contains("<script") {
        return Err(page.out);
    }
    program(folder, &["fleet", "a.json", "--format", "json"])?.with_code(0)?.shows("\"content-image\"").map(drop)
}
