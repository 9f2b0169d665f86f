//! Calls in sequences: finds the tools that create, read, list, change and delete objects, makes planned calls,
//! and looks for results that contradict earlier ones.
//!
//! Everything happens on a process of its own, within a number of calls and a time, and not at all if no tool takes what
//! another one returns. What was created is deleted at the end if the server has a tool for that.

mod arguments;
mod discovery;
mod execution;
mod investigation;
mod kinds;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::arguments::ArgumentMaker;
use self::discovery::{Discovery, creators, example};
use self::execution::{CallAllowance, StepExchange, execute, records};
use self::kinds::{ObjectKind, ParentLink};
use self::plan::{SequencePlan, SequencePlanner};
use super::settings::CampaignSettings;
use crate::campaign::calls::tools::FuzzTools;
use crate::campaign::failures::failure::Failure;
use crate::campaign::limits::{
    CLEANING_CALLS, CLEANING_TIME, MAX_INVESTIGATIONS, MAX_SEQUENCE_CALLS, MAX_SEQUENCE_TIME,
};
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::Environment;
use crate::case::{Oracle, Regression};
use crate::check::fuzz::sequence_violation;
use crate::event::{SequenceSummary, ToolLink};
use crate::sequence::{CallSequence, Claim, Expectation, Role, SequenceStep, SequenceTool, StepAnswer, like};

/// What sequences found.
#[derive(Debug, Default)]
pub(super) struct SequenceResult {
    pub(super) failures: Vec<Failure>,
    /// The saved sequences that no longer fail.
    pub(super) fixed: Vec<(Oracle, PathBuf)>,
    pub(super) calls: u64,
    pub(super) restarts: usize,
    /// How long it waited for the cases to finish.
    pub(super) waited: Duration,
    /// What was found about the server; `None` if nothing was called.
    pub(super) summary: Option<SequenceSummary>,
}

/// Makes calls in sequences on a process of its own.
struct SequenceRunner<'r, 'a> {
    caller: Caller<'a>,
    settings: &'r CampaignSettings<'r>,
    views: &'r [SequenceTool],
    maker: ArgumentMaker,
    allowance: CallAllowance,
    kinds: Vec<ObjectKind>,
    links: Vec<ParentLink>,
    amounts: BTreeMap<usize, arguments::Amount>,
    summary: SequenceSummary,
}

/// Replays saved sequences, and then makes new ones if any tool takes what another returns.
pub(super) async fn run(
    environment: &Arc<dyn Environment>,
    settings: &CampaignSettings<'_>,
    tools: &FuzzTools,
    saved: &[(PathBuf, Regression)],
) -> SequenceResult {
    let views: Vec<SequenceTool> = tools.definitions().into_iter().filter_map(SequenceTool::new).collect();
    let is_callable = |step: &SequenceStep| tools.position(&step.tool).is_some();
    let saved = saved.iter().filter(|(_, regression)| !regression.steps.is_empty());
    let saved: Vec<_> = saved.filter(|(_, regression)| regression.steps.iter().all(is_callable)).collect();
    let makes_new = settings.makes_sequences() && views.len() == tools.len() && !creators(&views).is_empty();
    let mut result = SequenceResult::default();
    if saved.is_empty() && !makes_new {
        return result;
    }
    let began = Instant::now();
    environment.wait_for_cases().await;
    result.waited = began.elapsed();
    let time = settings.time().min(settings.extended(MAX_SEQUENCE_TIME) * settings.slowdown());
    let mut runner = SequenceRunner {
        caller: Caller::new(environment, settings, tools),
        settings,
        views: &views,
        maker: ArgumentMaker::new(settings.seed),
        allowance: CallAllowance { calls: MAX_SEQUENCE_CALLS, deadline: Instant::now() + time },
        kinds: Vec::new(),
        links: Vec::new(),
        amounts: BTreeMap::new(),
        summary: SequenceSummary::default(),
    };
    for (path, regression) in saved {
        match runner.replay(path, regression).await {
            Ok(Some(failure)) => result.failures.push(failure),
            Ok(None) => result.fixed.extend(regression.oracle().map(|oracle| (oracle, path.clone()))),
            Err(problem) => runner.summary.problem = Some(problem),
        }
    }
    if makes_new
        && !environment.is_stopping()
        && let Err(problem) = runner.run_sequences(environment, &mut result.failures).await
    {
        runner.summary.problem = Some(problem);
    }
    runner.caller.end().await;
    result.calls = runner.caller.process().calls();
    result.restarts = runner.caller.process().starts().saturating_sub(1);
    runner.summary.calls = result.calls;
    result.summary = Some(runner.summary);
    result
}

impl SequenceRunner<'_, '_> {
    /// Finds the kinds of objects, and makes the calls of the plan for each.
    async fn run_sequences(
        &mut self,
        environment: &Arc<dyn Environment>,
        failures: &mut Vec<Failure>,
    ) -> Result<(), String> {
        let mut discovery = Discovery {
            caller: &mut self.caller,
            views: self.views,
            maker: &mut self.maker,
            allowance: &mut self.allowance,
            kinds: Vec::new(),
            links: Vec::new(),
            amounts: BTreeMap::new(),
            created: Vec::new(),
            made: Vec::new(),
        };
        let discovered = discovery.run().await;
        let made = std::mem::take(&mut discovery.made);
        (self.kinds, self.links, self.amounts) = (discovery.kinds, discovery.links, discovery.amounts);
        self.clean(&made).await?;
        discovered?;
        self.summary.links = self.tool_links();
        let mut investigated = 0;
        for kind in 0..self.kinds.len() {
            if environment.is_stopping() || self.allowance.is_spent() {
                break;
            }
            let planner = &mut SequencePlanner {
                tools: self.caller.tools(),
                views: self.views,
                kinds: &self.kinds,
                links: &self.links,
                amounts: &self.amounts,
                maker: &mut self.maker,
            };
            let Some(plan) = planner.plan(kind) else { continue };
            self.caller.restart().await?;
            let made = execute(&mut self.caller, &mut self.allowance, &plan.steps, Duration::ZERO).await?;
            self.clean(&made).await?;
            self.summary.sequences += 1;
            for (oracle, expectation) in suspicions(&plan, &made) {
                if investigated >= MAX_INVESTIGATIONS || self.allowance.is_spent() {
                    break;
                }
                investigated += 1;
                failures.extend(self.investigate(oracle, &plan.steps, &expectation).await?);
            }
        }
        Ok(())
    }

    /// The links between tools, as the report shows them.
    fn tool_links(&self) -> Vec<ToolLink> {
        let name = |tool: usize| self.views[tool].name.clone();
        let mut links = Vec::new();
        for kind in &self.kinds {
            let value = kind.identifier.shown();
            let link = |consumer: usize, argument: &str, confirmed| ToolLink {
                producer: name(kind.creator),
                value: value.clone(),
                consumer: name(consumer),
                argument: argument.to_owned(),
                confirmed,
            };
            links.extend(kind.tools.iter().map(|tool| link(tool.tool, &tool.argument, tool.is_confirmed)));
        }
        for parent in &self.links {
            let kind = &self.kinds[parent.kind];
            let known = |link: &ToolLink| link.consumer == name(parent.tool) && link.argument == parent.argument;
            if !links.iter().any(known) {
                let value = kind.identifier.shown();
                let (producer, consumer) = (name(kind.creator), name(parent.tool));
                links.push(ToolLink { producer, value, consumer, argument: parent.argument.clone(), confirmed: false });
            }
        }
        links
    }

    /// Deletes what calls have created, the last first, and counts what cannot be deleted. Needs the process that was
    /// called.
    async fn clean(&mut self, made: &[StepExchange]) -> Result<(), String> {
        let spent = std::mem::replace(
            &mut self.allowance,
            CallAllowance { calls: CLEANING_CALLS, deadline: Instant::now() + self.settings.extended(CLEANING_TIME) },
        );
        let cleaned = self.delete_all(made).await;
        self.allowance = spent;
        cleaned
    }

    async fn delete_all(&mut self, made: &[StepExchange]) -> Result<(), String> {
        let made_by_creator = |made: &&StepExchange| {
            self.views[made.call.tool].role == Some(Role::Create) && !made.record.results().is_empty()
        };
        let created: Vec<&StepExchange> = made.iter().filter(made_by_creator).collect();
        for creation in created.into_iter().rev() {
            self.summary.created += 1;
            let kind = self.kinds.iter().find(|kind| kind.creator == creation.call.tool);
            let deleter = kind.and_then(|kind| Some((kind.identifier.clone(), kind.deleter()?.clone())));
            let is_deleted = match deleter {
                Some((identifier, deleter)) => match identifier.value(&creation.record) {
                    Some(value) => self.delete(&deleter, value, made).await?,
                    None => false,
                },
                None => false,
            };
            if !is_deleted {
                self.summary.left += 1;
                self.summary.left_by.insert(self.views[creation.call.tool].name.clone());
            }
        }
        Ok(())
    }

    /// Deletes an object, unless a call did so before; returns whether it is deleted.
    async fn delete(
        &mut self,
        deleter: &kinds::ObjectTool,
        value: serde_json::Value,
        made: &[StepExchange],
    ) -> Result<bool, String> {
        let view = &self.views[deleter.tool];
        let Some(parameter) = view.parameter(&deleter.argument) else { return Ok(false) };
        let value = like(&example(parameter), value);
        let was_deleted = made.iter().any(|made| {
            made.call.tool == deleter.tool
                && !made.record.results().is_empty()
                && made.record.arguments.get(&deleter.argument) == Some(&value)
        });
        if was_deleted {
            return Ok(true);
        }
        let step = SequenceStep {
            tool: view.name.clone(),
            arguments: serde_json::json!({ &deleter.argument: value }),
            values: Vec::new(),
        };
        let done = execute(&mut self.caller, &mut self.allowance, &[step], Duration::ZERO).await?;
        Ok(done.first().is_some_and(|done| matches!(done.record.answer, StepAnswer::Served(_))))
    }
}

/// What the calls of a plan seem to show, each cause once.
fn suspicions(plan: &SequencePlan, made: &[StepExchange]) -> Vec<(Oracle, Expectation)> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    let records = records(made);
    for (oracle, expectation) in &plan.expectations {
        let sequence = CallSequence { steps: plan.steps.clone(), expectation: expectation.clone() };
        if let Some(violation) = sequence_violation(*oracle, &sequence, &records)
            && known.insert(violation.signature)
        {
            found.push((*oracle, expectation.clone()));
        }
    }
    for (step, made) in made.iter().enumerate() {
        for broken in &made.violations {
            let claim = Claim::Sound(step, broken.oracle.as_str().to_owned());
            let expectation = Expectation { claim, controls: Vec::new(), needs: Vec::new() };
            let cause = format!("{} {} {}", broken.oracle, broken.signature, made.call.tool);
            if known.insert(cause) {
                found.push((broken.oracle, expectation));
            }
        }
    }
    found
}
