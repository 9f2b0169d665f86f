//! The HTTP endpoint of a server: URL, HTTP clients, headers, secrets and rate limit, shared by all connections.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use tokio::net::TcpStream;

use super::direct_request::{FOREIGN_AUTHORIZATION, FurtherTokens, SECOND_AUTHORIZATION};
use super::endpoint_error::HttpEndpointError;
use super::listening;
use crate::client::secrets::{Secrets, is_public, is_secret_header};
use crate::limits::WAIT_POLL_INTERVAL;
use crate::limits::http::{
    CONNECT_TIMEOUT, HALF_CLOSED_TIMEOUT, LARGE_BODY, MANY_HALF_CLOSED, MAX_CONNECTION_IDLE_TIME,
};

/// The transport of an endpoint, once it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HttpTransport {
    /// One endpoint that answers each POST (Streamable HTTP).
    Streamable,
    /// A stream that names an endpoint for messages and carries the responses (HTTP+SSE, 2024-11-05).
    Sse,
}

/// Whether the server's streams for its own messages hold up requests, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum GetStreams {
    /// No stream was open yet.
    #[default]
    Untested,
    /// They do no harm.
    Usable,
    /// The server answers no request while one is open.
    HoldUpRequests,
}

/// The HTTP endpoint at which a server is reached.
#[derive(Debug)]
pub struct HttpEndpoint {
    pub(super) url: Url,
    pub(super) client: reqwest::Client,
    /// The same with header names in title case.
    pub(super) title_case_client: reqwest::Client,
    /// The client that opens a connection for each request.
    pub(super) fresh_client: reqwest::Client,
    /// Headers that are sent with every request.
    pub(super) headers: HeaderMap,
    /// The value of `Authorization` of another user.
    second_authorization: Option<HeaderValue>,
    /// The value of `Authorization` with a token that was issued for another server.
    foreign_authorization: Option<HeaderValue>,
    /// Strings that are never recorded.
    secrets: Secrets,
    transport: Mutex<Option<HttpTransport>>,
    rate_limiter: Mutex<RateLimiter>,
    /// Whether the server's rate limit asked for a longer wait than the client accepts: no further waits are made.
    exhausted: AtomicBool,
    /// Whether streams for the server's own messages hold up requests.
    pub(super) get_streams: tokio::sync::Mutex<GetStreams>,
    /// Where a server on this machine listens. Large tables take milliseconds to read, so they are read once.
    listens_at: OnceLock<Option<&'static str>>,
}

/// The user's limit on the request rate.
#[derive(Debug, Default)]
struct RateLimiter {
    /// The minimum time between two requests; zero without a limit.
    interval: Duration,
    /// When the next request may be sent.
    next: Option<Instant>,
}

impl HttpEndpoint {
    /// Waits while it is tested whether streams hold up requests: another request would disturb the test.
    pub(super) async fn wait_for_stream_test(&self) {
        drop(self.get_streams.lock().await);
    }

    /// An endpoint at an `http` or `https` URL; `headers` are sent with every request, and their values are masked
    /// wherever they would be recorded. `insecure` accepts any certificate.
    ///
    /// # Errors
    /// When the URL or a header cannot be used.
    pub fn new(address: &str, headers: &[(String, String)], insecure: bool) -> Result<Arc<Self>, HttpEndpointError> {
        Self::with_further_tokens(address, headers, &FurtherTokens::default(), insecure)
    }

    /// The same, with bearer tokens that only cases about them send.
    ///
    /// # Errors
    /// When the URL, a header or a token cannot be used.
    pub fn with_further_tokens(
        address: &str,
        headers: &[(String, String)],
        tokens: &FurtherTokens,
        insecure: bool,
    ) -> Result<Arc<Self>, HttpEndpointError> {
        let url = Url::parse(address)
            .map_err(|error| HttpEndpointError::Address { address: address.to_owned(), reason: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(HttpEndpointError::Scheme(address.to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(HttpEndpointError::Credentials);
        }
        let mut own = HeaderMap::new();
        let mut secrets: Vec<&str> = Vec::new();
        for (name, value) in headers {
            let header_error = || HttpEndpointError::Header(name.clone());
            let header = HeaderName::try_from(name.as_str()).map_err(|_| header_error())?;
            let mut text = HeaderValue::from_str(value).map_err(|_| header_error())?;
            text.set_sensitive(true);
            let is_secret = is_secret_header(header.as_str());
            // In an authorization header the secret follows the scheme; in any other header it is the whole value.
            let behind = value.split_once(' ').filter(|_| header.as_str().ends_with("authorization"));
            let secret = behind.map_or(value.as_str(), |(_, secret)| secret.trim());
            if is_secret && is_public(secret) {
                return Err(HttpEndpointError::UnmaskableSecret(name.clone()));
            }
            own.append(header, text);
            secrets.push(value);
            // The server may repeat the token without its scheme.
            secrets.extend(value.split_once(' ').map(|(_, token)| token));
        }
        let second_authorization = bearer(tokens.second_user.as_deref())?;
        let foreign_authorization = bearer(tokens.foreign.as_deref())?;
        secrets.extend(tokens.second_user.iter().chain(&tokens.foreign).map(String::as_str));
        let builder = || {
            let mut builder = reqwest::Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(MAX_CONNECTION_IDLE_TIME)
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
        let fresh_client = builder().pool_max_idle_per_host(0).build()?;
        Ok(Arc::new(Self {
            url,
            client,
            title_case_client,
            fresh_client,
            headers: own,
            second_authorization,
            foreign_authorization,
            secrets: Secrets::new(secrets),
            transport: Mutex::default(),
            rate_limiter: Mutex::default(),
            exhausted: AtomicBool::new(false),
            get_streams: tokio::sync::Mutex::default(),
            listens_at: OnceLock::new(),
        }))
    }

    /// The client that sends a body of this length: a server may refuse a large one without reading it to its end, and
    /// never read what follows on the connection.
    pub(super) fn client_for_body(&self, bytes: usize) -> &reqwest::Client {
        if bytes > LARGE_BODY { &self.fresh_client } else { &self.client }
    }

    /// The value of `Authorization` that a placeholder of a header names, if the user gave the token.
    pub(crate) fn further_authorization(&self, placeholder: &str) -> Option<&HeaderValue> {
        match placeholder {
            SECOND_AUTHORIZATION => self.second_authorization.as_ref(),
            FOREIGN_AUTHORIZATION => self.foreign_authorization.as_ref(),
            _ => None,
        }
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

    /// Where a server on this machine listens, once it has accepted a connection.
    pub(super) fn listens_at(&self) -> Option<&'static str> {
        let port = self.url.port_or_known_default().filter(|_| self.is_loopback())?;
        *self.listens_at.get_or_init(|| listening::listens_at(port))
    }

    /// How many connections that clients have closed a server on this machine has not, once they are few, or the time for
    /// that is over. Nothing where the system does not show it.
    pub(super) async fn half_closed(&self) -> Option<usize> {
        let port = self.url.port_or_known_default().filter(|_| self.is_loopback())?;
        let began = Instant::now();
        loop {
            let count = listening::half_closed(port)?;
            if count < MANY_HALF_CLOSED || began.elapsed() >= HALF_CLOSED_TIMEOUT {
                return Some(count);
            }
            tokio::time::sleep(WAIT_POLL_INTERVAL).await;
        }
    }

    /// Whether the server accepts a connection within a limit.
    pub(crate) async fn accepts_connections(&self, limit: Duration) -> bool {
        let (Some(host), Some(port)) = (self.url.host_str(), self.url.port_or_known_default()) else { return false };
        let host = host.trim_matches(['[', ']']);
        matches!(tokio::time::timeout(limit, TcpStream::connect((host, port))).await, Ok(Ok(_)))
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
        self.secrets.masked(text)
    }

    /// Bytes with every secret masked; bytes that are not UTF-8 are left as they are.
    pub(super) fn masked_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.secrets.masked_bytes(bytes)
    }
}

/// The value of `Authorization` with a token, which is never recorded.
fn bearer(token: Option<&str>) -> Result<Option<HeaderValue>, HttpEndpointError> {
    let Some(token) = token else { return Ok(None) };
    if is_public(token) {
        return Err(HttpEndpointError::UnmaskableSecret("Authorization".to_owned()));
    }
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| HttpEndpointError::Header("Authorization".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
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
    fn further_tokens_are_masked_and_sent_only_where_a_case_names_them() {
        let tokens = FurtherTokens { second_user: Some("abcdef-second".to_owned()), foreign: None };
        let headers = [("Authorization".to_owned(), "Bearer abcdef".to_owned())];
        let endpoint = HttpEndpoint::with_further_tokens("http://localhost/", &headers, &tokens, false).expect("valid");
        assert_eq!(endpoint.masked("abcdef-second abcdef"), "[secret] [secret]");
        let second = endpoint.further_authorization(SECOND_AUTHORIZATION).expect("it was given");
        assert!(second.is_sensitive() && second == "Bearer abcdef-second", "{second:?}");
        assert!(endpoint.further_authorization(FOREIGN_AUTHORIZATION).is_none());
        let short = FurtherTokens { second_user: None, foreign: Some("abc".to_owned()) };
        assert!(HttpEndpoint::with_further_tokens("http://localhost/", &headers, &short, false).is_err());
    }

    #[test]
    fn requests_are_spaced_by_the_maximum_rate() {
        let endpoint = HttpEndpoint::new("http://localhost/", &[], false).expect("an address");
        assert_eq!(endpoint.reserve_slot(), None);
        // One in a hundred seconds, of which this test takes none.
        endpoint.set_max_rate(0.01);
        assert_eq!(endpoint.reserve_slot(), None);
        let second = endpoint.reserve_slot().expect("it waits");
        let third = endpoint.reserve_slot().expect("it waits");
        assert!(second > Duration::from_secs(50) && third > Duration::from_secs(150), "{second:?} {third:?}");
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
