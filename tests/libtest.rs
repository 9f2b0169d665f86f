//! The cases as tests of a user's crate: `tests/harness/` is one, and these run it as a user does.
//!
//! Its binaries are those that cargo has built beside this one. `cargo nextest` is run where it is installed, and
//! missed where `MCP_CONFORMANCE_NEXTEST=required` is set; what it asks of a test binary is held either way.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use libtest_mimic::{Completion, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Outcome>| {
        Trial::ignorable_test(format!("libtest/{name}"), move || match test() {
            Ok(()) => Ok(Completion::Completed),
            Err(Outcome::Failed(told)) => Err(told.into()),
            Err(Outcome::NotThere(told)) => Ok(Completion::ignored_with(told)),
        })
    };
    vec![
        trial("a-list-starts-nothing-and-has-every-case", a_list_starts_nothing),
        trial("a-server-within-the-process-passes", a_server_within_the_process_passes),
        trial("a-program-passes-what-it-is-filtered-for", a_program_passes),
        trial("one-case-alone-is-judged-alone", one_case_alone),
        trial("a-fault-fails-its-case-with-its-proof", a_fault_fails_its_case),
        trial("what-nextest-asks-for-is-answered", what_nextest_asks_for),
        trial("nextest-runs-them", nextest_runs_them),
    ]
}

enum Outcome {
    Failed(String),
    NotThere(String),
}

impl From<String> for Outcome {
    fn from(told: String) -> Self {
        Self::Failed(told)
    }
}

/// The test binary of a name: of several that cargo has left there, the newest.
fn binary(name: &str) -> Result<PathBuf, Outcome> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or_else(|| "it stands nowhere".to_owned())?;
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
        .ok_or_else(|| Outcome::NotThere(format!("{name} is not built: cargo test --all-features builds it")))
}

/// What came of a command: its exit code, and everything that it wrote.
struct Ran {
    code: Option<i32>,
    told: String,
}

fn run(mut command: Command) -> Result<Ran, Outcome> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(Ran { code: output.status.code(), told: format!("{out}{error}") })
}

fn ran(name: &str, words: &[&str], fault: Option<&str>) -> Result<Ran, Outcome> {
    let mut command = Command::new(binary(name)?);
    command.args(words).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MCP_CONFORMANCE_FAULT");
    if let Some(fault) = fault {
        command.env("MCP_CONFORMANCE_FAULT", fault);
    }
    run(command)
}

impl Ran {
    fn with_code(self, code: i32) -> Result<Self, Outcome> {
        if self.code == Some(code) {
            Ok(self)
        } else {
            Err(format!("exit code {:?}:\n{}", self.code, self.told).into())
        }
    }

    fn says(self, wanted: &str) -> Result<Self, Outcome> {
        if self.told.contains(wanted) { Ok(self) } else { Err(format!("`{wanted}` is not in:\n{}", self.told).into()) }
    }

    fn lines(&self, ending: &str) -> usize {
        self.told.lines().filter(|line| line.ends_with(ending)).count()
    }
}

fn check(what: &str, holds: bool) -> Result<(), Outcome> {
    if holds { Ok(()) } else { Err(format!("it does not hold: {what}").into()) }
}

fn a_list_starts_nothing() -> Result<(), Outcome> {
    let began = Instant::now();
    // A server that ends at once would be seen, and so would one that is waited for.
    let list = ran("program", &["--list"], Some("never-answers"))?.with_code(0)?;
    check("it lists at least 150 trials", list.lines(": test") >= 150)?;
    check("it takes no time", began.elapsed() < Duration::from_secs(4))?;
    list.says("tools/call/unknown-tool: test").map(drop)
}

fn a_server_within_the_process_passes() -> Result<(), Outcome> {
    let all = ran("in_process", &[], None)?.with_code(0)?;
    let passed = all.lines("... ok");
    check(&format!("at least 150 pass, and {passed} do"), passed >= 150)?;
    // A skip says why.
    all.says("ignored (it is for servers with the completions capability)")?.says("test result: ok").map(drop)
}

fn a_program_passes() -> Result<(), Outcome> {
    let part = ran("program", &["tools/list"], None)?.with_code(0)?;
    check("only what was filtered for ran", part.lines("... ok") < 60 && part.lines("... ok") > 5)?;
    part.says("tools/list/result-array").map(drop)
}

fn one_case_alone() -> Result<(), Outcome> {
    for name in ["in_process", "program"] {
        ran(name, &["--exact", "tools/call/unknown-tool"], None)?
            .with_code(0)?
            .says("1 passed; 0 failed; 0 ignored")?;
    }
    Ok(())
}

/// The case that is to fail, and the fault that it names.
const CASE: &str = "content/structured-conforms";
const FAULT: &str = "structured-mismatch";

fn a_fault_fails_its_case() -> Result<(), Outcome> {
    let alone = ran("program", &["--exact", CASE], Some(FAULT))?.with_code(101)?;
    alone.says("requirement: ")?.says("sent ")?.says(&format!("cargo test -- --exact {CASE}"))?;
    let all = ran("program", &[], Some(FAULT))?.with_code(101)?;
    check("the others pass", all.lines("... ok") >= 150)
}

fn what_nextest_asks_for() -> Result<(), Outcome> {
    let list = ran("in_process", &["--list", "--format", "terse"], None)?.with_code(0)?;
    let others = list.told.lines().filter(|line| !line.is_empty() && !line.ends_with(": test")).count();
    check("the list is of tests and of nothing else", others == 0 && list.lines(": test") >= 150)?;
    let ignored = ran("in_process", &["--list", "--format", "terse", "--ignored"], None)?.with_code(0)?;
    check("none is ignored before it runs", ignored.lines(": test") == 0)?;
    ran("in_process", &["--exact", CASE, "--nocapture"], None)?.with_code(0).map(drop)
}

fn nextest_runs_them() -> Result<(), Outcome> {
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    };
    let mut version = cargo();
    version.args(["nextest", "--version"]);
    if run(version)?.code != Some(0) {
        let told = "cargo nextest is not installed: cargo install cargo-nextest --locked".to_owned();
        let required = std::env::var_os("MCP_CONFORMANCE_NEXTEST").is_some_and(|value| value == "required");
        return Err(if required { Outcome::Failed(told) } else { Outcome::NotThere(told) });
    }
    let mut words = cargo();
    words.args(["nextest", "run", "--color", "never", "--features", "harness", "--test", "program", "--retries", "1"]);
    words.args(["-E", "test(/^lifecycle.*version/) | test(=content/structured-conforms)"]);
    words.env("MCP_CONFORMANCE_FAULT", FAULT);
    let told = run(words)?.with_code(100)?;
    check("others pass", told.told.contains("PASS [") && told.told.contains(" 1 failed"))?;
    told.says("requirement: ").map(drop)
}
