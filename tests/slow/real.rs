//! Real servers: the findings for each are exactly those that its baseline lists, and failures reproduce by the printed
//! command.
//!
//! Every entry of a baseline (`tests/baselines/<server>.jsonc`) was checked by hand against the messages on the wire and
//! the text of the specification. The servers are pinned and installed by `tests/servers/install.sh`; the trial of a
//! missing server is ignored unless `MCP_CONFORMANCE_SERVERS=required` is set.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::address::unused_address;
use crate::slow::installed::{servers, servers_are_required};
use crate::support::{PROGRAM, Trial, program, program_command, trial};
use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::baseline::{Baseline, BaselineEntry};
use mcp_conformance::report::{Conclusion, FailOn, Options, Report, baseline_comparison};
use mcp_conformance::spec::{Revision, RevisionSet};
use mcp_conformance::verdict::Verdict;
use mcp_conformance::{Accept, Judge, Settings};
use serde_json::json;
use tempfile::TempDir;

/// A real server: how it is started, and what that requires.
struct Server {
    name: &'static str,
    /// The file that exists if it is installed, relative to [`Server::root`].
    file: &'static str,
    /// Programs that it needs on PATH.
    programs: &'static [&'static str],
    /// The command that installs it.
    install_command: &'static str,
    /// Prepares its folder, and returns the options of the program and the arguments of the server.
    prepare: fn(&Path) -> Result<Start, String>,
}

/// The command line of a run, except for the program of the server.
#[derive(Default)]
struct Start {
    options: Vec<String>,
    arguments: Vec<String>,
}

impl Start {
    fn is_over_http(&self) -> bool {
        self.options.iter().any(|option| option == "--url")
    }
}

/// A clean server of one tool on an SDK.
struct CleanServer {
    /// The SDK as it is named in findings.
    sdk: &'static str,
    /// The interpreter, found on PATH or below `tests/servers`.
    interpreter: &'static str,
    /// The file below `tests/servers/clean`.
    file: &'static str,
    /// What exists if the SDK is installed, relative to `tests/servers`.
    package: &'static str,
    revisions: &'static [&'static str],
}

/// In 2026-07-28, what the TypeScript SDK 2 does depends on the order of the cases. Processes of the Python SDKs take a
/// second to start, so that they are judged in one revision.
const CLEAN_SERVERS: [CleanServer; 6] = [
    CleanServer {
        sdk: "TypeScript SDK 1",
        interpreter: "node",
        file: "typescript-1.mjs",
        package: "node_modules/@modelcontextprotocol/sdk",
        revisions: &["2025-03-26", "2025-11-25"],
    },
    CleanServer {
        sdk: "TypeScript SDK 2",
        interpreter: "node",
        file: "typescript-2.mjs",
        package: "node_modules/@modelcontextprotocol/server",
        revisions: &["2025-03-26", "2025-11-25"],
    },
    CleanServer {
        sdk: "Python SDK 1",
        interpreter: ".venv-fastmcp-2/bin/python",
        file: "python-1.py",
        package: ".venv-fastmcp-2/bin/python",
        revisions: &["2025-11-25"],
    },
    CleanServer {
        sdk: "Python SDK 2",
        interpreter: ".venv/bin/python",
        file: "python-2.py",
        package: ".venv/bin/python",
        revisions: &["2026-07-28"],
    },
    CleanServer {
        sdk: "FastMCP 2",
        interpreter: ".venv-fastmcp-2/bin/python",
        file: "fast-mcp.py",
        package: ".venv-fastmcp-2/bin/python",
        revisions: &["2025-11-25"],
    },
    CleanServer {
        sdk: "FastMCP 4",
        interpreter: ".venv/bin/python",
        file: "fast-mcp.py",
        package: ".venv/bin/python",
        revisions: &["2026-07-28"],
    },
];

const INSTALL_SCRIPT: &str = "tests/servers/install.sh";

const SERVERS: [Server; 16] = [
    Server {
        name: "everything",
        file: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |_| Ok(Start { arguments: vec!["stdio".to_owned()], ..Start::default() }),
    },
    Server {
        name: "filesystem",
        file: "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |folder| {
            write(&folder.join("hello.txt"), "hello\n")?;
            Ok(Start { options: in_folder(folder), arguments: vec![folder.display().to_string()] })
        },
    },
    Server {
        name: "memory",
        file: "node_modules/@modelcontextprotocol/server-memory/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |folder| {
            let file = format!("MEMORY_FILE_PATH={}", folder.join("memory.jsonl").display());
            Ok(Start { options: vec!["--env".to_owned(), file], ..Start::default() })
        },
    },
    Server {
        name: "time",
        file: ".venv/bin/mcp-server-time",
        programs: &[],
        install_command: INSTALL_SCRIPT,
        prepare: |_| Ok(Start { arguments: split_words("--local-timezone UTC"), ..Start::default() }),
    },
    Server {
        name: "git",
        file: ".venv/bin/mcp-server-git",
        programs: &["git"],
        install_command: INSTALL_SCRIPT,
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
        install_command: "cargo build --examples",
        prepare: |_| Ok(Start::default()),
    },
    Server {
        name: "everything-http",
        file: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |_| {
            let port = unused_address().port();
            let mut start = over_http(port, "mcp");
            start.options.extend(["--env".to_owned(), format!("PORT={port}")]);
            Ok(Start { arguments: vec!["streamableHttp".to_owned()], ..start })
        },
    },
    Server {
        name: "everything-sse",
        file: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |_| {
            let port = unused_address().port();
            let mut start = over_http(port, "sse");
            start.options.extend(["--env".to_owned(), format!("PORT={port}")]);
            Ok(Start { arguments: vec!["sse".to_owned()], ..start })
        },
    },
    Server {
        name: "python-http",
        file: ".venv/bin/python",
        programs: &[],
        install_command: INSTALL_SCRIPT,
        prepare: |_| {
            let port = unused_address().port();
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/python/server.py");
            Ok(Start { arguments: vec![script.display().to_string(), port.to_string()], ..over_http(port, "mcp") })
        },
    },
    Server {
        name: "rmcp-http",
        file: "rmcp-server",
        programs: &[],
        install_command: "cargo build --examples",
        prepare: |_| {
            let port = unused_address().port();
            Ok(Start { arguments: vec![format!("127.0.0.1:{port}")], ..over_http(port, "mcp") })
        },
    },
    // On the TypeScript SDK 2.
    Server {
        name: "budget-allocator",
        file: "node_modules/@modelcontextprotocol/server-budget-allocator/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |_| Ok(Start { arguments: vec!["--stdio".to_owned()], ..Start::default() }),
    },
    Server {
        name: "debug-http",
        file: "node_modules/@modelcontextprotocol/server-debug/dist/index.js",
        programs: &["node"],
        install_command: INSTALL_SCRIPT,
        prepare: |folder| {
            let port = unused_address().port();
            let mut start = over_http(port, "mcp");
            let log = folder.join("log").display().to_string();
            for variable in [format!("PORT={port}"), format!("DEBUG_LOG_FILE={log}")] {
                start.options.extend(["--env".to_owned(), variable]);
            }
            Ok(start)
        },
    },
    // A Go program. Of its tools it has only those that read its own configuration, so that it talks to no cluster.
    Server {
        name: "kubernetes",
        file: KUBERNETES_SERVER,
        programs: &[],
        install_command: INSTALL_SCRIPT,
        prepare: |folder| {
            let file = folder.join("config");
            write(&file, KUBERNETES_CONFIGURATION)?;
            let arguments = format!("--toolsets config --kubeconfig {}", file.display());
            Ok(Start { arguments: split_words(&arguments), ..Start::default() })
        },
    },
    // On FastMCP 4 and 2.
    Server {
        name: "calculator",
        file: ".venv/bin/calculator-mcp-server",
        programs: &[],
        install_command: INSTALL_SCRIPT,
        prepare: |_| Ok(Start::default()),
    },
    Server {
        name: "unit-converter",
        file: ".venv-fastmcp-2/bin/unit-converter-mcp",
        programs: &[],
        install_command: INSTALL_SCRIPT,
        prepare: |_| Ok(Start::default()),
    },
    // Resources only.
    Server {
        name: "resources-http",
        file: ".venv/bin/python",
        programs: &[],
        install_command: INSTALL_SCRIPT,
        prepare: |_| {
            let port = unused_address().port();
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/python/resources.py");
            Ok(Start { arguments: vec![script.display().to_string(), port.to_string()], ..over_http(port, "mcp") })
        },
    },
];

/// The program itself, as the script of the package prints to standard output when it is terminated.
const KUBERNETES_SERVER: &str = if cfg!(target_os = "macos") {
    if cfg!(target_arch = "aarch64") {
        "node_modules/kubernetes-mcp-server-darwin-arm64/bin/kubernetes-mcp-server-darwin-arm64"
    } else {
        "node_modules/kubernetes-mcp-server-darwin-amd64/bin/kubernetes-mcp-server-darwin-amd64"
    }
} else if cfg!(target_arch = "aarch64") {
    "node_modules/kubernetes-mcp-server-linux-arm64/bin/kubernetes-mcp-server-linux-arm64"
} else {
    "node_modules/kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64"
};

/// A cluster at a port of the loopback interface where nothing listens.
const KUBERNETES_CONFIGURATION: &str = r#"apiVersion: v1
kind: Config
clusters: [{ name: none, cluster: { server: "http://127.0.0.1:9" } }]
users: [{ name: nobody, user: {} }]
contexts: [{ name: none, context: { cluster: none, user: nobody } }]
current-context: none
"#;

/// The options for a server that listens at a port.
fn over_http(port: u16, path: &str) -> Start {
    let address = format!("http://127.0.0.1:{port}/{path}");
    Start { options: vec!["--url".to_owned(), address], ..Start::default() }
}

fn split_words(text: &str) -> Vec<String> {
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
    /// Whether it is an example of this package, built with the suite.
    fn is_example(&self) -> bool {
        self.file == "rmcp-server"
    }

    /// The folder that contains its file.
    fn root(&self) -> PathBuf {
        if !self.is_example() {
            return servers();
        }
        // Cargo builds the examples next to the tests: target/<profile>/examples and target/<profile>/deps.
        let executable = std::env::current_exe().unwrap_or_default();
        executable.ancestors().nth(2).map(|profile| profile.join("examples")).unwrap_or_default()
    }

    fn is_installed(&self) -> bool {
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

pub(crate) fn trials() -> Vec<Trial> {
    let required = servers_are_required();
    let mut trials = vec![
        trial("real/every-baseline-belongs-to-a-server", every_baseline_belongs_to_a_server),
        trial("real/an-unlisted-finding-is-reported", an_unlisted_finding_is_reported),
        trial("real/an-entry-without-finding-is-reported", an_entry_without_finding_is_reported),
        trial("real/a-case-that-cannot-be-judged-is-reported", a_case_that_cannot_be_judged_is_reported),
    ];
    for server in &SERVERS {
        let missing = !server.is_installed();
        trials.push(
            trial(format!("real/{}", server.name), move || {
                if missing {
                    return Err(format!("the server is not installed: run {}", server.install_command));
                }
                its_findings_match_the_baseline(server)
            })
            .with_ignored_flag(missing && !required),
        );
    }
    for server in &CLEAN_SERVERS {
        let missing = !servers().join(server.package).exists();
        let name = format!("real/clean/{}", server.sdk.to_lowercase().replace(' ', "-"));
        let clean = trial(name, move || a_clean_server_has_no_finding_of_its_author(server));
        trials.push(clean.with_ignored_flag(missing && !required));
        let name = format!("real/clean/http/{}", server.sdk.to_lowercase().replace(' ', "-"));
        let clean = trial(name, move || a_clean_server_over_http_has_no_finding_of_its_author(server));
        trials.push(clean.with_ignored_flag(missing && !required));
        let name = format!("real/without-tools/{}", server.sdk.to_lowercase().replace(' ', "-"));
        let judged = trial(name, move || a_server_without_tools_is_judged(server));
        trials.push(judged.with_ignored_flag(missing && !required));
    }
    if let Some(server) = SERVERS.iter().find(|server| server.is_example()) {
        trials.push(trial("real/without-tools/rmcp", || the_rust_sdk_without_tools_is_judged(server)));
    }
    let missing = !servers().join("node_modules").exists();
    let library = trial("real/clean/in-the-library", the_library_accepts_the_findings_of_the_sdk);
    trials.push(library.with_ignored_flag(missing && !required));
    trials
}

/// Reads the baseline of a server, which must have members that are optional elsewhere: the supported revisions, and
/// the revisions and the verdict of each entry.
fn read(path: &Path) -> Result<Baseline, String> {
    let name = path.display();
    let (baseline, _) = Baseline::load(path).map_err(|error| error.to_string())?;
    let supported = baseline.revisions.ok_or_else(|| format!("{name}: `revisions` is missing"))?;
    for entry in &baseline.entries {
        let described = format!("{name}: the entry for {} and {}", entry.case, entry.requirement);
        let revisions = entry.revisions.ok_or_else(|| format!("{described} names no revisions"))?;
        if entry.verdict.is_none() || entry.expires.is_some() {
            return Err(format!("{described} must have a verdict and no `expires` date"));
        }
        if revisions.intersection(supported) != revisions {
            return Err(format!("{described} names a revision that the server does not support"));
        }
    }
    Ok(baseline)
}

fn its_findings_match_the_baseline(server: &Server) -> Result<(), String> {
    let baseline = read(&server.baseline())?;
    let report_path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", server.name));
    // Some servers compare paths with the real path of the folder.
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let real = folder.path().canonicalize().map_err(|error| error.to_string())?;
    let start = (server.prepare)(&real)?;
    let report = judge(server, &start, &report_path)?;
    let differences = compare(&baseline, &report);
    if !differences.is_empty() {
        return Err(format!(
            "{differences}\nThe baseline is {}, the report with every message {}.",
            server.baseline().display(),
            report_path.display()
        ));
    }
    // Its sample server uses the defaults of the SDK, and no finding on it is the author's.
    if server.is_example() {
        let mut of_author = findings_of_the_author(&report, "rmcp", 10)?;
        // Over HTTP, the author has to say which origins are allowed.
        of_author.retain(|(case, _)| case != "http-security/origin-checked");
        if !of_author.is_empty() {
            return Err(format!("attributed to the author: {of_author:?}"));
        }
    }
    it_fits_the_terminal(&report_path)?;
    its_failures_reproduce(server, &start, &report)
}

/// Without `-v`, the text has at most this many lines whatever a server does.
const MAX_LINES: usize = 60;

fn it_fits_the_terminal(report_path: &Path) -> Result<(), String> {
    let mut command = program_command();
    let output = command.arg("report").arg(report_path).output().map_err(|error| error.to_string())?;
    let lines = String::from_utf8_lossy(&output.stdout).lines().count();
    if (10..=MAX_LINES).contains(&lines) { Ok(()) } else { Err(format!("{lines} lines: {}", report_path.display())) }
}

/// The cases that fail for a server and for no server before it in [`SERVERS`], as the baselines say.
fn cases_to_reproduce(server: &Server) -> Result<BTreeSet<String>, String> {
    let failed = |server: &Server| -> Result<BTreeSet<String>, String> {
        let entries = read(&server.baseline())?.entries.into_iter();
        let fails = |entry: &BaselineEntry| entry.verdict == Some(Verdict::Fail) && !entry.flaky;
        Ok(entries.filter(fails).map(|entry| entry.case).collect())
    };
    let mut cases = failed(server)?;
    for earlier in SERVERS.iter().take_while(|earlier| earlier.name != server.name) {
        let known = failed(earlier)?;
        cases.retain(|case| !known.contains(case));
    }
    Ok(cases)
}

/// Runs the printed command of a failure of each of these cases by a shell: the case fails again. The commands of a
/// server over HTTP share its port, so that they run one after another.
fn its_failures_reproduce(server: &Server, start: &Start, report: &Report) -> Result<(), String> {
    let mut commands = Vec::new();
    for case in cases_to_reproduce(server)? {
        let is_failure = |result: &&CaseResult| result.case == case && result.verdict == Verdict::Fail;
        let failure = report.results().filter(is_failure).flat_map(|result| &result.findings).next();
        let finding = failure.ok_or_else(|| format!("{case} does not fail in the report"))?;
        commands.push((case, finding.reproduce.clone()));
    }
    let at_once = if start.is_over_http() { 1 } else { 4 };
    for some in commands.chunks(at_once) {
        std::thread::scope(|scope| {
            let started: Vec<_> =
                some.iter().map(|(case, line)| scope.spawn(|| fails_again(case, line, start))).collect();
            started.into_iter().try_for_each(|run| run.join().map_err(|_| "a run panicked".to_owned())?)
        })?;
    }
    Ok(())
}

/// Runs a printed command by a shell that finds the program in its search path, with the variables that it refers to and
/// a report in addition.
fn fails_again(case: &str, line: &str, start: &Start) -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let report_path = folder.path().join("report.json");
    let option = format!("mcp-conformance --report json={}", report_path.display());
    let with_report = line.replacen("mcp-conformance", &option, 1);
    let programs = Path::new(PROGRAM).parent().map(|path| path.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", &with_report]).env("PATH", format!("{programs}:{path}")).stdin(Stdio::null());
    for pair in start.options.windows(2).filter(|pair| pair[0] == "--env") {
        shell.envs(pair[1].split_once('='));
    }
    let output = shell.output().map_err(|error| format!("sh: {error}"))?;
    let described = || {
        format!(
            "{line}
{}
{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let report = read_report(&report_path).map_err(|error| format!("{error}: {}", described()))?;
    let is_failure = |result: &CaseResult| result.case == case && result.verdict == Verdict::Fail;
    if output.status.code() == Some(1) && report.results().any(is_failure) {
        return Ok(());
    }
    Err(format!("{case} does not fail again: {}", described()))
}

/// A clean server of one tool on an SDK, below `tests/servers/clean`: no finding is attributed to its author, and
/// accepting those of the SDK leaves nothing that fails.
fn a_clean_server_has_no_finding_of_its_author(server: &CleanServer) -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let report_path = folder.path().join("report.json");
    judge_clean_server(server, server.revisions, None, &report_path)?;
    saved_findings_of_the_sdk_can_be_accepted(&report_path)
}

/// The same over HTTP, in the newest of its revisions.
fn a_clean_server_over_http_has_no_finding_of_its_author(server: &CleanServer) -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let newest = &server.revisions[server.revisions.len() - 1..];
    judge_clean_server(server, newest, Some(unused_address().port()), &folder.path().join("report.json"))
}

/// A server of one prompt over HTTP, in the newest of its revisions, is judged by as many cases as most others.
fn a_server_without_tools_is_judged(server: &CleanServer) -> Result<(), String> {
    let newest = &server.revisions[server.revisions.len() - 1..];
    let port = unused_address().port();
    its_prompt_is_judged(server.sdk, |report_path| {
        run_clean_server(server, newest, Some(port), &["prompt"], report_path)
    })
}

/// The example on the Rust SDK, with a prompt instead of its tools.
fn the_rust_sdk_without_tools_is_judged(server: &Server) -> Result<(), String> {
    let address = unused_address().to_string();
    its_prompt_is_judged("rmcp", |report_path| {
        let mut command = program_command();
        command.args(["--quiet", "--seed", "1", "--fuzz", "off", "--revision", "2025-11-25", "--accept", "sdk"]);
        command.arg("--report").arg(format!("json={}", report_path.display()));
        command.args(["--url", &format!("http://{address}/mcp"), "--"]).arg(server.path()).args([&address, "prompt"]);
        command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))
    })
}

/// A run over HTTP on a server of one prompt judges it by at least so many cases, gets the prompt, and finds nothing that
/// the author could change.
fn its_prompt_is_judged(sdk: &str, run: impl FnOnce(&Path) -> Result<Output, String>) -> Result<(), String> {
    const LEAST: usize = 100;
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let report_path = folder.path().join("report.json");
    let output = run(&report_path)?;
    let report =
        read_report(&report_path).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let is_judged = |result: &&CaseResult| !matches!(result.verdict, Verdict::Skip | Verdict::Error);
    let judged = report.results().filter(is_judged).count();
    let calls_prompts = report.results().any(|r| r.case == "prompts/get/answered" && r.verdict == Verdict::Pass);
    if output.status.code() != Some(0) || judged < LEAST || !calls_prompts {
        let stdout = String::from_utf8_lossy(&output.stdout);
        return Err(format!("{}: {judged} cases judged, at least {LEAST} expected: {stdout}", output.status));
    }
    // Both have a server of which the author writes the handlers, and no answer here tells it from the other one: the
    // TypeScript SDKs in how they read a cursor, the Python SDK 2 in 2026-07-28, where every exception is -32603.
    let is_open = |case: &str| match sdk {
        "Python SDK 2" => case == "prompts/get/missing-argument" || case.contains("/list/invalid-cursor"),
        _ => sdk.starts_with("TypeScript") && case == "prompts/list/invalid-cursor",
    };
    let mut of_author = findings_of_the_author(&report, sdk, 2)?;
    of_author.retain(|(case, _)| !is_open(case));
    if !of_author.is_empty() {
        return Err(format!("attributed to the author: {of_author:?}"));
    }
    Ok(())
}

fn judge_clean_server(
    server: &CleanServer,
    revisions: &[&str],
    port: Option<u16>,
    report_path: &Path,
) -> Result<(), String> {
    let output = run_clean_server(server, revisions, port, &[], report_path)?;
    let least = if port.is_some() { 6 } else { 10 };
    let of_author = findings_of_the_author(&read_report(report_path)?, server.sdk, least)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if !of_author.is_empty() || output.status.code() != Some(0) {
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        return Err(format!("{}: attributed to the author: {of_author:?}: {stdout}{stderr}", output.status));
    }
    Ok(())
}

/// Runs the program on a clean server, which gets its port and these arguments.
fn run_clean_server(
    server: &CleanServer,
    revisions: &[&str],
    port: Option<u16>,
    arguments: &[&str],
    report_path: &Path,
) -> Result<Output, String> {
    let mut command = program_command();
    command.args(["--timeout", "10s", "--startup-timeout", "120s", "--quiet", "--seed", "1", "--fuzz", "off"]);
    command.args(revisions.iter().flat_map(|revision| ["--revision", revision]));
    command.args(["--accept", "sdk", "--report"]).arg(format!("json={}", report_path.display()));
    let below = servers().join(server.interpreter);
    let interpreter = if below.exists() { below } else { PathBuf::from(server.interpreter) };
    if let Some(port) = port {
        command.args(["--url", &format!("http://127.0.0.1:{port}/mcp")]);
    }
    command.arg("--").arg(interpreter).arg(servers().join("clean").join(server.file));
    command.args(port.map(|port| port.to_string())).args(arguments);
    command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))
}

/// The report of a run that accepted nothing passes once the findings of the SDK are accepted.
fn saved_findings_of_the_sdk_can_be_accepted(report_path: &Path) -> Result<(), String> {
    let mut report = read_report(report_path)?;
    for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
        result.findings.iter_mut().for_each(|finding| finding.accepted = None);
    }
    let text = serde_json::to_string(&report).map_err(|error| error.to_string())?;
    std::fs::write(report_path, text).map_err(|error| error.to_string())?;
    let folder = report_path.parent().unwrap_or(Path::new("."));
    let arguments = ["report", "report.json", "--fail-on", "should", "--accept", "sdk"];
    program(folder, &arguments[..4])?.with_code(1)?;
    program(folder, &arguments)?.with_code(0).map(drop)
}

/// The library accepts what the command line does.
fn the_library_accepts_the_findings_of_the_sdk() -> Result<(), String> {
    for (accept, expected) in [(None, Conclusion::Failed), (Some(Accept::Sdk), Conclusion::Passed)] {
        let server = mcp_conformance::Server::command("node").arg(servers().join("clean/typescript-1.mjs"));
        let (revisions, fail_on) = ([Revision::V2025_11_25].into(), FailOn::Should);
        let settings = Settings { revisions, fail_on, accept, fuzz: None, ..Settings::default() };
        let report = Judge::new(server).settings(settings).run_blocking().map_err(|error| error.to_string())?;
        if report.conclusion() != expected {
            return Err(format!("{accept:?}: {}", report.to_text()));
        }
    }
    Ok(())
}

/// The findings that are not attributed to the SDK, each as its case and what the server did; an error if the SDK is not
/// recognized, or if there are fewer findings than known.
fn findings_of_the_author(report: &Report, sdk: &str, least: usize) -> Result<Vec<(String, String)>, String> {
    let findings = || report.results().flat_map(|result| result.findings.iter().map(|finding| (&result.case, finding)));
    if findings().count() < least || findings().all(|(_, finding)| finding.sdk.as_deref() != Some(sdk)) {
        return Err(format!("{sdk} is not recognized"));
    }
    let of_author = findings().filter(|(_, finding)| finding.sdk.as_deref() != Some(sdk));
    Ok(of_author.map(|(case, finding)| (case.clone(), finding.actual.clone())).collect())
}

fn read_report(path: &Path) -> Result<Report, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("no report ({error})"))?;
    serde_json::from_str(&text).map_err(|error| format!("failed to parse the report ({error})"))
}

/// Options for fuzzing each server in the newest revision: few calls, the same number on a busy machine, and no oracle
/// that depends on timing.
const FUZZ: [&str; 10] =
    ["--fuzz", "40", "--fuzz-time", "10m", "--regressions", "none", "--skip", "fuzz/latency", "--skip", "fuzz/memory"];

/// Runs the program on a server in every revision that it supports.
fn judge(server: &Server, start: &Start, report_path: &Path) -> Result<Report, String> {
    let mut command = program_command();
    // Long timeouts, because a server is slow on a busy machine.
    command.args(["--timeout", "10s", "--startup-timeout", "120s", "--quiet", "--seed", "1"]);
    command.args(if start.is_over_http() { &["--fuzz", "off"][..] } else { &FUZZ });
    command.arg("--report").arg(format!("json={}", report_path.display()));
    command.args(&start.options).arg("--").args(server.command()).args(&start.arguments);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let described = || format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("{}: {}", output.status, described()));
    }
    read_report(report_path).map_err(|error| format!("{error}: {}", described()))
}

/// All differences between a report and a baseline, each with what to do about it; empty if there are none.
fn compare(baseline: &Baseline, report: &Report) -> String {
    let mut differences = String::new();
    let mut report_difference = |text: String| {
        let _infallible = writeln!(differences, "- {text}");
    };
    match report.summary.as_ref().map(|summary| &summary.problem) {
        None => report_difference("the run was aborted".to_owned()),
        Some(Some(problem)) => {
            report_difference(format!("the run had a problem: {}; {}", problem.message, problem.hint));
        }
        Some(None) => {}
    }
    if report.targets.is_empty() {
        report_difference("nothing was judged".to_owned());
    }
    for result in report.results().filter(|result| result.verdict == Verdict::Error) {
        let reason = result.reason.as_deref().unwrap_or("no reason");
        report_difference(format!(
            "{} could not be judged in {}: {reason}; no real server may cause this, so fix the program or the case",
            result.case, result.revision
        ));
    }
    // Warnings count here, and the options that select cases do not.
    let mut compared = report.clone();
    compared.options = Options::default();
    compared.options.fail_on = FailOn::Should;
    baseline_comparison::apply_baseline(&mut compared, baseline, "the baseline", |_| true);
    let compared = compared.baseline.unwrap_or_default();
    for entry in &compared.new {
        let is_of_case = |result: &&CaseResult| result.case == entry.case;
        let finding = report
            .results()
            .filter(is_of_case)
            .flat_map(|result| &result.findings)
            .find(|finding| finding.requirement == entry.requirement && entry.within().contains(finding.revision));
        let (message, actual) = finding.map(|finding| (&*finding.message, &*finding.actual)).unwrap_or_default();
        let entry = json!({
            "case": entry.case, "requirement": entry.requirement, "revisions": entry.revisions,
            "verdict": entry.verdict, "reason": "…",
        });
        report_difference(format!(
            "not listed: {message} — {actual}\n  Check it by hand. If it is a false alarm, fix the case; if it is correct, add\n  {entry}"
        ));
    }
    compared.outdated_messages().for_each(&mut report_difference);
    // For a pinned server, the case of an entry must not be skipped either.
    for entry in baseline.entries.iter().filter(|entry| !entry.flaky) {
        let skipped = |result: &&CaseResult| {
            result.case == entry.case && result.verdict == Verdict::Skip && entry.within().contains(result.revision)
        };
        for result in report.results().filter(skipped) {
            report_difference(format!("{} by {} was skipped in {}", entry.requirement, entry.case, result.revision));
        }
    }
    differences
}

fn every_baseline_belongs_to_a_server() -> Result<(), String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(baselines()).map_err(|error| error.to_string())?.flatten() {
        let path = entry.path();
        read(&path)?;
        names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    let mut servers = SERVERS.map(|server| server.name.to_owned());
    servers.sort_unstable();
    if names == servers { Ok(()) } else { Err(format!("the baselines are for {names:?}, the servers are {servers:?}")) }
}

/// The report of one case against the built-in server with a fault, and a matching baseline.
fn sample() -> Result<(Baseline, Report), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let path = folder.path().join("report.json");
    let mut command = program_command();
    command.args(["--quiet", "--revision", "2025-06-18", "--select", "tools/call/unknown-tool", "--report"]);
    command.arg(format!("json={}", path.display())).arg("--").arg(PROGRAM);
    command.args(["serve", "--fault", "unknown-tool-is-error"]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let entry = BaselineEntry {
        case: "tools/call/unknown-tool".to_owned(),
        requirement: "tools-call-unknown-tool-error".to_owned(),
        tool: None,
        revisions: Some(RevisionSet::default().with(Revision::V2025_06_18)),
        verdict: Some(Verdict::Warn),
        reason: "The fault.".to_owned(),
        expires: None,
        flaky: false,
    };
    let baseline = Baseline::of(entry.revisions, vec![entry]);
    let differences = compare(&baseline, &report);
    if differences.is_empty() {
        Ok((baseline, report))
    } else {
        Err(format!("the sample differs from its baseline:\n{differences}"))
    }
}

fn expect_contains(text: &str, expected: &str) -> Result<(), String> {
    if text.contains(expected) { Ok(()) } else { Err(format!("`{expected}` is not in: {text}")) }
}

fn an_unlisted_finding_is_reported() -> Result<(), String> {
    let (baseline, report) = sample()?;
    expect_contains(&compare(&Baseline::of(baseline.revisions, Vec::new()), &report), "not listed")
}

fn an_entry_without_finding_is_reported() -> Result<(), String> {
    let (baseline, mut report) = sample()?;
    let mut other = baseline.clone();
    other.entries[0].verdict = Some(Verdict::Fail);
    expect_contains(&compare(&other, &report), "not listed")?;
    expect_contains(&compare(&other, &report), "not found in 2025-06-18")?;
    report.targets[0].results[0].findings.clear();
    expect_contains(&compare(&baseline, &report), "not found in 2025-06-18")
}

fn a_case_that_cannot_be_judged_is_reported() -> Result<(), String> {
    let (baseline, mut report) = sample()?;
    report.targets[0].results[0].verdict = Verdict::Error;
    expect_contains(&compare(&baseline, &report), "could not be judged")?;
    report.targets.clear();
    expect_contains(&compare(&baseline, &report), "nothing was judged")?;
    let other = Baseline::of(Some(RevisionSet::ALL), baseline.entries);
    expect_contains(&compare(&other, &sample()?.1), "`revisions` in the baseline says 2024-10-07..2026-07-28")
}
