//! What fails a run: baselines, the threshold, failures that do not come back; and what is made of several runs.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::{Confirmation, Verdict};
use serde_json::Value;
use tempfile::TempDir;

use crate::{PROGRAM, Ran, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("gating/each-row-of-the-baseline-has-its-exit-code", each_row_has_its_exit_code),
        trial("gating/a-baseline-is-written-and-kept-up", a_baseline_is_written_and_kept_up),
        trial("gating/a-broken-baseline-starts-nothing", a_broken_baseline_starts_nothing),
        trial("gating/the-threshold-decides", the_threshold_decides),
        trial("gating/a-failure-that-does-not-come-back-is-flaky", a_failure_that_does_not_come_back_is_flaky)
            .with_ignored_flag(cfg!(not(unix))),
        trial("gating/a-failure-that-comes-back-is-confirmed", a_failure_that_comes_back_is_confirmed),
        trial("gating/runs-are-compared", runs_are_compared),
        trial("gating/shards-merged-are-the-whole", shards_merged_are_the_whole),
        trial("gating/a-fleet-is-summed-up", a_fleet_is_summed_up),
    ]
}

fn folder() -> Result<TempDir, String> {
    TempDir::new().map_err(|error| error.to_string())
}

/// Judges the built-in server with faults in one revision.
fn judge(folder: &Path, options: &[&str], faults: &[&str]) -> Result<Ran, String> {
    // Most of it is about verdicts; what is about fuzzing says so in its options.
    let mut words = vec!["--revision", "2025-06-18", "--fuzz", "off"];
    words.extend(options);
    words.extend(["--", PROGRAM, "serve"]);
    words.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
    program(folder, &words)
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(file), text).map_err(|error| format!("{file}: {error}"))
}

fn report(folder: &Path, file: &str) -> Result<Report, String> {
    let text = fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    Report::parse(&text).map_err(|error| format!("{file}: {error}"))
}

/// The fault of these trials and the finding that it draws.
const FAULT: &str = "image-data-url";
const CASE: &str = "content/image-base64";
const REQUIREMENT: &str = "content-image";
const TOOL: &str = "image";

fn each_row_has_its_exit_code() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    judge(folder, &["--quiet", "--report", "json=red.json"], &[FAULT])?.with_code(1)?;
    judge(folder, &["--quiet", "--report", "json=green.json"], &[])?.with_code(0)?;
    let line = |more: &str| {
        format!(
            "{{\"findings\": [{{\"case\": \"{CASE}\", \"requirement\": \"{REQUIREMENT}\", \"reason\": \"known\"{more}}}]}}"
        )
    };
    let tool = |name: &str| line(&format!(", \"tool\": \"{name}\""));
    // The baseline, the run, the exit code and what is told.
    let rows = [
        ("new", "{\"findings\": []}".to_owned(), "red.json", 1, "add these to b.jsonc"),
        ("known", line(""), "red.json", 0, "Accepted by the baseline"),
        ("known by its tool", tool(TOOL), "red.json", 0, "    known"),
        ("stale", line(""), "green.json", 1, "delete its line"),
        ("expired", line(", \"expires\": \"2020-01-31\""), "red.json", 1, "was accepted until 2020-01-31"),
        ("not expired", line(", \"expires\": \"2999-01-31\""), "red.json", 0, "1 fails or warns as the baseline"),
        ("expired and gone", line(", \"expires\": \"2020-01-31\""), "green.json", 1, "delete its line"),
        ("renamed tool", tool("picture"), "red.json", 1, "tool picture in b.jsonc was not found in 2025-06-18"),
        ("other revision", line(", \"revisions\": \"2025-11-25\""), "red.json", 1, "add these to b.jsonc"),
        ("other revision, gone", line(", \"revisions\": \"2025-11-25\""), "green.json", 0, "PASS"),
        ("other verdict", line(", \"verdict\": \"warn\""), "red.json", 1, "was not found"),
        ("unknown case", line("").replace(CASE, "content/imge"), "red.json", 1, "names a case that does not exist"),
    ];
    for (name, baseline, run, code, told) in rows {
        write(folder, "b.jsonc", &baseline)?;
        program(folder, &["report", run, "--baseline", "b.jsonc"])?
            .with_code(code)
            .and_then(|ran| ran.says(told))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    // One of them the whole way, from the run itself.
    write(folder, "b.jsonc", &line(""))?;
    judge(folder, &["--baseline", "b.jsonc"], &[FAULT])?.with_code(0)?.says("Accepted by the baseline")?;
    judge(folder, &["--baseline", "b.jsonc"], &[])?.with_code(1)?.says("The baseline is out of date").map(drop)
}

fn a_baseline_is_written_and_kept_up() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let update = ["--quiet", "--baseline", "b.jsonc", "--update-baseline"];
    let hold = ["--quiet", "--baseline", "b.jsonc"];
    judge(folder, &hold, &[FAULT])?.with_code(2)?.says("--update-baseline writes it")?;
    judge(folder, &update, &[FAULT])?.with_code(0)?;
    judge(folder, &hold, &[FAULT])?.with_code(0)?;
    // A person gives the reason, and says something beside it.
    let path = folder.join("b.jsonc");
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let edited = text.replace("accepted without a reason so far; say here why", "mended in 2.0").replacen(
        "    {",
        "    // Ticket 12.\n    {",
        1,
    );
    write(folder, "b.jsonc", &edited)?;
    judge(folder, &update, &[FAULT, "unknown-tool-succeeds"])?.with_code(0)?;
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    if !(text.contains("// Ticket 12.") && text.contains("mended in 2.0") && text.contains("say here why")) {
        return Err(format!("a comment, a reason or a new line is not there:\n{text}"));
    }
    // What is gone goes, and nothing else changes.
    judge(folder, &update, &[FAULT])?.with_code(0)?;
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    if text.contains("say here why") || !text.contains("mended in 2.0") {
        return Err(format!("the wrong line went:\n{text}"));
    }
    judge(folder, &hold, &[FAULT])?.with_code(0).map(drop)
}

fn a_broken_baseline_starts_nothing() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "b.jsonc", "{\"findings\": [{\"case\": \"a/b\", \"requirment\": \"x\", \"reason\": \"\"}]}")?;
    let never = ["--baseline", "b.jsonc", "--", "/no/such/server"];
    let ran = program(folder, &never)?.with_code(2)?;
    ran.says("unknown member `requirment`")?.says("did you mean `requirement`?")?.says("it must not be empty")?;
    let nowhere = ["--baseline", "missing/b.jsonc", "--update-baseline", "--", "/no/such/server"];
    program(folder, &nowhere)?.with_code(2)?.says("failed to write the baseline missing/b.jsonc")?;
    write(folder, "b.jsonc", "{\"findings\": []}")?;
    program(folder, &["--shard", "1/2", "--baseline", "b.jsonc", "--", "/no/such/server"])?
        .with_code(2)?
        .says("mcp-conformance merge")
        .map(drop)
}

fn the_threshold_decides() -> Result<(), String> {
    let folder = folder()?;
    let run = |options: &[&str], fault: &str| judge(folder.path(), options, &[fault]);
    // This one is a warning.
    let warns = "unknown-tool-is-error";
    run(&["--quiet"], warns)?.with_code(0)?.says("--strict would make that exit code 1")?;
    run(&["--quiet", "--strict"], warns)?.with_code(1)?;
    run(&["--quiet", "--fail-on", "should"], warns)?.with_code(1)?;
    run(&["--quiet", "--fail-on", "never"], FAULT)?.with_code(0)?.says("TOLD: ").map(drop)
}

/// A server that has a fault in its first process only.
fn a_failure_that_does_not_come_back_is_flaky() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let script =
        "if mkdir began 2>/dev/null; then exec \"$0\" serve --fault ping-not-empty; else exec \"$0\" serve; fi";
    let run = |options: &[&str]| {
        let _absent = fs::remove_dir(folder.join("began"));
        let mut words = vec!["--revision", "2025-06-18", "--report", "json=r.json", "--select", "lifecycle/ping"];
        words.extend(options);
        words.extend(["--", "/bin/sh", "-c", script, PROGRAM]);
        program(folder, &words)
    };
    run(&["--retries", "0"])?.with_code(1)?;
    run(&[])?.with_code(0)?.says("it did not come back")?.says("1 flaky")?;
    let read = report(folder, "r.json")?;
    let result = read.results().find(|result| !result.findings.is_empty()).ok_or("no finding")?;
    let confirmation = result.findings[0].confirmation;
    if (result.verdict, confirmation) != (Verdict::Warn, Some(Confirmation { tried: 1, failed: 0 })) {
        return Err(format!("{:?} {confirmation:?}", result.verdict));
    }
    run(&["--strict"])?.with_code(1).map(drop)
}

fn a_failure_that_comes_back_is_confirmed() -> Result<(), String> {
    let folder = folder()?;
    let fault = ["unknown-tool-succeeds"];
    judge(folder.path(), &["--quiet", "--report", "json=r.json"], &fault)?.with_code(1)?;
    let read = report(folder.path(), "r.json")?;
    let failed =
        |result: &&mcp_conformance::event::CaseResult| result.verdict == Verdict::Fail && result.duration_ms > 0.0;
    let result = read.results().find(failed).ok_or("no acting case fails")?;
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
    program(folder, &["diff", "a.json", "a.json"])?.with_code(0)?.says("DIFF: 0 new, 0 fixed, 0 changed")?;
    program(folder, &["diff", "a.json", "c.json"])?.with_code(0)?.says("0 new, 1 fixed")?;
    let ran = program(folder, &["diff", "a.json", "b.json"])?.with_code(1)?;
    ran.says("new\n  fail  tools-call-unknown-tool-error")?.says("fixed\n  fail  content-image")?;
    let json = program(folder, &["diff", "a.json", "b.json", "--format", "json"])?.with_code(1)?;
    let value: Value = serde_json::from_str(&json.out).map_err(|error| error.to_string())?;
    if value["fixed"][0]["tool"] != TOOL {
        return Err(value.to_string());
    }
    program(folder, &["diff", "a.json", "b.json", "--format", "markdown"])?.with_code(1)?.says("### 1 fixed").map(drop)
}

/// The tools that were fuzzed.
fn fuzzed(report: &Report) -> Vec<String> {
    let summaries = report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref());
    let tools = summaries.flat_map(|fuzz| &fuzz.tools).filter(|tool| !tool.calls.is_empty());
    tools.map(|tool| tool.tool.clone()).collect()
}

/// A report with what may differ between a run and its parts taken out: times, processes, counts of calls, and how
/// much the cases that watch have seen.
fn masked(report: &Report) -> Result<Value, String> {
    let mut report = report.clone();
    report.started.clear();
    let summary = report.summary.as_mut().ok_or("the run was cut off")?;
    summary.timing = mcp_conformance::event::Timing::default();
    for target in &mut report.targets {
        target.summary.launches.clear();
        target.summary.fuzz = None;
        target.summary.stderr.clear();
        for result in &mut target.results {
            (result.duration_ms, result.observed) = (0.0, 0);
            for finding in &mut result.findings {
                // Ids of messages are numbers of the session that they went over.
                (finding.value, finding.count) = (None, 0);
                finding.evidence.clear();
            }
        }
    }
    serde_json::to_value(report).map_err(|error| error.to_string())
}

fn shards_merged_are_the_whole() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let faults = [FAULT, "unknown-tool-succeeds"];
    judge(folder, &["--fuzz", "20", "--quiet", "--report", "json=whole.json"], &faults)?;
    for part in ["1", "2", "3"] {
        let (shard, file) = (format!("{part}/3"), format!("json={part}.json"));
        judge(folder, &["--fuzz", "20", "--quiet", "--shard", &shard, "--report", &file], &faults)?;
    }
    let merge = ["merge", "3.json", "1.json", "2.json", "--quiet", "--report", "json=merged.json"];
    program(folder, &merge)?.with_code(1)?;
    let (whole, merged) = (report(folder, "whole.json")?, report(folder, "merged.json")?);
    if fuzzed(&whole).is_empty() || fuzzed(&whole) != fuzzed(&merged) {
        return Err(format!("fuzzed as a whole: {:?}; in parts: {:?}", fuzzed(&whole), fuzzed(&merged)));
    }
    let (whole, merged) = (masked(&whole)?, masked(&merged)?);
    if whole != merged {
        let lines = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let (whole, merged) = (lines(&whole), lines(&merged));
        let diff = similar::TextDiff::from_lines(&whole, &merged).unified_diff().context_radius(8).to_string();
        return Err(diff);
    }
    write(folder, "b.jsonc", "{\"findings\": []}")?;
    program(folder, &["merge", "1.json", "2.json", "3.json", "--baseline", "b.jsonc"])?
        .with_code(1)?
        .says("add these")?;
    program(folder, &["merge", "1.json", "2.json"])?.with_code(2)?.says("the report of shard 3/3 is missing")?;
    program(folder, &["merge", "whole.json"])?.with_code(2)?.says("is the report of no shard").map(drop)
}

fn a_fleet_is_summed_up() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    judge(folder, &["--quiet", "--report", "json=a.json"], &[FAULT])?.with_code(1)?;
    judge(folder, &["--quiet", "--report", "json=b.json"], &["hostile-text", FAULT])?;
    program(folder, &["fleet", "a.json", "b.json"])?.with_code(0)?.says("2 servers: 0 passed, 2 failed")?;
    let page = program(folder, &["fleet", "a.json", "b.json", "--format", "html"])?.with_code(0)?;
    let rows = page.out.matches("<tr>").count();
    if rows < 5 || page.out.contains("<script") {
        return Err(page.out);
    }
    program(folder, &["fleet", "a.json", "--format", "json"])?.with_code(0)?.says("\"content-image\"").map(drop)
}
