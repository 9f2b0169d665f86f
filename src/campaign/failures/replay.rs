//! Replays saved failures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::failure::{Failure, Failures, counterexample};
use crate::campaign::calls::fuzz_call::{FuzzCall, ReusedValue};
use crate::campaign::calls::tools::FuzzTools;
use crate::campaign::calls::value_pool::Origin;
use crate::campaign::limits::{GROWTH_BLOCKS, MAX_GROWTH_TIME};
use crate::campaign::minimizer::failure_test::FailureTest;
use crate::campaign::minimizer::reproduction::{Reproducer, violation_in_response};
use crate::campaign::monitors::calls_at_once;
use crate::campaign::monitors::canaries::Canaries;
use crate::campaign::monitors::growth::{growth_failure, repeat_and_measure};
use crate::campaign::monitors::swapped_responses::find_swapped_responses;
use crate::campaign::process::caller::Caller;
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::case::Regression;
use crate::check::fuzz::{Arguments, Call, FuzzExchange, OracleViolation, Validity};
use crate::fuzz::{Constraint, Malformed, ToolSchema};
use crate::verdict::{CallKind, Confirmation, Verdict};

/// The regressions to replay first, with the paths of their files.
pub(in crate::campaign) fn saved_regressions(settings: &CampaignSettings<'_>) -> Vec<(PathBuf, Regression)> {
    match (&settings.plan.replay, &settings.failure_folder) {
        (Some((path, regression)), _) => vec![(path.clone(), regression.clone())],
        (None, Some(folder)) => folder.read(),
        (None, None) => Vec::new(),
    }
}

/// A saved failure that no longer fails.
#[derive(Debug)]
pub(crate) struct FixedFailure {
    pub(crate) oracle: Oracle,
    /// The path of its file.
    pub(crate) path: String,
    /// Whether the file was removed.
    pub(crate) removed: bool,
}

/// A saved failure whose tools exist.
#[derive(Debug)]
pub(in crate::campaign) struct Replay {
    oracle: Oracle,
    message: String,
    test: FailureTest,
    /// The calls; the failing one is the last.
    calls: Vec<FuzzCall>,
    /// How often to repeat all calls to see growth.
    repeat: usize,
}

impl Replay {
    /// The calls of a regression, unless the server lacks what they need.
    pub(in crate::campaign) fn new(regression: &Regression, tools: &FuzzTools, canaries: &Canaries) -> Option<Self> {
        const MAX_REPEAT: usize = 1_000;
        let oracle = regression.oracle()?;
        let fuzz_call = failing_call(tools, regression)?;
        let earlier = regression.preceding.iter().map(|earlier| {
            let tool = tools.position(&earlier.name)?;
            Some(FuzzCall::new(tool, saved_call(tools, tool, Arguments::Json(earlier.arguments.clone()), None)))
        });
        let mut calls = earlier.collect::<Option<Vec<FuzzCall>>>()?;
        calls.push(fuzz_call);
        let test = match oracle {
            Oracle::ReadOnly => FailureTest::ListChange,
            Oracle::Idempotent => FailureTest::RepeatedCall,
            Oracle::Degradation => {
                let broken_tool = regression.breaks_tool.as_deref().and_then(|name| tools.position(name))?;
                FailureTest::Canary(canaries.of_tool(broken_tool)?.clone())
            }
            Oracle::Memory | Oracle::LatencyGrowth | Oracle::Descriptors => FailureTest::Growth,
            Oracle::ResponsesSwapped => FailureTest::Concurrent,
            Oracle::Crash | Oracle::Hang if regression.concurrent => FailureTest::Concurrent,
            _ => FailureTest::Response,
        };
        let repeat = regression.repeat.unwrap_or(GROWTH_BLOCKS).min(MAX_REPEAT);
        Some(Self { oracle, message: regression.message.clone(), test, calls, repeat })
    }

    pub(in crate::campaign) fn oracle(&self) -> Oracle {
        self.oracle
    }

    /// Whether several calls are in flight.
    pub(in crate::campaign) fn is_concurrent(&self) -> bool {
        matches!(self.test, FailureTest::Concurrent)
    }

    /// The indexes of the tools that are called.
    pub(in crate::campaign) fn tools(&self) -> impl Iterator<Item = usize> {
        self.calls.iter().map(|fuzz_call| fuzz_call.tool)
    }

    /// Makes the calls; returns the failure if it occurs again. `path` is its file.
    pub(in crate::campaign) async fn run(
        self,
        caller: &mut Caller<'_>,
        settings: &CampaignSettings<'_>,
        failures: &Failures,
        path: &Path,
    ) -> Result<Option<Failure>, String> {
        let mut found = match self.test {
            FailureTest::Growth => self.replay_growth(caller, settings).await?,
            FailureTest::Concurrent => {
                caller.restart().await?;
                let tool = self.calls.last().map_or(0, |last| last.tool);
                match self.oracle {
                    Oracle::ResponsesSwapped => find_swapped_responses(caller, settings, tool, self.calls).await?,
                    _ => calls_at_once::confirmed(caller, settings, &self.calls, 1).await?,
                }
            }
            FailureTest::Response => self.replay_response(caller, failures).await?,
            _ => self.replay_effect(caller).await?,
        };
        if let Some(counterexample) = found.as_mut().and_then(|found| found.counterexample.as_mut()) {
            counterexample.file = Some(path.to_string_lossy().into_owned());
            counterexample.kind = CallKind::Regression;
        }
        Ok(found)
    }

    /// Repeats the calls as often as it took to see growth.
    async fn replay_growth(
        &self,
        caller: &mut Caller<'_>,
        settings: &CampaignSettings<'_>,
    ) -> Result<Option<Failure>, String> {
        let Some(last) = self.calls.last() else { return Ok(None) };
        caller.restart().await?;
        let grown = repeat_and_measure(caller, &self.calls, (self.repeat, settings.extended(MAX_GROWTH_TIME))).await?;
        match grown.into_iter().find(|violation| violation.oracle == self.oracle) {
            Some(violation) => growth_failure(caller, settings, last.tool, violation, &self.calls).await,
            None => Ok(None),
        }
    }

    /// Replays calls whose failure shows elsewhere than in a response.
    async fn replay_effect(&self, caller: &mut Caller<'_>) -> Result<Option<Failure>, String> {
        let actual = "it still fails, as in an earlier run";
        let mut violation = OracleViolation::from_many_calls(self.oracle, self.message.as_str(), actual);
        violation.verdict = Verdict::Warn;
        let mut reproducer = Reproducer { caller, test: &self.test, violation: &violation, is_patient: false };
        let Some(observation) = reproducer.attempt(&self.calls, true).await? else { return Ok(None) };
        let exchanges = std::iter::once(observation.exchange).chain(observation.supporting).collect();
        Ok(self.failure(caller, violation, exchanges, true))
    }

    /// Replays calls whose failure shows in the response to the last one.
    async fn replay_response(&self, caller: &mut Caller<'_>, failures: &Failures) -> Result<Option<Failure>, String> {
        let Some(last) = self.calls.last() else { return Ok(None) };
        // What another tool is known to do is likely to happen here as well, and needs no fresh process to see.
        let is_same_on_other_tool = |found: &Failure| {
            found.tool != last.tool && found.violation.oracle == self.oracle && found.violation.message == self.message
        };
        if self.calls.len() == 1
            && failures.any(is_same_on_other_tool)
            && let Some((violation, exchange)) = violation_in_response(caller, self.oracle, &self.calls).await?
            && failures.is_known_from_another_tool(last.tool, &violation)
        {
            return Ok(self.failure(caller, violation, vec![exchange], false));
        }
        caller.restart().await?;
        let Some((violation, exchange)) = violation_in_response(caller, self.oracle, &self.calls).await? else {
            return Ok(None);
        };
        failures.share(last.tool, &violation);
        Ok(self.failure(caller, violation, vec![exchange], true))
    }

    /// The failure that was seen again. It is confirmed only if the process was fresh.
    fn failure(
        &self,
        caller: &Caller<'_>,
        violation: OracleViolation,
        exchanges: Vec<FuzzExchange>,
        is_fresh: bool,
    ) -> Option<Failure> {
        let (last, preceding) = self.calls.split_last()?;
        let counterexample = counterexample(caller, last.tool, &exchanges[0], &exchanges[0], preceding, 1);
        Some(Failure {
            exchanges,
            counterexample: Some(counterexample),
            confirmation: is_fresh.then_some(Confirmation { tried: 1, failed: 1 }),
            ..Failure::of_tool(last.tool, violation)
        })
    }
}

/// The failing call of a regression.
fn failing_call(tools: &FuzzTools, regression: &Regression) -> Option<FuzzCall> {
    let tool = tools.position(&regression.tool)?;
    let arguments = match (&regression.arguments, &regression.raw) {
        (Some(arguments), _) => Arguments::Json(arguments.clone()),
        (None, Some(raw)) => Arguments::Raw(raw.clone().into_bytes().into()),
        (None, None) => return None,
    };
    let reused = regression.reused.iter().filter_map(|reused| {
        let tool = tools.position(&reused.tool)?;
        let origin = Origin { tool, pointer: reused.pointer.clone(), in_text: reused.in_text };
        Some(ReusedValue { property: reused.property.clone(), origin, source: None })
    });
    let call = saved_call(tools, tool, arguments, regression.malformation.as_deref());
    Some(FuzzCall { tool, call, reused: reused.collect() })
}

/// A call from a file. Its relation to the schema is determined anew, because either may have been edited.
fn saved_call(tools: &FuzzTools, tool: usize, arguments: Arguments, malformation: Option<&str>) -> Arc<Call> {
    let known = |name: &str| Malformed::kinds().into_iter().find(|known| known.name == name);
    let validity = match (&arguments, malformation.and_then(known)) {
        (_, Some(malformation)) => Validity::Malformed(malformation.grammar, malformation.name),
        (Arguments::Json(arguments), None) => match tools.schema(tool) {
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

fn violation_at(schema: &ToolSchema, constraint: Constraint, arguments: &serde_json::Value) -> Option<Validity> {
    let generator = schema.violating(&constraint).ok()?;
    generator.holds(arguments).then(|| Validity::Violates(Arc::new(constraint)))
}
