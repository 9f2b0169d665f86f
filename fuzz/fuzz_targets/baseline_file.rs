//! A baseline file, parsed and rewritten.
//!
//! Properties: it is parsed, or an error is reported; rewriting it without a change keeps all entries; removing an
//! entry keeps the others; an added entry is there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::baseline::{Baseline, BaselineEntry, Change};

fn line() -> BaselineEntry {
    BaselineEntry {
        case: "fuzz/added".to_owned(),
        requirement: "an-added-requirement".to_owned(),
        tool: None,
        revisions: None,
        verdict: None,
        reason: "known".to_owned(),
        expires: None,
        flaky: false,
    }
}

fuzz_target!(|text: &str| {
    let read = |text: &str| Baseline::read("b.jsonc", text);
    let baseline = match read(text) {
        Ok(baseline) => baseline,
        Err(error) => {
            assert!(!error.faults.is_empty());
            return;
        }
    };
    let rewritten = |changes: &[Change]| {
        let text = Baseline::rewritten("b.jsonc", text, changes).expect("a valid baseline can be rewritten");
        read(&text).unwrap_or_else(|error| panic!("{changes:?} broke it: {error}\n{text}"))
    };
    assert_eq!(rewritten(&[]).entries, baseline.entries);
    for at in 0..baseline.entries.len().min(4) {
        let mut without = baseline.entries.clone();
        without.remove(at);
        assert_eq!(rewritten(&[Change::Remove(at)]).entries, without);
    }
    if baseline.entries.iter().all(|known| known.case != line().case) {
        let more: Vec<BaselineEntry> = baseline.entries.iter().cloned().chain([line()]).collect();
        assert_eq!(rewritten(&[Change::Add(line())]).entries, more);
    }
});
