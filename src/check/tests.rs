//! Tests of the judge with hand-made transcripts: what counts as proof, and what does not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Execution, IndexedConnections, Judgement, RecordedConnection, judge_active, judge_passive};
use crate::case::{Body, Case, CaseText, Source, Trust, parse_cases};
use crate::spec::Revision;
use crate::transcript::{Entry, Event, HttpEnd, HttpHead, HttpRequest, SessionParameters, StepId, Transcript};
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
        session_parameters: SessionParameters {
            client_capabilities: json!({}),
            opening: Some(opening),
            ..SessionParameters::default()
        },
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
        silent_methods: BTreeSet::new(),
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
fn steps_with_the_same_message_are_one_finding_that_names_what_each_is_about() {
    let step = |name: &str| {
        format!(
            r#"{{ "send": {{ "method": "tools/call", "params": {{ "name": "{name}" }} }}, "expect": [{{ "outcome": ["error"] }}],
                "otherwise": {{ "message": "The server serves it.", "subject": "name {name}" }} }}"#
        )
    };
    let case = case(&format!(
        r#"{{ "title": "The server rejects an unknown tool", "requirements": ["tools-call-unknown-tool-error"],
            "fix": "Reject it.", "steps": [{}, {}, {}] }}"#,
        step("a"),
        step("b"),
        step("c")
    ));
    let rejected = (None, json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "no" } }));
    let messages = [call(0, 1, "a"), served(1), call(1, 2, "b"), rejected, call(2, 3, "c"), served(3)];
    let judged = judge(&case, &messages);
    assert_eq!(judged.findings.len(), 1);
    assert_eq!(judged.findings[0].subjects, ["name a", "name c"]);
    assert_eq!(judged.findings[0].count, 2);
}

#[test]
fn a_list_need_not_be_read_a_third_time_if_the_first_two_times_agree() {
    let paginating = case(
        r#"{
          "title": "The server returns all tools each time",
          "requirements": ["pagination-stable-cursors"],
          "fix": "Keep the order.",
          "steps": [
            { "name": "first", "paginate": "tools/list" },
            { "name": "second", "paginate": "tools/list" },
            { "name": "third", "paginate": "tools/list" },
          ],
          "across-steps": [
            { "check": "same-set-between", "steps": ["first", "second", "third"], "path": "/result/tools/*/name" },
          ],
        }"#,
    );
    let verdict = |listed: &[&str]| {
        let exchange = |(step, name): (usize, &&str)| {
            let id = json!(step);
            let sent = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} });
            let received = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [{ "name": name }] } });
            [(Some(step), sent), (None, received)]
        };
        let messages: Vec<_> = listed.iter().enumerate().flat_map(exchange).collect();
        judge(&paginating, &messages).verdict
    };
    assert_eq!(verdict(&["a", "a"]), Verdict::Pass);
    assert_eq!(verdict(&["a", "b", "a"]), Verdict::Warn);
    assert_eq!(verdict(&["a", "b", "b"]), Verdict::Pass, "the list changed");
    assert_eq!(verdict(&["a", "b"]), Verdict::Error, "nothing shows whether the list changed");
    assert_eq!(verdict(&["a"]), Verdict::Error);
}

#[test]
fn lists_that_steps_read_by_http_requests_of_their_own_are_compared() {
    let users = case(
        r#"{
          "title": "The server lists the same to every user",
          "requirements": ["pagination-stable-cursors"],
          "fix": "List the same.",
          "steps": [
            { "name": "first", "http": { "method": "POST", "body": { "method": "tools/list" } } },
            { "name": "other", "http": { "method": "POST", "body": { "method": "tools/list" } } },
            { "name": "again", "http": { "method": "POST", "body": { "method": "tools/list" } } },
          ],
          "across-steps": [
            {
              "check": "same-set-between",
              "steps": ["first", "other", "again"],
              "path": "/body/message/result/tools/*/name",
            },
          ],
        }"#,
    );
    let Body::Active(body) = &users.body else { panic!("it is active") };
    let verdict = |listed: &[&str]| {
        let exchange = |(number, name): (usize, &&str)| {
            let step_id = Some(StepId { execution: 0, step: number });
            let message = json!({ "jsonrpc": "2.0", "id": number, "result": { "tools": [{ "name": name }] } });
            [
                Event::HttpRequest(HttpRequest { number, step_id, ..HttpRequest::default() }),
                Event::HttpHead(HttpHead { number, status: 200, headers: Arc::default() }),
                Event::HttpEnd(Box::new(HttpEnd { number, message: Some(message.into()), ..HttpEnd::default() })),
            ]
        };
        let events = listed.iter().enumerate().flat_map(exchange);
        let execution = Execution {
            label: String::new(),
            number: 0,
            transcript: Transcript {
                entries: events.map(|event| Arc::new(Entry { at: Duration::ZERO, event })).collect(),
                ..transcript(&[])
            },
            discovered_lists: std::collections::BTreeMap::new(),
            not_carried_out: None,
            silent_methods: BTreeSet::new(),
            not_applicable: None,
        };
        judge_active(&users, body, REVISION, &[execution]).verdict
    };
    assert_eq!(verdict(&["a", "a", "a"]), Verdict::Pass);
    assert_eq!(verdict(&["a", "b", "a"]), Verdict::Warn);
    assert_eq!(verdict(&["a", "b", "b"]), Verdict::Pass, "the list changed");
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

/// Judges a passive case with this watch and this rule.
fn judge_watch(watch: &str, rule: &str, revision: Revision, record: Transcript) -> Judgement {
    let case = case(&format!(
        r#"{{
          "title": "The server keeps a rule",
          "requirements": ["jsonrpc-result-object"],
          "fix": "Keep it.",
          "watch": {watch},
          "rules": [{rule}],
        }}"#
    ));
    let Body::Passive(passive) = &case.body else { panic!("it is passive") };
    let connected = [RecordedConnection { label: "main".to_owned(), transcript: record }];
    judge_passive(&case, passive, revision, &IndexedConnections::new(&connected, revision))
}

#[test]
fn a_rule_about_members_is_not_judged_by_a_value_without_members() {
    let list = |result: Value| {
        transcript(&[
            (Some(9), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
            (None, json!({ "jsonrpc": "2.0", "id": 1, "result": result })),
        ])
    };
    let watch = r#"{ "kind": "result" }"#;
    for rule in [r#"{ "schema": { "not": { "required": ["a"] } } }"#, r#"{ "schema": { "required": ["b"] } }"#] {
        for other in [json!(null), json!([]), json!("text")] {
            let judged = judge_watch(watch, rule, REVISION, list(other.clone()));
            assert_eq!((judged.verdict, judged.judged_count), (Verdict::Skip, 0), "{rule} {other}");
        }
        assert_eq!(judge_watch(watch, rule, REVISION, list(json!({ "a": 1 }))).verdict, Verdict::Fail, "{rule}");
        assert_eq!(judge_watch(watch, rule, REVISION, list(json!({ "b": 1 }))).verdict, Verdict::Pass, "{rule}");
    }
    let any_type = r#"{ "schema": { "type": "object", "required": ["b"] } }"#;
    assert_eq!(judge_watch(watch, any_type, REVISION, list(json!(null))).verdict, Verdict::Fail);
}

#[test]
fn the_members_of_a_final_result_are_not_looked_for_in_an_interim_one() {
    let watch = r#"{ "kind": "result", "methods": ["tools/call"], "path": "/content" }"#;
    let rule = r#"{ "schema": { "type": "array" } }"#;
    let judged = |kind: &str| {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        let request = json!({ "name": "a", "_meta": meta });
        let mut record = transcript(&[
            (Some(9), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": request })),
            (None, json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": kind, "content": null } })),
        ]);
        record.session_parameters.opening = Some(json!({ "supportedVersions": ["2026-07-28"] }));
        judge_watch(watch, rule, Revision::V2026_07_28, record).verdict
    };
    assert_eq!(
        [judged("input_required"), judged("task"), judged("complete")],
        [Verdict::Skip, Verdict::Skip, Verdict::Fail]
    );
}

#[test]
fn a_string_that_the_client_made_up_is_not_the_servers() {
    let watch = r#"{ "kind": "result", "methods": ["prompts/get"], "path": "/uri" }"#;
    let rule = r#"{ "schema": { "pattern": "^[a-z]+:" } }"#;
    let judged = |uri: &str| {
        let params = json!({ "name": "a", "arguments": { "resourceUri": "test" } });
        let record = transcript(&[
            (Some(9), json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params })),
            (None, json!({ "jsonrpc": "2.0", "id": 1, "result": { "uri": uri } })),
        ]);
        judge_watch(watch, rule, REVISION, record).verdict
    };
    assert_eq!([judged("test"), judged("other"), judged("note:1")], [Verdict::Skip, Verdict::Fail, Verdict::Pass]);
}

#[test]
fn an_error_that_may_be_that_of_the_client_is_not_judged() {
    let relayed = |refusal: Option<Value>, code: i64| {
        let error = json!({ "code": code, "message": "no" });
        let mut messages = vec![
            (Some(9), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
            (None, json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [{ "name": "known" }] } })),
            call(0, 2, "known"),
            (None, json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage" })),
        ];
        messages.extend(refusal.map(|refusal| (Some(8), refusal)));
        messages.push((None, json!({ "jsonrpc": "2.0", "id": 2, "error": error })));
        messages
    };
    let watch = r#"{ "kind": "response", "methods": ["tools/call"] }"#;
    let refused = json!({ "jsonrpc": "2.0", "id": "s", "error": { "code": -32601, "message": "no" } });
    let granted = json!({ "jsonrpc": "2.0", "id": "s", "result": {} });
    let judged = |refusal: Option<Value>| {
        judge_watch(watch, r#"{ "check": "tool-known" }"#, REVISION, transcript(&relayed(refusal, -32601))).verdict
    };
    assert_eq!(
        [judged(Some(refused.clone())), judged(Some(granted)), judged(None)],
        [Verdict::Skip, Verdict::Fail, Verdict::Fail]
    );
    let calls = case(
        r#"{
          "title": "A call is served",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "Serve it.",
          "steps": [
            {
              "send": { "method": "tools/call", "params": { "name": "known" } },
              "expect": [{ "outcome": ["result"] }],
              "otherwise": { "verdict": "fail", "message": "It is not served." },
            },
          ],
        }"#,
    );
    assert_eq!(judge(&calls, &relayed(Some(refused), -1)).verdict, Verdict::Skip);
    assert_eq!(judge(&calls, &relayed(None, -1)).verdict, Verdict::Fail);
}

#[test]
fn progress_is_compared_with_that_of_the_same_request() {
    let request = |id: i64, token: i64| {
        let params = json!({ "name": "a", "_meta": { "progressToken": token } });
        (Some(9), json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    };
    let progress = |token: Value, value: i64| {
        let params = json!({ "progressToken": token, "progress": value });
        (None, json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }))
    };
    let judged = |check: &str, messages: &[(Option<usize>, Value)]| {
        let rule = format!(r#"{{ "check": "{check}" }}"#);
        judge_watch(r#"{ "kind": "connection" }"#, &rule, REVISION, transcript(messages)).verdict
    };
    let increases = |messages: &[_]| judged("progress-increases", messages);
    assert_eq!(increases(&[request(1, 7), progress(json!(7), 2), progress(json!(7), 1)]), Verdict::Fail);
    // Nothing shows which request a token belongs to that no request has.
    assert_eq!(increases(&[progress(json!(null), 2), progress(json!(null), 1)]), Verdict::Skip);
    assert_eq!(increases(&[progress(json!(0), 2), progress(json!(0), 1)]), Verdict::Skip);
    let again = [
        request(1, 7),
        progress(json!(7), 1),
        progress(json!(7), 2),
        served(1),
        request(2, 7),
        progress(json!(7), 1),
        served(2),
    ];
    assert_eq!(increases(&again), Verdict::Pass);
    assert_eq!(judged("progress-ends-with-response", &again), Verdict::Pass);
}

#[test]
fn a_list_that_two_later_connections_share_changed_with_time() {
    let listing = case(
        r#"{
          "title": "Connections list the same",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "List the same.",
          "steps": [{ "name": "elsewhere", "paginate": "tools/list", "expect": [{ "outcome": ["result"] }] }],
          "across-steps": [{ "check": "same-set-as-shared", "steps": ["elsewhere"], "path": "/result/tools/*/name" }],
        }"#,
    );
    let Body::Active(body) = &listing.body else { panic!("it is active") };
    let execution = |names: &[&str], discovered: Option<&[&str]>| {
        let tools: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        let listed = discovered.map(|names| ("tools/list", names.iter().map(|name| (*name).to_owned()).collect()));
        Execution {
            label: String::new(),
            number: 0,
            transcript: transcript(&[
                (Some(0), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
                (None, json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools } })),
            ]),
            discovered_lists: listed.into_iter().collect(),
            not_carried_out: None,
            silent_methods: BTreeSet::new(),
            not_applicable: None,
        }
    };
    let verdict = |executions: &[Execution]| judge_active(&listing, body, REVISION, executions).verdict;
    let discovered: Option<&[&str]> = Some(&["a"]);
    assert_eq!(verdict(&[execution(&["a"], discovered)]), Verdict::Pass);
    assert_eq!(verdict(&[execution(&["a", "b"], discovered)]), Verdict::Warn);
    assert_eq!(verdict(&[execution(&["a", "b"], discovered), execution(&["a", "c"], discovered)]), Verdict::Warn);
    assert_eq!(verdict(&[execution(&["a", "b"], discovered), execution(&["b", "a"], discovered)]), Verdict::Skip);
    // A list that was not read to its end is not an empty one.
    assert_eq!(verdict(&[execution(&["a"], None)]), Verdict::Skip);
}

#[test]
fn one_comparison_with_values_is_evidence_and_none_is_not() {
    let comparing = case(
        r#"{
          "title": "Two calls have the same result",
          "requirements": ["tools-call-unknown-tool-error"],
          "fix": "Return the same.",
          "steps": [
            { "name": "first", "send": { "method": "tools/call", "params": { "name": "t" } }, "control": true },
            { "name": "second", "send": { "method": "tools/call", "params": { "name": "t" } }, "control": true },
          ],
          "across-steps": [
            { "check": "same-set", "steps": ["first", "second"], "path": "/result/content/*" },
            { "check": "same-set", "steps": ["first", "second"], "path": "/result/structuredContent" },
          ],
        }"#,
    );
    let result = |id: i64, result: Value| (None, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    let of = |first: Value, second: Value| {
        judge(&comparing, &[call(0, 1, "t"), result(1, first), call(1, 2, "t"), result(2, second)]).verdict
    };
    let text = json!({ "content": [{ "type": "text", "text": "a" }] });
    assert_eq!(of(text.clone(), text.clone()), Verdict::Pass);
    assert_eq!(of(json!({ "content": [] }), json!({ "content": [] })), Verdict::Skip);
    assert_eq!(of(text.clone(), json!({ "content": [{ "type": "text", "text": "b" }] })), Verdict::Warn);
    let structured = json!({ "content": [{ "type": "text", "text": "a" }], "structuredContent": { "n": 1 } });
    assert_eq!(of(structured, text), Verdict::Warn);
}
