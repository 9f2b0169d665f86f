//! Regression files: failing calls in a readable, editable form, replayed first by the next run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fuzz_call::{FuzzCall, ReusedValue, ServedCall};
use super::resource_monitor::BLOCKS;
use super::shrink::{FailureTest, ShrinkBudget};
use super::value_pool::Origin;
use super::worker::{Failure, Worker};
use crate::case::Oracle;
use crate::check::fuzz::{Arguments, Call, ExchangeOutcome, FuzzExchange, OracleViolation, Validity, judge};
use crate::fuzz::{Constraint, Malformed};
use crate::spec::Revision;
use crate::verdict::{CallKind, Confirmation, Verdict};

/// The version of the file format.
const FORMAT: u32 = 2;
/// The maximum size of arguments that are saved.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
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
        if read.format != FORMAT {
            return Err(fault(format!("its format is {}, but only {FORMAT} is supported", read.format)));
        }
        if read.oracle().is_none() {
            return Err(fault(format!("there is no case `{}`", read.case)));
        }
        if read.arguments.is_none() == read.raw.is_none() {
            return Err(fault("it must have exactly one of `arguments` and `raw`".to_owned()));
        }
        Ok(read)
    }

    /// Reads the regression files of a folder in the order of their names; skips other files.
    #[must_use]
    pub fn read_all(folder: &Path) -> Vec<(PathBuf, Self)> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        paths.truncate(MAX_FILES);
        paths.into_iter().filter_map(|path| Some((path.clone(), Self::read(&path).ok()?))).collect()
    }

    /// The oracle that judges it.
    #[must_use]
    pub fn oracle(&self) -> Option<Oracle> {
        self.case.strip_prefix("fuzz/")?.parse().ok()
    }
}

impl Worker<'_> {
    /// Saves a failure; returns the path of the file.
    pub(super) fn save_regression(
        &self,
        test: &FailureTest,
        violation: &OracleViolation,
        calls: &[FuzzCall],
    ) -> Option<String> {
        let folder = self.plan.regressions.as_ref()?;
        let (fuzz_call, preceding) = calls.split_last()?;
        let name = |fuzz_call: &FuzzCall| self.fuzzed_tools[fuzz_call.tool].name.clone();
        let before_tools: Vec<usize> = preceding.iter().map(|fuzz_call| fuzz_call.tool).collect();
        let preceding = preceding
            .iter()
            .map(|fuzz_call| match &fuzz_call.call.arguments {
                Arguments::Json(arguments) => {
                    Some(PrecedingCall { name: name(fuzz_call), arguments: arguments.clone() })
                }
                Arguments::Raw(_) => None,
            })
            .collect::<Option<Vec<_>>>()?;
        let (arguments, raw) = match &fuzz_call.call.arguments {
            Arguments::Json(arguments) => (Some(arguments.clone()), None),
            Arguments::Raw(bytes) if bytes.len() <= MAX_ARGUMENT_BYTES => {
                (None, Some(String::from_utf8(bytes.clone()).ok()?))
            }
            Arguments::Raw(_) => return None,
        };
        let regression = Regression {
            format: FORMAT,
            case: format!("fuzz/{}", violation.oracle),
            message: violation.message.clone(),
            revision: self.process.revision,
            tool: name(fuzz_call),
            preceding,
            arguments,
            raw,
            malformation: match fuzz_call.call.validity {
                Validity::Malformed(_, name) => Some(name.to_owned()),
                _ => None,
            },
            reused: fuzz_call
                .reused
                .iter()
                .filter(|reused| before_tools.contains(&reused.origin.tool))
                .map(|reused| ReusedArgument {
                    property: reused.property.clone(),
                    tool: self.fuzzed_tools[reused.origin.tool].name.clone(),
                    pointer: reused.origin.pointer.clone(),
                    in_text: reused.origin.in_text,
                })
                .collect(),
            breaks_tool: match test {
                FailureTest::Canary(canary) => Some(name(canary)),
                _ => None,
            },
            repeat: matches!(test, FailureTest::Growth).then_some(BLOCKS),
            concurrent: matches!(test, FailureTest::Concurrent),
        };
        let mut written = serde_json::to_string_pretty(&regression).ok()?;
        written.push('\n');
        let path = folder.join(file_name(&regression, &violation.signature));
        // An unwritable folder must not prevent the report.
        fs::create_dir_all(folder).ok()?;
        fs::write(&path, written).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Replays the regression files; returns those that no longer fail.
    pub(super) async fn replay_regressions(
        &mut self,
        files: &[(PathBuf, Regression)],
    ) -> Result<Vec<(Oracle, String)>, String> {
        let mut fixed = Vec::new();
        for (path, regression) in files {
            if self.is_over() {
                break;
            }
            let Some(oracle) = regression.oracle() else { continue };
            let position = |name: &str| self.fuzzed_tools.iter().position(|fuzzed_tool| fuzzed_tool.name == name);
            let Some(tool) = position(&regression.tool) else { continue };
            let Some(fuzz_call) = self.shot_of(tool, regression) else { continue };
            let earlier = regression.preceding.iter().map(|earlier| {
                let tool = position(&earlier.name)?;
                Some(FuzzCall::new(tool, self.call_of(tool, Arguments::Json(earlier.arguments.clone()), None)))
            });
            let Some(mut calls) = earlier.collect::<Option<Vec<FuzzCall>>>() else { continue };
            let test = match oracle {
                Oracle::ReadOnly => FailureTest::ListChange,
                Oracle::Idempotent => FailureTest::RepeatedCall,
                Oracle::Degradation => {
                    let broken_tool = regression.breaks_tool.as_deref().and_then(position);
                    let canary = self.canaries.iter().find(|canary| Some(canary.tool) == broken_tool);
                    let Some(canary) = canary else { continue };
                    FailureTest::Canary(canary.clone())
                }
                Oracle::Memory | Oracle::LatencyGrowth | Oracle::Descriptors => FailureTest::Growth,
                Oracle::ResponsesSwapped => FailureTest::Concurrent,
                _ => FailureTest::Response,
            };
            calls.push(fuzz_call.clone());
            for call in &calls {
                self.wait_for_cases(call.tool).await;
            }
            let found = match test {
                FailureTest::Growth => self.replay_growth(oracle, &calls, regression.repeat).await?,
                FailureTest::Concurrent => {
                    self.process.restart().await?;
                    self.find_swapped_response(tool, calls).await?
                }
                _ => self.replay_regression(oracle, &test, &calls, &regression.message).await?,
            };
            let path = path.to_string_lossy().into_owned();
            match found {
                Some(mut found) => {
                    if let Some(counterexample) = &mut found.counterexample {
                        counterexample.file = Some(path);
                        counterexample.kind = CallKind::Regression;
                    }
                    self.add_failure(Some(found));
                }
                None => fixed.push((oracle, path)),
            }
        }
        Ok(fixed)
    }

    /// Repeats calls as often as it took to see growth.
    async fn replay_growth(
        &mut self,
        oracle: Oracle,
        calls: &[FuzzCall],
        repeat: Option<usize>,
    ) -> Result<Option<Failure>, String> {
        const MAX_REPEAT: usize = 1_000;
        let Some(last) = calls.last() else { return Ok(None) };
        self.process.restart().await?;
        let grown = self.run_blocks(calls, repeat.unwrap_or(BLOCKS).min(MAX_REPEAT)).await?;
        match grown.into_iter().find(|violation| violation.oracle == oracle) {
            Some(violation) => self.failure_of_all(last.tool, &FailureTest::Growth, violation, calls).await,
            None => Ok(None),
        }
    }

    async fn replay_regression(
        &mut self,
        oracle: Oracle,
        test: &FailureTest,
        calls: &[FuzzCall],
        message: &str,
    ) -> Result<Option<Failure>, String> {
        if matches!(test, FailureTest::Response) {
            return self.replay_response(oracle, calls, message).await;
        }
        let mut violation = OracleViolation::from_many_calls(oracle, message, "it still fails, as in an earlier run");
        violation.verdict = Verdict::Warn;
        let mut budget = ShrinkBudget::new(self.process.startup());
        let Some(observation) = self.reproduces(test, calls, &violation, true, &mut budget).await? else {
            return Ok(None);
        };
        let observation = std::iter::once(observation.exchange).chain(observation.supporting).collect();
        Ok(self.reproduced_failure(calls, violation, observation, true))
    }

    /// Replays calls whose failure shows in the response to the last one.
    async fn replay_response(
        &mut self,
        oracle: Oracle,
        calls: &[FuzzCall],
        message: &str,
    ) -> Result<Option<Failure>, String> {
        let [.., last] = calls else { return Ok(None) };
        // What another tool is known to do is likely to happen here as well, and needs no fresh process to see.
        let is_same_on_other_tool = |found: &Failure| {
            found.tool != last.tool && found.violation.oracle == oracle && found.violation.message == message
        };
        if calls.len() == 1
            && self.found.iter().any(is_same_on_other_tool)
            && let Some((violation, exchange)) = self.response_to(oracle, calls).await?
            && self.shared_failures.is_known_from_another_tool(last.tool, &violation)
        {
            return Ok(self.reproduced_failure(calls, violation, vec![exchange], false));
        }
        self.process.restart().await?;
        let Some((violation, exchange)) = self.response_to(oracle, calls).await? else { return Ok(None) };
        self.shared_failures.record(last.tool, &violation);
        Ok(self.reproduced_failure(calls, violation, vec![exchange], true))
    }

    /// Makes calls and returns the violation of an oracle in the response to the last one, if there is one.
    async fn response_to(
        &mut self,
        oracle: Oracle,
        calls: &[FuzzCall],
    ) -> Result<Option<(OracleViolation, FuzzExchange)>, String> {
        let Some((last, preceding)) = calls.split_last() else { return Ok(None) };
        let mut served: Vec<ServedCall> = Vec::new();
        for earlier in preceding {
            let exchange = self.process.call(&earlier.with_values_from(&served), self.timeout()).await?;
            if let Some(result) = exchange.responses.first().and_then(|answer| answer.get("result")) {
                served.push((earlier.tool, Arc::clone(&earlier.call), result.clone()));
            }
        }
        let mut exchange = self.process.call(&last.with_values_from(&served), self.timeout()).await?;
        if exchange.outcome == ExchangeOutcome::Answered {
            self.process.wait_for_late_output(&mut exchange).await;
        }
        let violations = judge(&self.fuzzed_tools[last.tool], &exchange);
        Ok(violations.into_iter().find(|violation| violation.oracle == oracle).map(|violation| (violation, exchange)))
    }

    /// The finding for calls that still fail. It is confirmed only if the process was fresh.
    fn reproduced_failure(
        &self,
        calls: &[FuzzCall],
        violation: OracleViolation,
        observation: Vec<FuzzExchange>,
        restart: bool,
    ) -> Option<Failure> {
        let (last, preceding) = calls.split_last()?;
        let counterexample = self.counterexample(last.tool, &observation[0], &observation[0], preceding, 1);
        Some(Failure {
            tool: last.tool,
            violation,
            count: 1,
            exchanges: observation,
            counterexample: Some(counterexample),
            confirmation: restart.then_some(Confirmation { tried: 1, failed: 1 }),
        })
    }

    fn shot_of(&self, tool: usize, regression: &Regression) -> Option<FuzzCall> {
        let arguments = match (&regression.arguments, &regression.raw) {
            (Some(arguments), _) => Arguments::Json(arguments.clone()),
            (None, Some(raw)) => Arguments::Raw(raw.clone().into_bytes()),
            (None, None) => return None,
        };
        let position = |name: &str| self.fuzzed_tools.iter().position(|fuzzed_tool| fuzzed_tool.name == name);
        let feeds = regression.reused.iter().filter_map(|reused| {
            let origin =
                Origin { tool: position(&reused.tool)?, pointer: reused.pointer.clone(), in_text: reused.in_text };
            Some(ReusedValue { property: reused.property.clone(), origin, source: None })
        });
        let call = self.call_of(tool, arguments, regression.malformation.as_deref());
        Some(FuzzCall { tool, call, reused: feeds.collect() })
    }

    /// A call from a file. Its relation to the schema is determined anew, because either may have been edited.
    fn call_of(&self, tool: usize, arguments: Arguments, malformation: Option<&str>) -> Arc<Call> {
        let known = |name: &str| Malformed::kinds().into_iter().find(|known| known.name == name);
        let validity = match (&arguments, malformation.and_then(known)) {
            (_, Some(malformation)) => Validity::Malformed(malformation.grammar, malformation.name),
            (Arguments::Json(arguments), None) => match self.schemas[tool] {
                Some(schema) if schema.is_valid(arguments) => Validity::Valid,
                Some(schema) => schema
                    .constraints()
                    .into_iter()
                    .find_map(|constraint: Constraint| violation_at(schema, constraint, arguments))
                    .unwrap_or(Validity::Unknown),
                None => Validity::Unknown,
            },
            (Arguments::Raw(_), None) => Validity::Unknown,
        };
        Arc::new(Call { kind: CallKind::Regression, validity, arguments, choices: None })
    }
}

fn violation_at(schema: &crate::fuzz::ToolSchema, constraint: Constraint, arguments: &Value) -> Option<Validity> {
    let generator = schema.violating(&constraint).ok()?;
    generator.holds(arguments).then(|| Validity::Violates(Arc::new(constraint)))
}

/// A file name that is stable for the same failure.
fn file_name(regression: &Regression, signature: &str) -> String {
    let plain = |text: &str| -> String {
        let safe = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        safe.take(40).collect()
    };
    let hash = signature
        .bytes()
        .chain(regression.tool.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{}-{}-{:08x}.json", plain(&regression.case[5..]), plain(&regression.tool), hash & 0xffff_ffff)
}
