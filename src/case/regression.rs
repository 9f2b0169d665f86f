//! Regression files: failing calls in a readable, editable form.
//!
//! It is responsible for the file format only; the fuzzing campaign saves and replays the calls.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checks::Oracle;
use crate::sequence::{Expectation, SequenceStep};
use crate::spec::Revision;

/// The maximum number of files to read from a folder.
const MAX_FILES: usize = 500;

/// A failing call as stored in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Regression {
    /// The version of the file format.
    pub format: u32,
    /// The case that found it, such as `fuzz/crash`.
    pub case: String,
    /// The problem in one sentence.
    pub message: String,
    /// The revision in which it was found.
    pub revision: Revision,
    /// The name of the tool.
    pub tool: String,
    /// The calls to make before it, as `name` and `arguments`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<PrecedingCall>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The arguments as a string, if they are not JSON or would not survive parsing and serialising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The kind of malformed arguments, if they are malformed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformation: Option<String>,
    /// The arguments whose values come from the results of preceding calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reused: Vec<ReusedArgument>,
    /// The tool whose plain call no longer succeeds afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaks_tool: Option<String>,
    /// How often to repeat the whole sequence, if only many repetitions show growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<usize>,
    /// Whether to send all calls concurrently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub concurrent: bool,
    /// All calls of a sequence, the failing one included, instead of `preceding` and `arguments`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<SequenceStep>,
    /// What the results of the sequence have to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expectation: Option<Expectation>,
}

/// A call to make before the failing one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrecedingCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// An argument that takes its value from the result of a preceding call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReusedArgument {
    /// The name of the argument.
    pub property: String,
    /// The tool that returns the value; its last call is used.
    pub tool: String,
    /// The JSON pointer to the value in the result.
    pub pointer: String,
    /// Whether the pointer points into the JSON in the first text content of the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_text: bool,
}

/// The reason why a file is not a regression file.
#[derive(Debug, thiserror::Error)]
pub enum RegressionError {
    /// The file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content does not have the expected format.
    #[error("parse {path} as a regression file: {reason}")]
    Format {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Regression {
    /// The version of the file format.
    pub(crate) const FORMAT: u32 = 2;

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or does not have the expected format.
    pub fn read(path: &Path) -> Result<Self, RegressionError> {
        const MAX_FILE_BYTES: u64 = 4 << 20;
        let fault = |reason: String| RegressionError::Format { path: path.to_owned(), reason };
        let unread = |source| RegressionError::Read { path: path.to_owned(), source };
        if fs::metadata(path).map_err(unread)?.len() > MAX_FILE_BYTES {
            return Err(fault("it is too large".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(unread)?;
        let read: Self = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        if read.format != Self::FORMAT {
            return Err(fault(format!("its format is {}, but only {} is supported", read.format, Self::FORMAT)));
        }
        if read.oracle().is_none() {
            return Err(fault(format!("there is no case `{}`", read.case)));
        }
        let forms = [read.arguments.is_some(), read.raw.is_some(), !read.steps.is_empty()];
        if forms.into_iter().filter(|is_present| *is_present).count() != 1 {
            return Err(fault("it must have exactly one of `arguments`, `raw` and `steps`".to_owned()));
        }
        if read.steps.is_empty() == read.expectation.is_some() {
            return Err(fault("`steps` and `expectation` belong together".to_owned()));
        }
        Ok(read)
    }

    /// Reads the regression files of a folder in the order of their names, at most 500; returns also why others could
    /// not be read. Files of other types are skipped, and a folder that does not exist has no files.
    #[must_use]
    pub fn read_all(folder: &Path) -> (Vec<(PathBuf, Self)>, Vec<RegressionError>) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), Vec::new()),
            Err(source) => return (Vec::new(), vec![RegressionError::Read { path: folder.to_owned(), source }]),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        paths.truncate(MAX_FILES);
        let (mut read, mut problems) = (Vec::new(), Vec::new());
        for path in paths {
            match Self::read(&path) {
                Ok(regression) => read.push((path, regression)),
                Err(problem) => problems.push(problem),
            }
        }
        (read, problems)
    }

    /// The oracle that judges it.
    #[must_use]
    pub fn oracle(&self) -> Option<Oracle> {
        self.case.strip_prefix("fuzz/")?.parse().ok()
    }
}
