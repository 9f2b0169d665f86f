//! Calls that succeed: a run finds arguments that the tools serve, and shows each kind of result at least once.
//!
//! Every trial runs the real program on the built-in server.

use crate::support::{PROGRAM, Trial, program, trial};
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("arguments/values-that-the-server-names-are-found", values_that_the_server_names_are_found),
        trial("arguments/every-value-of-an-enumeration-is-called", || {
            finds("rendered-image-data-url", "content/image-base64")
        }),
        trial("arguments/resources-of-templates-are-read", || finds("template-resource-empty", "resources/read/shape")),
        trial("arguments/resources-of-links-are-read", || {
            finds_in(&["2025-06-18", "2025-11-25", "2026-07-28"], "linked-resource-empty", "resources/read/shape")
        }),
        trial("arguments/prompts-get-their-options", || finds("prompt-option-wrapped", "prompts/get/shape")),
        trial("arguments/nothing-destructive-is-searched-for", nothing_destructive_is_searched_for),
    ]
}

/// Judges the built-in server with a fault in one revision.
fn judge(fault: &str, revision: &str) -> Result<Report, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("report.json");
    let report = format!("json={}", path.display());
    let options = ["--revision", revision, "--fuzz", "off", "--quiet", "--report", &report, "--"];
    let output = program(folder.path(), &[&options[..], &[PROGRAM, "serve", "--fault", fault]].concat())?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("no report ({error}): {}", output.text))?;
    Report::parse(&text).map_err(|error| error.to_string())
}

fn values_that_the_server_names_are_found() -> Result<(), String> {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let report = judge("particular-tools", revision)?;
        let summary = &report.targets[0].summary;
        let unserved: Vec<_> = summary.tools.iter().filter(|tool| !tool.called || tool.note.is_some()).collect();
        if summary.tools.len() != 8 || !unserved.is_empty() {
            return Err(format!("{revision}: not served: {unserved:#?}"));
        }
        let is_without_tool = |reason: &String| reason.contains("no tool that may be called was served");
        if let Some(result) = report.results().find(|result| result.reason.as_ref().is_some_and(is_without_tool)) {
            return Err(format!("{revision}: {} was skipped: {:?}", result.case, result.reason));
        }
        if let Some(result) = report.results().find(|one| !matches!(one.verdict, Verdict::Pass | Verdict::Skip)) {
            return Err(format!("{revision}: {} results in {:#?}", result.case, result.findings));
        }
    }
    Ok(())
}

/// Fails unless a case finds a fault that only one value or one template shows, in every revision.
fn finds(fault: &str, case: &str) -> Result<(), String> {
    finds_in(&["2024-11-05", "2025-11-25", "2026-07-28"], fault, case)
}

fn finds_in(revisions: &[&str], fault: &str, case: &str) -> Result<(), String> {
    for revision in revisions {
        let report = judge(fault, revision)?;
        let result = report.results().find(|result| result.case == case);
        if result.is_none_or(|result| result.verdict != Verdict::Fail) {
            return Err(format!("{revision}: {case} results in {result:#?}"));
        }
    }
    Ok(())
}

fn nothing_destructive_is_searched_for() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = [PROGRAM, "serve", "--fault", "choosy-tools"];
    let options = ["-v", "--revision", "2025-11-25", "--fuzz", "off", "--select", "lifecycle", "--"];
    let output = program(folder.path(), &[&options[..], &server].concat())?;
    // The server answers so if its destructive tool is called.
    if output.text.contains("ERASED") {
        return Err(output.text);
    }
    output.with_code(0)?.shows("hello").map(drop)
}
