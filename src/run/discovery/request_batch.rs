//! Sends several requests, a few at a time, and collects the responses in time.

use std::time::Duration;
use tokio::time::Instant;

use serde_json::Value;

use crate::client::WaitOutcome;
use crate::limits::{MAX_DISCOVERY_INPUT_ROUNDS, MAX_REQUESTS_IN_FLIGHT, MAX_UNANSWERED};
use crate::run::input_retry::{self, AnsweredRequest};
use crate::session::Session;
use crate::transcript::input_requests;
use crate::wire::Id;

/// The limits of a batch.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct BatchLimits {
    /// How long each response is waited for.
    pub(in crate::run) timeout: Duration,
    /// When the batch ends, answered or not.
    pub(in crate::run) end: Instant,
}

/// A response, and what led to it.
#[derive(Debug)]
pub(super) struct BatchResponse {
    /// The position of the request in the batch.
    pub(in crate::run) request: usize,
    pub(in crate::run) response: Value,
    pub(in crate::run) duration: Duration,
    /// The requests for input that the client answered before this response.
    pub(super) input_requests: Vec<Value>,
}

/// A request in flight.
struct Pending {
    at: usize,
    message: Value,
    since: Instant,
    rounds: usize,
    input_requests: Vec<Value>,
}

/// Sends requests (each with method and params), a few at a time; returns the responses in the order in which they
/// arrived. Requests that are not answered in time are cancelled; after two of them the rest is not sent.
pub(in crate::run) async fn send_batch(
    session: &mut Session,
    requests: &[Value],
    limits: BatchLimits,
) -> Vec<BatchResponse> {
    let from = session.connection.len();
    let mut waiting = requests.iter().enumerate();
    let mut pending: Vec<Pending> = Vec::new();
    let mut responses = Vec::new();
    let mut unanswered = 0;
    loop {
        while pending.len() < MAX_REQUESTS_IN_FLIGHT
            && unanswered < MAX_UNANSWERED
            && Instant::now() < limits.end
            && !session.connection.is_closed()
            && session.connection.rate_limited_requests() == 0
        {
            let Some((at, request)) = waiting.next() else { break };
            let message = session.complete(request, true, None);
            session.send(&message, None).await;
            pending.push(Pending { at, message, since: Instant::now(), rounds: 0, input_requests: Vec::new() });
        }
        let Some(oldest) = pending.iter().map(|one| one.since).min() else { return responses };
        let end = (oldest + limits.timeout).min(limits.end);
        let ids: Vec<Id> = pending.iter().map(|one| one.message["id"].clone()).collect();
        let left = end.saturating_duration_since(Instant::now());
        match session.wait_for_first_response(from, &ids, left).await {
            WaitOutcome::Ready((at, response)) => {
                session.unanswered = 0;
                let answered = pending.remove(at);
                if let Some(retried) = take_response(session, answered, response, &mut responses).await {
                    pending.push(retried);
                }
            }
            WaitOutcome::TimedOut => {
                let now = Instant::now();
                let is_late = |one: &Pending| now >= one.since + limits.timeout || now >= limits.end;
                let (late, in_time): (Vec<_>, Vec<_>) = pending.into_iter().partition(is_late);
                pending = in_time;
                unanswered += late.len();
                for one in late {
                    session.cancel(&one.message["id"], "the request exceeded its timeout").await;
                }
            }
            WaitOutcome::Closed => return responses,
        }
    }
}

/// Adds a response, or repeats its request with the input that it asks for.
async fn take_response(
    session: &mut Session,
    answered: Pending,
    response: Value,
    responses: &mut Vec<BatchResponse>,
) -> Option<Pending> {
    let served = AnsweredRequest { request: answered.message, response };
    let mut input = answered.input_requests;
    if answered.rounds < MAX_DISCOVERY_INPUT_ROUNDS
        && let Some(retried) = input_retry::plain(&served, &session.replies)
    {
        let requests = served.response.get("result").into_iter().flat_map(input_requests);
        input.extend(requests.map(|(_, request)| request.clone()));
        let message = session.complete(&retried, true, None);
        session.send(&message, None).await;
        return Some(Pending { message, rounds: answered.rounds + 1, input_requests: input, ..answered });
    }
    let (request, duration) = (answered.at, answered.since.elapsed());
    responses.push(BatchResponse { request, response: served.response, duration, input_requests: input });
    None
}
