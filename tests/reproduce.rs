//! The command that `explain` prints for each case except those of fuzzing: it shows the case fail on the fault that it names, and pass without.
//!
//! The commands are parsed out of what the program prints and carried out in this process; a few of each kind are run
//! by a shell as well.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use libtest_mimic::Trial;
use mcp_conformance::internals::case::{Body, Case, SelectedCases, Selection};
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::spec::Revision;

use crate::builtin::{ENDPOINTS, RunResults, cases, judge, judge_over_http};
use crate::{PROGRAM, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("reproduce/every-case-has-a-command", every_case_has_a_command),
        trial("reproduce/a-shell-runs-the-commands", a_shell_runs_the_commands),
    ]
}

/// A printed command, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printed {
    /// The line as it is printed.
    line: String,
    /// The value of `--revision`.
    pub(crate) revision: Revision,
    /// The value of `--select`.
    select: String,
    /// The path of the address behind `--url`.
    endpoint: Option<&'static str>,
    /// The value of `--fault`.
    pub(crate) fault: Fault,
}

impl Printed {
    fn parse(line: &str) -> Result<Self, String> {
        let bad = |what: &str| format!("{what} in the printed command `{line}`");
        let words = shell_words(line);
        let (client, server) =
            words.iter().position(|word| word == "--").map(|at| words.split_at(at)).ok_or_else(|| bad("no server"))?;
        let value = |words: &[String], option: &str| {
            words.iter().position(|word| word == option).and_then(|at| words.get(at + 1)).cloned()
        };
        if server.get(1).map(String::as_str) != Some("mcp-conformance")
            || server.get(2).map(String::as_str) != Some("serve")
        {
            return Err(bad("no reference server"));
        }
        let fault: Fault =
            value(server, "--fault").ok_or_else(|| bad("no fault"))?.parse().map_err(|_| bad("unknown fault"))?;
        let endpoint = match value(client, "--url") {
            None => None,
            Some(url) => {
                let address = value(server, "--http").ok_or_else(|| bad("no --http"))?;
                let path =
                    url.strip_prefix(&format!("http://{address}/")).ok_or_else(|| bad("another address"))?.to_owned();
                Some(ENDPOINTS.into_iter().find(|known| *known == path).ok_or_else(|| bad("unknown path"))?)
            }
        };
        if fault.requires_authorization() != value(server, "--protected").is_some()
            || fault.requires_authorization() != value(client, "--bearer-env").is_some()
        {
            return Err(bad("a token is missing or of no use"));
        }
        Ok(Self {
            line: line.to_owned(),
            revision: value(client, "--revision")
                .and_then(|name| name.parse().ok())
                .ok_or_else(|| bad("no revision"))?,
            select: value(client, "--select").ok_or_else(|| bad("no case"))?,
            endpoint,
            fault,
        })
    }

    /// Carries the command out in this process, in a revision, with its fault or without.
    pub(crate) fn run(&self, revision: Revision, with_fault: bool) -> RunResults {
        let faults = if with_fault { FaultSet::from(self.fault) } else { FaultSet::none() };
        match self.endpoint {
            Some(endpoint) if with_fault => judge_over_http(faults, &[revision], self.selected(), endpoint),
            // What is tried of a protected server needs one that is protected without a fault too.
            Some(endpoint) => crate::builtin::judge_like(self.fault, &[revision], self.selected(), endpoint),
            None => judge(faults, &[revision], self.selected()),
        }
    }

    /// Runs the command in a shell; fails unless it has a finding.
    pub(crate) fn finds_something(&self, folder: &Path) -> Result<(), String> {
        let output = run_by_a_shell(&self.line, folder)?;
        // A violated SHOULD rule is a warning, which does not fail a run.
        let is_red = output.contains("FAIL  ") || output.contains("WARN  ");
        if is_red { Ok(()) } else { Err(format!("{} finds nothing:\n{output}", self.line)) }
    }

    /// What `--select` selects, as the program selects it.
    fn selected(&self) -> SelectedCases {
        let selection = Selection { select: vec![self.select.clone()], skip: Vec::new() };
        let all: Vec<Case> = cases().iter().map(|case| Case::clone(case)).collect();
        selection.with_stimuli(&all).unwrap_or_else(|error| panic!("`{}`: {error}", self.line))
    }
}

/// The words of a command line without quotes, as a shell splits them.
fn shell_words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The printed command of each case, by its id.
pub(crate) fn printed() -> &'static BTreeMap<String, Printed> {
    static PRINTED: OnceLock<BTreeMap<String, Printed>> = OnceLock::new();
    PRINTED.get_or_init(|| {
        let output = Command::new(PROGRAM).args(["explain", "*"]).stdin(Stdio::null()).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let commands = text.lines().map(str::trim).filter(|line| line.contains(" -- mcp-conformance serve "));
        commands
            .map(|line| Printed::parse(line).unwrap_or_else(|error| panic!("{error}")))
            .map(|printed| (printed.select.clone(), printed))
            .collect()
    })
}

/// The faults that fuzzing finds are not in the program: only the tests have them.
fn every_case_has_a_command() -> Result<(), String> {
    let needed = cases().iter().filter(|case| !matches!(case.body, Body::Fuzz(_)));
    let without: Vec<&str> = needed.map(|case| case.id.as_str()).filter(|id| !printed().contains_key(*id)).collect();
    if without.is_empty() { Ok(()) } else { Err(format!("explain prints no command for {}", without.join(", "))) }
}

/// One of each kind: stdio with and without stimuli, the draft, both HTTP transports, tokens of either scope.
const RUN_BY_A_SHELL: [&str; 7] = [
    "content/image-base64",
    "tasks/ids-unique",
    "tools/call/tool-result",
    "http/json-one-object",
    "http-sse/endpoint-first",
    "auth/unknown-token",
    "auth/insufficient-scope",
];

fn a_shell_runs_the_commands() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    RUN_BY_A_SHELL.iter().try_for_each(|id| {
        let printed = printed().get(*id).ok_or_else(|| format!("no command for {id}"))?;
        printed.finds_something(folder.path())?;
        let without = printed.line.replace(&format!(" --fault {}", printed.fault), "");
        let conforming = run_by_a_shell(&without, folder.path())?;
        if conforming.contains("FAIL  ") || conforming.contains("WARN  ") {
            return Err(format!("{without} finds something:\n{conforming}"));
        }
        Ok(())
    })
}

/// Runs a printed command by a shell that finds the program in its search path; the port is one that is free.
fn run_by_a_shell(line: &str, folder: &Path) -> Result<String, String> {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).map_err(|e| e.to_string())?.port();
    let line = line.replace(":8765", &format!(":{port}"));
    let programs = Path::new(PROGRAM).parent().map(|path| path.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &line])
        .env("PATH", format!("{programs}:{path}"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let code = output.status.code();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if matches!(code, Some(0 | 1 | 3)) { Ok(text) } else { Err(format!("{line} ends with {code:?}:\n{text}")) }
}
