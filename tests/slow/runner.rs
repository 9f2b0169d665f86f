//! Package runners: the program that `npx` starts is found once and then started without `npx`, with the same verdicts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::installed::servers_are_required;
use crate::support::{PROGRAM, Trial, program_command, trial};
use mcp_conformance::report::Report;
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("runner/its-program-is-found-once", its_program_is_found_once),
        trial("runner/it-stays-in-use-if-its-program-is-unclear", it_stays_in_use_if_its_program_is_unclear),
    ]
}

/// The trial that needs an installed server.
pub(crate) fn trials_of_npx() -> Vec<Trial> {
    let absent = !everything_server().is_file();
    vec![trial("runner/npx", npx_changes_no_verdict).with_ignored_flag(absent && !servers_are_required())]
}

/// The mark in the report of a process that was started without the runner.
const WITHOUT_RUNNER: &str = ", without the package runner";

fn everything_server() -> PathBuf {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
    servers.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// Judges the server that a command starts in a folder, with one process at a time.
fn judge(folder: &Path, cases: &[&str], server: &[&str]) -> Result<Report, String> {
    let reports = TempDir::new().map_err(|error| error.to_string())?;
    let path = reports.path().join("report.json");
    let mut command = program_command();
    command.current_dir(folder).args(["--quiet", "--jobs", "1", "--fuzz", "off", "--timeout", "20s"]);
    command.args(["--startup-timeout", "120s"]).args(cases.iter().flat_map(|case| ["--select", case]));
    command.arg("--report").arg(format!("json={}", path.display())).arg("--").args(server);
    let output = command.output().map_err(|error| error.to_string())?;
    let details = || format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(details());
    }
    let text = fs::read_to_string(path).map_err(|error| format!("no report ({error}): {}", details()))?;
    serde_json::from_str(&text).map_err(|error| format!("{error}: {}", details()))
}

/// The number of processes started with the runner, and without.
fn launches(report: &Report) -> (usize, usize) {
    let all = report.targets.iter().flat_map(|target| &target.summary.launches);
    let (without, with): (Vec<_>, Vec<_>) = all.partition(|launch| launch.purpose.ends_with(WITHOUT_RUNNER));
    (with.len(), without.len())
}

/// The cases with their verdicts.
fn verdicts(report: &Report) -> Vec<String> {
    report.results().map(|result| format!("{} {} {:?}", result.revision, result.case, result.verdict)).collect()
}

fn script(path: &Path, lines: &str) -> Result<(), String> {
    let error_text = |error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(error_text)?;
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).map_err(error_text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(error_text)
}

/// A folder with a replacement for `npx`, which counts its starts, and a server in a subfolder of this name, which
/// counts its own and runs only with the environment that the runner sets.
fn fake_npx(packages: &str) -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let server = folder.path().join(packages).join("demo/server.sh");
    let here = folder.path().display();
    let server_script =
        format!("[ \"$GIVEN\" = \"a b\" ] || exit 9\necho . >> '{here}/served'\n'{PROGRAM}' serve\nexit $?");
    script(&server, &server_script)?;
    let runner_script =
        format!("echo . >> '{here}/ran'\nGIVEN='a b' sh -c \"'{}' \\\"$1\\\"\"\nexit $?", server.display());
    script(&folder.path().join("npx"), &runner_script)?;
    Ok(folder)
}

fn starts(folder: &TempDir, name: &str) -> usize {
    fs::read_to_string(folder.path().join(name)).unwrap_or_default().lines().count()
}

const CASES: [&str; 2] = ["lifecycle/*", "stdio/*"];

fn its_program_is_found_once() -> Result<(), String> {
    let folder = fake_npx("node_modules")?;
    let report = judge(folder.path(), &CASES, &["./npx", "demo"])?;
    let (ran, served) = (starts(&folder, "ran"), starts(&folder, "served"));
    let reported = launches(&report);
    // Without a process table in /proc the runner stays in use.
    let expected = if cfg!(target_os = "linux") { 1 } else { served };
    if ran != expected || served < 10 || reported.0 + reported.1 < 10 || reported.0 > ran {
        return Err(format!("{ran} runs of the runner, {served} of the server, reported: {reported:?}"));
    }
    let direct = judge(folder.path(), &CASES, &[PROGRAM, "serve"])?;
    compare(&verdicts(&direct), &verdicts(&report))
}

fn it_stays_in_use_if_its_program_is_unclear() -> Result<(), String> {
    let folder = fake_npx("elsewhere")?;
    let report = judge(folder.path(), &CASES, &["./npx", "demo"])?;
    let (ran, served) = (starts(&folder, "ran"), starts(&folder, "served"));
    let reported = launches(&report);
    if ran == served && ran > 10 && reported.1 == 0 {
        Ok(())
    } else {
        Err(format!("{ran} runs of the runner, {served} of the server, reported: {reported:?}"))
    }
}

fn npx_changes_no_verdict() -> Result<(), String> {
    let script = everything_server();
    let name = script.display().to_string();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
    // Findings of tools depend on the speed of their responses, so they are not compared.
    let npx = judge(&folder, &CASES, &["npx", "-y", "@modelcontextprotocol/server-everything"])?;
    let reported = launches(&npx);
    if cfg!(target_os = "linux") && (reported.1 == 0 || reported.0 > 1) {
        return Err(format!("with the runner and without it: {reported:?}"));
    }
    compare(&verdicts(&judge(&folder, &CASES, &["node", &name])?), &verdicts(&npx))
}

fn compare(expected: &[String], found: &[String]) -> Result<(), String> {
    let other: Vec<&String> = expected.iter().filter(|verdict| !found.contains(verdict)).collect();
    if expected.len() == found.len() && other.is_empty() && !expected.is_empty() {
        Ok(())
    } else {
        Err(format!("{} and {} verdicts; only without the runner: {other:?}", expected.len(), found.len()))
    }
}
