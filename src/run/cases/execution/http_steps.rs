//! Carries out case steps that send their own HTTP requests.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::bindings::Bindings;
use super::filled_message::filled_up;
use super::tool_arguments::MissingValue;
use crate::case::{After, HttpCall, Transfer, Until};
use crate::client::{BodyTransfer, DirectRequest, DirectResponse, ReadUntil};
use crate::limits::{GET_HEAD_TIME, GET_READ_SHARE, GET_READ_TIME, REPEATED_REQUESTS_TIME, REPEATED_REQUESTS_TRIAL};
use crate::session::Session;
use crate::spec::Era;
use crate::transcript::StepId;

/// What the request of a step is filled in from and sent with.
pub(super) struct StepContext<'a, 'b> {
    /// The `_meta` of the step, filled in like its body.
    pub(super) meta: Option<&'a Value>,
    pub(super) session: &'a mut Session,
    pub(super) bindings: &'a Bindings<'b>,
    pub(super) step_id: StepId,
    /// How long to wait for a response that the case sets no time for.
    pub(super) timeout: Duration,
}

/// Responses that are read during later steps, by the index of their step.
#[derive(Debug, Default)]
pub(super) struct OpenResponses {
    /// Those that stay open.
    kept: BTreeMap<usize, DirectResponse>,
    /// Those to requests that are pipelined.
    pipelined: BTreeMap<usize, DirectResponse>,
}

impl OpenResponses {
    /// Sends the request of a step as often as it says, and returns the last exchange.
    pub(super) async fn send(
        &mut self,
        send: &HttpCall,
        context: &mut StepContext<'_, '_>,
    ) -> Result<Value, MissingValue> {
        let began = Instant::now();
        let mut made = 0;
        loop {
            let exchange = self.send_once(send, context).await?;
            let is_served = exchange["status"].as_u64().is_some_and(is_success);
            if is_served && send.after == After::EndSession {
                end_session(context.session, &exchange, context.timeout).await?;
            }
            made += 1;
            if made >= send.times || !is_served {
                return Ok(exchange);
            }
            if is_too_slow(made, send.times, began.elapsed()) {
                let reason = format!("the server is too slow for {} requests in a row; {made} were served", send.times);
                return Err(MissingValue(reason));
            }
        }
    }

    /// Sends the request of a step and returns the exchange. Waits for the response unless it stays open.
    async fn send_once(&mut self, send: &HttpCall, context: &mut StepContext<'_, '_>) -> Result<Value, MissingValue> {
        let request = direct_request(send, context)?;
        let mut response =
            context.session.connection.send_directly(&request).map_err(|error| MissingValue(error.to_string()))?;
        if send.keep_open || is_open_ended(send) {
            let began = Instant::now();
            response.wait_for_head(context.timeout, Duration::ZERO).await;
            let limit = GET_READ_TIME.max(began.elapsed() / GET_READ_SHARE);
            if send.keep_open {
                response.wait_for_head(Duration::ZERO, limit).await;
            } else {
                let _stays_open = tokio::time::timeout(limit, response.wait_for_end()).await.is_err();
            }
        } else {
            response.wait_for_end().await;
        }
        let value = response.value();
        if send.keep_open {
            self.kept.insert(context.step_id.step, response);
        } else if is_open_ended(send) {
            response.close();
        }
        Ok(value)
    }

    /// Sends the request of a step whose response is read while later steps run.
    pub(super) fn send_pipelined(
        &mut self,
        send: &HttpCall,
        context: &mut StepContext<'_, '_>,
    ) -> Result<(), MissingValue> {
        let request = direct_request(send, context)?;
        let response =
            context.session.connection.send_directly(&request).map_err(|error| MissingValue(error.to_string()))?;
        self.pipelined.insert(context.step_id.step, response);
        Ok(())
    }

    /// Closes the response to a step; waits for it if the step is pipelined.
    pub(super) async fn close(&mut self, step: usize) {
        if let Some(response) = self.kept.remove(&step) {
            response.close();
        }
        if let Some(mut response) = self.pipelined.remove(&step) {
            response.wait_for_end().await;
        }
    }

    /// Waits for the responses to requests that are pipelined.
    pub(super) async fn wait_for_pipelined(&mut self) {
        // They are read at the same time, each within its own limit.
        for mut response in std::mem::take(&mut self.pipelined).into_values() {
            response.wait_for_end().await;
        }
    }

    /// Closes all open responses.
    pub(super) fn close_all(&mut self) {
        let all = std::mem::take(&mut self.kept).into_values().chain(std::mem::take(&mut self.pipelined).into_values());
        all.for_each(DirectResponse::close);
    }
}

impl Drop for OpenResponses {
    fn drop(&mut self) {
        self.close_all();
    }
}

/// Ends the sessions that were opened next to the own one of the connection since this position. One that the server does not
/// end stays open.
pub(super) async fn end_other_sessions(session: &Session, from: usize, timeout: Duration) {
    let own = session.connection.http_session();
    let exchanges = session.transcript_from(from).http_exchanges();
    let is_ended = |id: &Value| {
        exchanges.iter().any(|exchange| {
            let request = &exchange.value["request"];
            request["method"] == "DELETE" && request["headers"]["mcp-session-id"] == *id
        })
    };
    for exchange in &exchanges {
        let (request, id) = (&exchange.value["request"], &exchange.value["headers"]["mcp-session-id"]);
        let is_served = exchange.value["status"].as_u64().is_some_and(is_success);
        let opens = request["message"]["method"] == "initialize" && is_served && id.is_string();
        if opens && id.as_str() != own.as_deref() && !is_ended(id) {
            let _refused = end_session(session, &exchange.value, timeout).await;
        }
    }
}

/// Ends the session that an exchange opened, if it did.
async fn end_session(session: &Session, exchange: &Value, timeout: Duration) -> Result<(), MissingValue> {
    let Some(id) = exchange.pointer("/headers/mcp-session-id").and_then(Value::as_str) else { return Ok(()) };
    let mut headers = vec![("mcp-session-id".to_owned(), vec![id.to_owned()])];
    if session.revision.era() == Era::Stateless {
        // The connection would name its own version, which has no sessions.
        headers.push(("mcp-protocol-version".to_owned(), Vec::new()));
    }
    let request = DirectRequest {
        method: "DELETE".to_owned(),
        target: None,
        headers,
        body: None,
        title_case_headers: false,
        base64_headers: false,
        is_repeated: false,
        transfer: BodyTransfer::Whole,
        until: ReadUntil::End,
        limit: timeout,
        step_id: None,
    };
    let response = session.connection.send_directly(&request).map_err(|error| MissingValue(error.to_string()));
    let mut response = response?;
    response.wait_for_end().await;
    // A server may refuse DELETE with status 405, so that the session goes on.
    if response.value()["status"].as_u64().is_some_and(is_success) {
        Ok(())
    } else {
        Err(MissingValue("the server does not end a session with DELETE".to_owned()))
    }
}

/// Whether an HTTP status is one of success.
fn is_success(status: u64) -> bool {
    (200..300).contains(&status)
}

/// Whether all requests of a step will take too long, as those made so far show.
fn is_too_slow(made: u32, times: u32, elapsed: Duration) -> bool {
    elapsed > REPEATED_REQUESTS_TRIAL && elapsed * times > REPEATED_REQUESTS_TIME * made
}

/// Whether the server may keep the response open, and the case says nothing of how long to read it.
fn is_open_ended(send: &HttpCall) -> bool {
    send.method == "GET" && !send.keep_open && send.timeout_ms.is_none()
}

/// The request to send for a step.
fn direct_request(send: &HttpCall, context: &mut StepContext<'_, '_>) -> Result<DirectRequest, MissingValue> {
    let StepContext { meta, bindings, step_id, timeout, .. } = *context;
    let session = &mut *context.session;
    let target = send.path.as_deref().map(|path| bindings.fill_text(path, session)).transpose()?;
    let mut headers = Vec::new();
    for (name, values) in send.replaced() {
        let values = values.into_iter().map(|value| bindings.fill_text(value, session)).collect::<Result<_, _>>()?;
        headers.push((name.to_owned(), values));
    }
    let meta = meta.map(|meta| bindings.fill(meta, session)).transpose()?;
    let body = match &send.body {
        None => None,
        Some(Value::String(body)) => Some(Value::String(bindings.fill_text(body, session)?)),
        Some(Value::Array(batch)) => {
            let whole = batch.iter().map(|message| filled_message(message, session, bindings, meta.as_ref()));
            Some(Value::Array(whole.collect::<Result<_, _>>()?))
        }
        Some(message) => Some(filled_message(message, session, bindings, meta.as_ref())?),
    };
    let reads = send.method == "GET" || send.keep_open;
    let timeout = session.answer_times().extended(timeout, Duration::ZERO) + session.time_of_messages_ahead();
    let limit = match send.timeout_ms {
        // A response that takes longer on this server is waited for; a stream that stays open is not read any longer.
        Some(limit) if send.method == "POST" && !send.keep_open => {
            let limit = Duration::from_millis(limit);
            session.answer_times().at_least(limit).min(timeout.max(limit))
        }
        // It must not end by itself while a later step waits for a response: that may be what the step is about.
        Some(limit) if send.keep_open => Duration::from_millis(limit) + timeout,
        // The stream is read for as long as that once the server has begun to answer.
        Some(limit) => Duration::from_millis(limit) + session.answer_times().at_least_fastest(Duration::ZERO),
        None if is_open_ended(send) => session.answer_times().at_least(GET_HEAD_TIME).min(timeout),
        None => timeout,
    };
    Ok(DirectRequest {
        method: send.method.clone(),
        target,
        headers,
        body,
        title_case_headers: send.title_case_headers,
        base64_headers: send.base64,
        is_repeated: send.times > 1,
        transfer: match send.transfer {
            Transfer::Whole => BodyTransfer::Whole,
            Transfer::Chunked => BodyTransfer::Chunked,
            Transfer::Paused => BodyTransfer::Paused,
        },
        until: match send.until {
            Until::Headers => ReadUntil::Head,
            Until::Event => ReadUntil::Event,
            Until::Response if !reads => ReadUntil::Answer,
            Until::Response | Until::End => ReadUntil::End,
            Until::Closed => ReadUntil::Closed,
        },
        limit,
        step_id: Some(step_id),
    })
}

fn filled_message(
    message: &Value,
    session: &mut Session,
    bindings: &Bindings<'_>,
    meta: Option<&Value>,
) -> Result<Value, MissingValue> {
    let message = bindings.fill(message, session)?;
    let method = message.get("method").and_then(Value::as_str);
    let is_request = method.is_some_and(|method| !method.starts_with("notifications/"));
    Ok(filled_up(session.complete(&message, is_request, meta)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_too_slow_once_its_first_responses_show_it() {
        let seconds = Duration::from_secs;
        assert!(!is_too_slow(1, 300, seconds(1)), "one slow response says nothing");
        assert!(!is_too_slow(100, 300, seconds(3)), "all will have come after 9 s");
        assert!(is_too_slow(2, 300, seconds(4)), "all would take 10 minutes");
        assert!(is_too_slow(299, 300, seconds(11)), "no step takes longer");
    }
}
