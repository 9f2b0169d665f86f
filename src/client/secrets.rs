//! Strings that must never be recorded, and how they are masked in what is.

use std::ffi::OsString;

use super::http::MIN_SECRET_CHARS;
use crate::percent;

/// Parts of header names whose values are secret.
#[cfg(feature = "http")]
const SECRET_HEADER_PARTS: [&str; 6] = ["authorization", "cookie", "token", "secret", "key", "password"];

/// Ends of the words in the names of environment variables whose values are secret.
const SECRET_VARIABLE_ENDS: [&str; 8] =
    ["TOKEN", "SECRET", "KEY", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "AUTHORIZATION"];

/// Strings that are masked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// These strings, as they are and as they are escaped in JSON and in URLs, except those that cannot be secret.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut all: Vec<String> = secrets.into_iter().flat_map(escaped_forms).collect();
        all.retain(|secret| !is_public(secret));
        // Longer secrets are masked first, so that nothing remains of one that contains another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self(all)
    }

    /// The values of those environment variables whose names say that they are secret.
    pub(crate) fn of_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let is_secret = |(name, _): &(OsString, OsString)| is_secret_variable(&name.to_string_lossy());
        let secret: Vec<OsString> = variables.into_iter().filter(is_secret).map(|(_, value)| value).collect();
        Self::new(secret.iter().filter_map(|value| value.to_str()))
    }

    /// A string with every secret masked.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.0 {
            if masked.contains(secret.as_str()) {
                masked = masked.replace(secret.as_str(), "[secret]");
            }
        }
        masked
    }

    /// Bytes with every secret masked; bytes that are not UTF-8 are left as they are.
    #[cfg(feature = "http")]
    pub(super) fn masked_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let holds = |secret: &String| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        if !self.0.iter().any(holds) {
            return bytes;
        }
        match String::from_utf8(bytes) {
            Ok(text) => self.masked(&text).into_bytes(),
            Err(error) => error.into_bytes(),
        }
    }
}

/// Whether the value of a header of this name, in lower case, is secret.
#[cfg(feature = "http")]
pub(super) fn is_secret_header(name: &str) -> bool {
    SECRET_HEADER_PARTS.iter().any(|word| name.contains(word))
}

fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').any(|word| SECRET_VARIABLE_ENDS.iter().any(|end| word.ends_with(end)))
}

/// A secret as it is, and as it is escaped in JSON and in URLs.
fn escaped_forms(secret: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(secret).to_string();
    vec![secret.to_owned(), quoted[1..quoted.len() - 1].to_owned(), percent::encode(secret)]
}

/// Names of the protocol that a header may contain: masking them would corrupt the messages under judgement.
const PROTOCOL_NAMES: &str = "application/json, text/event-stream, charset=utf-8, keep-alive, no-cache, gzip, deflate,     jsonrpc 2.0 method params result error message protocolVersion capabilities clientInfo serverInfo     io.modelcontextprotocol/clientCapabilities structuredContent description inputSchema outputSchema properties     arguments resources/templates/list resourceTemplates prompts/list tools/list tools/call initialize     notifications/initialized server/discover subscriptions/listen completion/complete logging/setLevel     sampling/createMessage elicitation/create required object string integer number boolean nextCursor content     supportedVersions resultType complete localhost 127.0.0.1 mcp-conformance";

/// Whether a string cannot be a secret: it is too short, a name of the protocol, or a revision.
pub(super) fn is_public(text: &str) -> bool {
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.len() < MIN_SECRET_CHARS || is_date || PROTOCOL_NAMES.contains(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_secret_by_their_names() {
        let secret = ["GITHUB_TOKEN", "API_KEY", "APIKEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "client_secret"];
        assert!(secret.into_iter().all(is_secret_variable));
        let public = ["PATH", "KEYBOARD", "TOKENIZERS_PARALLELISM", "NODE_ENV", "SSH_AUTH_SOCK", "HOME"];
        assert!(!public.into_iter().any(is_secret_variable));
    }

    #[test]
    fn the_values_of_secret_variables_are_masked_and_no_others() {
        let variables = [("API_KEY", "abc\"def"), ("MODE", "production"), ("MY_TOKEN", "true")];
        let secrets = Secrets::of_variables(variables.map(|(name, value)| (name.into(), value.into())));
        let text = r#"{"a": "abc\"def", "b": "production", "c": true} abc%22def"#;
        assert_eq!(secrets.masked(text), r#"{"a": "[secret]", "b": "production", "c": true} [secret]"#);
    }
}
