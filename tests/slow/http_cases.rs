//! Every case about HTTP, without and with its fault, and the conforming server over HTTP.

use std::sync::Arc;

use mcp_conformance::internals::case::{Case, HttpKind};
use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use super::over_http::{clean_over_http, judge_like, judge_over_http};
use crate::support::printed::Printed;
use crate::support::reference::{ENDPOINTS, RunResults, cases};
use crate::support::result::{
    has_no_finding, has_no_finding_in, its_command_finds_nothing_without_the_fault, its_fault_turns_it_red,
    no_pass_message, runs_everything,
};
use crate::support::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![trial(
        "case/the-conforming-server-has-no-finding-over-http",
        the_conforming_server_has_no_finding_over_http,
    )];
    for case in cases().iter().filter(|case| case.speaks_of_http()) {
        let (green, red) = (Arc::clone(case), Arc::clone(case));
        trials.push(trial(format!("case/{}/green", case.id), move || it_passes_over_http(&green)));
        trials.push(trial(format!("case/{}/red", case.id), move || turns_red(&red)));
    }
    trials
}

/// Carries a printed command out in this process, in a revision, with its fault or without.
fn run(printed: &Printed, revision: Revision, with_fault: bool) -> RunResults {
    let endpoint = printed.endpoint.unwrap_or(ENDPOINTS[0]);
    if with_fault {
        return judge_over_http(FaultSet::from(printed.fault), &[revision], printed.selected(), endpoint);
    }
    // What is tried of a protected server needs one that is protected without a fault too.
    judge_like(printed.fault, &[revision], printed.selected(), endpoint)
}

/// Every case, those of every transport included, at both endpoints.
fn the_conforming_server_has_no_finding_over_http() -> Result<(), String> {
    let [(_, found), rest @ ..] = clean_over_http() else { return Err("no endpoint was judged".to_owned()) };
    has_no_finding(found)?;
    rest.iter()
        .try_for_each(|(name, found)| has_no_finding_in(found, &[]).map_err(|message| format!("{name}: {message}")))
}

/// Fails unless a case about HTTP passes on the conforming server or one of its variants.
fn it_passes_over_http(case: &Case) -> Result<(), String> {
    its_command_finds_nothing_without_the_fault(case, |printed| run(printed, printed.revision, false))?;
    let runs = clean_over_http().iter().flat_map(|(_, found)| &found.results);
    let results: Vec<_> = runs.filter(|result| result.case == case.id).collect();
    if results.iter().any(|result| result.verdict == Verdict::Pass) {
        return Ok(());
    }
    Err(no_pass_message(&results))
}

fn turns_red(case: &Case) -> Result<(), String> {
    its_fault_turns_it_red(case, |printed, fault, revision| {
        if runs_everything() { run_everything(case, fault, revision) } else { run(printed, revision, true) }
    })
}

/// All cases against the server with a fault: the fault may show in what any of them sends.
fn run_everything(case: &Case, fault: Fault, revision: Revision) -> RunResults {
    let older = case.http_kind() == Some(HttpKind::Sse);
    judge_over_http(FaultSet::from(fault), &[revision], cases().to_vec(), ENDPOINTS[usize::from(older)])
}
