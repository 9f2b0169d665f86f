//! Carries out the steps of a case that make HTTP requests of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::bindings::{Bindings, Unfilled};
use super::session::Session;
use crate::case::{HttpCall, Placeholder, Until, fill, fill_text};
use crate::client::{Bound, Probe, ProbeOrder};
use crate::transcript::Mark;

/// How long the answer to a GET is read, which a server may keep open for ever.
const GLANCE: Duration = Duration::from_millis(300);

/// The answers that are read while later steps go on, by the position of their steps.
#[derive(Debug, Default)]
pub(super) struct Open(BTreeMap<usize, Probe>);

impl Open {
    /// Makes the request of a step; the exchange. Its answer is waited for, unless it stays open.
    pub(super) async fn call(
        &mut self,
        call: &HttpCall,
        meta: Option<&Value>,
        session: &mut Session,
        bindings: &Bindings<'_>,
        mark: Mark,
        patience: Duration,
    ) -> Result<Value, Unfilled> {
        let order = order(call, meta, session, bindings, mark, patience)?;
        let mut probe = session.connection.probe(&order).map_err(|error| Unfilled(error.to_string()))?;
        if call.keep_open {
            probe.begun(patience, GLANCE).await;
        } else {
            probe.done().await;
        }
        let value = probe.value();
        if call.keep_open {
            self.0.insert(mark.step, probe);
        }
        Ok(value)
    }

    /// Closes the answer to a step.
    pub(super) fn close(&mut self, step: usize) {
        if let Some(probe) = self.0.remove(&step) {
            probe.close();
        }
    }

    /// Closes all that is still open.
    pub(super) fn close_all(&mut self) {
        std::mem::take(&mut self.0).into_values().for_each(Probe::close);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close_all();
    }
}

/// What to send for a step.
fn order(
    call: &HttpCall,
    meta: Option<&Value>,
    session: &mut Session,
    bindings: &Bindings<'_>,
    mark: Mark,
    patience: Duration,
) -> Result<ProbeOrder, Unfilled> {
    let target = call.path.as_deref().map(|path| text(path, session, bindings)).transpose()?;
    let mut headers = Vec::new();
    for (name, values) in call.replaced() {
        let values = values.into_iter().map(|value| text(value, session, bindings)).collect::<Result<_, _>>()?;
        headers.push((name.to_owned(), values));
    }
    let meta = meta.map(|meta| filled(meta, session, bindings)).transpose()?;
    let body = match &call.body {
        None => None,
        Some(Value::String(body)) => Some(Value::String(text(body, session, bindings)?)),
        Some(Value::Array(batch)) => {
            let whole = batch.iter().map(|message| message_of(message, session, bindings, meta.as_ref()));
            Some(Value::Array(whole.collect::<Result<_, _>>()?))
        }
        Some(message) => Some(message_of(message, session, bindings, meta.as_ref())?),
    };
    let reads = call.method == "GET" || call.keep_open;
    let limit = match call.timeout_ms {
        Some(limit) => Duration::from_millis(limit),
        None if call.method == "GET" && !call.keep_open => GLANCE,
        None => patience,
    };
    Ok(ProbeOrder {
        method: call.method.clone(),
        target,
        headers,
        body,
        titled: call.title_case_headers,
        encoded: call.base64,
        until: match call.until {
            Until::Headers => Bound::Head,
            Until::Event => Bound::Event,
            Until::Response if !reads => Bound::Answer,
            Until::Response | Until::End => Bound::End,
        },
        limit,
        mark,
    })
}

fn message_of(
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

fn text(text: &str, session: &mut Session, bindings: &Bindings<'_>) -> Result<String, Unfilled> {
    fill_text(text, &mut |placeholder: &Placeholder| bindings.value(placeholder, session))
}

fn filled(value: &Value, session: &mut Session, bindings: &Bindings<'_>) -> Result<Value, Unfilled> {
    fill(value, &mut |placeholder: &Placeholder| bindings.value(placeholder, session))
}
