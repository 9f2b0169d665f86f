//! How `tools/list` and `tools/call` are served, and the tools that need more than their arguments.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ask::{self, Question};
use super::call::{self, Reply, Turn};
use super::connection::{Connection, Offered, Request, Session, Stop, Waiting};
use super::deviation::{calling, listing as listing_deviation};
use super::evaluation::Early;
use super::fault::Fault;
use super::listing::{self, NoPage};
use super::message::{
    ELICITATION_REQUIRED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, Object,
    RESOURCE_NOT_FOUND, Refusal, invalid_params, notification, object, quoted,
};
use super::method::add_caching;
use super::revision::Revision;
use super::rich;
use super::tool::{self, Offer};

impl Connection<'_> {
    /// The definitions of every tool that the client is offered, made once as long as they last.
    fn tools(&mut self, revision: Revision) -> Arc<[Object]> {
        let session = self.session.as_ref().filter(|_| !revision.is_modern());
        let grown = session.is_some_and(|session| session.grown) || self.has_grown(revision);
        if let Some(offered) = &self.offered
            && (offered.revision, offered.grown) == (revision, grown)
            && !self.hidden.is_grown()
        {
            return Arc::clone(&offered.tools);
        }
        let asking = match session {
            _ if revision.is_modern() => ask::tools(),
            Some(session) => ask::tools_for(&session.client, revision, self.faults),
            None => Vec::new(),
        };
        let offer = Offer { grown, asking };
        let mut tools = tool::offered(revision, &offer);
        listing_deviation::add_specimens(&mut tools, revision, self.faults, self.paging.salt);
        self.hidden.add_tools(&mut tools, revision);
        let tools: Arc<[Object]> = tools.into();
        self.offered = Some(Offered { revision, grown, tools: Arc::clone(&tools) });
        tools
    }

    pub(super) fn list_tools(&mut self, request: &Request, params: &Object) -> Result<Object, Stop> {
        let revision = request.revision;
        if self.fails(request, Fault::ToolsOffServed) || self.fails(request, Fault::WithoutTools) {
            return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found: tools/list").into());
        }
        if self.fails(request, Fault::ListRejected) {
            return Err(Refusal::new(INTERNAL_ERROR, "Internal error").into());
        }
        if request.params.is_none() && self.fails(request, Fault::ListParamsRequired) {
            return Err(invalid_params("params is missing").into());
        }
        let empty_meta = params.get("_meta") == Some(&json!({}));
        if empty_meta && self.fails(request, Fault::ListEmptyMetaRejected) {
            return Err(invalid_params("_meta is empty").into());
        }
        let unknown = params.keys().any(|key| key != "cursor" && key != "_meta");
        if unknown && self.fails(request, Fault::UnknownMemberRejected) {
            return Err(invalid_params("Unknown member in params").into());
        }
        if self.fails(request, Fault::NotificationOfNewerRevision) {
            let params = json!({"notifications": {}});
            self.afterwards.push(notification("notifications/subscriptions/acknowledged", &params));
        }
        if self.fails(request, Fault::PingBurst) {
            for _ in 0..60 {
                self.ask("ping", None, revision);
            }
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
        if self.past.refused && self.fails(request, Fault::FailsAfterError) {
            self.past.refused = false;
            return Err(Refusal::new(INTERNAL_ERROR, "Internal error").into());
        }
        if self.fails(request, Fault::ToolsOffServed) {
            return Ok(Reply::text("Done.").into_result(request.revision));
        }
        if !self.paging.has_listed() && self.fails(request, Fault::CallNeedsList) {
            return Err(Refusal::new(INVALID_REQUEST, "tools/list comes first").into());
        }
        if request.revision.is_modern() {
            self.tell_cancelled(request);
            self.look_at_retry(request, params)?;
        }
        let mended;
        let params = match self.hidden.called(params, request.revision) {
            Early::Mended(params) => {
                mended = params;
                &mended
            }
            early => {
                if let Some(reply) = Self::early(early)? {
                    return Ok(reply.into_result(request.revision));
                }
                params
            }
        };
        let called = self.named_tool(request, params);
        self.past.refused |= called.is_err();
        let (tool, arguments) = match called? {
            Ok(called) => called,
            Err(reply) => return Ok(reply.into_result(request.revision)),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        if let Some(task) = self.as_task(request, params, &tool, &arguments)? {
            return Ok(task);
        }
        self.ask_unduly(request);
        let reply = self.use_tool(request, &tool, name, &arguments, turn)?;
        let mut result = reply.into_result(request.revision);
        calling::deviate(&mut result, name, request.revision, self.faults);
        self.hidden.deviate(&mut result);
        self.hidden.returned(&result);
        self.report(turn, request);
        Ok(result)
    }

    /// What a hidden fault makes of a call: a reply of its own, or none.
    fn early(early: Early) -> Result<Option<Reply>, Stop> {
        match early {
            Early::Pass | Early::Mended(_) => Ok(None),
            Early::Replied(reply) => Ok(Some(reply)),
            Early::Refused(refusal) => Err(refusal.into()),
            Early::Silent => Err(Stop::Later),
            Early::Frozen => Err(Stop::Frozen),
            Early::Crashed => Err(Stop::Crashed),
        }
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
        self.repeat(&mut notifications, request);
        for message in notifications {
            self.tell(message, request.revision);
        }
    }

    /// Adds the many notifications that faults write after the few of a call.
    fn repeat(&self, notifications: &mut Vec<Value>, request: &Request) {
        const TIMES: u64 = 400;
        let Some(last) = notifications.last().cloned() else { return };
        let of = |method: &str| last["method"] == method;
        if of("notifications/message") && self.fails(request, Fault::LogBurst) {
            notifications.extend((0..TIMES).map(|_| last.clone()));
        }
        if of("notifications/progress") && self.fails(request, Fault::ProgressBurst) {
            notifications.extend((0..TIMES).map(|number| {
                let mut message = last.clone();
                message["params"]["progress"] = json!(number + 10);
                message["params"]["total"] = json!(TIMES + 10);
                message
            }));
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
    pub(super) fn use_tool(
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
        if self.hidden.refuses(name) {
            return Ok(Reply::failure("There is no such thing."));
        }
        let misfit = match rich::check(name, arguments) {
            Some(check) => check.err(),
            None => call::misfit(&tool["inputSchema"], &json!(arguments), self.faults)?,
        };
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
        if name == "weather" {
            self.demand_capability(request)?;
        }
        if let Some(question) = Question::of(name) {
            if request.revision.is_modern() {
                return self.ask_in_result(request, question, name, arguments);
            }
            return self.put_question(request, question);
        }
        let early = self.hidden.fitted(name, arguments, request.revision);
        if let Some(reply) = Self::early(early)? {
            return Ok(reply);
        }
        if let Some(reply) = rich::run(name, arguments, &mut self.drafts) {
            return Ok(reply);
        }
        match name {
            "grow" => Ok(self.grow(request, turn)),
            "withdraw" => Ok(self.withdraw_question(request)),
            ask::AFTER_PAGE => self.refuse_before_page(),
            _ => Ok(call::run(name, arguments, turn)),
        }
    }

    /// Refuses a client that lacks a capability which nobody has, as a server may.
    fn demand_capability(&self, request: &Request) -> Result<(), Refusal> {
        if !request.revision.is_modern() || !self.fails(request, Fault::Awkward) {
            return Ok(());
        }
        let required = json!({"extensions": {"com.example.mock/badge": {}}});
        let refusal = Refusal::new(MISSING_CAPABILITY, "The client lacks a capability");
        Err(refusal.with_data(json!({"requiredCapabilities": required})))
    }

    fn grow(&mut self, request: &Request, turn: &mut Turn) -> Reply {
        if request.revision.is_modern() {
            let grew = self.grow_for_listeners(request);
            return Reply::text(if grew { "The list has grown." } else { "Nothing grew, as nobody listens." });
        }
        let Some(session) = &mut self.session else {
            return Reply::text("Nothing grew.");
        };
        session.grown = !session.grown;
        let text = if session.grown { "The list has grown." } else { "The list has shrunk." };
        if !self.fails(request, Fault::ListChangedSilent) {
            let lists = if request.revision >= Revision::V2024_11_05 { 3 } else { 2 };
            for list in ["tools", "resources", "prompts"].iter().take(lists) {
                let method = format!("notifications/{list}/list_changed");
                turn.notifications.push(json!({"jsonrpc": "2.0", "method": method}));
            }
        }
        Reply::text(text)
    }

    /// Puts a question to the client; the call is answered when that is.
    fn put_question(&mut self, request: &Request, question: Question) -> Result<Reply, Stop> {
        let number = self.questions + 1;
        let params = question.params(&[], number, request.revision, self.faults);
        let asked = self.ask(question.method(), params, request.revision);
        let (id, revision) = (request.id.clone(), request.revision);
        self.waiting.insert(asked, Waiting { id, revision, question, number, messages: Vec::new(), rounds: 0 });
        Err(Stop::Later)
    }

    /// Puts a question and takes it back in the same breath.
    fn withdraw_question(&mut self, request: &Request) -> Reply {
        let Some(session) = &self.session else { return Reply::failure("There is nothing to ask.") };
        let may = |name: &str| session.client.contains_key(name);
        let (method, mut params) = if may("elicitation") && request.revision >= Revision::V2025_06_18 {
            (
                "elicitation/create",
                json!({"message": "Please say a word.", "requestedSchema": {
                "type": "object", "properties": {"word": {"type": "string"}}}}),
            )
        } else if may("sampling") {
            ("sampling/createMessage", ask::sampling_params())
        } else if may("roots") {
            ("roots/list", json!({}))
        } else {
            return Reply::failure("There is nothing to ask.");
        };
        if self.fails(request, Fault::TaskAsksClient) {
            params["task"] = json!({"ttl": 60_000});
        }
        let asked = self.ask(method, Some(params), request.revision);
        let asked = if self.fails(request, Fault::CancelsUnknownRequest) { json!("never-sent") } else { json!(asked) };
        let params = json!({"requestId": self.cancelled_id(&asked), "reason": "never mind"});
        self.tell(notification("notifications/cancelled", &params), request.revision);
        Reply::text("The question was withdrawn.")
    }

    /// Says that the user has to visit a page first.
    fn refuse_before_page(&mut self) -> Result<Reply, Stop> {
        self.questions += 1;
        let refusal = Refusal::new(ELICITATION_REQUIRED, "The user has to visit a page first");
        if self.has(Fault::ElicitRequiredWithoutData) {
            return Err(refusal.into());
        }
        Err(refusal.with_data(ask::elicitations(self.questions, self.faults)).into())
    }

    /// The faults of a server that looks at the members of a retry where it should not, or cannot bear them.
    fn look_at_retry(&self, request: &Request, params: &Object) -> Result<(), Stop> {
        let unknown = params.get("inputResponses").and_then(Value::as_object);
        let surplus = unknown.is_some_and(|answers| answers.keys().any(|key| key.starts_with("conformance-")));
        if surplus && self.fails(request, Fault::MrtrExtraInputRejected) {
            return Err(invalid_params("An answer was not asked for").into());
        }
        let state = params.get("requestState").and_then(Value::as_str);
        if state.is_some_and(|state| !state.is_ascii()) && self.fails(request, Fault::MrtrStateCrash) {
            return Err(Stop::Ended);
        }
        Ok(())
    }

    /// The requests that faults send where the client does not allow them.
    fn ask_unduly(&mut self, request: &Request) {
        let declared = |session: &Session| session.client.contains_key("sampling");
        if self.fails(request, Fault::UndeclaredSampling) && !self.session.as_ref().is_some_and(declared) {
            self.ask("sampling/createMessage", Some(ask::sampling_params()), request.revision);
        }
        if self.fails(request, Fault::CancelsModern) {
            let params = json!({"requestId": request.id, "reason": "it takes too long"});
            self.tell(notification("notifications/cancelled", &params), request.revision);
        }
        if self.fails(request, Fault::ServerRequestModern) {
            self.ask("roots/list", None, request.revision);
        }
    }
}
