//! Serialization of messages to lines, and the faults that only show there.

use serde_json::{Value, json};

use super::envelope::Outgoing;
use crate::reference::fault::{Fault, FaultSet};

/// The bytes of a message with its line ending; `first` says whether it is the first message.
pub(in crate::reference) fn line(outgoing: &Outgoing, first: bool, faults: &FaultSet) -> Vec<u8> {
    let is_active = |fault| faults.is_active(fault, outgoing.revision);
    let mut bytes = Vec::new();
    let Some(method) = outgoing.response_to.as_deref() else {
        end_line(&mut bytes, outgoing.message.to_string().into_bytes());
        return bytes;
    };
    // Errors of tools/list do not change, so that faulty requests still get a readable answer.
    let lists = method == "tools/list" && outgoing.message.get("result").is_some();
    let calls = method == "tools/call";
    if first && is_active(Fault::BannerOnStdout) {
        bytes.extend_from_slice(b"Server ready\n");
    }
    if first && is_active(Fault::ByteOrderMark) {
        bytes.extend_from_slice("\u{feff}".as_bytes());
    }
    if calls && is_active(Fault::LogOnStdout) {
        bytes.extend_from_slice(b"{\"level\":\"info\",\"msg\":\"a tool is being called\"}\n");
    }
    let wrapped = lists && is_active(Fault::BatchEmitted);
    let message = if wrapped { json!([outgoing.message]) } else { outgoing.message.clone() };
    let mut text = if lists && is_active(Fault::PrettyPrinted) {
        format!("{message:#}").into_bytes()
    } else {
        message.to_string().into_bytes()
    };
    if calls && is_active(Fault::MrtrKeyTwice) {
        text = duplicate_input_key(&text);
    }
    if calls && is_active(Fault::Latin1Output) {
        text = latin1(&text);
    }
    if faults.surroundings().has_no_locale && is_active(Fault::LocaleOutput) {
        text = String::from_utf8_lossy(&text)
            .chars()
            .map(|c| if c.is_ascii() { c } else { '?' })
            .collect::<String>()
            .into();
    }
    if lists && is_active(Fault::AnswersTwice) {
        end_line(&mut bytes, text.clone());
    }
    end_line(&mut bytes, text);
    if lists && is_active(Fault::MessageWithoutKind) {
        end_line(&mut bytes, json!({"jsonrpc": "2.0", "note": "hi"}).to_string().into_bytes());
    }
    if is_active(Fault::BlankLine) {
        bytes.push(b'\n');
    }
    if first && is_active(Fault::FirstLineUnterminated) {
        bytes.pop();
    }
    bytes
}

fn end_line(bytes: &mut Vec<u8>, text: Vec<u8>) {
    bytes.extend(text);
    bytes.push(b'\n');
}

/// Converts two-byte UTF-8 characters up to U+00FF to Latin-1.
fn latin1(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            0xc2 => bytes.extend(rest.next()),
            0xc3 => bytes.extend(rest.next().map(|low| low | 0x40)),
            other => bytes.push(other),
        }
    }
    bytes
}

/// Duplicates the key in `inputRequests`.
fn duplicate_input_key(text: &[u8]) -> Vec<u8> {
    const ONCE: &str = r#""inputRequests":{"#;
    let text = String::from_utf8_lossy(text);
    text.replacen(ONCE, &format!(r#"{ONCE}"input":{{"method":"roots/list"}},"#), 1).into_bytes()
}

/// A `tools/list` response with 100,000 nested arrays.
pub(in crate::reference) fn nested(id: &Value) -> Vec<u8> {
    const DEPTH: usize = 100_000;
    let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":"#).into_bytes();
    text.extend(std::iter::repeat_n(b'[', DEPTH));
    text.extend(std::iter::repeat_n(b']', DEPTH));
    text.extend_from_slice(b"}}\n");
    text
}

/// The prefix and suffix of a `tools/list` response with a huge description.
pub(in crate::reference) fn huge(id: &Value) -> (Vec<u8>, Vec<u8>) {
    let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"huge","description":""#);
    (begin.into_bytes(), b"\",\"inputSchema\":{\"type\":\"object\"}}]}}\n".to_vec())
}
