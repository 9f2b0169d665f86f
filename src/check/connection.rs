//! The checks of a connection as a whole: who answers whom, what grows, what was declared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::act::shortened;
use super::asked;
use super::cancel;
use super::listening;
use super::others;
use super::pace;
use super::stream;
use super::subscription;
use super::task;
use super::watch::{Index, method_of};
use crate::case::ConnectionCheck;
use crate::spec::{Era, Revision};
use crate::transcript::{Event, ShutdownStep, messages};
use crate::wire::{Frame, Id, Kind};

/// A breach of a rule, with its place.
pub(super) struct Breach {
    pub(super) actual: String,
    pub(super) subject: String,
    pub(super) positions: Vec<usize>,
    pub(super) value: Option<Value>,
}

/// What a check saw of a connection.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) seen: usize,
    pub(super) breaches: Vec<Breach>,
}

impl Seen {
    pub(super) fn look(&mut self, breach: Option<Breach>) {
        self.seen += 1;
        self.breaches.extend(breach);
    }
}

pub(super) fn breach(actual: impl Into<String>, subject: impl Into<String>, positions: &[usize]) -> Breach {
    Breach { actual: actual.into(), subject: subject.into(), positions: positions.to_vec(), value: None }
}

/// Whether a check looks at what happens before a revision is agreed on, whichever that is.
pub(super) fn is_of_opening(check: ConnectionCheck) -> bool {
    matches!(
        check,
        ConnectionCheck::EndsOnSigterm
            | ConnectionCheck::QuietBeforeInitialized
            | ConnectionCheck::UnknownVersionNotEchoed
            | ConnectionCheck::PingBeforeInitialized
            | ConnectionCheck::FallbackNewest
            | ConnectionCheck::VersionAgreed
    )
}

/// Holds a check against a connection.
pub(super) fn check(check: ConnectionCheck, index: &Index<'_>, revision: Revision) -> Seen {
    match check {
        ConnectionCheck::EventIdsUnique => stream::event_ids_unique(index),
        ConnectionCheck::SentOnOneStream => stream::sent_on_one(index),
        ConnectionCheck::AnsweredOnce => answered_once(index),
        ConnectionCheck::ResultIdEcho => id_echo(index, "result"),
        ConnectionCheck::ErrorIdEcho => id_echo(index, "error"),
        ConnectionCheck::NotificationsUnanswered => notifications_unanswered(index),
        ConnectionCheck::ToolNamesUnique => tool_names_unique(index),
        ConnectionCheck::CursorsAdvance => cursors_advance(index),
        ConnectionCheck::PagesDisjoint => pages_disjoint(index),
        ConnectionCheck::CacheScopeSame => cache_scope_same(index),
        ConnectionCheck::ProgressTokens => progress_tokens(index),
        ConnectionCheck::ProgressIncreases => progress_increases(index),
        ConnectionCheck::ProgressStops => progress_stops(index),
        ConnectionCheck::RequestsDeclared => requests_declared(index),
        ConnectionCheck::ListChangedDeclared => list_changed_declared(index),
        ConnectionCheck::ListChangedSent => list_changed_sent(index),
        ConnectionCheck::LoggingDeclared => logging_declared(index),
        ConnectionCheck::LogOptIn => log_opt_in(index, revision),
        ConnectionCheck::EmbeddedNeedsResources => embedded_needs_resources(index),
        ConnectionCheck::CallsSurvived => calls_survived(index),
        ConnectionCheck::EndsOnSigterm => ends_on_sigterm(index),
        ConnectionCheck::QuietBeforeInitialized => quiet_before_initialized(index),
        ConnectionCheck::UnknownVersionNotEchoed => unknown_version_not_echoed(index),
        ConnectionCheck::ToolsDeclared => tools_declared(index),
        ConnectionCheck::ResourceUrisUnique => others::unique(index, &others::RESOURCES),
        ConnectionCheck::PromptNamesUnique => others::unique(index, &others::PROMPTS),
        ConnectionCheck::OtherCacheScopeSame => others::cache_scope_same(index),
        ConnectionCheck::UpdatesSubscribed => others::updates_subscribed(index),
        ConnectionCheck::ListenAcknowledgedFirst => subscription::acknowledged_first(index),
        ConnectionCheck::ListenGrantsAsked => subscription::grants_asked(index),
        ConnectionCheck::ChangesListened => subscription::changes_listened(index, revision),
        ConnectionCheck::ElicitationsKnown => asked::elicitations_known(index),
        ConnectionCheck::InputKeysUnique => asked::input_keys_unique(index),
        ConnectionCheck::ListenServed => listening::served(index),
        ConnectionCheck::ListenTagged => listening::tagged(index),
        ConnectionCheck::ListenOnlyAsked => listening::only_asked(index),
        ConnectionCheck::ListenCancelled => listening::cancelled(index),
        ConnectionCheck::ToolChangesTold => listening::lists_told(index, &listening::TOOLS),
        ConnectionCheck::OtherChangesTold => listening::other_lists_told(index),
        ConnectionCheck::UpdatesTold => listening::updates_told(index),
        ConnectionCheck::PingBeforeInitialized => others::ping_before_initialized(index),
        ConnectionCheck::FallbackNewest => others::fallback_newest(index, revision),
        ConnectionCheck::TaskIdsUnique => task::ids_unique(index),
        ConnectionCheck::TaskIdsUnguessable => task::ids_unguessable(index),
        ConnectionCheck::TaskTransitions => task::transitions(index),
        ConnectionCheck::TaskTimes => task::times(index),
        ConnectionCheck::TaskResultWaits => task::result_waits(index),
        ConnectionCheck::TaskResultsRelated => task::results_related(index),
        ConnectionCheck::TasksListed => task::listed(index),
        ConnectionCheck::TaskFailuresTold => task::failures_told(index),
        ConnectionCheck::TaskInputRelated => task::input_related(index),
        ConnectionCheck::TaskProgressStops => task::progress_stops(index),
        ConnectionCheck::TaskOnlyOnCalls => task::only_on_calls(index),
        ConnectionCheck::TaskInputKeys => task::input_keys(index),
        ConnectionCheck::ServerCancelsOwn => cancel::own(index),
        ConnectionCheck::ServerCancelsNoTask => cancel::no_task(index),
        ConnectionCheck::ServerCancelsListen => cancel::only_listen(index),
        ConnectionCheck::CancelledSilent => cancel::silent(index),
        ConnectionCheck::ResourcesChangedSent => others::changed_sent(index, &others::RESOURCES),
        ConnectionCheck::PromptsChangedSent => others::changed_sent(index, &others::PROMPTS),
        ConnectionCheck::PromptsGot => others::prompts_got(index),
        ConnectionCheck::VersionAgreed => others::version_agreed(index, revision),
        ConnectionCheck::LogsPaced => pace::logs(index),
        ConnectionCheck::ProgressPaced => pace::progress(index),
        ConnectionCheck::PingsPaced => pace::pings(index),
        ConnectionCheck::ServerRequestIds => server_request_ids(index),
    }
}

fn name_of(request: &Value) -> String {
    match request.pointer("/params/name").and_then(Value::as_str) {
        Some(name) => format!("{} {name}", method_of(request)),
        None => method_of(request).to_owned(),
    }
}

fn answered_once(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in exchanges_with_answers(index) {
        let positions: Vec<usize> =
            std::iter::once(exchange.sent).chain(exchange.responses.iter().map(|(at, _)| *at)).collect();
        let count = exchange.responses.len();
        // An id that we sent more than once may be answered more than once.
        let same_id = |other: &&crate::transcript::Exchange<'_>| other.request.get("id") == exchange.request.get("id");
        let is_too_many = count > 1 && count > index.exchanges.iter().filter(same_id).count();
        seen.look(is_too_many.then(|| breach(format!("{count} responses"), name_of(exchange.request), &positions)));
    }
    let malformed = sent_malformed(index);
    for &(position, response) in &index.strays {
        let unusable = response.get("id").is_none_or(Id::is_null);
        let excused = unusable && malformed || follows_notification(index, position, response);
        if !excused {
            let id = response.get("id").map_or_else(|| "no id".to_owned(), |id| format!("id {id}"));
            seen.look(Some(breach(format!("a response with {id}, which no request carries"), "", &[position])));
        }
    }
    seen
}

fn exchanges_with_answers<'i, 'a>(index: &'i Index<'a>) -> impl Iterator<Item = &'i crate::transcript::Exchange<'a>> {
    index.exchanges.iter().filter(|exchange| !exchange.responses.is_empty())
}

/// Whether we sent anything on this connection that carries no id that could be echoed.
fn sent_malformed(index: &Index<'_>) -> bool {
    index.record.entries.iter().any(|entry| match &entry.event {
        Event::Sent { frame: Frame { value: Ok(value), .. }, mark: Some(_) } => {
            value.is_array()
                || messages(value).any(|message| match Kind::of(message) {
                    Kind::Request { id, .. } => !(id.is_string() || id.is_i64() || id.is_u64()),
                    Kind::Notification { .. } | Kind::Response { .. } => false,
                    Kind::Batch(_) | Kind::Unknown => true,
                })
        }
        Event::Sent { frame: Frame { value: Err(_), .. }, .. } => true,
        _ => false,
    })
}

/// Whether a response without a usable id comes where only a notification can have drawn it: that is
/// the business of another rule.
fn follows_notification(index: &Index<'_>, position: usize, response: &Value) -> bool {
    response.get("id").is_none_or(Id::is_null)
        && index.record.entries[..position].iter().any(|entry| {
            matches!(&entry.event, Event::Sent { mark: Some(_), .. })
                && entry.sent().is_some_and(|sent| matches!(Kind::of(sent), Kind::Notification { .. }))
        })
}

fn id_echo(index: &Index<'_>, member: &str) -> Seen {
    let mut seen = Seen::default();
    for exchange in exchanges_with_answers(index) {
        let well_formed = matches!(Kind::of(exchange.request), Kind::Request { id, .. } if id.is_string() || id.is_i64() || id.is_u64())
            && exchange.request.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
        let (position, response) = exchange.responses[0];
        if !well_formed || response.get(member).is_none() {
            continue;
        }
        let (sent, got) = (&exchange.request["id"], response.get("id").unwrap_or(&Value::Null));
        seen.look(exchange.loose.then(|| {
            breach(
                format!("the request has id {sent}, its answer has id {got}"),
                name_of(exchange.request),
                &[exchange.sent, position],
            )
        }));
    }
    seen
}

fn notifications_unanswered(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let malformed = sent_malformed(index);
    for (position, entry) in index.record.entries.iter().enumerate() {
        let Some(method) = entry.sent().and_then(|sent| match Kind::of(sent) {
            Kind::Notification { method } => Some(method),
            _ => None,
        }) else {
            continue;
        };
        let served_after = index.exchanges.iter().any(|e| e.sent > position && !e.responses.is_empty());
        if !served_after || malformed {
            continue;
        }
        let reply =
            index.strays.iter().find(|(at, response)| *at > position && response.get("id").is_none_or(Id::is_null));
        seen.look(reply.map(|(at, _)| breach("a response", method, &[position, *at])));
    }
    seen
}

/// Walks over the pages of `tools/list`, each page with the cursor that it was asked by.
pub(super) struct Page<'a> {
    pub(super) cursor: Option<&'a Value>,
    pub(super) result: &'a Value,
    pub(super) positions: [usize; 2],
}

fn pages<'a>(index: &Index<'a>) -> Vec<Vec<Page<'a>>> {
    pages_of(index, "tools/list")
}

/// Walks over the pages of a list.
pub(super) fn pages_of<'a>(index: &Index<'a>, method: &str) -> Vec<Vec<Page<'a>>> {
    let mut walks: Vec<Vec<Page<'a>>> = Vec::new();
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == method) {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result") else { continue };
        let cursor = exchange.request.pointer("/params/cursor");
        let page = Page { cursor, result, positions: [exchange.sent, *position] };
        match (cursor, walks.last_mut()) {
            (Some(cursor), Some(walk))
                if walk.last().is_some_and(|last| last.result.get("nextCursor") == Some(cursor)) =>
            {
                walk.push(page);
            }
            (Some(_), _) => {}
            (None, _) => walks.push(vec![page]),
        }
    }
    walks
}

fn cursors_advance(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for walk in pages(index).iter().filter(|walk| walk.len() > 1) {
        let mut cursors = BTreeSet::new();
        for page in walk {
            let Some(cursor) = page.result.get("nextCursor").and_then(Value::as_str) else { continue };
            let repeated = !cursors.insert(cursor);
            let first = &walk[0].positions;
            seen.look(repeated.then(|| {
                breach(
                    format!("the cursor {} comes again", shortened(cursor, 60)),
                    "tools/list",
                    &[first[0], first[1], page.positions[0], page.positions[1]],
                )
            }));
        }
        if walk.last().is_some_and(|page| page.cursor.is_some() && page.result.get("nextCursor").is_none()) {
            seen.look(None);
        }
    }
    seen
}

fn tool_names(result: &Value) -> impl Iterator<Item = &str> {
    result.get("tools").and_then(Value::as_array).into_iter().flatten().filter_map(|tool| tool.get("name")?.as_str())
}

/// The tools of a walk that come again under a name that was there: number of the pages, name, and
/// whether the two definitions are the same.
fn repeated<'a>(walk: &[Page<'a>]) -> (usize, Vec<(usize, usize, &'a str, bool)>) {
    let mut known: BTreeMap<&str, (usize, &Value)> = BTreeMap::new();
    let mut again = Vec::new();
    let mut count = 0;
    for (number, page) in walk.iter().enumerate() {
        for tool in page.result.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            count += 1;
            match known.get(name) {
                Some((first, definition)) => again.push((*first, number, name, *definition == tool)),
                None => {
                    known.insert(name, (number, tool));
                }
            }
        }
    }
    (count, again)
}

/// Pages that overlap: a tool stands, as it is, at the end of one and at the beginning of the next.
fn is_overlap(walk: &[Page<'_>], first: usize, second: usize, name: &str, same: bool) -> bool {
    let at = |page: &Page<'_>, last: bool| -> Option<String> {
        let mut names = tool_names(page.result);
        if last { names.last() } else { names.next() }.map(str::to_owned)
    };
    same && second == first + 1
        && at(&walk[first], true).as_deref() == Some(name)
        && at(&walk[second], false).as_deref() == Some(name)
}

fn pages_disjoint(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for walk in pages(index).iter().filter(|walk| walk.len() > 1) {
        let (_, again) = repeated(walk);
        let overlap = again.iter().find(|(first, second, name, same)| is_overlap(walk, *first, *second, name, *same));
        seen.look(overlap.map(|(first, second, name, _)| {
            let positions = [walk[*first].positions, walk[*second].positions].concat();
            breach(format!("`{}` ends one page and begins the next", shortened(name, 60)), "tools/list", &positions)
        }));
    }
    seen
}

fn tool_names_unique(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for walk in pages(index) {
        let (count, again) = repeated(&walk);
        seen.seen += count.saturating_sub(again.len());
        for (first, second, name, same) in again {
            let overlap = is_overlap(&walk, first, second, name, same);
            let positions = [walk[first].positions, walk[second].positions].concat();
            seen.look(
                (!overlap).then(|| breach(format!("two tools are named `{}`", shortened(name, 60)), name, &positions)),
            );
        }
    }
    seen
}

fn cache_scope_same(index: &Index<'_>) -> Seen {
    cache_scope_same_in(index, "tools/list")
}

/// Whether the pages of each walk over a list say the same of their caching.
pub(super) fn cache_scope_same_in(index: &Index<'_>, method: &str) -> Seen {
    let mut seen = Seen::default();
    for walk in pages_of(index, method).iter().filter(|walk| walk.len() > 1) {
        let first = walk[0].result.get("cacheScope");
        for page in &walk[1..] {
            let scope = page.result.get("cacheScope");
            seen.look((scope != first).then(|| {
                let positions = [walk[0].positions, page.positions].concat();
                let word = |scope: Option<&Value>| scope.map_or_else(|| "none".to_owned(), Value::to_string);
                breach(format!("the first page says {}, a later one {}", word(first), word(scope)), method, &positions)
            }));
        }
    }
    seen
}

/// The progress notifications, each with its position, its token and its params.
fn progress<'a>(index: &Index<'a>) -> Vec<(usize, &'a Value, &'a Value)> {
    index
        .received()
        .filter(|(_, message)| method_of(message) == "notifications/progress")
        .filter_map(|(position, message)| {
            let params = message.get("params")?;
            Some((position, params.get("progressToken")?, params))
        })
        .collect()
}

/// The request that asked for progress under a token, with the position of its answer.
fn asked<'a>(index: &Index<'a>, token: &Value) -> Option<(usize, Option<usize>, &'a Value)> {
    index.exchanges.iter().find_map(|exchange| {
        let own = exchange.request.pointer("/params/_meta/progressToken")?;
        (own == token).then(|| (exchange.sent, exchange.responses.first().map(|(at, _)| *at), exchange.request))
    })
}

fn progress_tokens(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, token, _) in progress(index) {
        let known = asked(index, token).is_some_and(|(sent, ..)| sent < position);
        seen.look(
            (!known).then(|| breach(format!("progress for token {token}, which no request carries"), "", &[position])),
        );
    }
    seen
}

fn progress_increases(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut last: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for (position, token, params) in progress(index) {
        let Some(value) = params.get("progress").and_then(Value::as_f64) else { continue };
        let before = last.insert(token.to_string(), (position, value));
        let Some((earlier, before)) = before else { continue };
        let grows = value > before;
        seen.look((!grows).then(|| {
            breach(format!("progress {value} follows {before}"), format!("token {token}"), &[earlier, position])
        }));
    }
    seen
}

fn progress_stops(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, token, _) in progress(index) {
        let Some((sent, Some(answered), request)) = asked(index, token) else { continue };
        // A request that became a task goes on after its answer.
        let is_task = index
            .exchanges
            .iter()
            .any(|e| e.sent == sent && e.responses.iter().any(|(_, r)| r.pointer("/result/task").is_some()));
        if !is_task {
            let late = position > answered;
            seen.look(late.then(|| breach("progress after the answer", name_of(request), &[sent, answered, position])));
        }
    }
    seen
}

fn requests_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received() {
        let Kind::Request { method, .. } = Kind::of(message) else { continue };
        let Some(needed) = needed_capability(method) else { continue };
        let declared = index.record.terms.client_capabilities.get(needed).is_some();
        seen.look(
            (!declared)
                .then(|| breach(format!("{method}, though the client declared no {needed}"), method, &[position])),
        );
    }
    // A client that declared less than everything and had its calls answered has seen the rule kept.
    if seen.seen == 0
        && ["sampling", "roots"].iter().any(|name| index.record.terms.client_capabilities.get(name).is_none())
    {
        seen.seen +=
            index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && !e.responses.is_empty()).count();
    }
    seen
}

fn list_changed_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received() {
        let method = method_of(message);
        let Some(list) = method.strip_prefix("notifications/").and_then(|rest| rest.strip_suffix("/list_changed"))
        else {
            continue;
        };
        let declared = index.record.terms.declares(&format!("{list}.listChanged"));
        seen.look((!declared).then(|| breach(format!("{method} without {list}.listChanged"), method, &[position])));
    }
    seen
}

fn list_changed_sent(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    if !index.record.terms.declares("tools.listChanged") {
        return seen;
    }
    let names = |walk: &[Page<'_>]| -> BTreeSet<String> {
        walk.iter().flat_map(|page| tool_names(page.result)).map(str::to_owned).collect()
    };
    let whole: Vec<Vec<Page<'_>>> = pages(index)
        .into_iter()
        .filter(|walk| walk.last().is_some_and(|page| page.result.get("nextCursor").is_none()))
        .collect();
    for pair in whole.windows(2) {
        if names(&pair[0]) == names(&pair[1]) {
            continue;
        }
        let (from, to) = (pair[0][0].positions[0], pair[1].last().map_or(0, |page| page.positions[1]));
        let told =
            index.received().any(|(at, message)| at > from && method_of(message) == "notifications/tools/list_changed");
        seen.look((!told).then(|| breach("the list changed without a notification", "tools/list", &[from, to])));
    }
    seen
}

fn logging_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, _) in index.received().filter(|(_, m)| method_of(m) == "notifications/message") {
        let declared = index.record.terms.capability("logging").is_some();
        seen.look((!declared).then(|| breach("a log message without the logging capability", "", &[position])));
    }
    seen
}

fn log_opt_in(index: &Index<'_>, revision: Revision) -> Seen {
    let mut seen = Seen::default();
    if revision.era() != Era::Stateless {
        return seen;
    }
    let asks = |request: &Value| {
        request.pointer("/params/_meta").is_some_and(|meta| meta.get("io.modelcontextprotocol/logLevel").is_some())
    };
    for (position, _) in index.received().filter(|(_, m)| method_of(m) == "notifications/message") {
        // A message belongs to one of the requests that are open when it comes.
        let asked = index.exchanges.iter().any(|exchange| {
            let answered = exchange.responses.first().map(|(at, _)| *at);
            exchange.sent < position && answered.is_none_or(|at| at > position) && asks(exchange.request)
        });
        seen.look((!asked).then(|| breach("a log message though no open request asked for one", "", &[position])));
    }
    // Calls that did not ask and drew no log message have seen the rule kept.
    let quiet = index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && !e.responses.is_empty());
    seen.seen += quiet.filter(|exchange| !asks(exchange.request)).count();
    seen
}

fn embedded_needs_resources(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call") {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let embeds = response
            .pointer("/result/content")
            .and_then(Value::as_array)
            .is_some_and(|items| items.iter().any(|item| item.get("type").is_some_and(|kind| kind == "resource")));
        if embeds {
            let declared = index.record.terms.capability("resources").is_some();
            seen.look((!declared).then(|| {
                breach(
                    "an embedded resource without the resources capability",
                    name_of(exchange.request),
                    &[exchange.sent, *position],
                )
            }));
        }
    }
    seen
}

fn calls_survived(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let entries = &index.record.entries;
    let end = entries.iter().position(|entry| matches!(entry.event, Event::Closed | Event::Exited { .. }));
    // Where we shut it down ourselves the end tells nothing.
    let by_itself =
        entries.iter().any(|entry| matches!(entry.event, Event::Shutdown { step: ShutdownStep::AlreadyExited, .. }));
    // What the session itself sends are plain calls with valid arguments; cases judge their own.
    let plain = |at: usize| matches!(entries[at].event, Event::Sent { mark: None, .. });
    // Nor does it where a case had sent something by then that may have ended the server.
    let by_itself = by_itself
        && !entries[..end.unwrap_or(0)].iter().any(|entry| matches!(entry.event, Event::Sent { mark: Some(_), .. }));
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && plain(e.sent)) {
        match (exchange.responses.first(), end) {
            (Some(_), _) => seen.look(None),
            (None, Some(end)) if end > exchange.sent && by_itself => {
                seen.look(Some(breach(
                    "the server ended before it answered",
                    name_of(exchange.request),
                    &[exchange.sent, end],
                )));
            }
            _ => {}
        }
    }
    seen
}

fn ends_on_sigterm(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, entry) in index.record.entries.iter().enumerate() {
        match entry.event {
            Event::Shutdown { step: ShutdownStep::Sigkill, .. } => {
                seen.look(Some(breach("the process had to be killed", "", &[position])));
            }
            Event::Shutdown { step: ShutdownStep::StdinClosed | ShutdownStep::Sigterm, .. } => seen.look(None),
            _ => {}
        }
    }
    seen
}

fn quiet_before_initialized(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let sent = |wanted: &str| {
        let is_wanted =
            |entry: &std::sync::Arc<crate::transcript::Entry>| entry.sent().is_some_and(|m| method_of(m) == wanted);
        index.record.entries.iter().position(is_wanted)
    };
    let Some(from) = sent("initialize") else { return seen };
    let to = sent("notifications/initialized").unwrap_or(index.record.entries.len());
    let early = index.received().find(|(position, message)| {
        (from..to).contains(position)
            && matches!(Kind::of(message), Kind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/"))
    });
    // An answered ping in between shows that the server had the time to ask.
    let had_time = index.all.iter().any(|exchange| {
        method_of(exchange.request) == "ping"
            && exchange.responses.first().is_some_and(|(at, _)| (from..to).contains(at))
    });
    if early.is_some() || had_time {
        seen.look(early.map(|(at, message)| {
            let method = shortened(method_of(message), 60);
            breach(format!("{method} before notifications/initialized"), method, &[from, at])
        }));
    }
    seen
}

fn unknown_version_not_echoed(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in &index.all {
        let Some(asked) = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str) else { continue };
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(agreed) = response.pointer("/result/protocolVersion") else { continue };
        if method_of(exchange.request) == "initialize" && asked.parse::<Revision>().is_err() {
            let echoed = agreed == asked;
            seen.look(echoed.then(|| breach(format!("the server agrees to {asked}"), "", &[exchange.sent, *position])));
        }
    }
    seen
}

fn tools_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let Some(opening) = &index.record.terms.opening else { return seen };
    for exchange in &index.exchanges {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result") else { continue };
        let offers = match method_of(exchange.request) {
            "tools/list" => tool_names(result).next().is_some(),
            "tools/call" => result.get("isError") != Some(&Value::Bool(true)),
            _ => false,
        };
        if offers {
            let declared = opening.pointer("/capabilities/tools").is_some();
            seen.look((!declared).then(|| {
                breach("no tools among the capabilities", method_of(exchange.request), &[exchange.sent, *position])
            }));
        }
    }
    seen
}

/// The capability of the client that a request of the server needs.
pub(super) fn needed_capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

fn server_request_ids(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known = BTreeSet::new();
    for (position, message) in index.received() {
        let Kind::Request { id, method } = Kind::of(message) else { continue };
        if method.starts_with("notifications/") {
            continue;
        }
        let problem = if !(id.is_string() || id.is_i64() || id.is_u64()) {
            Some(format!("{method} has id {id}"))
        } else if !known.insert(id.to_string()) {
            Some(format!("{method} uses id {id} again"))
        } else {
            None
        };
        seen.look(problem.map(|problem| breach(problem, method, &[position])));
    }
    seen
}
