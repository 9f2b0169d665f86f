//! What fails a run, where a server differs from process to process or is fuzzed: confirmation, flaky failures, shards.

use std::fs;
use std::path::Path;

use mcp_conformance::report::Report;
use mcp_conformance::verdict::{Confirmation, Verdict};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{PROGRAM, ProgramOutput, Trial, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("gating/a-failure-that-no-retry-reproduces-is-flaky", a_failure_that_no_retry_reproduces_is_flaky),
        trial("gating/a-passive-failure-is-confirmed-or-flaky", a_passive_failure_is_confirmed_or_flaky),
        trial("gating/a-failure-after-another-case-names-that-case", a_failure_after_another_case_names_that_case),
        trial("gating/merged-shards-equal-the-whole-run", merged_shards_equal_the_whole_run),
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

/// The fault of the shards.
const FAULT: &str = "image-data-url";

fn write(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(file), text).map_err(|error| format!("{file}: {error}"))
}

fn report(folder: &Path, file: &str) -> Result<Report, String> {
    let text = fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    Report::parse(&text).map_err(|error| format!("{file}: {error}"))
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
