//! What a word on the command line can say.
//!
//! Owns what stands behind an option: each choice that can be typed, how it is read from a text, and what is said of
//! one that cannot be. Which options take which word is said in [`super::args`].

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use globset::GlobMatcher;
use mcp_conformance::report;
use mcp_conformance::spec::Revision;
use serde_json::Value;

/// Which findings fail a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Those that break a rule which binds.
    Must,
    /// Warnings too.
    Should,
    /// None.
    Never,
}

impl From<FailOn> for report::FailOn {
    fn from(word: FailOn) -> Self {
        match word {
            FailOn::Must => Self::Must,
            FailOn::Should => Self::Should,
            FailOn::Never => Self::Never,
        }
    }
}

/// The revisions that are fuzzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FuzzRevisions {
    /// The newest that is judged.
    Newest,
    /// Every one that is judged.
    All,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// For a terminal.
    Text,
    /// For a program.
    Json,
    /// For a document.
    Markdown,
}

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PageFormat {
    /// For a document.
    Markdown,
    /// For a browser, in one file.
    Html,
    /// For a program.
    Json,
}

/// A revision as it can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RevisionChoice {
    /// This one.
    Named(Revision),
    /// The newest that the server speaks.
    Latest,
    /// Every one that the server speaks, the draft of 2024-10-07 included.
    All,
}

/// How many calls the fuzzer makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fuzz {
    /// It is off.
    Off,
    /// So many for each tool.
    Calls(u64),
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal that can.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For a reader.
    Text,
    /// For a program.
    Json,
    /// For a browser.
    Html,
    /// For a CI that shows tests.
    Junit,
    /// For a viewer of code scanning.
    Sarif,
    /// For a harness of TAP.
    Tap,
    /// For a comment or a summary.
    Markdown,
    /// For the log of a GitHub workflow, which makes annotations of it.
    Github,
    /// For a page that shows how it stands.
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

/// A report that is asked for, and where it goes: standard output unless a file is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedReport {
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

pub(super) fn fuzz(text: &str) -> Result<Fuzz, String> {
    match text {
        "off" | "0" => Ok(Fuzz::Off),
        number => number.parse().map(Fuzz::Calls).map_err(|_| "it is a number of calls, or `off`".to_owned()),
    }
}

pub(super) fn glob(text: &str) -> Result<GlobMatcher, String> {
    globset::Glob::new(text).map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
}

pub(super) fn seed_value(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is missing".to_owned()),
        // What is no JSON is a text without its quotes.
        Some((name, value)) => {
            Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
        }
        None => Err("write it as NAME=VALUE".to_owned()),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it has to be longer than nothing".to_owned()),
        // Beyond a day the sum of waits could leave what the clock can hold.
        Ok(duration) if duration > Duration::from_secs(86_400) => Err("a day is the most".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write it as 5s or 500ms")),
    }
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is missing".to_owned()),
        Some((name, value)) if !name.contains('\0') && !value.contains('\0') => Ok((name.to_owned(), value.to_owned())),
        Some(_) => Err("a variable cannot hold a zero byte".to_owned()),
        None => Err("write it as NAME=VALUE".to_owned()),
    }
}

pub(super) fn wanted_report(text: &str) -> Result<WantedReport, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name, Some(path)),
        None => (text, None),
    };
    let Some(format) = Format::ALL.into_iter().find(|format| format.name() == name) else {
        let known = Format::ALL.map(Format::name).join(", ");
        return Err(format!("there is no format `{name}`; the formats are {known}"));
    };
    match path {
        Some("") => Err(format!("the path after `{name}=` is missing")),
        None | Some("-") if format == Format::Html => Err("a page wants a file: html=report.html".to_owned()),
        None | Some("-") => Ok(WantedReport { format, path: None }),
        Some(path) => Ok(WantedReport { format, path: Some(PathBuf::from(path)) }),
    }
}
