//! Confirms failures on fresh processes, and runs cases again that another case may have kept from being judged.
//!
//! The steps of a failing active case are repeated in isolation. A finding that occurs again is confirmed. One that
//! does not is tried again after what happened before on its session, and is reported with the shortest sequence of
//! cases that shows it. One that never occurs again becomes a flaky warning, because neither a failure nor a pass would
//! be true. Passive cases do not see the repetitions; [`super::confirm_passive`] confirms their failures.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::case_run::{CaseRun, RATE_LIMITED, carry_out_fresh, judge, run_case};
use super::case_session::{is_unusable, open, open_for_case};
use crate::case::{Active, Body, Case};
use crate::check::{Judgement, SESSION_ENDED, judge_ended_session};
use crate::limits::{
    MAX_CONCURRENT_CONFIRMATIONS, MAX_CONFIRMED_IN_A_ROW, MAX_FRUITLESS_RUNS, MAX_NAMED_CASES, MAX_SEQUENCES,
    SEQUENCE_TIME_LIMIT,
};
use crate::run::discovery::discover;
use crate::run::target_state::{SessionHistory, Target, UnconfirmedResult};
use crate::verdict::{Confirmation, Finding, Verdict};

/// Confirms failures concurrently as they arrive, and reports them.
pub(in crate::run) async fn confirm_all(target: Target, mut unconfirmed: UnboundedReceiver<UnconfirmedResult>) {
    let mut confirmations = JoinSet::new();
    let fruitless_runs: Arc<Mutex<FruitlessRuns>> = Arc::default();
    let confirmed_in_a_row = Arc::new(AtomicUsize::new(0));
    while let Some(unconfirmed_result) = unconfirmed.recv().await {
        if confirmations.len() >= MAX_CONCURRENT_CONFIRMATIONS {
            confirmations.join_next().await;
        }
        while confirmations.try_join_next().is_some() {}
        let UnconfirmedResult { case, mut judged, duration, history } = unconfirmed_result;
        let (target, fruitless_runs) = (target.clone(), Arc::clone(&fruitless_runs));
        let confirmed_in_a_row = Arc::clone(&confirmed_in_a_row);
        confirmations.spawn(async move {
            if judged.verdict == Verdict::Error {
                judged = run_again(&target, &case, judged, &fruitless_runs).await;
            }
            if judged.verdict == Verdict::Fail && confirmed_in_a_row.load(Ordering::Relaxed) < MAX_CONFIRMED_IN_A_ROW {
                confirm(&target, &case, &mut judged, &history).await;
                let is_confirmed = |finding: &Finding| finding.confirmation.is_none_or(|count| count.failed > 0);
                if judged.findings.iter().all(is_confirmed) {
                    confirmed_in_a_row.fetch_add(1, Ordering::Relaxed);
                } else {
                    confirmed_in_a_row.store(0, Ordering::Relaxed);
                }
            }
            target.report_now(&case, judged, Some(duration));
        });
    }
    while confirmations.join_next().await.is_some() {}
}

/// How often cases ran again without being judged, by the reason.
type FruitlessRuns = BTreeMap<String, usize>;

/// Runs a case on a fresh process that could not be judged on the session that it shared.
async fn run_again(
    target: &Target,
    case: &Case,
    judged: Judgement,
    fruitless_runs: &Mutex<FruitlessRuns>,
) -> Judgement {
    let Body::Active(body) = &case.body else { return judged };
    let reason = judged.reason.clone().unwrap_or_default();
    let fruitless = || fruitless_runs.lock().unwrap_or_else(PoisonError::into_inner);
    if reason == RATE_LIMITED {
        return judged;
    }
    let _permit = target.context.request_permit().granted().await;
    if target.stop_reason().is_some() || fruitless().get(&reason).is_some_and(|runs| *runs >= MAX_FRUITLESS_RUNS) {
        return judged;
    }
    let carried = carry_out_again(target, case, body, "repetition").await;
    let repeated = carried.as_ref().map(|carried| judge(target, case, body, carried));
    match (repeated, carried) {
        (Some(repeated), _) if repeated.verdict != Verdict::Error => repeated,
        (Some(repeated), Some(Ok(executions)))
            if [&judged, &repeated].iter().all(|judged| judged.reason.as_deref() == Some(SESSION_ENDED)) =>
        {
            let mut judged = judge_ended_session(target.revision, &executions);
            for finding in &mut judged.findings {
                finding.confirmation = Some(Confirmation { tried: 1, failed: 1 });
            }
            judged
        }
        // A server may end a session after so many requests.
        (Some(repeated), _)
            if body.repeats_requests()
                && [&judged, &repeated].iter().all(|judged| judged.reason.as_deref() == Some(SESSION_ENDED)) =>
        {
            Judgement::skip(format!("not judged: {SESSION_ENDED}, which makes many requests"))
        }
        // When a session ends says nothing about the next case.
        _ if reason == SESSION_ENDED => judged,
        _ => {
            *fruitless().entry(reason).or_default() += 1;
            judged
        }
    }
}

/// Runs a case on a fresh process; `None` if it could not be opened.
async fn repeat(target: &Target, case: &Case, body: &Active, what: &str) -> Option<Judgement> {
    let carried = carry_out_again(target, case, body, what).await?;
    Some(judge(target, case, body, &carried))
}

/// Carries out the steps of a case on a fresh process; `None` if it could not be opened.
async fn carry_out_again(target: &Target, case: &Case, body: &Active, what: &str) -> Option<CaseRun> {
    let inventory = target.inventory().await;
    let purpose = format!("case {}, {what}", case.id);
    let mut session = open_for_case(target, body, purpose.clone()).await.ok()?;
    let carried = carry_out_fresh(target, case, body, &mut session, &inventory).await;
    target.context.close_in_background(session.connection, &purpose);
    Some(carried)
}

/// Repeats a failing case until it fails again, as often as the plan allows.
async fn confirm(target: &Target, case: &Case, judged: &mut Judgement, history: &SessionHistory) {
    let Body::Active(body) = &case.body else { return };
    for _ in 0..target.context.plan.retries {
        let _permit = target.context.request_permit().granted().await;
        if target.stop_reason().is_some() {
            break;
        }
        let Some(repeated) = repeat(target, case, body, "confirmation").await else { break };
        // A repetition that could not be judged neither confirms nor refutes.
        if matches!(repeated.verdict, Verdict::Error | Verdict::Skip) {
            break;
        }
        if count_repetition(judged, &repeated) {
            break;
        }
    }
    if judged.findings.iter().any(is_refuted) && !history.is_empty() {
        let sequence = SequenceSearch::new(target, case, body, history, judged).shortest().await;
        if let Some(sequence) = sequence {
            attribute(judged, &sequence);
        }
    }
    downgrade_unconfirmed(judged);
}

/// Whether a failure never occurred again.
pub(super) fn is_refuted(finding: &Finding) -> bool {
    finding.verdict == Verdict::Fail && finding.confirmation.is_some_and(Confirmation::is_unconfirmed)
}

/// A sequence of cases after which a case fails on the same session.
struct Sequence {
    cases: Vec<Arc<Case>>,
    /// The failure.
    judged: Judgement,
}

/// The search for the shortest sequence of cases after which a case fails.
struct SequenceSearch<'a> {
    target: &'a Target,
    case: &'a Case,
    body: &'a Active,
    history: &'a SessionHistory,
    /// The requirements that the case violated once, and not in isolation.
    violated: Vec<String>,
    until: Instant,
    tried: usize,
}

impl<'a> SequenceSearch<'a> {
    fn new(
        target: &'a Target,
        case: &'a Case,
        body: &'a Active,
        history: &'a SessionHistory,
        judged: &Judgement,
    ) -> Self {
        let violated = judged.findings.iter().filter(|finding| is_refuted(finding));
        let violated = violated.map(|finding| finding.requirement.clone()).collect();
        Self { target, case, body, history, violated, until: Instant::now() + SEQUENCE_TIME_LIMIT, tried: 0 }
    }

    /// The shortest sequence that was found within the limits, if the whole history makes the case fail again.
    async fn shortest(mut self) -> Option<Sequence> {
        if self.history.with_discovery
            && let Some(judged) = self.fails_after(&[]).await
        {
            return Some(Sequence { cases: Vec::new(), judged });
        }
        let all = &self.history.cases;
        // The last cases are the likeliest.
        let mut lengths: Vec<usize> = [1, 4, 16].into_iter().filter(|length| *length < all.len()).collect();
        lengths.push(all.len());
        for from in lengths.into_iter().map(|length| all.len() - length) {
            if let Some(judged) = self.fails_after(&all[from..]).await {
                return Some(self.shrunk(Sequence { cases: all[from..].to_vec(), judged }).await);
            }
        }
        None
    }

    /// Removes from a sequence what it does not need: first its first half, then ever smaller parts.
    async fn shrunk(&mut self, mut shortest: Sequence) -> Sequence {
        let mut part = shortest.cases.len().div_ceil(2);
        while part > 0 && shortest.cases.len() > 1 {
            let mut from = 0;
            while from < shortest.cases.len() && shortest.cases.len() > 1 {
                let mut without = shortest.cases.clone();
                without.drain(from..(from + part).min(without.len()));
                match self.fails_after(&without).await {
                    Some(judged) => shortest = Sequence { cases: without, judged },
                    None => from += part,
                }
            }
            part /= 2;
        }
        shortest
    }

    /// Runs cases on a fresh process and then the failing one on the same session; its judgement if it fails.
    async fn fails_after(&mut self, cases: &[Arc<Case>]) -> Option<Judgement> {
        if self.tried >= MAX_SEQUENCES || Instant::now() > self.until {
            return None;
        }
        self.tried += 1;
        let context = &self.target.context;
        let _permit = context.request_permit().granted().await;
        if self.target.stop_reason().is_some() {
            return None;
        }
        let inventory = self.target.inventory().await;
        let purpose = format!("case {}, sequence", self.case.id);
        let mut session = open(self.target, self.history.capabilities.clone(), &purpose).await.ok()?;
        if self.history.with_discovery {
            let (inventory, mut remaining) = discover(&mut session, &context.plan, |_| ()).await;
            if let Some(attribution) = remaining.take_attribution() {
                attribution.make_calls(&mut session, &inventory, context.plan.timeout, |_| true).await;
            }
            remaining.send_requests(&mut session, context.plan.timeout).await;
        }
        for case in cases {
            if let Body::Active(body) = &case.body
                && !is_unusable(self.target, &session)
            {
                run_case(self.target, case, body, &mut session, &inventory).await;
            }
        }
        let judged = run_case(self.target, self.case, self.body, &mut session, &inventory).await;
        context.close_in_background(session.connection, &purpose);
        let fails =
            |finding: &Finding| finding.verdict == Verdict::Fail && self.violated.contains(&finding.requirement);
        judged.findings.iter().any(fails).then_some(judged)
    }
}

/// Replaces failures that do not occur in isolation by those after a sequence of cases.
fn attribute(judged: &mut Judgement, sequence: &Sequence) {
    for finding in judged.findings.iter_mut().filter(|finding| is_refuted(finding)) {
        let again = sequence
            .judged
            .findings
            .iter()
            .find(|again| again.requirement == finding.requirement && again.verdict == Verdict::Fail);
        let Some(again) = again else { continue };
        let confirmation = Some(Confirmation { tried: 1, failed: 1 });
        *finding = Finding { confirmation, ..again.clone() };
        if !sequence.cases.is_empty() {
            let ids: Vec<String> = sequence.cases.iter().map(|case| case.id.clone()).collect();
            let mut named = ids[..ids.len().min(MAX_NAMED_CASES)].join(", ");
            if ids.len() > MAX_NAMED_CASES {
                named = format!("{named} and {} more cases", ids.len() - MAX_NAMED_CASES);
            }
            finding.actual = format!("{} (only after {named} on the same session)", finding.actual);
            finding.preceding = ids;
        }
    }
}

/// Counts a repetition for each failing finding; returns whether all of them are confirmed.
pub(super) fn count_repetition(judged: &mut Judgement, repeated: &Judgement) -> bool {
    let mut confirmed = true;
    for finding in judged.findings.iter_mut().filter(|finding| finding.verdict == Verdict::Fail) {
        let reproduced = repeated
            .findings
            .iter()
            .any(|other| other.requirement == finding.requirement && other.verdict == Verdict::Fail);
        let count = finding.confirmation.get_or_insert(Confirmation::NONE);
        count.tried += 1;
        count.failed += usize::from(reproduced);
        confirmed &= count.failed > 0;
    }
    confirmed
}

/// Turns failures that never occurred again into warnings.
pub(super) fn downgrade_unconfirmed(judged: &mut Judgement) {
    for finding in &mut judged.findings {
        if finding.confirmation.is_some_and(Confirmation::is_unconfirmed) {
            finding.verdict = Verdict::Warn;
        }
    }
    if let Some(heaviest) = judged.findings.iter().map(|finding| finding.verdict).max() {
        judged.verdict = heaviest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Catalogue, Revision};
    use crate::verdict::Finding;

    fn judged(findings: &[(&str, Verdict)]) -> Judgement {
        let finding = |(requirement, verdict): &(&str, Verdict)| {
            let requirement = Catalogue::embedded().get(requirement).expect("it exists");
            Finding::new(requirement, Revision::V2025_06_18, *verdict)
        };
        let findings: Vec<Finding> = findings.iter().map(finding).collect();
        let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass);
        Judgement { verdict, reason: None, applies: true, judged_count: 1, notes: Vec::new(), findings }
    }

    const A: &str = "tools-call-unknown-tool-error";
    const B: &str = "jsonrpc-params-object";

    #[test]
    fn a_reproduced_failure_stays_and_any_other_becomes_a_warning() {
        let mut first = judged(&[(A, Verdict::Fail), (B, Verdict::Fail)]);
        assert!(!count_repetition(&mut first, &judged(&[(A, Verdict::Fail)])));
        downgrade_unconfirmed(&mut first);
        assert_eq!(first.findings[0].confirmation, Some(Confirmation { tried: 1, failed: 1 }));
        assert_eq!(first.findings[1].confirmation, Some(Confirmation { tried: 1, failed: 0 }));
        assert_eq!([first.findings[0].verdict, first.findings[1].verdict], [Verdict::Fail, Verdict::Warn]);
        assert_eq!(first.verdict, Verdict::Fail);
        let mut flaky = judged(&[(A, Verdict::Fail)]);
        assert!(!count_repetition(&mut flaky, &judged(&[])));
        downgrade_unconfirmed(&mut flaky);
        assert_eq!(flaky.verdict, Verdict::Warn);
    }

    #[test]
    fn a_second_repetition_can_confirm_a_failure() {
        let mut first = judged(&[(A, Verdict::Fail), (B, Verdict::Warn)]);
        assert!(!count_repetition(&mut first, &judged(&[])));
        assert!(count_repetition(&mut first, &judged(&[(A, Verdict::Fail)])));
        downgrade_unconfirmed(&mut first);
        assert_eq!(first.findings[0].confirmation, Some(Confirmation { tried: 2, failed: 1 }));
        assert_eq!((first.verdict, first.findings[1].confirmation), (Verdict::Fail, None));
    }

    #[test]
    fn a_failure_that_was_not_repeated_is_unchanged() {
        let mut first = judged(&[(A, Verdict::Fail)]);
        downgrade_unconfirmed(&mut first);
        assert_eq!((first.verdict, first.findings[0].confirmation), (Verdict::Fail, None));
    }
}
