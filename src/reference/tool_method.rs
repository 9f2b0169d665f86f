//! The methods `tools/list` and `tools/call`, and the tools that need the connection.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{self, CallContext, ToolOutput};
use super::client_request::{self, ClientRequest};
use super::client_request_params::{self, elicitation_id, elicitations, sampling_params};
use super::client_response::{self, ResponseOutcome};
use super::complex_tool::{self, Drafts};
use super::connection_state::{ConnectionState, NoResult, Request, Session};
use super::fault::Fault;
use super::injection::{tool_list, tool_result};
use super::input_required::request_in_result;
use super::interception::Interception;
use super::message::{
    ELICITATION_REQUIRED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, Object,
    RESOURCE_NOT_FOUND, RpcError, invalid_params, notification, object, quoted, response,
};
use super::pagination::{self, PageError, PaginationState, add_caching};
use super::particular_tool;
use super::pending_call::{PendingCall, PendingCalls};
use super::revision::Revision;
use super::subscription::Subscriptions;
use super::task::Outcome;
use super::task_method::{Tasks, becomes_task};
use super::tool::{self, ToolAvailability};
use super::{variant, variant_tool};

/// The most recent list of tools, and what it depends on.
#[derive(Debug)]
struct ToolListCache {
    revision: Revision,
    grown: bool,
    tools: Arc<[Object]>,
}

/// The tools of a connection: their list, and the calls that are not answered yet.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) pagination: PaginationState,
    cache: Option<ToolListCache>,
    pub(super) pending_calls: PendingCalls,
    drafts: Drafts,
    /// Whether the server has rejected a call, for a fault that depends on it.
    call_rejected: bool,
    /// The names that were called, for a fault that depends on them.
    called: BTreeSet<String>,
    /// Whether any was called.
    has_called: bool,
}

impl Tools {
    /// The tools of a new connection; `salt` is different on each connection.
    pub(super) fn new(salt: u64) -> Self {
        Self {
            pagination: PaginationState::new(salt),
            cache: None,
            pending_calls: PendingCalls::default(),
            drafts: Drafts::default(),
            call_rejected: false,
            called: BTreeSet::new(),
            has_called: false,
        }
    }

    /// Makes the list anew when it is needed next: a handshake may change it.
    pub(super) fn forget_list(&mut self) {
        self.cache = None;
    }

    /// Handles a cancellation. Only a call that waits for the client can still be cancelled.
    pub(super) fn cancel(&mut self, id: &Value) {
        self.pending_calls.0.retain(|_, waiting| *id != waiting.id);
    }

    /// Handles a response to a request of the server, and completes the call that waits for it.
    pub(super) fn receive_response(&mut self, state: &mut ConnectionState<'_>, id: &Value, body: &Object) {
        let Some(waiting) = id.as_str().and_then(|id| self.pending_calls.0.remove(id)) else {
            return;
        };
        let (client_request, revision, rounds) = (waiting.client_request, waiting.revision, waiting.rounds);
        if let Some(error) = body.get("error").filter(|_| state.faults.is_active(Fault::RelaysClientErrors, revision)) {
            let relayed = json!({"jsonrpc": "2.0", "id": waiting.id, "error": error});
            state.respond(relayed, "tools/call", revision);
            return;
        }
        let read = match (body.get("result"), body.get("error")) {
            (Some(result), None) => client_response::read(waiting.waiting(), result, state.faults),
            _ if client_request.hangs_on_error(revision, state.faults) => ResponseOutcome::Hang,
            _ => ResponseOutcome::Done(ToolOutput::failure("The client rejected the request.")),
        };
        let output = match read {
            ResponseOutcome::Done(output) => output,
            ResponseOutcome::Malformed(reason) => ToolOutput::failure(format!("The response is invalid: {reason}.")),
            ResponseOutcome::Hang => return,
            ResponseOutcome::Continue(messages) => {
                let params =
                    client_request_params::params(client_request, &messages, waiting.number, revision, state.faults);
                let request_id = state.send_request(client_request.method(), params, revision);
                self.pending_calls.0.insert(request_id, PendingCall { messages, rounds: rounds + 1, ..waiting });
                return;
            }
        };
        let accepted = body.get("result").is_some_and(|result| result["action"] == "accept");
        if client_request == ClientRequest::ElicitationUrl && accepted {
            let unknown_id = state.faults.is_active(Fault::ElicitCompleteUnknownId, revision);
            let number = if unknown_id { waiting.number + 1000 } else { waiting.number };
            let params = json!({"elicitationId": elicitation_id(number)});
            state.send(notification("notifications/elicitation/complete", &params), revision);
        }
        let result = output.into_result(revision);
        state.respond(response(&waiting.id, result), "tools/call", waiting.revision);
    }
}

/// A request for a method of tools, while it is processed.
pub(super) struct ToolRequest<'r, 'a> {
    pub(super) state: &'r mut ConnectionState<'a>,
    pub(super) tools: &'r mut Tools,
    pub(super) tasks: &'r mut Tasks,
    pub(super) subscriptions: &'r mut Subscriptions,
    pub(super) request: &'r Request,
}

impl ToolRequest<'_, '_> {
    /// Whether the fault is enabled and shows in the revision of the request.
    fn is_active(&self, fault: Fault) -> bool {
        self.state.is_active_for(self.request, fault)
    }

    /// The definitions of all listed tools, cached until they change.
    fn definitions(&mut self, revision: Revision) -> Arc<[Object]> {
        let session = self.state.session.as_ref().filter(|_| !revision.is_modern());
        let grown = session.is_some_and(|session| session.grown) || self.subscriptions.has_grown(self.state, revision);
        if let Some(cached) = &self.tools.cache
            && (cached.revision, cached.grown) == (revision, grown)
            && !self.state.interceptor.has_added_tool()
        {
            return Arc::clone(&cached.tools);
        }
        let client_request_tools = match session {
            _ if revision.is_modern() => client_request::tools(revision, self.state.faults),
            Some(session) => client_request::tools_for(&session.client, revision, self.state.faults),
            None => Vec::new(),
        };
        let availability = ToolAvailability { grown, client_request_tools };
        let mut tools = tool::available(revision, &availability);
        tool_list::add_fault_tools(&mut tools, revision, self.state.faults, self.tools.pagination.salt);
        if self.is_active(Fault::VanishingTool) && !self.tools.has_called {
            tools.push(variant_tool::mayfly());
        }
        self.state.interceptor.add_tools(&mut tools, revision);
        let tools: Arc<[Object]> = tools.into();
        self.tools.cache = Some(ToolListCache { revision, grown, tools: Arc::clone(&tools) });
        tools
    }

    /// Whether the server is a variant without tools.
    fn has_no_tools(&self) -> bool {
        self.is_active(Fault::WithoutTools) || self.is_active(Fault::OnlyResources)
    }

    pub(super) fn list(&mut self, params: &Object) -> Result<Object, NoResult> {
        let request = self.request;
        let revision = request.revision;
        if self.is_active(Fault::ToolsOffServed) || self.has_no_tools() {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: tools/list").into());
        }
        if self.is_active(Fault::ListRejected) {
            return Err(RpcError::new(INTERNAL_ERROR, "Internal error").into());
        }
        if request.params.is_none() && self.is_active(Fault::ListParamsRequired) {
            return Err(invalid_params("params is missing").into());
        }
        if self.is_active(Fault::ListEmptyMetaRejected) && params.get("_meta") == Some(&json!({})) {
            return Err(invalid_params("_meta is empty").into());
        }
        let unknown = params.keys().any(|key| key != "cursor" && key != "_meta");
        if unknown && self.is_active(Fault::UnknownMemberRejected) {
            return Err(invalid_params("Unknown member in params").into());
        }
        if self.is_active(Fault::NotificationOfNewerRevision) {
            let params = json!({"notifications": {}});
            self.state.after_response.push(notification("notifications/subscriptions/acknowledged", &params));
        }
        if self.is_active(Fault::PingBurst) {
            for _ in 0..60 {
                self.state.send_request("ping", None, revision);
            }
        }
        let tools = self.definitions(revision);
        let list_params = request.params.as_ref().map(|_| params);
        let page = pagination::tool_page(&tools, list_params, revision, self.state.faults, &mut self.tools.pagination);
        let mut page = page.map_err(|none| match none {
            PageError::Rejected(error) => NoResult::Error(error),
            PageError::Closed => NoResult::Closed,
        })?;
        let client = json!(params).pointer("/_meta/io.modelcontextprotocol~1clientInfo/name").cloned();
        if client.is_some_and(|name| name == "somebody-else") && self.is_active(Fault::ListByClient) {
            page.items.truncate(1);
        }
        let mut result = object(json!({"tools": page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        let varies = params.contains_key("cursor") && self.is_active(Fault::CacheScopeVaries);
        add_caching(&mut result, revision, if varies { "private" } else { "public" });
        Ok(result)
    }

    pub(super) fn call(&mut self, params: &Object, context: &mut CallContext) -> Result<Object, NoResult> {
        let request = self.request;
        if self.is_active(Fault::CallNotFound) || self.has_no_tools() {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: tools/call").into());
        }
        if self.is_active(Fault::VanishingTool) && !std::mem::replace(&mut self.tools.has_called, true) {
            self.tools.forget_list();
            self.state.send(notification("notifications/tools/list_changed", &json!({})), request.revision);
        }
        if self.tools.call_rejected && self.is_active(Fault::FailsAfterError) {
            self.tools.call_rejected = false;
            return Err(RpcError::new(INTERNAL_ERROR, "Internal error").into());
        }
        if self.is_active(Fault::ToolsOffServed) {
            return Ok(ToolOutput::text("Done.").into_result(request.revision));
        }
        if !self.tools.pagination.has_listed() && self.is_active(Fault::CallNeedsList) {
            return Err(RpcError::new(INVALID_REQUEST, "call tools/list first").into());
        }
        if request.revision.is_modern() {
            self.subscriptions.notify_cancelled(self.state, request);
            self.check_retry(params)?;
        }
        let replaced;
        let params = match self.state.interceptor.intercept_call(params, request.revision) {
            Interception::Replaced(params) => {
                replaced = params;
                &replaced
            }
            interception => {
                if let Some(output) = output_of(interception)? {
                    return Ok(output.into_result(request.revision));
                }
                params
            }
        };
        let found = self.find_tool(params);
        self.tools.call_rejected |= found.is_err();
        let (tool, arguments) = match found? {
            Ok(found) => found,
            Err(output) => return Ok(output.into_result(request.revision)),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        match becomes_task(self.state, request, params, &tool) {
            Err(_) if params.contains_key("task") && self.is_active(Fault::ForbiddenTaskToolError) => {
                let output = ToolOutput::failure("The tool cannot be called as a task.");
                return Ok(output.into_result(request.revision));
            }
            Err(error) => return Err(error.into()),
            Ok(true) => return self.create_task(params, &tool, &arguments),
            Ok(false) => {}
        }
        self.send_undeclared_requests();
        let output = self.run_tool(&tool, name, &arguments, context)?;
        let mut result = output.into_result(request.revision);
        tool_result::inject(&mut result, name, request.revision, self.state.faults);
        self.state.interceptor.change_result(&mut result);
        self.report(context);
        Ok(result)
    }

    /// Runs a tool as a task.
    fn create_task(&mut self, params: &Object, tool: &Object, arguments: &Object) -> Result<Object, NoResult> {
        let (request, revision) = (self.request, self.request.revision);
        let name = tool["name"].as_str().unwrap_or_default();
        let mut context =
            CallContext { revision, progress_token: None, min_log_severity: None, notifications: Vec::new() };
        let outcome: Outcome = match self.run_tool(tool, name, arguments, &mut context) {
            Ok(output) => {
                let mut result = output.into_result(revision);
                tool_result::inject(&mut result, name, revision, self.state.faults);
                Ok(result)
            }
            Err(NoResult::Error(error)) => Err(error),
            Err(stop) => return Err(stop),
        };
        if self.is_active(Fault::TaskRequestAnsweredDirectly) {
            return outcome.map_err(NoResult::from);
        }
        Ok(self.tasks.create(self.state, request, params, name, outcome))
    }

    /// Sends the notifications of a call, in the order that a fault may change.
    fn report(&mut self, context: &mut CallContext) {
        let mut notifications = std::mem::take(&mut context.notifications);
        if self.is_active(Fault::ProgressGoesBack) {
            notifications.reverse();
        }
        if self.is_active(Fault::ProgressAfterResult)
            && let Some(token) = &context.progress_token
        {
            let params = json!({"progressToken": token, "progress": 100, "total": 100});
            self.state.after_response.push(notification("notifications/progress", &params));
        }
        if self.is_active(Fault::ProgressFractions) {
            notifications.iter_mut().for_each(variant::report_in_fractions);
        }
        self.repeat(&mut notifications);
        for message in notifications {
            self.state.send(message, self.request.revision);
        }
    }

    /// Adds the repeated notifications of faults.
    fn repeat(&self, notifications: &mut Vec<Value>) {
        const TIMES: u64 = 400;
        let Some(last) = notifications.last().cloned() else { return };
        let of = |method: &str| last["method"] == method;
        if of("notifications/message") && self.is_active(Fault::LogBurst) {
            notifications.extend((0..TIMES).map(|_| last.clone()));
        }
        if of("notifications/progress") && self.is_active(Fault::ProgressBurst) {
            notifications.extend((0..TIMES).map(|number| {
                let mut message = last.clone();
                message["params"]["progress"] = json!(number + 10);
                message["params"]["total"] = json!(TIMES + 10);
                message
            }));
        }
    }

    /// The tool that a call names and its arguments, or the output that a fault returns without one.
    fn find_tool(&mut self, params: &Object) -> Result<Result<(Object, Object), ToolOutput>, RpcError> {
        let done = || Ok(Err(ToolOutput::text("Done.")));
        let Some(name) = params.get("name") else {
            if self.is_active(Fault::NoNameSucceeds) {
                return done();
            }
            if self.is_active(Fault::InvalidParamsWrongCode) {
                return Err(RpcError::new(INTERNAL_ERROR, "Internal error"));
            }
            return Err(invalid_params("name is missing"));
        };
        let Some(name) = name.as_str() else {
            if name.is_number() && self.is_active(Fault::NameNumberSucceeds) {
                return done();
            }
            return Err(invalid_params("name must be a string"));
        };
        let arguments = match params.get("arguments") {
            None if self.is_active(Fault::ArgumentsRequired) => {
                return Err(invalid_params("arguments is missing"));
            }
            None => Object::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(Value::Array(_)) if self.is_active(Fault::ArgumentsArraySucceeds) => {
                return done();
            }
            Some(Value::String(_)) if self.is_active(Fault::ArgumentsStringSucceeds) => {
                return done();
            }
            Some(_) => return Err(invalid_params("arguments must be an object")),
        };
        let tools = self.definitions(self.request.revision);
        if self.is_active(Fault::ToolGoneAfterCall) && !self.tools.called.insert(name.to_owned()) {
            return Err(invalid_params(format!("Unknown tool: {}", quoted(name))));
        }
        let named = |tool: &&Object| tool["name"] == name;
        let alike = |tool: &&Object| tool["name"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name));
        if let Some(tool) = tools.iter().find(named) {
            return Ok(Ok((tool.clone(), arguments)));
        }
        match tools.iter().find(alike) {
            Some(tool) if self.is_active(Fault::ToolNameCaseFolded) => {
                return Ok(Ok((tool.clone(), arguments)));
            }
            _ if self.is_active(Fault::UnknownToolSucceeds) => return done(),
            None if self.is_active(Fault::UnknownToolIsError) => {
                return Ok(Err(ToolOutput::failure("Unknown tool.")));
            }
            None if self.is_active(Fault::UnknownToolCode32601) => {
                return Err(RpcError::new(METHOD_NOT_FOUND, "Unknown tool"));
            }
            None if self.is_active(Fault::RetiredCode) => {
                return Err(RpcError::new(RESOURCE_NOT_FOUND, "Unknown tool"));
            }
            _ => {}
        }
        Err(invalid_params(format!("Unknown tool: {}", quoted(name))))
    }

    /// Runs a tool, if its arguments are valid.
    fn run_tool(
        &mut self,
        tool: &Object,
        name: &str,
        arguments: &Object,
        context: &mut CallContext,
    ) -> Result<ToolOutput, NoResult> {
        let request = self.request;
        if tool_list::is_fault_tool(tool) {
            return Ok(ToolOutput::text("Done."));
        }
        if request.revision.is_modern()
            && self.is_active(Fault::InputBeforeValidation)
            && request.params.as_ref().is_some_and(|params| params.get("inputResponses").is_none())
            && let Some(client_request) = ClientRequest::of(name)
        {
            return request_in_result(self.state, request, client_request, name, arguments);
        }
        let violation = match complex_tool::check(name, arguments) {
            Some(check) => check.err(),
            None => call::violation(&tool["inputSchema"], &json!(arguments), self.state.faults)?,
        };
        if let Some(text) = violation {
            self.tools.call_rejected = true;
            if self.is_active(Fault::InvalidArgumentsIgnored) {
                return Err(NoResult::Deferred);
            }
            let drafted = request.revision == Revision::V2024_10_07;
            // The draft requires a protocol error, later revisions a tool error.
            if drafted != self.is_active(Fault::InvalidArgumentsProtocolError) {
                let error = invalid_params("Invalid arguments");
                return Err(error.with_data(json!({"reason": text})).into());
            }
            return Ok(ToolOutput::failure(format!("Invalid arguments: {text}")));
        }
        if name == "weather" && self.is_active(Fault::ValidCallError) {
            // A code outside all reserved ranges.
            return Err(RpcError::new(1, "The weather is not available").into());
        }
        if self.is_active(Fault::ChoosyTools) && !arguments.values().any(call::is_plain_word) {
            return Ok(ToolOutput::failure("A word is needed, such as hello."));
        }
        if name == "weather" {
            self.require_extension()?;
        }
        if let Some(client_request) = ClientRequest::of(name) {
            if request.revision.is_modern() {
                return request_in_result(self.state, request, client_request, name, arguments);
            }
            return self.request_from_client(client_request, arguments);
        }
        let interception = self.state.interceptor.intercept_valid_call(name, arguments, request.revision);
        if let Some(output) = output_of(interception)? {
            return Ok(output);
        }
        if let Some(output) = complex_tool::run(name, arguments, &mut self.tools.drafts) {
            return Ok(output);
        }
        if let Some(output) = particular_tool::run(name, arguments) {
            return Ok(output);
        }
        if let Some(output) = variant_tool::run(name, arguments) {
            return Ok(output?);
        }
        match name {
            "grow" => Ok(self.grow(context)),
            "withdraw" => Ok(self.send_and_cancel_request()),
            client_request::TOOL_REQUIRING_URL => self.require_url_elicitation(),
            _ => Ok(call::run(name, arguments, context)),
        }
    }

    /// Rejects a call because of a client capability that no client has, which a server may do.
    fn require_extension(&self) -> Result<(), RpcError> {
        if !self.request.revision.is_modern() || !self.is_active(Fault::Awkward) {
            return Ok(());
        }
        let required = json!({"extensions": {"com.example.mock/badge": {}}});
        let error = RpcError::new(MISSING_CAPABILITY, "The client lacks a capability");
        Err(error.with_data(json!({"requiredCapabilities": required})))
    }

    fn grow(&mut self, context: &mut CallContext) -> ToolOutput {
        let request = self.request;
        if request.revision.is_modern() {
            let grew = self.subscriptions.grow(self.state, request);
            return ToolOutput::text(if grew {
                "The list has grown."
            } else {
                "Nothing changed: there are no subscribers."
            });
        }
        let Some(session) = &mut self.state.session else {
            return ToolOutput::text("Nothing changed.");
        };
        session.grown = !session.grown;
        let text = if session.grown { "The list has grown." } else { "The list has shrunk." };
        if !self.is_active(Fault::ListChangedSilent) {
            let lists = if request.revision >= Revision::V2024_11_05 { 3 } else { 2 };
            for list in ["tools", "resources", "prompts"].iter().take(lists) {
                let method = format!("notifications/{list}/list_changed");
                context.notifications.push(json!({"jsonrpc": "2.0", "method": method}));
            }
        }
        ToolOutput::text(text)
    }

    /// Sends a request to the client; its response completes the call.
    fn request_from_client(&mut self, asked: ClientRequest, arguments: &Object) -> Result<ToolOutput, NoResult> {
        let request = self.request;
        let number = self.state.client_requests_sent + 1;
        let params = client_request_params::params(asked, &[], number, request.revision, self.state.faults);
        let request_id = self.state.send_request(asked.method(), params, request.revision);
        self.tools.pending_calls.0.insert(request_id, PendingCall::new(request, asked, arguments, number));
        Err(NoResult::Deferred)
    }

    /// Sends a request to the client and cancels it at once.
    fn send_and_cancel_request(&mut self) -> ToolOutput {
        let request = self.request;
        let Some(session) = &self.state.session else { return ToolOutput::failure("The client supports no requests.") };
        let declares = |name: &str| session.client.contains_key(name);
        // An empty object means form mode only.
        let is_form = |modes: &Value| modes.get("form").is_some() || modes.get("url").is_none();
        let takes_forms = session.client.get("elicitation").is_some_and(is_form);
        let (method, mut params) = if takes_forms && request.revision >= Revision::V2025_06_18 {
            (
                "elicitation/create",
                json!({"message": "Please say a word.", "requestedSchema": {
                "type": "object", "properties": {"word": {"type": "string"}}}}),
            )
        } else if declares("sampling") {
            ("sampling/createMessage", sampling_params())
        } else if declares("roots") {
            ("roots/list", json!({}))
        } else {
            return ToolOutput::failure("The client supports no requests.");
        };
        if self.is_active(Fault::TaskAsksClient) {
            params["task"] = json!({"ttl": 60_000});
        }
        let request_id = self.state.send_request(method, Some(params), request.revision);
        let request_id =
            if self.is_active(Fault::CancelsUnknownRequest) { json!("never-sent") } else { json!(request_id) };
        let params = json!({"requestId": self.state.cancelled_id(&request_id), "reason": "never mind"});
        self.state.send(notification("notifications/cancelled", &params), request.revision);
        ToolOutput::text("The request was cancelled.")
    }

    /// Returns the error that the user has to visit a URL first.
    fn require_url_elicitation(&mut self) -> Result<ToolOutput, NoResult> {
        self.state.client_requests_sent += 1;
        let error = RpcError::new(ELICITATION_REQUIRED, "The user has to visit a page first");
        if self.state.is_enabled(Fault::ElicitRequiredWithoutData) {
            return Err(error.into());
        }
        Err(error.with_data(elicitations(self.state.client_requests_sent, self.state.faults)).into())
    }

    /// Faults of a server that reads too much into the members of a retry.
    fn check_retry(&self, params: &Object) -> Result<(), NoResult> {
        let unknown = params.get("inputResponses").and_then(Value::as_object);
        let has_extra_key =
            unknown.is_some_and(|responses| responses.keys().any(|key| key.starts_with("conformance-")));
        if has_extra_key && self.is_active(Fault::MrtrExtraInputRejected) {
            return Err(invalid_params("inputResponses has an unknown key").into());
        }
        let state = params.get("requestState").and_then(Value::as_str);
        if state.is_some_and(|state| !state.is_ascii()) && self.is_active(Fault::MrtrStateCrash) {
            return Err(NoResult::Closed);
        }
        Ok(())
    }

    /// Sends the requests of faults that the client does not allow.
    fn send_undeclared_requests(&mut self) {
        let request = self.request;
        let declared = |session: &Session| session.client.contains_key("sampling");
        if self.is_active(Fault::UndeclaredSampling) && !self.state.session.as_ref().is_some_and(declared) {
            self.state.send_request("sampling/createMessage", Some(sampling_params()), request.revision);
        }
        if self.is_active(Fault::CancelsModern) {
            let params = json!({"requestId": request.id, "reason": "it takes too long"});
            self.state.send(notification("notifications/cancelled", &params), request.revision);
        }
        if self.is_active(Fault::ServerRequestModern) {
            self.state.send_request("roots/list", None, request.revision);
        }
    }
}

/// The output of an intercepted call, or none if it is processed as usual.
fn output_of(interception: Interception) -> Result<Option<ToolOutput>, NoResult> {
    match interception {
        Interception::Continue | Interception::Replaced(_) => Ok(None),
        Interception::ToolError(message) => Ok(Some(ToolOutput::failure(message))),
        Interception::ProtocolError { code, message } => Err(RpcError::new(code, message).into()),
        Interception::Ignored => Err(NoResult::Deferred),
        Interception::Frozen => Err(NoResult::Frozen),
        Interception::Crashed => Err(NoResult::Crashed),
    }
}
