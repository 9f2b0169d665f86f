//! What a client answers when the server asks it something, as a real client does.

use serde_json::{Value, json};

/// Answers the server's requests: `ping` always, the rest only as far as it was declared.
///
/// Roots are an empty list, so that no server is granted a folder; sampling yields one line of text;
/// elicitation is declined. Anything else is answered as an unknown method.
#[derive(Debug, Clone, Default)]
pub struct Responder {
    capabilities: Value,
}

impl Responder {
    /// A responder of a client that declared these capabilities.
    #[must_use]
    pub fn new(capabilities: Value) -> Self {
        Self { capabilities }
    }

    /// The answer to a request of the server.
    #[must_use]
    pub fn answer(&self, id: &Value, method: &str) -> Value {
        let declared = |name: &str| self.capabilities.get(name).is_some();
        let result = match method {
            "ping" => Some(json!({})),
            "roots/list" if declared("roots") => Some(json!({ "roots": [] })),
            "sampling/createMessage" if declared("sampling") => Some(json!({
                "role": "assistant",
                "content": { "type": "text", "text": "A short answer." },
                "model": "mcp-conformance",
                "stopReason": "endTurn",
            })),
            "elicitation/create" if declared("elicitation") => Some(json!({ "action": "decline" })),
            _ => None,
        };
        match result {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": { "code": -32601, "message": "the client does not offer this method" },
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_declared_is_answered() {
        let responder = Responder::new(json!({ "roots": {} }));
        assert_eq!(responder.answer(&json!(1), "roots/list")["result"]["roots"], json!([]));
        assert_eq!(responder.answer(&json!(1), "sampling/createMessage")["error"]["code"], -32601);
        assert_eq!(responder.answer(&json!("a"), "ping")["id"], "a");
    }
}
