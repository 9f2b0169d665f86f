//! The methods of the server in all revisions: the checks that all of them share, and the handshake.
//!
//! The other groups of methods are in [`super::tool_method`], [`super::primitive_method`] and [`super::task_method`].

use serde_json::{Value, json};

use super::call::{CallContext, severity};
use super::client_request_params::sampling_params;
use super::connection_state::{ConnectionState, NoResult, Request, Session};
use super::fault::Fault;
use super::identity::{self, PREFIX, mark_modern};
use super::injection::{primitive, task, tool_list};
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Object, RpcError, UNSUPPORTED_VERSION, invalid_params,
    notification, object, quoted,
};
use super::pagination::add_caching;
use super::primitive_method::PrimitiveRequest;
use super::revision::Revision;
use super::subscription::Subscriptions;
use super::task_method::Tasks;
use super::tool_method::{ToolRequest, Tools};
use super::variant;

/// All known methods; faults of unknown methods do not apply to them.
const METHODS: &[&str] = &[
    "initialize",
    "server/discover",
    "ping",
    "logging/setLevel",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
];

/// The methods of a connection, with the state that each group of them keeps.
#[derive(Debug)]
pub(super) struct Methods {
    pub(super) tasks: Tasks,
    tools: Tools,
    /// The open subscriptions (2026-07-28).
    subscriptions: Subscriptions,
    /// Whether the client has called `server/discover`, for a fault that requires it.
    discover_called: bool,
}

impl Methods {
    /// The methods of a new connection; `salt` is different on each connection.
    pub(super) fn new(salt: u64) -> Self {
        Self {
            tasks: Tasks::default(),
            tools: Tools::new(salt),
            subscriptions: Subscriptions::default(),
            discover_called: false,
        }
    }

    /// Handles the cancellation of a request.
    pub(super) fn cancel(&mut self, state: &mut ConnectionState<'_>, id: &Value) {
        self.tools.cancel(id);
        self.tasks.cancel(state, id);
        self.subscriptions.cancel(state, id);
    }

    /// Whether a call waits for the client.
    pub(super) fn awaits_client(&self) -> bool {
        self.tools.pending_calls.awaits_client()
    }

    /// Counts a ping, and ends the calls that have waited too long for the client.
    pub(super) fn time_out(&mut self, state: &mut ConnectionState<'_>) {
        self.tools.pending_calls.time_out(state);
    }

    /// Handles a response to a request of the server.
    pub(super) fn receive_response(&mut self, state: &mut ConnectionState<'_>, id: &Value, body: &Object) {
        if !id.as_str().is_some_and(|id| self.tasks.receive_input(state, id)) {
            self.tools.receive_response(state, id, body);
        }
    }

    /// Processes a request by the rules of its revision.
    pub(super) fn serve(&mut self, state: &mut ConnectionState<'_>, request: &Request) -> Result<Object, NoResult> {
        let mut params = match &request.params {
            None => Object::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(Value::Array(_))
                if request.method.ends_with("/list") && state.is_active_for(request, Fault::ArrayParamsCrash) =>
            {
                return Err(NoResult::Closed);
            }
            Some(Value::Null)
                if request.method == "tools/call" && state.is_active_for(request, Fault::NullParamsCrash) =>
            {
                return Err(NoResult::Closed);
            }
            Some(_) => return Err(invalid_params("params must be an object").into()),
        };
        let meta = match params.get("_meta") {
            None => Object::new(),
            Some(Value::Object(meta)) => meta.clone(),
            Some(_) => return Err(invalid_params("_meta must be an object").into()),
        };
        reject_unknown_keys(state, request, &meta)?;
        let method = canonical_method(state, request);
        reject_unknown_members(state, request, method, &params)?;
        variant::restore_params(&mut params, method, request.revision, state.faults);
        let mut min_log_severity = if request.revision.is_modern() {
            self.check_request_meta(state, request, method, params.get("_meta").is_some(), &meta)?
        } else {
            state.session.as_ref().map(|session| session.min_log_severity)
        };
        if state.is_active_for(request, Fault::LogThresholdIgnored) {
            min_log_severity = min_log_severity.map(|_| 0);
        }
        if meta.get("progressToken").is_some_and(Value::is_number)
            && state.is_active_for(request, Fault::IntegerTokenRejected)
        {
            return Err(invalid_params("progressToken must be a string").into());
        }
        let token = meta.get("progressToken").filter(|token| token.is_string() || token.is_i64());
        let mut context = CallContext {
            revision: request.revision,
            progress_token: token.cloned(),
            min_log_severity,
            notifications: Vec::new(),
        };
        let mut result = self.dispatch(state, request, method, &params, &mut context)?;
        if request.revision.is_modern() {
            mark_modern(&mut result, state.faults);
        }
        if method == "prompts/get" && requires_retry(state, request, &params) {
            make_input_required(state, request, &mut result);
        }
        let is_list = matches!(method, "tools/list" | "resources/list" | "prompts/list");
        if is_list && state.is_active_for(request, Fault::ListChangedAfterList) {
            state.after_response.push(notification(&format!("notifications/{method}_changed"), &json!({})));
        }
        if method == "tools/list" {
            tool_list::inject(&mut result, request.revision, state.faults);
        }
        variant::change_result(&mut result, request.revision, state.faults);
        primitive::inject(&mut result, method, request.revision, state.faults);
        task::inject(&mut result, method, request.revision, state.faults);
        Ok(result)
    }

    fn dispatch(
        &mut self,
        state: &mut ConnectionState<'_>,
        request: &Request,
        method: &str,
        params: &Object,
        context: &mut CallContext,
    ) -> Result<Object, NoResult> {
        let revision = request.revision;
        match method {
            "server/discover" if revision.is_modern() && !state.is_active_for(request, Fault::DiscoverRejected) => {
                self.discover_called = true;
                Ok(identity::discover(revision, state.faults))
            }
            "initialize" if !revision.is_modern() => self.initialize(state, request, params),
            "ping" if !revision.is_modern() || state.is_active_for(request, Fault::PingStillServed) => {
                ping(state, request)
            }
            "logging/setLevel" if serves_log_levels(state, request) => set_level(state, request, params),
            "tools/list" => self.tool_request(state, request).list(params),
            "tools/call" => self.tool_request(state, request).call(params, context),
            _ => {
                let salt = self.tools.pagination.salt;
                let (subscriptions, tasks) = (&mut self.subscriptions, &mut self.tasks);
                PrimitiveRequest { state, subscriptions, tasks, salt, request, params }
                    .serve(method)
                    .or_else(|| self.tasks.serve(state, request, method, params))
                    .unwrap_or_else(|| unknown_method(state, request))
            }
        }
    }

    /// Validates the metadata of a stateless request; returns the least severe log level, if any.
    fn check_request_meta(
        &self,
        state: &ConnectionState<'_>,
        request: &Request,
        method: &str,
        has_meta: bool,
        meta: &Object,
    ) -> Result<Option<usize>, RpcError> {
        let required = |name: &str| format!("_meta must have {PREFIX}{name}");
        let field = |name: &str| meta.get(&format!("{PREFIX}{name}"));
        if !has_meta && state.is_active_for(request, Fault::MissingMetaServed) {
            return Ok(None);
        }
        match field("protocolVersion") {
            None if has_meta && state.is_active_for(request, Fault::MissingVersionServed) => {}
            Some(Value::String(version)) if version == Revision::V2026_07_28.name() => {}
            Some(Value::String(_)) if state.is_active_for(request, Fault::UnsupportedVersionServed) => {}
            Some(Value::String(version)) => {
                let error = RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version");
                if state.is_active_for(request, Fault::UnsupportedVersionWithoutData) {
                    return Err(error);
                }
                let supported = [Revision::V2026_07_28.name()];
                return Err(error.with_data(json!({"supported": supported, "requested": quoted(version)})));
            }
            _ => return Err(invalid_params(required("protocolVersion"))),
        }
        if method != "server/discover" && state.is_active_for(request, Fault::ListedVersionRejected) {
            let data = json!({"supported": ["2025-11-25"], "requested": Revision::V2026_07_28.name()});
            return Err(RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(data));
        }
        match field("clientCapabilities") {
            Some(Value::Object(_)) => {}
            None if state.is_active_for(request, Fault::MissingCapabilitiesServed) => {}
            _ => return Err(invalid_params(required("clientCapabilities"))),
        }
        if field("clientInfo").is_none() && state.is_active_for(request, Fault::ClientInfoRequired) {
            return Err(invalid_params(required("clientInfo")));
        }
        if state.is_active_for(request, Fault::NeedsDiscoverFirst)
            && !self.discover_called
            && method != "server/discover"
        {
            return Err(RpcError::new(INVALID_REQUEST, "call server/discover first"));
        }
        match field("logLevel") {
            None if state.is_active_for(request, Fault::LogWithoutOptIn) => Ok(Some(0)),
            None => Ok(None),
            Some(level) => match level.as_str().and_then(severity) {
                Some(from) => Ok(Some(from)),
                None if state.is_active_for(request, Fault::LogLevelUnchecked) => Ok(None),
                None => Err(invalid_params(format!("{PREFIX}logLevel must be a log level"))),
            },
        }
    }

    fn initialize(
        &mut self,
        state: &mut ConnectionState<'_>,
        request: &Request,
        params: &Object,
    ) -> Result<Object, NoResult> {
        let client = params.get("capabilities").and_then(Value::as_object);
        let (Some(version), Some(client), Some(Value::Object(_))) =
            (params.get("protocolVersion").and_then(Value::as_str), client, params.get("clientInfo"))
        else {
            let text = "initialize needs protocolVersion, capabilities and clientInfo";
            return Err(invalid_params(text).into());
        };
        let revision = request.revision;
        let known = revision.name() == version;
        if !known && state.is_enabled(Fault::UnknownVersionRejected) {
            return Err(invalid_params("Unsupported protocol version").into());
        }
        if version == Revision::V2026_07_28.name() && state.is_enabled(Fault::InitializeErrorWithoutVersions) {
            return Err(invalid_params("initialize is not supported").into());
        }
        if version == Revision::V2026_07_28.name() && state.is_enabled(Fault::Awkward) {
            let supported = [Revision::V2026_07_28.name(), Revision::V2025_11_25.name()];
            let error = RpcError::new(UNSUPPORTED_VERSION, "2026-07-28 does not use initialize");
            return Err(error.with_data(json!({"supported": supported, "requested": version})).into());
        }
        if version == Revision::V2025_11_25.name() && state.is_enabled(Fault::UnusableVersionListed) {
            return Err(invalid_params("Unsupported protocol version").into());
        }
        let echoes = if version == Revision::V2026_07_28.name() {
            state.is_enabled(Fault::InitializeModern)
        } else {
            let older = version < revision.name() && state.is_enabled(Fault::OlderVersionEchoed);
            older || state.is_enabled(Fault::UnknownVersionEchoed)
        };
        let agreed = match (known, echoes) {
            (false, true) => version,
            (false, false) if state.is_enabled(Fault::MadeUpVersionOffered) => "2025-01-01",
            _ => revision.name(),
        };
        let result = identity::initialize(agreed, revision, state.faults);
        let client = client.clone();
        let may_ask = |name: &str| client.contains_key(name);
        if state.is_active_for(request, Fault::EarlyRequest) {
            let method = if !may_ask("roots") && may_ask("sampling") { "sampling/createMessage" } else { "roots/list" };
            let params = (method != "roots/list").then(sampling_params);
            state.after_response.push(json!({"jsonrpc": "2.0", "id": "early", "method": method}));
            if let (Some(params), Some(message)) = (params, state.after_response.last_mut()) {
                message["params"] = params;
            }
        }
        let informed = severity("info").unwrap_or_default();
        self.tools.forget_list();
        state.session =
            Some(Session { revision, client, min_log_severity: informed, grown: false, initialized: false });
        Ok(result)
    }

    fn tool_request<'r, 'a>(
        &'r mut self,
        state: &'r mut ConnectionState<'a>,
        request: &'r Request,
    ) -> ToolRequest<'r, 'a> {
        let Self { tools, tasks, subscriptions, .. } = self;
        ToolRequest { state, tools, tasks, subscriptions, request }
    }
}

/// The method name, normalized if a fault ignores letter case.
fn canonical_method<'r>(state: &ConnectionState<'_>, request: &'r Request) -> &'r str {
    METHODS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(&request.method))
        .filter(|_| state.is_active_for(request, Fault::MethodCaseFolded))
        .map_or(request.method.as_str(), |known| *known)
}

fn unknown_method(state: &ConnectionState<'_>, request: &Request) -> Result<Object, NoResult> {
    let method = request.method.as_str();
    let known_elsewhere = METHODS.iter().any(|known| known.eq_ignore_ascii_case(method));
    if method.starts_with("rpc.") {
        if state.is_active_for(request, Fault::RpcMethodSucceeds) {
            return Ok(Object::new());
        }
    } else if !known_elsewhere {
        if state.is_active_for(request, Fault::UnknownMethodSucceeds) {
            return Ok(Object::new());
        }
        if state.is_active_for(request, Fault::UnknownMethodInvalidParams) {
            return Err(invalid_params("Invalid params").into());
        }
        if state.is_active_for(request, Fault::ReservedCode) {
            return Err(RpcError::new(-32_050, "Unknown method").into());
        }
        if state.is_active_for(request, Fault::LegacyCode) {
            return Err(RpcError::new(-32_001, "Unknown method").into());
        }
    }
    Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", quoted(method))).into())
}

/// A fault that rejects unknown members of the parameters.
fn reject_unknown_members(
    state: &ConnectionState<'_>,
    request: &Request,
    method: &str,
    params: &Object,
) -> Result<(), RpcError> {
    const KNOWN: &[&str] = &["_meta", "name", "arguments", "uri", "task", "inputResponses", "requestState"];
    let is_use = matches!(method, "tools/call" | "resources/read" | "prompts/get");
    let is_unknown = |name: &String| !KNOWN.contains(&name.as_str());
    if is_use && params.keys().any(is_unknown) && state.is_active_for(request, Fault::UnknownMemberRejectedByCalls) {
        return Err(invalid_params("Unknown member in params"));
    }
    Ok(())
}

/// Faults that reject unknown keys.
fn reject_unknown_keys(state: &ConnectionState<'_>, request: &Request, meta: &Object) -> Result<(), RpcError> {
    const RESERVED: &[&str] = &["protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "related-task"];
    const PLAIN: &[&str] = &["progressToken", "traceparent", "tracestate", "baggage"];
    for key in meta.keys() {
        match key.strip_prefix(PREFIX) {
            Some(name) if RESERVED.contains(&name) => {}
            Some(_) if state.is_active_for(request, Fault::ReservedMetaCrash) => {
                return Err(RpcError::new(INTERNAL_ERROR, "Internal error"));
            }
            None if !PLAIN.contains(&key.as_str()) && state.is_active_for(request, Fault::UnknownMetaRejected) => {
                return Err(invalid_params("Unknown key in _meta"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether this prompt needs a retry, which a server may require even without requesting input.
fn requires_retry(state: &ConnectionState<'_>, request: &Request, params: &Object) -> bool {
    let insists = state.is_active_for(request, Fault::Awkward) || state.is_active_for(request, Fault::InterimCaching);
    let first = params.get("name").is_some_and(|name| name == "briefing") && !params.contains_key("requestState");
    request.revision.is_modern() && insists && first
}

/// Turns a result into an `input_required` one.
fn make_input_required(state: &ConnectionState<'_>, request: &Request, result: &mut Object) {
    result.retain(|name, _| name == "_meta");
    result.insert("resultType".to_owned(), json!("input_required"));
    result.insert("requestState".to_owned(), json!("briefing-1"));
    if state.is_active_for(request, Fault::InterimCaching) {
        add_caching(result, request.revision, "public");
    }
}

fn ping(state: &ConnectionState<'_>, request: &Request) -> Result<Object, NoResult> {
    if state.is_active_for(request, Fault::PingRejected) {
        return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: ping").into());
    }
    let is_early = state.session.as_ref().is_some_and(|session| !session.initialized);
    if is_early && state.is_active_for(request, Fault::EarlyPingRejected) {
        return Err(RpcError::new(INVALID_REQUEST, "send notifications/initialized first").into());
    }
    if state.is_active_for(request, Fault::PingNotEmpty) {
        return Ok(object(json!({"pong": true})));
    }
    Ok(Object::new())
}

/// Whether a level for log messages can be set.
fn serves_log_levels(state: &ConnectionState<'_>, request: &Request) -> bool {
    let without = [Fault::SetLevelNotFound, Fault::WithoutTools];
    !request.revision.is_modern() && !without.into_iter().any(|fault| state.is_active_for(request, fault))
}

fn set_level(state: &mut ConnectionState<'_>, request: &Request, params: &Object) -> Result<Object, NoResult> {
    let lax = state.is_active_for(request, Fault::SetLevelUnchecked);
    let level = params.get("level").and_then(Value::as_str).and_then(severity);
    let (Some(level), Some(session)) = (level, &mut state.session) else {
        if lax {
            return Ok(Object::new());
        }
        return Err(invalid_params("level must be a log level").into());
    };
    session.min_log_severity = level;
    Ok(Object::new())
}
