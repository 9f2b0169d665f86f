//! Fault injection into HTTP requests, before they are processed, and into responses, before they are sent. The
//! conforming code does not know these faults. Faults of streams are in [`super::stream_injection`].

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use super::response::{HttpResponse, empty, full, text_error};
use super::validation;
use crate::reference::fault::HttpFault::{
    self, BufferingHeaderMissing, DisconnectBreaksServer, GetEnded400, GetJson, GetNotFound, GetSessionMissing404,
    HeaderNameCase, HostUnchecked, InvalidCharactersServed, JsonAsText, JsonTwice, MethodCaseFolded,
    MethodHeaderNotRequired, MethodHeaderUnchecked, MismatchCode, MismatchStatus, MissingCapability200, MissingMeta200,
    ModernDeleteServed, ModernGetStream, ModernLastEventId, ModernSessionChecked, ModernSessionEchoed,
    ModernSessionIssued, NameSentinelRejected, NameSentinelUnchecked, Notification200, NotificationBody, Origin400,
    OriginMatchesHost, OriginUnchecked, ParamBase64Unchecked, ParamExpected, ParamIntegersAsStrings, ParamNotRequired,
    ParamSentinelRejected, ParamUnchecked, PromptHeaderNotRequired, PromptHeaderUnchecked, RedirectsPost, Rejected200,
    ResourceHeaderNotRequired, ResourceHeaderUnchecked, Response200, ResponseBody, SessionIdFromTitle, SessionIdReused,
    SessionIdSequential, SessionIdSpace, SessionMissing422, SessionUnknown400, Sessionless, SharedTransport,
    SseOriginUnchecked, SsePostFails, SsePostOriginUnchecked, TaskHeaderUnchecked, ToolHeaderNotRequired,
    ToolHeaderUnchecked, UnknownMethod200, UnknownMethodPlain, UnknownNotification400, UnsupportedVersion200,
    VersionGarbageServed, VersionHeaderRejected, VersionHeaderRequired, VersionMismatchServed, VersionMissingServed,
    VersionUnknownServed,
};
use crate::reference::fault::{Fault, FaultSet};

/// Whether the fault is enabled.
pub(super) fn has(faults: &FaultSet, fault: HttpFault) -> bool {
    faults.contains(Fault::Http(fault))
}

/// Whether a fault makes the server issue no session ids.
pub(super) fn is_sessionless(faults: &FaultSet) -> bool {
    [Sessionless, SharedTransport, VersionHeaderRequired].into_iter().any(|fault| has(faults, fault))
}

/// The session id, after fault injection.
pub(super) fn session_id(
    random: String,
    title: Option<&str>,
    taken: impl Fn(&str) -> bool,
    faults: &FaultSet,
) -> String {
    let of_title = title.map(|title| format!("{title}-00000000"));
    match of_title {
        Some(id) if has(faults, SessionIdFromTitle) || has(faults, SessionIdReused) && !taken(&id) => id,
        _ if has(faults, SessionIdSpace) => format!("{} {}", &random[..8], &random[8..]),
        _ if has(faults, SessionIdSequential) => {
            (1..100_000_u32).map(|n| n.to_string()).find(|id| !taken(id)).unwrap_or(random)
        }
        _ => random,
    }
}

/// A header value, or a placeholder if the text is not valid in a header.
fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unsayable"))
}

fn header_str<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Applies faults to any request.
pub(super) fn inject_into_request(
    headers: &mut HeaderMap,
    path: &str,
    method: &Method,
    title_case: bool,
    faults: &FaultSet,
) {
    let unchecked = match (path, method) {
        ("/sse", _) => has(faults, SseOriginUnchecked),
        ("/messages", _) => has(faults, SsePostOriginUnchecked),
        _ => has(faults, OriginUnchecked),
    };
    if unchecked {
        headers.remove("origin");
    }
    let host = header_str(headers, "host").to_owned();
    let of_host = header_str(headers, "origin").split_once("://").is_some_and(|(_, authority)| authority == host);
    if has(faults, OriginMatchesHost) && of_host {
        headers.remove("origin");
        headers.remove("host");
    }
    if has(faults, HostUnchecked) && !headers.contains_key("origin") {
        headers.remove("host");
    }
    if title_case && has(faults, HeaderNameCase) {
        headers.remove("mcp-method");
        headers.remove("mcp-name");
    }
}

/// Applies faults to a POST with its message.
pub(super) fn inject_into_post(headers: &mut HeaderMap, message: &Value, stateless: bool, faults: &FaultSet) {
    if stateless {
        inject_into_stateless_post(headers, message, faults);
        return;
    }
    let version = header_str(headers, validation::VERSION).to_owned();
    let is_dated = version.len() == 10 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let served = if is_dated { VersionUnknownServed } else { VersionGarbageServed };
    if has(faults, served) && validation::version(headers).is_some() {
        headers.remove(validation::VERSION);
    }
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    if has(faults, VersionHeaderRejected) && method == "ping" && !version.is_empty() {
        headers.insert(validation::VERSION, HeaderValue::from_static("none"));
    }
    if has(faults, VersionHeaderRequired) && version.is_empty() && method != "initialize" {
        headers.insert(validation::VERSION, HeaderValue::from_static("none"));
    }
}

fn inject_into_stateless_post(headers: &mut HeaderMap, message: &Value, faults: &FaultSet) {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    let mut set_header = |name: &'static str, right: &str, not_required: bool, unchecked: bool| {
        let due = if headers.contains_key(name) { unchecked } else { not_required };
        if due {
            headers.insert(name, header_value(&validation::encode_header(right)));
        }
    };
    let in_message = validation::meta(message, "protocolVersion").and_then(Value::as_str);
    if let Some(in_message) = in_message {
        set_header(
            validation::VERSION,
            in_message,
            has(faults, VersionMissingServed),
            has(faults, VersionMismatchServed),
        );
    }
    set_header("mcp-method", method, has(faults, MethodHeaderNotRequired), has(faults, MethodHeaderUnchecked));
    let (not_required, unchecked) = match method {
        "prompts/get" => (PromptHeaderNotRequired, PromptHeaderUnchecked),
        "resources/read" => (ResourceHeaderNotRequired, ResourceHeaderUnchecked),
        _ if method.starts_with("tasks/") => (ToolHeaderNotRequired, TaskHeaderUnchecked),
        _ => (ToolHeaderNotRequired, ToolHeaderUnchecked),
    };
    let name = validation::name_of(message).unwrap_or_default().to_owned();
    if !name.is_empty() {
        set_header("mcp-name", &name, has(faults, not_required), has(faults, unchecked));
    }
    let named = headers.get("mcp-name").map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let in_sentinel = named.starts_with(b"=?base64?");
    if has(faults, MethodCaseFolded) && header_str(headers, "mcp-method").eq_ignore_ascii_case(method) {
        headers.insert("mcp-method", header_value(method));
    }
    if in_sentinel && has(faults, NameSentinelRejected) {
        headers.insert("mcp-name", HeaderValue::from_static("encoded"));
    }
    if in_sentinel && has(faults, NameSentinelUnchecked) || !named.is_ascii() && has(faults, InvalidCharactersServed) {
        headers.insert("mcp-name", header_value(&validation::encode_header(&name)));
    }
    for (header, value) in validation::mirrored_arguments(message) {
        let Ok(header) = HeaderName::try_from(header) else { continue };
        let received = headers.get(&header).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let Some(value) = value else { continue };
        let garbled = received.as_deref().is_some_and(|received| {
            has(faults, ParamSentinelRejected) && received.starts_with("=?base64?")
                || has(faults, ParamIntegersAsStrings)
                    && value.is_number()
                    && validation::header_text(&value).as_deref() != Some(received)
        });
        let is_malformed = received.as_deref().is_some_and(|text| text.starts_with("=?base64?") && text.contains('*'));
        let ignored = has(faults, ParamUnchecked) || is_malformed && has(faults, ParamBase64Unchecked);
        let due = if received.is_some() { ignored } else { has(faults, ParamNotRequired) };
        if garbled {
            headers.insert(header, HeaderValue::from_static("garbled"));
        } else if due {
            headers.insert(
                header,
                header_value(&validation::encode_header(&validation::header_text(&value).unwrap_or_default())),
            );
        }
    }
}

/// The notifications that the server knows.
const KNOWN_NOTIFICATIONS: [&str; 4] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

/// The error without an id by which the server refuses a notification.
fn unknown_notification() -> String {
    json!({"jsonrpc": "2.0", "error": {"code": -32_601, "message": "Unknown notification"}}).to_string()
}

/// The request that a response answers.
pub(super) struct RequestInfo<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    /// The message of a POST.
    pub(super) message: Option<&'a Value>,
    pub(super) stateless: bool,
}

impl RequestInfo<'_> {
    fn is_notification(&self) -> bool {
        self.message.is_some_and(|message| message.get("method").is_some() && message.get("id").is_none())
    }

    /// Whether the message is a notification that the server does not know, or an array of them.
    fn has_unknown_notification(&self) -> bool {
        let is_unknown = |message: &Value| {
            let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
            // All requests of the client have ids that are numbers, except those that a case makes.
            let of_no_request = message.pointer("/params/requestId").is_some_and(Value::is_string);
            message.get("id").is_none() && (!KNOWN_NOTIFICATIONS.contains(&method) || of_no_request)
        };
        match self.message {
            Some(Value::Array(messages)) => messages.iter().all(is_unknown),
            message => message.is_some_and(is_unknown),
        }
    }

    fn is_response(&self) -> bool {
        self.message.is_some_and(|message| message.get("method").is_none() && message.get("id").is_some())
    }

    fn names(&self, method: &str) -> bool {
        self.message.and_then(|message| message.get("method")).is_some_and(|own| own == method)
    }

    fn has(&self, header: &str) -> bool {
        self.headers.contains_key(header)
    }
}

/// Applies faults to a response. `broken` is set when a stream was dropped that breaks the server.
pub(super) async fn inject_into_response(
    response: HttpResponse,
    request_info: &RequestInfo<'_>,
    broken: &Arc<AtomicBool>,
    faults: &FaultSet,
) -> HttpResponse {
    let on = |fault| has(faults, fault);
    let response = match (request_info.path, request_info.method) {
        ("/mcp", &Method::GET) => inject_into_get_response(response, request_info, faults),
        ("/mcp", &Method::DELETE) if on(ModernDeleteServed) && is_modern(request_info) => empty(StatusCode::NO_CONTENT),
        ("/mcp", &Method::POST) => {
            let response = inject_into_post_status(response, request_info, faults);
            inject_into_post_body(response, request_info, faults).await
        }
        ("/messages", _) if on(SsePostFails) && request_info.names("notifications/cancelled") => {
            text_error(StatusCode::INTERNAL_SERVER_ERROR, "cancellation failed")
        }
        _ => response,
    };
    let mut response = response;
    let requests_progress =
        request_info.message.is_some_and(|message| message.pointer("/params/_meta/progressToken").is_some());
    if on(DisconnectBreaksServer) && request_info.names("subscriptions/listen") && requests_progress {
        let broken = Arc::clone(broken);
        response = response.map(|body| BreakOnDrop { body, broken }.boxed());
    }
    if on(DisconnectBreaksServer) && request_info.names("tools/list") && broken.load(Ordering::Relaxed) {
        response = text_error(StatusCode::INTERNAL_SERVER_ERROR, "a stream was dropped");
    }
    if on(Origin400) && response.status() == StatusCode::FORBIDDEN {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    if on(BufferingHeaderMissing) && request_info.stateless {
        response.headers_mut().remove("x-accel-buffering");
    }
    if request_info.stateless && on(ModernSessionIssued) {
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("0123456789abcdef"));
    }
    if request_info.stateless
        && on(ModernSessionEchoed)
        && let Some(session) = request_info.headers.get("mcp-session-id")
    {
        response.headers_mut().insert("mcp-session-id", session.clone());
    }
    response
}

fn is_modern(request_info: &RequestInfo<'_>) -> bool {
    header_str(request_info.headers, validation::VERSION) >= "2026"
}

fn inject_into_get_response(response: HttpResponse, request_info: &RequestInfo<'_>, faults: &FaultSet) -> HttpResponse {
    let on = |fault| has(faults, fault);
    let session = request_info.has("mcp-session-id");
    match response.status() {
        _ if is_modern(request_info) => {
            if on(ModernGetStream) {
                full(StatusCode::OK, "text/event-stream", ": open\n\n")
            } else {
                response
            }
        }
        _ if on(GetNotFound) => text_error(StatusCode::NOT_FOUND, "not found"),
        StatusCode::OK if on(GetJson) => full(StatusCode::OK, "application/json", "[]"),
        StatusCode::BAD_REQUEST if !session && on(GetSessionMissing404) => {
            text_error(StatusCode::NOT_FOUND, "there is no such session")
        }
        StatusCode::NOT_FOUND if session && on(GetEnded400) => {
            text_error(StatusCode::BAD_REQUEST, "the session has ended")
        }
        _ => response,
    }
}

/// Applies faults to the response to a POST, without its body.
fn inject_into_post_status(
    mut response: HttpResponse,
    request_info: &RequestInfo<'_>,
    faults: &FaultSet,
) -> HttpResponse {
    let on = |fault| has(faults, fault);
    let session = request_info.has("mcp-session-id");
    let status = response.status();
    let accepted = status == StatusCode::ACCEPTED;
    let to = match status {
        _ if request_info.names("resources/templates/list") && on(RedirectsPost) => {
            let mut response = empty(StatusCode::TEMPORARY_REDIRECT);
            response.headers_mut().insert(LOCATION, HeaderValue::from_static("/mcp/templates"));
            return response;
        }
        _ if request_info.stateless && session && on(ModernSessionChecked) => {
            return text_error(StatusCode::NOT_FOUND, "there is no such session");
        }
        _ if request_info.stateless && request_info.has("last-event-id") && on(ModernLastEventId) => {
            return text_error(StatusCode::BAD_REQUEST, "a POST cannot resume a stream");
        }
        _ if accepted && request_info.is_notification() && on(NotificationBody)
            || accepted && request_info.is_response() && on(ResponseBody) =>
        {
            return full(StatusCode::ACCEPTED, "application/json", "{}");
        }
        StatusCode::ACCEPTED if request_info.has_unknown_notification() && on(UnknownNotification400) => {
            return full(StatusCode::BAD_REQUEST, "application/json", unknown_notification());
        }
        StatusCode::ACCEPTED if request_info.is_notification() && on(Notification200) => StatusCode::OK,
        StatusCode::ACCEPTED if request_info.is_response() && on(Response200) => StatusCode::OK,
        StatusCode::NOT_FOUND if request_info.is_notification() && !request_info.stateless && on(Rejected200) => {
            StatusCode::OK
        }
        StatusCode::BAD_REQUEST if !request_info.stateless && !session && on(SessionMissing422) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        StatusCode::NOT_FOUND if !request_info.stateless && session && on(SessionUnknown400) => StatusCode::BAD_REQUEST,
        StatusCode::OK if request_info.names("tools/list") && on(JsonAsText) => {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            StatusCode::OK
        }
        status => status,
    };
    *response.status_mut() = to;
    response
}

/// Applies faults to the response to a POST whose body is a single message.
async fn inject_into_post_body(
    response: HttpResponse,
    request_info: &RequestInfo<'_>,
    faults: &FaultSet,
) -> HttpResponse {
    const BODY_FAULTS: [HttpFault; 9] = [
        JsonTwice,
        MismatchCode,
        MismatchStatus,
        ParamExpected,
        MissingCapability200,
        MissingMeta200,
        UnsupportedVersion200,
        UnknownMethod200,
        UnknownMethodPlain,
    ];
    let on = |fault| has(faults, fault);
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !is_json || !BODY_FAULTS.iter().any(|fault| on(*fault)) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let mut bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let code = message.pointer("/error/code").and_then(Value::as_i64);
    let ok = match code {
        Some(-32_020) => on(MismatchStatus),
        Some(-32_021) => on(MissingCapability200),
        Some(-32_022) => on(UnsupportedVersion200),
        Some(-32_602) if parts.status == StatusCode::BAD_REQUEST => on(MissingMeta200),
        Some(-32_601) => on(UnknownMethod200),
        _ => false,
    };
    if ok {
        parts.status = StatusCode::OK;
    }
    if code == Some(-32_601) && on(UnknownMethodPlain) {
        return text_error(StatusCode::NOT_FOUND, "not found");
    }
    if code == Some(-32_020) && on(MismatchCode) {
        message["error"]["code"] = json!(-32_600);
        bytes = message.to_string().into();
    }
    if on(ParamExpected)
        && let Some(request_info) = request_info.message
        && let Some((header, _)) =
            validation::mirrored_arguments(request_info).into_iter().find(|(_, value)| value.is_none())
    {
        return validation::mismatch(request_info, &format!("the header {header} is missing"));
    }
    if on(JsonTwice) && request_info.names("resources/templates/list") {
        bytes = [bytes.as_ref(), b"\n", bytes.as_ref()].concat().into();
    }
    let mut altered = full(parts.status, "application/json", bytes);
    for (name, value) in &parts.headers {
        if name != hyper::header::CONTENT_LENGTH {
            altered.headers_mut().insert(name, value.clone());
        }
    }
    altered
}

/// A body that marks the server as broken when it is dropped.
struct BreakOnDrop {
    body: BoxBody<Bytes, Infallible>,
    broken: Arc<AtomicBool>,
}

impl Body for BreakOnDrop {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

impl Drop for BreakOnDrop {
    fn drop(&mut self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}
