//! The faults that only the fuzzer can find: no case sees them.

use libtest_mimic::Trial;
use mcp_conformance::mock::{Fault, FaultSet};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::builtin::{cases, judge};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("hidden/no-case-sees-a-hidden-fault", no_case_sees_a_hidden_fault)]
}

/// All of them at once: what none of the cases triggers together, none triggers alone.
fn no_case_sees_a_hidden_fault() -> Result<(), String> {
    let hidden = || Fault::all().iter().copied().filter(|fault| fault.is_hidden());
    let seen = seen_by_cases(hidden().collect())?;
    if seen.is_empty() {
        return Ok(());
    }
    let mut told = Vec::new();
    for fault in hidden() {
        let seen = seen_by_cases(FaultSet::from(fault))?;
        if !seen.is_empty() {
            told.push(format!("{fault} is seen by {}", seen.join(", ")));
        }
    }
    told.push(format!("together they are seen by {}", seen.join(", ")));
    Err(told.join("\n"))
}

/// The cases that are not green with these faults.
fn seen_by_cases(faults: FaultSet) -> Result<Vec<String>, String> {
    let found = judge(faults, &[Revision::V2025_11_25, Revision::V2026_07_28], cases().to_vec());
    if found.results.is_empty() {
        return Err("nothing was judged".to_owned());
    }
    let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::Warn | Verdict::Error);
    Ok(found.results.into_iter().filter(|result| bad(result.verdict)).map(|result| result.case).collect())
}
