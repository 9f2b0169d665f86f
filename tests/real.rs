//! The judge held against real servers: what it finds in each is what its baseline lists, no more and no less.
//!
//! A baseline (`tests/baselines/<server>.jsonc`) was checked by hand, line by line, against the messages on the
//! wire and the text of the specification. The servers are pinned and installed by `tests/servers/install.sh`;
//! where one is not there its trial is ignored, unless `MCP_CONFORMANCE_SERVERS=required` is set.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::case::{Baseline, BaselineEntry};
use mcp_conformance::report::{FailOn, Options, Report, baseline_comparison};
use mcp_conformance::spec::{Revision, RevisionSet};
use mcp_conformance::verdict::Verdict;
use serde_json::json;
use tempfile::TempDir;

use crate::trial;

/// A real server: how it is started, and what has to be there for that.
struct Server {
    name: &'static str,
    /// The file that is there once it is installed, below the folder that [`Server::root`] names.
    file: &'static str,
    /// Programs that it needs from the search path.
    programs: &'static [&'static str],
    /// What has to be run when it is not there.
    remedy: &'static str,
    /// Prepares its folder; its options for the judge and its own arguments.
    prepare: fn(&Path) -> Result<Start, String>,
}

/// What the command line of one run has beside the program of the server.
#[derive(Default)]
struct Start {
    options: Vec<String>,
    arguments: Vec<String>,
}

const INSTALL: &str = "tests/servers/install.sh";

const SERVERS: [Server; 10] = [
    Server {
        name: "everything",
        file: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        programs: &["node"],
        remedy: INSTALL,
        prepare: |_| Ok(Start { arguments: vec!["stdio".to_owned()], ..Start::default() }),
    },
    Server {
        name: "filesystem",
        file: "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js",
        programs: &["node"],
        remedy: INSTALL,
        prepare: |folder| {
            write(&folder.join("hello.txt"), "hello\n")?;
            Ok(Start { options: in_folder(folder), arguments: vec![folder.display().to_string()] })
        },
    },
    Server {
        name: "memory",
        file: "node_modules/@modelcontextprotocol/server-memory/dist/index.js",
        programs: &["node"],
        remedy: INSTALL,
        prepare: |folder| {
            let file = format!("MEMORY_FILE_PATH={}", folder.join("memory.jsonl").display());
            Ok(Start { options: vec!["--env".to_owned(), file], ..Start::default() })
        },
    },
    Server {
        name: "time",
        file: ".venv/bin/mcp-server-time",
        programs: &[],
        remedy: INSTALL,
        prepare: |_| Ok(Start { arguments: words("--local-timezone UTC"), ..Start::default() }),
    },
    Server {
        name: "git",
        file: ".venv/bin/mcp-server-git",
        programs: &["git"],
        remedy: INSTALL,
        prepare: |folder| {
            make_repository(folder)?;
            let arguments = vec!["--repository".to_owned(), folder.display().to_string()];
            Ok(Start { options: in_folder(folder), arguments })
        },
    },
    Server {
        name: "rmcp",
        file: "rmcp-server",
        programs: &[],
        remedy: "cargo build --examples",
        prepare: |_| Ok(Start::default()),
    },
    Server {
        name: "everything-http",
        file: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        programs: &["node"],
        remedy: INSTALL,
        prepare: |_| {
            let port = free_port()?;
            let mut start = over_http(port, "mcp");
            start.options.extend(["--env".to_owned(), format!("PORT={port}")]);
            Ok(Start { arguments: vec!["streamableHttp".to_owned()], ..start })
        },
    },
    Server {
        name: "everything-sse",
        file: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        programs: &["node"],
        remedy: INSTALL,
        prepare: |_| {
            let port = free_port()?;
            let mut start = over_http(port, "sse");
            start.options.extend(["--env".to_owned(), format!("PORT={port}")]);
            Ok(Start { arguments: vec!["sse".to_owned()], ..start })
        },
    },
    Server {
        name: "python-http",
        file: ".venv/bin/python",
        programs: &[],
        remedy: INSTALL,
        prepare: |_| {
            let port = free_port()?;
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/python/server.py");
            Ok(Start { arguments: vec![script.display().to_string(), port.to_string()], ..over_http(port, "mcp") })
        },
    },
    Server {
        name: "rmcp-http",
        file: "rmcp-server",
        programs: &[],
        remedy: "cargo build --examples",
        prepare: |_| {
            let port = free_port()?;
            Ok(Start { arguments: vec![format!("127.0.0.1:{port}")], ..over_http(port, "mcp") })
        },
    },
];

/// A port of this machine that nobody listens at.
fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// The options for a server that listens at a port.
fn over_http(port: u16, path: &str) -> Start {
    let address = format!("http://127.0.0.1:{port}/{path}");
    Start { options: vec!["--url".to_owned(), address], ..Start::default() }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn in_folder(folder: &Path) -> Vec<String> {
    vec!["--cwd".to_owned(), folder.display().to_string()]
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn make_repository(folder: &Path) -> Result<(), String> {
    write(&folder.join("hello.txt"), "hello\n")?;
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "--message", "First"]] {
        let output = Command::new("git").current_dir(folder).args(author).args(arguments).output();
        let output = output.map_err(|error| format!("git: {error}"))?;
        if !output.status.success() {
            return Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

impl Server {
    /// Whether it is built with the suite.
    fn is_example(&self) -> bool {
        self.file == "rmcp-server"
    }

    /// The folder that its file stands in.
    fn root(&self) -> PathBuf {
        if !self.is_example() {
            return Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
        }
        // Cargo builds the examples beside the tests: target/<profile>/examples and target/<profile>/deps.
        let own = std::env::current_exe().unwrap_or_default();
        own.ancestors().nth(2).map(|profile| profile.join("examples")).unwrap_or_default()
    }

    fn is_there(&self) -> bool {
        let runs = |program: &&str| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        self.path().is_file() && self.programs.iter().all(runs)
    }

    fn path(&self) -> PathBuf {
        self.root().join(format!("{}{}", self.file, if self.is_example() { std::env::consts::EXE_SUFFIX } else { "" }))
    }

    /// The program and its first argument, if the server is a script.
    fn command(&self) -> Vec<String> {
        let path = self.path().display().to_string();
        if self.file.rsplit('.').next() == Some("js") { vec!["node".to_owned(), path] } else { vec![path] }
    }

    fn baseline(&self) -> PathBuf {
        baselines().join(format!("{}.jsonc", self.name))
    }
}

fn baselines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/baselines")
}

/// Two at a time at most: a server that has to wait for a processor looks like one that hangs.
static LANES: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_SERVERS").is_some_and(|value| value == "required");
    let mut trials = vec![
        trial("real/every-baseline-is-of-a-server", every_baseline_is_of_a_server),
        trial("real/a-finding-that-is-not-listed-is-told", a_finding_that_is_not_listed_is_told),
        trial("real/a-line-that-is-not-found-is-told", a_line_that_is_not_found_is_told),
        trial("real/what-could-not-be-judged-is-told", what_could_not_be_judged_is_told),
    ];
    for (number, server) in SERVERS.iter().enumerate() {
        let absent = !server.is_there();
        trials.push(
            trial(format!("real/{}", server.name), move || {
                if absent {
                    return Err(format!("the server is not there: run {}", server.remedy));
                }
                let _alone = LANES[number % LANES.len()].lock().unwrap_or_else(PoisonError::into_inner);
                it_shows_what_its_baseline_lists(server)
            })
            .with_ignored_flag(absent && !required),
        );
    }
    trials
}

/// Reads the baseline of a server, which says more than one has to: the revisions that the server speaks, and
/// with each line its revisions and its verdict.
fn read(path: &Path) -> Result<Baseline, String> {
    let name = path.display();
    let (baseline, _) = Baseline::load(path).map_err(|error| error.to_string())?;
    let spoken = baseline.revisions.ok_or_else(|| format!("{name}: it does not say which `revisions` are spoken"))?;
    for line in &baseline.entries {
        let told = format!("{name}: the line of {} and {}", line.case, line.requirement);
        let revisions = line.revisions.ok_or_else(|| format!("{told} names no revisions"))?;
        if line.verdict.is_none() || line.expires.is_some() {
            return Err(format!("{told} needs a verdict, and no day on which it expires"));
        }
        if revisions.intersection(spoken) != revisions {
            return Err(format!("{told} names a revision that the server does not speak"));
        }
    }
    Ok(baseline)
}

fn it_shows_what_its_baseline_lists(server: &Server) -> Result<(), String> {
    let baseline = read(&server.baseline())?;
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", server.name));
    let report = judge(server, &kept)?;
    let told = compare(&baseline, &report);
    if told.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{told}\nThe baseline is {}, the report with every message {}.",
        server.baseline().display(),
        kept.display()
    ))
}

/// How each server is fuzzed, in the newest revision: few calls, as many however busy the machine is, and nothing
/// that is told by the clock alone.
const FUZZ: [&str; 10] =
    ["--fuzz", "40", "--fuzz-time", "10m", "--regressions", "none", "--skip", "fuzz/latency", "--skip", "fuzz/memory"];

/// Runs the program on a server in every revision that it speaks.
fn judge(server: &Server, kept: &Path) -> Result<Report, String> {
    // The server sees the folder's real name, which is what some compare with.
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let real = folder.path().canonicalize().map_err(|error| error.to_string())?;
    let start = (server.prepare)(&real)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-conformance"));
    // A busy machine makes a slow server, which is no finding.
    command.args(["--timeout", "20s", "--startup-timeout", "120s", "--quiet", "--seed", "1"]);
    let over_http = start.options.iter().any(|option| option == "--url");
    command.args(if over_http { &["--fuzz", "off"][..] } else { &FUZZ });
    command.arg("--report").arg(format!("json={}", kept.display()));
    command.args(start.options).arg("--").args(server.command()).args(start.arguments);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let told = || format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("{}: {}", output.status, told()));
    }
    let text = std::fs::read_to_string(kept).map_err(|error| format!("no report ({error}): {}", told()))?;
    serde_json::from_str(&text).map_err(|error| format!("the report cannot be read ({error}): {}", told()))
}

/// Everything in which a report differs from a baseline, with what to do about each; empty if nothing.
fn compare(baseline: &Baseline, report: &Report) -> String {
    let mut told = String::new();
    let mut tell = |text: String| {
        let _infallible = writeln!(told, "- {text}");
    };
    match report.summary.as_ref().map(|summary| &summary.problem) {
        None => tell("the run was cut off".to_owned()),
        Some(Some(problem)) => tell(format!("the run met a problem: {}; {}", problem.message, problem.hint)),
        Some(None) => {}
    }
    if report.targets.is_empty() {
        tell("nothing was judged".to_owned());
    }
    for result in report.results().filter(|result| result.verdict == Verdict::Error) {
        let reason = result.reason.as_deref().unwrap_or("no reason");
        tell(format!(
            "{} could not be judged in {}: {reason}; no real server may draw that, so mend the judge or the case",
            result.case, result.revision
        ));
    }
    // Warnings count here, and a sample that was narrowed is as whole as it means to be.
    let mut held = report.clone();
    held.options = Options::default();
    held.options.fail_on = FailOn::Should;
    baseline_comparison::apply_baseline(&mut held, baseline, "the baseline", |_| true);
    let held = held.baseline.unwrap_or_default();
    for line in &held.new {
        let made = |result: &&CaseResult| result.case == line.case;
        let finding = report
            .results()
            .filter(made)
            .flat_map(|result| &result.findings)
            .find(|finding| finding.requirement == line.requirement && line.within().contains(finding.revision));
        let (message, actual) = finding.map(|finding| (&*finding.message, &*finding.actual)).unwrap_or_default();
        let line = json!({
            "case": line.case, "requirement": line.requirement, "revisions": line.revisions,
            "verdict": line.verdict, "reason": "…",
        });
        tell(format!(
            "not listed: {message} — {actual}\n  Check it by hand. If it is a false alarm, mend the case; if it is right, add\n  {line}"
        ));
    }
    held.outdated_messages().for_each(&mut tell);
    // For a server of a pinned version nothing may be left open either.
    for line in &baseline.entries {
        let skipped = |result: &&CaseResult| {
            result.case == line.case && result.verdict == Verdict::Skip && line.within().contains(result.revision)
        };
        for result in report.results().filter(skipped) {
            tell(format!("{} by {} was not looked for in {}", line.requirement, line.case, result.revision));
        }
    }
    told
}

fn every_baseline_is_of_a_server() -> Result<(), String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(baselines()).map_err(|error| error.to_string())?.flatten() {
        let path = entry.path();
        read(&path)?;
        names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    let mut servers = SERVERS.map(|server| server.name.to_owned());
    servers.sort_unstable();
    if names == servers { Ok(()) } else { Err(format!("the baselines are of {names:?}, the servers are {servers:?}")) }
}

/// A run of one case against the built-in server with a fault, and the baseline that it fits.
fn sample() -> Result<(Baseline, Report), String> {
    let kept = TempDir::new().map_err(|error| error.to_string())?;
    let path = kept.path().join("report.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-conformance"));
    command.args(["--quiet", "--revision", "2025-06-18", "--select", "tools/call/unknown-tool", "--report"]);
    command.arg(format!("json={}", path.display())).arg("--").arg(env!("CARGO_BIN_EXE_mcp-conformance"));
    command.args(["serve", "--fault", "unknown-tool-is-error"]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let line = BaselineEntry {
        case: "tools/call/unknown-tool".to_owned(),
        requirement: "tools-call-unknown-tool-error".to_owned(),
        tool: None,
        revisions: Some(RevisionSet::default().with(Revision::V2025_06_18)),
        verdict: Some(Verdict::Warn),
        reason: "The fault.".to_owned(),
        expires: None,
    };
    let baseline = Baseline::of(line.revisions, vec![line]);
    let told = compare(&baseline, &report);
    if told.is_empty() { Ok((baseline, report)) } else { Err(format!("the sample is not as listed:\n{told}")) }
}

fn says(told: &str, wanted: &str) -> Result<(), String> {
    if told.contains(wanted) { Ok(()) } else { Err(format!("`{wanted}` is not in: {told}")) }
}

fn a_finding_that_is_not_listed_is_told() -> Result<(), String> {
    let (baseline, report) = sample()?;
    says(&compare(&Baseline::of(baseline.revisions, Vec::new()), &report), "not listed")
}

fn a_line_that_is_not_found_is_told() -> Result<(), String> {
    let (baseline, mut report) = sample()?;
    let mut other = baseline.clone();
    other.entries[0].verdict = Some(Verdict::Fail);
    says(&compare(&other, &report), "not listed")?;
    says(&compare(&other, &report), "not found in 2025-06-18")?;
    report.targets[0].results[0].findings.clear();
    says(&compare(&baseline, &report), "not found in 2025-06-18")
}

fn what_could_not_be_judged_is_told() -> Result<(), String> {
    let (baseline, mut report) = sample()?;
    report.targets[0].results[0].verdict = Verdict::Error;
    says(&compare(&baseline, &report), "could not be judged")?;
    report.targets.clear();
    says(&compare(&baseline, &report), "nothing was judged")?;
    let other = Baseline::of(Some(RevisionSet::ALL), baseline.entries);
    says(&compare(&other, &sample()?.1), "`revisions` in the baseline says 2024-10-07..2026-07-28")
}
