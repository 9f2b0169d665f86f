//! Carries out case steps that send their own HTTP requests.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::bindings::{Bindings, Unfilled};
use super::session::Session;
use crate::case::{HttpCall, Placeholder, Until, fill, fill_text};
use crate::client::{Bound, Probe, ProbeOrder};
use crate::transcript::Mark;

/// How long to read the response to a GET, which a server may keep open indefinitely.
const GET_READ_TIME: Duration = Duration::from_millis(300);

/// Responses that stay open during later steps, by the index of their step.
#[derive(Debug, Default)]
pub(super) struct OpenResponses(BTreeMap<usize, Probe>);

impl OpenResponses {
    /// Sends the request of a step and returns the exchange. Waits for the response unless it stays open.
    pub(super) async fn send(
        &mut self,
        send: &HttpCall,
        meta: Option<&Value>,
        session: &mut Session,
        bindings: &Bindings<'_>,
        mark: Mark,
        timeout: Duration,
    ) -> Result<Value, Unfilled> {
        let probe_order = probe_order(send, meta, session, bindings, mark, timeout)?;
        let mut probe = session.connection.probe(&probe_order).map_err(|error| Unfilled(error.to_string()))?;
        if send.keep_open {
            probe.begun(timeout, GET_READ_TIME).await;
        } else {
            probe.done().await;
        }
        let value = probe.value();
        if send.keep_open {
            self.0.insert(mark.step, probe);
        }
        Ok(value)
    }

    /// Closes the response to a step.
    pub(super) fn close(&mut self, step: usize) {
        if let Some(probe) = self.0.remove(&step) {
            probe.close();
        }
    }

    /// Closes all open responses.
    pub(super) fn close_all(&mut self) {
        std::mem::take(&mut self.0).into_values().for_each(Probe::close);
    }
}

impl Drop for OpenResponses {
    fn drop(&mut self) {
        self.close_all();
    }
}

/// The request to send for a step.
fn probe_order(
    send: &HttpCall,
    meta: Option<&Value>,
    session: &mut Session,
    bindings: &Bindings<'_>,
    mark: Mark,
    timeout: Duration,
) -> Result<ProbeOrder, Unfilled> {
    let target = send.path.as_deref().map(|path| filled_text(path, session, bindings)).transpose()?;
    let mut headers = Vec::new();
    for (name, values) in send.replaced() {
        let values = values.into_iter().map(|value| filled_text(value, session, bindings)).collect::<Result<_, _>>()?;
        headers.push((name.to_owned(), values));
    }
    let meta = meta.map(|meta| filled(meta, session, bindings)).transpose()?;
    let body = match &send.body {
        None => None,
        Some(Value::String(body)) => Some(Value::String(filled_text(body, session, bindings)?)),
        Some(Value::Array(batch)) => {
            let whole = batch.iter().map(|message| filled_message(message, session, bindings, meta.as_ref()));
            Some(Value::Array(whole.collect::<Result<_, _>>()?))
        }
        Some(message) => Some(filled_message(message, session, bindings, meta.as_ref())?),
    };
    let reads = send.method == "GET" || send.keep_open;
    let limit = match send.timeout_ms {
        Some(limit) => Duration::from_millis(limit),
        None if send.method == "GET" && !send.keep_open => GET_READ_TIME,
        None => timeout,
    };
    Ok(ProbeOrder {
        method: send.method.clone(),
        target,
        headers,
        body,
        titled: send.title_case_headers,
        encoded: send.base64,
        until: match send.until {
            Until::Headers => Bound::Head,
            Until::Event => Bound::Event,
            Until::Response if !reads => Bound::Answer,
            Until::Response | Until::End => Bound::End,
        },
        limit,
        mark,
    })
}

fn filled_message(
    message: &Value,
    session: &mut Session,
    bindings: &Bindings<'_>,
    meta: Option<&Value>,
) -> Result<Value, Unfilled> {
    let message = filled(message, session, bindings)?;
    let method = message.get("method").and_then(Value::as_str);
    let is_request = method.is_some_and(|method| !method.starts_with("notifications/"));
    Ok(session.complete(&message, is_request, meta))
}

fn filled_text(filled_text: &str, session: &mut Session, bindings: &Bindings<'_>) -> Result<String, Unfilled> {
    fill_text(filled_text, &mut |placeholder: &Placeholder| bindings.value(placeholder, session))
}

fn filled(value: &Value, session: &mut Session, bindings: &Bindings<'_>) -> Result<Value, Unfilled> {
    fill(value, &mut |placeholder: &Placeholder| bindings.value(placeholder, session))
}
