//! Hint files: discovering hints, and what a run with hints judges.
//!
//! Every trial runs the real program on the built-in server, mostly on its variant whose tools fail unless an argument is
//! a certain word: calls that are generated from the schema alone always fail.

use std::fs;
use std::path::Path;

use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Hint, HintRequest, load_hints, parse_hints};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::support::reference::cases;
use crate::support::{PROGRAM, ProgramOutput, Trial, describe_error, program, trial};

/// The server whose tools require certain words.
const WORD_SERVER: [&str; 4] = [PROGRAM, "serve", "--fault", "choosy-tools"];

/// A revision with all features that the trials use.
const REVISION: Revision = Revision::V2025_11_25;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("hints/each-hint-names-what-its-call-shows", each_hint_names_what_its_call_shows),
        trial("hints/an-existing-file-is-not-overwritten", an_existing_file_is_not_overwritten),
        trial("hints/no-file-is-created-without-a-server", no_file_is_created_without_a_server),
        trial("hints/destructive-tools-are-called-only-on-request", destructive_tools_are_called_only_on_request),
        trial("hints/a-run-without-hints-serves-what-hints-serve", a_run_without_hints_serves_what_hints_serve),
        trial("hints/a-case-uses-the-tool-of-its-hint", a_case_uses_the_tool_of_its_hint),
        trial("hints/hints-that-did-not-help-are-reported", hints_that_did_not_help_are_reported),
        trial("hints/every-error-of-a-hint-file-is-reported", every_error_of_a_hint_file_is_reported),
    ]
}

fn run(options: &[&str], server: &[&str]) -> Result<ProgramOutput, String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    program(folder.path(), &[options, &["--"], server].concat())
}

fn expect(output: &ProgramOutput, code: i32, expected: &[&str]) -> Result<(), String> {
    let text = &output.text;
    match expected.iter().find(|string| !text.contains(**string)) {
        Some(missing) => Err(format!("the output lacks {missing:?}: {text}")),
        None if output.code != Some(code) => Err(format!("the exit code is not {code}: {text}")),
        None => Ok(()),
    }
}

/// The hints that the program discovers for a server.
fn discovered_hints(options: &[&str], server: &[&str]) -> Result<Vec<Hint>, String> {
    let output = run(&[&["hints", "--revision", REVISION.as_str()], options].concat(), server)?;
    let output = output.with_code(0)?;
    parse_hints("hints", &output.out, &[]).map_err(|error| format!("{error}\n{}", output.text))
}

/// Judges a server and reads the report.
fn judge(options: &[&str], server: &[&str]) -> Result<Report, String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = folder.path().join("report.json");
    let report = format!("json={}", path.display());
    let run_options = ["--revision", REVISION.as_str(), "--fuzz", "off", "--quiet", "--report", &report];
    let output = run(&[&run_options, options].concat(), server)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("no report ({error}): {}", output.text))?;
    serde_json::from_str(&text).map_err(describe_error)
}

fn write(folder: &Path, text: &str) -> Result<String, String> {
    let path = folder.join("hints.jsonc");
    fs::write(&path, text).map_err(describe_error)?;
    Ok(path.display().to_string())
}

/// The arguments of a hint that calls this tool.
fn arguments_of<'a>(hint: &'a Hint, name: &str) -> Option<&'a serde_json::Map<String, serde_json::Value>> {
    match &hint.request {
        HintRequest::Call { tool, arguments } if tool == name => Some(arguments),
        _ => None,
    }
}

fn each_hint_names_what_its_call_shows() -> Result<(), String> {
    let hints = discovered_hints(&[], &[PROGRAM, "serve"])?;
    for (tool, requirement) in [
        ("image", "content-image"),
        ("audio", "content-audio"),
        ("add", "structured-conforms"),
        ("count", "progress-increases"),
        ("log", "log-notification-shape"),
    ] {
        let named = |hint: &&Hint| hint.purposes.iter().any(|id| id == requirement);
        let hint = hints.iter().find(named).ok_or_else(|| format!("no hint is for {requirement}: {hints:#?}"))?;
        if arguments_of(hint, tool).is_none() {
            return Err(format!("the hint for {requirement} is {}", hint.request.describe()));
        }
    }
    let is_read = |hint: &Hint| matches!(&hint.request, HintRequest::Read { .. });
    let is_prompt = |hint: &Hint| matches!(&hint.request, HintRequest::Get { .. });
    if hints.iter().any(is_read) && hints.iter().any(is_prompt) {
        Ok(())
    } else {
        Err(format!("no hint reads a resource, or none gets a prompt: {hints:#?}"))
    }
}

fn an_existing_file_is_not_overwritten() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = write(folder.path(), "mine")?;
    let output = run(&["hints", "--output", &path], &WORD_SERVER)?;
    expect(&output, 2, &["failed to create", "--output"])?;
    let text = fs::read_to_string(&path).map_err(describe_error)?;
    if text == "mine" { Ok(()) } else { Err(format!("the file was changed to {text:?}")) }
}

fn no_file_is_created_without_a_server() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = folder.path().join("hints.jsonc");
    let output = run(&["hints", "--output", &path.display().to_string()], &["/does/not/exist"])?;
    expect(&output, 2, &["failed to try out the server", "/does/not/exist"])?;
    if path.exists() { Err("an empty file was created".to_owned()) } else { Ok(()) }
}

fn destructive_tools_are_called_only_on_request() -> Result<(), String> {
    let server = [PROGRAM, "serve"];
    let output = run(&["hints", "--revision", REVISION.as_str()], &server)?;
    expect(&output, 0, &["not called: erase, because it is annotated destructive"])?;
    let output = run(&["hints", "--call-destructive", "--revision", REVISION.as_str()], &server)?;
    if output.text.contains("not called") { Err(output.text) } else { Ok(()) }
}

fn a_run_without_hints_serves_what_hints_serve() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = folder.path().join("hints.jsonc").display().to_string();
    let output = run(&["hints", "--revision", REVISION.as_str(), "--output", &path], &WORD_SERVER)?;
    expect(&output, 0, &["tried in 2025-11-25"])?;
    let hints = load_hints(Path::new(&path), &[]).map_err(describe_error)?;
    if !hints.iter().any(|hint| arguments_of(hint, "echo").is_some_and(|arguments| arguments["text"] == "hello")) {
        return Err(format!("no hint calls echo with its word: {hints:#?}"));
    }
    let (without, with) = (judge(&[], &WORD_SERVER)?, judge(&["--hints", &path], &WORD_SERVER)?);
    let judged = |report: &Report| report.targets[0].requirements.judged.clone();
    let failing_tools = |report: &Report| {
        let noted = report.targets[0].summary.tools.iter().filter(|tool| tool.called && tool.note.is_some());
        noted.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    if failing_tools(&without) != failing_tools(&with) || judged(&without) != judged(&with) {
        return Err(format!(
            "tools that fail without hints: {:?}, with hints: {:?}; judged without: {:?}, with: {:?}",
            failing_tools(&without),
            failing_tools(&with),
            judged(&without),
            judged(&with)
        ));
    }
    let is_complaint = |result: &&CaseResult| !matches!(result.verdict, Verdict::Pass | Verdict::Skip);
    match with.results().chain(without.results()).find(is_complaint) {
        Some(result) => Err(format!("{} results in {}", result.case, result.verdict.as_str())),
        None => Ok(()),
    }
}

fn a_case_uses_the_tool_of_its_hint() -> Result<(), String> {
    const CASE: &str = "tools/call/unknown-tool";
    if !cases().iter().any(|case| case.id == CASE) {
        return Err(format!("{CASE} does not exist: choose another case"));
    }
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let text = format!(r#"{{"hints": [{{"for": ["{CASE}"], "call": "weather", "arguments": {{"city": "Turku"}}}}]}}"#);
    let path = write(folder.path(), &text)?;
    let log = run(&["-v", "--revision", REVISION.as_str(), "--select", CASE, "--hints", &path], &[PROGRAM, "serve"])?;
    expect(&log, 0, &["Turku"])?;
    let sent = log.text.lines().filter(|line| line.contains("\"Turku\"")).count();
    // Once for the hint, and once as the control call of the case.
    if sent >= 2 { Ok(()) } else { Err(log.text) }
}

fn hints_that_did_not_help_are_reported() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = write(
        folder.path(),
        r#"{"hints": [
            {"call": "nonesuch"},
            {"call": "erase"},
            {"for": ["content-image"], "call": "echo", "arguments": {"text": "hello"}},
            {"for": ["content-audio"], "call": "add", "arguments": {"a": 1, "b": 2}}
        ]}"#,
    )?;
    let report = judge(&["--hints", &path], &WORD_SERVER)?;
    let notes = &report.targets[0].summary.hints;
    let note = |at: usize| notes.get(at).and_then(|hint| hint.note.as_deref()).unwrap_or("no note");
    for (at, expected) in [
        (0, "the server lists no such tool"),
        (1, "it is annotated destructive"),
        (2, "no note"),
        (3, "it failed: A word is needed"),
    ] {
        if !note(at).contains(expected) {
            return Err(format!("the note of hint {at} is {:?}, expected {expected:?}", note(at)));
        }
    }
    let output = run(&["--revision", REVISION.as_str(), "--hints", &path], &WORD_SERVER)?;
    expect(&output, 0, &["Hints that did not help", "it did not cover content-image", "it failed"])?;
    if output.text.contains("ERASED") { Err("a destructive tool was called".to_owned()) } else { Ok(()) }
}

fn every_error_of_a_hint_file_is_reported() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path =
        write(folder.path(), "{\"hints\": [\n  {\"call\": 5},\n  {\"for\": [\"content-imgae\"], \"get\": \"x\"}\n]}")?;
    let output = run(&["--hints", &path], &WORD_SERVER)?;
    expect(&output, 2, &["hints.jsonc:2:12: ", "hints.jsonc:3:12: ", "did you mean `content-image`?"])?;
    let output = run(&["--hints", "/does/not/exist"], &WORD_SERVER)?;
    expect(&output, 2, &["failed to read the hints", "/does/not/exist"])
}
