//! The faults that only the fuzzer can find: no case sees them.

use libtest_mimic::Trial;
use mcp_conformance::mock::{Fault, FaultSet};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::builtin::{cases, judge};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    Fault::all()
        .iter()
        .copied()
        .filter(|fault| fault.is_hidden())
        .map(|fault| trial(format!("hidden/{fault}/no-case-sees-it"), move || no_case_sees_it(fault)))
        .collect()
}

fn no_case_sees_it(fault: Fault) -> Result<(), String> {
    let found = judge(FaultSet::from(fault), &[Revision::V2025_11_25], cases().to_vec());
    let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::Warn | Verdict::Error);
    let seen: Vec<&str> =
        found.results.iter().filter(|result| bad(result.verdict)).map(|result| result.case.as_str()).collect();
    if found.results.is_empty() {
        return Err("nothing was judged".to_owned());
    }
    if seen.is_empty() { Ok(()) } else { Err(format!("seen by {}", seen.join(", "))) }
}
