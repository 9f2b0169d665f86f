//! Confirms failures of passive cases on fresh processes.
//!
//! What the printed command of a finding runs is run again: discovery, the stimuli of the case, and the case that
//! provoked the message. A failure that occurs again is confirmed. One that does not is tried again with all cases of
//! the revision, and is reported with the fewest of them that were found to show it. One that never occurs again becomes
//! a flaky warning, as for active cases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::case_session::open;
use super::confirm::{count_repetition, downgrade_unconfirmed, is_refuted};
use super::passive_cases::judge_passive_cases;
use crate::case::{Body, Case, SelectedCases};
use crate::check::Judgement;
use crate::limits::{MAX_NAMED_CASES, MAX_PARTS, PARTS_TIME_LIMIT, REPETITION_TIME_LIMIT};
use crate::plan::Plan;
use crate::run::target_run::TargetRun;
use crate::run::target_state::Target;
use crate::session::full_capabilities;
use crate::verdict::{Confirmation, Finding, Verdict};

/// Repeats what provoked the failures among these judgements, once for all of them. `early` repeated some of them already.
pub(in crate::run) async fn confirm_passive_cases(
    target: &Target,
    judged: &mut [(Arc<Case>, Judgement)],
    mut early: JoinSet<Option<Repetition>>,
) {
    // A task that failed has confirmed nothing, and is made up for below.
    while let Some(repeated) = early.join_next().await {
        if let Ok(Some(repeated)) = repeated {
            count(judged, &repeated);
        }
    }
    let Some(Failures { failing, cases }) = Failures::among(target, judged) else { return };
    for _ in 0..target.context.plan.retries {
        if is_settled(judged) {
            return;
        }
        let Some(repeated) = repeat(target, &failing, cases.clone()).await else { break };
        count(judged, &repeated);
    }
    if judged.iter().any(|(_, judgement)| judgement.findings.iter().any(is_refuted)) {
        let search = PartSearch { target, until: Instant::now() + PARTS_TIME_LIMIT, tried: 0 };
        search.attribute(judged).await;
    }
    for (_, judgement) in judged {
        downgrade_unconfirmed(judgement);
    }
}

/// Repeats what provoked the failures among these judgements, which are those of some sessions only; `None` if there is none.
pub(in crate::run) async fn repeat_early(target: &Target, judged: &[(Arc<Case>, Judgement)]) -> Option<Repetition> {
    let Failures { failing, cases } = Failures::among(target, judged)?;
    repeat(target, &failing, cases).await
}

/// The cases that fail, and those that are repeated to confirm it.
struct Failures {
    failing: Vec<Arc<Case>>,
    cases: Vec<Arc<Case>>,
}

impl Failures {
    /// Those among these judgements; `None` if there is none, or no failure is to be confirmed.
    fn among(target: &Target, judged: &[(Arc<Case>, Judgement)]) -> Option<Self> {
        let plan = &target.context.plan;
        let failing: Vec<Arc<Case>> = judged
            .iter()
            .filter(|(case, judgement)| judgement.verdict == Verdict::Fail && plan.reports(case))
            .map(|(case, _)| Arc::clone(case))
            .collect();
        if failing.is_empty() || plan.retries == 0 {
            return None;
        }
        let all: Vec<Case> = plan.cases.iter().map(|case| Case::clone(case)).collect();
        let provoking: BTreeSet<String> = judged
            .iter()
            .flat_map(|(_, judgement)| &judgement.findings)
            .filter(|finding| finding.verdict == Verdict::Fail)
            .filter_map(|finding| finding.origin.and_then(|execution| target.context.executions.case_of(execution)))
            .collect();
        let cases = with_stimuli(&failing, &provoking, &all);
        Some(Self { failing, cases })
    }
}

/// The failing cases with their stimuli and the cases that provoked the messages, as the printed commands select them.
fn with_stimuli(failing: &[Arc<Case>], provoking: &BTreeSet<String>, all: &[Case]) -> Vec<Arc<Case>> {
    let is_selected = |case: &&Case| provoking.contains(&case.id) || failing.iter().any(|failed| failed.id == case.id);
    let selected: Vec<&Case> = all.iter().filter(is_selected).collect();
    SelectedCases::with_stimuli(&selected, all).cases
}

/// Whether every failure is confirmed.
fn is_settled(judged: &[(Arc<Case>, Judgement)]) -> bool {
    let mut failures =
        judged.iter().flat_map(|(_, judgement)| &judgement.findings).filter(|f| f.verdict == Verdict::Fail);
    failures.all(|finding| finding.confirmation.is_some_and(|count| count.failed > 0))
}

/// The judgements of a repetition by case.
pub(in crate::run) type Repetition = BTreeMap<String, Judgement>;

/// Runs cases on fresh processes; the judgements of the failing ones, or `None` if the server could not be judged.
async fn repeat(target: &Target, failing: &[Arc<Case>], cases: Vec<Arc<Case>>) -> Option<Repetition> {
    if target.stop_reason().is_some() || target.context.is_stopping() {
        return None;
    }
    // No case of the repetition has a result of its own, and no failure of one is confirmed.
    let stimuli = cases.iter().map(|case| case.id.clone()).collect();
    let plan = Plan { cases, stimuli, retries: 0, fuzz: None, ..Plan::clone(&target.context.plan) };
    let context = target.context.with_plan(plan);
    let repetition = async {
        let repeated = Target::new(context.clone(), target.revision);
        let permit = context.request_permit().granted().await;
        let opened = open(&repeated, full_capabilities(target.revision), "confirmation").await;
        drop(permit);
        let main = opened.ok()?;
        let completed = Box::pin(TargetRun::start(repeated.clone()).run_cases(main)).await;
        let judged = judge_passive_cases(&repeated, failing, &completed.sessions).await;
        let is_complete = repeated.stop_reason().is_none();
        is_complete.then(|| judged.into_iter().map(|(case, judgement)| (case.id.clone(), judgement)).collect())
    };
    tokio::time::timeout(REPETITION_TIME_LIMIT, Box::pin(repetition)).await.ok().flatten()
}

/// Counts a repetition for each failure. Where nothing was observed, it neither confirms nor refutes.
fn count(judged: &mut [(Arc<Case>, Judgement)], repeated: &Repetition) {
    for (case, judgement) in judged.iter_mut().filter(|(_, judgement)| judgement.verdict == Verdict::Fail) {
        let Some(again) = repeated.get(&case.id).filter(|again| again.judged_count > 0) else { continue };
        count_repetition(judgement, again);
        for finding in &mut judgement.findings {
            if let Some(again) = failure_like(finding, again) {
                // The command selects what provoked it this time.
                finding.origin = again.origin;
            }
        }
    }
}

/// The failure of a repetition that violates the same requirement.
fn failure_like<'a>(finding: &Finding, repeated: &'a Judgement) -> Option<&'a Finding> {
    repeated.findings.iter().find(|other| other.requirement == finding.requirement && other.verdict == Verdict::Fail)
}

/// The search for the fewest cases that show failures which those of their commands did not show.
struct PartSearch<'a> {
    target: &'a Target,
    until: Instant,
    tried: usize,
}

impl PartSearch<'_> {
    /// Replaces refuted failures by those that occur again with all cases of the revision.
    async fn attribute(mut self, judged: &mut [(Arc<Case>, Judgement)]) {
        let is_open = |(_, judgement): &&(Arc<Case>, Judgement)| judgement.findings.iter().any(is_refuted);
        let failing: Vec<Arc<Case>> = judged.iter().filter(is_open).map(|(case, _)| Arc::clone(case)).collect();
        let all = self.target.context.plan.cases.clone();
        let Some(repeated) = repeat(self.target, &failing, all.clone()).await else { return };
        for (case, judgement) in judged.iter_mut() {
            let Some(again) = repeated.get(&case.id) else { continue };
            let shows = |finding: &Finding| is_refuted(finding) && failure_like(finding, again).is_some();
            let violated: Vec<String> =
                judgement.findings.iter().filter(|finding| shows(finding)).map(|f| f.requirement.clone()).collect();
            if violated.is_empty() {
                continue;
            }
            let needed = self.fewest(case, &violated, active(&all)).await;
            for finding in judgement.findings.iter_mut().filter(|finding| violated.contains(&finding.requirement)) {
                attribute_to(finding, &needed);
            }
        }
    }

    /// Removes from cases that show failures what these do not need: first one half, then ever smaller parts.
    async fn fewest(&mut self, case: &Arc<Case>, violated: &[String], mut cases: Vec<Arc<Case>>) -> Vec<Arc<Case>> {
        let mut part = cases.len().div_ceil(2);
        while part > 0 && cases.len() > 1 {
            let mut from = 0;
            while from < cases.len() && cases.len() > 1 {
                if self.tried >= MAX_PARTS || Instant::now() > self.until {
                    return cases;
                }
                self.tried += 1;
                let mut without = cases.clone();
                without.drain(from..(from + part).min(without.len()));
                if self.shows(case, violated, &without).await {
                    cases = without;
                } else {
                    from += part;
                }
            }
            part /= 2;
        }
        cases
    }

    /// Whether a case fails in the same way with these cases alone.
    async fn shows(&self, case: &Arc<Case>, violated: &[String], cases: &[Arc<Case>]) -> bool {
        let selected = cases.iter().chain([case]).cloned().collect();
        let repeated = repeat(self.target, std::slice::from_ref(case), selected).await;
        let judgement = repeated.and_then(|mut repeated| repeated.remove(&case.id));
        judgement.is_some_and(|judgement| {
            let fails = |requirement: &String| {
                let mut findings = judgement.findings.iter();
                findings.any(|finding| finding.requirement == *requirement && finding.verdict == Verdict::Fail)
            };
            violated.iter().all(fails)
        })
    }
}

/// The active cases among these.
fn active(cases: &[Arc<Case>]) -> Vec<Arc<Case>> {
    cases.iter().filter(|case| matches!(case.body, Body::Active(_))).cloned().collect()
}

/// Reports a failure as one that occurs only together with these cases; without any, it occurred again by itself.
fn attribute_to(finding: &mut Finding, cases: &[Arc<Case>]) {
    finding.confirmation = Some(Confirmation { tried: 1, failed: 1 });
    if cases.is_empty() {
        return;
    }
    finding.preceding = cases.iter().map(|case| case.id.clone()).collect();
    let mut named = finding.preceding[..cases.len().min(MAX_NAMED_CASES)].join(", ");
    if cases.len() > MAX_NAMED_CASES {
        named = format!("{named} and {} more cases", cases.len() - MAX_NAMED_CASES);
    }
    finding.actual = format!("{} (only in a run together with {named})", finding.actual);
}
