//! Evaluation faults: no case detects them, and the fuzzer does.
//!
//! `cargo test --test suite -- --ignored hidden/evaluation` fuzzes the built-in server with each of them for ten seeds
//! and prints which were found and whether the counterexamples are minimal, which takes long. `SEEDS=1,2,3` selects
//! other seeds, `FAULTS=search,echo` the faults whose names contain one of these strings.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::reference::{EvaluationFault, Fault, FaultSet};
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;
use serde_json::Value;

use crate::builtin::{cases, judge};
use crate::trial;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");

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
        trial("hidden/no-case-detects-an-evaluation-fault", no_case_detects_an_evaluation_fault),
        trial("hidden/the-fuzzer-finds-a-sample", the_fuzzer_finds_a_sample),
        trial("hidden/evaluation", evaluation).with_ignored_flag(true),
    ]
}

/// Tries all faults at once first: if no case detects any of them together, none detects one alone.
fn no_case_detects_an_evaluation_fault() -> Result<(), String> {
    let faults = || Fault::all().iter().copied().filter(|fault| fault.is_evaluation_fault());
    let cases_found = detecting_cases(faults().collect())?;
    if cases_found.is_empty() {
        return Ok(());
    }
    let mut lines = Vec::new();
    for fault in faults() {
        let cases_found = detecting_cases(FaultSet::from(fault))?;
        if !cases_found.is_empty() {
            lines.push(format!("{fault} is detected by {}", cases_found.join(", ")));
        }
    }
    lines.push(format!("all together are detected by {}", cases_found.join(", ")));
    Err(lines.join("\n"))
}

/// The cases that fail, warn or cannot be judged with these faults.
fn detecting_cases(faults: FaultSet) -> Result<Vec<String>, String> {
    let found = judge(faults, &[Revision::V2025_11_25, Revision::V2026_07_28], cases().to_vec());
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

/// Fuzzes the built-in server with default settings.
fn fuzz(fault: Option<EvaluationFault>, seed: u64, folder: &Path) -> Result<Fuzzed, String> {
    fuzz_in(&["--revision", "2025-11-25"], fault, seed, folder)
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
    let mut command = Command::new(PROGRAM);
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
    command.args(["--", PROGRAM, "serve"]);
    if let Some(fault) = fault {
        command.args(["--fault", fault.name()]);
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
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

/// The outcome for each fault with each seed.
fn outcomes(faults: &[EvaluationFault], seeds: &[u64]) -> Result<BTreeMap<(EvaluationFault, u64), Outcome>, String> {
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
                    match fuzz(Some(*fault), *seed, folder.path()) {
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
    let faults: Vec<EvaluationFault> = EvaluationFault::all().filter(|fault| SAMPLE.contains(&fault.name())).collect();
    let outcomes = outcomes(&faults, &[1])?;
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
    let faults: Vec<EvaluationFault> = EvaluationFault::all().filter(chosen).collect();
    let mut wrong = Vec::new();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for seed in &seeds {
        let fuzzed = fuzz(None, *seed, folder.path())?;
        for (case, finding) in fuzzed.findings {
            wrong.push(format!(
                "seed {seed}: {case} on the conforming server: {} {}",
                finding["message"], finding["counterexample"]["arguments"]
            ));
        }
    }
    let outcomes = outcomes(&faults, &seeds)?;
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
