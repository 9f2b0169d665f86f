//! Any text as a case file and as a hint file.
//!
//! Properties: it is loaded, or each error has a position within the text; a loaded case applies to a revision and is
//! selected by its id; loading it twice gives the same result.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::case::{CaseText, LoadError, Selection, Source, Trust, parse_cases, parse_hints};
use mcp_conformance_fuzz::faults;

fn errors_have_positions(error: &LoadError, text: &str) {
    assert!(!error.faults.is_empty());
    let lines: Vec<usize> = text.split('\n').map(|line| line.chars().count()).collect();
    for fault in &error.faults {
        assert!(!fault.message.is_empty());
        if fault.line > 0 {
            let length = lines.get(fault.line - 1).copied();
            // Something missing is reported after the last character.
            assert!(length.is_some_and(|length| fault.column <= length + 1), "{fault} is outside of the text");
        }
    }
}

fuzz_target!(|text: &str| {
    static FAULTS: OnceLock<Vec<&str>> = OnceLock::new();
    let faults = FAULTS.get_or_init(faults);
    let read = || {
        let file = "own/case.jsonc".to_owned();
        let case = CaseText { id: "own/case".to_owned(), file, source: Source::Embedded, text: text.to_owned() };
        parse_cases(vec![case], faults, Trust::Nothing)
    };
    match read() {
        Ok(cases) => {
            assert_eq!(cases.len(), 1);
            assert!(!cases[0].revisions.is_empty() && !cases[0].requirements.is_empty() && !cases[0].title.is_empty());
            let selection = Selection { select: vec!["own/case".to_owned()], skip: Vec::new() };
            assert_eq!(selection.of(&cases).map(|selected| selected.len()).ok(), Some(1));
        }
        Err(error) => {
            errors_have_positions(&error, text);
            assert_eq!(read().err(), Some(error));
        }
    }
    if let Err(error) = parse_hints("hints.jsonc", text, &["own/case"]) {
        errors_have_positions(&error, text);
    }
});
