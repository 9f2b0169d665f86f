//! Answers the server's requests, limited to what the client declared.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

/// Computes the result or error for a request of the server, from its method and params; none leaves it unanswered.
pub(crate) type RequestHandler = Arc<dyn Fn(&str, Option<&Value>) -> Option<Result<Value, Value>> + Send + Sync>;

/// Answers the server's requests: `ping` always, other methods only if their capability was declared.
///
/// The caller provides the results; a request for an undeclared capability is answered as an unknown method.
#[derive(Clone)]
pub(crate) struct Responder {
    capabilities: Value,
    answer: RequestHandler,
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

impl Responder {
    /// A responder for a client that declared these capabilities.
    #[must_use]
    pub(crate) fn new(capabilities: Value, answer: RequestHandler) -> Self {
        Self { capabilities, answer }
    }

    /// The response to a request of the server, if it gets one.
    #[must_use]
    pub(crate) fn answer(&self, id: &Value, method: &str, params: Option<&Value>) -> Option<Value> {
        let declared = |name: &str| self.capabilities.get(name).is_some();
        let answer = match method {
            "ping" => Some(Ok(json!({}))),
            "roots/list" if declared("roots") => (self.answer)(method, params),
            "sampling/createMessage" if declared("sampling") => (self.answer)(method, params),
            "elicitation/create" if declared("elicitation") => (self.answer)(method, params),
            _ => Some(Err(json!({ "code": -32601, "message": "the client does not support this method" }))),
        };
        Some(match answer? {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_methods_are_answered() {
        let answer: RequestHandler = Arc::new(|method, _| match method {
            "roots/list" => Some(Ok(json!({ "roots": [] }))),
            "sampling/createMessage" => None,
            _ => Some(Err(json!({ "code": -1 }))),
        });
        let responder = Responder::new(json!({ "roots": {}, "elicitation": {} }), Arc::clone(&answer));
        let answered = |id: Value, method: &str| responder.answer(&id, method, None).expect("it is answered");
        assert_eq!(answered(json!(1), "roots/list")["result"]["roots"], json!([]));
        assert_eq!(answered(json!(1), "sampling/createMessage")["error"]["code"], -32601);
        assert_eq!(answered(json!(1), "elicitation/create")["error"]["code"], -1);
        assert_eq!(answered(json!("a"), "ping")["id"], "a");
        let responder = Responder::new(json!({ "sampling": {} }), answer);
        assert_eq!(responder.answer(&json!(1), "sampling/createMessage", None), None);
    }
}
