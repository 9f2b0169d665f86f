//! A baseline, read and rewritten.
//!
//! The laws: it is read, or each fault has a place; what is rewritten without a change says the same; a line that is
//! taken out is gone and the others stay; a line that is added is there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::case::{Baseline, Change, Line};

fn line() -> Line {
    Line {
        case: "fuzz/added".to_owned(),
        requirement: "an-added-requirement".to_owned(),
        tool: None,
        revisions: None,
        verdict: None,
        reason: "known".to_owned(),
        expires: None,
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
        let text = Baseline::rewritten("b.jsonc", text, changes).expect("what is read can be rewritten");
        read(&text).unwrap_or_else(|error| panic!("{changes:?} broke it: {error}\n{text}"))
    };
    assert_eq!(rewritten(&[]).lines, baseline.lines);
    for at in 0..baseline.lines.len().min(4) {
        let mut without = baseline.lines.clone();
        without.remove(at);
        assert_eq!(rewritten(&[Change::Remove(at)]).lines, without);
    }
    if baseline.lines.iter().all(|known| known.case != line().case) {
        let more: Vec<Line> = baseline.lines.iter().cloned().chain([line()]).collect();
        assert_eq!(rewritten(&[Change::Add(line())]).lines, more);
    }
});
