//! Fault injection into streams: which messages they carry, and the ids and types of their events.

use hyper::body::Bytes;
use serde_json::{Value, json};

use super::injection::has;
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{
    AlwaysStreams, Broadcast, ChangesOnStream, DisconnectCancels, EventIdsRepeat, ForeignProgress,
    ListStreamWithoutResponse, ListenAsJson, Polls, PollsWithoutRetry, ProgressOnGet, ResponseOnGet, SseEventNamed,
    StreamCutData, StreamEndsEarly, StreamHeartbeat, StreamUnfinished, StreamWithoutData, StreamWithoutResponse,
    TasksGetStream,
};

/// The id of an event.
pub(super) fn event_id(stream: usize, event: usize, faults: &FaultSet) -> String {
    if has(faults, EventIdsRepeat) { event.to_string() } else { format!("{stream}-{event}") }
}

/// The type of an event that carries a message.
pub(super) fn event_type(older: bool, faults: &FaultSet) -> &'static str {
    if older && has(faults, SseEventNamed) { "mcp" } else { "message" }
}

/// Whether a single response is sent as a stream, because the client wants progress or because of a fault. A stream has the
/// status 200, so that a response that has to have another one is sent by itself.
pub(super) fn uses_stream(message: &Value, has_own_status: bool, faults: &FaultSet) -> bool {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    requests_progress(message)
        || !method.is_empty() && message.get("id").is_some() && !has_own_status && has(faults, AlwaysStreams)
        || method == "tasks/get" && has(faults, TasksGetStream)
        || loses_response(message, faults)
}

/// Whether a fault answers a message with a stream that has no response.
fn loses_response(message: &Value, faults: &FaultSet) -> bool {
    message.get("method").is_some_and(|method| method == "resources/templates/list")
        && has(faults, ListStreamWithoutResponse)
}

/// The data field of an event, after fault injection.
pub(super) fn data_field(line: &Bytes, faults: &FaultSet) -> Vec<u8> {
    let is_progress =
        (has(faults, StreamWithoutData) || has(faults, StreamCutData)) && method_of(line) == "notifications/progress";
    let name: &[u8] = if is_progress && has(faults, StreamWithoutData) { b"" } else { b"data: " };
    let length = if is_progress && has(faults, StreamCutData) { line.len() / 2 } else { line.len() };
    [name, &line[..length]].concat()
}

/// The beginning of an event that a fault leaves unfinished at the end of a stream.
pub(super) fn unfinished_event(message: &Value, faults: &FaultSet) -> Option<Bytes> {
    let starts = requests_progress(message) && has(faults, StreamUnfinished);
    let params = json!({ "level": "info", "data": "done" });
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    starts.then(|| Bytes::from(format!("data: {notification}\n")))
}

/// Whether a message is a call with a progress token.
fn requests_progress(message: &Value) -> bool {
    message.get("method").is_some_and(|method| method == "tools/call")
        && message.pointer("/params/_meta/progressToken").is_some()
}

/// The last event of a stream that a fault closes early, with or without a retry field.
pub(super) fn early_close_event(message: &Value, has_event_ids: bool, faults: &FaultSet) -> Option<&'static [u8]> {
    if !has_event_ids || !requests_progress(message) {
        return None;
    }
    if has(faults, PollsWithoutRetry) {
        return Some(b": bye\n\n");
    }
    has(faults, Polls).then_some(b"retry: 20\n\n")
}

/// Whether a subscription is answered with one JSON object.
pub(super) fn listens_as_json(message: &Value, faults: &FaultSet) -> bool {
    message.get("method").is_some_and(|method| method == "subscriptions/listen") && has(faults, ListenAsJson)
}

fn line(message: &Value) -> Bytes {
    Bytes::from(message.to_string())
}

fn method_of(line: &Bytes) -> String {
    let value: Value = serde_json::from_slice(line).unwrap_or_default();
    value.get("method").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The lines for the stream of a message, and those for other streams.
pub(super) fn distribute(
    lines: Vec<Bytes>,
    message: &Value,
    stateless: bool,
    faults: &FaultSet,
) -> (Vec<Bytes>, Vec<Bytes>) {
    let mut own = lines;
    let mut for_other_streams = Vec::new();
    if loses_response(message, faults) {
        own.pop();
    }
    if !requests_progress(message) {
        return (own, for_other_streams);
    }
    let before = own.len().saturating_sub(1);
    if has(faults, ForeignProgress) {
        let params = json!({ "progressToken": "elsewhere", "progress": 1 });
        own.insert(before, line(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })));
    }
    if has(faults, StreamHeartbeat) {
        own.insert(before, line(&json!({ "type": "heartbeat" })));
    }
    if stateless && has(faults, ChangesOnStream) {
        own.insert(before, line(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })));
    }
    let is_progress = |line: &Bytes| method_of(line) == "notifications/progress";
    if has(faults, Broadcast) {
        for_other_streams.extend(own.iter().filter(|line| is_progress(line)).cloned());
    }
    if has(faults, ProgressOnGet) {
        let (progress, rest) = own.into_iter().partition(is_progress);
        (own, for_other_streams) = (rest, progress);
    }
    // Calls with other tokens still work.
    let counted = message.pointer("/params/_meta/progressToken").is_some_and(Value::is_number);
    if counted && has(faults, StreamWithoutResponse) {
        own.pop();
    }
    if counted && has(faults, StreamEndsEarly) {
        own.truncate(own.len().saturating_sub(1).min(1));
    }
    (own, for_other_streams)
}

/// The response that a fault also sends on the GET stream.
pub(super) fn duplicate_response(response: &Bytes, message: &Value, faults: &FaultSet) -> Option<Bytes> {
    let lists = message.get("method").is_some_and(|method| method == "tools/list");
    (lists && has(faults, ResponseOnGet)).then(|| response.clone())
}

/// A message as it is sent again on resumption.
pub(super) fn replayed_message(sent: &Bytes, faults: &FaultSet) -> Bytes {
    let value: Value = serde_json::from_slice(sent).unwrap_or_default();
    if value.get("result").is_some() && has(faults, DisconnectCancels) {
        let error = json!({ "code": -32_603, "message": "the connection was lost" });
        return line(&json!({ "jsonrpc": "2.0", "id": value["id"], "error": error }));
    }
    sent.clone()
}
