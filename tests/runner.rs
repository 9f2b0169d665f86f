//! Package runners: what `npx` starts is found once and then started without it, and judged the same.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use mcp_conformance::report::Report;
use tempfile::TempDir;

use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_SERVERS").is_some_and(|value| value == "required");
    let absent = !everything().is_file();
    vec![
        trial("runner/what-it-starts-is-found-once", what_it_starts_is_found_once),
        trial("runner/it-is-used-further-where-in-doubt", it_is_used_further_where_in_doubt),
        trial("runner/npx", the_real_one_changes_no_verdict).with_ignored_flag(absent && !required),
    ]
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");
/// What is told of a process that was started without the runner.
const WITHOUT: &str = ", without the package runner";

fn everything() -> PathBuf {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
    servers.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// Judges what a command starts in a folder, one process after the other.
fn judge(folder: &Path, cases: &[&str], server: &[&str]) -> Result<Report, String> {
    let kept = TempDir::new().map_err(|error| error.to_string())?;
    let path = kept.path().join("report.json");
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(["--quiet", "--jobs", "1", "--fuzz", "off", "--timeout", "20s"]);
    command.args(["--startup-timeout", "120s"]).args(cases.iter().flat_map(|case| ["--select", case]));
    command.arg("--report").arg(format!("json={}", path.display())).arg("--").args(server);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let told = || format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(told());
    }
    let text = fs::read_to_string(path).map_err(|error| format!("no report ({error}): {}", told()))?;
    serde_json::from_str(&text).map_err(|error| format!("{error}: {}", told()))
}

/// How many of the processes were started with the runner, and how many without.
fn launches(report: &Report) -> (usize, usize) {
    let all = report.targets.iter().flat_map(|target| &target.summary.launches);
    let (without, with): (Vec<_>, Vec<_>) = all.partition(|launch| launch.purpose.ends_with(WITHOUT));
    (with.len(), without.len())
}

/// The cases with their verdicts.
fn verdicts(report: &Report) -> Vec<String> {
    report.results().map(|result| format!("{} {} {:?}", result.revision, result.case, result.verdict)).collect()
}

fn script(path: &Path, lines: &str) -> Result<(), String> {
    let told = |error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(told)?;
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).map_err(told)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(told)
}

/// A folder with something like `npx`, which counts its starts, and a server in a folder of this name, which counts
/// its own and runs only as the runner has it.
fn like_npx(packages: &str) -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let server = folder.path().join(packages).join("demo/server.sh");
    let here = folder.path().display();
    let runs_it = format!("[ \"$GIVEN\" = \"a b\" ] || exit 9\necho . >> '{here}/served'\n'{PROGRAM}' serve\nexit $?");
    script(&server, &runs_it)?;
    let runs = format!("echo . >> '{here}/ran'\nGIVEN='a b' sh -c \"'{}' \\\"$1\\\"\"\nexit $?", server.display());
    script(&folder.path().join("npx"), &runs)?;
    Ok(folder)
}

fn starts(folder: &TempDir, name: &str) -> usize {
    fs::read_to_string(folder.path().join(name)).unwrap_or_default().lines().count()
}

const CASES: [&str; 2] = ["lifecycle/*", "stdio/*"];

fn what_it_starts_is_found_once() -> Result<(), String> {
    let folder = like_npx("node_modules")?;
    let report = judge(folder.path(), &CASES, &["./npx", "demo"])?;
    let (ran, served) = (starts(&folder, "ran"), starts(&folder, "served"));
    let told = launches(&report);
    // Where the system shows no table of processes, the runner goes on being used.
    let expected = if cfg!(target_os = "linux") { 1 } else { served };
    if ran != expected || served < 10 || told.0 + told.1 < 10 || told.0 > ran {
        return Err(format!("{ran} runs of the runner, {served} of the server, told: {told:?}"));
    }
    let direct = judge(folder.path(), &CASES, &[PROGRAM, "serve"])?;
    same(&verdicts(&direct), &verdicts(&report))
}

fn it_is_used_further_where_in_doubt() -> Result<(), String> {
    let folder = like_npx("elsewhere")?;
    let report = judge(folder.path(), &CASES, &["./npx", "demo"])?;
    let (ran, served) = (starts(&folder, "ran"), starts(&folder, "served"));
    let told = launches(&report);
    if ran == served && ran > 10 && told.1 == 0 {
        Ok(())
    } else {
        Err(format!("{ran} runs of the runner, {served} of the server, told: {told:?}"))
    }
}

fn the_real_one_changes_no_verdict() -> Result<(), String> {
    let script = everything();
    let name = script.display().to_string();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
    // What tools show depends on how fast they answer, so it is no part of the comparison.
    let npx = judge(&folder, &CASES, &["npx", "-y", "@modelcontextprotocol/server-everything"])?;
    let told = launches(&npx);
    if cfg!(target_os = "linux") && (told.1 == 0 || told.0 > 1) {
        return Err(format!("with the runner and without it: {told:?}"));
    }
    same(&verdicts(&judge(&folder, &CASES, &["node", &name])?), &verdicts(&npx))
}

fn same(expected: &[String], found: &[String]) -> Result<(), String> {
    let other: Vec<&String> = expected.iter().filter(|verdict| !found.contains(verdict)).collect();
    if expected.len() == found.len() && other.is_empty() && !expected.is_empty() {
        Ok(())
    } else {
        Err(format!("{} and {} verdicts; only without the runner: {other:?}", expected.len(), found.len()))
    }
}
