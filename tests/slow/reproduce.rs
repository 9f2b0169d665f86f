//! The commands that `explain` prints, run by a shell: a few of each kind.

use std::path::Path;
use std::process::{Command, Stdio};

use super::address::unused_address;
use crate::support::printed::printed;
use crate::support::{PROGRAM, Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("reproduce/a-shell-runs-the-commands", a_shell_runs_the_commands)]
}

/// One of each kind: stdio with and without stimuli, the draft, both HTTP transports, tokens of either scope.
const RUN_BY_A_SHELL: [&str; 7] = [
    "content/image-base64",
    "tasks/ids-unique",
    "tools/call/tool-result",
    "http/json-one-object",
    "http-sse/endpoint-first",
    "auth/unknown-token",
    "auth/insufficient-scope",
];

fn a_shell_runs_the_commands() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    RUN_BY_A_SHELL.iter().try_for_each(|id| {
        let printed = printed().get(*id).ok_or_else(|| format!("no command for {id}"))?;
        finds_something(&printed.line, folder.path())?;
        let without = printed.line.replace(&format!(" --fault {}", printed.fault), "");
        let conforming = run_by_a_shell(&without, folder.path())?;
        if conforming.contains("FAIL  ") || conforming.contains("WARN  ") {
            return Err(format!("{without} finds something:\n{conforming}"));
        }
        Ok(())
    })
}

/// Runs a printed command by a shell that finds the program in its search path; the port is one that is free.
fn run_by_a_shell(line: &str, folder: &Path) -> Result<String, String> {
    let port = unused_address().port();
    let line = line.replace(":8765", &format!(":{port}"));
    let programs = Path::new(PROGRAM).parent().map(|path| path.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &line])
        .env("PATH", format!("{programs}:{path}"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let code = output.status.code();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if matches!(code, Some(0 | 1 | 3)) { Ok(text) } else { Err(format!("{line} ends with {code:?}:\n{text}")) }
}

/// Runs a printed command in a shell; fails unless it has a finding.
fn finds_something(line: &str, folder: &Path) -> Result<(), String> {
    let output = run_by_a_shell(line, folder)?;
    // A violated SHOULD rule is a warning, which does not fail a run.
    let is_red = output.contains("FAIL  ") || output.contains("WARN  ");
    if is_red { Ok(()) } else { Err(format!("{line} finds nothing:\n{output}")) }
}
