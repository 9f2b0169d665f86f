//! The order of the cases, and how many of them run at once, change no verdict.

use std::sync::Arc;

use mcp_conformance::internals::run::Launcher;
use mcp_conformance::reference::FaultSet;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::support::reference::{JOBS, TIMEOUT, cases, judge_at_once, judge_in_order};
use crate::support::{Trial, trial};

/// The orders of the conforming server, with how many processes run at once.
const ORDERS: [(u64, usize); 3] = [(1, JOBS), (2, 1), (3, 16)];

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("case/order/conforming", the_conforming_server_passes_in_any_order)]
}

fn the_conforming_server_passes_in_any_order() -> Result<(), String> {
    let expected = judge_at_once(Launcher::Reference(Arc::default()), &Revision::ALL, cases().to_vec(), TIMEOUT, JOBS);
    let mut problems = Vec::new();
    for (order, jobs) in ORDERS {
        let found = judge_in_order(FaultSet::none(), &Revision::ALL, order, jobs);
        for result in &expected.results {
            let again = found.result(&result.case, result.revision);
            if again.map(|again| again.verdict) != Some(result.verdict) {
                let again = again.map(|again| (again.verdict, &again.reason));
                problems.push(format!(
                    "order {order}, {jobs} at once: {} {}: {again:?} instead of {:?}",
                    result.case, result.revision, result.verdict
                ));
            }
        }
    }
    if !expected.results.iter().any(|result| result.verdict == Verdict::Pass) {
        problems.push("nothing passes".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}
