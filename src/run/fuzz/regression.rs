//! Failing calls as files: readable, editable, and tried first in the next run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hunt::{Found, Hunt};
use super::pool::Origin;
use super::shot::{Feed, Served, Shot};
use super::shrink::{Budget, Test};
use super::steady::STRETCHES;
use crate::case::Oracle;
use crate::check::fuzz::{Arguments, Breach, Call, Exchange, Fate, Standing, judge};
use crate::fuzz::{Malformed, Site};
use crate::spec::Revision;
use crate::verdict::{CallKind, Confirmation, Verdict};

/// The version of the format.
const FORMAT: u32 = 1;
/// Larger arguments are not written down.
const LARGEST: usize = 64 << 10;
/// How many files of a folder are read.
const MOST: usize = 500;

/// A failing call, as it stands in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Regression {
    /// The version of the format.
    pub format: u32,
    /// The case that found it: `fuzz/crash`.
    pub case: String,
    /// What was wrong, in one sentence.
    pub message: String,
    /// The revision that it was found in.
    pub revision: Revision,
    /// The tool.
    pub tool: String,
    /// The calls that have to be made before it, as `name` and `arguments`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Earlier>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The arguments as text, where they are no JSON, or none that stays the same when it is read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// What is odd about them, where no schema speaks of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odd: Option<String>,
    /// Which of the arguments stand for what a call before it returns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fed: Vec<Fed>,
    /// The tool whose plain call is served no more afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoils: Option<String>,
    /// How often all of the calls are made one after the other, where only many of them show what grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<usize>,
    /// Whether all of the calls are made at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
}

/// A call that has to be made before another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// An argument that stands for what an earlier call returns, whatever that is this time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fed {
    /// The argument.
    pub property: String,
    /// The tool that returns it; the last of its calls counts.
    pub tool: String,
    /// Where it stands in the result, as a JSON pointer.
    pub pointer: String,
    /// Whether the pointer is one into the JSON that the first text of the result holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_text: bool,
}

/// Why a file is no failing call.
#[derive(Debug, thiserror::Error)]
pub enum RegressionError {
    /// It cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not of the format.
    #[error("understand {path} as a failing call: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Regression {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not of the format.
    pub fn read(path: &Path) -> Result<Self, RegressionError> {
        const LARGEST_FILE: u64 = 4 << 20;
        let fault = |reason: String| RegressionError::Format { path: path.to_owned(), reason };
        let unread = |source| RegressionError::Read { path: path.to_owned(), source };
        if fs::metadata(path).map_err(unread)?.len() > LARGEST_FILE {
            return Err(fault("it is too large".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(unread)?;
        let read: Self = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        if read.format != FORMAT {
            return Err(fault(format!("its format is {}, and {FORMAT} is known", read.format)));
        }
        if read.oracle().is_none() {
            return Err(fault(format!("there is no case `{}`", read.case)));
        }
        if read.arguments.is_none() == read.raw.is_none() {
            return Err(fault("it has either `arguments` or `raw`".to_owned()));
        }
        Ok(read)
    }

    /// The files of a folder that are failing calls, by name; others are passed over.
    #[must_use]
    pub fn read_all(folder: &Path) -> Vec<(PathBuf, Self)> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        paths.truncate(MOST);
        paths.into_iter().filter_map(|path| Some((path.clone(), Self::read(&path).ok()?))).collect()
    }

    /// The oracle that it is judged by.
    #[must_use]
    pub fn oracle(&self) -> Option<Oracle> {
        self.case.strip_prefix("fuzz/")?.parse().ok()
    }
}

impl Hunt<'_> {
    /// Writes a failure down, and returns the path of the file.
    pub(super) fn write_down(&self, test: &Test, breach: &Breach, calls: &[Shot]) -> Option<String> {
        let folder = self.plan.regressions.as_ref()?;
        let (shot, before) = calls.split_last()?;
        let name = |shot: &Shot| self.subjects[shot.tool].name.clone();
        let before_tools: Vec<usize> = before.iter().map(|shot| shot.tool).collect();
        let before = before
            .iter()
            .map(|shot| match &shot.call.arguments {
                Arguments::Json(arguments) => Some(Earlier { name: name(shot), arguments: arguments.clone() }),
                Arguments::Raw(_) => None,
            })
            .collect::<Option<Vec<_>>>()?;
        let (arguments, raw) = match &shot.call.arguments {
            Arguments::Json(arguments) => (Some(arguments.clone()), None),
            Arguments::Raw(bytes) if bytes.len() <= LARGEST => (None, Some(String::from_utf8(bytes.clone()).ok()?)),
            Arguments::Raw(_) => return None,
        };
        let regression = Regression {
            format: FORMAT,
            case: format!("fuzz/{}", breach.oracle),
            message: breach.message.clone(),
            revision: self.rig.revision,
            tool: name(shot),
            before,
            arguments,
            raw,
            odd: match shot.call.standing {
                Standing::Malformed(_, name) => Some(name.to_owned()),
                _ => None,
            },
            fed: shot
                .fed
                .iter()
                .filter(|feed| before_tools.contains(&feed.origin.tool))
                .map(|feed| Fed {
                    property: feed.property.clone(),
                    tool: self.subjects[feed.origin.tool].name.clone(),
                    pointer: feed.origin.pointer.clone(),
                    in_text: feed.origin.in_text,
                })
                .collect(),
            spoils: match test {
                Test::Canary(canary) => Some(name(canary)),
                _ => None,
            },
            times: matches!(test, Test::Stretches).then_some(STRETCHES),
            at_once: matches!(test, Test::AtOnce),
        };
        let mut written = serde_json::to_string_pretty(&regression).ok()?;
        written.push('\n');
        let path = folder.join(file_name(&regression, &breach.signature));
        // A folder that cannot be written to keeps nobody from the report.
        fs::create_dir_all(folder).ok()?;
        fs::write(&path, written).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Tries the failing calls of earlier runs; returns those that fail no more.
    pub(super) async fn try_again(&mut self, files: &[(PathBuf, Regression)]) -> Result<Vec<(Oracle, String)>, String> {
        let mut mended = Vec::new();
        for (path, regression) in files {
            if self.is_over() {
                break;
            }
            let Some(oracle) = regression.oracle() else { continue };
            let position = |name: &str| self.subjects.iter().position(|subject| subject.name == name);
            let Some(tool) = position(&regression.tool) else { continue };
            let Some(shot) = self.shot_of(tool, regression) else { continue };
            let earlier = regression.before.iter().map(|earlier| {
                let tool = position(&earlier.name)?;
                Some(Shot::new(tool, self.call_of(tool, Arguments::Json(earlier.arguments.clone()), None)))
            });
            let Some(mut calls) = earlier.collect::<Option<Vec<Shot>>>() else { continue };
            let test = match oracle {
                Oracle::ReadOnly => Test::Lists,
                Oracle::Idempotent => Test::Again,
                Oracle::WorseAfter => {
                    let spoiled = regression.spoils.as_deref().and_then(position);
                    let canary = self.canaries.iter().find(|canary| Some(canary.tool) == spoiled);
                    let Some(canary) = canary else { continue };
                    Test::Canary(canary.clone())
                }
                Oracle::Memory | Oracle::LatencyClimb | Oracle::Descriptors => Test::Stretches,
                Oracle::AnswersSwapped => Test::AtOnce,
                _ => Test::Answer,
            };
            calls.push(shot.clone());
            for call in &calls {
                self.let_cases_pass(call.tool).await;
            }
            let found = match test {
                Test::Stretches => self.try_stretches(oracle, &calls, regression.times).await?,
                Test::AtOnce => {
                    self.rig.fresh().await?;
                    self.swaps(tool, calls).await?
                }
                _ => self.try_one(oracle, &test, &calls, &regression.message).await?,
            };
            let path = path.to_string_lossy().into_owned();
            match found {
                Some(mut found) => {
                    if let Some(counterexample) = &mut found.counterexample {
                        counterexample.file = Some(path);
                        counterexample.kind = CallKind::Regression;
                    }
                    self.add(Some(found));
                }
                None => mended.push((oracle, path)),
            }
        }
        Ok(mended)
    }

    /// Makes calls again and again, as often as it took to see something grow.
    async fn try_stretches(
        &mut self,
        oracle: Oracle,
        calls: &[Shot],
        times: Option<usize>,
    ) -> Result<Option<Found>, String> {
        const MOST_TIMES: usize = 1_000;
        let Some(last) = calls.last() else { return Ok(None) };
        self.rig.fresh().await?;
        let grown = self.stretches(calls, times.unwrap_or(STRETCHES).min(MOST_TIMES)).await?;
        match grown.into_iter().find(|breach| breach.oracle == oracle) {
            Some(breach) => self.of_all(last.tool, &Test::Stretches, breach, calls).await,
            None => Ok(None),
        }
    }

    async fn try_one(
        &mut self,
        oracle: Oracle,
        test: &Test,
        calls: &[Shot],
        message: &str,
    ) -> Result<Option<Found>, String> {
        if matches!(test, Test::Answer) {
            return self.try_answer(oracle, calls, message).await;
        }
        let mut breach = Breach::of_many(oracle, message, "it fails again, as in an earlier run");
        breach.verdict = Verdict::Warn;
        let mut budget = Budget::new(self.rig.startup());
        let Some(sight) = self.fails(test, calls, &breach, true, &mut budget).await? else { return Ok(None) };
        let sight = std::iter::once(sight.exchange).chain(sight.more).collect();
        Ok(self.failed_again(calls, breach, sight, true))
    }

    /// What is seen in the answer to the last call.
    async fn try_answer(&mut self, oracle: Oracle, calls: &[Shot], message: &str) -> Result<Option<Found>, String> {
        let [.., last] = calls else { return Ok(None) };
        // What another tool was seen to do is likely to be done here as well, which takes no process of its own to see.
        let alike =
            |found: &Found| found.tool != last.tool && found.breach.oracle == oracle && found.breach.message == message;
        if calls.len() == 1
            && self.found.iter().any(alike)
            && let Some((breach, exchange)) = self.answered(oracle, calls).await?
            && self.seen_by_all.is_of_another(last.tool, &breach)
        {
            return Ok(self.failed_again(calls, breach, vec![exchange], false));
        }
        self.rig.fresh().await?;
        let Some((breach, exchange)) = self.answered(oracle, calls).await? else { return Ok(None) };
        self.seen_by_all.take(last.tool, &breach);
        Ok(self.failed_again(calls, breach, vec![exchange], true))
    }

    /// Makes calls and says what is wrong with the answer to the last of them, if that is what an oracle looks for.
    async fn answered(&mut self, oracle: Oracle, calls: &[Shot]) -> Result<Option<(Breach, Exchange)>, String> {
        let Some((last, before)) = calls.split_last() else { return Ok(None) };
        let mut served: Vec<Served> = Vec::new();
        for earlier in before {
            let exchange = self.rig.one(&earlier.fed_by(&served), self.limit()).await?;
            if let Some(result) = exchange.answers.first().and_then(|answer| answer.get("result")) {
                served.push((earlier.tool, Arc::clone(&earlier.call), result.clone()));
            }
        }
        let mut exchange = self.rig.one(&last.fed_by(&served), self.limit()).await?;
        if exchange.fate == Fate::Answered {
            self.rig.wait_for_more(&mut exchange).await;
        }
        let breaches = judge(&self.subjects[last.tool], &exchange);
        Ok(breaches.into_iter().find(|breach| breach.oracle == oracle).map(|breach| (breach, exchange)))
    }

    /// What is told of calls that fail as they did in an earlier run, on a fresh process or on one that others were made
    /// to before.
    fn failed_again(&self, calls: &[Shot], breach: Breach, sight: Vec<Exchange>, fresh: bool) -> Option<Found> {
        let (last, before) = calls.split_last()?;
        let counterexample = self.counterexample(last.tool, &sight[0], &sight[0], before, 1);
        Some(Found {
            tool: last.tool,
            breach,
            count: 1,
            exchanges: sight,
            counterexample: Some(counterexample),
            confirmation: fresh.then_some(Confirmation { tried: 1, failed: 1 }),
        })
    }

    fn shot_of(&self, tool: usize, regression: &Regression) -> Option<Shot> {
        let arguments = match (&regression.arguments, &regression.raw) {
            (Some(arguments), _) => Arguments::Json(arguments.clone()),
            (None, Some(raw)) => Arguments::Raw(raw.clone().into_bytes()),
            (None, None) => return None,
        };
        let position = |name: &str| self.subjects.iter().position(|subject| subject.name == name);
        let feeds = regression.fed.iter().filter_map(|fed| {
            let origin = Origin { tool: position(&fed.tool)?, pointer: fed.pointer.clone(), in_text: fed.in_text };
            Some(Feed { property: fed.property.clone(), origin, source: None })
        });
        let call = self.call_of(tool, arguments, regression.odd.as_deref());
        Some(Shot { tool, call, fed: feeds.collect() })
    }

    /// A call of a file's: what it is to the schema is found out anew, since either may have been edited.
    fn call_of(&self, tool: usize, arguments: Arguments, odd: Option<&str>) -> Arc<Call> {
        let known = |name: &str| Malformed::kinds().into_iter().find(|known| known.name == name);
        let standing = match (&arguments, odd.and_then(known)) {
            (_, Some(odd)) => Standing::Malformed(odd.grammar, odd.name),
            (Arguments::Json(arguments), None) => match self.schemas[tool] {
                Some(schema) if schema.is_valid(arguments) => Standing::Valid,
                Some(schema) => schema
                    .sites()
                    .into_iter()
                    .find_map(|site: Site| broken_at(schema, site, arguments))
                    .unwrap_or(Standing::Unknown),
                None => Standing::Unknown,
            },
            (Arguments::Raw(_), None) => Standing::Unknown,
        };
        Arc::new(Call { kind: CallKind::Regression, standing, arguments, tape: None })
    }
}

fn broken_at(schema: &crate::fuzz::ToolSchema, site: Site, arguments: &Value) -> Option<Standing> {
    let generator = schema.violating(&site).ok()?;
    generator.holds(arguments).then(|| Standing::Breaks(Arc::new(site)))
}

/// A name that is the same for the same failure.
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
