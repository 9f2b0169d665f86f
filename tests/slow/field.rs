//! Public bug reports, rebuilt as servers in `tests/field`: each is found by a case that names the bug, and its conforming
//! twin has no finding. `tests/field/reports.tsv` has them with their sources; they were written without a look at the cases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;

use super::address::RunningServer;
use crate::support::{Trial, program, trial};

/// A report of a bug.
#[derive(Debug, Clone)]
struct Field {
    name: String,
    is_http: bool,
    /// The cases that have to find it; `None` if none can yet.
    found_by: Option<BTreeSet<String>>,
    /// Whether the server cannot be judged, which the run has to say.
    is_refused: bool,
    /// The cases that it does not concern.
    never: BTreeSet<String>,
}

pub(crate) fn trials() -> Vec<Trial> {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_missing = !python.is_ok_and(|status| status.success());
    let mut trials = vec![trial("field/every-server-has-a-report", every_server_has_a_report)];
    for field in fields().unwrap_or_default() {
        let (found, twin) = (field.clone(), field.clone());
        trials.push(
            trial(format!("field/{}/found", field.name), move || it_is_found(&found)).with_ignored_flag(is_missing),
        );
        trials.push(
            trial(format!("field/{}/fixed", field.name), move || its_twin_is_clean(&twin))
                .with_ignored_flag(is_missing),
        );
    }
    trials
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field")
}

fn fields() -> Result<Vec<Field>, String> {
    let text = std::fs::read_to_string(folder().join("reports.tsv")).map_err(|error| error.to_string())?;
    let words = |text: &str| text.split(' ').filter(|word| *word != "-").map(str::to_owned).collect::<BTreeSet<_>>();
    let field = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, source, _, transport, found_by, never, _] = columns.as_slice() else {
            return Err(format!("not seven columns: {line}"));
        };
        if !source.contains('#') || !["stdio", "http"].contains(transport) {
            return Err(format!("no source, or no transport: {line}"));
        }
        Ok(Field {
            name: (*name).to_owned(),
            is_http: *transport == "http",
            found_by: (!["missed", "refused"].contains(found_by)).then(|| words(found_by)),
            is_refused: *found_by == "refused",
            never: words(never),
        })
    };
    text.lines().filter(|line| !line.starts_with('#')).map(field).collect()
}

fn every_server_has_a_report() -> Result<(), String> {
    let listed: BTreeSet<String> = fields()?.into_iter().map(|field| format!("{}.py", field.name)).collect();
    let files = std::fs::read_dir(folder()).map_err(|error| error.to_string())?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let servers: BTreeSet<String> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "py") && !path.ends_with("common.py"))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let differ: Vec<&String> = listed.symmetric_difference(&servers).collect();
    if listed.len() > 20 && differ.is_empty() { Ok(()) } else { Err(format!("{} reports; {differ:?}", listed.len())) }
}

/// Judges the server as a user would, in one revision: the cases with findings, and whether the run had a problem.
fn judged(field: &Field, is_fixed: bool) -> Result<(BTreeSet<String>, bool, String), String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder().join(format!("{}.py", field.name)).display().to_string();
    let fixed: &[&str] = if is_fixed { &["--fixed"] } else { &[] };
    let mut arguments = vec!["--no-config", "--strict", "--quiet", "--revision", "2025-11-25", "--regressions", "none"];
    arguments.extend(["--report", "json=r.json"]);
    let mut command = Command::new("python3");
    command.args(["-B", &file]);
    let (_server, url);
    if field.is_http {
        let server = RunningServer::start(command, fixed)?;
        url = format!("http://{}/mcp", server.address());
        _server = server;
        arguments.extend(["--url", &url]);
    } else {
        arguments.extend(["--", "python3", "-B", &file]);
        arguments.extend(fixed);
    }
    let output = program(work.path(), &arguments)?;
    let text =
        std::fs::read_to_string(work.path().join("r.json")).map_err(|error| format!("{error}\n{}", output.text))?;
    let report = Report::parse(&text).map_err(|error| error.to_string())?;
    let judged_wrong = report.results().filter(|result| matches!(result.verdict, Verdict::Fail | Verdict::Warn));
    let cases = judged_wrong.map(|result| result.case.clone()).collect();
    let has_problem = report.summary.as_ref().is_none_or(|summary| summary.problem.is_some());
    Ok((cases, has_problem, output.text))
}

fn it_is_found(field: &Field) -> Result<(), String> {
    let (cases, has_problem, text) = judged(field, false)?;
    let wrong: Vec<&String> = cases.intersection(&field.never).collect();
    if !wrong.is_empty() {
        return Err(format!("blamed on {wrong:?}\n{text}"));
    }
    if field.is_refused {
        return if has_problem && cases.is_empty() { Ok(()) } else { Err(format!("{cases:?}\n{text}")) };
    }
    match &field.found_by {
        // Once it is found, the table has to say so.
        None if cases.is_empty() => Ok(()),
        None => Err(format!("it is found: {cases:?}\n{text}")),
        Some(wanted) if wanted.is_subset(&cases) => Ok(()),
        Some(wanted) => Err(format!("not found by {:?}, but by {cases:?}\n{text}", wanted.difference(&cases))),
    }
}

fn its_twin_is_clean(field: &Field) -> Result<(), String> {
    let (cases, has_problem, text) = judged(field, true)?;
    if cases.is_empty() && !has_problem { Ok(()) } else { Err(format!("{cases:?}\n{text}")) }
}
