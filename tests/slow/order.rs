//! What has a finding on a server with one fault does not depend on the order of the cases, without confirmation.

use mcp_conformance::reference::FaultSet;

use crate::support::reference::{JOBS, judge_in_order, revisions_of};
use crate::support::result::has_findings_of_only;
use crate::support::single_causes::SINGLE_CAUSES;
use crate::support::{Trial, trial};

/// How many orders are tried for each fault.
const ORDERS: u64 = 3;

pub(crate) fn trials() -> Vec<Trial> {
    let of_fault = |(at, (fault, allowed)): (usize, (_, &'static [&'static str]))| {
        trial(format!("order/{fault}"), move || {
            (0..ORDERS).try_for_each(|order| {
                let order = at as u64 * ORDERS + order;
                let found = judge_in_order(FaultSet::from(fault), &revisions_of(fault), order, JOBS);
                has_findings_of_only(&found, allowed).map_err(|error| format!("order {order}: {error}"))
            })
        })
    };
    SINGLE_CAUSES.into_iter().enumerate().map(of_fault).collect()
}
