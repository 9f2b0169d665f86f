//! The program under test, started in an environment that has nothing of the machine in it but what it needs.

use std::fmt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");

/// Variables that change what the program prints: those of CI systems and of terminals.
const CHANGING: [&str; 7] =
    ["CI", "GITHUB_ACTIONS", "NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "MCP_CONFORMANCE_FAULT"];

/// The result of running the program: its exit code and its output.
pub(crate) struct ProgramOutput {
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// The arguments, the exit status, standard output and standard error.
    pub(crate) text: String,
}

impl ProgramOutput {
    /// The result of a process, described by its command line.
    pub(crate) fn new(what: &dyn fmt::Debug, output: &Output) -> Self {
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let text = format!("{what:?}: {}\n--- stdout\n{out}\n--- stderr\n{error}", output.status);
        Self { code: output.status.code(), out: out.into_owned(), text }
    }

    /// Fails, with the output, unless the program ended with this exit code.
    pub(crate) fn with_code(self, code: i32) -> Result<Self, String> {
        if self.code == Some(code) {
            Ok(self)
        } else {
            Err(format!("exit code {:?}, not {code}\n{}", self.code, self.text))
        }
    }

    /// Fails unless the output contains a string.
    pub(crate) fn shows(self, expected: &str) -> Result<Self, String> {
        if self.text.contains(expected) { Ok(self) } else { Err(format!("`{expected}` is not in:\n{}", self.text)) }
    }
}

/// Whether no program but the one under test is found by its name.
static HIDES_OTHERS: AtomicBool = AtomicBool::new(false);

/// Leaves the search path of the program empty: the gate uses no program of the machine.
pub(crate) fn hide_other_programs() {
    HIDES_OTHERS.store(true, Ordering::Relaxed);
}

/// A command that starts the program, without standard input and in a clean environment.
pub(crate) fn program_command() -> Command {
    let mut command = clean(Command::new(PROGRAM));
    if HIDES_OTHERS.load(Ordering::Relaxed) {
        command.env("PATH", "");
    }
    command
}

/// A command without standard input and without the variables that change what the program prints.
pub(crate) fn clean(mut command: Command) -> Command {
    for variable in CHANGING {
        command.env_remove(variable);
    }
    command.env("TERM", "dumb").stdin(Stdio::null());
    command
}

/// Runs the program in a folder.
pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Result<ProgramOutput, String> {
    let mut command = program_command();
    command.current_dir(folder).args(arguments);
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    Ok(ProgramOutput::new(&arguments, &output))
}
