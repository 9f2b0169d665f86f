//! `doctor` shows what a run sees of a server, and ends with the command to run next.

use tempfile::TempDir;

use crate::support::{PROGRAM, Trial, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("doctor/it-shows-what-a-run-sees", it_shows_what_a_run_sees),
        trial("doctor/options-change-which-tools-are-called", options_change_which_tools_are_called),
        trial("doctor/a-program-that-is-no-server-is-an-error", a_program_that_is_no_server_is_an_error),
    ]
}

/// Runs `doctor` with these arguments; returns its exit code and its lines.
fn doctor(arguments: &[&str]) -> Result<(Option<i32>, String), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let output = program(folder.path(), &[&["doctor"], arguments].concat())?;
    Ok((output.code, output.text))
}

/// Fails unless each of these is a line, or its beginning.
fn has_lines(text: &str, lines: &[&str]) -> Result<(), String> {
    let is_missing = |wanted: &&&str| !text.lines().any(|line| line.starts_with(**wanted));
    match lines.iter().find(is_missing) {
        Some(missing) => Err(format!("no line begins with {missing:?}:\n{text}")),
        None => Ok(()),
    }
}

fn it_shows_what_a_run_sees() -> Result<(), String> {
    let (code, text) = doctor(&["--", PROGRAM, "serve"])?;
    if code != Some(0) {
        return Err(format!("exit code {code:?}:\n{text}"));
    }
    has_lines(
        &text,
        &[
            "server     mcp-conformance-mock",
            "start-up   ",
            "revisions  2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28",
            "declares   tools (listChanged)",
            "tools      28, of which 27 were called and 26 are used by cases",
            "           it is annotated destructive (--call-destructive calls it): erase",
            "helps      --call-destructive",
            &format!("next       mcp-conformance -- {PROGRAM} serve"),
        ],
    )
}

fn options_change_which_tools_are_called() -> Result<(), String> {
    let (_, text) = doctor(&["--call-destructive", "--revision", "2025-06-18", "--", PROGRAM, "serve"])?;
    has_lines(&text, &["revisions  2025-06-18", "tools      23, of which 23 were called"])
}

fn a_program_that_is_no_server_is_an_error() -> Result<(), String> {
    let (code, text) = doctor(&["--", "false"])?;
    if code == Some(2) && text.contains("failed to inspect the server") && !text.contains("next ") {
        Ok(())
    } else {
        Err(format!("exit code {code:?}:\n{text}"))
    }
}
