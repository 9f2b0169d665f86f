//! Discovers the server's resources, resource templates and prompts, and reads or gets a few of them. Passive cases
//! judge the messages.
//!
//! All requests are concurrent and have a short timeout, because nothing else depends on them: missing responses are
//! ignored. Those for the tools, which may be among them, have the time that is usual.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::inventory::{Primitives, Prompt};
use crate::limits::{FASTEST_ANSWER_FACTOR, LIST_TIMEOUT, MAX_DISCOVERY_PAGES, MAX_FIRST_READS};
use crate::run::pagination::{Pages, SentRequest};
use crate::session::Session;
use crate::wire::Id;

/// The method that lists the tools.
pub(super) const TOOLS: &str = "tools/list";

/// Each list method with its capability and the member that contains the items.
const LISTS: [(&str, &str, &str); 3] = [
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resources", "resourceTemplates"),
    ("prompts/list", "prompts", "prompts"),
];

/// A request in flight.
#[derive(Debug)]
struct InFlight {
    id: Id,
    asks_for: Part,
}

/// What a request asks for.
#[derive(Debug)]
enum Part {
    /// The next page of the tools.
    Tools,
    /// A page of one of [`LISTS`], by its position. These cursors were used before.
    List { list: usize, cursors: Vec<Value> },
    /// The contents of a resource.
    Resource,
    /// A prompt, by its position.
    Prompt(usize),
}

/// Lists, and items of them, that are read side by side.
struct Reading<'r> {
    session: &'r mut Session,
    primitives: &'r mut Primitives,
    /// The tools, if they are read as well.
    tools: Option<&'r mut Pages>,
    in_flight: Vec<InFlight>,
    from: usize,
}

/// Reads the declared lists, and reads or gets a few of their items.
pub(super) async fn discover(session: &mut Session, timeout: Duration) -> Primitives {
    let mut primitives = Primitives::default();
    if session.parameters.opening.is_none() || session.connection.is_closed() {
        return primitives;
    }
    let mut reading = Reading::new(session, &mut primitives);
    reading.ask_for_lists(str::to_owned).await;
    reading.finish(timeout, true).await;
    primitives
}

/// The same on a slow server, with the rest of the tools: the pages of all lists are read side by side, and the items
/// beside the tools. `page` is a request for the next page of the tools that was sent already. Returns whether more pages of
/// tools follow, because one did not come in time.
pub(super) async fn discover_beside_tools(
    session: &mut Session,
    tools: &mut Pages,
    page: Option<SentRequest>,
    timeout: Duration,
) -> (Primitives, bool) {
    let mut primitives = Primitives::default();
    let mut reading = Reading::new(session, &mut primitives);
    reading.tools = Some(tools);
    match page {
        Some(SentRequest { id, from }) => {
            reading.from = from;
            reading.in_flight.push(InFlight { id, asks_for: Part::Tools });
        }
        None => reading.ask_for_tools().await,
    }
    reading.ask_for_lists(str::to_owned).await;
    let continues = reading.finish(timeout, true).await;
    (primitives, continues)
}

/// Reads the declared lists only.
pub(in crate::run) async fn list_only(session: &mut Session, timeout: Duration) -> Primitives {
    let mut primitives = Primitives::default();
    if session.parameters.opening.is_some() && !session.connection.is_closed() {
        let mut reading = Reading::new(session, &mut primitives);
        reading.ask_for_lists(str::to_owned).await;
        reading.finish(timeout, false).await;
    }
    primitives
}

/// Reads those lists again whose changes the server promised to announce.
pub(super) async fn list_announced_again(session: &mut Session, timeout: Duration) {
    if session.parameters.opening.is_some() && !session.connection.is_closed() {
        let mut primitives = Primitives::default();
        let mut reading = Reading::new(session, &mut primitives);
        reading.ask_for_lists(list_changed).await;
        reading.finish(timeout, false).await;
    }
}

/// The same with the tools, whose pages are read beside those of the others.
pub(super) async fn list_announced_again_beside_tools(session: &mut Session, timeout: Duration) {
    let (mut tools, mut primitives) = (Pages::default(), Primitives::default());
    let mut reading = Reading::new(session, &mut primitives);
    reading.tools = Some(&mut tools);
    reading.ask_for_tools().await;
    reading.ask_for_lists(list_changed).await;
    reading.finish(timeout, false).await;
}

/// Reads the first few resources again.
pub(super) async fn read_resources_again(session: &mut Session, primitives: &Primitives, timeout: Duration) {
    let mut resources = primitives.without_prompts();
    Reading::new(session, &mut resources).finish(timeout, true).await;
}

/// The member of a capability that promises to announce changes of its lists.
fn list_changed(capability: &str) -> String {
    format!("{capability}.listChanged")
}

/// How long to wait for the next response: longer on a slow server.
pub(super) fn next_response_timeout(session: &Session, timeout: Duration) -> Duration {
    let fastest = session.fastest.unwrap_or_default();
    LIST_TIMEOUT.max(fastest * FASTEST_ANSWER_FACTOR).min(timeout)
}

impl<'r> Reading<'r> {
    fn new(session: &'r mut Session, primitives: &'r mut Primitives) -> Self {
        let from = session.connection.len();
        Self { session, primitives, tools: None, in_flight: Vec::new(), from }
    }

    async fn send(&mut self, request: &Value, asks_for: Part) {
        let message = self.session.complete(request, true, None);
        self.session.send(&message, None).await;
        self.in_flight.push(InFlight { id: message["id"].clone(), asks_for });
    }

    /// Asks for the next page of the tools.
    async fn ask_for_tools(&mut self) {
        let request = self.tools.as_ref().map(|tools| tools.next_request(TOOLS));
        if let Some(request) = request {
            self.send(&request, Part::Tools).await;
        }
    }

    /// Asks for the first page of the lists whose capability, or the given member of it, was declared.
    async fn ask_for_lists(&mut self, needed: impl Fn(&str) -> String) {
        for (list, (method, capability, _)) in LISTS.into_iter().enumerate() {
            if self.session.parameters.declares(&needed(capability)) {
                let request = json!({ "method": method, "params": {} });
                self.send(&request, Part::List { list, cursors: Vec::new() }).await;
            }
        }
    }

    /// Asks for the first few of the listed items.
    async fn ask_for_items(&mut self) {
        self.primitives.use_listed_resource();
        let uris: Vec<String> = self.primitives.resources.iter().take(MAX_FIRST_READS).cloned().collect();
        for uri in uris {
            self.send(&json!({ "method": "resources/read", "params": { "uri": uri } }), Part::Resource).await;
        }
        let params = |prompt: &Prompt| {
            if prompt.arguments.is_empty() {
                json!({ "name": prompt.name })
            } else {
                json!({ "name": prompt.name, "arguments": prompt.arguments })
            }
        };
        let prompts: Vec<Value> = self.primitives.prompts().iter().take(MAX_FIRST_READS).map(params).collect();
        for (at, params) in prompts.into_iter().enumerate() {
            self.send(&json!({ "method": "prompts/get", "params": params }), Part::Prompt(at)).await;
        }
    }

    fn awaits(&self, is_wanted: impl Fn(&Part) -> bool) -> bool {
        self.in_flight.iter().any(|one| is_wanted(&one.asks_for))
    }

    /// Reads the lists to their ends and, with `items`, a few items of them as soon as they are known. What does not come in
    /// time is left out. Returns whether more pages of tools follow, because one did not come in time.
    async fn finish(mut self, timeout: Duration, items: bool) -> bool {
        let mut shows_items = items;
        let mut tools_follow = false;
        loop {
            if shows_items && !self.awaits(|part| matches!(part, Part::List { .. })) {
                self.ask_for_items().await;
                shows_items = false;
            }
            if self.in_flight.is_empty() {
                return tools_follow;
            }
            let ids: Vec<Id> = self.in_flight.iter().map(|one| one.id.clone()).collect();
            let reads_tools = self.awaits(|part| matches!(part, Part::Tools));
            let limit = if reads_tools { timeout } else { next_response_timeout(self.session, timeout) };
            match self.session.wait_for_first_response(self.from, &ids, limit).await {
                WaitOutcome::Ready((at, response)) => {
                    let answered = self.in_flight.remove(at);
                    self.take(answered.asks_for, &response).await;
                }
                WaitOutcome::TimedOut => {
                    tools_follow |= reads_tools;
                    self.in_flight.clear();
                }
                WaitOutcome::Closed => return tools_follow || reads_tools,
            }
        }
    }

    /// Takes a response, and asks for the next page.
    async fn take(&mut self, part: Part, response: &Value) {
        let result = response.get("result");
        match part {
            Part::Tools => {
                if let Some((result, tools)) = result.zip(self.tools.as_mut())
                    && tools.add(result)
                {
                    self.ask_for_tools().await;
                }
            }
            Part::List { list, mut cursors } => {
                let (method, _, member) = LISTS[list];
                let Some(result) = result.filter(|result| result.get(member).is_some()) else { return };
                self.primitives.add(method, result);
                let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else {
                    self.primitives.mark_complete(method);
                    return;
                };
                if cursors.len() + 1 < MAX_DISCOVERY_PAGES && !cursors.contains(cursor) {
                    cursors.push(cursor.clone());
                    let request = json!({ "method": method, "params": { "cursor": cursor } });
                    self.send(&request, Part::List { list, cursors }).await;
                }
            }
            Part::Resource => {}
            Part::Prompt(at) => self.primitives.record_get(at, result.is_some()),
        }
    }
}
