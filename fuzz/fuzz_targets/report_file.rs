//! A report of an earlier run, from whoever wrote it.
//!
//! The laws: what is read as a report is written as one that is read the same; its conclusion is one of the four; and
//! every format can be made of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_conformance::report::{
    Badge, Conclusion, Github, Html, Json, Junit, Markdown, Renderer, Report, Sarif, Tap, Text,
};

fuzz_target!(|text: &str| {
    let Ok(report) = Report::parse(text) else { return };
    let again = Report::parse(&report.render(&Json)).expect("what is written can be read");
    assert_eq!(serde_json::to_value(&again).ok(), serde_json::to_value(&report).ok());
    assert!(Conclusion::ALL.contains(&report.conclusion()));
    let formats: [&dyn Renderer; 8] = [&Html, &Junit, &Sarif, &Tap, &Markdown, &Github, &Badge, &Text::default()];
    for format in formats {
        assert!(!report.render(format).contains('\u{1b}'), "something acts on a terminal");
    }
});
