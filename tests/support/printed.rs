//! The command that `explain` prints for each case except those of fuzzing, taken apart.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mcp_conformance::internals::case::{Case, SelectedCases, Selection};
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::spec::Revision;

use super::program::program_command;
use super::reference::{ENDPOINTS, RunResults, cases, judge};

/// A printed command, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printed {
    /// The line as it is printed.
    pub(crate) line: String,
    /// The value of `--revision`.
    pub(crate) revision: Revision,
    /// The value of `--select`.
    select: String,
    /// The path of the address behind `--url`.
    pub(crate) endpoint: Option<&'static str>,
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

    /// Carries the command out in this process, over standard streams.
    pub(crate) fn run(&self, revision: Revision, with_fault: bool) -> RunResults {
        let faults = if with_fault { FaultSet::from(self.fault) } else { FaultSet::none() };
        judge(faults, &[revision], self.selected())
    }

    /// What `--select` selects, as the program selects it.
    pub(crate) fn selected(&self) -> SelectedCases {
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
        let output = program_command().args(["explain", "*"]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let commands = text.lines().map(str::trim).filter(|line| line.contains(" -- mcp-conformance serve "));
        commands
            .map(|line| Printed::parse(line).unwrap_or_else(|error| panic!("{error}")))
            .map(|printed| (printed.select.clone(), printed))
            .collect()
    })
}
