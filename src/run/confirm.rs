//! Confirms failures on a fresh process.
//!
//! The steps of a failing active case are repeated in isolation. A finding that occurs again is confirmed; one that
//! never does becomes a flaky warning, because neither a failure nor a pass would be true. Passive cases do not see
//! the repetitions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use super::case_runner::{ClosedSessions, open_for_case, run_fresh};
use super::target::Target;
use crate::case::{Body, Case};
use crate::check::Judgement;
use crate::verdict::{Confirmation, Verdict};

/// The maximum number of cases to confirm concurrently. If more fail, chance is not the explanation.
const MAX_CONCURRENT_CONFIRMATIONS: usize = 16;

/// A failure that is not yet confirmed.
pub(super) struct UnconfirmedResult {
    pub(super) case: Arc<Case>,
    pub(super) judged: Judgement,
    pub(super) duration: Duration,
}

/// Confirms failures concurrently as they arrive, and reports them.
pub(super) async fn confirm_all(
    target: Target,
    mut unconfirmed: UnboundedReceiver<UnconfirmedResult>,
) -> ClosedSessions {
    let mut confirmations = JoinSet::new();
    while let Some(UnconfirmedResult { case, mut judged, duration }) = unconfirmed.recv().await {
        if confirmations.len() >= MAX_CONCURRENT_CONFIRMATIONS {
            target.report_now(&case, judged, Some(duration));
            continue;
        }
        let target = target.clone();
        confirmations.spawn(async move {
            confirm(target.clone(), &case, &mut judged).await;
            target.report_now(&case, judged, Some(duration));
        });
    }
    while confirmations.join_next().await.is_some() {}
    Vec::new()
}

/// Repeats a failing case until it fails again, as often as the plan allows.
async fn confirm(mut target: Target, case: &Case, judged: &mut Judgement) {
    let Body::Active(body) = &case.body else { return };
    let context = target.context.clone();
    let inventory = target.inventory().await;
    for _ in 0..context.plan.retries {
        let _permit = context.request_permit().granted().await;
        if target.stop_reason().is_some() {
            break;
        }
        let purpose = format!("case {}, confirmation", case.id);
        let Ok(mut session) = open_for_case(&target, body, purpose.clone()).await else { break };
        let repeated = run_fresh(&target, case, body, &mut session, &inventory).await;
        context.close_in_background(session.connection, &purpose);
        // A repetition that could not be judged neither confirms nor refutes.
        if matches!(repeated.verdict, Verdict::Error | Verdict::Skip) {
            break;
        }
        if count_repetition(judged, &repeated) {
            break;
        }
    }
    downgrade_unconfirmed(judged);
}

/// Counts a repetition for each failing finding; returns whether all of them are confirmed.
fn count_repetition(judged: &mut Judgement, repeated: &Judgement) -> bool {
    let mut confirmed = true;
    for finding in judged.findings.iter_mut().filter(|finding| finding.verdict == Verdict::Fail) {
        let reproduced = repeated
            .findings
            .iter()
            .any(|other| other.requirement == finding.requirement && other.verdict == Verdict::Fail);
        let count = finding.confirmation.get_or_insert(Confirmation { tried: 0, failed: 0 });
        count.tried += 1;
        count.failed += usize::from(reproduced);
        confirmed &= count.failed > 0;
    }
    confirmed
}

/// Turns failures that never occurred again into warnings.
fn downgrade_unconfirmed(judged: &mut Judgement) {
    for finding in &mut judged.findings {
        if finding.confirmation.is_some_and(|count| count.tried > 0 && count.failed == 0) {
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
