//! The integration tests, in one binary.
//!
//! `cargo test` runs everything. A prefix of the names selects a part: `case/` (every case against its fault and
//! against a conforming server), `data/` (the case files and the requirements), `differential/` (the cases against
//! the official schemas), `docs/` (the documentation and its tutorial), `fuzzing/` (fuzzing, end to end), `hidden/` (evaluation faults, which only fuzzing
//! finds), `sequences/` (calls in sequences), `hints/` (hint files and their effect), `hostile/` (hostile servers), `house/` (the allowed imports),
//! `libtest/` (cases as tests of a user's crate, with the feature `harness`), `real/` (real servers), `runner/`
//! (package runners), `arguments/` (those that tools serve), `schemas/` (the fuzzer's schemas against the official test suite of JSON Schema), `browser/`
//! (the HTML report in a browser), `formats/` (the formats of reports), `gating/` (baselines, thresholds, shards
//! and comparisons), `config/` (the configuration), `mistakes/` (mistakes on the command line), `recording/` (transcripts
//! and recordings), `packaging/`
//! (the installer, the packages, the GitHub action), `parity/` (the same findings over both transports), `auth/`
//! (protected servers), `validators/` (validators with one mistake each), `waiting/` (slow servers, and servers that leave requests unanswered).

mod browser;
mod builtin;
mod config;
mod data;
mod differential;
mod docs;
mod evaluation;
mod formats;
mod fuzzing;
mod gating;
mod hints;
mod hostile;
mod house;
mod http_auth;
mod http_fuzzing;
mod http_hostile;
mod http_parity;
mod http_secrets;
#[cfg(feature = "harness")]
mod libtest;
mod matrix;
mod mistakes;
mod openings;
mod packaging;
mod raw;
mod real;
mod recording;
mod reproduce;
mod runner;
mod schemas;
mod sequences;
mod served;
mod vacuous;
mod validators;
mod variants;
mod waiting;

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

use libtest_mimic::{Arguments, Failed, Trial};

/// How many threads there are for trials that wait for their turn, so that others go on.
const QUEUED_TRIALS: usize = 64;

/// How many trials run at the same time for each core, in addition to those that wait for a real server: most of them wait,
/// for a server or for a shared run.
const TRIALS_PER_CORE: usize = 4;

fn main() -> std::process::ExitCode {
    if let Some(code) = evaluation::server::serve_if_requested() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // Those that take longest begin first, so that none of them is left to run alone at the end.
    let mut trials: Vec<Trial> = real::trials();
    arguments.test_threads.get_or_insert(cores() * TRIALS_PER_CORE + trials.len() + QUEUED_TRIALS);
    trials.extend(matrix::trials());
    trials.extend(variants::trials());
    trials.extend(vacuous::trials());
    trials.extend(config::trials());
    trials.extend(mistakes::trials());
    trials.extend(packaging::trials());
    trials.extend(data::trials());
    trials.extend(differential::trials());
    trials.extend(docs::trials());
    trials.extend(fuzzing::trials());
    trials.extend(sequences::trials());
    trials.extend(evaluation::trials());
    trials.extend(hints::trials());
    trials.extend(hostile::trials());
    trials.extend(http_auth::trials());
    trials.extend(http_fuzzing::trials());
    trials.extend(http_hostile::trials());
    trials.extend(http_parity::trials());
    trials.extend(http_secrets::trials());
    trials.extend(house::trials());
    #[cfg(feature = "harness")]
    trials.extend(libtest::trials());
    trials.extend(openings::trials());
    trials.extend(recording::trials());
    trials.extend(reproduce::trials());
    trials.extend(runner::trials());
    trials.extend(schemas::trials());
    trials.extend(served::trials());
    trials.extend(browser::trials());
    trials.extend(formats::trials());
    trials.extend(gating::trials());
    trials.extend(validators::trials());
    trials.extend(waiting::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The result of running the program: its exit code and its output.
struct ProgramOutput {
    code: Option<i32>,
    out: String,
    /// The arguments, the exit status, standard output and standard error.
    text: String,
}

impl ProgramOutput {
    /// Fails, with the output, unless the program ended with this exit code.
    fn with_code(self, code: i32) -> Result<Self, String> {
        if self.code == Some(code) {
            Ok(self)
        } else {
            Err(format!("exit code {:?}, not {code}\n{}", self.code, self.text))
        }
    }

    /// Fails unless the output contains a string.
    fn shows(self, expected: &str) -> Result<Self, String> {
        if self.text.contains(expected) { Ok(self) } else { Err(format!("`{expected}` is not in:\n{}", self.text)) }
    }
}

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");

/// The folder of the installed servers and of the clients that use them.
fn servers() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers")
}

/// Whether trials of servers that are not installed fail; otherwise they are ignored.
fn servers_are_required() -> bool {
    std::env::var_os("MCP_CONFORMANCE_SERVERS").is_some_and(|value| value == "required")
}

/// Runs the program in a folder.
fn program(folder: &std::path::Path, arguments: &[&str]) -> Result<ProgramOutput, String> {
    let mut command = std::process::Command::new(PROGRAM);
    command.current_dir(folder).args(arguments).stdin(std::process::Stdio::null());
    // Variables of a CI system must not change the result.
    command.env_remove("CI").env_remove("NO_COLOR").env_remove("GITHUB_ACTIONS");
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = format!("{arguments:?}: {}\n--- stdout\n{out}\n--- stderr\n{error}", output.status);
    Ok(ProgramOutput { code: output.status.code(), out: out.into_owned(), text })
}

/// A trial that fails with the error of its function. It may keep a core busy or start processes, so that no more of
/// these run at the same time than there are cores.
fn trial(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let _core = HALF_CORES.take(2);
        timed(&name, test)
    })
}

/// A trial of a real server, which keeps half a core busy. As many of these run at the same time as there are cores: a
/// server that waits for a processor looks like one that hangs.
fn server_trial(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let _server = SERVERS.take(1);
        let _half = HALF_CORES.take(1);
        timed(&name, test)
    })
}

/// A trial that mostly waits, and keeps half a core busy: it has limits of time and memory, and many of them that begin at
/// once are not idle.
fn waiting_trial(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let _half = HALF_CORES.take(1);
        timed(&name, test)
    })
}

/// The variable that names a file for the time that each trial took, in seconds.
const TRIAL_TIMES: &str = "MCP_CONFORMANCE_TRIAL_TIMES";

fn timed(name: &str, test: impl FnOnce() -> Result<(), String>) -> Result<(), Failed> {
    let began = Instant::now();
    let result = test();
    if let Some(path) = std::env::var_os(TRIAL_TIMES) {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(format!("{:8.2} {name}\n", began.elapsed().as_secs_f64()).as_bytes())?;
    }
    Ok(result?)
}

fn cores() -> usize {
    available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What trials take while they run, so that they do not slow each other down.
struct Pool {
    /// How much there is for each core.
    per_core: usize,
    taken: Mutex<usize>,
    freed: Condvar,
}

/// Halves of the cores.
static HALF_CORES: Pool = Pool::new(2);

/// Real servers that may run.
static SERVERS: Pool = Pool::new(1);

impl Pool {
    const fn new(per_core: usize) -> Self {
        Self { per_core, taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until so many are free, and takes them.
    fn take(&'static self, count: usize) -> Taken {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_short = |taken: &mut usize| *taken + count > self.per_core * cores();
        *self.freed.wait_while(taken, is_short).unwrap_or_else(PoisonError::into_inner) += count;
        Taken { pool: self, count }
    }
}

/// Something taken, until this is dropped.
struct Taken {
    pool: &'static Pool,
    count: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.pool.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.count;
        self.pool.freed.notify_all();
    }
}
