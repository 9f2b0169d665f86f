//! Calls in sequences: the mistakes of an application that only several calls show.
//!
//! `cargo test --test suite -- --ignored hidden/sequences` tries each of them with five seeds, and prints which were found
//! and whether the sequences are minimal. `SEEDS=1,2,3` selects other seeds, `FAULTS=task,file` the faults whose names
//! contain one of these strings.

use std::path::Path;
use std::process::{Command, Stdio};

use mcp_conformance::event::CaseResult;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;

use crate::support::evaluation_server as server;
use crate::support::state_faults::{self as faults, StateFault};
use crate::support::{Trial, application, program_command, trial};

/// One fault of each kind of objects, for a test that takes seconds.
const SAMPLE: [&str; 3] = ["project-rename-affects-all", "task-delete-removes-next", "file-crash-after-delete"];

/// The share of faults that have to be found, in percent.
const MIN_FOUND_PERCENT: usize = 95;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("sequences/a-sample-of-state-faults-is-found", || evaluate(&sample()?, &[1])),
        trial("sequences/an-application-without-faults-has-no-finding", || finds_nothing("plain")),
        trial("sequences/an-eventually-consistent-application-has-no-finding", || finds_nothing("eventual")),
        trial("sequences/what-was-created-is-deleted-unless-that-is-not-allowed", what_was_created_is_deleted),
        trial("sequences/a-saved-sequence-is-replayed", a_saved_sequence_is_replayed),
        trial("sequences/state-faults-are-well-defined", state_faults_are_well_defined),
        trial("hidden/sequences", evaluation).with_ignored_flag(true),
    ]
}

fn sample() -> Result<Vec<StateFault>, String> {
    SAMPLE.iter().map(|name| faults::find(name).ok_or_else(|| format!("no state fault is named {name}"))).collect()
}

fn state_faults_are_well_defined() -> Result<(), String> {
    let all = faults::all();
    let mut names: Vec<String> = all.iter().map(StateFault::name).collect();
    names.sort();
    names.dedup();
    if names.len() != all.len() || all.len() < 38 {
        return Err(format!("{} faults have {} names", all.len(), names.len()));
    }
    match all.iter().find(|fault| fault.oracles.is_empty() || fault.fewest_calls < 2) {
        Some(fault) => Err(format!("{fault:?} needs no sequence")),
        None => Ok(()),
    }
}

/// The report of a run with calls in sequences against the application.
pub(crate) fn judge(
    application: &str,
    fault: Option<StateFault>,
    seed: u64,
    settings: &[&str],
) -> Result<Report, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("report.json");
    judge_to(application, fault, seed, settings, &path)
}

fn judge_to(
    application: &str,
    fault: Option<StateFault>,
    seed: u64,
    settings: &[&str],
    path: &Path,
) -> Result<Report, String> {
    let mut command = program_command();
    command.args(["--select", "fuzz/*", "--sequences", "--fuzz", "1", "--seed", &seed.to_string()]);
    command.args(["--report", &format!("json={}", path.display())]).args(settings);
    for tool in application::KINDS.iter().flat_map(application::names) {
        command.args(["--tool", tool]);
    }
    command.arg("--").args(server::command()?).args(["--application", application]);
    if let Some(fault) = fault {
        command.args(["--fault", &fault.name()]);
    }
    run(command, path)
}

fn run(mut command: Command, path: &Path) -> Result<Report, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let shown = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(path).map_err(|error| format!("{error}\n{}", shown()))?;
    serde_json::from_str(&text).map_err(|error| format!("{error}\n{}", shown()))
}

/// The findings of these cases that come from a sequence: each with its case and the number of its calls.
fn findings(report: &Report) -> Vec<(String, String, usize)> {
    let mut found = Vec::new();
    for result in report.results() {
        for finding in &result.findings {
            let Some(example) = &finding.counterexample else { continue };
            found.push((result.case.clone(), finding.message.clone(), example.preceding.len() + 1));
        }
    }
    found
}

/// The settings with which everything may be called.
const DESTRUCTIVE: [&str; 5] = ["--call-destructive", "--regressions", "none", "--revision", "2025-11-25"];

fn evaluate(faults: &[StateFault], seeds: &[u64]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for fault in faults {
        for seed in seeds {
            let report = judge("plain", Some(*fault), *seed, &DESTRUCTIVE)?;
            let found = findings(&report);
            let fits =
                |(case, _, calls): &&(String, String, usize)| fault.oracles.contains(&case.as_str()) && *calls > 1;
            let calls = found.iter().filter(fits).map(|(_, _, calls)| *calls).min();
            // A task belongs to a project, which is created first.
            let fewest = fault.fewest_calls + usize::from(fault.noun == "task");
            let state = match calls {
                Some(calls) if calls <= fewest + 1 => "minimal",
                Some(_) => "found",
                None => "missed",
            };
            print_line(&format!("{seed:>3} {:<36} {state} {calls:?}, fewest {fewest}", fault.name()));
            if state != "minimal" {
                wrong.push(format!("{} with seed {seed}: {state} {calls:?}: {found:?}", fault.name()));
            }
        }
    }
    let allowed = faults.len() * seeds.len() * (100 - MIN_FOUND_PERCENT) / 100;
    if wrong.len() <= allowed { Ok(()) } else { Err(wrong.join("\n")) }
}

#[expect(clippy::print_stderr, reason = "an evaluation of minutes is watched")]
fn print_line(line: &str) {
    eprintln!("{line}");
}

fn evaluation() -> Result<(), String> {
    let seeds: Vec<u64> = match std::env::var("SEEDS") {
        Ok(seeds) => seeds.split(',').filter_map(|seed| seed.trim().parse().ok()).collect(),
        Err(_) => (1..=5).collect(),
    };
    let filters = std::env::var("FAULTS").unwrap_or_default();
    let is_chosen = |fault: &StateFault| filters.split(',').any(|filter| fault.name().contains(filter));
    let faults: Vec<StateFault> = faults::all().into_iter().filter(is_chosen).collect();
    evaluate(&faults, &seeds)
}

/// The application without faults has no finding that only several calls show.
fn finds_nothing(application: &str) -> Result<(), String> {
    let report = judge(application, None, 1, &DESTRUCTIVE)?;
    let found: Vec<_> = findings(&report).into_iter().filter(|(_, _, calls)| *calls > 1).collect();
    let summary = report.targets.iter().find_map(|target| target.summary.fuzz.as_ref()?.sequences.as_ref());
    let summary = summary.ok_or("no calls were made in sequences")?;
    if summary.sequences != application::KINDS.len() {
        return Err(format!("not every kind of objects was found: {summary:?}"));
    }
    if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
}

fn what_was_created_is_deleted() -> Result<(), String> {
    let summary = |settings: &[&str]| {
        let report = judge("plain", None, 1, settings)?;
        let summary = report.targets.iter().find_map(|target| target.summary.fuzz.as_ref()?.sequences.clone());
        summary.ok_or_else(|| "no calls were made in sequences".to_owned())
    };
    let (deletes, keeps) = (summary(&DESTRUCTIVE)?, summary(&DESTRUCTIVE[1..])?);
    if deletes.created < 6 || deletes.left != 0 {
        return Err(format!("{} of {} objects were left", deletes.left, deletes.created));
    }
    let calls_deleter = keeps.links.iter().any(|link| link.consumer == "delete_project");
    if keeps.left != keeps.created || calls_deleter || !keeps.left_by.contains("create_project") {
        return Err(format!("without permission to delete: {keeps:?}"));
    }
    Ok(())
}

fn a_saved_sequence_is_replayed() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let saved = folder.path().join("saved").display().to_string();
    let fault = faults::find("task-delete-removes-next").ok_or("there is no such fault")?;
    let settings = ["--call-destructive", "--regressions", &saved, "--revision", "2025-11-25"];
    let report = judge("plain", Some(fault), 1, &settings)?;
    let mut examples =
        report.results().filter(|result| result.case == "fuzz/other-object").flat_map(|result| &result.findings);
    let file = examples.find_map(|finding| finding.counterexample.as_ref()?.file.clone()).ok_or("nothing was saved")?;
    let replay = |name: &str, fault: Option<StateFault>| -> Result<Option<CaseResult>, String> {
        let path = folder.path().join(name);
        let mut command = program_command();
        command.args(["replay", "--report", &format!("json={}", path.display()), &file]);
        command.arg("--").args(server::command()?).args(["--application", "plain"]);
        if let Some(fault) = fault {
            command.args(["--fault", &fault.name()]);
        }
        let report = run(command, &path)?;
        Ok(report.results().find(|result| result.case == "fuzz/other-object").cloned())
    };
    let (red, green) = (replay("red.json", Some(fault))?, replay("green.json", None)?);
    let verdicts = [&red, &green].map(|result| result.as_ref().map(|result| result.verdict));
    if verdicts != [Some(Verdict::Warn), Some(Verdict::Pass)] {
        return Err(format!("replayed with the fault and without: {verdicts:?}\n{green:?}"));
    }
    Ok(())
}
