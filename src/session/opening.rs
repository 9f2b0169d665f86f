//! Opens sessions: starts or reaches the server, and agrees on the revision.

use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Value, json};

use super::Session;
use super::client_parameters::{initialize_params, stateless_meta};
use super::http_failure::{HttpFailure, http_denial, http_rejection};
use super::launch::{StartConditions, connect};
use super::reply::ClientResponder;
use super::response_sign::{response_to, sign_of};
use crate::client::{Connection, HostState, LaunchError, Responder, WaitOutcome};
use crate::context::{Context, RequestKind, SessionPace};
use crate::limits::{IDLE_SHARE_OF_STARTUP, MIN_IDLE_TIME, OTHER_ANSWER_WAIT};
use crate::spec::{Era, Revision, VersionName};
use crate::transcript::{Entry, Event};
use crate::wire::{FramingError, MessageKind};

/// The opening request of the stateless era.
const DISCOVER: &str = "server/discover";

/// The reason why a connection could not be opened in a revision.
#[derive(Debug)]
pub(crate) enum OpeningFailure {
    /// The process could not be started.
    NotStarted(LaunchError),
    /// It exited, or closed its output, before it answered.
    Ended,
    /// It did not answer in time.
    Silent,
    /// It did not answer, and was idle for this long.
    Idle(Duration),
    /// It did not answer, but sends other messages of JSON-RPC.
    Unanswered,
    /// It exceeded the output limit.
    CutOff,
    /// It wrote a message that cannot be read.
    Unreadable(FramingError),
    /// It echoed the request.
    Echo,
    /// It answered over HTTP without a message.
    Http(HttpFailure),
    /// It answered with an error.
    Error(Value),
    /// It answered with a result that opens no session.
    Unusable(Value),
    /// It supports another revision.
    Other(String),
}

impl OpeningFailure {
    /// Whether the process lives, and did not answer in time.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self, Self::Silent | Self::Idle(_) | Self::Unanswered)
    }

    /// Whether the server ended instead of answering.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// Whether the server answered, and refused to be opened.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Error(_) => true,
            Self::Http(failure) => !failure.broke_off,
            _ => false,
        }
    }

    /// The reason, as the end of the sentence "the server ...".
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) => format!("could not be started: {error}"),
            Self::Ended => "exited before it answered the first message".to_owned(),
            Self::Silent => "did not answer the first message in time".to_owned(),
            Self::Idle(time) => format!("did not answer the first message, and was idle for {time:.0?}"),
            Self::Unanswered => "does not answer the first message, although it sends others".to_owned(),
            Self::CutOff => {
                "exceeded the output limit before it answered the first message, and was stopped".to_owned()
            }
            Self::Unreadable(damage) => format!("answers the first message with a line that {}", damage.describe()),
            Self::Echo => "echoes its input".to_owned(),
            Self::Http(http_failure) => {
                format!("answers the first message without a message: {}", http_failure.description)
            }
            Self::Error(error) => format!("answers the first message with the error {error}"),
            Self::Unusable(_) => "answers the first message with an unusable result".to_owned(),
            Self::Other(version) => format!("supports {version}"),
        }
    }
}

/// A connection that could not be opened, with the reason.
#[derive(Debug)]
pub(crate) struct RejectedOpening {
    pub(crate) reason: OpeningFailure,
    pub(crate) connection: Option<Connection>,
}

impl From<LaunchError> for RejectedOpening {
    fn from(error: LaunchError) -> Self {
        Self { reason: OpeningFailure::NotStarted(error), connection: None }
    }
}

impl Session {
    /// Starts or reaches the server, and sends nothing.
    ///
    /// # Errors
    /// When the server cannot be started.
    pub(crate) fn connect(
        context: &Context,
        revision: Revision,
        capabilities: Value,
        purpose: String,
        start: StartConditions,
    ) -> Result<Self, LaunchError> {
        let (options, replies) = (context.record_options(&purpose), ClientResponder::default());
        let responder = Responder::new(capabilities.clone(), replies.answer());
        let connection = connect(context, revision, responder, start, options)?;
        context.count_launch();
        let known = (context.answer_times.of(revision), SessionPace::new(&context.slow_server));
        let mut session = Self::unopened(connection, revision, capabilities, replies, purpose, known);
        session.is_only = context.has_one_session;
        Ok(session)
    }

    /// Starts or reaches the server, and opens it in a revision.
    ///
    /// With `insist`, opens a stateless server even if its response to `server/discover` does not list the revision.
    ///
    /// # Errors
    /// When the server cannot be started, or does not agree on the revision; with the connection, if there is one.
    pub(crate) async fn open(
        context: &Context,
        revision: Revision,
        capabilities: Value,
        purpose: String,
        insist: bool,
    ) -> Result<Self, RejectedOpening> {
        let session = Self::connect(context, revision, capabilities, purpose, StartConditions::default())?;
        session.open_until(context, insist, (std::future::pending(), || {})).await
    }

    /// Like [`Self::open`], with a process that is started in another way. Insists on the revision.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub(crate) async fn open_started(
        context: &Context,
        revision: Revision,
        capabilities: Value,
        purpose: String,
        start: StartConditions,
    ) -> Result<Self, RejectedOpening> {
        let session = Self::connect(context, revision, capabilities, purpose, start)?;
        session.open_until(context, true, (std::future::pending(), || {})).await
    }

    /// Opens a session in its revision, unless the future completes before that. The function is
    /// called when the opening request has gone unanswered for the startup timeout, before anything else is tried.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub(crate) async fn open_until(
        mut self,
        context: &Context,
        insist: bool,
        (timed_out, on_silence): (impl Future<Output = ()>, impl FnOnce()),
    ) -> Result<Self, RejectedOpening> {
        let revision = self.revision;
        let (began, limit) = (Instant::now(), self.pace.opening_limit(context.plan.startup_timeout));
        let opened = tokio::select! {
            opened = self.request_opening(limit, insist) => Some(opened),
            () = timed_out => None,
        };
        let opened = match opened {
            Some(Err(silence)) if silence.is_silence() => {
                on_silence();
                // A response with the id of no request ends the wait as well.
                let is_recorded = |entry: &Arc<Entry>| matches!(entry.event, Event::TimedOut { .. });
                if !self.connection.entries_from(0).iter().any(is_recorded) {
                    self.connection.record(Event::TimedOut { waited: began.elapsed() });
                }
                self.find_other_answer(silence).await
            }
            Some(opened) => opened,
            None => {
                self.connection.record(Event::TimedOut { waited: began.elapsed() });
                match revision.era() {
                    // What another process shows decides about this one as well.
                    Era::Handshake => Err(OpeningFailure::Silent),
                    Era::Stateless => self.find_other_answer(OpeningFailure::Silent).await,
                }
            }
        };
        match opened {
            Ok(()) => {
                context.package_runner.resolve(&self.connection);
                Ok(self)
            }
            Err(reason) => {
                let reason = self.with_end_of_process(context, reason).await;
                Err(RejectedOpening { reason, connection: Some(self.connection) })
            }
        }
    }

    /// The reason why the server was not opened, which is its end if a process that all connections share ended.
    async fn with_end_of_process(&self, context: &Context, reason: OpeningFailure) -> OpeningFailure {
        let broke_off = matches!(&reason, OpeningFailure::Http(failure) if failure.broke_off) || reason.is_end();
        if !broke_off || !context.shares_own_process() {
            return reason;
        }
        match context.host_state().await {
            HostState::Ended { status, .. } => {
                self.connection.record(Event::Exited { status });
                OpeningFailure::Ended
            }
            HostState::Listening | HostState::Unreachable => reason,
        }
    }

    async fn request_opening(&mut self, limit: Duration, insist: bool) -> Result<(), OpeningFailure> {
        match self.revision.era() {
            Era::Handshake => self.initialize(limit).await,
            Era::Stateless => self.discover(limit, insist).await,
        }
    }

    /// Finds out whether a server that has not answered the opening request serves or sends anything else.
    async fn find_other_answer(&mut self, silence: OpeningFailure) -> Result<(), OpeningFailure> {
        let limit = self.pace.opening_limit(OTHER_ANSWER_WAIT);
        match self.revision.era() {
            Era::Stateless => {
                self.answer_times.record(&RequestKind::opening(DISCOVER), false);
                if self.serves_stateless_requests(limit).await { Ok(()) } else { Err(silence) }
            }
            Era::Handshake => {
                if !sends_messages(&self.connection.entries_from(0)) {
                    // The one request that a client may send before the handshake.
                    let ping = json!({ "jsonrpc": "2.0", "id": self.new_id(), "method": "ping" });
                    self.send(&ping, None).await;
                    let sign = |entries: &[Arc<Entry>]| sends_messages(entries).then_some(());
                    self.connection.wait(0, limit, sign).await;
                }
                let sends_others = sends_messages(&self.connection.entries_from(0));
                Err(if sends_others { OpeningFailure::Unanswered } else { silence })
            }
        }
    }

    /// Opens the session by a handshake.
    ///
    /// A result that names no version of the protocol opens it as well, so that the server is judged by this result and
    /// by everything else that it does.
    async fn initialize(&mut self, limit: Duration) -> Result<(), OpeningFailure> {
        let params = initialize_params(self.revision.as_str(), &self.parameters.client_capabilities);
        let result = self.send_opening("initialize", params, limit).await?;
        match VersionName::of(&result["protocolVersion"]) {
            name if name.means(self.revision) => {}
            VersionName::Valid(version) => return Err(OpeningFailure::Other(version.to_owned())),
            VersionName::Altered(other) => return Err(OpeningFailure::Other(other.as_str().to_owned())),
            VersionName::Invalid if has_any(&result, &INITIALIZE_MEMBERS) => self.has_unknown_revision = true,
            VersionName::Invalid => {
                self.send_initialized().await;
                return self.open_by_list(result, limit).await;
            }
        }
        self.parameters.opening = Some(result);
        self.send_initialized().await;
        Ok(())
    }

    async fn send_initialized(&self) {
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), None).await;
    }

    /// Opens a session of the stateless era.
    ///
    /// A result whose `supportedVersions` is no list of versions opens it as well, so that it is judged.
    async fn discover(&mut self, limit: Duration, insist: bool) -> Result<(), OpeningFailure> {
        let params = json!({ "_meta": stateless_meta(&self.parameters.client_capabilities) });
        // Silence that is known from another process is not waited for again.
        let opening_limit = self.answer_times.limit(&RequestKind::opening(DISCOVER), limit);
        let result = match self.send_opening(DISCOVER, params, opening_limit).await {
            Err(OpeningFailure::Error(error)) if insist => {
                let is_served = self.serves_stateless_requests(limit).await;
                return if is_served { Ok(()) } else { Err(OpeningFailure::Error(error)) };
            }
            opened => opened?,
        };
        let listed = result["supportedVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = || listed.iter().map(VersionName::of);
        let is_listed = names().any(|name| name.means(self.revision));
        let newest_other = names().filter_map(|name| match name {
            VersionName::Valid(version) => Some(version),
            VersionName::Altered(_) | VersionName::Invalid => None,
        });
        if !is_listed && !insist {
            let is_list = result["supportedVersions"].is_array();
            match newest_other.max() {
                Some(other) => return Err(OpeningFailure::Other(other.to_owned())),
                None if !is_list && result.get("supportedVersions").is_some() => {}
                None if self.serves_stateless_requests(limit).await => {}
                None if is_list => return Err(OpeningFailure::Other(String::new())),
                None => return Err(OpeningFailure::Unusable(result)),
            }
        }
        self.parameters.opening = Some(result);
        Ok(())
    }

    /// Opens a session with a result of `initialize` that has none of its members, if the server lists tools.
    async fn open_by_list(&mut self, result: Value, limit: Duration) -> Result<(), OpeningFailure> {
        match self.list_tools_once(json!({}), limit).await {
            Some(response) if response.pointer("/result/tools").is_some_and(Value::is_array) => {
                self.has_unknown_revision = true;
                self.parameters.opening = Some(result);
                Ok(())
            }
            _ => Err(OpeningFailure::Unusable(result)),
        }
    }

    /// Whether the server serves the stateless era although `server/discover` does not say so, as clients may skip that
    /// request. A result of that era has a `resultType`; one of an older era proves nothing.
    async fn serves_stateless_requests(&mut self, limit: Duration) -> bool {
        let params = json!({ "_meta": stateless_meta(&self.parameters.client_capabilities) });
        let response = self.list_tools_once(params, limit).await;
        response.is_some_and(|response| response.pointer("/result/resultType").is_some())
    }

    /// The response to `tools/list`, if there is one.
    async fn list_tools_once(&mut self, params: Value, limit: Duration) -> Option<Value> {
        let id = self.new_id();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params }), None).await;
        let id = json!(id);
        match self.connection.wait(0, limit, |entries| response_to(entries, &id)).await {
            WaitOutcome::Ready(response) => Some(response),
            WaitOutcome::TimedOut | WaitOutcome::Closed => None,
        }
    }

    async fn send_opening(&mut self, method: &str, params: Value, limit: Duration) -> Result<Value, OpeningFailure> {
        let id = self.new_id();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }), None).await;
        let echoed = |entries: &[Arc<Entry>]| {
            entries.iter().any(|entry| {
                entry.received().is_some_and(
                    |value| matches!(MessageKind::of(value), MessageKind::Request { method: m, .. } if m == method),
                )
            })
        };
        let id = json!(id);
        let idle = self.pace.opening_limit(MIN_IDLE_TIME.max(limit / IDLE_SHARE_OF_STARTUP));
        let began = Instant::now();
        let sign =
            |entries: &[Arc<Entry>]| if echoed(entries) { Some(None) } else { sign_of(entries, &[], &id).map(Some) };
        let waited = self.connection.wait_for_start(0, limit, Duration::ZERO, idle, sign).await;
        let settled = match waited {
            WaitOutcome::Ready(None) => return Err(OpeningFailure::Echo),
            WaitOutcome::Ready(Some(sign)) => self.resolve_sign(0, &id, sign).await,
            WaitOutcome::TimedOut => {
                let rejection = http_rejection(&self.connection.entries_from(0));
                let waited = began.elapsed().min(limit);
                self.connection.record(Event::TimedOut { waited });
                let silent = if waited < limit { OpeningFailure::Idle(idle) } else { OpeningFailure::Silent };
                return Err(rejection.map_or(silent, OpeningFailure::Http));
            }
            WaitOutcome::Closed if self.connection.has_overflowed() => return Err(OpeningFailure::CutOff),
            WaitOutcome::Closed if self.connection.is_http() => {
                return Err(self.http_failure().map_or(OpeningFailure::Ended, OpeningFailure::Http));
            }
            WaitOutcome::Closed => return Err(OpeningFailure::Ended),
        };
        if let Some(opening) = self.connection.opening_time() {
            self.pace.record_opening(opening);
        }
        let response = settled.map_err(|damage| match damage {
            Some(damage) => OpeningFailure::Unreadable(damage),
            None if self.connection.has_overflowed() => OpeningFailure::CutOff,
            None => self.http_failure().map_or(OpeningFailure::Silent, OpeningFailure::Http),
        })?;
        if let Some(result) = response.get("result") {
            return Ok(result.clone());
        }
        let denial = http_denial(&self.connection.entries_from(0));
        Err(match (denial, response.get("error")) {
            (Some(denial), _) => OpeningFailure::Http(denial),
            (None, Some(error)) => OpeningFailure::Error(error.clone()),
            (None, None) => OpeningFailure::Unusable(response),
        })
    }
}

/// Whether a server sends messages of JSON-RPC, other than copies of what the client sent.
fn sends_messages(entries: &[Arc<Entry>]) -> bool {
    let is_copy = |value: &Value| entries.iter().any(|entry| entry.sent() == Some(value));
    let is_message = |value: &Value| {
        value["jsonrpc"] == "2.0" && !matches!(MessageKind::of(value), MessageKind::Unknown | MessageKind::Batch(_))
    };
    entries.iter().filter_map(|entry| entry.received()).any(|value| is_message(value) && !is_copy(value))
}

/// The members by which a result is recognized as one of `initialize`.
const INITIALIZE_MEMBERS: [&str; 4] = ["protocolVersion", "capabilities", "serverInfo", "instructions"];

/// Whether a value is an object with one of these members.
fn has_any(value: &Value, members: &[&str]) -> bool {
    members.iter().any(|member| value.get(member).is_some())
}
