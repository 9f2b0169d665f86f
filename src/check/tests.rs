//! Tests of the judge with hand-made transcripts: what counts as proof, and what does not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Execution, IndexedConnections, Judgement, RecordedConnection, judge_active, judge_passive};
use crate::case::{Body, Case, CaseText, Source, Trust, parse_cases};
use crate::spec::Revision;
use crate::transcript::{Entry, Event, SessionParameters, StepId, Transcript};
use crate::verdict::Verdict;
use crate::wire::Frame;

const REVISION: Revision = Revision::V2025_06_18;

fn case(text: &str) -> Case {
    let text = CaseText {
        id: "own/case".to_owned(),
        file: "own/case.jsonc".to_owned(),
        source: Source::Embedded,
        text: text.to_owned(),
    };
    parse_cases(vec![text], &[], Trust::Nothing).expect("the case is valid").remove(0)
}

fn rejection_case() -> Case {
    case(
        r#"{
          "title": "The server rejects an unknown tool",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "Reject it.",
          "steps": [
            { "send": { "method": "tools/call", "params": { "name": "known" } }, "control": true },
            {
              "send": { "method": "tools/call", "params": { "name": "unknown" } },
              "expect": [
                { "outcome": ["error"] },
                { "outcome": ["tool-error"], "verdict": "warn", "message": "A tool result." },
              ],
              "otherwise": { "verdict": "fail", "message": "The server does not reject it." },
            },
          ],
        }"#,
    )
}

fn transcript(messages: &[(Option<usize>, Value)]) -> Transcript {
    let entries = messages
        .iter()
        .enumerate()
        .map(|(at, (step, value))| {
            let frame = Frame::from_value(value);
            let event = match step {
                Some(step) => Event::Sent { frame, step_id: Some(StepId { execution: 0, step: *step }) },
                None => Event::Received(frame),
            };
            Arc::new(Entry { at: Duration::from_millis(at as u64), event })
        })
        .collect();
    let opening = json!({ "protocolVersion": REVISION.as_str(), "capabilities": { "tools": {} } });
    Transcript {
        entries,
        session_parameters: SessionParameters { client_capabilities: json!({}), opening: Some(opening) },
    }
}

fn judge(case: &Case, messages: &[(Option<usize>, Value)]) -> Judgement {
    let Body::Active(body) = &case.body else { panic!("it is active") };
    let execution = Execution {
        label: String::new(),
        number: 0,
        transcript: transcript(messages),
        discovered_lists: std::collections::BTreeMap::new(),
        not_carried_out: None,
        not_applicable: None,
    };
    judge_active(case, body, REVISION, &[execution])
}

fn call(step: usize, id: i64, name: &str) -> (Option<usize>, Value) {
    (Some(step), json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } }))
}

fn served(id: i64) -> (Option<usize>, Value) {
    (None, json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }))
}

#[test]
fn a_rejection_passes_if_the_control_request_was_served() {
    let rejected = (None, json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "no" } }));
    let judged = judge(&rejection_case(), &[call(0, 1, "known"), served(1), call(1, 2, "unknown"), rejected]);
    assert_eq!((judged.verdict, judged.judged_count), (Verdict::Pass, 2));
}

#[test]
fn a_rejection_proves_nothing_if_the_control_request_was_rejected_too() {
    let rejected =
        |id: i64| (None, json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "no" } }));
    let judged = judge(&rejection_case(), &[call(0, 1, "known"), rejected(1), call(1, 2, "unknown"), rejected(2)]);
    assert_eq!(judged.verdict, Verdict::Error);
    assert!(judged.reason.is_some_and(|reason| reason.contains("control")));
}

#[test]
fn a_row_decides_the_verdict_and_the_message() {
    let tool_error = (None, json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": [], "isError": true } }));
    let judged = judge(&rejection_case(), &[call(0, 1, "known"), served(1), call(1, 2, "unknown"), tool_error]);
    assert_eq!(judged.verdict, Verdict::Warn);
    assert_eq!(judged.findings[0].message, "A tool result.");
    assert_eq!(judged.findings[0].evidence.len(), 4);
}

#[test]
fn a_response_that_no_row_describes_is_judged_by_otherwise() {
    let judged = judge(&rejection_case(), &[call(0, 1, "known"), served(1), call(1, 2, "unknown"), served(2)]);
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!(judged.findings[0].requirement, "tools-call-unknown-tool-error");
}

#[test]
fn a_case_without_any_response_never_passes() {
    let silent = case(
        r#"{
          "title": "A notification gets no response",
          "requirements": ["jsonrpc-notification-no-response"],
          "fix": "Drop it.",
          "steps": [{ "notify": { "method": "notifications/own" }, "expect": [{ "outcome": ["no-response"] }] }],
        }"#,
    );
    let notified = (Some(0), json!({ "jsonrpc": "2.0", "method": "notifications/own" }));
    let judged = judge(&silent, std::slice::from_ref(&notified));
    assert_eq!(judged.verdict, Verdict::Error);
    let answered = (None, json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": "" } }));
    assert_eq!(judge(&silent, &[notified, answered]).verdict, Verdict::Fail);
}

#[test]
fn a_polled_step_is_judged_by_its_last_response() {
    let polling = case(
        r#"{
          "title": "A ping is answered in the end",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "Answer it.",
          "steps": [
            {
              "send": { "method": "tools/call", "params": { "name": "a" } },
              "poll": { "until": { "properties": { "result": { "required": ["done"] } } }, "max-attempts": 3 },
              "expect": [{ "outcome": ["result"] }],
              "otherwise": { "verdict": "fail", "message": "It ends in an error." },
            },
          ],
        }"#,
    );
    let answer = |id: i64, member: &str| (None, json!({ "jsonrpc": "2.0", "id": id, "result": { member: 1 } }));
    let rejected = (None, json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "no" } }));
    let judged = judge(&polling, &[call(0, 1, "a"), answer(1, "x"), call(0, 2, "a"), answer(2, "done")]);
    assert_eq!((judged.verdict, judged.judged_count), (Verdict::Pass, 1));
    let judged = judge(&polling, &[call(0, 1, "a"), answer(1, "x"), call(0, 2, "a"), rejected]);
    assert_eq!(judged.verdict, Verdict::Fail);
    let judged = judge(&polling, &[call(0, 1, "a"), answer(1, "x"), call(0, 2, "a"), answer(2, "x")]);
    assert_eq!(judged.verdict, Verdict::Skip);
    let text = r#"{
      "title": "A ping is answered in the end",
      "requirements": ["tools-call-unknown-tool-error"],
      "fix": "Answer it.",
      "steps": [
        {
          "send": { "method": "tools/call", "params": { "name": "a" } },
          "poll": { "until": { "properties": { "result": { "required": ["done"] } } }, "otherwise": { "message": "Never." } },
          "expect": [{ "outcome": ["result"] }],
        },
      ],
    }"#;
    let judged = judge(&case(text), &[call(0, 1, "a"), answer(1, "x")]);
    assert_eq!((judged.verdict, judged.findings[0].message.as_str()), (Verdict::Warn, "Never."));
}

fn judge_by_rule(rule: &str, messages: &[(Option<usize>, Value)]) -> Judgement {
    let case = case(&format!(
        r#"{{
          "title": "A tool has a name",
          "requirements": ["tool-name-string"],
          "fix": "Name it.",
          "watch": {{ "kind": "result", "methods": ["tools/list"], "path": "/tools/*" }},
          "rules": [{rule}],
        }}"#
    ));
    let Body::Passive(passive) = &case.body else { panic!("it is passive") };
    let connected = [RecordedConnection { label: "main".to_owned(), transcript: transcript(messages) }];
    judge_passive(&case, passive, REVISION, &IndexedConnections::new(&connected, REVISION))
}

#[test]
fn a_passive_case_without_anything_to_judge_is_skipped() {
    let judged = judge_by_rule(r#"{ "schema": { "required": ["name"] } }"#, &[]);
    assert_eq!((judged.verdict, judged.judged_count), (Verdict::Skip, 0));
    assert!(judged.reason.is_some());
}

#[test]
fn the_same_violation_in_many_lists_is_one_finding_that_counts_each_place_once() {
    let list = |id: i64| {
        [
            (Some(9), json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })),
            (
                None,
                json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [{ "name": "a" }, { "x": 1 }, { "x": 2 }] } }),
            ),
        ]
    };
    let messages: Vec<_> = list(1).into_iter().chain(list(2)).collect();
    let judged =
        judge_by_rule(r#"{ "schema": { "required": ["name"] }, "message": "A tool has no name." }"#, &messages);
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!((judged.findings.len(), judged.findings[0].count), (1, 2));
    assert_eq!(judged.findings[0].evidence.len(), 2);
}

#[test]
fn a_response_of_another_revision_is_not_judged() {
    let mut other_revision = transcript(&[
        (Some(9), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
        (None, json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [{}] } })),
    ]);
    other_revision.session_parameters.opening = Some(json!({ "protocolVersion": "2024-11-05", "capabilities": {} }));
    let case = case(
        r#"{
          "title": "A tool has a name",
          "requirements": ["tool-name-string"],
          "fix": "Name it.",
          "watch": { "kind": "result", "methods": ["tools/list"], "path": "/tools/*" },
          "rules": [{ "schema": { "required": ["name"] } }],
        }"#,
    );
    let Body::Passive(passive) = &case.body else { panic!("it is passive") };
    let connected = [RecordedConnection { label: "main".to_owned(), transcript: other_revision }];
    let judged = judge_passive(&case, passive, REVISION, &IndexedConnections::new(&connected, REVISION));
    assert_eq!(judged.verdict, Verdict::Skip);
}
