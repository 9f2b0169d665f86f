//! The values of options: their types, and the parsers that clap calls.
//!
//! Which options take which values is in [`super::args`].

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use globset::Glob;
use mcp_conformance::report;
use mcp_conformance::spec::Revision;
use serde_json::Value;

/// The findings that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Accept {
    /// Those of the server's SDK.
    Sdk,
}

impl From<Accept> for report::Accept {
    fn from(value: Accept) -> Self {
        match value {
            Accept::Sdk => Self::Sdk,
        }
    }
}

/// The findings that fail a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Violations of MUST rules.
    Must,
    /// Warnings too.
    Should,
    /// Violations of MUST rules, and tools that no generated call satisfied.
    Untested,
    /// None.
    Never,
}

impl From<FailOn> for report::FailOn {
    fn from(value: FailOn) -> Self {
        match value {
            FailOn::Must => Self::Must,
            FailOn::Should => Self::Should,
            FailOn::Untested => Self::Untested,
            FailOn::Never => Self::Never,
        }
    }
}

impl From<report::FailOn> for FailOn {
    fn from(setting: report::FailOn) -> Self {
        match setting {
            report::FailOn::Must => Self::Must,
            report::FailOn::Should => Self::Should,
            report::FailOn::Untested => Self::Untested,
            report::FailOn::Never => Self::Never,
        }
    }
}

/// The revisions that are fuzzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FuzzRevisions {
    /// Only the newest that is judged.
    Newest,
    /// Every revision that is judged.
    All,
}

impl From<FuzzRevisions> for mcp_conformance::FuzzRevisions {
    fn from(value: FuzzRevisions) -> Self {
        match value {
            FuzzRevisions::Newest => Self::Newest,
            FuzzRevisions::All => Self::All,
        }
    }
}

impl From<mcp_conformance::FuzzRevisions> for FuzzRevisions {
    fn from(setting: mcp_conformance::FuzzRevisions) -> Self {
        match setting {
            mcp_conformance::FuzzRevisions::Newest => Self::Newest,
            mcp_conformance::FuzzRevisions::All => Self::All,
        }
    }
}

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// For a terminal.
    Text,
    /// For a program.
    Json,
    /// For a document.
    Markdown,
}

/// The format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PageFormat {
    /// For a document.
    Markdown,
    /// For a browser, as one file.
    Html,
    /// For a program.
    Json,
}

/// A value of `--revision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RevisionChoice {
    /// This one.
    Named(Revision),
    /// The newest that the server supports.
    Latest,
    /// Every one that the server supports, including the draft 2024-10-07.
    All,
}

/// The number of calls that fuzzing makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FuzzCalls {
    /// None: fuzzing is off.
    Off,
    /// As many as the schema of each tool needs.
    Auto,
    /// This many per tool.
    PerTool(u64),
}

impl From<Option<u64>> for FuzzCalls {
    fn from(calls: Option<u64>) -> Self {
        calls.map_or(Self::Auto, Self::PerTool)
    }
}

impl fmt::Display for FuzzCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Auto => f.write_str("auto"),
            Self::PerTool(calls) => calls.fmt(f),
        }
    }
}

/// A duration, displayed as it is written on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DurationValue(pub(super) Duration);

impl fmt::Display for DurationValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal that supports it.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For a reader.
    Text,
    /// For a program.
    Json,
    /// For a browser.
    Html,
    /// For a CI system that shows test results.
    Junit,
    /// For a viewer of code-scanning results.
    Sarif,
    /// For a TAP consumer.
    Tap,
    /// For a comment or a job summary.
    Markdown,
    /// For the log of a GitHub workflow: annotations.
    Github,
    /// For a web page: the conclusion as an image.
    Badge,
}

impl Format {
    const ALL: [Self; 9] = [
        Self::Text,
        Self::Json,
        Self::Html,
        Self::Junit,
        Self::Sarif,
        Self::Tap,
        Self::Markdown,
        Self::Github,
        Self::Badge,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Html => "html",
            Self::Junit => "junit",
            Self::Sarif => "sarif",
            Self::Tap => "tap",
            Self::Markdown => "markdown",
            Self::Github => "github",
            Self::Badge => "badge",
        }
    }
}

/// A value of `--report`. Without a path the report goes to standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestedReport {
    pub(super) format: Format,
    pub(super) path: Option<PathBuf>,
}

pub(super) fn revision_choice(text: &str) -> Result<RevisionChoice, String> {
    match text {
        "latest" => Ok(RevisionChoice::Latest),
        "all" => Ok(RevisionChoice::All),
        date => date.parse().map(RevisionChoice::Named).map_err(|_| {
            let known: Vec<&str> = Revision::ALL.map(Revision::as_str).to_vec();
            format!("the revisions are {}, `latest` and `all`", known.join(", "))
        }),
    }
}

pub(super) fn fuzz_calls(text: &str) -> Result<FuzzCalls, String> {
    match text {
        "off" | "0" => Ok(FuzzCalls::Off),
        "auto" => Ok(FuzzCalls::Auto),
        number => {
            let calls = number.parse().map(FuzzCalls::PerTool);
            calls.map_err(|_| "expected a number of calls, `auto` or `off`".to_owned())
        }
    }
}

/// Checks that a pattern is a glob.
pub(super) fn tool_glob(text: &str) -> Result<String, String> {
    Glob::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn seed_value(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some(("", _)) => Err(NO_NAME.to_owned()),
        // What is not JSON is a string without its quotes.
        Some((name, value)) => {
            Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
        }
        None => Err(NO_EQUALS_SIGN.to_owned()),
    }
}

pub(super) fn duration(text: &str) -> Result<DurationValue, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("the duration must be greater than zero".to_owned()),
        // A sum of longer durations could overflow the clock.
        Ok(duration) if duration > Duration::from_secs(86_400) => Err("the maximum is one day".to_owned()),
        Ok(duration) => Ok(DurationValue(duration)),
        Err(error) => Err(format!("{error}; write it as 5s or 500ms")),
    }
}

const NO_NAME: &str = "the name before `=` is missing";
const NO_EQUALS_SIGN: &str = "write it as NAME=VALUE";

/// A variable, which need not be Unicode.
pub(super) fn environment_variable(text: &OsStr) -> Result<(OsString, OsString), String> {
    let bytes = text.as_bytes();
    if bytes.contains(&0) {
        return Err("a variable cannot contain a null byte".to_owned());
    }
    let part = |bytes| OsStr::from_bytes(bytes).to_owned();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(0) => Err(NO_NAME.to_owned()),
        Some(at) => Ok((part(&bytes[..at]), part(&bytes[at + 1..]))),
        None => Err(NO_EQUALS_SIGN.to_owned()),
    }
}

pub(super) fn requested_report(text: &str) -> Result<RequestedReport, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name, Some(path)),
        None => (text, None),
    };
    let Some(format) = Format::ALL.into_iter().find(|format| format.name() == name) else {
        let known = Format::ALL.map(Format::name).join(", ");
        return Err(format!("unknown format `{name}`; the formats are {known}"));
    };
    match path {
        Some("") => Err(format!("the path after `{name}=` is missing")),
        None | Some("-") if format == Format::Html => {
            Err("`html` must be written to a file: html=report.html".to_owned())
        }
        None | Some("-") => Ok(RequestedReport { format, path: None }),
        Some(path) => Ok(RequestedReport { format, path: Some(PathBuf::from(path)) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_not_unicode_is_kept_as_it_is() {
        let value = OsStr::from_bytes(b"a\xff=b");
        let text = [OsStr::new("NAME="), value].join(OsStr::new(""));
        assert_eq!(environment_variable(&text), Ok((OsString::from("NAME"), value.to_owned())));
    }

    #[test]
    fn a_displayed_value_can_be_parsed_again() {
        for text in ["5s", "30s", "500ms"] {
            assert_eq!(duration(text).map(|value| value.to_string()), Ok(text.to_owned()));
        }
        for text in ["off", "200"] {
            assert_eq!(fuzz_calls(text).map(|value| value.to_string()), Ok(text.to_owned()));
        }
    }
}
