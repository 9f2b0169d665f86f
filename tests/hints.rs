//! Hint files: writing a first one, and what following one changes.
//!
//! Every trial drives the real program on the built-in server, mostly on its variant whose tools fail unless
//! they are given a word: no call that is made from a schema alone is served by it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Hint, HintRequest, load_hints, parse_hints};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::builtin::cases;
use crate::trial;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");

/// The server that needs words.
const CHOOSY: [&str; 4] = [PROGRAM, "serve", "--fault", "choosy-tools"];

/// A revision that has all that the trials look at.
const REVISION: Revision = Revision::V2025_11_25;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("hints/what-is-written-names-what-each-call-shows", what_is_written_names_what_each_call_shows),
        trial("hints/a-file-that-is-there-is-left-alone", a_file_that_is_there_is_left_alone),
        trial("hints/over-http-they-are-the-same", over_http_they_are_the_same),
        trial("hints/no-server-leaves-no-file", no_server_leaves_no_file),
        trial("hints/destructive-tools-are-not-tried-unasked", destructive_tools_are_not_tried_unasked),
        trial("hints/what-is-written-changes-what-is-judged", what_is_written_changes_what_is_judged),
        trial("hints/a-case-uses-the-tool-that-is-hinted-for-it", a_case_uses_the_tool_that_is_hinted_for_it),
        trial("hints/what-did-not-help-is-told", what_did_not_help_is_told),
        trial("hints/every-fault-of-a-file-is-told", every_fault_of_a_file_is_told),
    ]
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run(options: &[&str], server: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(PROGRAM);
    command.args(options).arg("--").args(server).stdin(Stdio::null());
    command.output().map_err(|error| format!("{command:?}: {error}"))
}

/// What was written to both streams, with the exit code before it.
fn words(output: &Output) -> String {
    let stream = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, stream(&output.stdout), stream(&output.stderr))
}

fn expect(output: &Output, code: i32, says: &[&str]) -> Result<(), String> {
    let text = words(output);
    match says.iter().find(|says| !text.contains(**says)) {
        Some(missing) => Err(format!("it does not say {missing:?}: {text}")),
        None if output.status.code() != Some(code) => Err(format!("the exit code is not {code}: {text}")),
        None => Ok(()),
    }
}

/// The hints that are written for a server, by way of standard output.
fn written(options: &[&str], server: &[&str]) -> Result<Vec<Hint>, String> {
    let output = run(&[&["hints", "--revision", REVISION.as_str()], options].concat(), server)?;
    if !output.status.success() {
        return Err(words(&output));
    }
    let text = String::from_utf8(output.stdout).map_err(told)?;
    parse_hints("hints", &text, &[]).map_err(|error| format!("{error}\n{text}"))
}

/// Judges a server and reads the report.
fn judge(options: &[&str], server: &[&str]) -> Result<Report, String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path = folder.path().join("report.json");
    let report = format!("json={}", path.display());
    let own = ["--revision", REVISION.as_str(), "--fuzz", "off", "--quiet", "--report", &report];
    let output = run(&[&own, options].concat(), server)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("no report ({error}): {}", words(&output)))?;
    serde_json::from_str(&text).map_err(told)
}

fn write(folder: &Path, text: &str) -> Result<String, String> {
    let path = folder.join("hints.jsonc");
    fs::write(&path, text).map_err(told)?;
    Ok(path.display().to_string())
}

fn calls<'a>(hint: &'a Hint, name: &str) -> Option<&'a serde_json::Map<String, serde_json::Value>> {
    match &hint.request {
        HintRequest::Call { tool, arguments } if tool == name => Some(arguments),
        _ => None,
    }
}

fn what_is_written_names_what_each_call_shows() -> Result<(), String> {
    let hints = written(&[], &[PROGRAM, "serve"])?;
    for (tool, requirement) in [
        ("image", "content-image"),
        ("audio", "content-audio"),
        ("add", "structured-conforms"),
        ("count", "progress-increases"),
        ("log", "log-notification-shape"),
    ] {
        let named = |hint: &&Hint| hint.purposes.iter().any(|id| id == requirement);
        let hint =
            hints.iter().find(named).ok_or_else(|| format!("nothing is said to show {requirement}: {hints:#?}"))?;
        if calls(hint, tool).is_none() {
            return Err(format!("{requirement} is said to be shown by {}", hint.request.describe()));
        }
    }
    let is_read = |hint: &Hint| matches!(&hint.request, HintRequest::Read { .. });
    let is_got = |hint: &Hint| matches!(&hint.request, HintRequest::Get { .. });
    if hints.iter().any(is_read) && hints.iter().any(is_got) {
        Ok(())
    } else {
        Err(format!("no resource is read, or no prompt got: {hints:#?}"))
    }
}

fn over_http_they_are_the_same() -> Result<(), String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(told)?;
    let address = listener.local_addr().map_err(told)?.to_string();
    drop(listener);
    let url = format!("http://{address}/mcp");
    let over_pipe = written(&[], &CHOOSY)?;
    let over_http = written(&["--url", &url], &[&CHOOSY[..], &["--http", &address]].concat())?;
    // What a transport alone can show is no reason to call something.
    let asks = |hints: &[Hint]| hints.iter().map(|hint| format!("{:?}", hint.request)).collect::<Vec<_>>();
    if over_http.len() > 3 && asks(&over_pipe) == asks(&over_http) {
        return Ok(());
    }
    Err(format!("over standard streams:\n{:#?}\nover HTTP:\n{:#?}", asks(&over_pipe), asks(&over_http)))
}

fn a_file_that_is_there_is_left_alone() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path = write(folder.path(), "mine")?;
    let output = run(&["hints", "--output", &path], &CHOOSY)?;
    expect(&output, 2, &["failed to create", "--output"])?;
    let kept = fs::read_to_string(&path).map_err(told)?;
    if kept == "mine" { Ok(()) } else { Err(format!("the file now says {kept:?}")) }
}

fn no_server_leaves_no_file() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path = folder.path().join("hints.jsonc");
    let output = run(&["hints", "--output", &path.display().to_string()], &["/does/not/exist"])?;
    expect(&output, 2, &["failed to try out the server", "/does/not/exist"])?;
    if path.exists() { Err("an empty file was left behind".to_owned()) } else { Ok(()) }
}

fn destructive_tools_are_not_tried_unasked() -> Result<(), String> {
    let server = [PROGRAM, "serve"];
    let output = run(&["hints", "--revision", REVISION.as_str()], &server)?;
    expect(&output, 0, &["not called: erase, because it is annotated destructive"])?;
    let output = run(&["hints", "--call-destructive", "--revision", REVISION.as_str()], &server)?;
    if words(&output).contains("not called") { Err(words(&output)) } else { Ok(()) }
}

fn what_is_written_changes_what_is_judged() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path = folder.path().join("hints.jsonc").display().to_string();
    let output = run(&["hints", "--revision", REVISION.as_str(), "--output", &path], &CHOOSY)?;
    expect(&output, 0, &["tried in 2025-11-25"])?;
    let hints = load_hints(Path::new(&path), &[]).map_err(told)?;
    if !hints.iter().any(|hint| calls(hint, "echo").is_some_and(|arguments| arguments["text"] == "hello")) {
        return Err(format!("no word was found for echo: {hints:#?}"));
    }
    let (without, with) = (judge(&[], &CHOOSY)?, judge(&["--hints", &path], &CHOOSY)?);
    let passed = |report: &Report| report.results().filter(|result| result.verdict == Verdict::Pass).count();
    let judged = |report: &Report| report.targets[0].requirements.judged.len();
    let refused = |report: &Report| {
        let noted = report.targets[0].summary.tools.iter().filter(|tool| tool.called && tool.note.is_some());
        noted.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    let learnt = |name: &str| {
        refused(&without).iter().any(|tool| tool == name) && !refused(&with).iter().any(|tool| tool == name)
    };
    if !learnt("echo") || !learnt("weather") {
        return Err(format!("refused without hints: {:?}, with them: {:?}", refused(&without), refused(&with)));
    }
    if passed(&with) <= passed(&without) || judged(&with) < judged(&without) {
        return Err(format!(
            "{} cases pass with hints and {} without; {} requirements are judged with them and {} without",
            passed(&with),
            passed(&without),
            judged(&with),
            judged(&without)
        ));
    }
    let wrong = |result: &&CaseResult| !matches!(result.verdict, Verdict::Pass | Verdict::Skip);
    match with.results().find(wrong) {
        Some(result) => Err(format!("the hints made {} {}", result.case, result.verdict.as_str())),
        None => Ok(()),
    }
}

fn a_case_uses_the_tool_that_is_hinted_for_it() -> Result<(), String> {
    const CASE: &str = "tools/call/unknown-tool";
    if !cases().iter().any(|case| case.id == CASE) {
        return Err(format!("{CASE} is gone: choose another case"));
    }
    let folder = tempfile::tempdir().map_err(told)?;
    let text = format!(r#"{{"hints": [{{"for": ["{CASE}"], "call": "weather", "arguments": {{"city": "Turku"}}}}]}}"#);
    let path = write(folder.path(), &text)?;
    let log = run(&["-v", "--revision", REVISION.as_str(), "--select", CASE, "--hints", &path], &[PROGRAM, "serve"])?;
    expect(&log, 0, &["Turku"])?;
    let sent = words(&log).lines().filter(|line| line.contains("\"Turku\"")).count();
    // Once to follow the hint, and again as the control of the case.
    if sent >= 2 { Ok(()) } else { Err(words(&log)) }
}

fn what_did_not_help_is_told() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path = write(
        folder.path(),
        r#"{"hints": [
            {"call": "nonesuch"},
            {"call": "erase"},
            {"for": ["content-image"], "call": "echo", "arguments": {"text": "hello"}},
            {"for": ["content-audio"], "call": "add", "arguments": {"a": 1, "b": 2}}
        ]}"#,
    )?;
    let report = judge(&["--hints", &path], &CHOOSY)?;
    let notes = &report.targets[0].summary.hints;
    let note = |at: usize| notes.get(at).and_then(|hint| hint.note.as_deref()).unwrap_or("no note");
    for (at, says) in [
        (0, "the server lists no such tool"),
        (1, "it is annotated destructive"),
        (2, "no note"),
        (3, "it failed: A word is needed"),
    ] {
        if !note(at).contains(says) {
            return Err(format!("hint {at} is told as {:?}, not as {says:?}", note(at)));
        }
    }
    let output = run(&["--revision", REVISION.as_str(), "--hints", &path], &CHOOSY)?;
    expect(&output, 0, &["Hints that did not help", "it did not show content-image", "it was refused"])?;
    if words(&output).contains("ERASED") { Err("a destructive tool was called".to_owned()) } else { Ok(()) }
}

fn every_fault_of_a_file_is_told() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path =
        write(folder.path(), "{\"hints\": [\n  {\"call\": 5},\n  {\"for\": [\"content-imgae\"], \"get\": \"x\"}\n]}")?;
    let output = run(&["--hints", &path], &CHOOSY)?;
    expect(&output, 2, &["hints.jsonc:2:12: ", "hints.jsonc:3:12: ", "did you mean `content-image`?"])?;
    let output = run(&["--hints", "/does/not/exist"], &CHOOSY)?;
    expect(&output, 2, &["failed to read the hints", "/does/not/exist"])
}
