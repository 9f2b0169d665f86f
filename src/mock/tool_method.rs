//! How `tools/list` and `tools/call` are served, and the tools that need more than their arguments.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{self, Reply, Turn};
use super::connection::{Connection, Offered, Request, Session, Stop, Waiting, invalid_params};
use super::deviation::{calling, listing as listing_deviation};
use super::fault::Fault;
use super::listing::{self, NoPage};
use super::message::{
    INTERNAL_ERROR, METHOD_NOT_FOUND, Object, RESOURCE_NOT_FOUND, Refusal, notification, object, quoted,
};
use super::method::add_caching;
use super::revision::Revision;
use super::tool::{self, Offer};

impl Connection<'_> {
    /// The definitions of every tool that the client is offered, made once as long as they last.
    fn tools(&mut self, revision: Revision) -> Arc<[Object]> {
        let session = self.session.as_ref().filter(|_| !revision.is_modern());
        let grown = session.is_some_and(|session| session.grown);
        if let Some(offered) = &self.offered
            && (offered.revision, offered.grown) == (revision, grown)
        {
            return Arc::clone(&offered.tools);
        }
        let offer = Offer { grown, questions: session.map(questions).unwrap_or_default() };
        let mut tools = tool::offered(revision, &offer);
        listing_deviation::add_specimens(&mut tools, revision, self.faults, self.paging.salt);
        let tools: Arc<[Object]> = tools.into();
        self.offered = Some(Offered { revision, grown, tools: Arc::clone(&tools) });
        tools
    }

    pub(super) fn list_tools(&mut self, request: &Request, params: &Object) -> Result<Object, Stop> {
        let revision = request.revision;
        if self.fails(request, Fault::ToolsOffServed) || self.fails(request, Fault::WithoutTools) {
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
        let mut page = page;
        let client = "/_meta/io.modelcontextprotocol~1clientInfo/name";
        let unknown = json!(params).pointer(client).is_some_and(|name| name == "somebody-else");
        if unknown && self.fails(request, Fault::ListByClient) {
            page.items.truncate(1);
        }
        let mut result = object(json!({"tools": page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        let later = params.contains_key("cursor");
        let varies = later && self.fails(request, Fault::CacheScopeVaries);
        add_caching(&mut result, revision, if varies { "private" } else { "public" });
        Ok(result)
    }

    pub(super) fn call(&mut self, request: &Request, params: &Object, turn: &mut Turn) -> Result<Object, Stop> {
        if self.fails(request, Fault::CallNotFound) {
            return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found: tools/call").into());
        }
        if self.fails(request, Fault::WithoutTools) {
            return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found: tools/call").into());
        }
        if self.past.refused && self.fails(request, Fault::RefusesAfterError) {
            self.past.refused = false;
            return Err(Refusal::new(INTERNAL_ERROR, "Internal error").into());
        }
        if self.fails(request, Fault::ToolsOffServed) {
            return Ok(Reply::text("Done.").into_result(request.revision));
        }
        let called = self.named_tool(request, params);
        self.past.refused |= called.is_err();
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
            self.afterwards.push(notification("notifications/progress", &params));
        }
        for message in notifications {
            self.tell(message, request.revision);
        }
    }

    /// The tool that a call names and its arguments, or the reply that a fault gives without one.
    fn named_tool(&mut self, request: &Request, params: &Object) -> Result<Result<(Object, Object), Reply>, Refusal> {
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
        let alike = |tool: &&Object| tool["name"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name));
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
                return Err(Refusal::new(RESOURCE_NOT_FOUND, "Unknown tool"));
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
            self.past.refused = true;
            let drafted = request.revision == Revision::V2024_10_07;
            // The draft wants an error of the protocol, the later revisions one of the tool.
            if drafted != self.fails(request, Fault::InvalidArgumentsProtocolError) {
                let refusal = invalid_params("Invalid arguments");
                return Err(refusal.with_data(json!({"reason": text})).into());
            }
            return Ok(Reply::failure(format!("Invalid arguments: {text}")));
        }
        if name == "weather" && self.fails(request, Fault::ValidCallError) {
            // A code of its own, beyond all reserved ranges.
            return Err(Refusal::new(1, "The weather is not to be had").into());
        }
        if self.fails(request, Fault::ChoosyTools) && !arguments.values().any(call::is_word) {
            return Ok(Reply::failure("A word is needed, such as hello."));
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
        let text = if session.grown { "The list has grown." } else { "The list has shrunk." };
        if !self.fails(request, Fault::ListChangedSilent) {
            let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            turn.notifications.push(message);
        }
        Reply::text(text)
    }

    fn put_question(&mut self, request: &Request, arguments: &Object) -> Result<Reply, Stop> {
        let possible = self.session.as_ref().map(questions).unwrap_or_default();
        let wanted = arguments.get("for").and_then(Value::as_str);
        let question = possible.iter().find(|question| wanted.is_none_or(|name| name == **question));
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
        self.waiting.insert(asked, Waiting { id, revision, question });
        Err(Stop::Later)
    }

    /// The requests that faults send where the client does not allow them.
    fn ask_unduly(&mut self, request: &Request) {
        let declared = |session: &Session| session.client.contains_key("sampling");
        if self.fails(request, Fault::UndeclaredSampling) && !self.session.as_ref().is_some_and(declared) {
            self.ask("sampling/createMessage", Some(sampling_params()), request.revision);
        }
        if self.fails(request, Fault::ServerRequestModern) {
            self.ask("roots/list", None, request.revision);
        }
    }
}

/// What may be asked of the client of a session.
fn questions(session: &Session) -> Vec<&'static str> {
    let elicits = session.revision >= Revision::V2025_06_18;
    [("roots", true), ("sampling", true), ("elicitation", elicits)]
        .into_iter()
        .filter(|(name, exists)| *exists && session.client.contains_key(*name))
        .map(|(name, _)| name)
        .collect()
}

pub(super) fn sampling_params() -> Value {
    let content = json!({"type": "text", "text": "Say a word."});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 16})
}

fn elicitation_params() -> Value {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}}});
    json!({"message": "Please say a word.", "requestedSchema": schema})
}
