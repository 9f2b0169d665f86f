//! The cases as tests of a user's crate: runs the test binaries of `tests/harness/` as a user does.
//!
//! Cargo has built them into the folder of this binary. `.ci/slow nextest` also runs them by `cargo nextest`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use crate::support::{Trial, limits, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("libtest/a-list-starts-no-server-and-has-every-case", a_list_starts_no_server),
        trial("libtest/a-server-in-the-process-passes", a_server_in_the_process_passes),
        trial("libtest/a-program-passes-the-filtered-cases", a_program_passes),
        trial("libtest/an-exact-name-runs-one-case", an_exact_name_runs_one_case),
        trial("libtest/a-fault-fails-its-case-with-evidence", a_fault_fails_its_case),
        trial("libtest/the-list-suits-nextest", the_list_suits_nextest),
    ]
}

/// The newest test binary of this name.
fn binary(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or_else(|| "this binary is in no folder".to_owned())?;
    let built = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    files
        .flatten()
        .map(|file| file.path())
        .filter(|path| {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            stem.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')) && path.extension().is_none()
        })
        .max_by_key(built)
        .ok_or_else(|| format!("{name} is not built: cargo test --all-features --no-run builds it"))
}

/// The result of a command: its exit code and its output.
struct Output {
    code: Option<i32>,
    text: String,
}

fn run(mut command: Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(Output { code: output.status.code(), text: format!("{out}{error}") })
}

/// Runs a test binary with these arguments, against a server with this fault.
fn run_tests(name: &str, arguments: &[&str], fault: Option<&str>) -> Result<Output, String> {
    let mut command = Command::new(binary(name)?);
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MCP_CONFORMANCE_FAULT");
    if let Some(fault) = fault {
        command.env("MCP_CONFORMANCE_FAULT", fault);
    }
    run(command)
}

impl Output {
    fn with_code(self, code: i32) -> Result<Self, String> {
        if self.code == Some(code) { Ok(self) } else { Err(format!("exit code {:?}:\n{}", self.code, self.text)) }
    }

    fn shows(self, expected: &str) -> Result<Self, String> {
        if self.text.contains(expected) { Ok(self) } else { Err(format!("`{expected}` is not in:\n{}", self.text)) }
    }

    /// A number in the last line, such as that of `3 passed`.
    fn count(&self, what: &str) -> Result<usize, String> {
        let line = self.text.lines().find(|line| line.starts_with("test result: "));
        let part = line.and_then(|line| line.split([';', '.']).find_map(|part| part.trim().strip_suffix(what)));
        let number = part.and_then(|part| part.trim().parse().ok());
        number.ok_or_else(|| format!("`N {what}` is not in the last line:\n{}", self.text))
    }

    /// How many tests ran or were skipped with a reason.
    fn tests(&self) -> Result<usize, String> {
        Ok(self.count("passed")? + self.count("failed")? + self.ignored()?)
    }

    fn ignored(&self) -> Result<usize, String> {
        self.count("ignored")
    }

    fn lines(&self, ending: &str) -> usize {
        self.text.lines().filter(|line| line.ends_with(ending)).count()
    }
}

fn check(expectation: &str, is_met: bool) -> Result<(), String> {
    if is_met { Ok(()) } else { Err(format!("not met: {expectation}")) }
}

fn a_list_starts_no_server() -> Result<(), String> {
    let began = Instant::now();
    // With this fault a server that is started would take until its timeout.
    let list = run_tests("program", &["--list"], Some("never-answers"))?.with_code(0)?;
    check("the list has the cases of the program", list.lines(": test") == run_tests("program", &[], None)?.tests()?)?;
    check("the list takes no time", began.elapsed() < limits::here(limits::TEST_LIST))?;
    list.shows("tools/call/unknown-tool: test").map(drop)
}

fn a_server_in_the_process_passes() -> Result<(), String> {
    let all = run_tests("in_process", &[], None)?.with_code(0)?;
    let listed = run_tests("in_process", &["--list"], None)?.with_code(0)?.lines(": test");
    check(&format!("each of {listed} listed tests runs"), all.tests()? == listed)?;
    // A skipped case has a reason.
    all.shows("ignored (it is for servers with the completions capability)")?.shows("test result: ok").map(drop)
}

fn a_program_passes() -> Result<(), String> {
    let part = run_tests("program", &["tools/list"], None)?.with_code(0)?;
    check("only the filtered tests ran", part.lines("... ok") < 60 && part.lines("... ok") > 5)?;
    part.shows("tools/list/result-array").map(drop)
}

fn an_exact_name_runs_one_case() -> Result<(), String> {
    for name in ["in_process", "program"] {
        run_tests(name, &["--exact", "tools/call/unknown-tool"], None)?
            .with_code(0)?
            .shows("1 passed; 0 failed; 0 ignored")?;
    }
    Ok(())
}

/// The case that must fail, and its fault.
const CASE: &str = "content/structured-conforms";
const FAULT: &str = "structured-mismatch";

fn a_fault_fails_its_case() -> Result<(), String> {
    let alone = run_tests("program", &["--exact", CASE], Some(FAULT))?.with_code(101)?;
    alone.shows("requirement: ")?.shows("sent ")?.shows(&format!("cargo test -- --exact {CASE}"))?;
    let all = run_tests("program", &[], Some(FAULT))?.with_code(101)?;
    check("the other tests pass", all.lines("... ok") + all.ignored()? + 1 == all.tests()?)
}

fn the_list_suits_nextest() -> Result<(), String> {
    let list = run_tests("in_process", &["--list", "--format", "terse"], None)?.with_code(0)?;
    let others = list.text.lines().filter(|line| !line.is_empty() && !line.ends_with(": test")).count();
    check("the list has only tests", others == 0 && list.lines(": test") > 0)?;
    let ignored = run_tests("in_process", &["--list", "--format", "terse", "--ignored"], None)?.with_code(0)?;
    check("no test is ignored before it runs", ignored.lines(": test") == 0)?;
    run_tests("in_process", &["--exact", CASE, "--nocapture"], None)?.with_code(0).map(drop)
}
