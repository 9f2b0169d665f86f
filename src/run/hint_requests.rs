//! Sends the requests of a plan's hints in the main session, where passive cases judge the messages, and records
//! arguments that succeed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::discovery::cancel;
use super::exchange::GIVEN_UP;
use super::inventory::Inventory;
use super::plan::Plan;
use super::retry::{self, AnsweredRequest};
use super::session::Session;
use crate::case::{Case, Hint, HintRequest};
use crate::client::WaitOutcome;
use crate::event::HintNote;
use crate::spec::Revision;
use crate::transcript::is_input_required;

/// A hint and its outcome.
#[derive(Debug, Clone)]
pub(super) struct HintResult {
    pub(super) hint: Hint,
    pub(super) outcome: HintOutcome,
}

/// The outcome of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HintOutcome {
    /// The response is a result without `isError`.
    Served,
    /// The response is an error or a result with `isError: true`, which may be the purpose of the hint.
    Failed(String),
    /// There was no response.
    Unanswered,
    /// The request was not sent, for this reason.
    NotSent(String),
}

impl HintResult {
    /// Whether the request succeeded and is meant for a case in a revision.
    pub(super) fn applies_to(&self, case: &Case, revision: Revision) -> bool {
        self.outcome == HintOutcome::Served && self.hint.is_for(case, revision)
    }

    /// The entry in the report.
    pub(super) fn note(&self) -> HintNote {
        let note = match &self.outcome {
            HintOutcome::Served => None,
            HintOutcome::Failed(how) => Some(format!("it failed: {how}")),
            HintOutcome::Unanswered => Some("it was not answered".to_owned()),
            HintOutcome::NotSent(why) => Some(format!("it was not sent: {why}")),
        };
        HintNote { request: self.hint.request.describe(), purposes: self.hint.purposes.clone(), note }
    }
}

/// Sends the hint requests of the session's revision, one after the other.
pub(super) async fn send_all(session: &mut Session, plan: &Plan, inventory: &mut Inventory) {
    for (number, hint) in plan.hints.iter().enumerate() {
        if !hint.revisions.contains(session.revision) {
            continue;
        }
        let began = Instant::now();
        let (outcome, client_requests) = match reason_not_to_send(session, inventory, &hint.request) {
            Some(why) => (HintOutcome::NotSent(why), Vec::new()),
            None => send_and_record(session, plan, &hint.request, number).await,
        };
        if outcome == HintOutcome::Served {
            record_working_arguments(inventory, &hint.request, client_requests, began.elapsed());
        }
        inventory.hint_results.push(HintResult { hint: hint.clone(), outcome });
    }
}

/// The reason not to send a request: the rules for calling tools apply to hints too.
fn reason_not_to_send(session: &Session, inventory: &Inventory, request: &HintRequest) -> Option<String> {
    if inventory.stop_reason.is_some() || session.connection.is_closed() || session.unanswered >= GIVEN_UP {
        return Some("the server no longer answers".to_owned());
    }
    let undeclared = |capability: &str| {
        let known = session.parameters.opening.is_some() && !session.parameters.declares(capability);
        known.then(|| format!("the server does not declare {capability}"))
    };
    match request {
        HintRequest::Call { tool, .. } => match inventory.tools.iter().find(|listed| listed.name == *tool) {
            None => undeclared("tools").or_else(|| Some("the server lists no such tool".to_owned())),
            Some(listed) if !listed.permitted => listed.exclusion.clone(),
            Some(_) => None,
        },
        HintRequest::Read { .. } => undeclared("resources"),
        HintRequest::Get { .. } => undeclared("prompts"),
    }
}

/// The outcome of a hint, and the requests that the server sent meanwhile.
async fn send_and_record(
    session: &mut Session,
    plan: &Plan,
    request: &HintRequest,
    number: usize,
) -> (HintOutcome, Vec<Value>) {
    let from = session.connection.len();
    let waited = send_hint_request(session, request, &format!("hint-{number}"), plan.timeout).await;
    let outcome = match waited {
        WaitOutcome::Ready(response) => outcome_of(&response),
        WaitOutcome::TimedOut | WaitOutcome::Closed => HintOutcome::Unanswered,
    };
    (outcome, session.transcript_from(from).requests_to_client())
}

/// Sends a request, repeats it with the input that its result asks for, and cancels it if it is not answered.
pub(super) async fn send_hint_request(
    session: &mut Session,
    request: &HintRequest,
    token: &str,
    limit: Duration,
) -> WaitOutcome<Value> {
    const MAX_ROUNDS: usize = 4;
    let (method, mut params) = request.method_and_params();
    if matches!(request, HintRequest::Call { .. }) {
        params.insert("_meta".to_owned(), json!({ "progressToken": token }));
    }
    let mut message = json!({ "method": method, "params": params });
    let mut rounds = 0;
    loop {
        let request = session.complete(&message, true, None);
        let from = session.connection.len();
        session.send(&request, None).await;
        let waited = session.wait_for_response(from, &request["id"], limit).await;
        let WaitOutcome::Ready(response) = waited else {
            cancel(session, &request["id"], "the request exceeded its timeout").await;
            return waited;
        };
        let served = AnsweredRequest { request, response };
        rounds += 1;
        match retry::plain(&served, &session.replies) {
            Some(retried) if rounds < MAX_ROUNDS => message = retried,
            Some(_) | None => return WaitOutcome::Ready(served.response),
        }
    }
}

/// The outcome that a response means.
pub(super) fn outcome_of(response: &Value) -> HintOutcome {
    match response.get("result") {
        Some(result) if is_input_required(result) => HintOutcome::Failed("it asks for input repeatedly".to_owned()),
        Some(result) if result.get("isError") != Some(&Value::Bool(true)) => HintOutcome::Served,
        Some(result) => {
            let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("a result with isError");
            HintOutcome::Failed(shorten(text))
        }
        None => {
            let error = response.get("error").unwrap_or(&Value::Null);
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            HintOutcome::Failed(shorten(&format!("error {} {message}", error.get("code").unwrap_or(&Value::Null))))
        }
    }
}

fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_CHARS { line } else { line.chars().take(MAX_CHARS).chain(['…']).collect() }
}

/// Keeps arguments that succeeded for the cases that call a tool or get a prompt.
fn record_working_arguments(
    inventory: &mut Inventory,
    request: &HintRequest,
    client_requests: Vec<Value>,
    duration: Duration,
) {
    match request {
        HintRequest::Call { tool, arguments } => {
            if let Some(listed) = inventory.tools.iter_mut().find(|listed| listed.name == *tool) {
                listed.use_working_arguments(Value::Object(arguments.clone()), client_requests, duration);
            }
        }
        HintRequest::Read { .. } => {}
        HintRequest::Get { prompt, arguments } => inventory.primitives.record_working_arguments(prompt, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_a_request_is_described_briefly() {
        assert_eq!(outcome_of(&json!({"result": {"content": []}})), HintOutcome::Served);
        let failed = json!({"result": {"isError": true, "content": [{"type": "text", "text": "no\nsuch  zone"}]}});
        assert_eq!(outcome_of(&failed), HintOutcome::Failed("no such zone".to_owned()));
        let error = json!({"error": {"code": -32602, "message": "bad"}});
        assert_eq!(outcome_of(&error), HintOutcome::Failed("error -32602 bad".to_owned()));
        let HintOutcome::Failed(long) = outcome_of(&json!({"error": {"code": 1, "message": "x".repeat(500)}})) else {
            panic!("it was refused")
        };
        assert_eq!(long.chars().count(), 121);
    }
}
