//! The rules of passive cases about what calls of tools bring, checked in the results of generated calls and in the
//! messages of the server meanwhile.

use std::iter::{once, repeat};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::exchange::FuzzExchange;
use super::violation::OracleViolation;
use crate::case::{Body, Case, Oracle};
use crate::check::index::{IndexedConnections, RecordedConnection};
use crate::check::passive::judge_passive;
use crate::spec::{Catalogue, Revision};
use crate::transcript::{Entry, Event, SessionParameters, Transcript};
use crate::verdict::Finding;
use crate::wire::{Frame, member};

/// The largest request whose result is judged, in bytes: a result may repeat it, and each rule reads all of it.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// The passive cases about what calls of tools bring, in one revision.
#[derive(Debug)]
pub(crate) struct ResultRules {
    cases: Vec<Arc<Case>>,
    revision: Revision,
    session_parameters: SessionParameters,
}

impl ResultRules {
    /// The rules of these cases, for sessions that were opened like this one.
    #[must_use]
    pub(crate) fn new(cases: Vec<Arc<Case>>, revision: Revision, session_parameters: SessionParameters) -> Self {
        Self { cases, revision, session_parameters }
    }

    /// The violations by the result of a call and by the messages before it, at most one of each case.
    #[must_use]
    pub(crate) fn judge(&self, exchange: &FuzzExchange) -> Vec<OracleViolation> {
        let Some(connection) = self.connection(exchange) else { return Vec::new() };
        let connections = [connection];
        let index = IndexedConnections::new(&connections, self.revision);
        let violation = |case: &Arc<Case>| {
            let Body::Passive(passive) = &case.body else { return None };
            let judged = judge_passive(case, passive, self.revision, &index);
            judged.findings.into_iter().next().map(|finding| violation_of(case, finding))
        };
        self.cases.iter().filter_map(violation).collect()
    }

    /// A connection with the call and what it brought alone; `None` if nothing of it could be judged.
    fn connection(&self, exchange: &FuzzExchange) -> Option<RecordedConnection> {
        let received: Vec<&Value> = exchange.other.messages.iter().chain(judged_response(exchange)).collect();
        if received.is_empty() || exchange.line.len() > MAX_REQUEST_BYTES {
            return None;
        }
        let sent = Event::Sent { frame: Frame::parse(&exchange.line), step_id: None };
        let received = received.into_iter().map(|message| Event::Received(Frame::from_value(message)));
        let times = once(Duration::ZERO).chain(repeat(exchange.duration));
        let entries = times.zip(once(sent).chain(received)).map(|(at, event)| Arc::new(Entry { at, event })).collect();
        let session_parameters = self.session_parameters.clone();
        Some(RecordedConnection { label: "fuzzing".to_owned(), transcript: Transcript { entries, session_parameters } })
    }
}

/// The response with a result that the rules are about.
fn judged_response(exchange: &FuzzExchange) -> Option<&Value> {
    let response = exchange.responses.first()?;
    let is_judged =
        !exchange.call.is_unparsable() && member(response, "unread").is_none() && member(response, "result").is_some();
    is_judged.then_some(response)
}

/// The violation that a finding of a passive case stands for.
fn violation_of(case: &Case, finding: Finding) -> OracleViolation {
    let requirement = Catalogue::embedded().get(&finding.requirement).map(|requirement| requirement.id.as_str());
    OracleViolation {
        requirement,
        expected: finding.expected,
        value: finding.value,
        fix: Some(finding.fix),
        ..OracleViolation::new(Oracle::ResultRules, finding.verdict, finding.message)
            .actual(finding.actual)
            .signature(case.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case::load;
    use crate::check::fuzz::OtherOutput;
    use crate::verdict::Verdict;

    const REVISION: Revision = Revision::V2025_11_25;

    /// The violations by the result of a call with a text, with all rules about calls.
    fn broken_by(result: &Value) -> Vec<OracleViolation> {
        broken_by_messages(Vec::new(), json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
    }

    /// The violations by these requests and notifications during a call, or by its response, with all rules about calls.
    fn broken_by_messages(messages: Vec<Value>, response: Value) -> Vec<OracleViolation> {
        let cases = load(None, &[]).expect("they are sound");
        let rules = cases.into_iter().filter(|case| case.is_about_calls() && case.runs_in(REVISION));
        let opening = json!({ "protocolVersion": REVISION.as_str(), "capabilities": { "tools": {}, "logging": {} } });
        let session_parameters = SessionParameters {
            client_capabilities: json!({ "elicitation": {} }),
            opening: Some(opening),
            ..SessionParameters::default()
        };
        let exchange = FuzzExchange {
            other: OtherOutput { noise: Vec::new(), messages },
            ..FuzzExchange::answered(json!({ "text": "a" }), vec![response])
        };
        ResultRules::new(rules.map(Arc::new).collect(), REVISION, session_parameters).judge(&exchange)
    }

    #[test]
    fn a_result_is_judged_by_the_rules_of_passive_cases() {
        let result = |item: Value| json!({ "content": [item] });
        assert_eq!(broken_by(&result(json!({ "type": "text", "text": "a" }))), []);
        let image = |data: &str| result(json!({ "type": "image", "data": data, "mimeType": "image/png" }));
        assert_eq!(broken_by(&image("iVBORw0KGgo=")), []);
        let broken = broken_by(&image("no base64"));
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert_eq!((broken[0].oracle, broken[0].verdict), (Oracle::ResultRules, Verdict::Fail));
        assert_eq!(
            (broken[0].requirement, broken[0].signature.as_str()),
            (Some("content-image"), "content/image-base64")
        );
        assert!(broken[0].fix.as_ref().is_some_and(|fix| fix.contains("base64")), "{broken:?}");
    }

    #[test]
    fn the_messages_of_the_server_during_a_call_are_judged_too() {
        let error = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "no" } });
        let log = |level: &str| {
            let params = json!({ "level": level, "data": "a" });
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
        };
        assert_eq!(broken_by_messages(vec![log("warning")], error.clone()), []);
        let broken = broken_by_messages(vec![log("warning"), log("warn")], error.clone());
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert_eq!(broken[0].signature.as_str(), "logging/shape");
        let form = |properties: Value| {
            let schema = json!({ "type": "object", "properties": properties });
            let params = json!({ "message": "a", "requestedSchema": schema });
            json!({ "jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": params })
        };
        assert_eq!(broken_by_messages(vec![form(json!({ "a": { "type": "string" } }))], error.clone()), []);
        let broken = broken_by_messages(vec![form(json!({ "a": { "type": "object" } }))], error);
        assert!(broken.iter().any(|violation| violation.signature == "elicitation/form-schema"), "{broken:?}");
    }

    #[test]
    fn text_that_a_result_passes_on_is_not_judged() {
        assert_eq!(broken_by(&json!({ "content": [{ "type": "text", "text": "\u{1b}[31m" }] })), []);
    }
}
