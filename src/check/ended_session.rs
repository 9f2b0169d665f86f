//! Judges a case in the middle of which the server ended the HTTP session, so that its steps were made in two sessions.

use super::evidence::evidence_of;
use super::execution::Execution;
use super::judgement::{Judgement, add_finding};
use crate::spec::{Catalogue, Revision};
use crate::transcript::{Event, SetAside, StepId};
use crate::verdict::{Finding, Verdict};

/// Why such a case proves nothing about what it is for.
pub(crate) const SESSION_ENDED: &str = "the server ended the session (HTTP status 404) between the steps of the case";

/// What no case of its own states: requests that come after these are not answered.
const REQUIREMENT: &str = "jsonrpc-result-id-echo";

/// How many entries before the end of the session are shown.
const MAX_SHOWN: usize = 10;

impl Execution {
    /// Whether the server ended the session while the steps were made.
    pub(crate) fn has_ended_session(&self) -> bool {
        self.end_of_session().is_some()
    }

    /// The position of the response with which the server ended the session.
    pub(super) fn end_of_session(&self) -> Option<usize> {
        let mut events = self.transcript.entries.iter().map(|entry| &entry.event);
        events.position(|event| matches!(event, Event::HttpEnd(end) if end.set_aside == Some(SetAside::SessionEnded)))
    }
}

/// Warns of a server that ended the session of a case although nothing else used it.
///
/// It may end a session at any time, so that once says nothing. If it does so whenever these steps are made, they end it.
pub(crate) fn judge_ended_session(revision: Revision, executions: &[Execution]) -> Judgement {
    let mut judged = Judgement::error(SESSION_ENDED);
    let Some(requirement) = Catalogue::embedded().get(REQUIREMENT) else { return judged };
    for execution in executions {
        let Some(end) = execution.end_of_session() else { continue };
        let is_of_step = |event: &Event| match event {
            Event::Sent { step_id: Some(StepId { execution: number, .. }), .. } => *number == execution.number,
            Event::Received(_) => true,
            _ => false,
        };
        let entries = &execution.transcript.entries;
        let mut shown: Vec<usize> = (0..end).filter(|at| is_of_step(&entries[*at].event)).collect();
        shown.drain(..shown.len().saturating_sub(MAX_SHOWN));
        shown.push(end);
        let finding = Finding {
            message: "The server ends the session in the middle of this case, although nothing else uses it.".to_owned(),
            expected: "the session is still known after these requests".to_owned(),
            actual: "HTTP status 404: the session has ended".to_owned(),
            subjects: execution.subjects(),
            evidence: evidence_of(entries, &shown),
            fix: "Look for what ends the session when the client sends these messages, such as an exception that leaves the \
                  loop of the session: the log of the server may name it. Only the request concerned may fail. If the server \
                  limits how many sessions there are, or how long they last, allow more for a run."
                .to_owned(),
            ..Finding::new(requirement, revision, Verdict::Warn)
        };
        judged.judged_count += 1;
        add_finding(&mut judged.findings, finding);
    }
    if !judged.findings.is_empty() {
        (judged.verdict, judged.reason) = (Verdict::Warn, None);
    }
    judged
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::case::{Body, CaseText, Source, Trust, parse_cases};
    use crate::check::judge_active;
    use crate::transcript::{Entry, HttpEnd, Transcript};
    use crate::wire::Frame;

    const CASE: &str = r#"{
      "title": "The server answers ping",
      "requirements": ["jsonrpc-result-id-echo"],
      "fix": "Answer it.",
      "steps": [
        { "send": { "method": "ping" }, "expect": [{ "outcome": ["result"] }] },
        { "send": { "method": "ping" }, "expect": [{ "outcome": ["result"] }] },
      ],
    }"#;

    fn sent(step: usize, id: i64) -> Event {
        let frame = Frame::from_value(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        Event::Sent { frame, step_id: Some(StepId { execution: 0, step }) }
    }

    fn received(id: i64, member: &str, value: &Value) -> Event {
        Event::Received(Frame::from_value(&json!({ "jsonrpc": "2.0", "id": id, member: value })))
    }

    fn end() -> Event {
        Event::HttpEnd(Box::new(HttpEnd { set_aside: Some(SetAside::SessionEnded), ..HttpEnd::default() }))
    }

    fn judge(events: Vec<Event>) -> [Judgement; 2] {
        let text = CaseText {
            id: "own/case".to_owned(),
            file: "own/case.jsonc".to_owned(),
            source: Source::Embedded,
            text: CASE.to_owned(),
        };
        let case = parse_cases(vec![text], &[], Trust::Nothing).expect("the case is valid").remove(0);
        let Body::Active(body) = &case.body else { panic!("the case has steps") };
        let entries = events.into_iter().map(|event| Arc::new(Entry { at: Duration::ZERO, event })).collect();
        let execution = Execution {
            label: String::new(),
            number: 0,
            transcript: Transcript { entries, ..Transcript::default() },
            discovered_lists: BTreeMap::new(),
            silent_methods: BTreeSet::new(),
            not_carried_out: None,
            not_applicable: None,
        };
        let revision = Revision::V2025_11_25;
        [
            judge_active(&case, body, revision, std::slice::from_ref(&execution)),
            judge_ended_session(revision, &[execution]),
        ]
    }

    #[test]
    fn a_case_in_two_sessions_is_not_judged_and_its_messages_are_shown() {
        let error = json!({ "code": -32_601, "message": "unknown" });
        let [judged, ended] =
            judge(vec![sent(0, 1), received(1, "result", &json!({})), sent(1, 2), end(), received(2, "error", &error)]);
        assert_eq!((judged.verdict, judged.reason.as_deref()), (Verdict::Error, Some(SESSION_ENDED)));
        assert!(judged.findings.is_empty());
        assert_eq!((ended.verdict, ended.reason), (Verdict::Warn, None));
        assert_eq!(ended.findings.len(), 1);
        assert_eq!(ended.findings[0].evidence.len(), 4, "what came later proves nothing: {:?}", ended.findings);
    }

    #[test]
    fn a_session_that_lives_on_is_no_finding() {
        let result = json!({});
        let [judged, ended] =
            judge(vec![sent(0, 1), received(1, "result", &result), sent(1, 2), received(2, "result", &result)]);
        assert_eq!(judged.verdict, Verdict::Pass);
        assert_eq!((ended.verdict, ended.findings.len()), (Verdict::Error, 0));
    }
}
