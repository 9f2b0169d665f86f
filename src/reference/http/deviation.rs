//! Where the faults of HTTP take effect: requests are altered before they are looked at, and answers before
//! they go out, so that what is conforming knows nothing of them. Faults of streams stand in
//! [`super::streaming`].

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

use super::answer::{Answer, empty, failed, full};
use super::fault::HttpFault::{
    self, BufferingHeaderMissing, DisconnectBreaksServer, GetEnded400, GetJson, GetNotFound, GetSessionMissing404, HeaderNameCase,
    InvalidCharactersServed, JsonAsText, JsonTwice, MethodCaseFolded, MethodHeaderNotRequired, MethodHeaderUnchecked,
    MismatchCode, MismatchStatus, MissingCapability200, MissingMeta200, ModernDeleteServed, ModernGetStream,
    ModernLastEventId, ModernSessionChecked, ModernSessionEchoed, ModernSessionIssued, NameSentinelRejected,
    NameSentinelUnchecked, Notification200, NotificationBody, Origin400, OriginUnchecked, ParamExpected,
    ParamIntegersAsStrings, ParamSentinelRejected, ParamNotRequired, ParamUnchecked, PromptHeaderNotRequired,
    PromptHeaderUnchecked, RedirectsPost, Rejected200, ResourceHeaderNotRequired, ResourceHeaderUnchecked, Response200,
    ResponseBody, SessionIdFromTitle, SessionIdReused, SessionIdSequential, SessionIdSpace, SessionMissing422,
    SessionUnknown400, Sessionless, SseOriginUnchecked, SsePostFails, SsePostOriginUnchecked, ToolHeaderNotRequired,
    ToolHeaderUnchecked, UnknownMethod200, UnknownMethodPlain, UnsupportedVersion200, VersionGarbageServed,
    VersionHeaderRequired, VersionHeaderRejected, VersionMismatchServed, VersionMissingServed, VersionUnknownServed,
};
use super::gate;
use crate::reference::fault::{Fault, FaultSet};

/// Whether a fault is switched on.
pub(super) fn has(faults: &FaultSet, fault: HttpFault) -> bool {
    faults.contains(Fault::Http(fault))
}

/// Whether the server opens no sessions, by whatever is switched on.
pub(super) fn is_sessionless(faults: &FaultSet) -> bool {
    has(faults, Sessionless) || has(faults, VersionHeaderRequired)
}

/// The session id that a fault makes of a random one.
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

/// A header's value made of a text, where it can be.
fn value_of(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unsayable"))
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Any request, before it is looked at.
pub(super) fn alter_request(headers: &mut HeaderMap, path: &str, method: &Method, titled: bool, faults: &FaultSet) {
    let unchecked = match (path, method) {
        ("/sse", _) => has(faults, SseOriginUnchecked),
        ("/messages", _) => has(faults, SsePostOriginUnchecked),
        _ => has(faults, OriginUnchecked),
    };
    if unchecked {
        headers.remove("origin");
    }
    if titled && has(faults, HeaderNameCase) {
        headers.remove("mcp-method");
        headers.remove("mcp-name");
    }
}

/// A POST with its message, before it is looked at.
pub(super) fn alter_post(headers: &mut HeaderMap, message: &Value, stateless: bool, faults: &FaultSet) {
    if stateless {
        alter_stateless(headers, message, faults);
        return;
    }
    let version = text_of(headers, gate::VERSION).to_owned();
    let is_dated = version.len() == 10 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let served = if is_dated { VersionUnknownServed } else { VersionGarbageServed };
    if has(faults, served) && gate::version(headers).is_some() {
        headers.remove(gate::VERSION);
    }
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    if has(faults, VersionHeaderRejected) && method == "ping" && !version.is_empty() {
        headers.insert(gate::VERSION, HeaderValue::from_static("none"));
    }
    if has(faults, VersionHeaderRequired) && version.is_empty() && method != "initialize" {
        headers.insert(gate::VERSION, HeaderValue::from_static("none"));
    }
}

fn alter_stateless(headers: &mut HeaderMap, message: &Value, faults: &FaultSet) {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    let mut put = |name: &'static str, right: &str, unasked: bool, unchecked: bool| {
        let due = if headers.contains_key(name) { unchecked } else { unasked };
        if due {
            headers.insert(name, value_of(&gate::encoded(right)));
        }
    };
    let said = gate::meta(message, "protocolVersion").and_then(Value::as_str);
    if let Some(said) = said {
        put(gate::VERSION, said, has(faults, VersionMissingServed), has(faults, VersionMismatchServed));
    }
    put("mcp-method", method, has(faults, MethodHeaderNotRequired), has(faults, MethodHeaderUnchecked));
    let (unasked, unchecked) = match method {
        "prompts/get" => (PromptHeaderNotRequired, PromptHeaderUnchecked),
        "resources/read" => (ResourceHeaderNotRequired, ResourceHeaderUnchecked),
        _ => (ToolHeaderNotRequired, ToolHeaderUnchecked),
    };
    let name = gate::name_of(message).unwrap_or_default().to_owned();
    if !name.is_empty() {
        put("mcp-name", &name, has(faults, unasked), has(faults, unchecked));
    }
    let named = headers.get("mcp-name").map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let in_sentinel = named.starts_with(b"=?base64?");
    if has(faults, MethodCaseFolded) && text_of(headers, "mcp-method").eq_ignore_ascii_case(method) {
        headers.insert("mcp-method", value_of(method));
    }
    if in_sentinel && has(faults, NameSentinelRejected) {
        headers.insert("mcp-name", HeaderValue::from_static("encoded"));
    }
    if in_sentinel && has(faults, NameSentinelUnchecked) || !named.is_ascii() && has(faults, InvalidCharactersServed) {
        headers.insert("mcp-name", value_of(&gate::encoded(&name)));
    }
    for (header, value) in gate::mirrored(message) {
        let Ok(header) = HeaderName::try_from(header) else { continue };
        let given = headers.get(&header).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let Some(value) = value else { continue };
        let garbled = given.as_deref().is_some_and(|given| {
            has(faults, ParamSentinelRejected) && given.starts_with("=?base64?")
                || has(faults, ParamIntegersAsStrings)
                    && value.is_number()
                    && gate::plain(&value).as_deref() != Some(given)
        });
        let due = if given.is_some() { has(faults, ParamUnchecked) } else { has(faults, ParamNotRequired) };
        if garbled {
            headers.insert(header, HeaderValue::from_static("garbled"));
        } else if due {
            headers.insert(header, value_of(&gate::encoded(&gate::plain(&value).unwrap_or_default())));
        }
    }
}

/// What an answer answers.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    /// The message of a POST.
    pub(super) message: Option<&'a Value>,
    pub(super) stateless: bool,
}

impl Asked<'_> {
    fn is_notification(&self) -> bool {
        self.message.is_some_and(|message| message.get("method").is_some() && message.get("id").is_none())
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

/// An answer, before it goes out. `harmed` is what a stream that was closed leaves behind, where a fault wants it.
pub(super) async fn alter_answer(
    answer: Answer,
    asked: &Asked<'_>,
    harmed: &Arc<AtomicBool>,
    faults: &FaultSet,
) -> Answer {
    let on = |fault| has(faults, fault);
    let answer = match (asked.path, asked.method) {
        ("/mcp", &Method::GET) => alter_get(answer, asked, faults),
        ("/mcp", &Method::DELETE) if on(ModernDeleteServed) && is_modern(asked) => empty(StatusCode::NO_CONTENT),
        ("/mcp", &Method::POST) => {
            let answer = alter_status(answer, asked, faults);
            alter_message(answer, asked, faults).await
        }
        ("/messages", _) if on(SsePostFails) && asked.names("notifications/cancelled") => {
            failed(StatusCode::INTERNAL_SERVER_ERROR, "nothing can be cancelled")
        }
        _ => answer,
    };
    let mut answer = answer;
    let followed = asked.message.is_some_and(|message| message.pointer("/params/_meta/progressToken").is_some());
    if on(DisconnectBreaksServer) && asked.names("subscriptions/listen") && followed {
        let harmed = Arc::clone(harmed);
        answer = answer.map(|body| Guarded { body, harmed }.boxed());
    }
    if on(DisconnectBreaksServer) && asked.names("tools/list") && harmed.load(Ordering::Relaxed) {
        answer = failed(StatusCode::INTERNAL_SERVER_ERROR, "a stream is broken");
    }
    if on(Origin400) && answer.status() == StatusCode::FORBIDDEN {
        *answer.status_mut() = StatusCode::BAD_REQUEST;
    }
    if on(BufferingHeaderMissing) && asked.stateless {
        answer.headers_mut().remove("x-accel-buffering");
    }
    if asked.stateless && on(ModernSessionIssued) {
        answer.headers_mut().insert("mcp-session-id", HeaderValue::from_static("0123456789abcdef"));
    }
    if asked.stateless
        && on(ModernSessionEchoed)
        && let Some(session) = asked.headers.get("mcp-session-id")
    {
        answer.headers_mut().insert("mcp-session-id", session.clone());
    }
    answer
}

fn is_modern(asked: &Asked<'_>) -> bool {
    text_of(asked.headers, gate::VERSION) >= "2026"
}

fn alter_get(answer: Answer, asked: &Asked<'_>, faults: &FaultSet) -> Answer {
    let on = |fault| has(faults, fault);
    let session = asked.has("mcp-session-id");
    match answer.status() {
        _ if is_modern(asked) => {
            if on(ModernGetStream) {
                full(StatusCode::OK, "text/event-stream", ": open\n\n")
            } else {
                answer
            }
        }
        _ if on(GetNotFound) => failed(StatusCode::NOT_FOUND, "there is nothing to get"),
        StatusCode::OK if on(GetJson) => full(StatusCode::OK, "application/json", "[]"),
        StatusCode::BAD_REQUEST if !session && on(GetSessionMissing404) => {
            failed(StatusCode::NOT_FOUND, "there is no such session")
        }
        StatusCode::NOT_FOUND if session && on(GetEnded400) => failed(StatusCode::BAD_REQUEST, "the session has ended"),
        _ => answer,
    }
}

/// What a fault makes of the answer to a POST without a look into its body.
fn alter_status(mut answer: Answer, asked: &Asked<'_>, faults: &FaultSet) -> Answer {
    let on = |fault| has(faults, fault);
    let session = asked.has("mcp-session-id");
    let status = answer.status();
    let accepted = status == StatusCode::ACCEPTED;
    let to = match status {
        _ if asked.names("resources/templates/list") && on(RedirectsPost) => {
            let mut answer = empty(StatusCode::TEMPORARY_REDIRECT);
            answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/mcp/templates"));
            return answer;
        }
        _ if asked.stateless && session && on(ModernSessionChecked) => {
            return failed(StatusCode::NOT_FOUND, "there is no such session");
        }
        _ if asked.stateless && asked.has("last-event-id") && on(ModernLastEventId) => {
            return failed(StatusCode::BAD_REQUEST, "a POST resumes nothing");
        }
        _ if accepted && asked.is_notification() && on(NotificationBody)
            || accepted && asked.is_response() && on(ResponseBody) =>
        {
            return full(StatusCode::ACCEPTED, "application/json", "{}");
        }
        StatusCode::ACCEPTED if asked.is_notification() && on(Notification200) => StatusCode::OK,
        StatusCode::ACCEPTED if asked.is_response() && on(Response200) => StatusCode::OK,
        StatusCode::NOT_FOUND if asked.is_notification() && !asked.stateless && on(Rejected200) => StatusCode::OK,
        StatusCode::BAD_REQUEST if !asked.stateless && !session && on(SessionMissing422) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        StatusCode::NOT_FOUND if !asked.stateless && session && on(SessionUnknown400) => StatusCode::BAD_REQUEST,
        StatusCode::OK if asked.names("tools/list") && on(JsonAsText) => {
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            StatusCode::OK
        }
        status => status,
    };
    *answer.status_mut() = to;
    answer
}

/// What a fault makes of the answer to a POST whose body is one message.
async fn alter_message(answer: Answer, asked: &Asked<'_>, faults: &FaultSet) -> Answer {
    const LOOKING: [HttpFault; 9] = [
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
    let is_json = answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !is_json || !LOOKING.iter().any(|fault| on(*fault)) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
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
        return failed(StatusCode::NOT_FOUND, "not found");
    }
    if code == Some(-32_020) && on(MismatchCode) {
        message["error"]["code"] = json!(-32_600);
        bytes = message.to_string().into();
    }
    if on(ParamExpected)
        && let Some(asked) = asked.message
        && let Some((header, _)) = gate::mirrored(asked).into_iter().find(|(_, value)| value.is_none())
    {
        return gate::mismatch(asked, &format!("the header {header} is missing"));
    }
    if on(JsonTwice) && asked.names("resources/templates/list") {
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

/// A body that leaves something behind when it is dropped.
struct Guarded {
    body: BoxBody<Bytes, Infallible>,
    harmed: Arc<AtomicBool>,
}

impl Body for Guarded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.harmed.store(true, Ordering::Relaxed);
    }
}
