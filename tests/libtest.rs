//! The cases as tests of a user's crate: runs the test binaries of `tests/harness/` as a user does.
//!
//! Cargo has built them into the folder of this binary. `cargo nextest` is run if it is installed; with
//! `MCP_CONFORMANCE_NEXTEST=required` it must be. What nextest requires of a test binary is checked in any case.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use libtest_mimic::{Completion, Trial};

use crate::HALF_CORES;

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Problem>| {
        Trial::ignorable_test(format!("libtest/{name}"), move || {
            let _core = HALF_CORES.take(2);
            match test() {
                Ok(()) => Ok(Completion::Completed),
                Err(Problem::Failed(message)) => Err(message.into()),
                Err(Problem::NotAvailable(message)) => Ok(Completion::ignored_with(message)),
            }
        })
    };
    vec![
        trial("a-list-starts-no-server-and-has-every-case", a_list_starts_no_server),
        trial("a-server-in-the-process-passes", a_server_in_the_process_passes),
        trial("a-program-passes-the-filtered-cases", a_program_passes),
        trial("an-exact-name-runs-one-case", an_exact_name_runs_one_case),
        trial("a-fault-fails-its-case-with-evidence", a_fault_fails_its_case),
        trial("the-list-suits-nextest", the_list_suits_nextest),
        trial("nextest-runs-the-tests", nextest_runs_the_tests),
    ]
}

enum Problem {
    Failed(String),
    NotAvailable(String),
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

/// The newest test binary of this name.
fn binary(name: &str) -> Result<PathBuf, Problem> {
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
        .ok_or_else(|| Problem::NotAvailable(format!("{name} is not built: cargo test --all-features builds it")))
}

/// The result of a command: its exit code and its output.
struct Output {
    code: Option<i32>,
    text: String,
}

fn run(mut command: Command) -> Result<Output, Problem> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(Output { code: output.status.code(), text: format!("{out}{error}") })
}

/// Runs a test binary with these arguments, against a server with this fault.
fn run_tests(name: &str, arguments: &[&str], fault: Option<&str>) -> Result<Output, Problem> {
    let mut command = Command::new(binary(name)?);
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MCP_CONFORMANCE_FAULT");
    if let Some(fault) = fault {
        command.env("MCP_CONFORMANCE_FAULT", fault);
    }
    run(command)
}

impl Output {
    fn with_code(self, code: i32) -> Result<Self, Problem> {
        if self.code == Some(code) {
            Ok(self)
        } else {
            Err(format!("exit code {:?}:\n{}", self.code, self.text).into())
        }
    }

    fn shows(self, expected: &str) -> Result<Self, Problem> {
        if self.text.contains(expected) {
            Ok(self)
        } else {
            Err(format!("`{expected}` is not in:\n{}", self.text).into())
        }
    }

    fn lines(&self, ending: &str) -> usize {
        self.text.lines().filter(|line| line.ends_with(ending)).count()
    }
}

fn check(expectation: &str, is_met: bool) -> Result<(), Problem> {
    if is_met { Ok(()) } else { Err(format!("not met: {expectation}").into()) }
}

fn a_list_starts_no_server() -> Result<(), Problem> {
    let began = Instant::now();
    // With this fault a server that is started would take until its timeout.
    let list = run_tests("program", &["--list"], Some("never-answers"))?.with_code(0)?;
    check("the list has at least 150 tests", list.lines(": test") >= 150)?;
    check("the list takes less than 4 seconds", began.elapsed() < Duration::from_secs(4))?;
    list.shows("tools/call/unknown-tool: test").map(drop)
}

fn a_server_in_the_process_passes() -> Result<(), Problem> {
    let all = run_tests("in_process", &[], None)?.with_code(0)?;
    let passed = all.lines("... ok");
    check(&format!("at least 150 pass, and {passed} do"), passed >= 150)?;
    // A skipped case has a reason.
    all.shows("ignored (it is for servers with the completions capability)")?.shows("test result: ok").map(drop)
}

fn a_program_passes() -> Result<(), Problem> {
    let part = run_tests("program", &["tools/list"], None)?.with_code(0)?;
    check("only the filtered tests ran", part.lines("... ok") < 60 && part.lines("... ok") > 5)?;
    part.shows("tools/list/result-array").map(drop)
}

fn an_exact_name_runs_one_case() -> Result<(), Problem> {
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

fn a_fault_fails_its_case() -> Result<(), Problem> {
    let alone = run_tests("program", &["--exact", CASE], Some(FAULT))?.with_code(101)?;
    alone.shows("requirement: ")?.shows("sent ")?.shows(&format!("cargo test -- --exact {CASE}"))?;
    let all = run_tests("program", &[], Some(FAULT))?.with_code(101)?;
    check("the other tests pass", all.lines("... ok") >= 150)
}

fn the_list_suits_nextest() -> Result<(), Problem> {
    let list = run_tests("in_process", &["--list", "--format", "terse"], None)?.with_code(0)?;
    let others = list.text.lines().filter(|line| !line.is_empty() && !line.ends_with(": test")).count();
    check("the list has only tests", others == 0 && list.lines(": test") >= 150)?;
    let ignored = run_tests("in_process", &["--list", "--format", "terse", "--ignored"], None)?.with_code(0)?;
    check("no test is ignored before it runs", ignored.lines(": test") == 0)?;
    run_tests("in_process", &["--exact", CASE, "--nocapture"], None)?.with_code(0).map(drop)
}

fn nextest_runs_the_tests() -> Result<(), Problem> {
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    };
    let mut version = cargo();
    version.args(["nextest", "--version"]);
    if run(version)?.code != Some(0) {
        let message = "cargo nextest is not installed: cargo install cargo-nextest --locked".to_owned();
        let required = std::env::var_os("MCP_CONFORMANCE_NEXTEST").is_some_and(|value| value == "required");
        return Err(if required { Problem::Failed(message) } else { Problem::NotAvailable(message) });
    }
    let mut tests = cargo();
    tests.args(["nextest", "run", "--color", "never", "--all-features", "--test", "program", "--retries", "1"]);
    tests.args(["-E", "test(/^lifecycle.*version/) | test(=content/structured-conforms)"]);
    tests.env("MCP_CONFORMANCE_FAULT", FAULT);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (config, junit) = (folder.path().join("nextest.toml"), folder.path().join("junit.xml"));
    let text = format!("[profile.ci.junit]\npath = {:?}\n", junit.display().to_string());
    std::fs::write(&config, text).map_err(|error| error.to_string())?;
    tests.arg("--config-file").arg(&config).args(["--profile", "ci"]);
    let output = run(tests)?.with_code(100)?;
    check("other tests pass", output.text.contains("PASS [") && output.text.contains(" 1 failed"))?;
    output.shows("requirement: ")?;
    let text = std::fs::read_to_string(junit).map_err(|error| format!("nextest writes no JUnit: {error}"))?;
    check_junit(&text)
}

/// The `JUnit` report of nextest: a test case for each case, and the finding as the output of the one that fails.
fn check_junit(text: &str) -> Result<(), Problem> {
    let report = quick_junit::Report::deserialize_from_str(text).map_err(|error| format!("JUnit: {error}"))?;
    let cases: Vec<&quick_junit::TestCase> = report.test_suites.iter().flat_map(|suite| &suite.test_cases).collect();
    let is_failed = |case: &&&quick_junit::TestCase| {
        matches!(
            &case.status,
            quick_junit::TestCaseStatus::NonSuccess { kind: quick_junit::NonSuccessKind::Failure, .. }
        )
    };
    let failed: Vec<&str> = cases.iter().filter(is_failed).map(|case| case.name.as_str()).collect();
    if failed != [CASE] || cases.len() < 2 {
        return Err(format!("{} test cases, of which these fail: {failed:?}\n{text}", cases.len()).into());
    }
    let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let case = document.descendants().find(|node| node.attribute("name") == Some(CASE));
    let shown: String = case.into_iter().flat_map(|case| case.descendants()).filter_map(|node| node.text()).collect();
    check("the output of the failing test is the finding", shown.contains("requirement: "))
}
