//! A case file and a hint file of a stranger's.
//!
//! The laws: it loads, or each fault in it has a place within the text; a case that loads has an id, runs somewhere
//! and is selected by its id; reading it again says the same.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::case::{CaseText, LoadError, Selection, Source, Trust, understand, understand_hints};
use mcp_conformance_fuzz::faults;

fn has_places(error: &LoadError, text: &str) {
    assert!(!error.faults.is_empty());
    let lines: Vec<usize> = text.split('\n').map(|line| line.chars().count()).collect();
    for fault in &error.faults {
        assert!(!fault.message.is_empty());
        if fault.line > 0 {
            let length = lines.get(fault.line - 1).copied();
            // Behind the last character stands what is missing.
            assert!(length.is_some_and(|length| fault.column <= length + 1), "{fault} is nowhere");
        }
    }
}

fuzz_target!(|text: &str| {
    static FAULTS: OnceLock<Vec<&str>> = OnceLock::new();
    let faults = FAULTS.get_or_init(faults);
    let read = || {
        let file = "own/case.jsonc".to_owned();
        let case = CaseText { id: "own/case".to_owned(), file, source: Source::Embedded, text: text.to_owned() };
        understand(vec![case], faults, Trust::Nothing)
    };
    match read() {
        Ok(cases) => {
            assert_eq!(cases.len(), 1);
            assert!(!cases[0].revisions.is_empty() && !cases[0].requirements.is_empty() && !cases[0].title.is_empty());
            let selection = Selection { select: vec!["own/case".to_owned()], skip: Vec::new() };
            assert_eq!(selection.of(&cases).map(|selected| selected.len()).ok(), Some(1));
        }
        Err(error) => {
            has_places(&error, text);
            assert_eq!(read().err(), Some(error));
        }
    }
    if let Err(error) = understand_hints("hints.jsonc", text, &["own/case"]) {
        has_places(&error, text);
    }
});
