//! Recognizes in its standard error why a server could not start: what is missing, and what to do about it.
//!
//! Only what the common runtimes and shells write is recognized, and the line is quoted, so that a wrong guess can be seen.

use crate::limits::MAX_QUOTED_LINE_CHARS;
use crate::text::first_chars;

/// Why a server could not start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StartFailure {
    /// The last line that reads like an error, or else the last one that is recognized, or else the last one.
    pub(super) line: String,
    /// What to do about it, if the line is recognized.
    pub(super) hint: Option<&'static str>,
}

/// The words of a line that names a missing variable.
const MISSING: [&str; 8] =
    ["required", "missing", "not set", "must be set", "undefined", "not defined", "not found", "not provided"];

const MODULE: &str = "a module is missing: install what the server depends on (npm install, pip install, uv sync) and build it; a command from a virtual environment needs that environment, as in `uv run server.py`";
const FILE: &str = "a file or folder is missing: check the path and build the server; relative paths count from --cwd";
const DENIED: &str =
    "access is denied: check the permissions of the file or folder, and that the program is executable";
const PROGRAM: &str = "a program is missing: install it, or give its whole path";
const RUNTIME: &str = "the runtime does not fit: install the version that the server needs";
const VARIABLE: &str = "a variable is missing: give it with --env NAME=VALUE";
const ARGUMENT: &str = "an argument is missing or wrong: write the server's arguments after its command";
const PORT: &str = "a port is in use: stop what listens there, or choose another one";
const SERVICE: &str = "a service is not reachable: start what the server connects to";

/// What runtimes, shells and libraries write, in lower case, with the hint; the first one that a line contains counts.
const SIGNS: [(&str, &str); 40] = [
    // Node.js
    ("err_module_not_found", MODULE),
    ("cannot find package '", MODULE),
    ("cannot find module '", MODULE),
    ("enoent: no such file or directory", FILE),
    ("eacces: permission denied", DENIED),
    ("eaddrinuse", PORT),
    ("econnrefused", SERVICE),
    // Python
    ("modulenotfounderror", MODULE),
    ("no module named ", MODULE),
    ("importerror: cannot import name", MODULE),
    ("can't open file '", FILE),
    ("filenotfounderror", FILE),
    ("permissionerror", DENIED),
    ("connectionrefusederror", SERVICE),
    ("the following arguments are required", ARGUMENT),
    // Java
    ("unable to access jarfile", FILE),
    ("could not find or load main class", MODULE),
    ("classnotfoundexception", MODULE),
    ("noclassdeffounderror", MODULE),
    ("unsupportedclassversionerror", RUNTIME),
    // .NET
    ("you must install or update .net", RUNTIME),
    ("could not load file or assembly", MODULE),
    ("system.io.filenotfoundexception", FILE),
    // Go
    ("no required module provides package", MODULE),
    ("cannot find main module", MODULE),
    ("cannot find package \"", MODULE),
    ("missing go.sum entry", MODULE),
    // Ruby, PHP, Deno
    ("(loaderror)", MODULE),
    ("failed opening required", FILE),
    ("module not found \"", MODULE),
    // Rust and C
    ("error while loading shared libraries", MODULE),
    ("version `glibc", RUNTIME),
    // Shells and systems
    ("command not found", PROGRAM),
    ("exec format error", RUNTIME),
    ("address already in use", PORT),
    ("connection refused", SERVICE),
    ("permission denied", DENIED),
    ("no such file or directory", FILE),
    ("missing required argument", ARGUMENT),
    ("required arguments were not provided", ARGUMENT),
];

/// Why a server that wrote this to its standard error could not start; nothing if it wrote nothing.
pub(super) fn start_failure(stderr: &str) -> Option<StartFailure> {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // The last error ended the server, and what stands before it was survived. A shell names no error as such.
    let error = lines.iter().rposition(|line| is_error(line));
    let recognized = || lines.iter().rposition(|line| hint_for(line).is_some());
    let at = error.or_else(recognized).or(lines.len().checked_sub(1))?;
    // Rust writes the message of a panic below its place.
    let below = lines.get(at + 1).filter(|_| lines[at].contains("panicked at") && lines[at].ends_with(':'));
    let line = below.copied().unwrap_or(lines[at]);
    Some(StartFailure { line: first_chars(line, MAX_QUOTED_LINE_CHARS).to_owned(), hint: hint_for(line) })
}

/// Whether a line reads like an error, and is no place in the code.
fn is_error(line: &str) -> bool {
    const ERRORS: [&str; 5] = ["error:", "exception:", "exception in ", "panicked at", "panic:"];
    let lower = line.to_lowercase();
    !lower.starts_with("at ") && ERRORS.iter().any(|error| lower.contains(error))
}

/// What to do about what a line says.
fn hint_for(line: &str) -> Option<&'static str> {
    let lower = line.to_lowercase();
    let sign = SIGNS.iter().find(|(sign, _)| lower.contains(sign)).map(|(_, hint)| *hint);
    let names_variable = || line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(is_variable);
    // Python raises this for a missing variable as well as for any other key.
    let is_key_error = || lower.starts_with("keyerror: '");
    let is_missing = || MISSING.iter().any(|word| lower.contains(word)) || is_key_error();
    let usage = || lower.starts_with("usage: ");
    let is_of_shell = || lower.split_once(": ").is_some_and(|(shell, _)| shell.ends_with("sh"));
    let is_unknown_program = || lower.ends_with(": not found") && is_of_shell();
    sign.or_else(|| is_unknown_program().then_some(PROGRAM))
        .or_else(|| (is_missing() && names_variable()).then_some(VARIABLE))
        .or_else(|| usage().then_some(ARGUMENT))
}

/// Whether a word is written like a variable of the environment: capitals in two parts at least, as in `API_KEY`.
fn is_variable(word: &str) -> bool {
    let mut parts = word.split('_');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    word.contains('_') && word.starts_with(|c: char| c.is_ascii_uppercase()) && parts.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(stderr: &str) -> Option<&'static str> {
        start_failure(stderr).and_then(|failure| failure.hint)
    }

    #[test]
    fn what_is_missing_is_recognized() {
        let node = "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/dist/index.js'\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0\n";
        assert_eq!(hint(node), Some(MODULE));
        assert_eq!(start_failure(node).expect("a failure").line, "Error: Cannot find module '/srv/dist/index.js'");
        let python = "Traceback (most recent call last):\n  File \"server.py\", line 1, in <module>\n    import mcp\nModuleNotFoundError: No module named 'mcp'\n";
        assert_eq!(hint(python), Some(MODULE));
        assert_eq!(
            hint("python3: can't open file '/srv/server.py': [Errno 2] No such file or directory\n"),
            Some(FILE)
        );
        assert_eq!(hint("Error: Unable to access jarfile target/server.jar\n"), Some(FILE));
        assert_eq!(hint("sh: 1: uvx: not found\n"), Some(PROGRAM));
        assert_eq!(hint("bash: line 1: ./server: Permission denied\n"), Some(DENIED));
        assert_eq!(
            hint("Error: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle\n"),
            Some(PORT)
        );
        assert_eq!(
            hint("usage: server.py [-h] root\nserver.py: error: the following arguments are required: root\n"),
            Some(ARGUMENT)
        );
        assert_eq!(
            hint("Usage: mcp-server-filesystem <allowed-directory> [additional-directories...]\n"),
            Some(ARGUMENT)
        );
    }

    #[test]
    fn a_missing_variable_is_recognized_by_its_form() {
        assert_eq!(hint("Error: BRAVE_API_KEY environment variable is required\n"), Some(VARIABLE));
        assert_eq!(
            hint("  File \"<frozen os>\", line 714, in __getitem__\nKeyError: 'GITHUB_TOKEN'\n"),
            Some(VARIABLE)
        );
        assert_eq!(hint("KeyError: 'name'\n"), None);
        assert_eq!(hint("the value is missing\n"), None);
        assert_eq!(hint("OPENAI_API_KEY is used\n"), None);
    }

    #[test]
    fn what_was_survived_is_not_the_cause() {
        let failure = start_failure("cache: no such file or directory, creating it\nError: the licence is over\n");
        assert_eq!(
            failure.expect("a failure"),
            StartFailure { line: "Error: the licence is over".to_owned(), hint: None }
        );
        let panic = "thread 'main' panicked at src/main.rs:2:5:\nSERVICE_TOKEN must be set\nnote: run with `RUST_BACKTRACE=1`\n";
        let failure = start_failure(panic).expect("a failure");
        assert_eq!((failure.line.as_str(), failure.hint), ("SERVICE_TOKEN must be set", Some(VARIABLE)));
        assert_eq!(hint("user 7: not found\n"), None);
    }

    #[test]
    fn without_a_sign_the_last_line_is_quoted() {
        let failure = start_failure("starting\nit broke\n\n").expect("a failure");
        assert_eq!(failure, StartFailure { line: "it broke".to_owned(), hint: None });
        let node =
            "server.js:3\n  throw new Error(text)\n  ^\n\nError: no database\n    at Error: place\n\nNode.js v22.1.0\n";
        assert_eq!(start_failure(node).expect("a failure").line, "Error: no database");
        assert_eq!(start_failure("\n \n"), None);
        assert_eq!(start_failure(&"x".repeat(1_000)).expect("a failure").line.len(), MAX_QUOTED_LINE_CHARS);
    }
}
