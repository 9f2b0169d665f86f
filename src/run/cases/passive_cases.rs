//! Judges the passive cases of a revision by all of its sessions.

use std::sync::Arc;

use super::case_session::ClosedSession;
use super::needs::{declares_needed_capabilities, missing_capabilities};
use crate::case::{Body, Case, Passive};
use crate::check::{self, IndexedConnections, Judgement, RecordedConnection};
use crate::run::target_state::Target;
use crate::spec::Revision;
use crate::transcript::{Transcript, sessions_in, without_repeated};

/// Judges the passive cases among these by every session of the revision.
pub(in crate::run) async fn judge_passive_cases(
    target: &Target,
    cases: &[Arc<Case>],
    sessions: &[ClosedSession],
) -> Vec<(Arc<Case>, Judgement)> {
    let connected: Vec<RecordedConnection> = sessions
        .iter()
        .flat_map(|session| sessions_in(&session.ended.entries).into_iter().map(move |entries| (session, entries)))
        .map(|(session, entries)| RecordedConnection {
            label: session.ended.purpose.clone(),
            transcript: Transcript {
                entries: without_repeated(&entries),
                session_parameters: session.session_parameters.clone(),
            },
        })
        .collect();
    let cases: Vec<Arc<Case>> =
        cases.iter().filter(|case| matches!(case.body, Body::Passive { .. })).cloned().collect();
    let revision = target.revision;
    let judging = target.context.judge_in_background(move || judge_connections(&cases, revision, &connected));
    judging.await.unwrap_or_else(|error| {
        target.give_up(&format!("an internal task failed: {error}"));
        Vec::new()
    })
}

/// Judges passive cases by connections of one revision.
pub(in crate::run) fn judge_connections(
    cases: &[Arc<Case>],
    revision: Revision,
    connected: &[RecordedConnection],
) -> Vec<(Arc<Case>, Judgement)> {
    let watched = IndexedConnections::new(connected, revision);
    let (mut watching, mut without) = (Vec::new(), Vec::new());
    for case in cases {
        match &case.body {
            Body::Passive(passive) if are_needs_met(case, connected) => watching.push((case, passive)),
            Body::Passive(_) => without.push((Arc::clone(case), Judgement::inapplicable(missing_capabilities(case)))),
            Body::Active(_) | Body::Fuzz(_) => {}
        }
    }
    let judged: Vec<(&Case, &Passive)> = watching.iter().map(|(case, passive)| (&***case, *passive)).collect();
    let judged = check::judge_passive_cases(&judged, revision, &watched);
    watching.into_iter().map(|(case, _)| Arc::clone(case)).zip(judged).chain(without).collect()
}

fn are_needs_met(case: &Case, connected: &[RecordedConnection]) -> bool {
    case.needs.capabilities.is_empty()
        || connected.iter().any(|c| {
            c.transcript.session_parameters.opening.is_some()
                && declares_needed_capabilities(case, &c.transcript.session_parameters)
        })
}
