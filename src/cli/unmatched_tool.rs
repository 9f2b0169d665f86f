//! Patterns of `--tool` that match none of the server's tools: without this, fuzzing would silently not take place.

use std::collections::BTreeSet;

use globset::Glob;
use mcp_conformance::Settings;
use mcp_conformance::report::{Conclusion, Report};

use super::error::CliError;

/// Checks that each pattern matches a tool of a fuzzed revision.
pub(super) fn check_tool_patterns(settings: &Settings, report: &Report) -> Result<(), CliError> {
    let Some(fuzz) = &settings.fuzz else { return Ok(()) };
    let fuzzed: Vec<_> = report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref()).collect();
    // A run that stopped before fuzzing shows no tools.
    if fuzzed.is_empty() {
        return Ok(());
    }
    let names: BTreeSet<&str> = fuzzed.iter().flat_map(|fuzz| &fuzz.tools).map(|tool| tool.tool.as_str()).collect();
    let matches = |pattern: &str| {
        // The pattern was checked when the options were parsed.
        Glob::new(pattern).is_ok_and(|glob| names.iter().any(|name| glob.compile_matcher().is_match(name)))
    };
    match fuzz.tools.iter().find(|pattern| !matches(pattern)) {
        Some(pattern) => Err(CliError::UnmatchedTool {
            pattern: pattern.clone(),
            tools: names.iter().map(|name| (*name).to_owned()).collect(),
            conclusion: Conclusion::of(report),
        }),
        None => Ok(()),
    }
}
