//! Failures are tried again on a fresh process before they are believed.
//!
//! An acting case that fails goes through its steps once more, alone. A finding that comes back is confirmed;
//! one that never does is told as a flaky warning, since neither a failure nor a pass would be true. What a
//! repeated case sends is shown to no watching case.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use super::lane::{Done, open_for, run_fresh};
use super::target::Target;
use crate::case::{Body, Case};
use crate::check::Judged;
use crate::verdict::{Confirmation, Verdict};

/// How many cases are tried again in a revision. Where more fail than that, chance is no explanation.
const MOST: usize = 16;

/// A failure that has yet to be confirmed.
pub(super) struct Doubt {
    pub(super) case: Arc<Case>,
    pub(super) judged: Judged,
    pub(super) took: Duration,
}

/// Tries failures again as they come, side by side, and tells them.
pub(super) async fn again(target: Target, mut doubts: UnboundedReceiver<Doubt>) -> Done {
    let mut tried = JoinSet::new();
    while let Some(Doubt { case, mut judged, took }) = doubts.recv().await {
        if tried.len() >= MOST {
            target.tell_now(&case, judged, Some(took));
            continue;
        }
        let target = target.clone();
        tried.spawn(async move {
            confirm(target.clone(), &case, &mut judged).await;
            target.tell_now(&case, judged, Some(took));
        });
    }
    while tried.join_next().await.is_some() {}
    Vec::new()
}

/// Runs a failing case again until it fails once more, as often as the plan allows.
async fn confirm(mut target: Target, case: &Case, judged: &mut Judged) {
    let Body::Act(body) = &case.body else { return };
    let context = target.context.clone();
    let offer = target.offer().await;
    for _ in 0..context.plan.retries {
        let _permit = context.ask().given().await;
        if target.dead().is_some() {
            break;
        }
        let purpose = format!("case {}, again", case.id);
        let Ok(mut session) = open_for(&target, body, purpose.clone()).await else { break };
        let repeated = run_fresh(&target, case, body, &mut session, &offer).await;
        context.dismiss(session.connection, &purpose);
        // What could not be judged confirms nothing and clears nothing.
        if matches!(repeated.verdict, Verdict::Error | Verdict::Skip) {
            break;
        }
        if weigh(judged, &repeated) {
            break;
        }
    }
    settle(judged);
}

/// Counts a repetition to each failing finding; whether all of them have come back by now.
fn weigh(judged: &mut Judged, repeated: &Judged) -> bool {
    let mut confirmed = true;
    for finding in judged.findings.iter_mut().filter(|finding| finding.verdict == Verdict::Fail) {
        let came_back = repeated
            .findings
            .iter()
            .any(|other| other.requirement == finding.requirement && other.verdict == Verdict::Fail);
        let seen = finding.confirmation.get_or_insert(Confirmation { tried: 0, failed: 0 });
        seen.tried += 1;
        seen.failed += usize::from(came_back);
        confirmed &= seen.failed > 0;
    }
    confirmed
}

/// Makes warnings of the failures that never came back.
fn settle(judged: &mut Judged) {
    for finding in &mut judged.findings {
        if finding.confirmation.is_some_and(|seen| seen.tried > 0 && seen.failed == 0) {
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

    fn judged(findings: &[(&str, Verdict)]) -> Judged {
        let finding = |(requirement, verdict): &(&str, Verdict)| {
            let requirement = Catalogue::embedded().get(requirement).expect("it exists");
            Finding::new(requirement, Revision::V2025_06_18, *verdict)
        };
        let findings: Vec<Finding> = findings.iter().map(finding).collect();
        let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass);
        Judged { verdict, reason: None, applies: true, seen: 1, notes: Vec::new(), findings }
    }

    const A: &str = "tools-call-unknown-tool-error";
    const B: &str = "jsonrpc-params-object";

    #[test]
    fn what_comes_back_stays_a_failure_and_what_never_does_becomes_a_warning() {
        let mut first = judged(&[(A, Verdict::Fail), (B, Verdict::Fail)]);
        assert!(!weigh(&mut first, &judged(&[(A, Verdict::Fail)])));
        settle(&mut first);
        assert_eq!(first.findings[0].confirmation, Some(Confirmation { tried: 1, failed: 1 }));
        assert_eq!(first.findings[1].confirmation, Some(Confirmation { tried: 1, failed: 0 }));
        assert_eq!([first.findings[0].verdict, first.findings[1].verdict], [Verdict::Fail, Verdict::Warn]);
        assert_eq!(first.verdict, Verdict::Fail);
        let mut flaky = judged(&[(A, Verdict::Fail)]);
        assert!(!weigh(&mut flaky, &judged(&[])));
        settle(&mut flaky);
        assert_eq!(flaky.verdict, Verdict::Warn);
    }

    #[test]
    fn a_second_repetition_may_confirm_what_the_first_did_not() {
        let mut first = judged(&[(A, Verdict::Fail), (B, Verdict::Warn)]);
        assert!(!weigh(&mut first, &judged(&[])));
        assert!(weigh(&mut first, &judged(&[(A, Verdict::Fail)])));
        settle(&mut first);
        assert_eq!(first.findings[0].confirmation, Some(Confirmation { tried: 2, failed: 1 }));
        assert_eq!((first.verdict, first.findings[1].confirmation), (Verdict::Fail, None));
    }

    #[test]
    fn what_was_not_tried_again_is_told_as_it_is() {
        let mut first = judged(&[(A, Verdict::Fail)]);
        settle(&mut first);
        assert_eq!((first.verdict, first.findings[0].confirmation), (Verdict::Fail, None));
    }
}
