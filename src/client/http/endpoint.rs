//! The HTTP endpoint of a server: URL, HTTP clients, headers, secrets and rate limit, shared by all connections.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;

/// Why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpEndpointError {
    /// The URL cannot be parsed.
    #[error("`{address}` is not a URL: {reason}")]
    Address {
        /// The URL as given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The URL has another scheme than HTTP.
    #[error("`{0}` is not an HTTP URL: it must begin with http:// or https://")]
    Scheme(String),
    /// The URL contains a user name or password, which would appear in every report.
    #[error(
        "the URL contains a user name or password, and URLs are shown in reports: use --header 'Authorization: Basic ...', or --bearer-env for a token"
    )]
    Credentials,
    /// A header cannot be sent.
    #[error(
        "the header `{0}` cannot be sent: a name consists of letters, digits and hyphens, a value of one line of text"
    )]
    Header(String),
    /// A secret that could not be masked reliably.
    #[error(
        "the secret in the header `{0}` cannot be masked reliably in reports, because it is shorter than {MIN_SECRET_CHARS} characters, a date or a name of the protocol: use a longer one"
    )]
    UnmaskableSecret(String),
    /// The HTTP client could not be created.
    #[error("failed to set up HTTP: {0}")]
    Client(#[from] reqwest::Error),
}

/// The transport of an endpoint, once it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HttpTransport {
    /// One endpoint that answers each POST (Streamable HTTP).
    Streamable,
    /// A stream that names an endpoint for messages and carries the responses (HTTP+SSE, 2024-11-05).
    Sse,
}

/// The HTTP endpoint at which a server is reached.
#[derive(Debug)]
pub struct HttpEndpoint {
    pub(super) url: Url,
    pub(super) client: reqwest::Client,
    /// The same with header names in title case.
    pub(super) title_case_client: reqwest::Client,
    /// Headers that are sent with every request.
    pub(super) headers: HeaderMap,
    /// Strings that are never recorded.
    secrets: Vec<String>,
    transport: Mutex<Option<HttpTransport>>,
    rate_limiter: Mutex<RateLimiter>,
    /// Whether the server's rate limit asked for a longer wait than the client accepts: no further waits are made.
    exhausted: AtomicBool,
}

/// The user's limit on the request rate.
#[derive(Debug, Default)]
struct RateLimiter {
    /// The minimum time between two requests; zero without a limit.
    interval: Duration,
    /// When the next request may be sent.
    next: Option<Instant>,
}

/// Parts of header names whose values are secret.
const SECRET_HEADER_PARTS: [&str; 6] = ["authorization", "cookie", "token", "secret", "key", "password"];

impl HttpEndpoint {
    /// An endpoint at an `http` or `https` URL; `headers` are sent with every request, and their values are masked
    /// wherever they would be recorded. `insecure` accepts any certificate.
    ///
    /// # Errors
    /// When the URL or a header cannot be used.
    pub fn new(address: &str, headers: &[(String, String)], insecure: bool) -> Result<Arc<Self>, HttpEndpointError> {
        let url = Url::parse(address)
            .map_err(|error| HttpEndpointError::Address { address: address.to_owned(), reason: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(HttpEndpointError::Scheme(address.to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(HttpEndpointError::Credentials);
        }
        let mut own = HeaderMap::new();
        let mut secrets = Vec::new();
        for (name, value) in headers {
            let header_error = || HttpEndpointError::Header(name.clone());
            let header = HeaderName::try_from(name.as_str()).map_err(|_| header_error())?;
            let mut text = HeaderValue::from_str(value).map_err(|_| header_error())?;
            text.set_sensitive(true);
            let is_secret = SECRET_HEADER_PARTS.iter().any(|word| header.as_str().contains(word));
            // In an authorization header the secret follows the scheme; in any other header it is the whole value.
            let behind = value.split_once(' ').filter(|_| header.as_str().ends_with("authorization"));
            let secret = behind.map_or(value.as_str(), |(_, secret)| secret.trim());
            if is_secret && is_public(secret) {
                return Err(HttpEndpointError::UnmaskableSecret(name.clone()));
            }
            own.append(header, text);
            secrets.extend(escaped_forms(value));
            // The server may repeat the token without its scheme.
            secrets.extend(value.split_once(' ').into_iter().flat_map(|(_, token)| escaped_forms(token)));
        }
        secrets.retain(|secret| !is_public(secret));
        // Longer secrets are masked first, so that nothing remains of one that contains another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        let builder = || {
            let mut builder = reqwest::Client::builder()
                .redirect(Policy::none())
                .connect_timeout(Duration::from_secs(10))
                .pool_idle_timeout(Duration::from_secs(20))
                .http1_only()
                .referer(false)
                .user_agent(concat!("mcp-conformance/", env!("CARGO_PKG_VERSION")));
            if is_loopback(&url) {
                builder = builder.no_proxy();
            }
            if insecure {
                builder = builder.danger_accept_invalid_certs(true);
            }
            builder
        };
        // If another part of the program has installed a provider already, that one is used.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let (client, title_case_client) = (builder().build()?, builder().http1_title_case_headers().build()?);
        Ok(Arc::new(Self {
            url,
            client,
            title_case_client,
            headers: own,
            secrets,
            transport: Mutex::default(),
            rate_limiter: Mutex::default(),
            exhausted: AtomicBool::new(false),
        }))
    }

    /// Limits the number of requests per second.
    pub fn set_max_rate(&self, rate: f64) {
        let mut rate_limiter = self.rate_limiter.lock().unwrap_or_else(PoisonError::into_inner);
        rate_limiter.interval = Duration::from_secs_f64(1.0 / rate.max(0.001));
    }

    /// Records that the server's rate limit asks for a longer wait than the client accepts.
    pub(super) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    /// Whether the rate limit has been exhausted.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Reserves the next time slot for a request; returns how long to wait for it.
    pub(super) fn reserve_slot(&self) -> Option<Duration> {
        let mut rate_limiter = self.rate_limiter.lock().unwrap_or_else(PoisonError::into_inner);
        if rate_limiter.interval.is_zero() {
            return None;
        }
        let now = Instant::now();
        let turn = rate_limiter.next.map_or(now, |next| next.max(now));
        rate_limiter.next = Some(turn + rate_limiter.interval);
        Some(turn - now).filter(|wait| !wait.is_zero())
    }

    /// The URL.
    #[must_use]
    pub fn address(&self) -> &str {
        self.url.as_str()
    }

    /// Whether the server runs on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    /// The host and the port to connect to.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let host = self.url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some((host, self.url.port_or_known_default()?))
    }

    /// Whether the endpoint uses the HTTP+SSE transport, as far as that is known.
    #[must_use]
    pub fn uses_sse_transport(&self) -> bool {
        self.transport() == Some(HttpTransport::Sse)
    }

    pub(super) fn transport(&self) -> Option<HttpTransport> {
        self.transport.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_transport(&self, transport: HttpTransport) {
        self.transport.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(transport);
    }

    /// Whether a URL has the origin of the endpoint.
    pub(super) fn is_same_origin(&self, other: &Url) -> bool {
        self.url.origin() == other.origin()
    }

    /// A string with every secret masked.
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.secrets {
            if masked.contains(secret.as_str()) {
                masked = masked.replace(secret.as_str(), "[secret]");
            }
        }
        masked
    }

    /// Bytes with every secret masked; bytes that are not UTF-8 are left as they are.
    pub(super) fn masked_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let holds = |secret: &String| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        if !self.secrets.iter().any(holds) {
            return bytes;
        }
        match String::from_utf8(bytes) {
            Ok(text) => self.masked(&text).into_bytes(),
            Err(error) => error.into_bytes(),
        }
    }
}

/// A secret as it is, and as it is escaped in JSON and in URLs.
fn escaped_forms(secret: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(secret).to_string();
    let encoded = secret.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _infallible = write!(text, "%{byte:02X}");
        }
        text
    });
    vec![secret.to_owned(), quoted[1..quoted.len() - 1].to_owned(), encoded]
}

/// Names of the protocol that a header may contain: masking them would corrupt the messages under judgement.
const PROTOCOL_NAMES: &str = "application/json, text/event-stream, charset=utf-8, keep-alive, no-cache, gzip, deflate,     jsonrpc 2.0 method params result error message protocolVersion capabilities clientInfo serverInfo     io.modelcontextprotocol/clientCapabilities structuredContent description inputSchema outputSchema properties     arguments resources/templates/list resourceTemplates prompts/list tools/list tools/call initialize     notifications/initialized server/discover subscriptions/listen completion/complete logging/setLevel     sampling/createMessage elicitation/create required object string integer number boolean nextCursor content     supportedVersions resultType complete localhost 127.0.0.1 mcp-conformance";

/// Shorter strings occur in too many others to be masked.
const MIN_SECRET_CHARS: usize = 6;

/// Whether a string cannot be a secret: it is too short, a name of the protocol, or a revision.
fn is_public(text: &str) -> bool {
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.len() < MIN_SECRET_CHARS || is_date || PROTOCOL_NAMES.contains(text)
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_are_accepted() {
        assert!(HttpEndpoint::new("http://127.0.0.1:3000/mcp", &[], false).is_ok());
        assert!(matches!(HttpEndpoint::new("ftp://127.0.0.1/", &[], false), Err(HttpEndpointError::Scheme(_))));
        assert!(matches!(HttpEndpoint::new("nonsense", &[], false), Err(HttpEndpointError::Address { .. })));
        let headers = [("bad name".to_owned(), "x".to_owned())];
        assert!(matches!(HttpEndpoint::new("http://localhost/", &headers, false), Err(HttpEndpointError::Header(_))));
        assert!(matches!(
            HttpEndpoint::new("http://me:hush@localhost/", &[], false),
            Err(HttpEndpointError::Credentials)
        ));
    }

    #[test]
    fn escaped_secrets_are_masked_and_names_of_the_protocol_are_not() {
        let headers = [
            ("X-Key".to_owned(), "a\"b\\c d+e".to_owned()),
            ("MCP-Protocol-Version".to_owned(), "2025-06-18".to_owned()),
            ("X-Tenant".to_owned(), "resources".to_owned()),
        ];
        let endpoint = HttpEndpoint::new("http://localhost/mcp", &headers, false).expect("an address");
        let json = serde_json::json!({ "resources": ["2025-06-18", "a\"b\\c d+e"] }).to_string();
        assert_eq!(endpoint.masked(&json), r#"{"resources":["2025-06-18","[secret]"]}"#);
        assert_eq!(endpoint.masked("?key=a%22b%5Cc%20d%2Be"), "?key=[secret]");
    }

    #[test]
    fn a_secret_that_cannot_be_masked_is_rejected() {
        let endpoint = |name: &str, value: &str| {
            HttpEndpoint::new("http://localhost/", &[(name.to_owned(), value.to_owned())], false)
        };
        for (name, value) in [
            ("Authorization", "Bearer abc"),
            ("X-Api-Key", "12345"),
            ("Cookie", "a=1"),
            ("X-Auth-Token", "resources"),
            ("Authorization", "Bearer 2025-06-18"),
        ] {
            let message = endpoint(name, value).expect_err("it is refused").to_string();
            assert!(message.contains(name) && !message.contains(value), "{message}");
        }
        for (name, value) in [("Authorization", "Bearer abcdef"), ("X-Tenant", "7"), ("Accept-Language", "de")] {
            assert!(endpoint(name, value).is_ok(), "{name}");
        }
    }

    #[test]
    fn requests_are_spaced_by_the_maximum_rate() {
        let endpoint = HttpEndpoint::new("http://localhost/", &[], false).expect("an address");
        assert_eq!(endpoint.reserve_slot(), None);
        endpoint.set_max_rate(2.0);
        assert_eq!(endpoint.reserve_slot(), None);
        let second = endpoint.reserve_slot().expect("it waits");
        let third = endpoint.reserve_slot().expect("it waits");
        assert!(second > Duration::from_millis(400) && third > Duration::from_millis(900), "{second:?} {third:?}");
    }

    #[test]
    fn secrets_are_masked_with_and_without_their_scheme() {
        let headers = [("Authorization".to_owned(), "Bearer abcdef123".to_owned())];
        let endpoint = HttpEndpoint::new("https://example.com/mcp", &headers, false).expect("an address");
        assert_eq!(endpoint.masked("got abcdef123 here"), "got [secret] here");
        assert_eq!(endpoint.masked_bytes(b"x Bearer abcdef123".to_vec()), b"x [secret]");
        assert!(!endpoint.is_loopback());
        assert!(HttpEndpoint::new("http://[::1]:80/", &[], false).expect("an address").is_loopback());
    }
}
