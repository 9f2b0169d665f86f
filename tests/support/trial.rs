//! Trials: how they run, and what is said about those that fail.
//!
//! A trial that fails is run once more, alone, when the others are done, if few fail; one that passes then is reported as
//! flaky. At the end of a run come the slowest trials and, last, each failure with its message and the load of the machine,
//! which are also written to `target/ci/failed.txt`.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs};

use libtest_mimic::{Arguments, Completion, Failed};

/// The outcome of a trial that fails is its message.
type Test = dyn Fn() -> Result<(), String> + Send + Sync;

/// One test of the suite.
#[derive(Clone)]
pub(crate) struct Trial {
    pub(crate) name: String,
    test: Arc<Test>,
    is_ignored: bool,
}

/// A trial that fails with the error of its function.
pub(crate) fn trial(name: impl Into<String>, test: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Trial {
    Trial { name: name.into(), test: Arc::new(test), is_ignored: false }
}

impl Trial {
    /// Leaves the trial out unless it is asked for by `--ignored`: it takes hours, or what it needs is not installed.
    pub(crate) fn with_ignored_flag(self, is_ignored: bool) -> Self {
        Self { is_ignored, ..self }
    }

    /// Runs the test; a panic is a failure.
    fn run(&self) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| (self.test)())).unwrap_or_else(|panic| Err(message_of(panic.as_ref())))
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

/// The number of trials that are run once more in a whole run; the variable is what a run in several parts has left.
const MAX_RETRIES: usize = 3;
const RETRIES: &str = "MCP_CONFORMANCE_RETRIES";

/// With the value `fail`, a trial that fails and then passes fails the run.
const FLAKY: &str = "MCP_CONFORMANCE_FLAKY";

/// How many of the slowest trials are shown.
const SHOWN_TIMES: usize = 20;

/// How many lines of a message are repeated at the end of a run; the file has all of them.
const SHOWN_LINES: usize = 12;

/// A trial that failed.
struct Failure {
    message: String,
    /// The load averages of the machine when it failed.
    load: String,
}

/// What is known about the trials that ran.
#[derive(Default)]
struct Record {
    times: Vec<(Duration, String)>,
    failures: BTreeMap<String, Failure>,
}

/// Runs trials as the arguments say.
pub(crate) fn run(arguments: &Arguments, trials: &[Trial]) -> ExitCode {
    let record = Arc::new(Mutex::new(Record::default()));
    let tests = trials.iter().map(|trial| recorded(trial, &record)).collect();
    let conclusion = libtest_mimic::run(arguments, tests);
    let record = std::mem::take(&mut *lock(&record));
    if record.times.is_empty() {
        return conclusion.exit_code();
    }
    show_times(record.times);
    if record.failures.is_empty() {
        return conclusion.exit_code();
    }
    let failed: Vec<&Trial> = trials.iter().filter(|trial| record.failures.contains_key(&trial.name)).collect();
    let passed_then = retry(&failed);
    let is_flaky = passed_then.len() == failed.len();
    show_failures(&record.failures, &passed_then);
    let flaky_fails = env::var_os(FLAKY).is_some_and(|value| value == "fail");
    if is_flaky && !flaky_fails { ExitCode::SUCCESS } else { conclusion.exit_code() }
}

fn recorded(trial: &Trial, record: &Arc<Mutex<Record>>) -> libtest_mimic::Trial {
    let (own, record) = (trial.clone(), Arc::clone(record));
    let test = move || {
        let began = Instant::now();
        let result = own.run();
        let mut record = lock(&record);
        record.times.push((began.elapsed(), own.name.clone()));
        if let Err(message) = &result {
            record.failures.insert(own.name.clone(), Failure { message: message.clone(), load: load() });
        }
        result.map(|()| Completion::Completed).map_err(Failed::from)
    };
    libtest_mimic::Trial::ignorable_test(trial.name.clone(), test).with_ignored_flag(trial.is_ignored)
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the trials once more, one at a time, unless there are too many; returns the names of those that pass.
fn retry(failed: &[&Trial]) -> Vec<String> {
    let budget = env::var(RETRIES).ok().and_then(|left| left.parse().ok()).unwrap_or(MAX_RETRIES);
    if failed.len() > budget {
        say(&format!("{} trials failed, and {budget} may be run once more: none is", failed.len()));
        return Vec::new();
    }
    let passes = |trial: &&&Trial| {
        let result = trial.run();
        say(&format!("once more, alone: {}: {}", trial.name, if result.is_ok() { "passes" } else { "fails again" }));
        result.is_ok()
    };
    failed.iter().filter(passes).map(|trial| trial.name.clone()).collect()
}

fn show_times(mut times: Vec<(Duration, String)>) {
    times.sort_by(|left, right| right.cmp(left));
    let total: Duration = times.iter().map(|(time, _)| *time).sum();
    let mut text = format!("the slowest of {} trials ({:.1} s in all):\n", times.len(), total.as_secs_f64());
    for (time, name) in times.iter().take(SHOWN_TIMES) {
        let _infallible = writeln!(text, "{:8.2} s  {name}", time.as_secs_f64());
    }
    say(&text);
}

fn show_failures(failures: &BTreeMap<String, Failure>, passed_then: &[String]) {
    let (mut all, mut shown) = (String::new(), String::new());
    for (name, Failure { message, load }) in failures {
        let then = if passed_then.contains(name) { ", then passed" } else { "" };
        let head = format!("failed{then}: {name} (load {load})");
        let _infallible = writeln!(all, "{head}\n{message}\n");
        let first: Vec<&str> = message.lines().take(SHOWN_LINES).collect();
        let rest = message.lines().count().saturating_sub(SHOWN_LINES);
        let _infallible = writeln!(shown, "{head}\n    {}", first.join("\n    "));
        if rest > 0 {
            let _infallible = writeln!(shown, "    ({rest} more lines)");
        }
    }
    let path = failures_path();
    match append(&path, &all) {
        Ok(()) => say(&format!("{shown}all messages in full: {}", path.display())),
        Err(error) => say(&format!("{shown}{}: {error}", path.display())),
    }
}

fn failures_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/ci/failed.txt")
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// The load averages of the machine, where it tells them.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    if averages.is_empty() { "unknown".to_owned() } else { averages.join(" ") }
}

pub(crate) fn say(text: &str) {
    // Standard output may be closed, which fails no trial.
    let _closed = std::io::Write::write_all(&mut std::io::stdout(), format!("{text}\n").as_bytes());
}
