//! Code that several targets use.

pub mod planted;
pub mod poison;

use std::sync::{Arc, OnceLock};

use mcp_conformance::internals::case::{self, Case};
use mcp_conformance::reference::Fault;

/// The built-in cases.
pub fn cases() -> &'static [Arc<Case>] {
    static CASES: OnceLock<Vec<Arc<Case>>> = OnceLock::new();
    CASES.get_or_init(|| {
        let cases = case::load(None, &faults()).expect("the built-in cases are valid");
        cases.into_iter().map(Arc::new).collect()
    })
}

/// The names of the faults that cases may name.
pub fn faults() -> Vec<&'static str> {
    Fault::all().iter().map(|fault| fault.name()).collect()
}
