//! How each method is served, in both eras.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{self, Reply, Turn, severity};
use super::connection::{Connection, Offered, Request, Session, Stop, Waiting, invalid_params};
use super::deviation::{calling, listing as listing_deviation};
use super::fault::Fault;
use super::identity;
use super::listing::{self, NoPage};
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Object, Refusal, UNSUPPORTED_VERSION,
    notification, object, quoted,
};
use super::resource;
use super::revision::Revision;
use super::tool::{self, Offer};

const PREFIX: &str = "io.modelcontextprotocol/";
/// Every method that some revision has here; no fault takes one of them for an unknown one.
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
];

impl Connection<'_> {
    /// Serves a request by the rules of its revision.
    pub(super) fn serve(&mut self, request: &Request) -> Result<Object, Stop> {
        let params = match &request.params {
            None => Object::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(Value::Array(_)) if self.fails(request, Fault::ArrayParamsCrash) => {
                return Err(Stop::Ended);
            }
            Some(_) => return Err(invalid_params("params must be an object").into()),
        };
        let meta = match params.get("_meta") {
            None => Object::new(),
            Some(Value::Object(meta)) => meta.clone(),
            Some(_) => return Err(invalid_params("_meta must be an object").into()),
        };
        self.refuse_keys(request, &meta)?;
        let method = self.canonical(request);
        let log_from = if request.revision.is_modern() {
            self.check_metadata(request, method, params.get("_meta").is_some(), &meta)?
        } else {
            self.session.as_ref().map(|session| session.log_from)
        };
        let token = meta
            .get("progressToken")
            .filter(|token| token.is_string() || token.is_i64());
        let mut turn = Turn {
            revision: request.revision,
            progress_token: token.cloned(),
            log_from,
            notifications: Vec::new(),
        };
        let mut result = self.dispatch(request, method, &params, &mut turn)?;
        if request.revision.is_modern() {
            self.mark_modern(&mut result);
        }
        if method == "tools/list" {
            listing_deviation::deviate(&mut result, request.revision, self.faults);
        }
        Ok(result)
    }

    fn fails(&self, request: &Request, fault: Fault) -> bool {
        self.faults.shows(fault, request.revision)
    }

    /// The method as the server knows it, which is as it was sent, but for a fault.
    fn canonical<'r>(&self, request: &'r Request) -> &'r str {
        METHODS
            .iter()
            .find(|known| known.eq_ignore_ascii_case(&request.method))
            .filter(|_| self.fails(request, Fault::MethodCaseFolded))
            .map_or(request.method.as_str(), |known| *known)
    }

    fn dispatch(
        &mut self,
        request: &Request,
        method: &str,
        params: &Object,
        turn: &mut Turn,
    ) -> Result<Object, Stop> {
        let revision = request.revision;
        match method {
            "server/discover" if revision.is_modern() => {
                self.discovered = true;
                Ok(identity::discover(revision, self.faults))
            }
            "initialize" if !revision.is_modern() => self.initialize(request, params),
            "ping" if !revision.is_modern() || self.fails(request, Fault::PingStillServed) => {
                self.ping(request)
            }
            "logging/setLevel" if !revision.is_modern() => self.set_level(params),
            "tools/list" => self.list_tools(request, params),
            "tools/call" => self.call(request, params, turn),
            "resources/list" => cached(
                listing::page("resources", &resource::listed(revision), params),
                "resources",
                revision,
            ),
            "resources/templates/list" => {
                let templates = resource::templates(revision);
                cached(
                    listing::page("templates", &templates, params),
                    "resourceTemplates",
                    revision,
                )
            }
            "resources/read" => {
                let mut result = resource::read(params, revision)?;
                add_caching(&mut result, revision, "public");
                Ok(result)
            }
            _ => self.unknown_method(request),
        }
    }

    fn unknown_method(&self, request: &Request) -> Result<Object, Stop> {
        let method = request.method.as_str();
        let code = if self.fails(request, Fault::ReservedCode) {
            -32_050
        } else if self.fails(request, Fault::LegacyCode) {
            -32_001
        } else {
            METHOD_NOT_FOUND
        };
        let known_elsewhere = METHODS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(method));
        if method.starts_with("rpc.") {
            if self.fails(request, Fault::RpcMethodSucceeds) {
                return Ok(Object::new());
            }
        } else if !known_elsewhere {
            if self.fails(request, Fault::UnknownMethodSucceeds) {
                return Ok(Object::new());
            }
            if self.fails(request, Fault::UnknownMethodInvalidParams) {
                return Err(invalid_params("Invalid params").into());
            }
        }
        Err(Refusal::new(code, format!("Method not found: {}", quoted(method))).into())
    }

    /// The faults of a server that looks too closely at keys it does not know.
    fn refuse_keys(&self, request: &Request, meta: &Object) -> Result<(), Refusal> {
        const RESERVED: &[&str] = &[
            "protocolVersion",
            "clientInfo",
            "clientCapabilities",
            "logLevel",
            "related-task",
        ];
        const PLAIN: &[&str] = &["progressToken", "traceparent", "tracestate", "baggage"];
        for key in meta.keys() {
            match key.strip_prefix(PREFIX) {
                Some(name) if RESERVED.contains(&name) => {}
                Some(_) if self.fails(request, Fault::ReservedMetaCrash) => {
                    return Err(Refusal::new(INTERNAL_ERROR, "Internal error"));
                }
                None if !PLAIN.contains(&key.as_str())
                    && self.fails(request, Fault::UnknownMetaRefused) =>
                {
                    return Err(invalid_params("Unknown key in _meta"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks the metadata that every modern request carries; the least severity to log, if any.
    fn check_metadata(
        &self,
        request: &Request,
        method: &str,
        has_meta: bool,
        meta: &Object,
    ) -> Result<Option<usize>, Refusal> {
        let required = |name: &str| format!("_meta must have {PREFIX}{name}");
        let field = |name: &str| meta.get(&format!("{PREFIX}{name}"));
        if !has_meta && self.fails(request, Fault::MissingMetaServed) {
            return Ok(None);
        }
        match field("protocolVersion") {
            None if has_meta && self.fails(request, Fault::MissingVersionServed) => {}
            Some(Value::String(version)) if version == Revision::V2026_07_28.name() => {}
            Some(Value::String(_)) if self.fails(request, Fault::UnsupportedVersionServed) => {}
            Some(Value::String(version)) => {
                let refusal = Refusal::new(UNSUPPORTED_VERSION, "Unsupported protocol version");
                if self.fails(request, Fault::UnsupportedVersionBare) {
                    return Err(refusal);
                }
                let supported = [Revision::V2026_07_28.name()];
                return Err(refusal
                    .with_data(json!({"supported": supported, "requested": quoted(version)})));
            }
            _ => return Err(invalid_params(required("protocolVersion"))),
        }
        match field("clientCapabilities") {
            Some(Value::Object(_)) => {}
            None if self.fails(request, Fault::MissingCapabilitiesServed) => {}
            _ => return Err(invalid_params(required("clientCapabilities"))),
        }
        if field("clientInfo").is_none() && self.fails(request, Fault::ClientInfoRequired) {
            return Err(invalid_params(required("clientInfo")));
        }
        if self.fails(request, Fault::NeedsDiscoverFirst)
            && !self.discovered
            && method != "server/discover"
        {
            return Err(Refusal::new(INVALID_REQUEST, "server/discover comes first"));
        }
        match field("logLevel") {
            None if self.fails(request, Fault::LogWithoutOptIn) => Ok(Some(0)),
            None => Ok(None),
            Some(level) => match level.as_str().and_then(severity) {
                Some(from) => Ok(Some(from)),
                None => Err(invalid_params(format!("{PREFIX}logLevel is no log level"))),
            },
        }
    }

    /// Adds what every result of the stateless era has.
    pub(super) fn mark_modern(&self, result: &mut Object) {
        result.insert("resultType".to_owned(), json!("complete"));
        if let Some(info) = identity::server_info(Revision::V2026_07_28, self.faults) {
            result.insert(
                "_meta".to_owned(),
                json!({ format!("{PREFIX}serverInfo"): info }),
            );
        }
    }

    fn initialize(&mut self, request: &Request, params: &Object) -> Result<Object, Stop> {
        let client = params.get("capabilities").and_then(Value::as_object);
        let (Some(version), Some(client), Some(Value::Object(_))) = (
            params.get("protocolVersion").and_then(Value::as_str),
            client,
            params.get("clientInfo"),
        ) else {
            let text = "initialize needs protocolVersion, capabilities and clientInfo";
            return Err(invalid_params(text).into());
        };
        let revision = request.revision;
        let known = revision.name() == version;
        if !known && self.has(Fault::UnknownVersionRefused) {
            return Err(invalid_params("Unsupported protocol version").into());
        }
        let agreed = if !known && self.has(Fault::UnknownVersionEchoed) {
            version
        } else {
            revision.name()
        };
        let result = identity::initialize(agreed, revision, self.faults);
        let client = client.clone();
        let may_ask = |name: &str| client.contains_key(name);
        if self.fails(request, Fault::EarlyRequest) {
            let method = if !may_ask("roots") && may_ask("sampling") {
                "sampling/createMessage"
            } else {
                "roots/list"
            };
            let params = (method != "roots/list").then(sampling_params);
            self.afterwards
                .push(json!({"jsonrpc": "2.0", "id": "early", "method": method}));
            if let (Some(params), Some(message)) = (params, self.afterwards.last_mut()) {
                message["params"] = params;
            }
        }
        let informed = severity("info").unwrap_or_default();
        self.offered = None;
        self.session = Some(Session {
            revision,
            client,
            log_from: informed,
            grown: false,
        });
        Ok(result)
    }

    fn ping(&self, request: &Request) -> Result<Object, Stop> {
        if self.fails(request, Fault::PingRefused) {
            return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found: ping").into());
        }
        if self.fails(request, Fault::PingNotEmpty) {
            return Ok(object(json!({"pong": true})));
        }
        Ok(Object::new())
    }

    fn set_level(&mut self, params: &Object) -> Result<Object, Stop> {
        let level = params
            .get("level")
            .and_then(Value::as_str)
            .and_then(severity);
        let (Some(level), Some(session)) = (level, &mut self.session) else {
            return Err(invalid_params("level must be a log level").into());
        };
        session.log_from = level;
        Ok(Object::new())
    }

    /// The definitions of every tool that the client is offered, made once as long as they last.
    fn tools(&mut self, revision: Revision) -> Arc<[Object]> {
        let session = self.session.as_ref().filter(|_| !revision.is_modern());
        let grown = session.is_some_and(|session| session.grown);
        if let Some(offered) = &self.offered
            && (offered.revision, offered.grown) == (revision, grown)
        {
            return Arc::clone(&offered.tools);
        }
        let offer = Offer {
            grown,
            questions: session.map(questions).unwrap_or_default(),
        };
        let mut tools = tool::offered(revision, &offer);
        listing_deviation::add_specimens(&mut tools, revision, self.faults, self.paging.salt);
        let tools: Arc<[Object]> = tools.into();
        self.offered = Some(Offered {
            revision,
            grown,
            tools: Arc::clone(&tools),
        });
        tools
    }

    fn list_tools(&mut self, request: &Request, params: &Object) -> Result<Object, Stop> {
        let revision = request.revision;
        if self.fails(request, Fault::ToolsOffServed) {
            return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found: tools/list").into());
        }
        if self.fails(request, Fault::ListRefused) {
            return Err(Refusal::new(INTERNAL_ERROR, "Internal error").into());
        }
        if request.params.is_none() && self.fails(request, Fault::ListParamsRequired) {
            return Err(invalid_params("params is missing").into());
        }
        let empty_meta = params.get("_meta") == Some(&json!({}));
        if empty_meta && self.fails(request, Fault::ListEmptyMetaRefused) {
            return Err(invalid_params("_meta is empty").into());
        }
        let unknown = params.keys().any(|key| key != "cursor" && key != "_meta");
        if unknown && self.fails(request, Fault::UnknownMemberRefused) {
            return Err(invalid_params("Unknown member in params").into());
        }
        let tools = self.tools(revision);
        let given = request.params.as_ref().map(|_| params);
        let page = listing::tool_page(&tools, given, revision, self.faults, &mut self.paging);
        let page = page.map_err(|none| match none {
            NoPage::Refused(refusal) => Stop::Refused(refusal),
            NoPage::Ended => Stop::Ended,
        })?;
        let mut result = object(json!({"tools": page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        let later = params.contains_key("cursor");
        let varies = later && self.fails(request, Fault::CacheScopeVaries);
        add_caching(
            &mut result,
            revision,
            if varies { "private" } else { "public" },
        );
        Ok(result)
    }

    fn call(
        &mut self,
        request: &Request,
        params: &Object,
        turn: &mut Turn,
    ) -> Result<Object, Stop> {
        if self.fails(request, Fault::CallNotFound) {
            return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found: tools/call").into());
        }
        if self.soured && self.fails(request, Fault::RefusesAfterError) {
            return Err(Refusal::new(INTERNAL_ERROR, "Internal error").into());
        }
        if self.fails(request, Fault::ToolsOffServed) {
            return Ok(Reply::text("Done.").into_result(request.revision));
        }
        let called = self.named_tool(request, params);
        self.soured |= called.is_err();
        let (tool, arguments) = match called? {
            Ok(called) => called,
            Err(reply) => return Ok(reply.into_result(request.revision)),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        self.ask_unduly(request);
        let reply = self.use_tool(request, &tool, name, &arguments, turn)?;
        let mut result = reply.into_result(request.revision);
        calling::deviate(&mut result, name, request.revision, self.faults);
        self.report(turn, request);
        Ok(result)
    }

    /// Writes the notifications of a call, in the order that a fault may want.
    fn report(&mut self, turn: &mut Turn, request: &Request) {
        let mut notifications = std::mem::take(&mut turn.notifications);
        if self.fails(request, Fault::ProgressGoesBack) {
            notifications.reverse();
        }
        if self.fails(request, Fault::ProgressAfterResult)
            && let Some(token) = &turn.progress_token
        {
            let params = json!({"progressToken": token, "progress": 100, "total": 100});
            self.afterwards
                .push(notification("notifications/progress", &params));
        }
        for message in notifications {
            self.tell(message, request.revision);
        }
    }

    /// The tool that a call names and its arguments, or the reply that a fault gives without one.
    fn named_tool(
        &mut self,
        request: &Request,
        params: &Object,
    ) -> Result<Result<(Object, Object), Reply>, Refusal> {
        let done = || Ok(Err(Reply::text("Done.")));
        let Some(name) = params.get("name") else {
            if self.fails(request, Fault::NoNameSucceeds) {
                return done();
            }
            if self.fails(request, Fault::InvalidParamsWrongCode) {
                return Err(Refusal::new(INTERNAL_ERROR, "Internal error"));
            }
            return Err(invalid_params("name is missing"));
        };
        let Some(name) = name.as_str() else {
            if name.is_number() && self.fails(request, Fault::NameNumberSucceeds) {
                return done();
            }
            return Err(invalid_params("name must be a string"));
        };
        let arguments = match params.get("arguments") {
            None if self.fails(request, Fault::ArgumentsRequired) => {
                return Err(invalid_params("arguments is missing"));
            }
            None => Object::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(Value::Array(_)) if self.fails(request, Fault::ArgumentsArraySucceeds) => {
                return done();
            }
            Some(Value::String(_)) if self.fails(request, Fault::ArgumentsStringSucceeds) => {
                return done();
            }
            Some(_) => return Err(invalid_params("arguments must be an object")),
        };
        let tools = self.tools(request.revision);
        let named = |tool: &&Object| tool["name"] == name;
        let alike = |tool: &&Object| {
            tool["name"]
                .as_str()
                .is_some_and(|known| known.eq_ignore_ascii_case(name))
        };
        if let Some(tool) = tools.iter().find(named) {
            return Ok(Ok((tool.clone(), arguments)));
        }
        match tools.iter().find(alike) {
            Some(tool) if self.fails(request, Fault::ToolNameCaseFolded) => {
                return Ok(Ok((tool.clone(), arguments)));
            }
            None if self.fails(request, Fault::UnknownToolSucceeds) => return done(),
            None if self.fails(request, Fault::UnknownToolIsError) => {
                return Ok(Err(Reply::failure("Unknown tool.")));
            }
            None if self.fails(request, Fault::UnknownToolCode32601) => {
                return Err(Refusal::new(METHOD_NOT_FOUND, "Unknown tool"));
            }
            None if self.fails(request, Fault::RetiredCode) => {
                return Err(Refusal::new(
                    super::message::RESOURCE_NOT_FOUND,
                    "Unknown tool",
                ));
            }
            _ => {}
        }
        Err(invalid_params(format!("Unknown tool: {}", quoted(name))))
    }

    /// Runs the tool, if its arguments fit.
    fn use_tool(
        &mut self,
        request: &Request,
        tool: &Object,
        name: &str,
        arguments: &Object,
        turn: &mut Turn,
    ) -> Result<Reply, Stop> {
        if listing_deviation::is_specimen(tool) {
            return Ok(Reply::text("Done."));
        }
        let misfit = call::misfit(&tool["inputSchema"], &json!(arguments), self.faults)?;
        if let Some(text) = misfit {
            self.soured = true;
            let drafted = request.revision == Revision::V2024_10_07;
            // The draft wants an error of the protocol, the later revisions one of the tool.
            if drafted != self.fails(request, Fault::InvalidArgumentsProtocolError) {
                let refusal = invalid_params("Invalid arguments");
                return Err(refusal.with_data(json!({"reason": text})).into());
            }
            return Ok(Reply::failure(format!("Invalid arguments: {text}")));
        }
        if name == "weather" && self.fails(request, Fault::ValidCallError) {
            return Err(Refusal::new(INTERNAL_ERROR, "Internal error").into());
        }
        match name {
            "grow" => Ok(self.grow(request, turn)),
            "ask" => self.put_question(request, arguments),
            _ => Ok(call::run(name, arguments, turn)),
        }
    }

    fn grow(&mut self, request: &Request, turn: &mut Turn) -> Reply {
        let Some(session) = &mut self.session else {
            return Reply::text("Nothing grew.");
        };
        session.grown = !session.grown;
        let text = if session.grown {
            "The list has grown."
        } else {
            "The list has shrunk."
        };
        if !self.fails(request, Fault::ListChangedSilent) {
            let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            turn.notifications.push(message);
        }
        Reply::text(text)
    }

    fn put_question(&mut self, request: &Request, arguments: &Object) -> Result<Reply, Stop> {
        let possible = self.session.as_ref().map(questions).unwrap_or_default();
        let wanted = arguments.get("for").and_then(Value::as_str);
        let question = possible
            .iter()
            .find(|question| wanted.is_none_or(|name| name == **question));
        let Some(question) = question.copied() else {
            return Ok(Reply::failure("There is nothing to ask."));
        };
        let (method, params) = match question {
            "roots" => ("roots/list", None),
            "sampling" => ("sampling/createMessage", Some(sampling_params())),
            _ => ("elicitation/create", Some(elicitation_params())),
        };
        let asked = self.ask(method, params, request.revision);
        let (id, revision) = (request.id.clone(), request.revision);
        self.waiting.insert(
            asked,
            Waiting {
                id,
                revision,
                question,
            },
        );
        Err(Stop::Later)
    }

    /// The requests that faults send where the client does not allow them.
    fn ask_unduly(&mut self, request: &Request) {
        let declared = |session: &Session| session.client.contains_key("sampling");
        if self.fails(request, Fault::UndeclaredSampling)
            && !self.session.as_ref().is_some_and(declared)
        {
            self.ask(
                "sampling/createMessage",
                Some(sampling_params()),
                request.revision,
            );
        }
        if self.fails(request, Fault::ServerRequestModern) {
            self.ask("roots/list", None, request.revision);
        }
    }
}

/// What may be asked of the client of a session.
fn questions(session: &Session) -> Vec<&'static str> {
    let elicits = session.revision >= Revision::V2025_06_18;
    [
        ("roots", true),
        ("sampling", true),
        ("elicitation", elicits),
    ]
    .into_iter()
    .filter(|(name, exists)| *exists && session.client.contains_key(*name))
    .map(|(name, _)| name)
    .collect()
}

fn sampling_params() -> Value {
    let content = json!({"type": "text", "text": "Say a word."});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 16})
}

fn elicitation_params() -> Value {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}}});
    json!({"message": "Please say a word.", "requestedSchema": schema})
}

/// The result of a list other than that of tools.
fn cached(
    page: Result<listing::Page, Refusal>,
    member: &str,
    revision: Revision,
) -> Result<Object, Stop> {
    let page = page?;
    let mut result = object(json!({member: page.items}));
    if let Some(next) = page.next {
        result.insert("nextCursor".to_owned(), next);
    }
    add_caching(&mut result, revision, "public");
    Ok(result)
}

/// Adds the hints on caching, where the revision has them.
fn add_caching(result: &mut Object, revision: Revision, scope: &str) {
    if revision.is_modern() {
        result.insert("ttlMs".to_owned(), json!(60_000));
        result.insert("cacheScope".to_owned(), json!(scope));
    }
}
