//! What fuzzing of tools over the wire is to do.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use globset::GlobBuilder;
use serde_json::Value;

use super::error::JudgeError;
use crate::run::FuzzPlan;

/// What fuzzing is to do.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mcp_conformance::Fuzzing;
///
/// let fuzzing = Fuzzing::calls(2_000).time(Duration::from_secs(60)).tool("search*").skip_tool("*_admin");
/// # let _fuzzing = fuzzing;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Fuzzing {
    calls: u64,
    time: Option<Duration>,
    tools: Vec<String>,
    skip_tools: Vec<String>,
    values: Vec<(String, Value)>,
    regressions: Option<PathBuf>,
    every_revision: bool,
}

impl Fuzzing {
    /// So many calls of each tool; what makes a failure small and confirms it comes on top.
    pub fn calls(calls: u64) -> Self {
        Self {
            calls,
            time: None,
            tools: Vec::new(),
            skip_tools: Vec::new(),
            values: Vec::new(),
            regressions: None,
            every_revision: false,
        }
    }

    /// It takes at most this long in a revision.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Only tools whose name matches this glob, or another that is given.
    pub fn tool(mut self, glob: impl Into<String>) -> Self {
        self.tools.push(glob.into());
        self
    }

    /// No tools whose name matches this glob.
    pub fn skip_tool(mut self, glob: impl Into<String>) -> Self {
        self.skip_tools.push(glob.into());
        self
    }

    /// A value for properties of this name, tried wherever the schema admits it.
    pub fn value(mut self, property: impl Into<String>, value: impl Into<Value>) -> Self {
        self.values.push((property.into(), value.into()));
        self
    }

    /// The folder of failing calls: they are tried first, and new ones are written there.
    pub fn regressions(mut self, folder: impl Into<PathBuf>) -> Self {
        self.regressions = Some(folder.into());
        self
    }

    /// It is done in every revision that is judged, rather than in the newest alone.
    pub fn every_revision(mut self) -> Self {
        self.every_revision = true;
        self
    }

    /// What the run is told of it.
    pub(super) fn plan(&self, jobs: Option<NonZero<usize>>) -> Result<FuzzPlan, JudgeError> {
        let globs = |patterns: &[String]| {
            let glob = |pattern: &String| match GlobBuilder::new(pattern).build() {
                Ok(glob) => Ok(glob.compile_matcher()),
                Err(error) => Err(JudgeError::Tool { pattern: pattern.clone(), reason: error.to_string() }),
            };
            patterns.iter().map(glob).collect::<Result<Vec<_>, _>>()
        };
        Ok(FuzzPlan {
            time: self.time,
            tools: globs(&self.tools)?,
            skip_tools: globs(&self.skip_tools)?,
            seeds: self.values.clone(),
            regressions: self.regressions.clone(),
            every_revision: self.every_revision,
            jobs: jobs.map(NonZero::get),
            ..FuzzPlan::of(self.calls)
        })
    }
}
