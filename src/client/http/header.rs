//! The headers that the protocol requires with each message, derived from the message itself.
//!
//! Source: `basic/transports/streamable-http#request-metadata` of 2026-07-28 for `Mcp-Method`, `Mcp-Name` and
//! `Mcp-Param-*`; `basic/transports#protocol-version-header` of 2025-06-18 for the version.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::limits::{MAX_MIRRORED, MAX_MIRRORED_DEPTH};
use crate::wire::method_of;

/// The parameters of each tool that are mirrored into headers: the name in the header, and the property path of
/// the value.
pub type Mirrored = BTreeMap<String, Vec<(String, Vec<String>)>>;

/// The headers of a stateless request: version, method, name, and mirrored parameters.
///
/// `initialize` gets none of them: it does not belong to the stateless era.
#[must_use]
pub fn stateless(message: &Value, fallback: &str, mirrored: &Mirrored) -> Vec<(String, String)> {
    if method_of(message) == Some("initialize")
        && message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_none()
    {
        return Vec::new();
    }
    let version = message
        .pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion")
        .and_then(Value::as_str)
        .unwrap_or(fallback);
    let mut headers = vec![("mcp-protocol-version".to_owned(), encoded(version))];
    let Some(method) = method_of(message) else { return headers };
    headers.push(("mcp-method".to_owned(), encoded(method)));
    let name = match method {
        "tools/call" | "prompts/get" => message.pointer("/params/name"),
        "resources/read" => message.pointer("/params/uri"),
        _ if method.starts_with("tasks/") => message.pointer("/params/taskId"),
        _ => None,
    };
    if let Some(name) = name.and_then(Value::as_str) {
        headers.push(("mcp-name".to_owned(), encoded(name)));
        for (header, path) in mirrored.get(name).into_iter().flatten().filter(|_| method == "tools/call") {
            let arguments = message.pointer("/params/arguments");
            let value = arguments.and_then(|all| path.iter().try_fold(all, |value, name| value.get(name)));
            if let Some(text) = value.and_then(header_text) {
                headers.push((format!("mcp-param-{}", header.to_ascii_lowercase()), encoded(&text)));
            }
        }
    }
    headers
}

/// The parameters that the tools of a `tools/list` result mirror into headers.
#[must_use]
pub fn mirrored(result: &Value) -> Mirrored {
    let tools = result.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut all = Mirrored::new();
    for tool in tools {
        let (Some(name), Some(schema)) = (tool.get("name").and_then(Value::as_str), tool.get("inputSchema")) else {
            continue;
        };
        let mut found = Vec::new();
        collect_annotated(schema, &mut Vec::new(), &mut found);
        if !found.is_empty() {
            all.insert(name.to_owned(), found);
        }
    }
    all
}

fn collect_annotated(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        if path.len() >= MAX_MIRRORED_DEPTH || found.len() >= MAX_MIRRORED {
            return;
        }
        path.push(name.clone());
        match property.get("x-mcp-header").and_then(Value::as_str) {
            Some(header) if is_token(header) => found.push((header.to_owned(), path.clone())),
            _ => {}
        }
        collect_annotated(property, path, found);
        path.pop();
    }
}

/// Whether a string may be part of a header name (RFC 9110, token).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A parameter's value as the string that is mirrored.
fn header_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A header value: unchanged if that is safe, otherwise in the Base64 sentinel.
#[must_use]
pub fn encoded(value: &str) -> String {
    let safe = value.bytes().all(|byte| matches!(byte, 0x20..=0x7e | b'\t'))
        && value.trim_matches([' ', '\t']) == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if safe { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

/// The media type of a `content-type`, without parameters, in lower case.
#[must_use]
pub fn media_type(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(value), header);
        }
    }

    #[test]
    fn a_call_mirrors_its_name_and_the_annotated_arguments() {
        let tools = json!({"tools": [{"name": "sql", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "bad": {"type": "string", "x-mcp-header": "a b"},
        }}}]});
        let message = json!({"method": "tools/call", "params": {"name": "sql",
            "arguments": {"region": "eu", "deep": {"flag": true}, "bad": "x"}}});
        let headers = stateless(&message, "2026-07-28", &mirrored(&tools));
        let pairs: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "sql"),
                ("mcp-param-region", "eu"),
                ("mcp-param-flag", "true"),
            ]
        );
    }

    #[test]
    fn a_value_that_is_absent_is_not_mirrored() {
        let tools = json!({"tools": [{"name": "sql", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}}}}]});
        let message = json!({"method": "tools/call", "params": {"name": "sql", "arguments": {"region": null}}});
        assert_eq!(stateless(&message, "2026-07-28", &mirrored(&tools)).len(), 3);
    }
}
