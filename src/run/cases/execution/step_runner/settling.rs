//! Waits for what is still missing when the steps of an execution have been carried out.

use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use serde_json::Value;

use super::{Pipelined, Since, StepRunner};
use crate::client::WaitOutcome;
use crate::limits::{SETTLE, SETTLE_ALONE, SETTLE_CHECKED, SETTLE_LONGEST};
use crate::run::control_request::send_control_request;
use crate::transcript::{Entry, Event, messages, without_repeated};

impl StepRunner<'_, '_, '_> {
    /// Waits for the responses that are still missing after the last step.
    pub(super) async fn settle(&mut self) {
        self.open.wait_for_pipelined().await;
        // They are waited for together. Each answer shows that the server is at work, and gives the others as long again.
        let mut since = self.heard_at;
        let last_unsure = self.unsure.last().map_or(0, |(from, _)| *from);
        for Pipelined { from, id, kind, is_malformed } in std::mem::take(&mut self.pipelined) {
            let began = Instant::now();
            let already = since.elapsed();
            let answer_times = self.session.answer_times();
            let timeout = if is_malformed && from < self.last_answered && !answer_times.is_open(&kind.method) {
                self.timeout.min(answer_times.at_least(SETTLE_LONGEST))
            } else {
                self.timeout
            };
            let waited = self.session.wait_on_for_response_of_kind(&kind, from, &id, timeout, already).await;
            if matches!(waited, WaitOutcome::Ready(_)) && began.elapsed() >= SETTLE {
                since = Instant::now();
            }
            if from > last_unsure && !matches!(waited, WaitOutcome::Ready(_)) {
                self.note_since(false);
            }
        }
        // The time follows that of earlier responses: on a busy machine all take longer. A slow server may answer as late as
        // before, unless it has served what was sent later.
        if self.since == Since::Nothing && self.may_ask_whether_served() && !self.wait_for_unsure(SETTLE).await {
            // An answer to what is sent after them shows that the server has come to these, however busy it is. One that left a
            // later request unanswered has been waited for, and one more message may end it.
            let asked = Instant::now();
            let answered = send_control_request(self.session, self.timeout).await;
            self.note_since(matches!(answered, WaitOutcome::Ready(_)));
            self.slowest = self.slowest.max(asked.elapsed());
        }
        // A response that must not come may come late. One that has to come does so about when later requests are answered.
        let limit = match self.since {
            Since::Answered if !self.silence_is_expected && self.silence_is_checked => SETTLE_CHECKED,
            Since::Answered if !self.silence_is_expected => SETTLE,
            _ => SETTLE_ALONE.max(self.slowest + self.slowest / 2),
        };
        self.wait_for_unsure(limit.max(SETTLE_LONGEST.min(self.slowest * 4))).await;
        self.open.close_all();
    }

    /// Whether a request of our own may follow the messages of the case: over HTTP, whether there is a response shows by itself,
    /// and what comes before the handshake is not to be followed by anything.
    fn may_ask_whether_served(&self) -> bool {
        self.silence_is_checked || !self.session.connection.is_http() && self.session.parameters.opening.is_some()
    }

    /// Waits for the responses to messages to which there may be none, together; returns whether all arrived.
    async fn wait_for_unsure(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let connection = &mut self.session.connection;
        let in_place = connection.responds_inline();
        let mut all_arrived = true;
        for (from, id) in &self.unsure {
            let is_response = |message: &Value| {
                message.get("method").is_none()
                    && match message.get("id") {
                        // Whose response this is, only its place can tell.
                        None | Some(Value::Null) => !in_place,
                        Some(other) => id.as_ref() == Some(other),
                    }
            };
            let waited = connection
                .wait(*from, until.saturating_duration_since(Instant::now()), |entries| {
                    let mut received = entries.iter().filter_map(|entry| entry.received());
                    let has_arrived = received.any(|value| messages(value).any(is_response));
                    (has_arrived || in_place && is_over(entries)).then_some(())
                })
                .await;
            all_arrived &= matches!(waited, WaitOutcome::Ready(()));
        }
        all_arrived
    }
}

/// Whether the HTTP response to the first of these messages has ended: then nothing more follows, unless a rate limit
/// makes the client send the message again.
fn is_over(entries: &[Arc<Entry>]) -> bool {
    let Some(message) = entries.first() else { return false };
    let entries = without_repeated(entries);
    let carries = |entry: &Arc<Entry>| match &entry.event {
        Event::HttpRequest(request) if request.carries.as_ref().is_some_and(|own| Arc::ptr_eq(own, message)) => {
            Some(request.number)
        }
        _ => None,
    };
    let number = entries.iter().find_map(carries);
    number.is_some()
        && entries.iter().any(|entry| matches!(&entry.event, Event::HttpEnd(end) if Some(end.number) == number))
}
