//! The judge on hand-made transcripts: what counts as proof, and what does not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Connected, Judged, Pass, Watched, act, watch};
use crate::case::{Body, Case, CaseText, Source, Trust, understand};
use crate::spec::Revision;
use crate::transcript::{Entry, Event, Mark, Terms, Transcript};
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
    understand(vec![text], &[], Trust::Nothing).expect("the case is sound").remove(0)
}

fn refusal_case() -> Case {
    case(
        r#"{
          "title": "An unknown tool is refused",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "Refuse it.",
          "steps": [
            { "send": { "method": "tools/call", "params": { "name": "known" } }, "control": true },
            {
              "send": { "method": "tools/call", "params": { "name": "unknown" } },
              "expect": [
                { "outcome": ["error"] },
                { "outcome": ["tool-error"], "verdict": "warn", "message": "A tool result." },
              ],
              "otherwise": { "verdict": "fail", "message": "It is not refused." },
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
            let frame = Frame::of(value);
            let event = match step {
                Some(step) => Event::Sent { frame, mark: Some(Mark { pass: 0, step: *step }) },
                None => Event::Received(frame),
            };
            Arc::new(Entry { at: Duration::from_millis(at as u64), event })
        })
        .collect();
    let opening = json!({ "protocolVersion": REVISION.as_str(), "capabilities": { "tools": {} } });
    Transcript { entries, terms: Terms { client_capabilities: json!({}), opening: Some(opening) } }
}

fn judge(case: &Case, messages: &[(Option<usize>, Value)]) -> Judged {
    let Body::Act(body) = &case.body else { panic!("it acts") };
    let pass = Pass {
        label: String::new(),
        number: 0,
        transcript: transcript(messages),
        offered: std::collections::BTreeMap::new(),
        trouble: None,
        void: None,
    };
    act(case, body, REVISION, &[pass])
}

fn call(step: usize, id: i64, name: &str) -> (Option<usize>, Value) {
    (Some(step), json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } }))
}

fn served(id: i64) -> (Option<usize>, Value) {
    (None, json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }))
}

#[test]
fn a_refusal_passes_where_its_control_was_served() {
    let refused = (None, json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "no" } }));
    let judged = judge(&refusal_case(), &[call(0, 1, "known"), served(1), call(1, 2, "unknown"), refused]);
    assert_eq!((judged.verdict, judged.seen), (Verdict::Pass, 2));
}

#[test]
fn a_refusal_proves_nothing_where_its_control_was_refused_too() {
    let refused = |id: i64| (None, json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "no" } }));
    let judged = judge(&refusal_case(), &[call(0, 1, "known"), refused(1), call(1, 2, "unknown"), refused(2)]);
    assert_eq!(judged.verdict, Verdict::Error);
    assert!(judged.reason.is_some_and(|reason| reason.contains("control")));
}

#[test]
fn a_row_decides_the_verdict_and_speaks_for_itself() {
    let tool_error = (None, json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": [], "isError": true } }));
    let judged = judge(&refusal_case(), &[call(0, 1, "known"), served(1), call(1, 2, "unknown"), tool_error]);
    assert_eq!(judged.verdict, Verdict::Warn);
    assert_eq!(judged.findings[0].message, "A tool result.");
    assert_eq!(judged.findings[0].evidence.len(), 4);
}

#[test]
fn what_no_row_fits_is_otherwise() {
    let judged = judge(&refusal_case(), &[call(0, 1, "known"), served(1), call(1, 2, "unknown"), served(2)]);
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!(judged.findings[0].requirement, "tools-call-unknown-tool-error");
}

#[test]
fn silence_alone_never_passes() {
    let quiet = case(
        r#"{
          "title": "A notification draws no answer",
          "requirements": ["jsonrpc-notification-no-response"],
          "fix": "Drop it.",
          "steps": [{ "notify": { "method": "notifications/own" }, "expect": [{ "outcome": ["no-response"] }] }],
        }"#,
    );
    let notified = (Some(0), json!({ "jsonrpc": "2.0", "method": "notifications/own" }));
    let judged = judge(&quiet, std::slice::from_ref(&notified));
    assert_eq!(judged.verdict, Verdict::Error);
    let answered = (None, json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": "" } }));
    assert_eq!(judge(&quiet, &[notified, answered]).verdict, Verdict::Fail);
}

#[test]
fn what_is_polled_for_is_judged_by_the_answer_that_ended_it() {
    let polling = case(
        r#"{
          "title": "A ping is answered in the end",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "Answer it.",
          "steps": [
            {
              "send": { "method": "tools/call", "params": { "name": "a" } },
              "poll": { "until": { "properties": { "result": { "required": ["done"] } } }, "times": 3 },
              "expect": [{ "outcome": ["result"] }],
              "otherwise": { "verdict": "fail", "message": "It ends in an error." },
            },
          ],
        }"#,
    );
    let answer = |id: i64, member: &str| (None, json!({ "jsonrpc": "2.0", "id": id, "result": { member: 1 } }));
    let refused = (None, json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "no" } }));
    let judged = judge(&polling, &[call(0, 1, "a"), answer(1, "x"), call(0, 2, "a"), answer(2, "done")]);
    assert_eq!((judged.verdict, judged.seen), (Verdict::Pass, 1));
    let judged = judge(&polling, &[call(0, 1, "a"), answer(1, "x"), call(0, 2, "a"), refused]);
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

fn look(rule: &str, messages: &[(Option<usize>, Value)]) -> Judged {
    let case = case(&format!(
        r#"{{
          "title": "A tool has a name",
          "requirements": ["tool-name-string"],
          "fix": "Name it.",
          "watch": {{ "kind": "result", "methods": ["tools/list"], "path": "/tools/*" }},
          "rules": [{rule}],
        }}"#
    ));
    let Body::Watch(passive) = &case.body else { panic!("it watches") };
    let connected = [Connected { label: "main".to_owned(), transcript: transcript(messages) }];
    watch(&case, passive, REVISION, &Watched::new(&connected, REVISION))
}

#[test]
fn a_watching_case_that_sees_nothing_is_skipped() {
    let judged = look(r#"{ "schema": { "required": ["name"] } }"#, &[]);
    assert_eq!((judged.verdict, judged.seen), (Verdict::Skip, 0));
    assert!(judged.reason.is_some());
}

#[test]
fn the_same_breach_in_many_lists_is_one_finding_that_counts_each_place_once() {
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
    let judged = look(r#"{ "schema": { "required": ["name"] }, "message": "A tool has no name." }"#, &messages);
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!((judged.findings.len(), judged.findings[0].count), (1, 2));
    assert_eq!(judged.findings[0].evidence.len(), 2);
}

#[test]
fn an_answer_in_another_revision_is_no_subject() {
    let mut foreign = transcript(&[
        (Some(9), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
        (None, json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [{}] } })),
    ]);
    foreign.terms.opening = Some(json!({ "protocolVersion": "2024-11-05", "capabilities": {} }));
    let case = case(
        r#"{
          "title": "A tool has a name",
          "requirements": ["tool-name-string"],
          "fix": "Name it.",
          "watch": { "kind": "result", "methods": ["tools/list"], "path": "/tools/*" },
          "rules": [{ "schema": { "required": ["name"] } }],
        }"#,
    );
    let Body::Watch(passive) = &case.body else { panic!("it watches") };
    let connected = [Connected { label: "main".to_owned(), transcript: foreign }];
    let judged = watch(&case, passive, REVISION, &Watched::new(&connected, REVISION));
    assert_eq!(judged.verdict, Verdict::Skip);
}
