//! How a server answers in one revision: the requests that it leaves unanswered, and its slowest answer.
//!
//! All sessions of a revision share it, so that silence is waited for once and not by each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::limits::{MAX_MESSAGES_AHEAD, MAX_TIMEOUTS_OF_SLOW_SERVER, MIN_REPEATED_WAIT, SLOWEST_ANSWER_FACTOR};
use crate::spec::Revision;
use crate::transcript::{Entry, Event, Exchange, StepId, Transcript};

/// What is known about the server's answers in each revision.
#[derive(Debug, Default)]
pub(crate) struct RevisionAnswerTimes(Mutex<BTreeMap<Revision, Arc<AnswerTimes>>>);

impl RevisionAnswerTimes {
    /// How long the sessions of all revisions waited for responses.
    pub(super) fn response_waits(&self) -> ResponseWaits {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = ResponseWaits::default();
        for known in times.values() {
            let waits = known.0.lock().unwrap_or_else(PoisonError::into_inner).waits;
            all.answered += waits.answered;
            all.for_answers += waits.for_answers;
            all.unanswered += waits.unanswered;
            all.in_vain += waits.in_vain;
        }
        all
    }

    /// What the sessions of a revision know.
    pub(crate) fn of(&self, revision: Revision) -> Arc<AnswerTimes> {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(times.entry(revision).or_default())
    }
}

/// The waits for responses: their number and time, of those that came and of those that did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ResponseWaits {
    pub(super) answered: usize,
    pub(super) for_answers: Duration,
    pub(super) unanswered: usize,
    pub(super) in_vain: Duration,
}

/// What the sessions of one revision know about the server's answers.
#[derive(Debug, Default)]
pub(crate) struct AnswerTimes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The kinds of requests of which one went unanswered for the full time and none was answered since.
    unanswered: BTreeSet<RequestKind>,
    slowest: Duration,
    fastest: Option<Duration>,
    /// The methods of which a request was answered, if by an error.
    answered_methods: BTreeSet<String>,
    /// The methods of which a valid request went unanswered.
    unanswered_methods: BTreeSet<String>,
    waits: ResponseWaits,
}

impl Known {
    /// Whether no request of a method was answered, though a valid one was waited for.
    fn is_silent(&self, method: &str) -> bool {
        self.unanswered_methods.contains(method) && !self.answered_methods.contains(method)
    }

    /// Whether a request of this kind, or each of its method, went unanswered.
    fn leaves_unanswered(&self, kind: &RequestKind) -> bool {
        self.unanswered.contains(kind) || self.is_silent(&kind.method)
    }
}

/// The kind of a request: what is known about one that went unanswered applies to all of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestKind {
    pub(crate) method: String,
    /// What its requests have in common besides the method.
    pub(crate) common: String,
}

impl RequestKind {
    /// The kind of the first request of a session.
    pub(crate) fn opening(method: &str) -> Self {
        Self { method: method.to_owned(), common: "opening".to_owned() }
    }
}

impl AnswerTimes {
    /// Records which requests of a transcript were answered, and which were waited for in vain. `is_valid` says whether a
    /// request made for a step, or for none, is one that a server has to serve.
    pub(crate) fn record_exchanges(&self, record: &Transcript, is_valid: impl Fn(Option<StepId>) -> bool) {
        let rejected: BTreeSet<usize> = record
            .http_exchanges_of(|step_id| step_id.is_none())
            .iter()
            .filter(|http| http.value.get("status").and_then(Value::as_u64).is_some_and(|status| status >= 400))
            .map(|http| http.sent)
            .collect();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for exchange in record.exchanges() {
            let Some(method) = exchange.request.get("method").and_then(Value::as_str) else { continue };
            let step_id = match &record.entries[exchange.sent].event {
                Event::Sent { step_id, .. } => *step_id,
                _ => None,
            };
            if !exchange.responses.is_empty() || rejected.contains(&exchange.sent) {
                known.answered_methods.insert(method.to_owned());
            } else if is_valid(step_id) && is_given_up(record, &exchange) {
                known.unanswered_methods.insert(method.to_owned());
            }
        }
    }

    /// The methods of which no request was answered, though a valid one was waited for.
    pub(crate) fn silent_methods(&self) -> BTreeSet<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.unanswered_methods.iter().filter(|method| known.is_silent(method)).cloned().collect()
    }

    /// Whether it is not known yet if requests of a method are answered: none was, and no valid one was waited for.
    pub(crate) fn is_open(&self, method: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !known.answered_methods.contains(method) && !known.unanswered_methods.contains(method)
    }

    /// How long to wait for the response to a request of a kind where `limit` is usual.
    pub(crate) fn limit(&self, kind: &RequestKind, limit: Duration) -> Duration {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.leaves_unanswered(kind) {
            return limit;
        }
        MIN_REPEATED_WAIT.max(known.slowest * SLOWEST_ANSWER_FACTOR).min(limit)
    }

    /// Whether requests of a kind are known to go unanswered.
    pub(crate) fn are_unanswered(&self, kind: &RequestKind) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).leaves_unanswered(kind)
    }

    /// How long to wait at least for a response of this server where `usual` is enough for others.
    pub(crate) fn at_least(&self, usual: Duration) -> Duration {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usual.max(known.slowest * SLOWEST_ANSWER_FACTOR)
    }

    /// How long to wait at least for a message that may follow another one, where `usual` is enough for others: as long as
    /// the fastest answer of this server took.
    pub(crate) fn at_least_fastest(&self, usual: Duration) -> Duration {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usual.max(known.fastest.unwrap_or_default())
    }

    /// How long a response of this server is waited for where `timeout` is enough for others: twice the time of its slowest
    /// answer, or of one that took as long as `opening`, but at most some timeouts.
    pub(crate) fn extended(&self, timeout: Duration, opening: Duration) -> Duration {
        let limit = self.at_least(timeout).max(opening * SLOWEST_ANSWER_FACTOR);
        limit.min(timeout * MAX_TIMEOUTS_OF_SLOW_SERVER)
    }

    /// Records that a request was answered, after this time.
    pub(crate) fn record_answer(&self, duration: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.slowest = known.slowest.max(duration);
        known.fastest = Some(known.fastest.map_or(duration, |fastest| fastest.min(duration)));
    }

    /// Records that a request was answered that other requests may have made faster or slower, at least after this time.
    pub(crate) fn record_slow_answer(&self, duration: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.slowest = known.slowest.max(duration);
    }

    /// Records how long a response was waited for, and whether it came.
    pub(crate) fn record_wait(&self, duration: Duration, answered: bool) {
        let waits = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).waits;
        let (count, time) = if answered {
            (&mut waits.answered, &mut waits.for_answers)
        } else {
            (&mut waits.unanswered, &mut waits.in_vain)
        };
        *count += 1;
        *time += duration;
    }

    /// How long a server that serves one message at a time may take for this many before it serves the next.
    pub(crate) fn time_of_messages(&self, count: usize) -> Duration {
        let count = u32::try_from(count.min(MAX_MESSAGES_AHEAD)).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fastest.unwrap_or_default() * count
    }

    /// Records whether a request of a kind was answered; returns whether its silence was known before.
    pub(crate) fn record(&self, kind: &RequestKind, answered: bool) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answered {
            known.unanswered.remove(kind)
        } else {
            !known.unanswered.insert(kind.clone()) || known.is_silent(&kind.method)
        }
    }
}

/// Whether the client stopped waiting for the response to a request while the connection was open.
fn is_given_up(record: &Transcript, exchange: &Exchange<'_>) -> bool {
    let later = || record.entries.iter().skip(exchange.sent);
    let cancels = |entry: &Entry| {
        let message = entry.sent().filter(|message| message["method"] == "notifications/cancelled");
        let id = message.and_then(|message| message.pointer("/params/requestId"));
        id.is_some() && id == exchange.request.get("id")
    };
    !later().any(|entry| matches!(entry.event, Event::Closed | Event::Exited { .. } | Event::Overflow))
        && later().any(|entry| matches!(entry.event, Event::TimedOut { .. }) || cancels(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_goes_unanswered_is_waited_for_once_in_full() {
        let (times, full) = (AnswerTimes::default(), Duration::from_secs(5));
        let kind = |common: &str| RequestKind { method: "ping".to_owned(), common: common.to_owned() };
        let (a, b) = (&kind("a"), &kind("b"));
        assert_eq!(times.limit(a, full), full);
        assert!(!times.record(a, false) && times.record(a, false));
        assert_eq!((times.limit(a, full), times.limit(b, full)), (MIN_REPEATED_WAIT, full));
        times.record_answer(Duration::from_secs(1));
        times.record_answer(Duration::from_millis(1));
        assert_eq!(times.limit(a, full), Duration::from_secs(2));
        times.record_answer(Duration::from_secs(9));
        assert_eq!(times.limit(a, full), full);
        times.record(a, true);
        assert_eq!(times.limit(a, Duration::from_secs(60)), Duration::from_secs(60));
    }

    #[test]
    fn a_server_that_is_slower_than_the_timeout_gets_more_time_up_to_some_timeouts() {
        let (times, second) = (AnswerTimes::default(), Duration::from_secs(1));
        let none = Duration::ZERO;
        assert_eq!(times.extended(second * 5, none), second * 5);
        assert_eq!(times.extended(second * 5, second * 4), second * 8);
        assert_eq!(times.extended(second * 5, second * 25), second * 20, "a process may start slowly");
        for (slowest, extended) in [(1, 5), (2, 5), (3, 6), (5, 10), (30, 20)] {
            times.record_answer(second * slowest);
            assert_eq!(times.extended(second * 5, none), second * extended, "{slowest}");
        }
    }

    #[test]
    fn the_sessions_of_a_revision_share_what_they_know() {
        let (times, kind) = (RevisionAnswerTimes::default(), RequestKind::opening("initialize"));
        times.of(Revision::V2025_06_18).record(&kind, false);
        assert!(times.of(Revision::V2025_06_18).are_unanswered(&kind));
        assert!(!times.of(Revision::V2025_11_25).are_unanswered(&kind));
    }

    #[test]
    fn waits_are_added_up_over_all_revisions() {
        let (times, second) = (RevisionAnswerTimes::default(), Duration::from_secs(1));
        times.of(Revision::V2025_06_18).record_wait(second, true);
        times.of(Revision::V2025_11_25).record_wait(second * 2, true);
        times.of(Revision::V2025_11_25).record_wait(second * 5, false);
        let expected = ResponseWaits { answered: 2, for_answers: second * 3, unanswered: 1, in_vain: second * 5 };
        assert_eq!(times.response_waits(), expected);
    }

    #[test]
    fn each_message_ahead_takes_as_long_as_the_fastest_answer() {
        let times = AnswerTimes::default();
        assert_eq!(times.time_of_messages(3), Duration::ZERO);
        times.record_answer(Duration::from_secs(8));
        times.record_answer(Duration::from_secs(2));
        assert_eq!(times.time_of_messages(0), Duration::ZERO);
        assert_eq!(times.time_of_messages(3), Duration::from_secs(6));
        assert_eq!(times.time_of_messages(1_000), times.time_of_messages(MAX_MESSAGES_AHEAD));
    }
}
