//! Evaluation faults: no case detects them, and the fuzzer does.
//!
//! `cargo test --test suite -- --ignored hidden/evaluation` fuzzes the built-in server with each of them for ten seeds
//! and prints which were found and whether the counterexamples are minimal, which takes long. `SEEDS=1,2,3` selects
//! other seeds, `FAULTS=search,echo` the faults whose names contain one of these strings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::client::InProcessServer;
use mcp_conformance::internals::run::Launcher;
use mcp_conformance::reference::{Fault, FaultSet, serve_intercepted};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;
use serde_json::Value;

use crate::support::evaluation_faults::{self as faults, EvaluationFault};
use crate::support::evaluation_server as server;
use crate::support::reference::{cases, judge_launched};
use crate::support::{Trial, program_command, trial};

/// What reports a tool that no call could satisfy: no case, as that is no fault of the server.
const UNTESTED: &str = "untested";

/// Evaluation faults of each kind, for a test of the fuzzer that takes seconds.
const SAMPLE: [&str; 6] = [
    "search-limit-maximum",
    "search-rank-drifts",
    "transform-format-string",
    "search-limit-text",
    "draft-read-array",
    "lookup-never-succeeds",
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("hidden/every-evaluation-fault-is-well-defined", every_evaluation_fault_is_well_defined),
        trial("hidden/no-case-detects-an-evaluation-fault", no_case_detects_an_evaluation_fault),
        trial("hidden/the-fuzzer-finds-a-sample", the_fuzzer_finds_a_sample),
        trial("hidden/evaluation", evaluation).with_ignored_flag(true),
    ]
}

/// Names and descriptions differ from each other and from those of the reference server's own faults.
fn every_evaluation_fault_is_well_defined() -> Result<(), String> {
    let mut names: BTreeSet<&str> = Fault::all().iter().map(|fault| fault.name()).collect();
    let mut descriptions: BTreeSet<&str> = Fault::all().iter().map(|fault| fault.description()).collect();
    let mut wrong = Vec::new();
    for fault in faults::all() {
        let (name, text) = (fault.name(), fault.description());
        let is_kebab_case = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_kebab_case || !names.insert(name) {
            wrong.push(format!("the name `{name}` is not unique kebab-case"));
        }
        let is_short = !text.is_empty() && text.chars().count() <= 70;
        if !is_short || text.contains("should") || text.ends_with('.') || !descriptions.insert(text) {
            wrong.push(format!("{name}: \"{text}\" is not a short unique phrase"));
        }
        let is_shown = |oracle: &&str| oracle.starts_with("fuzz/") || *oracle == UNTESTED;
        if fault.oracles().is_empty() || !fault.oracles().iter().all(is_shown) {
            wrong.push(format!("{name} names no fuzzing cases that report it"));
        }
    }
    if faults::all().count() < 40 {
        wrong.push("there are fewer than 40 evaluation faults".to_owned());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Evaluation faults that show in calls with each choice of an ordinary schema, which every run makes, each with exactly
/// the cases that detect it.
const SHOWN_BY_CHOICES: [(&str, &[&str]); 2] =
    [("count-to-nine", &["content/types"]), ("search-match-branch", &["content/structured-text", "content/types"])];

/// Tries all faults at once first: if no case detects any of them together, none detects one alone.
fn no_case_detects_an_evaluation_fault() -> Result<(), String> {
    let mut lines = Vec::new();
    let cases_of = |faults: Vec<EvaluationFault>| -> Result<Vec<String>, String> {
        let found: BTreeSet<String> = detecting_cases(faults)?.into_iter().collect();
        Ok(found.into_iter().collect())
    };
    for (name, expected) in SHOWN_BY_CHOICES {
        let found = cases_of(vec![faults::find(name)?])?;
        if found != expected {
            lines.push(format!("{name} is detected by {}, expected {}", found.join(", "), expected.join(", ")));
        }
    }
    let others = || faults::all().filter(|fault| SHOWN_BY_CHOICES.iter().all(|(name, _)| *name != fault.name()));
    let found = cases_of(others().collect())?;
    if !found.is_empty() {
        for fault in others() {
            let found = cases_of(vec![fault])?;
            if !found.is_empty() {
                lines.push(format!("{} is detected by {}", fault.name(), found.join(", ")));
            }
        }
        lines.push(format!("all others together are detected by {}", found.join(", ")));
    }
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

/// The cases that fail, warn or cannot be judged with these faults.
fn detecting_cases(faults: Vec<EvaluationFault>) -> Result<Vec<String>, String> {
    let faults = Arc::new(faults);
    let server = InProcessServer::new(move |pipe| {
        let faults = Arc::clone(&faults);
        async move {
            let (reader, writer) = tokio::io::split(pipe);
            serve_intercepted(reader, writer, &FaultSet::none(), server::interceptor(&faults)).await
        }
    });
    let found =
        judge_launched(Launcher::InProcess(server), &[Revision::V2025_11_25, Revision::V2026_07_28], cases().to_vec());
    if found.results.is_empty() {
        return Err("nothing was judged".to_owned());
    }
    let is_complaint = |verdict| matches!(verdict, Verdict::Fail | Verdict::Warn | Verdict::Error);
    Ok(found.results.into_iter().filter(|result| is_complaint(result.verdict)).map(|result| result.case).collect())
}

/// The result of fuzzing a server.
pub(crate) struct Fuzzed {
    /// The results of all cases.
    pub(crate) results: Vec<CaseResult>,
    /// The oracles with findings, each with its finding in JSON.
    findings: Vec<(String, Value)>,
    duration: Duration,
}

/// Fuzzes the built-in server with these settings.
pub(crate) fn fuzz_in(
    settings: &[&str],
    fault: Option<EvaluationFault>,
    seed: u64,
    folder: &Path,
) -> Result<Fuzzed, String> {
    let began = Instant::now();
    let name = fault.map_or("none", EvaluationFault::name);
    let report = folder.join(format!("{name}-{seed}.json"));
    let mut command = program_command();
    command.args(["--select", "fuzz/*", "--regressions", "none"]).args(settings);
    command.args(["--seed", &seed.to_string(), "--report", &format!("json={}", report.display())]);
    if let Ok(more) = std::env::var("SETTINGS") {
        command.args(more.split_whitespace());
    }
    if let Some(fault) = fault {
        // Each tool has a budget of its own, so other tools would only take time; some faults affect `echo`.
        let family = fault.tool().split('_').next().unwrap_or_default();
        command.args(["--tool", &format!("{family}*"), "--tool", "echo"]);
    }
    command.arg("--").args(server::command()?);
    if let Some(fault) = fault {
        command.args(["--fault", fault.name()]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&report).map_err(|error| format!("{name}: {error}"))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| {
        format!(
            "{name}: {error}\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    let typed_report: Report = serde_json::from_value(report.clone()).map_err(|error| format!("{name}: {error}"))?;
    let mut findings = Vec::new();
    for target in &typed_report.targets {
        let tools = target.summary.fuzz.iter().flat_map(|fuzz| &fuzz.tools);
        findings.extend(tools.filter(|tool| tool.untested.is_some()).map(|_| (UNTESTED.to_owned(), Value::Null)));
    }
    for target in report["targets"].as_array().into_iter().flatten() {
        for result in target["results"].as_array().into_iter().flatten() {
            for found in result["findings"].as_array().into_iter().flatten() {
                findings.push((result["case"].as_str().unwrap_or_default().to_owned(), found.clone()));
            }
        }
    }
    Ok(Fuzzed { results: typed_report.results().cloned().collect(), findings, duration: began.elapsed() })
}

/// How well the fuzzer found a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Minimal,
    /// Found, but with this counterexample, which is not minimal.
    Large(String),
    /// Not found; the other cases with findings.
    Missed(String),
}

fn outcome(fault: EvaluationFault, fuzzed: &Fuzzed) -> Outcome {
    let matching: Vec<&Value> = fuzzed
        .findings
        .iter()
        .filter(|(case, _)| fault.oracles().contains(&case.as_str()))
        .map(|(_, finding)| &finding["counterexample"])
        .filter(|example| {
            // A fault of one tool may show in another tool, after a call of the first.
            let preceding = example["preceding"].as_array().into_iter().flatten();
            example.is_null()
                || example["tool"] == fault.tool()
                || preceding.into_iter().any(|call| call["name"] == fault.tool())
        })
        .collect();
    if matching.is_empty() {
        let others: Vec<&str> = fuzzed.findings.iter().map(|(case, _)| case.as_str()).collect();
        return Outcome::Missed(others.join(" "));
    }
    let is_minimal = |example: &&&Value| {
        let preceding = example["preceding"].as_array().cloned().unwrap_or_default();
        fault.is_minimal(&preceding, &example["arguments"])
    };
    if matching.iter().find(is_minimal).is_some() {
        return Outcome::Minimal;
    }
    let shown = format!("{} after {}", matching[0]["arguments"], matching[0]["preceding"]);
    Outcome::Large(shown.chars().take(240).collect())
}

/// The number of servers that are fuzzed concurrently; most of the time is spent on waiting for hangs.
const WORKERS: usize = 4;

/// The default settings.
const USUAL_FUZZING: [&str; 2] = ["--revision", "2025-11-25"];

/// The same with so much time that it ends with the last call, not with the time.
const UNHURRIED_FUZZING: [&str; 4] = ["--revision", "2025-11-25", "--fuzz-time", "10m"];

/// The outcome for each fault with each seed.
fn outcomes(
    settings: &[&str],
    faults: &[EvaluationFault],
    seeds: &[u64],
) -> Result<BTreeMap<(EvaluationFault, u64), Outcome>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let work: Vec<(EvaluationFault, u64)> =
        seeds.iter().flat_map(|seed| faults.iter().map(move |fault| (*fault, *seed))).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let problem = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((fault, seed)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match fuzz_in(settings, Some(*fault), *seed, folder.path()) {
                        Ok(fuzzed) => {
                            let outcome = outcome(*fault, &fuzzed);
                            print_line(&format!(
                                "{seed:>4} {:<32} {:>5.1}s {outcome:?}",
                                fault.name(),
                                fuzzed.duration.as_secs_f64()
                            ));
                            done.lock().expect("no thread panics").insert((*fault, *seed), outcome);
                        }
                        Err(error) => *problem.lock().expect("no thread panics") = Some(error),
                    }
                }
            });
        }
    });
    match problem.into_inner().expect("no thread panics") {
        Some(error) => Err(error),
        None => Ok(done.into_inner().expect("no thread panics")),
    }
}

#[expect(clippy::print_stderr, reason = "an evaluation of minutes is watched")]
fn print_line(line: &str) {
    eprintln!("{line}");
}

fn the_fuzzer_finds_a_sample() -> Result<(), String> {
    let faults: Vec<EvaluationFault> = faults::all().filter(|fault| SAMPLE.contains(&fault.name())).collect();
    let outcomes = outcomes(&UNHURRIED_FUZZING, &faults, &[1])?;
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|(_, outcome)| **outcome != Outcome::Minimal)
        .map(|((fault, _), outcome)| format!("{}: {outcome:?}", fault.name()))
        .collect();
    if outcomes.len() != SAMPLE.len() {
        return Err(format!("{} of {} were fuzzed", outcomes.len(), SAMPLE.len()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The minimum share of faults found per seed, and of minimal counterexamples among them, in percent.
const MIN_FOUND_PERCENT: usize = 90;

fn evaluation() -> Result<(), String> {
    let seeds: Vec<u64> = match std::env::var("SEEDS") {
        Ok(seeds) => seeds.split(',').filter_map(|seed| seed.trim().parse().ok()).collect(),
        Err(_) => (1..=10).collect(),
    };
    let filters = std::env::var("FAULTS").unwrap_or_default();
    let chosen = |fault: &EvaluationFault| filters.split(',').any(|filter| fault.name().contains(filter));
    let faults: Vec<EvaluationFault> = faults::all().filter(chosen).collect();
    let mut wrong = Vec::new();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for seed in &seeds {
        let fuzzed = fuzz_in(&USUAL_FUZZING, None, *seed, folder.path())?;
        for (case, finding) in fuzzed.findings {
            wrong.push(format!(
                "seed {seed}: {case} on the conforming server: {} {}",
                finding["message"], finding["counterexample"]["arguments"]
            ));
        }
    }
    let outcomes = outcomes(&USUAL_FUZZING, &faults, &seeds)?;
    let heads: Vec<String> = seeds.iter().map(|seed| format!("{seed:>3}")).collect();
    print_line(&format!("{:<32} {}", "", heads.concat()));
    for fault in &faults {
        let marks: String = seeds
            .iter()
            .map(|seed| match outcomes.get(&(*fault, *seed)) {
                Some(Outcome::Minimal) => "  +",
                Some(Outcome::Large(_)) => "  o",
                Some(Outcome::Missed(_)) | None => "  -",
            })
            .collect();
        print_line(&format!("{:<32} {marks}", fault.name()));
    }
    for seed in &seeds {
        let of_seed = || outcomes.iter().filter(|((_, of), _)| of == seed).map(|(_, outcome)| outcome);
        let found = of_seed().filter(|outcome| !matches!(outcome, Outcome::Missed(_))).count();
        let minimal = of_seed().filter(|outcome| **outcome == Outcome::Minimal).count();
        print_line(&format!("seed {seed}: {found} of {} found, {minimal} of those minimal", faults.len()));
        if found * 100 < faults.len() * MIN_FOUND_PERCENT || minimal * 100 < found * MIN_FOUND_PERCENT {
            wrong.push(format!("seed {seed}: {found} of {} found, {minimal} of those minimal", faults.len()));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
