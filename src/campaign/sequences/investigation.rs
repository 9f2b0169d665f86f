//! Makes a sequence that shows a failure small, confirms it on a fresh process with pauses between its calls, saves it,
//! and replays saved ones.

use std::path::Path;
use std::time::Duration;

use super::SequenceRunner;
use super::arguments::with_new_words;
use super::execution::{StepExchange, execute, records};
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::failures::failure::{Failure, counterexample, without_large_values};
use crate::campaign::failures::saved_failure::file_name;
use crate::campaign::limits::{MAX_SEQUENCE_ATTEMPTS, SETTLING_TIME};
use crate::case::{Oracle, Regression};
use crate::check::fuzz::{OracleViolation, sequence_violation};
use crate::sequence::{CallSequence, Claim, Expectation, SequenceStep};
use crate::verdict::{CallKind, Confirmation};

/// A sequence that failed, with its calls.
struct Shown {
    sequence: CallSequence,
    violation: OracleViolation,
    made: Vec<StepExchange>,
}

impl SequenceRunner<'_, '_> {
    /// Makes a failing sequence small and confirms it; `None` if it does not fail again.
    pub(super) async fn investigate(
        &mut self,
        oracle: Oracle,
        steps: &[SequenceStep],
        expectation: &Expectation,
    ) -> Result<Option<Failure>, String> {
        let whole = CallSequence { steps: steps.to_vec(), expectation: expectation.clone() };
        let mut attempts = 0;
        let needed = whole.needed();
        let smallest = match whole.with_only(&needed) {
            Some(smallest) => self.attempt(oracle, &smallest, Duration::ZERO).await?,
            None => None,
        };
        let shown = match smallest {
            Some(shown) => Some(shown),
            None => self.remove_steps(oracle, &whole, &needed, &mut attempts).await?,
        };
        let Some(mut shown) = shown else { return Ok(None) };
        attempts += self.simplify(oracle, &mut shown).await?;
        // A server whose changes take time is not to blame: each call comes after the changes before it.
        let confirmed = self.attempt(oracle, &shown.sequence, SETTLING_TIME).await?;
        Ok(confirmed.and_then(|confirmed| self.failure(oracle, confirmed, attempts + 2, None)))
    }

    /// Leaves out steps as long as the sequence still fails.
    async fn remove_steps(
        &mut self,
        oracle: Oracle,
        whole: &CallSequence,
        needed: &[usize],
        attempts: &mut usize,
    ) -> Result<Option<Shown>, String> {
        let last = whole.expectation.claim.last();
        let mut kept: Vec<usize> = (0..=last.max(needed.last().copied().unwrap_or(0))).collect();
        let Some(candidate) = whole.with_only(&kept) else { return Ok(None) };
        let mut best = self.attempt(oracle, &candidate, Duration::ZERO).await?;
        if best.is_none() {
            return Ok(None);
        }
        for step in (0..last).rev().filter(|step| !needed.contains(step)) {
            let fewer: Vec<usize> = kept.iter().copied().filter(|kept| *kept != step).collect();
            let Some(candidate) = whole.with_only(&fewer) else { continue };
            if *attempts >= MAX_SEQUENCE_ATTEMPTS || self.allowance.is_spent() {
                break;
            }
            *attempts += 1;
            if let Some(shown) = self.attempt(oracle, &candidate, Duration::ZERO).await? {
                kept = fewer;
                best = Some(shown);
            }
        }
        Ok(best)
    }

    /// Leaves out optional arguments as long as the sequence still fails; returns how often it was tried.
    async fn simplify(&mut self, oracle: Oracle, shown: &mut Shown) -> Result<usize, String> {
        let mut attempts = 0;
        for at in 0..shown.sequence.steps.len() {
            let step = &shown.sequence.steps[at];
            let Some(view) = self.views.iter().find(|view| view.name == step.tool) else { continue };
            let optional = view.parameters.iter().filter(|parameter| !parameter.is_required);
            let names: Vec<String> = optional
                .map(|parameter| parameter.name.clone())
                .filter(|name| {
                    step.arguments.get(name).is_some() && step.values.iter().all(|value| value.argument != *name)
                })
                .collect();
            for name in names {
                let mut candidate = shown.sequence.clone();
                if let Some(arguments) = candidate.steps[at].arguments.as_object_mut() {
                    arguments.remove(&name);
                }
                if attempts >= MAX_SEQUENCE_ATTEMPTS || self.allowance.is_spent() {
                    return Ok(attempts);
                }
                attempts += 1;
                if let Some(smaller) = self.attempt(oracle, &candidate, Duration::ZERO).await? {
                    *shown = smaller;
                }
            }
        }
        Ok(attempts)
    }

    /// Makes the calls of a sequence on a fresh process, with new texts; returns what it shows if it fails.
    async fn attempt(
        &mut self,
        oracle: Oracle,
        sequence: &CallSequence,
        pause: Duration,
    ) -> Result<Option<Shown>, String> {
        let mut renamed = Vec::new();
        let mut steps = sequence.steps.clone();
        for step in &mut steps {
            step.arguments = with_new_words(&step.arguments, &mut self.maker, &mut renamed);
        }
        self.run_on_fresh_process(oracle, CallSequence { steps, ..sequence.clone() }, pause).await
    }

    async fn run_on_fresh_process(
        &mut self,
        oracle: Oracle,
        sequence: CallSequence,
        pause: Duration,
    ) -> Result<Option<Shown>, String> {
        self.caller.restart().await?;
        let made = execute(&mut self.caller, &mut self.allowance, &sequence.steps, pause).await?;
        let violation = violation(oracle, &sequence, &made);
        self.clean(&made).await?;
        Ok(violation.map(|violation| Shown { sequence, violation, made }))
    }

    /// The failure that a sequence shows; it is saved unless `path` says where it was read from.
    fn failure(&self, oracle: Oracle, shown: Shown, attempts: usize, path: Option<&Path>) -> Option<Failure> {
        let Shown { sequence, violation, made } = shown;
        let last = made.last()?;
        let file = match path {
            Some(path) => Some(path.to_string_lossy().into_owned()),
            None => self.save(oracle, &sequence, &violation),
        };
        let before: Vec<FuzzCall> = made[..made.len() - 1].iter().map(|made| made.call.clone()).collect();
        let tool = last.call.tool;
        let mut counterexample = counterexample(&self.caller, tool, &last.exchange, &last.exchange, &before, attempts);
        counterexample.file = file;
        if path.is_some() {
            counterexample.kind = CallKind::Regression;
        }
        Some(Failure {
            exchanges: made.into_iter().map(|made| without_large_values(made.exchange)).collect(),
            counterexample: Some(counterexample),
            confirmation: Some(Confirmation { tried: 1, failed: 1 }),
            ..Failure::of_tool(tool, violation)
        })
    }

    fn save(&self, oracle: Oracle, sequence: &CallSequence, violation: &OracleViolation) -> Option<String> {
        let folder = self.settings.failure_folder.as_ref()?;
        let regression = Regression {
            format: Regression::FORMAT,
            case: format!("fuzz/{oracle}"),
            message: violation.message.clone(),
            revision: self.settings.revision,
            tool: sequence.steps.last()?.tool.clone(),
            preceding: Vec::new(),
            arguments: None,
            raw: None,
            malformation: None,
            reused: Vec::new(),
            breaks_tool: None,
            repeat: None,
            concurrent: false,
            steps: sequence.steps.clone(),
            expectation: Some(sequence.expectation.clone()),
        };
        folder.save(&file_name(&regression, &violation.signature), &regression)
    }

    /// Makes the calls of a saved sequence; returns the failure if it occurs again.
    pub(super) async fn replay(&mut self, path: &Path, regression: &Regression) -> Result<Option<Failure>, String> {
        let (Some(oracle), Some(expectation)) = (regression.oracle(), &regression.expectation) else { return Ok(None) };
        let sequence = CallSequence { steps: regression.steps.clone(), expectation: expectation.clone() };
        let shown = self.run_on_fresh_process(oracle, sequence, SETTLING_TIME).await?;
        Ok(shown.and_then(|shown| self.failure(oracle, shown, 1, Some(path))))
    }
}

/// The violation that the calls of a sequence show.
pub(super) fn violation(oracle: Oracle, sequence: &CallSequence, made: &[StepExchange]) -> Option<OracleViolation> {
    if let Claim::Sound(step, _) = &sequence.expectation.claim {
        return made.get(*step)?.violations.iter().find(|violation| violation.oracle == oracle).cloned();
    }
    sequence_violation(oracle, sequence, &records(made))
}
