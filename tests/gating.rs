//! What fails a run: baselines, the threshold and flaky failures; and commands over several reports.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::{Confirmation, Verdict};
use serde_json::Value;
use tempfile::TempDir;

use crate::{PROGRAM, ProgramOutput, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("gating/each-baseline-has-its-exit-code", each_baseline_has_its_exit_code),
        trial("gating/a-baseline-is-written-and-updated", a_baseline_is_written_and_updated),
        trial("gating/an-invalid-baseline-starts-no-server", an_invalid_baseline_starts_no_server),
        trial("gating/the-threshold-decides", the_threshold_decides),
        trial("gating/a-failure-that-no-retry-reproduces-is-flaky", a_failure_that_no_retry_reproduces_is_flaky)
            .with_ignored_flag(cfg!(not(unix))),
        trial("gating/a-passive-failure-is-confirmed-or-flaky", a_passive_failure_is_confirmed_or_flaky),
        trial("gating/a-failure-that-a-retry-reproduces-is-confirmed", a_failure_that_a_retry_reproduces_is_confirmed),
        trial("gating/a-failure-after-another-case-names-that-case", a_failure_after_another_case_names_that_case),
        trial("gating/runs-are-compared", runs_are_compared),
        trial("gating/merged-shards-equal-the-whole-run", merged_shards_equal_the_whole_run),
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

/// A server with a fault only in its first process.
fn a_failure_that_no_retry_reproduces_is_flaky() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let script =
        "if mkdir began 2>/dev/null; then exec \"$0\" serve --fault ping-not-empty; else exec \"$0\" serve; fi";
    let run = |options: &[&str]| {
        let _absent = fs::remove_dir(folder.join("began"));
        let mut args = vec!["--revision", "2025-06-18", "--report", "json=r.json", "--select", "lifecycle/ping"];
        args.extend(options);
        args.extend(["--", "/bin/sh", "-c", script, PROGRAM]);
        program(folder, &args)
    };
    run(&["--retries", "0"])?.with_code(1)?;
    run(&[])?.with_code(0)?.shows("did not fail in 1 retry")?.shows("1 flaky")?;
    let read = report(folder, "r.json")?;
    let result = read.results().find(|result| !result.findings.is_empty()).ok_or("no finding")?;
    let confirmation = result.findings[0].confirmation;
    if (result.verdict, confirmation) != (Verdict::Warn, Some(Confirmation { tried: 1, failed: 0 })) {
        return Err(format!("{:?} {confirmation:?}", result.verdict));
    }
    run(&["--strict"])?.with_code(1).map(drop)
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

/// A passive case whose failure every process shows, and one whose failure only the first process shows.
fn a_passive_failure_is_confirmed_or_flaky() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let always = "exec \"$0\" serve --fault image-data-url";
    let once = "if mkdir began 2>/dev/null; then exec \"$0\" serve --fault image-data-url; else exec \"$0\" serve; fi";
    let run = |script: &str, options: &[&str]| {
        let mut args = vec!["--revision", "2025-06-18", "--report", "json=r.json", "--select", "content/image-base64"];
        args.extend(options);
        args.extend(["--", "/bin/sh", "-c", script, PROGRAM]);
        program(folder, &args)
    };
    let found = || {
        let read = report(folder, "r.json")?;
        let result = read.results().find(|result| !result.findings.is_empty()).ok_or("no finding")?;
        Ok::<_, String>((result.verdict, result.findings[0].confirmation))
    };
    run(always, &[])?.with_code(1)?;
    let confirmed = found()?;
    if confirmed != (Verdict::Fail, Some(Confirmation { tried: 1, failed: 1 })) {
        return Err(format!("{confirmed:?}"));
    }
    run(once, &[])?.with_code(0)?.shows("did not fail in 1 retry")?.shows("1 flaky")?;
    let refuted = found()?;
    if refuted != (Verdict::Warn, Some(Confirmation { tried: 1, failed: 0 })) {
        return Err(format!("{refuted:?}"));
    }
    fs::remove_dir(folder.join("began")).map_err(|error| error.to_string())?;
    run(once, &["--retries", "0"])?.with_code(1).map(drop)
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

/// A server that serves calls of unknown tools once it was asked for an unknown prompt: no case alone shows it.
const SPOILED: &str = r#"import json, subprocess, sys, threading
server = subprocess.Popen([sys.argv[1], "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
writing = threading.Lock()
def write(line):
    with writing:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
def relay():
    for line in server.stdout:
        write(line)
relaying = threading.Thread(target=relay)
relaying.start()
spoiled = False
for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if isinstance(message, dict) and "conformance-no-such" in str(message.get("params")):
        spoiled |= message.get("method") == "prompts/get"
        if spoiled and message.get("method") == "tools/call":
            result = {"content": [{"type": "text", "text": "done"}]}
            write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
            continue
    server.stdin.write(line)
    server.stdin.flush()
server.stdin.close()
relaying.join()
"#;

/// A failure that only a whole run shows is reported as one, with the cases that it takes; its command shows it again.
fn a_failure_after_another_case_names_that_case() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "spoiled.py", SPOILED)?;
    let server = ["--", "python3", "spoiled.py", PROGRAM];
    let run = |options: &[&str]| {
        program(folder, &[&["--revision", "2025-06-18", "--fuzz", "off"], options, &server].concat())
    };
    let (own, earlier) = ("tools/call/unknown-tool-rejected", "prompts/get/unknown");
    run(&["--quiet", "--select", own])?.with_code(0)?;
    run(&["--quiet", "--report", "json=whole.json"])?.with_code(1)?;
    let whole = report(folder, "whole.json")?;
    let failed: Vec<_> = whole.results().filter(|result| result.verdict == Verdict::Fail).collect();
    let [result] = failed.as_slice() else { return Err(format!("{failed:?}")) };
    let finding = &result.findings[0];
    let expected = format!("(only after {earlier} on the same session)");
    if result.case != own || !finding.actual.ends_with(&expected) {
        return Err(format!("{}: {}", result.case, finding.actual));
    }
    let commands = finding.reproduce.split_whitespace().collect::<Vec<_>>();
    if commands[1..].iter().filter(|word| **word == "--select").count() != 2 {
        return Err(finding.reproduce.clone());
    }
    program(folder, &commands[1..])?
        .with_code(1)?
        .shows("The server does not reject a call to an unknown tool")
        .map(drop)
}

/// The tools that were fuzzed, and how many calls of each were made.
fn fuzzed(report: &Report) -> Vec<(String, u64)> {
    let summaries = report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref());
    let tools = summaries.flat_map(|fuzz| &fuzz.tools).filter(|tool| !tool.calls.is_empty());
    tools.map(|tool| (tool.tool.clone(), tool.calls.iter().map(|call| call.count).sum())).collect()
}

/// A report without what may differ between a run and its shards: times, processes, how the calls of the fuzzer went, and
/// how many messages a case saw, which depends on the number of processes and differs between two whole runs, too.
fn masked(report: &Report) -> Result<Value, String> {
    let mut report = report.clone();
    report.started.clear();
    let summary = report.summary.as_mut().ok_or("the run was aborted")?;
    summary.timing = mcp_conformance::event::Timing::default();
    for target in &mut report.targets {
        target.summary.launches.clear();
        target.summary.fuzz = None;
        target.summary.stderr.clear();
        for result in &mut target.results {
            result.duration_ms = 0.0;
            if !result.case.starts_with("fuzz/") {
                result.observed = 0;
            }
            for finding in &mut result.findings {
                finding.value = finding.value.take().map(without_id);
                for evidence in &mut finding.evidence {
                    evidence.at_ms = 0.0;
                    if evidence.omitted > 0 {
                        // The length of an id moves the place where a long line is truncated.
                        evidence.omitted = 0;
                        evidence.text = evidence.text.chars().take(200).collect();
                    }
                    if let Ok(message) = serde_json::from_str(&evidence.text) {
                        evidence.text = without_id(message).to_string();
                    }
                }
            }
        }
    }
    let mut value = serde_json::to_value(report).map_err(|error| error.to_string())?;
    let results = value["targets"].as_array_mut().into_iter().flatten().map(|target| &mut target["results"]);
    let results = results.filter_map(Value::as_array_mut).flatten();
    let findings = results.filter_map(|result| result.get_mut("findings")?.as_array_mut()).flatten();
    for evidence in findings.filter_map(|finding| finding.get_mut("evidence")?.as_array_mut()).flatten() {
        if let Some(message) = evidence.get_mut("message") {
            *message = without_id(message.take());
        }
    }
    Ok(value)
}

/// A message without the value of its id, which depends on what was sent before on the session.
fn without_id(mut message: Value) -> Value {
    if let Some(id) = message.get_mut("id") {
        *id = Value::Null;
    }
    message
}

fn merged_shards_equal_the_whole_run() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let faults = [FAULT, "unknown-tool-succeeds"];
    // All revisions: `judge` selects one.
    let others = ["2024-10-07", "2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"];
    // The time that such calls get by default ends before all of them are made on a busy machine.
    let mut options = vec!["--fuzz", "20", "--fuzz-time", "120s", "--quiet"];
    options.extend(others.iter().flat_map(|revision| ["--revision", revision]));
    options.push("--report");
    judge(folder, &[&options[..], &["json=whole.json"]].concat(), &faults)?;
    for part in ["1", "2", "3"] {
        let (shard, file) = (format!("{part}/3"), format!("json={part}.json"));
        judge(folder, &[&options[..], &[&file, "--shard", &shard]].concat(), &faults)?;
    }
    let merge = ["merge", "3.json", "1.json", "2.json", "--quiet", "--report", "json=merged.json"];
    program(folder, &merge)?.with_code(1)?;
    let (whole, merged) = (report(folder, "whole.json")?, report(folder, "merged.json")?);
    if fuzzed(&whole).is_empty() || fuzzed(&whole) != fuzzed(&merged) {
        return Err(format!("fuzzed in the whole run: {:?}; in the shards: {:?}", fuzzed(&whole), fuzzed(&merged)));
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
        .shows("add these entries")?;
    program(folder, &["merge", "1.json", "2.json"])?.with_code(2)?.shows("the report of shard 3/3 is missing")?;
    program(folder, &["merge", "whole.json"])?.with_code(2)?.shows("is not the report of a shard").map(drop)
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
