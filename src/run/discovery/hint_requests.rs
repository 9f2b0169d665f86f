//! Sends the requests of a plan's hints in the main session, where passive cases judge the messages, and records
//! arguments that succeed.

use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Value, json};

use crate::case::HintRequest;
use crate::client::WaitOutcome;
use crate::inventory::{HintOutcome, HintResult, Inventory};
use crate::limits::MAX_DISCOVERY_INPUT_ROUNDS;
use crate::plan::Plan;
use crate::run::input_retry::{self, AnsweredRequest};
use crate::session::Session;

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
    if inventory.stop_reason.is_some() || session.connection.is_closed() || session.is_unresponsive() {
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
        WaitOutcome::Ready(response) => HintOutcome::of_response(&response),
        WaitOutcome::TimedOut | WaitOutcome::Closed => HintOutcome::Unanswered,
    };
    (outcome, session.transcript_from(from).requests_to_client())
}

/// Sends a request, repeats it with the input that its result asks for, and cancels it if it is not answered.
pub(in crate::run) async fn send_hint_request(
    session: &mut Session,
    request: &HintRequest,
    token: &str,
    limit: Duration,
) -> WaitOutcome<Value> {
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
            session.cancel(&request["id"], "the request exceeded its timeout").await;
            return waited;
        };
        let served = AnsweredRequest { request, response };
        rounds += 1;
        match input_retry::plain(&served, &session.replies) {
            Some(retried) if rounds < MAX_DISCOVERY_INPUT_ROUNDS => message = retried,
            Some(_) | None => return WaitOutcome::Ready(served.response),
        }
    }
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
