//! The methods `tools/list` and `tools/call`, and the tools that need the connection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{self, CallContext, ToolOutput};
use super::client_request::{self, ClientRequest};
use super::complex_tool;
use super::connection::{Connection, NoResult, PendingCall, Request, Session, ToolListCache};
use super::evaluation::Interception;
use super::fault::Fault;
use super::injection::{tool_list, tool_result};
use super::message::{
    ELICITATION_REQUIRED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, Object,
    RESOURCE_NOT_FOUND, RpcError, invalid_params, notification, object, quoted,
};
use super::method::add_caching;
use super::pagination::{self, PageError};
use super::revision::Revision;
use super::tool::{self, ToolAvailability};

impl Connection<'_> {
    /// The definitions of all listed tools, cached until they change.
    fn tools(&mut self, revision: Revision) -> Arc<[Object]> {
        let session = self.session.as_ref().filter(|_| !revision.is_modern());
        let grown = session.is_some_and(|session| session.grown) || self.has_grown(revision);
        if let Some(cached) = &self.tool_cache
            && (cached.revision, cached.grown) == (revision, grown)
            && !self.evaluation.has_added_tool()
        {
            return Arc::clone(&cached.tools);
        }
        let client_request_tools = match session {
            _ if revision.is_modern() => client_request::tools(),
            Some(session) => client_request::tools_for(&session.client, revision, self.faults),
            None => Vec::new(),
        };
        let availability = ToolAvailability { grown, client_request_tools };
        let mut tools = tool::available(revision, &availability);
        tool_list::add_fault_tools(&mut tools, revision, self.faults, self.pagination.salt);
        self.evaluation.add_tools(&mut tools, revision);
        let tools: Arc<[Object]> = tools.into();
        self.tool_cache = Some(ToolListCache { revision, grown, tools: Arc::clone(&tools) });
        tools
    }

    pub(super) fn list_tools(&mut self, request: &Request, params: &Object) -> Result<Object, NoResult> {
        let revision = request.revision;
        if self.is_active_for(request, Fault::ToolsOffServed) || self.is_active_for(request, Fault::WithoutTools) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: tools/list").into());
        }
        if self.is_active_for(request, Fault::ListRejected) {
            return Err(RpcError::new(INTERNAL_ERROR, "Internal error").into());
        }
        if request.params.is_none() && self.is_active_for(request, Fault::ListParamsRequired) {
            return Err(invalid_params("params is missing").into());
        }
        let empty_meta = params.get("_meta") == Some(&json!({}));
        if empty_meta && self.is_active_for(request, Fault::ListEmptyMetaRejected) {
            return Err(invalid_params("_meta is empty").into());
        }
        let unknown = params.keys().any(|key| key != "cursor" && key != "_meta");
        if unknown && self.is_active_for(request, Fault::UnknownMemberRejected) {
            return Err(invalid_params("Unknown member in params").into());
        }
        if self.is_active_for(request, Fault::NotificationOfNewerRevision) {
            let params = json!({"notifications": {}});
            self.after_response.push(notification("notifications/subscriptions/acknowledged", &params));
        }
        if self.is_active_for(request, Fault::PingBurst) {
            for _ in 0..60 {
                self.send_request("ping", None, revision);
            }
        }
        let tools = self.tools(revision);
        let list_params = request.params.as_ref().map(|_| params);
        let page = pagination::tool_page(&tools, list_params, revision, self.faults, &mut self.pagination);
        let page = page.map_err(|none| match none {
            PageError::Rejected(error) => NoResult::Error(error),
            PageError::Closed => NoResult::Closed,
        })?;
        let mut page = page;
        let client = "/_meta/io.modelcontextprotocol~1clientInfo/name";
        let unknown = json!(params).pointer(client).is_some_and(|name| name == "somebody-else");
        if unknown && self.is_active_for(request, Fault::ListByClient) {
            page.items.truncate(1);
        }
        let mut result = object(json!({"tools": page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        let later = params.contains_key("cursor");
        let varies = later && self.is_active_for(request, Fault::CacheScopeVaries);
        add_caching(&mut result, revision, if varies { "private" } else { "public" });
        Ok(result)
    }

    pub(super) fn call(
        &mut self,
        request: &Request,
        params: &Object,
        context: &mut CallContext,
    ) -> Result<Object, NoResult> {
        if self.is_active_for(request, Fault::CallNotFound) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: tools/call").into());
        }
        if self.is_active_for(request, Fault::WithoutTools) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: tools/call").into());
        }
        if self.history.call_rejected && self.is_active_for(request, Fault::FailsAfterError) {
            self.history.call_rejected = false;
            return Err(RpcError::new(INTERNAL_ERROR, "Internal error").into());
        }
        if self.is_active_for(request, Fault::ToolsOffServed) {
            return Ok(ToolOutput::text("Done.").into_result(request.revision));
        }
        if !self.pagination.has_listed() && self.is_active_for(request, Fault::CallNeedsList) {
            return Err(RpcError::new(INVALID_REQUEST, "call tools/list first").into());
        }
        if request.revision.is_modern() {
            self.notify_cancelled_subscriptions(request);
            self.check_retry(request, params)?;
        }
        let replaced;
        let params = match self.evaluation.intercept_call(params, request.revision) {
            Interception::Replaced(params) => {
                replaced = params;
                &replaced
            }
            interception => {
                if let Some(output) = Self::output_of(interception)? {
                    return Ok(output.into_result(request.revision));
                }
                params
            }
        };
        let found = self.find_tool(request, params);
        self.history.call_rejected |= found.is_err();
        let (tool, arguments) = match found? {
            Ok(found) => found,
            Err(output) => return Ok(output.into_result(request.revision)),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        if let Some(task) = self.create_task_if_requested(request, params, &tool, &arguments)? {
            return Ok(task);
        }
        self.send_undeclared_requests(request);
        let output = self.run_tool(request, &tool, name, &arguments, context)?;
        let mut result = output.into_result(request.revision);
        tool_result::inject(&mut result, name, request.revision, self.faults);
        self.evaluation.inject(&mut result);
        self.evaluation.store_result(&result);
        self.report(context, request);
        Ok(result)
    }

    /// The output of a call that an evaluation fault has intercepted, or none.
    fn output_of(interception: Interception) -> Result<Option<ToolOutput>, NoResult> {
        match interception {
            Interception::Continue | Interception::Replaced(_) => Ok(None),
            Interception::Output(output) => Ok(Some(output)),
            Interception::Error(error) => Err(error.into()),
            Interception::Ignored => Err(NoResult::Deferred),
            Interception::Frozen => Err(NoResult::Frozen),
            Interception::Crashed => Err(NoResult::Crashed),
        }
    }

    /// Sends the notifications of a call, in the order that a fault may change.
    fn report(&mut self, context: &mut CallContext, request: &Request) {
        let mut notifications = std::mem::take(&mut context.notifications);
        if self.is_active_for(request, Fault::ProgressGoesBack) {
            notifications.reverse();
        }
        if self.is_active_for(request, Fault::ProgressAfterResult)
            && let Some(token) = &context.progress_token
        {
            let params = json!({"progressToken": token, "progress": 100, "total": 100});
            self.after_response.push(notification("notifications/progress", &params));
        }
        self.repeat(&mut notifications, request);
        for message in notifications {
            self.send(message, request.revision);
        }
    }

    /// Adds the repeated notifications of faults.
    fn repeat(&self, notifications: &mut Vec<Value>, request: &Request) {
        const TIMES: u64 = 400;
        let Some(last) = notifications.last().cloned() else { return };
        let of = |method: &str| last["method"] == method;
        if of("notifications/message") && self.is_active_for(request, Fault::LogBurst) {
            notifications.extend((0..TIMES).map(|_| last.clone()));
        }
        if of("notifications/progress") && self.is_active_for(request, Fault::ProgressBurst) {
            notifications.extend((0..TIMES).map(|number| {
                let mut message = last.clone();
                message["params"]["progress"] = json!(number + 10);
                message["params"]["total"] = json!(TIMES + 10);
                message
            }));
        }
    }

    /// The tool that a call names and its arguments, or the output that a fault returns without one.
    fn find_tool(
        &mut self,
        request: &Request,
        params: &Object,
    ) -> Result<Result<(Object, Object), ToolOutput>, RpcError> {
        let done = || Ok(Err(ToolOutput::text("Done.")));
        let Some(name) = params.get("name") else {
            if self.is_active_for(request, Fault::NoNameSucceeds) {
                return done();
            }
            if self.is_active_for(request, Fault::InvalidParamsWrongCode) {
                return Err(RpcError::new(INTERNAL_ERROR, "Internal error"));
            }
            return Err(invalid_params("name is missing"));
        };
        let Some(name) = name.as_str() else {
            if name.is_number() && self.is_active_for(request, Fault::NameNumberSucceeds) {
                return done();
            }
            return Err(invalid_params("name must be a string"));
        };
        let arguments = match params.get("arguments") {
            None if self.is_active_for(request, Fault::ArgumentsRequired) => {
                return Err(invalid_params("arguments is missing"));
            }
            None => Object::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(Value::Array(_)) if self.is_active_for(request, Fault::ArgumentsArraySucceeds) => {
                return done();
            }
            Some(Value::String(_)) if self.is_active_for(request, Fault::ArgumentsStringSucceeds) => {
                return done();
            }
            Some(_) => return Err(invalid_params("arguments must be an object")),
        };
        let tools = self.tools(request.revision);
        let named = |tool: &&Object| tool["name"] == name;
        let alike = |tool: &&Object| tool["name"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name));
        if let Some(tool) = tools.iter().find(named) {
            return Ok(Ok((tool.clone(), arguments)));
        }
        match tools.iter().find(alike) {
            Some(tool) if self.is_active_for(request, Fault::ToolNameCaseFolded) => {
                return Ok(Ok((tool.clone(), arguments)));
            }
            None if self.is_active_for(request, Fault::UnknownToolSucceeds) => return done(),
            None if self.is_active_for(request, Fault::UnknownToolIsError) => {
                return Ok(Err(ToolOutput::failure("Unknown tool.")));
            }
            None if self.is_active_for(request, Fault::UnknownToolCode32601) => {
                return Err(RpcError::new(METHOD_NOT_FOUND, "Unknown tool"));
            }
            None if self.is_active_for(request, Fault::RetiredCode) => {
                return Err(RpcError::new(RESOURCE_NOT_FOUND, "Unknown tool"));
            }
            _ => {}
        }
        Err(invalid_params(format!("Unknown tool: {}", quoted(name))))
    }

    /// Runs a tool, if its arguments are valid.
    pub(super) fn run_tool(
        &mut self,
        request: &Request,
        tool: &Object,
        name: &str,
        arguments: &Object,
        context: &mut CallContext,
    ) -> Result<ToolOutput, NoResult> {
        if tool_list::is_fault_tool(tool) {
            return Ok(ToolOutput::text("Done."));
        }
        if self.evaluation.always_fails(name) {
            return Ok(ToolOutput::failure("Not found."));
        }
        let violation = match complex_tool::check(name, arguments) {
            Some(check) => check.err(),
            None => call::violation(&tool["inputSchema"], &json!(arguments), self.faults)?,
        };
        if let Some(text) = violation {
            self.history.call_rejected = true;
            let drafted = request.revision == Revision::V2024_10_07;
            // The draft requires a protocol error, later revisions a tool error.
            if drafted != self.is_active_for(request, Fault::InvalidArgumentsProtocolError) {
                let error = invalid_params("Invalid arguments");
                return Err(error.with_data(json!({"reason": text})).into());
            }
            return Ok(ToolOutput::failure(format!("Invalid arguments: {text}")));
        }
        if name == "weather" && self.is_active_for(request, Fault::ValidCallError) {
            // A code outside all reserved ranges.
            return Err(RpcError::new(1, "The weather is not available").into());
        }
        if self.is_active_for(request, Fault::ChoosyTools) && !arguments.values().any(call::is_plain_word) {
            return Ok(ToolOutput::failure("A word is needed, such as hello."));
        }
        if name == "weather" {
            self.require_extension(request)?;
        }
        if let Some(client_request) = ClientRequest::of(name) {
            if request.revision.is_modern() {
                return self.request_in_result(request, client_request, name, arguments);
            }
            return self.request_from_client(request, client_request);
        }
        let interception = self.evaluation.intercept_valid_call(name, arguments, request.revision);
        if let Some(output) = Self::output_of(interception)? {
            return Ok(output);
        }
        if let Some(output) = complex_tool::run(name, arguments, &mut self.drafts) {
            return Ok(output);
        }
        match name {
            "grow" => Ok(self.grow(request, context)),
            "withdraw" => Ok(self.send_and_cancel_request(request)),
            client_request::TOOL_REQUIRING_URL => self.require_url_elicitation(),
            _ => Ok(call::run(name, arguments, context)),
        }
    }

    /// Rejects a call because of a client capability that no client has, which a server may do.
    fn require_extension(&self, request: &Request) -> Result<(), RpcError> {
        if !request.revision.is_modern() || !self.is_active_for(request, Fault::Awkward) {
            return Ok(());
        }
        let required = json!({"extensions": {"com.example.mock/badge": {}}});
        let error = RpcError::new(MISSING_CAPABILITY, "The client lacks a capability");
        Err(error.with_data(json!({"requiredCapabilities": required})))
    }

    fn grow(&mut self, request: &Request, context: &mut CallContext) -> ToolOutput {
        if request.revision.is_modern() {
            let grew = self.grow_for_subscribers(request);
            return ToolOutput::text(if grew {
                "The list has grown."
            } else {
                "Nothing changed: there are no subscribers."
            });
        }
        let Some(session) = &mut self.session else {
            return ToolOutput::text("Nothing changed.");
        };
        session.grown = !session.grown;
        let text = if session.grown { "The list has grown." } else { "The list has shrunk." };
        if !self.is_active_for(request, Fault::ListChangedSilent) {
            let lists = if request.revision >= Revision::V2024_11_05 { 3 } else { 2 };
            for list in ["tools", "resources", "prompts"].iter().take(lists) {
                let method = format!("notifications/{list}/list_changed");
                context.notifications.push(json!({"jsonrpc": "2.0", "method": method}));
            }
        }
        ToolOutput::text(text)
    }

    /// Sends a request to the client; its response completes the call.
    fn request_from_client(
        &mut self,
        request: &Request,
        client_request: ClientRequest,
    ) -> Result<ToolOutput, NoResult> {
        let number = self.client_requests_sent + 1;
        let params = client_request.params(&[], number, request.revision, self.faults);
        let request_id = self.send_request(client_request.method(), params, request.revision);
        let (id, revision) = (request.id.clone(), request.revision);
        self.pending_calls
            .insert(request_id, PendingCall { id, revision, client_request, number, messages: Vec::new(), rounds: 0 });
        Err(NoResult::Deferred)
    }

    /// Sends a request to the client and cancels it at once.
    fn send_and_cancel_request(&mut self, request: &Request) -> ToolOutput {
        let Some(session) = &self.session else { return ToolOutput::failure("The client supports no requests.") };
        let declares = |name: &str| session.client.contains_key(name);
        let (method, mut params) = if declares("elicitation") && request.revision >= Revision::V2025_06_18 {
            (
                "elicitation/create",
                json!({"message": "Please say a word.", "requestedSchema": {
                "type": "object", "properties": {"word": {"type": "string"}}}}),
            )
        } else if declares("sampling") {
            ("sampling/createMessage", client_request::sampling_params())
        } else if declares("roots") {
            ("roots/list", json!({}))
        } else {
            return ToolOutput::failure("The client supports no requests.");
        };
        if self.is_active_for(request, Fault::TaskAsksClient) {
            params["task"] = json!({"ttl": 60_000});
        }
        let request_id = self.send_request(method, Some(params), request.revision);
        let request_id = if self.is_active_for(request, Fault::CancelsUnknownRequest) {
            json!("never-sent")
        } else {
            json!(request_id)
        };
        let params = json!({"requestId": self.cancelled_id(&request_id), "reason": "never mind"});
        self.send(notification("notifications/cancelled", &params), request.revision);
        ToolOutput::text("The request was cancelled.")
    }

    /// Returns the error that the user has to visit a URL first.
    fn require_url_elicitation(&mut self) -> Result<ToolOutput, NoResult> {
        self.client_requests_sent += 1;
        let error = RpcError::new(ELICITATION_REQUIRED, "The user has to visit a page first");
        if self.is_enabled(Fault::ElicitRequiredWithoutData) {
            return Err(error.into());
        }
        Err(error.with_data(client_request::elicitations(self.client_requests_sent, self.faults)).into())
    }

    /// Faults of a server that reads too much into the members of a retry.
    fn check_retry(&self, request: &Request, params: &Object) -> Result<(), NoResult> {
        let unknown = params.get("inputResponses").and_then(Value::as_object);
        let has_extra_key =
            unknown.is_some_and(|responses| responses.keys().any(|key| key.starts_with("conformance-")));
        if has_extra_key && self.is_active_for(request, Fault::MrtrExtraInputRejected) {
            return Err(invalid_params("inputResponses has an unknown key").into());
        }
        let state = params.get("requestState").and_then(Value::as_str);
        if state.is_some_and(|state| !state.is_ascii()) && self.is_active_for(request, Fault::MrtrStateCrash) {
            return Err(NoResult::Closed);
        }
        Ok(())
    }

    /// Sends the requests of faults that the client does not allow.
    fn send_undeclared_requests(&mut self, request: &Request) {
        let declared = |session: &Session| session.client.contains_key("sampling");
        if self.is_active_for(request, Fault::UndeclaredSampling) && !self.session.as_ref().is_some_and(declared) {
            self.send_request("sampling/createMessage", Some(client_request::sampling_params()), request.revision);
        }
        if self.is_active_for(request, Fault::CancelsModern) {
            let params = json!({"requestId": request.id, "reason": "it takes too long"});
            self.send(notification("notifications/cancelled", &params), request.revision);
        }
        if self.is_active_for(request, Fault::ServerRequestModern) {
            self.send_request("roots/list", None, request.revision);
        }
    }
}
