//! Handwritten validators with one mistake each: how many of the mistakes the fuzzer finds.
//!
//! Two servers have them, in `tests/servers`: `validators`, whose tools show one kind of constraint each, and `tool-checks`,
//! whose tools are as published ones are, and refuse arguments in words of their own. The mistakes are in their
//! `faults.tsv`, each after a bug report of a validator or a server. They are independent of how the fuzzer generates
//! arguments. `cargo test --test suite -- --ignored validators/evaluation` fuzzes each server with each of its mistakes for
//! ten seeds, and without any, and prints which were found. `SEEDS=1,2,3` selects other seeds, `FAULTS=unique,items` the
//! mistakes whose names contain one of these strings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Trial, limits, program_command, trial};
use mcp_conformance::fuzz::{Dialect, ToolSchema};
use serde_json::Value;

/// The folders of the servers.
const SERVERS: [&str; 2] = ["validators", "tool-checks"];
/// Mistakes of each class, for a test that takes seconds.
const SAMPLE: [&str; 18] = [
    "minimum-exclusive",
    "max-length-ignored",
    "boolean-to-number",
    "pattern-ignored",
    "const-ignored",
    "required-first-only",
    "additional-ignored",
    "items-first-only",
    "any-of-first-only",
    "nested-objects-unchecked",
    "property-names-ignored",
    "if-ignored",
    // Refused in words that no validation library has.
    "issues-page-zero",
    "issues-per-page-exclusive",
    "query-readonly-false",
    "geo-ring-closed",
    "pay-method-wallet",
    "tree-depth-limit",
];
/// The cases of which one has to report a mistake.
const CASES: [&str; 2] = ["fuzz/invalid-accepted", "fuzz/valid-rejected"];
/// The minimum share of the mistakes that are found with each seed, in percent.
const MIN_FOUND_PERCENT: usize = 97;
/// How many servers are fuzzed at the same time.
const WORKERS: usize = 2;

pub(crate) fn trials() -> Vec<Trial> {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_missing = !python.is_ok_and(|status| status.success());
    vec![
        trial("validators/every-mistake-is-shown-by-its-arguments", every_mistake_is_shown)
            .with_ignored_flag(is_missing),
        trial("validators/the-fuzzer-finds-a-sample", the_fuzzer_finds_a_sample).with_ignored_flag(is_missing),
        trial("validators/evaluation", evaluation).with_ignored_flag(true),
    ]
}

fn folder(server: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers").join(server)
}

/// What a server prints with an option, without the line end.
fn printed(server: &str, option: &str) -> Result<(String, bool), String> {
    let output = Command::new("python3").arg(folder(server).join("server.py")).arg(option).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = [output.stdout, output.stderr].concat();
    Ok((String::from_utf8_lossy(&text).trim_end().to_owned(), output.status.success()))
}

/// A mistake of a validator.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mistake {
    /// The folder of the server.
    server: &'static str,
    name: String,
    /// The tool whose schema shows it.
    tool: String,
    class: String,
    /// Whether the server accepts invalid arguments, rather than reject valid ones.
    accepts: bool,
    /// Arguments that show it, as JSON text.
    arguments: String,
    /// Where it was seen.
    source: String,
}

/// The mistakes of all servers, except those by which a server accepts what is not of a `format`: it may ignore formats.
fn mistakes() -> Result<Vec<Mistake>, String> {
    let mut all = Vec::new();
    for server in SERVERS {
        all.extend(mistakes_of(server)?);
    }
    all.retain(|mistake| !(mistake.accepts && mistake.class == "formats"));
    Ok(all)
}

fn mistakes_of(server: &'static str) -> Result<Vec<Mistake>, String> {
    let path = folder(server).join("faults.tsv");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [name, tool, class, effect, arguments, source, _] = columns[..] else {
                return Err(format!("{line}: {} columns, not 7", columns.len()));
            };
            let accepts = match effect {
                "accepts" => true,
                "rejects" => false,
                other => return Err(format!("{name}: the effect {other} is unknown")),
            };
            let [name, tool, class, arguments, source] = [name, tool, class, arguments, source].map(str::to_owned);
            Ok(Mistake { server, name, tool, class, accepts, arguments, source })
        })
        .collect()
}

/// The schemas of the server and the library agree on the arguments of each mistake, and the server with the mistake
/// judges them wrongly.
fn every_mistake_is_shown() -> Result<(), String> {
    let mut tools: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for server in SERVERS {
        let (text, _) = printed(server, "--tools")?;
        tools.insert(server, serde_json::from_str(&text).map_err(|error| format!("{server}: {error}: {text}"))?);
        let (problems, is_success) = printed(server, "--check")?;
        wrong.extend(problems.lines().map(|problem| format!("{server}: {problem}")));
        if !is_success {
            wrong.push(format!("{server}: --check fails"));
        }
    }
    let mistakes = mistakes()?;
    for mistake in &mistakes {
        let tool = tools[mistake.server].iter().find(|tool| tool["name"] == mistake.tool.as_str());
        let schema = tool.ok_or_else(|| format!("{}: there is no tool {}", mistake.name, mistake.tool))?;
        let schema = ToolSchema::compile(&schema["inputSchema"], Dialect::Draft202012)
            .map_err(|error| format!("{}: {error}", mistake.tool))?;
        let arguments: Value = serde_json::from_str(&mistake.arguments).map_err(|error| error.to_string())?;
        if schema.is_valid(&arguments) == mistake.accepts {
            wrong.push(format!("{}: {} has the other validity", mistake.name, mistake.arguments));
        }
        if !mistake.source.contains(['#', ' ']) {
            wrong.push(format!("{}: the source {} names no report", mistake.name, mistake.source));
        }
    }
    let names: BTreeSet<&str> = mistakes.iter().map(|mistake| mistake.name.as_str()).collect();
    let classes: BTreeSet<&str> = mistakes.iter().map(|mistake| mistake.class.as_str()).collect();
    if names.len() < 100 || names.len() < mistakes.len() || classes.len() < 12 {
        wrong.push(format!("{} mistakes of {} names and {} classes", mistakes.len(), names.len(), classes.len()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// A run of the fuzzer: its findings, as the case and the arguments, and how long it took.
struct Run {
    findings: Vec<String>,
    duration: Duration,
}

/// Fuzzes a server at default settings: the tool that shows the mistake, or all tools of the server without any.
fn fuzz(server: &str, mistake: Option<&Mistake>, seed: u64, reports: &Path) -> Result<Run, String> {
    let began = Instant::now();
    let name = mistake.map_or("none", |mistake| &mistake.name);
    let path = reports.join(format!("{server}-{name}-{seed}.json"));
    let mut command = program_command();
    command.args(["--select", "fuzz/*", "--regressions", "none", "--revision", "2025-11-25"]);
    command.args(["--seed", &seed.to_string(), "--report", &format!("json={}", path.display())]);
    if let Some(mistake) = mistake {
        command.args(["--tool", &mistake.tool]);
    }
    command.args(["--", "python3"]).arg(folder(server).join("server.py"));
    if let Some(mistake) = mistake {
        command.args(["--fault", &mistake.name]);
    }
    let output = command.current_dir(reports).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{name}: {error}\n{}", String::from_utf8_lossy(&output.stderr)))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut findings = Vec::new();
    for result in array(&report["targets"]).iter().flat_map(|target| array(&target["results"])) {
        let case = result["case"].as_str().unwrap_or_default();
        for finding in array(&result["findings"]) {
            if mistake.is_none() || CASES.contains(&case) {
                findings.push(format!("{case} {}", finding["counterexample"]["arguments"]));
            }
        }
    }
    Ok(Run { findings, duration: began.elapsed() })
}

/// The runs for each mistake with each seed, by the index of the mistake and the seed.
fn runs(mistakes: &[Mistake], seeds: &[u64]) -> Result<BTreeMap<(usize, u64), Run>, String> {
    let reports = tempfile::tempdir().map_err(|error| error.to_string())?;
    let work: Vec<(usize, u64)> =
        seeds.iter().flat_map(|seed| (0..mistakes.len()).map(move |at| (at, *seed))).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Ok(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(&(at, seed)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = fuzz(mistakes[at].server, Some(&mistakes[at]), seed, reports.path());
                    let mut done = done.lock().expect("no thread panics");
                    match (run, done.as_mut()) {
                        (Ok(run), Ok(runs)) => {
                            runs.insert((at, seed), run);
                        }
                        (Err(error), Ok(_)) => *done = Err(error),
                        (_, Err(_)) => return,
                    }
                }
            });
        }
    });
    done.into_inner().expect("no thread panics")
}

/// The findings on the servers without a mistake.
fn false_alarms(seeds: &[u64]) -> Result<Vec<String>, String> {
    let reports = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    for (server, seed) in SERVERS.iter().flat_map(|server| seeds.iter().map(move |seed| (server, seed))) {
        let run = fuzz(server, None, *seed, reports.path())?;
        wrong.extend(run.findings.iter().map(|found| format!("{server}, seed {seed}, without a mistake: {found}")));
    }
    Ok(wrong)
}

fn the_fuzzer_finds_a_sample() -> Result<(), String> {
    let mut sample = mistakes()?;
    sample.retain(|mistake| SAMPLE.contains(&mistake.name.as_str()));
    let runs = runs(&sample, &[1])?;
    let mut wrong = false_alarms(&[1])?;
    let missed = runs.iter().filter(|(_, run)| run.findings.is_empty());
    wrong.extend(missed.map(|((at, _), _)| format!("{} is not found", sample[*at].name)));
    if runs.len() != SAMPLE.len() {
        wrong.push(format!("{} of {} were fuzzed", runs.len(), SAMPLE.len()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[expect(clippy::print_stderr, reason = "an evaluation of minutes is watched")]
fn print_line(line: &str) {
    eprintln!("{line}");
}

fn evaluation() -> Result<(), String> {
    let seeds: Vec<u64> = match std::env::var("SEEDS") {
        Ok(seeds) => seeds.split(',').filter_map(|seed| seed.trim().parse().ok()).collect(),
        Err(_) => (1..=10).collect(),
    };
    let filters = std::env::var("FAULTS").unwrap_or_default();
    let mut mistakes = mistakes()?;
    mistakes.retain(|mistake| filters.split(',').any(|filter| mistake.name.contains(filter)));
    let mut wrong = false_alarms(&seeds)?;
    let runs = runs(&mistakes, &seeds)?;
    for (at, mistake) in mistakes.iter().enumerate() {
        let is_missed = |seed: &&u64| runs.get(&(at, **seed)).is_none_or(|run| run.findings.is_empty());
        let missed: Vec<String> = seeds.iter().filter(is_missed).map(u64::to_string).collect();
        if !missed.is_empty() {
            print_line(&format!("{:<24} {:<36} not with seed {}", mistake.class, mistake.name, missed.join(", ")));
        }
    }
    for seed in &seeds {
        let of_seed = || runs.iter().filter(|((_, of), _)| of == seed).map(|(_, run)| run);
        let found = of_seed().filter(|run| !run.findings.is_empty()).count();
        let mut durations: Vec<Duration> = of_seed().map(|run| run.duration).collect();
        durations.sort();
        let median = durations.get(durations.len() / 2).copied().unwrap_or_default();
        let line = format!("seed {seed}: {found} of {} found, {:.1} s each", mistakes.len(), median.as_secs_f64());
        print_line(&line);
        if found * 100 < mistakes.len() * MIN_FOUND_PERCENT || median > limits::here(limits::VALIDATOR) {
            wrong.push(line);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
