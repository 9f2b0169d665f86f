//! The rules of passive cases about results of `tools/call`, checked in the results of generated calls.

use std::sync::Arc;

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

/// The passive cases about results of `tools/call`, in one revision.
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

    /// The violations by the result of a call, at most one of each case.
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

    /// A connection with the call and its result alone; `None` if there is no result that could be judged.
    fn connection(&self, exchange: &FuzzExchange) -> Option<RecordedConnection> {
        let response = judged_response(exchange)?;
        let sent = Event::Sent { frame: Frame::parse(&exchange.line), step_id: None };
        let received = Event::Received(Frame::from_value(response));
        let times = [std::time::Duration::ZERO, exchange.duration];
        let entries =
            times.into_iter().zip([sent, received]).map(|(at, event)| Arc::new(Entry { at, event })).collect();
        let session_parameters = self.session_parameters.clone();
        Some(RecordedConnection { label: "fuzzing".to_owned(), transcript: Transcript { entries, session_parameters } })
    }
}

/// The response with a result that the rules are about.
fn judged_response(exchange: &FuzzExchange) -> Option<&Value> {
    let response = exchange.responses.first()?;
    let is_judged = !exchange.call.is_unparsable()
        && exchange.line.len() <= MAX_REQUEST_BYTES
        && member(response, "unread").is_none()
        && member(response, "result").is_some();
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
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::case::load;
    use crate::check::fuzz::{Arguments, Call, ExchangeOutcome, Validity};
    use crate::verdict::{CallKind, Verdict};

    const REVISION: Revision = Revision::V2025_11_25;

    /// The violations by the result of a call with a text, with all rules about results.
    fn broken_by(result: &Value) -> Vec<OracleViolation> {
        let cases = load(None, &[]).expect("they are sound");
        let rules = cases.into_iter().filter(|case| case.is_about_call_results() && case.runs_in(REVISION));
        let opening = json!({ "protocolVersion": REVISION.as_str(), "capabilities": { "tools": {} } });
        let session_parameters = SessionParameters { opening: Some(opening), ..SessionParameters::default() };
        let arguments = json!({ "text": "a" });
        let params = json!({ "name": "echo", "arguments": arguments });
        let call = Call {
            kind: CallKind::Valid,
            validity: Validity::Valid,
            arguments: Arguments::Json(arguments),
            choices: None,
        };
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let exchange = FuzzExchange {
            call: Arc::new(call),
            line: request.to_string().into_bytes().into(),
            id: 1,
            responses: vec![json!({ "jsonrpc": "2.0", "id": 1, "result": result })],
            noise: Vec::new(),
            outcome: ExchangeOutcome::Answered,
            duration: Duration::ZERO,
            alone: true,
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
    fn text_that_a_result_passes_on_is_not_judged() {
        assert_eq!(broken_by(&json!({ "content": [{ "type": "text", "text": "\u{1b}[31m" }] })), []);
    }
}
