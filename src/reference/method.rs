//! The methods of the server other than those of tools ([`super::tool_method`]), in all revisions.

use serde_json::{Value, json};

use super::call::{CallContext, severity};
use super::client_request::sampling_params;
use super::connection::{Connection, NoResult, Request, Session};
use super::fault::Fault;
use super::identity;
use super::injection::{primitive, task, tool_list};
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Object, RpcError, UNSUPPORTED_VERSION, invalid_params, object,
    quoted,
};
use super::revision::Revision;

const PREFIX: &str = "io.modelcontextprotocol/";
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

impl Connection<'_> {
    /// Processes a request by the rules of its revision.
    pub(super) fn serve(&mut self, request: &Request) -> Result<Object, NoResult> {
        let params = match &request.params {
            None => Object::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(Value::Array(_)) if self.is_active_for(request, Fault::ArrayParamsCrash) => {
                return Err(NoResult::Closed);
            }
            Some(_) => return Err(invalid_params("params must be an object").into()),
        };
        let meta = match params.get("_meta") {
            None => Object::new(),
            Some(Value::Object(meta)) => meta.clone(),
            Some(_) => return Err(invalid_params("_meta must be an object").into()),
        };
        self.reject_unknown_keys(request, &meta)?;
        let method = self.canonical_method(request);
        let mut min_log_severity = if request.revision.is_modern() {
            self.check_request_meta(request, method, params.get("_meta").is_some(), &meta)?
        } else {
            self.session.as_ref().map(|session| session.min_log_severity)
        };
        if self.is_active_for(request, Fault::LogThresholdIgnored) {
            min_log_severity = min_log_severity.map(|_| 0);
        }
        let token = meta.get("progressToken").filter(|token| token.is_string() || token.is_i64());
        let mut context = CallContext {
            revision: request.revision,
            progress_token: token.cloned(),
            min_log_severity,
            notifications: Vec::new(),
        };
        let mut result = self.dispatch(request, method, &params, &mut context)?;
        if request.revision.is_modern() {
            self.mark_modern(&mut result);
        }
        if method == "prompts/get" && self.requires_retry(request, &params) {
            self.make_input_required(request, &mut result);
        }
        if method == "tools/list" {
            tool_list::inject(&mut result, request.revision, self.faults);
        }
        primitive::inject(&mut result, method, request.revision, self.faults);
        task::inject(&mut result, method, request.revision, self.faults);
        Ok(result)
    }

    pub(super) fn is_active_for(&self, request: &Request, fault: Fault) -> bool {
        self.faults.is_active(fault, request.revision)
    }

    /// The method name, normalized if a fault ignores letter case.
    fn canonical_method<'r>(&self, request: &'r Request) -> &'r str {
        METHODS
            .iter()
            .find(|known| known.eq_ignore_ascii_case(&request.method))
            .filter(|_| self.is_active_for(request, Fault::MethodCaseFolded))
            .map_or(request.method.as_str(), |known| *known)
    }

    fn dispatch(
        &mut self,
        request: &Request,
        method: &str,
        params: &Object,
        context: &mut CallContext,
    ) -> Result<Object, NoResult> {
        let revision = request.revision;
        match method {
            "server/discover" if revision.is_modern() && !self.is_active_for(request, Fault::DiscoverRejected) => {
                self.history.discover_called = true;
                Ok(identity::discover(revision, self.faults))
            }
            "initialize" if !revision.is_modern() => self.initialize(request, params),
            "ping" if !revision.is_modern() || self.is_active_for(request, Fault::PingStillServed) => {
                self.ping(request)
            }
            "logging/setLevel" if !revision.is_modern() => self.set_level(request, params),
            "tools/list" => self.list_tools(request, params),
            "tools/call" => self.call(request, params, context),
            _ => self
                .serve_primitive(request, method, params)
                .or_else(|| self.serve_task(request, method, params))
                .unwrap_or_else(|| self.unknown_method(request)),
        }
    }

    fn unknown_method(&self, request: &Request) -> Result<Object, NoResult> {
        let method = request.method.as_str();
        let known_elsewhere = METHODS.iter().any(|known| known.eq_ignore_ascii_case(method));
        if method.starts_with("rpc.") {
            if self.is_active_for(request, Fault::RpcMethodSucceeds) {
                return Ok(Object::new());
            }
        } else if !known_elsewhere {
            if self.is_active_for(request, Fault::UnknownMethodSucceeds) {
                return Ok(Object::new());
            }
            if self.is_active_for(request, Fault::UnknownMethodInvalidParams) {
                return Err(invalid_params("Invalid params").into());
            }
            if self.is_active_for(request, Fault::ReservedCode) {
                return Err(RpcError::new(-32_050, "Unknown method").into());
            }
            if self.is_active_for(request, Fault::LegacyCode) {
                return Err(RpcError::new(-32_001, "Unknown method").into());
            }
        }
        Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", quoted(method))).into())
    }

    /// Faults that reject unknown keys.
    fn reject_unknown_keys(&self, request: &Request, meta: &Object) -> Result<(), RpcError> {
        const RESERVED: &[&str] = &["protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "related-task"];
        const PLAIN: &[&str] = &["progressToken", "traceparent", "tracestate", "baggage"];
        for key in meta.keys() {
            match key.strip_prefix(PREFIX) {
                Some(name) if RESERVED.contains(&name) => {}
                Some(_) if self.is_active_for(request, Fault::ReservedMetaCrash) => {
                    return Err(RpcError::new(INTERNAL_ERROR, "Internal error"));
                }
                None if !PLAIN.contains(&key.as_str()) && self.is_active_for(request, Fault::UnknownMetaRejected) => {
                    return Err(invalid_params("Unknown key in _meta"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Validates the metadata of a stateless request; returns the least severe log level, if any.
    fn check_request_meta(
        &self,
        request: &Request,
        method: &str,
        has_meta: bool,
        meta: &Object,
    ) -> Result<Option<usize>, RpcError> {
        let required = |name: &str| format!("_meta must have {PREFIX}{name}");
        let field = |name: &str| meta.get(&format!("{PREFIX}{name}"));
        if !has_meta && self.is_active_for(request, Fault::MissingMetaServed) {
            return Ok(None);
        }
        match field("protocolVersion") {
            None if has_meta && self.is_active_for(request, Fault::MissingVersionServed) => {}
            Some(Value::String(version)) if version == Revision::V2026_07_28.name() => {}
            Some(Value::String(_)) if self.is_active_for(request, Fault::UnsupportedVersionServed) => {}
            Some(Value::String(version)) => {
                let error = RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version");
                if self.is_active_for(request, Fault::UnsupportedVersionWithoutData) {
                    return Err(error);
                }
                let supported = [Revision::V2026_07_28.name()];
                return Err(error.with_data(json!({"supported": supported, "requested": quoted(version)})));
            }
            _ => return Err(invalid_params(required("protocolVersion"))),
        }
        match field("clientCapabilities") {
            Some(Value::Object(_)) => {}
            None if self.is_active_for(request, Fault::MissingCapabilitiesServed) => {}
            _ => return Err(invalid_params(required("clientCapabilities"))),
        }
        if field("clientInfo").is_none() && self.is_active_for(request, Fault::ClientInfoRequired) {
            return Err(invalid_params(required("clientInfo")));
        }
        if self.is_active_for(request, Fault::NeedsDiscoverFirst)
            && !self.history.discover_called
            && method != "server/discover"
        {
            return Err(RpcError::new(INVALID_REQUEST, "call server/discover first"));
        }
        match field("logLevel") {
            None if self.is_active_for(request, Fault::LogWithoutOptIn) => Ok(Some(0)),
            None => Ok(None),
            Some(level) => match level.as_str().and_then(severity) {
                Some(from) => Ok(Some(from)),
                None if self.is_active_for(request, Fault::LogLevelUnchecked) => Ok(None),
                None => Err(invalid_params(format!("{PREFIX}logLevel must be a log level"))),
            },
        }
    }

    /// Whether this prompt needs a retry, which a server may require even without requesting input.
    fn requires_retry(&self, request: &Request, params: &Object) -> bool {
        let to_object =
            self.is_active_for(request, Fault::Awkward) || self.is_active_for(request, Fault::InterimCaching);
        let first = params.get("name").is_some_and(|name| name == "briefing") && !params.contains_key("requestState");
        request.revision.is_modern() && to_object && first
    }

    /// Turns a result into an `input_required` one.
    fn make_input_required(&self, request: &Request, result: &mut Object) {
        result.retain(|name, _| name == "_meta");
        result.insert("resultType".to_owned(), json!("input_required"));
        result.insert("requestState".to_owned(), json!("briefing-1"));
        if self.is_active_for(request, Fault::InterimCaching) {
            add_caching(result, request.revision, "public");
        }
    }

    /// Adds the members that every result of 2026-07-28 has.
    pub(super) fn mark_modern(&self, result: &mut Object) {
        result.entry("resultType").or_insert_with(|| json!("complete"));
        if let Some(info) = identity::server_info(Revision::V2026_07_28, self.faults)
            && let Value::Object(meta) = result.entry("_meta").or_insert_with(|| json!({}))
        {
            meta.insert(format!("{PREFIX}serverInfo"), info);
        }
    }

    fn initialize(&mut self, request: &Request, params: &Object) -> Result<Object, NoResult> {
        let client = params.get("capabilities").and_then(Value::as_object);
        let (Some(version), Some(client), Some(Value::Object(_))) =
            (params.get("protocolVersion").and_then(Value::as_str), client, params.get("clientInfo"))
        else {
            let text = "initialize needs protocolVersion, capabilities and clientInfo";
            return Err(invalid_params(text).into());
        };
        let revision = request.revision;
        let known = revision.name() == version;
        if !known && self.is_enabled(Fault::UnknownVersionRejected) {
            return Err(invalid_params("Unsupported protocol version").into());
        }
        if version == Revision::V2026_07_28.name() && self.is_enabled(Fault::InitializeErrorWithoutVersions) {
            return Err(invalid_params("initialize is not supported").into());
        }
        if version == Revision::V2026_07_28.name() && self.is_enabled(Fault::Awkward) {
            let supported = [Revision::V2026_07_28.name(), Revision::V2025_11_25.name()];
            let error = RpcError::new(UNSUPPORTED_VERSION, "2026-07-28 does not use initialize");
            return Err(error.with_data(json!({"supported": supported, "requested": version})).into());
        }
        if version == Revision::V2025_11_25.name() && self.is_enabled(Fault::UnusableVersionListed) {
            return Err(invalid_params("Unsupported protocol version").into());
        }
        let echoes = if version == Revision::V2026_07_28.name() {
            self.is_enabled(Fault::InitializeModern)
        } else {
            self.is_enabled(Fault::UnknownVersionEchoed)
        };
        let agreed = if !known && echoes { version } else { revision.name() };
        let result = identity::initialize(agreed, revision, self.faults);
        let client = client.clone();
        let may_ask = |name: &str| client.contains_key(name);
        if self.is_active_for(request, Fault::EarlyRequest) {
            let method = if !may_ask("roots") && may_ask("sampling") { "sampling/createMessage" } else { "roots/list" };
            let params = (method != "roots/list").then(sampling_params);
            self.after_response.push(json!({"jsonrpc": "2.0", "id": "early", "method": method}));
            if let (Some(params), Some(message)) = (params, self.after_response.last_mut()) {
                message["params"] = params;
            }
        }
        let informed = severity("info").unwrap_or_default();
        self.tool_cache = None;
        self.session = Some(Session { revision, client, min_log_severity: informed, grown: false, initialized: false });
        Ok(result)
    }

    fn ping(&self, request: &Request) -> Result<Object, NoResult> {
        if self.is_active_for(request, Fault::PingRejected) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: ping").into());
        }
        let interception = self.session.as_ref().is_some_and(|session| !session.initialized);
        if interception && self.is_active_for(request, Fault::EarlyPingRejected) {
            return Err(RpcError::new(INVALID_REQUEST, "send notifications/initialized first").into());
        }
        if self.is_active_for(request, Fault::PingNotEmpty) {
            return Ok(object(json!({"pong": true})));
        }
        Ok(Object::new())
    }

    fn set_level(&mut self, request: &Request, params: &Object) -> Result<Object, NoResult> {
        let lax = self.is_active_for(request, Fault::SetLevelUnchecked);
        let level = params.get("level").and_then(Value::as_str).and_then(severity);
        let (Some(level), Some(session)) = (level, &mut self.session) else {
            if lax {
                return Ok(Object::new());
            }
            return Err(invalid_params("level must be a log level").into());
        };
        session.min_log_severity = level;
        Ok(Object::new())
    }
}

/// Adds caching hints, if the revision has them.
pub(super) fn add_caching(result: &mut Object, revision: Revision, scope: &str) {
    if revision.is_modern() {
        result.insert("ttlMs".to_owned(), json!(60_000));
        result.insert("cacheScope".to_owned(), json!(scope));
    }
}
