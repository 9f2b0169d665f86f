//! Any text as the JSON report of an earlier run.
//!
//! Properties: a parsed report is written and parsed again unchanged; its conclusion is one of the four; every format
//! can be rendered from it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_conformance::report::{
    Badge, Conclusion, Github, Html, Json, Junit, Markdown, Renderer, Report, Sarif, Tap, Text,
};

fuzz_target!(|text: &str| {
    let Ok(report) = Report::parse(text) else { return };
    let again = Report::parse(&report.render(&Json)).expect("a written report can be parsed");
    assert_eq!(serde_json::to_value(&again).ok(), serde_json::to_value(&report).ok());
    assert!(Conclusion::ALL.contains(&report.conclusion()));
    let formats: [&dyn Renderer; 8] = [&Html, &Junit, &Sarif::default(), &Tap, &Markdown, &Github, &Badge, &Text::default()];
    for format in formats {
        assert!(!report.render(format).contains('\u{1b}'), "the output contains an escape character");
    }
});
