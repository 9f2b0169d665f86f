//! What the client says about itself: its capabilities, its name, and the `_meta` of stateless requests.

use serde_json::{Value, json};

use crate::spec::Revision;

/// The capabilities that the client declares unless a case says otherwise.
pub(crate) fn full_capabilities(revision: Revision) -> Value {
    let roots = json!({ "listChanged": true });
    match revision {
        Revision::V2026_07_28 => {
            json!({ "roots": {}, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } })
        }
        Revision::V2025_11_25 => {
            json!({ "roots": roots, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } })
        }
        Revision::V2025_06_18 => json!({ "roots": roots, "sampling": {}, "elicitation": {} }),
        _ => json!({ "roots": roots, "sampling": {} }),
    }
}

fn client_info() -> Value {
    json!({ "name": "mcp-conformance", "version": env!("CARGO_PKG_VERSION") })
}

/// The `_meta` of a stateless request.
pub(crate) fn stateless_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.as_str(),
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The params of `initialize`.
pub(crate) fn initialize_params(revision: &str, capabilities: &Value) -> Value {
    json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client_info() })
}
