//! The reference server over HTTP: Streamable HTTP at `/mcp` in every revision, and HTTP+SSE at `/sse`.
//!
//! The connection handles messages, as for every transport. This module only handles HTTP: sessions, streams,
//! statuses and headers.

mod authorization;
mod client_injection;
mod framing;
mod get_blocking;
mod injection;
mod request_form;
mod response;
mod running_calls;
mod session;
mod stream_injection;
mod validation;
mod variant;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use authorization::ProtectedResource;
use client_injection::{KeptResources, NewestSession, Routes};
use get_blocking::OpenGetStreams;
use injection::{
    RequestInfo, has, inject_into_post, inject_into_request, inject_into_response, is_sessionless, session_id,
};
use response::{HttpResponse, empty, rpc_error, text_error};
use running_calls::RunningCalls;
use session::{Post, Session};
use variant::SessionOrder;

use super::fault::{FaultSet, HttpFault};
use super::interception::{self, InterceptorFactory};
use super::message::{INVALID_REQUEST, PARSE_ERROR};
use super::user::User;

/// The maximum size of a message.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// The maximum number of sessions.
const MAX_SESSIONS: usize = 4_096;

/// The state that all HTTP connections share.
struct Server {
    faults: Arc<FaultSet>,
    interceptors: InterceptorFactory,
    sessions: Mutex<HashMap<String, Session>>,
    /// The session of all stateless requests of each user, once there was one.
    stateless: Mutex<HashMap<&'static str, Session>>,
    /// The streams of `subscriptions/listen`, each a session of its own that observes the calls of others.
    listeners: Mutex<Vec<Session>>,
    ended: Arc<Notify>,
    /// Set if the server requires authorization.
    guard: Option<ProtectedResource>,
    /// Whether a dropped stream has broken the server, which only a fault causes.
    broken: Arc<AtomicBool>,
    /// Where responses go if a fault routes those of all clients by their ids.
    routes: Routes,
    newest: NewestSession,
    in_order: SessionOrder,
    /// Held while a session is opened that may be the only one.
    opening: tokio::sync::Mutex<()>,
    kept: KeptResources,
    get_streams: OpenGetStreams,
    running_calls: RunningCalls,
}

/// Whether a fault makes the server listen at every address of the machine. The caller opens the listener.
#[must_use]
pub fn binds_every_address(faults: &FaultSet) -> bool {
    has(faults, HttpFault::BindsEveryAddress)
}

/// Serves HTTP on a listener until a fault ends the server.
///
/// # Errors
/// When a connection cannot be accepted.
pub async fn serve_http(listener: TcpListener, faults: Arc<FaultSet>) -> io::Result<()> {
    serve_all(listener, faults, Arc::new(interception::none), None).await
}

/// Like [`serve_http`], as an OAuth protected resource that accepts this token.
///
/// # Errors
/// When a connection cannot be accepted.
pub async fn serve_http_protected(listener: TcpListener, faults: Arc<FaultSet>, token: String) -> io::Result<()> {
    serve_all(listener, faults, Arc::new(interception::none), Some(ProtectedResource::new(token))).await
}

/// Like [`serve_http`], with an interceptor for each session.
///
/// # Errors
/// When a connection cannot be accepted.
pub async fn serve_http_intercepted(
    listener: TcpListener,
    faults: Arc<FaultSet>,
    interceptors: InterceptorFactory,
) -> io::Result<()> {
    serve_all(listener, faults, interceptors, None).await
}

async fn serve_all(
    listener: TcpListener,
    faults: Arc<FaultSet>,
    interceptors: InterceptorFactory,
    guard: Option<ProtectedResource>,
) -> io::Result<()> {
    let ended = Arc::new(Notify::new());
    let server = Arc::new(Server {
        stateless: Mutex::default(),
        faults,
        interceptors,
        sessions: Mutex::default(),
        listeners: Mutex::default(),
        ended: Arc::clone(&ended),
        guard,
        broken: Arc::default(),
        routes: Routes::default(),
        newest: NewestSession::default(),
        in_order: SessionOrder::default(),
        opening: tokio::sync::Mutex::default(),
        kept: KeptResources::default(),
        get_streams: OpenGetStreams::default(),
        running_calls: RunningCalls::default(),
    });
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            () = ended.notified() => return Ok(()),
        };
        // Send small responses at once.
        let _unsupported = stream.set_nodelay(true);
        let server = Arc::clone(&server);
        let keeper = Arc::clone(&server);
        connections.spawn(async move {
            let title_case = has(&server.faults, HttpFault::HeaderNameCase) && uses_title_case_headers(&stream).await;
            let requests = Arc::new(AtomicUsize::new(0));
            let response = service_fn(move |mut request| {
                let (server, requests) = (Arc::clone(&server), Arc::clone(&requests));
                async move {
                    variant::close_connection(&requests, &server.faults)?;
                    variant::cut_off_body(request.body_mut(), &server.faults).await?;
                    Ok::<_, io::Error>(server.respond(request, title_case).await)
                }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.title_case_headers(has(&keeper.faults, HttpFault::Proxied));
            let changed = if has(&keeper.faults, HttpFault::LengthAndChunks) {
                Ok(framing::with_length(stream))
            } else if has(&keeper.faults, HttpFault::HeaderSpaceKept) {
                Ok(framing::with_space(stream))
            } else {
                Err(stream)
            };
            let stream = match changed {
                Ok(changed) => {
                    let _gone = builder.serve_connection(TokioIo::new(changed), response).await;
                    return;
                }
                Err(stream) => stream,
            };
            let connection = builder.serve_connection(TokioIo::new(stream), response);
            // A client that disconnects does not affect the others.
            if has(&keeper.faults, HttpFault::ConnectionsUnclosed) {
                if let Ok(parts) = connection.without_shutdown().await {
                    keeper.kept.keep_open(parts.io.into_inner());
                }
            } else {
                let _gone = connection.await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Whether the first request of a connection writes header names in title case.
async fn uses_title_case_headers(stream: &TcpStream) -> bool {
    let mut head = [0; 2_048];
    let read = stream.peek(&mut head).await.unwrap_or(0);
    head[..read].windows(11).any(|window| window == b"Mcp-Method:")
}

/// A unique session id that cannot be guessed.
fn new_session_id() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Every `RandomState` has new random keys.
    format!("{:016x}{:016x}", RandomState::new().hash_one(number), RandomState::new().hash_one(number))
}

fn header<'a>(request: &'a Request<Incoming>, name: &str) -> Option<&'a str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

impl Server {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session of a user; with `streams`, all its messages go to its only stream.
    fn new_session(&self, user: User, streams: bool) -> Session {
        Session::open(Arc::clone(&self.faults), (self.interceptors)(), Arc::clone(&self.ended), (user, streams))
    }

    /// The user who makes a request.
    fn user(&self, headers: &HeaderMap) -> User {
        self.guard.as_ref().map_or(User::Anybody, |guard| guard.user(headers))
    }

    /// The session of all stateless requests of a user.
    fn stateless_session(&self, user: User) -> Session {
        let mut sessions = self.stateless.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(user.prefix()).or_insert_with(|| self.new_session(user, false)).clone()
    }

    /// The subscription streams that are still open.
    fn open_subscriptions(&self) -> MutexGuard<'_, Vec<Session>> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(Session::is_running);
        listeners
    }

    async fn respond(&self, mut request: Request<Incoming>, title_case: bool) -> HttpResponse {
        variant::pass_to_server(request.headers_mut(), &self.faults);
        if let Some(rejection) = variant::reject_encoding(request.headers(), &self.faults) {
            return rejection;
        }
        let response = self.serve(request, title_case).await;
        let response = variant::pass_to_client(variant::respell_media_type(response, &self.faults), &self.faults);
        if has(&self.faults, HttpFault::BodiesInPieces) { response::in_pieces(response) } else { response }
    }

    async fn serve(&self, mut request: Request<Incoming>, title_case: bool) -> HttpResponse {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        inject_into_request(request.headers_mut(), &path, &method, title_case, &self.faults);
        let headers = request.headers().clone();
        let request_info =
            RequestInfo { method: &method, path: &path, headers: &headers, message: None, stateless: false };
        if let Some(rejection) = validation::origin(headers.get(HOST), headers.get(ORIGIN)) {
            return inject_into_response(rejection, &request_info, &self.broken, &self.faults).await;
        }
        if let Some(guard) = &self.guard {
            let session = header(&request, "mcp-session-id").unwrap_or_default();
            let in_session = self.sessions().contains_key(session);
            if let Some(response) = guard.respond(&request, in_session, &self.faults) {
                return response;
            }
        }
        let response = match (path.as_str(), &method) {
            ("/mcp", &Method::POST) => {
                self.get_streams.wait_until_closed().await;
                return self.post(request).await;
            }
            ("/messages", &Method::POST) => return self.post_to_stream(request).await,
            ("/mcp", &Method::GET) => self.get_streams.count(self.listen(&request).await, &self.faults),
            ("/mcp", &Method::DELETE) => self.end(&request),
            ("/mcp", _) => text_error(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE"),
            ("/sse", &Method::GET) => self.open_stream(&headers).await,
            _ => text_error(StatusCode::NOT_FOUND, "not found; the MCP endpoint is /mcp"),
        };
        inject_into_response(response, &request_info, &self.broken, &self.faults).await
    }

    async fn post(&self, mut request: Request<Incoming>) -> HttpResponse {
        let refused = validation::media_types(&request);
        if let Some(rejection) = refused.or_else(|| request_form::reject(request.headers(), &self.faults)) {
            return rejection;
        }
        let in_part = request_form::read_partly(&mut request, &self.faults).await;
        let (mut parts, body) = request.into_parts();
        let body = match variant::refuse_body(body, &self.faults) {
            Ok(body) => body,
            Err(refusal) => return *refusal,
        };
        let body = if let Some(in_part) = in_part { Ok(in_part) } else { read(body).await };
        let Ok(body) = body else {
            return text_error(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long");
        };
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            return rpc_error(StatusCode::BAD_REQUEST, PARSE_ERROR, "Parse error");
        };
        if let Some(refusal) = self.kept.refuse(&parts.headers, &message, &self.faults) {
            return refusal;
        }
        if let Some(rejection) =
            self.guard.as_ref().and_then(|guard| guard.reject_call(&parts.headers, &message, &self.faults))
        {
            return rejection;
        }
        let stateless = validation::is_stateless(&parts.headers, &message);
        inject_into_post(&mut parts.headers, &message, stateless, &self.faults);
        if self.running_calls.cancel(&parts.headers, &message, &self.faults) {
            self.ended.notify_one();
        }
        let response = self.post_message(&parts.headers, body, message.clone(), stateless);
        let response = self.routes.respond(&message, response, &self.faults).await;
        // Only the answer is late: what it was asked to do is done at once, so that a cancellation does not overtake it.
        if self.running_calls.are_too_many(&self.faults) {
            self.ended.notify_one();
        }
        let response = self.running_calls.wait(&parts.headers, &message, &self.faults).await.unwrap_or(response);
        let (method, headers) = (&Method::POST, &parts.headers);
        let request_info = RequestInfo { method, path: "/mcp", headers, message: Some(&message), stateless };
        inject_into_response(response, &request_info, &self.broken, &self.faults).await
    }

    async fn post_message(&self, headers: &HeaderMap, body: Bytes, message: Value, stateless: bool) -> HttpResponse {
        if stateless {
            let is_call = message.get("method").is_some_and(|method| method == "tools/call");
            if is_call && !headers.contains_key("mcp-name") && has(&self.faults, HttpFault::NameHeaderRequired) {
                return validation::mismatch(&message, "the Mcp-Name header is missing");
            }
            if let Some(rejection) = validation::stateless(headers, &message) {
                return rejection;
            }
            return self.post_stateless(self.user(headers), body, message).await;
        }
        let session = self.session_named(headers);
        if let Some(rejection) = validation::version(headers) {
            return rejection;
        }
        if message.get("method").is_some_and(|method| method == "initialize") {
            return self.open(self.user(headers), body, message).await;
        }
        let Some(name) = session else {
            return rpc_error(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the Mcp-Session-Id header is missing");
        };
        let Some(session) = self.sessions().get(&name).cloned() else {
            return rpc_error(StatusCode::NOT_FOUND, INVALID_REQUEST, "there is no such session");
        };
        if let Some(rejection) = variant::expire_session(&session.messages, &message, &self.faults) {
            self.sessions().remove(&name);
            return rejection;
        }
        self.newest.wait_for(&name, &message, &self.faults).await;
        let is_method = |name: &str| message.get("method").is_some_and(|method| method == name);
        let shows_others = has(&self.faults, HttpFault::AuthTasksShared)
            && self.user(headers) == User::Second
            && is_method("tasks/get")
            || has(&self.faults, HttpFault::TasksListedToAll) && is_method("tasks/list");
        if shows_others && let Some(response) = self.task_of_anybody(&body, &message).await {
            return response;
        }
        let others = self.sessions().iter().filter(|(id, _)| **id != name).map(|(_, other)| other.clone()).collect();
        client_injection::update_every_session(others, &message, &self.faults).await;
        if has(&self.faults, HttpFault::CancellationEndsSession) && is_method("notifications/cancelled") {
            self.sessions().remove(&name);
        }
        session.post(Post { line: body, message, stateless: false }).await
    }

    /// The first response with a task from the sessions of any user.
    async fn task_of_anybody(&self, line: &Bytes, message: &Value) -> Option<HttpResponse> {
        let sessions: Vec<Session> = self.sessions().values().cloned().collect();
        for session in sessions {
            let post = Post { line: line.clone(), message: message.clone(), stateless: false };
            let (parts, body) = session.post(post).await.into_parts();
            let body = body.collect().await.ok()?.to_bytes();
            if String::from_utf8_lossy(&body).contains("\"taskId\"") {
                return Some(HttpResponse::from_parts(parts, http_body_util::Full::new(body).boxed()));
            }
        }
        None
    }

    /// Opens a session, and adds its id to the response unless that is an error.
    async fn open(&self, user: User, body: Bytes, message: Value) -> HttpResponse {
        let is_only = has(&self.faults, HttpFault::OneSessionRefused);
        let _opening = if is_only { Some(self.opening.lock().await) } else { None };
        if is_only && !self.sessions().is_empty() {
            return rpc_error(StatusCode::BAD_REQUEST, INVALID_REQUEST, "there is a session already");
        }
        let session = self.new_session(user, false);
        let title = message.pointer("/params/clientInfo/title").and_then(Value::as_str).map(str::to_owned);
        let version = message.pointer("/params/protocolVersion").and_then(Value::as_str).map(str::to_owned);
        let mut response = session.post(Post { line: body, message, stateless: false }).await;
        if response.status() != StatusCode::OK || self.sessions().len() >= MAX_SESSIONS {
            return response;
        }
        if is_sessionless(&self.faults) {
            self.sessions().insert(version.unwrap_or_default(), session);
            return response;
        }
        let mut sessions = self.sessions();
        let name = session_id(new_session_id(), title.as_deref(), |id| sessions.contains_key(id), &self.faults);
        response
            .headers_mut()
            .extend(name.parse().ok().map(|value| (hyper::header::HeaderName::from_static("mcp-session-id"), value)));
        let name = format!("{}{name}", user.prefix());
        self.newest.set(&name);
        self.in_order.forget_oldest(&name, &mut sessions, &self.faults);
        if has(&self.faults, HttpFault::OneSession) {
            sessions.clear();
        }
        sessions.insert(name, session);
        drop(sessions);
        response
    }

    /// The id of the session of a request. Without session ids it is the negotiated version, which is all that the
    /// server needs to know.
    fn session_named(&self, headers: &HeaderMap) -> Option<String> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if is_sessionless(&self.faults) {
            return Some(text("mcp-protocol-version").unwrap_or_else(|| "2025-03-26".to_owned()));
        }
        // The session of another user is as good as none.
        text("mcp-session-id").map(|id| format!("{}{id}", self.user(headers).prefix()))
    }

    async fn post_stateless(&self, user: User, line: Bytes, message: Value) -> HttpResponse {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        if method == "subscriptions/listen" {
            let session = self.new_session(user, false);
            self.open_subscriptions().push(session.clone());
            return session.post(Post { line, message, stateless: true }).await;
        }
        let calls = method == "tools/call";
        let post = Post { line: line.clone(), message, stateless: true };
        let response = self.stateless_session(user).post(post).await;
        if calls {
            // Subscribers are notified of what a call changes.
            let listeners = self.open_subscriptions().clone();
            for listener in listeners {
                listener.observe(line.clone()).await;
            }
        }
        response
    }

    /// The session of a GET or DELETE request.
    fn session_of(&self, request: &Request<Incoming>) -> Result<(String, Session), Box<HttpResponse>> {
        if header(request, "mcp-protocol-version") == Some("2026-07-28") {
            return Err(text_error(StatusCode::METHOD_NOT_ALLOWED, "this revision only supports POST").into());
        }
        let Some(name) = self.session_named(request.headers()) else {
            return Err(text_error(StatusCode::BAD_REQUEST, "the Mcp-Session-Id header is missing").into());
        };
        let session = self.sessions().get(&name).cloned();
        match session {
            Some(session) => Ok((name, session)),
            None => Err(text_error(StatusCode::NOT_FOUND, "there is no such session").into()),
        }
    }

    async fn listen(&self, request: &Request<Incoming>) -> HttpResponse {
        let accepts = header(request, "accept").unwrap_or_default();
        if !accepts.contains("text/event-stream") && !accepts.contains("*/*") {
            return text_error(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream");
        }
        match self.session_of(request) {
            Ok((_, session)) => {
                let last = header(request, "last-event-id");
                let all = self.sessions().values().cloned().collect();
                let replay = client_injection::replay_of_any_session(all, last.unwrap_or_default(), &self.faults).await;
                match replay {
                    Some(replay) => replay,
                    None => session.listen(last).await,
                }
            }
            Err(rejection) => *rejection,
        }
    }

    fn end(&self, request: &Request<Incoming>) -> HttpResponse {
        if is_sessionless(&self.faults) || has(&self.faults, HttpFault::DeleteRefused) {
            return text_error(StatusCode::METHOD_NOT_ALLOWED, "no client ends a session here");
        }
        match self.session_of(request) {
            Ok((name, _)) => {
                if !has(&self.faults, HttpFault::SessionSurvivesDelete) {
                    self.sessions().remove(&name);
                }
                empty(StatusCode::NO_CONTENT)
            }
            Err(rejection) => *rejection,
        }
    }

    /// Opens the stream of the HTTP+SSE transport, whose first event is the endpoint.
    async fn open_stream(&self, headers: &HeaderMap) -> HttpResponse {
        let session = self.new_session(self.user(headers), true);
        let takes_json =
            headers.get("accept").and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains("json"));
        let shared = takes_json && has(&self.faults, HttpFault::SseEndpointShared);
        let name = if shared { "shared".to_owned() } else { new_session_id() };
        let mut response = session.stream(&format!("/messages?session={name}")).await;
        self.sessions().insert(name, session);
        if takes_json && has(&self.faults, HttpFault::SseAsText) {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        response
    }

    async fn post_to_stream(&self, request: Request<Incoming>) -> HttpResponse {
        let name = request.uri().query().and_then(|query| query.strip_prefix("session=")).unwrap_or_default();
        let Some(session) = self.sessions().get(name).cloned() else {
            return text_error(StatusCode::NOT_FOUND, "there is no such session");
        };
        let (parts, body) = request.into_parts();
        let body = match variant::refuse_body(body, &self.faults) {
            Ok(body) => body,
            Err(refusal) => return *refusal,
        };
        let Ok(line) = read(body).await else {
            return text_error(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long");
        };
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        let response = session.post(Post { line, message: message.clone(), stateless: false }).await;
        let (method, headers) = (&Method::POST, &parts.headers);
        let request_info =
            RequestInfo { method, path: "/messages", headers, message: Some(&message), stateless: false };
        inject_into_response(response, &request_info, &self.broken, &self.faults).await
    }
}

async fn read(body: Incoming) -> Result<Bytes, ()> {
    let limited = http_body_util::Limited::new(body, MAX_MESSAGE_BYTES);
    limited.collect().await.map(http_body_util::Collected::to_bytes).map_err(drop)
}
