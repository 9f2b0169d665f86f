//! Fuzzing, end to end: the real program on the built-in server, and on that server behind an input filter that makes
//! it fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{PROGRAM, Trial, limits, program_command, trial};
use mcp_conformance::report::Report;
use mcp_conformance::verdict::{CallKind, Counterexample, FailingValues, Finding, Verdict};
use mcp_conformance::{FuzzSettings, Judge, Revisions, Server, Settings};

/// The server exits when `echo` is called with a text that contains a capital letter.
const CRASH_FILTER: &str = r#"sed -u -e '/"name":"echo".*"text":"[^"]*[A-Z]/Q7' | exec "$0" serve"#;
/// The server exits at every call.
const ALWAYS_CRASH_FILTER: &str = r#"sed -u -e '/tools.call/Q7' | exec "$0" serve"#;
/// Calls of `echo` whose text contains a capital letter do not reach the server.
const HANG_FILTER: &str = r#"sed -u -e '/"name":"echo".*"text":"[^"]*[A-Z]/d' | exec "$0" serve"#;

/// From the two hundredth call of a process on, each reaches the server three seconds late.
const LATE_FILTER: &str = r#"python3 -u -c "
import sys, time
calls = 0
for line in sys.stdin.buffer:
    calls += b'tools/call' in line
    if calls > 200: time.sleep(3)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
" | exec "$0" serve"#;

/// No call from the hundredth request of a process on reaches the server.
const DROP_CALLS_FILTER: &str = r#"sed -u -e '/"id":[0-9]\{3,\},"method":"tools.call"/d' | exec "$0" serve"#;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("fuzzing/the-same-seed-makes-the-same-calls", the_same_seed_makes_the_same_calls),
        // It depends on the load of the machine.
        trial("fuzzing/calls-that-become-late-are-found-soon", calls_that_become_late_are_found_soon)
            .with_ignored_flag(true),
        trial(
            "fuzzing/the-reference-server-has-no-finding-with-any-seed",
            the_reference_server_has_no_finding_with_any_seed,
        ),
        trial("fuzzing/a-crash-is-found-shrunk-saved-and-replayed", a_crash_is_found_shrunk_saved_and_replayed),
        trial("fuzzing/the-same-calls-are-made-on-several-processes", the_same_calls_are_made_on_several_processes),
        trial("fuzzing/fuzzing-does-not-affect-other-cases", fuzzing_does_not_affect_other_cases),
        trial(
            "fuzzing/failures-that-several-tools-share-are-retried-on-one-process",
            failures_that_several_tools_share_are_retried_on_one_process,
        ),
        trial("fuzzing/input-that-breaks-handlers-is-tried", input_that_breaks_handlers_is_tried),
        trial("fuzzing/a-finding-says-for-which-arguments-it-fails", a_finding_says_for_which_arguments_it_fails),
        trial("fuzzing/a-hang-is-found", a_hang_is_found),
        trial("fuzzing/a-growing-resource-is-saved-and-replayed", a_growing_resource_is_saved_and_replayed),
        trial("fuzzing/a-server-that-answers-no-call-is-abandoned", a_server_that_answers_no_call_is_abandoned),
        trial("fuzzing/the-conforming-server-has-no-finding", the_conforming_server_has_no_finding),
        trial("fuzzing/the-conforming-variants-have-no-finding", the_conforming_variants_have_no_finding),
        trial("fuzzing/many-calls-at-once-are-found-and-replayed", many_calls_at_once_are_found_and_replayed),
        trial(
            "fuzzing/a-server-that-always-crashes-does-not-stop-the-run",
            a_server_that_always_crashes_does_not_stop_the_run,
        ),
    ]
}

/// The result of a run of the program.
struct Run {
    code: Option<i32>,
    report: Report,
    duration: Duration,
}

impl Run {
    /// Fails if the run took longer.
    fn expect_within(&self, limit: Duration) -> Result<(), String> {
        let limit = limits::here(limit);
        if self.duration > limit { Err(format!("the run took {:?}, of {limit:?}", self.duration)) } else { Ok(()) }
    }

    fn start(folder: &Path, options: &[&str], server: &[&str]) -> Result<Self, String> {
        let path = folder.join("report.json");
        let began = Instant::now();
        let status = program_command()
            .current_dir(folder)
            .args(options)
            .args(["--quiet", "--report"])
            .arg(format!("json={}", path.display()))
            .arg("--")
            .args(server)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| error.to_string())?;
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(Self { code: status.code(), report, duration: began.elapsed() })
    }

    fn findings(&self, case: &str) -> Vec<&Finding> {
        self.report.results().filter(|result| result.case == case).flat_map(|result| &result.findings).collect()
    }
}

/// A server behind a filter of its input.
fn filtered(filter: &str) -> [&str; 4] {
    ["sh", "-c", filter, PROGRAM]
}

fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

const FUZZ: [&str; 4] = ["--select", "fuzz/*", "--revision", "2025-11-25"];

/// Latency that sets in late ends in a finding soon, not in a run that waits for each call. Nothing says that a call is
/// never answered.
fn calls_that_become_late_are_found_soon() -> Result<(), String> {
    let limit = limits::here(limits::LATE_CALLS);
    let folder = folder()?;
    for tools in [&["--tool", "echo"][..], &["--tool", "echo", "--tool", "add", "--tool", "weather"]] {
        let options = [&FUZZ[..], &["--regressions", "none"], tools].concat();
        let began = Instant::now();
        let run = Run::start(folder.path(), &options, &filtered(LATE_FILTER))?;
        let took = began.elapsed();
        let (late, unanswered) = (run.findings("fuzz/latency").len(), run.findings("fuzz/hang").len());
        if late == 0 || unanswered > 0 || took > limit {
            return Err(format!(
                "{tools:?}: {late} late and {unanswered} unanswered calls reported in {took:.1?}, expected one late call in {limit:?}"
            ));
        }
    }
    Ok(())
}

/// The built-in server in this process, with a few seeds: two with which names of its own arguments looked like leaks
/// once. `SEEDS=200` tries that many instead.
fn the_reference_server_has_no_finding_with_any_seed() -> Result<(), String> {
    let seeds: Vec<u64> = match std::env::var("SEEDS").ok().and_then(|count| count.parse().ok()) {
        Some(count) => (0..count).collect(),
        None => vec![15, 143],
    };
    for seed in seeds {
        let settings = Settings {
            select: vec!["fuzz/*".to_owned()],
            // What depends on time is left to other trials.
            skip: vec!["fuzz/latency".to_owned(), "fuzz/memory".to_owned()],
            revisions: Revisions::Latest,
            seed,
            fuzz: Some(FuzzSettings { calls: Some(60), regressions: None, ..FuzzSettings::default() }),
            ..Settings::default()
        };
        let report =
            Judge::new(Server::reference(None)).settings(settings).run_blocking().map_err(|error| error.to_string())?;
        let calls: u64 = report.targets.iter().filter_map(|target| Some(target.summary.fuzz.as_ref()?.calls)).sum();
        let findings: Vec<String> = report
            .results()
            .flat_map(|result| {
                result.findings.iter().map(move |finding| format!("{}: {}", result.case, finding.actual))
            })
            .collect();
        if calls < 500 || !findings.is_empty() {
            return Err(format!("seed {seed}: {calls} calls, findings: {findings:?}"));
        }
    }
    Ok(())
}

fn the_same_seed_makes_the_same_calls() -> Result<(), String> {
    let mut calls = Vec::new();
    for _ in 0..2 {
        let folder = folder()?;
        let tee = r#"tee "$1/$$.lines" | exec "$0" serve"#;
        let path = folder.path().to_string_lossy().into_owned();
        let options = ["--seed", "5", "--fuzz", "120", "--fuzz-time", "10m", "--tool", "add", "--tool", "weather"];
        let options = [&FUZZ[..], &options[..], &["--regressions", "none"]].concat();
        Run::start(folder.path(), &options, &["sh", "-c", tee, PROGRAM, &path])?;
        // Repeated calls, which depend on the load of the machine, do not count.
        calls.push(calls_in(folder.path(), &["add", "weather"])?.0);
    }
    if calls[0].len() < 150 {
        return Err(format!("only {} different calls were made", calls[0].len()));
    }
    let differing: Vec<&String> = calls[0].symmetric_difference(&calls[1]).take(3).collect();
    if differing.is_empty() { Ok(()) } else { Err(format!("only one of the two made {differing:#?}")) }
}

/// A tool that is not annotated read-only is fuzzed after the cases of every revision: the processes of a server may
/// share a file, and what the fuzzer writes to it must not affect the cases.
fn fuzzing_does_not_affect_other_cases() -> Result<(), String> {
    const CALLS: usize = 40;
    // Older revisions are slow.
    const LOGGING_FILTER: &str = r#"while IFS= read -r line; do
        case $line in *'"protocolVersion":"2025-06-18"'*) old=old ;; esac
        printf '%s %s\n' "$old" "$line" >>"$1"
        if [ -n "$old" ]; then sleep 0.02; fi
        printf '%s\n' "$line"
    done | "$0" serve | sed -u -e 's/"readOnlyHint":true/"readOnlyHint":false,"destructiveHint":false/'"#;
    let folder = folder()?;
    let path = folder.path().join("lines");
    let (calls, path) = (CALLS.to_string(), path.to_string_lossy());
    let options = ["--select", "fuzz/internal-error", "--select", "lifecycle/*", "--select", "tools/*"];
    let options = [&options[..], &["--tool", "echo", "--fuzz", &calls, "--regressions", "none"]].concat();
    // A shell reads long lines slowly.
    let options = [&options[..], &["--fuzz-time", "60s"]].concat();
    Run::start(folder.path(), &options, &["sh", "-c", LOGGING_FILTER, PROGRAM, &path])?;
    let lines = fs::read_to_string(&*path).map_err(|error| error.to_string())?;
    let lines: Vec<&str> = lines.lines().collect();
    let Some(last) = lines.iter().rposition(|line| line.starts_with("old")) else {
        return Err("no older revision was judged".to_owned());
    };
    let after = lines[last..].iter().filter(|line| line.contains(r#""name":"echo""#)).count();
    if after >= CALLS {
        Ok(())
    } else {
        Err(format!("{after} calls follow the cases of the older revision, expected {CALLS} or more"))
    }
}

fn a_crash_is_found_shrunk_saved_and_replayed() -> Result<(), String> {
    let folder = folder()?;
    // Each crash costs a start of the server, so that the usual time does not suffice on a busy machine.
    let options = [&FUZZ[..], &["--tool", "echo", "--fuzz-time", "10m"]].concat();
    let run = Run::start(folder.path(), &options, &filtered(CRASH_FILTER))?;
    if run.code != Some(1) {
        return Err(format!("exit code {:?}", run.code));
    }
    let findings = run.findings("fuzz/crash");
    let [finding] = findings.as_slice() else { return Err(format!("{} findings", findings.len())) };
    let example = finding.counterexample.as_deref().ok_or("the finding has no counterexample")?;
    let text = example.arguments["text"].as_str().unwrap_or_default();
    if text.len() != 1 || !text.chars().all(|c| c.is_ascii_uppercase()) || !example.preceding.is_empty() {
        return Err(format!("the counterexample is {} after {:?}", example.arguments, example.preceding));
    }
    if finding.confirmation.is_none_or(mcp_conformance::verdict::Confirmation::is_flaky) {
        return Err(format!("the finding is not confirmed: {:?}", finding.confirmation));
    }
    // A crash that comes easily does not hide the rest of the tool.
    let fuzz = run.report.targets.iter().find_map(|target| target.summary.fuzz.as_ref());
    let tool = fuzz.and_then(|fuzz| fuzz.tools.iter().find(|tool| tool.tool == "echo")).ok_or("echo was not fuzzed")?;
    let made: u64 = tool.calls.iter().map(|calls| calls.count).sum();
    if made * 2 < tool.planned || !tool.note.as_deref().is_some_and(|note| note.contains("omitted")) {
        return Err(format!("{made} of {} planned calls were made: {:?}", tool.planned, tool.note));
    }
    let file = example.file.as_deref().ok_or("the counterexample was not saved")?;
    if !finding.reproduce.contains("replay") || !finding.reproduce.contains(file) {
        return Err(format!("the command does not replay the counterexample: {}", finding.reproduce));
    }
    let replay = |server: &[&str]| {
        let status = program_command()
            .current_dir(folder.path())
            .args(["replay", file, "--"])
            .args(server)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        status.map(|status| status.code()).map_err(|error| error.to_string())
    };
    match (replay(&filtered(CRASH_FILTER))?, replay(&[PROGRAM, "serve"])?) {
        (Some(1), Some(0)) => {}
        codes => return Err(format!("the replays exit with {codes:?}")),
    }
    let again = Run::start(folder.path(), &[&options[..], &["--fuzz", "1"]].concat(), &filtered(CRASH_FILTER))?;
    if again.findings("fuzz/crash").len() != 1 {
        return Err("the next run does not repeat the saved call first".to_owned());
    }
    let saved = Path::new(file);
    if saved.parent() != Some(Path::new(".mcp-conformance/mcp-conformance-mock")) {
        return Err(format!("the call is saved in {file}, expected a folder of the server"));
    }
    if fs::read_to_string(folder.path().join(".mcp-conformance/.gitignore")).ok().as_deref() != Some("*\n") {
        return Err("the folder of the saved calls is not ignored".to_owned());
    }
    let calls_of_the_last_run = |options: &[&str], server: &[&str]| {
        let run =
            Run::start(folder.path(), &[&FUZZ[..], &["--tool", "echo", "--fuzz", "1"], options].concat(), server)?;
        let fuzz = run.report.targets.iter().find_map(|target| target.summary.fuzz.as_ref());
        let saved = fuzz.and_then(|fuzz| fuzz.saved_calls.clone()).ok_or("the report says nothing of saved calls")?;
        Ok::<_, String>((run.code, saved))
    };
    let (_, kept) = calls_of_the_last_run(&[], &[PROGRAM, "serve"])?;
    let is_kept = folder.path().join(file).exists();
    let (_, pruned) = calls_of_the_last_run(&["--prune"], &[PROGRAM, "serve"])?;
    if (kept.fixed, kept.removed, is_kept, pruned.removed) != (1, 0, true, 1) || folder.path().join(file).exists() {
        return Err(format!("a call that no longer fails: {kept:?}, with --prune {pruned:?}"));
    }
    // A folder that cannot be written changes no verdict.
    fs::write(folder.path().join("no-folder"), "").map_err(|error| error.to_string())?;
    let unwritable = ["--fuzz", "200", "--regressions", "no-folder"];
    match calls_of_the_last_run(&unwritable, &filtered(CRASH_FILTER))? {
        (Some(1), saved) if saved.saved == 0 && saved.problems.iter().any(|problem| problem.contains("no-folder")) => {
            Ok(())
        }
        (code, saved) => Err(format!("an unwritable folder: exit code {code:?}, {saved:?}")),
    }
}

/// A failure that several tools share is saved once. Of saved failures that several tools share, only the first is retried
/// on a process of its own, and none is reported for a fixed server.
fn failures_that_several_tools_share_are_retried_on_one_process() -> Result<(), String> {
    const INTERNAL_ERROR_FILTER: &str =
        r#""$0" serve | sed -u -e 's/-32602,"message":"arguments must be an object"/-32603,"message":"it broke"/'"#;
    let folder = folder()?;
    let tools = ["--tool", "echo", "--tool", "add", "--tool", "weather", "--fuzz", "60"];
    let options = [&["--select", "fuzz/internal-error", "--revision", "2025-11-25"], &tools[..]].concat();
    let first = Run::start(folder.path(), &options, &filtered(INTERNAL_ERROR_FILTER))?;
    save_the_call_for_other_tools(
        &folder.path().join(".mcp-conformance/mcp-conformance-mock"),
        "echo",
        &["add", "weather"],
    )?;
    let second = Run::start(folder.path(), &options, &filtered(INTERNAL_ERROR_FILTER))?;
    let kinds = |run: &Run| {
        let of = |finding: &&Finding| finding.counterexample.as_ref().map(|example| example.kind);
        run.findings("fuzz/internal-error").iter().map(of).collect::<Vec<_>>()
    };
    if kinds(&first) != [Some(CallKind::Malformed); 3] || kinds(&second) != [Some(CallKind::Regression); 3] {
        return Err(format!("first {:?}, then {:?}", kinds(&first), kinds(&second)));
    }
    let confirmed =
        second.findings("fuzz/internal-error").iter().filter(|finding| finding.confirmation.is_some()).count();
    if confirmed != 1 {
        return Err(format!("{confirmed} of the three failures were retried on a process of their own, expected 1"));
    }
    let fixed = Run::start(folder.path(), &options, &[PROGRAM, "serve"])?;
    let result = fixed.report.results().find(|result| result.case == "fuzz/internal-error");
    let notes = result.map_or(0, |result| result.notes.iter().filter(|note| note.contains("no longer fails")).count());
    if kinds(&fixed).is_empty() && notes == 3 {
        Ok(())
    } else {
        Err(format!("for the fixed server: {:?} and {notes} notes, expected no findings and 3 notes", kinds(&fixed)))
    }
}

/// Any text is accepted where an enumeration is due.
fn a_finding_says_for_which_arguments_it_fails() -> Result<(), String> {
    let folder = folder()?;
    let server = [PROGRAM, "serve", "--fault", "enum-unchecked"];
    let run = Run::start(folder.path(), &[&FUZZ[..], &["--tool", "weather"]].concat(), &server)?;
    let findings = run.findings("fuzz/invalid-accepted");
    let examples = || findings.iter().filter_map(|finding| finding.counterexample.as_deref());
    let any = examples().find(|example| example.parts.iter().any(|part| part.fails_for == FailingValues::Any));
    let parts: Vec<_> = examples().map(|example| &example.parts).collect();
    let any = any.ok_or_else(|| format!("no part can be anything: {parts:?}"))?;
    if any.parts.iter().any(|part| part.tried < 2) {
        return Err(format!("{:?}", any.parts));
    }
    let text = run.report.to_text();
    if text.contains("fails for  any `city`; any wrong `unit`") { Ok(()) } else { Err(text) }
}

/// Copies the only saved call of a folder, which is one of this tool, for other tools.
fn save_the_call_for_other_tools(folder: &Path, tool: &str, others: &[&str]) -> Result<(), String> {
    let saved = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths: Vec<PathBuf> = saved.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let [path] = paths.as_slice() else {
        return Err(format!("expected one saved call for one cause, found {paths:?}"));
    };
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let name = |tool: &str| format!("\"tool\": \"{tool}\"");
    if !text.contains(&name(tool)) {
        return Err(format!("expected a call of the first tool, {tool}, found {text}"));
    }
    for other in others {
        let copy = text.replace(&name(tool), &name(other));
        fs::write(folder.join(format!("{other}.json")), copy).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn a_hang_is_found() -> Result<(), String> {
    let folder = folder()?;
    let options = [&FUZZ[..], &["--tool", "echo", "--timeout", "500ms", "--regressions", "none"]].concat();
    let run = Run::start(folder.path(), &options, &filtered(HANG_FILTER))?;
    let findings = run.findings("fuzz/hang");
    if findings.is_empty() {
        return Err("no hang was found".to_owned());
    }
    run.expect_within(limits::FUZZING_HANGS)
}

/// A server that has something for twenty calls only, and one whose calls take as long and that serves all of them.
fn many_calls_at_once_are_found_and_replayed() -> Result<(), String> {
    let server = |fault: &'static str| [PROGRAM, "serve", "--fault", fault];
    let options = ["--select", "fuzz/*", "--revision", "2025-11-25", "--tool", "count"];
    let found = |fault: &'static str| -> Result<Vec<Counterexample>, String> {
        let folder = folder()?;
        let run = Run::start(folder.path(), &options, &server(fault))?;
        let findings = ["fuzz/crash", "fuzz/hang"].map(|case| run.findings(case)).concat();
        let at_once = findings.iter().filter(|finding| finding.message.contains("30 calls at once"));
        let example = |finding: &&Finding| finding.counterexample.as_deref().cloned();
        let examples: Vec<Counterexample> = at_once.filter_map(example).collect();
        for example in &examples {
            let file = example.file.as_deref().ok_or("the counterexample was not saved")?;
            let replay = |server: &[&str]| {
                let mut command = program_command();
                command.current_dir(folder.path()).args(["replay", file, "--"]).args(server);
                let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
                status.map(|status| status.code()).map_err(|error| error.to_string())
            };
            match (replay(&server(fault))?, replay(&server("lasting-tool"))?) {
                (Some(1), Some(0)) => {}
                codes => return Err(format!("{fault}: the replays exit with {codes:?}")),
            }
        }
        Ok(examples)
    };
    for (fault, expected) in [("many-calls-exit", 1), ("many-calls-unanswered", 1), ("lasting-tool", 0)] {
        let examples = found(fault)?;
        if examples.len() != expected || examples.iter().any(|example| example.preceding.len() != 29) {
            return Err(format!("{fault}: {examples:#?}"));
        }
    }
    Ok(())
}

/// The variants that answer calls in another way.
fn the_conforming_variants_have_no_finding() -> Result<(), String> {
    let variants = [
        "input-before-validation",
        "particular-tools",
        "render-kinds",
        "relays-client-errors",
        "services-unreachable",
        "quotes-arguments",
        "result-refused",
        "every-member",
    ];
    for variant in variants {
        let folder = folder()?;
        let options = ["--select", "fuzz/*", "--revision", "2026-07-28", "--revision", "2025-06-18", "--fuzz", "60"];
        let run = Run::start(folder.path(), &options, &[PROGRAM, "serve", "--fault", variant])?;
        let bad: Vec<String> = run
            .report
            .results()
            .filter(|result| !matches!(result.verdict, Verdict::Pass | Verdict::Skip))
            .map(|result| format!("{} in {}, {variant}: {:#?}", result.case, result.revision, result.findings))
            .collect();
        if !bad.is_empty() {
            return Err(bad.join("\n"));
        }
        if !run.report.results().any(|result| result.verdict == Verdict::Pass) {
            return Err(format!("nothing was judged of {variant}"));
        }
    }
    Ok(())
}

fn the_conforming_server_has_no_finding() -> Result<(), String> {
    for (seed, revision) in [("1", "2026-07-28"), ("2", "2025-11-25"), ("3", "2024-11-05")] {
        let folder = folder()?;
        let options = ["--select", "fuzz/*", "--revision", revision, "--seed", seed];
        let run = Run::start(folder.path(), &options, &[PROGRAM, "serve"])?;
        let bad: Vec<String> = run
            .report
            .results()
            .filter(|result| matches!(result.verdict, Verdict::Fail | Verdict::Warn | Verdict::Error))
            .map(|result| format!("{} in {revision}, seed {seed}: {:#?}", result.case, result.findings))
            .collect();
        if !bad.is_empty() {
            return Err(bad.join("\n"));
        }
        let calls = run.report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref()).map(|fuzz| fuzz.calls);
        if calls.sum::<u64>() < 1_000 {
            return Err(format!("expected at least 1000 calls in {revision}"));
        }
    }
    Ok(())
}

fn a_server_that_always_crashes_does_not_stop_the_run() -> Result<(), String> {
    let folder = folder()?;
    let options = [&FUZZ[..], &["--fuzz-time", "20s", "--tool", "e*", "--regressions", "none"]].concat();
    let run = Run::start(folder.path(), &options, &filtered(ALWAYS_CRASH_FILTER))?;
    if run.findings("fuzz/crash").is_empty() {
        return Err("no crash was found".to_owned());
    }
    run.expect_within(limits::FUZZING_ENDS)
}

fn a_server_that_answers_no_call_is_abandoned() -> Result<(), String> {
    let folder = folder()?;
    let options = [&FUZZ[..], &["--timeout", "2s", "--regressions", "none"]].concat();
    let run = Run::start(folder.path(), &options, &filtered(DROP_CALLS_FILTER))?;
    if run.findings("fuzz/hang").is_empty() {
        return Err("no hang was found".to_owned());
    }
    let fuzzed =
        run.report.targets.iter().find_map(|target| target.summary.fuzz.as_ref()).ok_or("nothing was fuzzed")?;
    let why = fuzzed.stopped_early.as_deref().ok_or("the server was not abandoned")?;
    if !why.contains("consecutive tools failed") {
        return Err(format!("the reason is {why}"));
    }
    let passed =
        run.report.results().find(|result| result.case.starts_with("fuzz/") && result.verdict == Verdict::Pass);
    if let Some(passed) = passed {
        return Err(format!("{} passes, although almost no call was answered", passed.case));
    }
    // A few timeouts.
    run.expect_within(limits::FUZZING_SILENCE)
}

/// The calls of these tools on all processes, and the times of the first and the last message to each process with many
/// calls, in seconds, if the lines begin with a time. Which other tools are called, to check that they still work, depends on timing.
fn calls_in(folder: &Path, tools: &[&str]) -> Result<(BTreeSet<String>, Vec<[f64; 2]>), String> {
    const MIN_CALLS: usize = 300;
    let (mut calls, mut processes) = (BTreeSet::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "lines") {
            let bytes = fs::read(entry.path()).map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let params =
                text.lines().filter_map(|line| line.split_once("\"method\":\"tools/call\",").map(|(_, params)| params));
            let is_listed_tool =
                |params: &&str| tools.iter().any(|tool| params.contains(&format!(r#""name":"{tool}""#)));
            let of_process: BTreeSet<String> =
                params.filter(is_listed_tool).map(|params| params.chars().take(500).collect()).collect();
            let mut times = text.lines().filter_map(|line| line.split_once(' ')?.0.parse().ok());
            if of_process.len() > MIN_CALLS
                && let Some(first) = times.next()
            {
                processes.push([first, times.next_back().unwrap_or(first)]);
            }
            calls.extend(of_process);
        }
    }
    Ok((calls, processes))
}

/// Whether two processes were called side by side, and not one after the other.
fn are_side_by_side(processes: &[[f64; 2]]) -> bool {
    processes.iter().enumerate().any(|(at, [began, ended])| {
        processes[..at].iter().any(|[other_began, other_ended]| {
            let shared = ended.min(*other_ended) - began.max(*other_began);
            shared > (ended - began).min(other_ended - other_began) / 2.0
        })
    })
}

fn the_same_calls_are_made_on_several_processes() -> Result<(), String> {
    // Whether more processes pay off depends on measured times.
    const ATTEMPTS: usize = 3;
    // A slow server, for which starting more processes pays off. It waits for each line however long that is: with time
    // spent per character, a line of a mebibyte sometimes times out on a busy machine.
    const SLOW_FILTER: &str = r#"perl -MTime::HiRes=time,sleep -ne '
        BEGIN { $| = 1; open(LOG, ">", shift); select((select(LOG), $| = 1)[0]) }
        printf LOG "%.3f %s", time, $_; sleep 0.0005; print' "$1/$$.lines" | exec "$0" serve"#;
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut all = Vec::new();
        for jobs in ["1", "4"] {
            let folder = folder()?;
            let path = folder.path().to_string_lossy().into_owned();
            let options = ["--jobs", jobs, "--fuzz", "1000", "--fuzz-time", "10m", "--tool", "add", "--tool", "count"];
            let options = [&FUZZ[..], &options[..], &["--tool", "echo", "--regressions", "none"]].concat();
            Run::start(folder.path(), &options, &["sh", "-c", SLOW_FILTER, PROGRAM, &path])?;
            all.push(calls_in(folder.path(), &["add", "count", "echo"])?);
        }
        let missing: Vec<&String> = all[0].0.symmetric_difference(&all[1].0).take(3).collect();
        if !missing.is_empty() {
            return Err(format!("only one of the two made {missing:#?}"));
        }
        if are_side_by_side(&all[0].1) {
            return Err(format!("a single job called several processes at once: {:?}", all[0].1));
        }
        if all[0].1.is_empty() {
            return Err("no process was called often".to_owned());
        }
        if are_side_by_side(&all[1].1) {
            return Ok(());
        }
        seen.push(all.swap_remove(1).1);
    }
    Err(format!("never side by side, from and to: {seen:?}"))
}

/// Servers that break like those that the table of such input names as its sources.
fn input_that_breaks_handlers_is_tried() -> Result<(), String> {
    // The tool, and the message that ends the server, as a regular expression.
    const ROWS: [(&str, &str); 6] = [
        ("echo", r#""text":"100%"#),
        ("echo", r#""text":"\\ud800""#),
        ("echo", r#""text":"(?:→){67}"#),
        ("echo", r#""text":"a{4097}"#),
        ("search", r#"(?:"[a-z]+",){900}"#),
        ("search", r#""limit":30\.0"#),
    ];
    for (tool, pattern) in ROWS {
        let folder = folder()?;
        let filter = format!("perl -ne 'BEGIN {{ $| = 1 }} exit 1 if m/{pattern}/; print' | exec \"$0\" serve");
        let options = [&FUZZ[..], &["--tool", tool, "--fuzz-time", "10m"]].concat();
        let run = Run::start(folder.path(), &options, &filtered(&filter))?;
        let kinds: Vec<Option<CallKind>> =
            run.findings("fuzz/crash").iter().map(|found| Some(found.counterexample.as_ref()?.kind)).collect();
        if !kinds.contains(&Some(CallKind::Handler)) {
            return Err(format!("{tool}: {pattern} is found by {kinds:?}"));
        }
    }
    Ok(())
}

fn a_growing_resource_is_saved_and_replayed() -> Result<(), String> {
    let folder = folder()?;
    let options = [&FUZZ[..], &["--tool", "search"]].concat();
    let [program, serve] = crate::support::evaluation_server::command()?;
    let faulty = [&program, &serve, "--fault", "search-files"];
    let run = Run::start(folder.path(), &options, &faulty)?;
    let findings = run.findings("fuzz/descriptors");
    let finding = findings.first().ok_or("no growth was found")?;
    let example = finding.counterexample.as_deref().ok_or("the finding has no counterexample")?;
    let file = example.file.as_deref().ok_or("the counterexample was not saved")?;
    for (server, code) in [(&faulty[..], Some(0)), (&[PROGRAM, "serve"][..], Some(0))] {
        let replayed = folder.path().join("replayed.json");
        let status = program_command()
            .current_dir(folder.path())
            .args(["replay", file, "--report", &format!("json={}", replayed.display()), "--"])
            .args(server)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(|error| error.to_string())?;
        let text = fs::read_to_string(&replayed).map_err(|error| error.to_string())?;
        let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let again = report.results().flat_map(|result| &result.findings).count();
        let is_faulty = server.len() > 2;
        if status.code() != code || (again > 0) != is_faulty {
            return Err(format!("{server:?}: {again} findings, exit code {:?}", status.code()));
        }
    }
    Ok(())
}
