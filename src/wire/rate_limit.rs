//! Recognises the errors of JSON-RPC by which a server limits the rate of requests. No revision defines one.

use serde_json::Value;

/// What the message of such an error contains, in lower case.
const WORDS: [&str; 5] = ["rate limit", "rate-limit", "ratelimit", "too many requests", "throttled"];

/// The errors that JSON-RPC defines for requests that are wrong themselves.
const WRONG_REQUEST: [i64; 4] = [-32_700, -32_600, -32_601, -32_602];

/// Whether a message is an error that says only that the client sends too many requests.
pub(crate) fn reports_rate_limit(message: &Value) -> bool {
    let Some(error) = message.get("error") else { return false };
    let code = error.get("code").and_then(Value::as_i64);
    let text = error.get("message").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    code == Some(429)
        || code.is_none_or(|code| !WRONG_REQUEST.contains(&code)) && WORDS.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_that_names_a_rate_limit_is_recognised() {
        let error = |code: i64, message: &str| json!({"id": 1, "error": {"code": code, "message": message}});
        for limited in
            [error(-32_000, "Rate limit exceeded"), error(429, "slow down"), error(-32_603, "Too Many Requests")]
        {
            assert!(reports_rate_limit(&limited), "{limited}");
        }
        for other in
            [error(-32_602, "no tool named rate limit"), error(-32_603, "failed"), json!({"id": 1, "result": {}})]
        {
            assert!(!reports_rate_limit(&other), "{other}");
        }
    }
}
