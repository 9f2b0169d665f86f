//! The integration tests, in one binary.
//!
//! `cargo test` runs everything. A prefix of the names selects a part: `case/` (every case against its fault and
//! against a conforming server), `data/` (the case files and the requirements), `differential/` (the cases against
//! the official schemas), `fuzzing/` (fuzzing, end to end), `hidden/` (evaluation faults, which only fuzzing
//! finds), `hints/` (hint files and their effect), `hostile/` (hostile servers), `house/` (the allowed imports),
//! `libtest/` (cases as tests of a user's crate, with the feature `harness`), `real/` (real servers), `runner/`
//! (package runners), `schemas/` (the fuzzer's schemas against the official test suite of JSON Schema), `browser/`
//! (the HTML report in a browser), `formats/` (the formats of reports), `gating/` (baselines, thresholds, shards
//! and comparisons), `parity/` (the same findings over both transports), `auth/` (protected servers).

mod browser;
mod builtin;
mod data;
mod differential;
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
mod raw;
mod real;
mod reproduce;
mod runner;
mod schemas;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(matrix::trials());
    trials.extend(data::trials());
    trials.extend(differential::trials());
    trials.extend(fuzzing::trials());
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
    trials.extend(real::trials());
    trials.extend(reproduce::trials());
    trials.extend(runner::trials());
    trials.extend(schemas::trials());
    trials.extend(browser::trials());
    trials.extend(formats::trials());
    trials.extend(gating::trials());
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

/// A trial that fails with the error of its function.
fn trial(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::test(name, move || test().map_err(Into::into))
}
