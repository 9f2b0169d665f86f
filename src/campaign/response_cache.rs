//! Recognizes responses that were seen before, so that they need not be parsed and judged again.
//!
//! A server has few distinct responses. A response is recognized by its bytes apart from its id. That is sufficient
//! for what depends on these bytes alone. Where the arguments matter as well, as for an echo, or where the response
//! violates something, it is processed like a new one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::{Call, FuzzedTool, ValidityClass, classify_response, has_no_violation, repeats_arguments};
use crate::event::CallOutcome;
use crate::wire::MessageKind;

/// The maximum number of cached responses, and their maximum size.
const MAX_RESPONSES: usize = 16;
const MAX_RESPONSE_BYTES: usize = 4 << 10;
/// The number of responses remembered as seen once.
const SEEN_ONCE_SLOTS: usize = 64;
/// The maximum number of digits of an id.
const MAX_ID_DIGITS: usize = 18;

/// What is known about a response.
#[derive(Debug)]
pub(super) struct KnownResponse {
    /// The response, under its original id.
    pub(super) message: Value,
    pub(super) outcome: CallOutcome,
    /// Its class, as computed by [`response_class`](crate::check::fuzz::response_class).
    pub(super) class: String,
    /// The text from which the client's own strings are removed to compute the class.
    text: Option<String>,
}

/// A cached response, identified by its bytes.
struct CachedResponse {
    before_id: Vec<u8>,
    after_id: Vec<u8>,
    id: i64,
    known: Arc<KnownResponse>,
    /// Whether it is valid for each [`ValidityClass`], as far as that was evaluated.
    is_acceptable: [Option<bool>; ValidityClass::COUNT],
    /// How often it was recognized recently.
    hits: u32,
}

/// The cached responses of one tool.
pub(super) struct ResponseCache<'a> {
    fuzzed_tool: &'a FuzzedTool,
    responses: Vec<CachedResponse>,
    /// Hashes of responses seen once: a response that does not recur is not worth caching.
    seen_once: [u64; SEEN_ONCE_SLOTS],
}

impl<'a> ResponseCache<'a> {
    pub(super) fn of(fuzzed_tool: &'a FuzzedTool) -> Self {
        Self { fuzzed_tool, responses: Vec::new(), seen_once: [0; SEEN_ONCE_SLOTS] }
    }

    /// The tool whose responses these are.
    pub(super) fn fuzzed_tool(&self) -> &'a FuzzedTool {
        self.fuzzed_tool
    }

    /// The index of the cached response that equals a line, and the id in that line.
    pub(super) fn find(&mut self, line: &[u8]) -> Option<(usize, i64)> {
        self.responses.iter_mut().enumerate().find_map(|(at, response)| {
            let rest = line.strip_prefix(response.before_id.as_slice())?;
            let digits = rest.strip_suffix(response.after_id.as_slice())?;
            let id = parse_id(digits)?;
            response.hits = response.hits.saturating_add(1);
            Some((at, id))
        })
    }

    /// A cached response, if it needs no further judgement as the response to this call.
    pub(super) fn lookup(&mut self, at: usize, call: &Call) -> Option<&Arc<KnownResponse>> {
        let class = ValidityClass::of(&call.validity)?;
        let response = &mut self.responses[at];
        let fuzzed_tool = self.fuzzed_tool;
        let is_acceptable = *response.is_acceptable[class as usize]
            .get_or_insert_with(|| has_no_violation(fuzzed_tool, &response.known.message, response.id, class));
        let is_all =
            is_acceptable && response.known.text.as_ref().is_none_or(|text| !repeats_arguments(text, &call.arguments));
        is_all.then_some(&response.known)
    }

    /// Caches a response when it is seen for the second time.
    pub(super) fn learn(&mut self, line: &[u8], message: &Value) {
        if line.len() > MAX_RESPONSE_BYTES || !matches!(MessageKind::of(message), MessageKind::Response { .. }) {
            return;
        }
        let Some(id) = message.get("id").and_then(Value::as_i64).filter(|id| *id > 0) else { return };
        let Some((before, after)) = split_at_id(line, id) else { return };
        let hash = {
            let mut hasher = DefaultHasher::new();
            (before, after).hash(&mut hasher);
            hasher.finish()
        };
        let place = &mut self.seen_once[usize::try_from(hash % SEEN_ONCE_SLOTS as u64).unwrap_or(0)];
        if *place != hash {
            *place = hash;
            return;
        }
        if self.responses.iter().any(|known| known.before_id == before && known.after_id == after) {
            return;
        }
        if !is_id_position(before, after, message, id) {
            return;
        }
        let (outcome, class, text) = classify_response(message);
        if outcome == CallOutcome::Malformed {
            return;
        }
        let response = CachedResponse {
            before_id: before.to_vec(),
            after_id: after.to_vec(),
            id,
            known: Arc::new(KnownResponse { message: message.clone(), outcome, class, text }),
            is_acceptable: [None; ValidityClass::COUNT],
            hits: 0,
        };
        if self.responses.len() < MAX_RESPONSES {
            self.responses.push(response);
        } else if let Some(rarest) = self.responses.iter_mut().min_by_key(|known| known.hits) {
            *rarest = response;
            self.responses.iter_mut().for_each(|known| known.hits /= 2);
        }
    }
}

/// The bytes before and after the first occurrence of the id.
fn split_at_id(line: &[u8], id: i64) -> Option<(&[u8], &[u8])> {
    const KEY: &[u8] = b"\"id\":";
    let at = memchr::memmem::find(line, KEY)? + KEY.len();
    let at = at + line[at..].iter().take_while(|byte| **byte == b' ').count();
    let after = line[at..].strip_prefix(id.to_string().as_bytes())?;
    Some((&line[..at], after))
}

/// Whether replacing these bytes changes only the id of the message: the same number can also occur in a nested
/// member or in a string.
fn is_id_position(before: &[u8], after: &[u8], message: &Value, id: i64) -> bool {
    let other = id + 1;
    let line = [before, other.to_string().as_bytes(), after].concat();
    let mut expected = message.clone();
    expected["id"] = other.into();
    serde_json::from_slice::<Value>(&line).is_ok_and(|read| read == expected)
}

/// Parses a positive integer as JSON writes it.
fn parse_id(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > MAX_ID_DIGITS || digits[0] == b'0' {
        return None;
    }
    digits
        .iter()
        .try_fold(0_i64, |parse_id, byte| byte.is_ascii_digit().then(|| parse_id * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::fuzz::{Arguments, Validity};
    use crate::spec::Revision;
    use crate::verdict::CallKind;
    use serde_json::json;

    fn call(validity: Validity, arguments: Value) -> Call {
        Call { kind: CallKind::Valid, validity, arguments: Arguments::Json(arguments), choices: None }
    }

    fn pooled(cache: &mut ResponseCache<'_>, line: &str) {
        let message = serde_json::from_str(line).expect("it is JSON");
        cache.learn(line.as_bytes(), &message);
        cache.learn(line.as_bytes(), &message);
    }

    #[test]
    fn a_cached_response_is_recognized_with_any_other_id() {
        let fuzzed_tool = FuzzedTool::new(&json!({"name": "t"}), Revision::V2025_11_25, Vec::new());
        let mut cache = ResponseCache::of(&fuzzed_tool);
        let line =
            r#"{"jsonrpc":"2.0","id": 12,"result":{"content":[{"type":"text","text":"no Ulm"}],"isError":true}}"#;
        pooled(&mut cache, line);
        assert_eq!(cache.find(line.replace("12", "345").as_bytes()), Some((0, 345)));
        for other in ["012", "1e2", "\\\"12\\\"", "-12", "", "12.0"] {
            assert_eq!(cache.find(line.replace("12", other).as_bytes()), None, "{other}");
        }
        assert_eq!(cache.find(line.replace("Ulm", "Bonn").as_bytes()), None);
        assert!(cache.lookup(0, &call(Validity::Valid, json!({"city": "Bern"}))).is_some());
        // The string comes from the call, so it is removed before the class is computed.
        assert!(cache.lookup(0, &call(Validity::Valid, json!({"city": "Ulm"}))).is_none());
    }

    #[test]
    fn invalid_responses_and_nested_ids_are_not_recognized() {
        let fuzzed_tool = FuzzedTool::new(&json!({"name": "t"}), Revision::V2025_11_25, Vec::new());
        let mut cache = ResponseCache::of(&fuzzed_tool);
        pooled(&mut cache, r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"oops"}}"#);
        assert!(cache.lookup(0, &call(Validity::Valid, json!({}))).is_none());
        let mut cache = ResponseCache::of(&fuzzed_tool);
        pooled(&mut cache, r#"{"result":{"content":[],"structuredContent":{"id":5}},"id":5}"#);
        assert!(cache.responses.is_empty());
        let mut seen_once = ResponseCache::of(&fuzzed_tool);
        seen_once.learn(br#"{"id":5,"result":{}}"#, &json!({"id": 5, "result": {}}));
        assert!(seen_once.responses.is_empty());
    }
}
