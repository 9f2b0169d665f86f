//! Discovers the server's resources, resource templates and prompts, and reads or gets a few of them. Passive cases
//! judge the messages.
//!
//! All requests are concurrent and have a short timeout, because nothing else depends on them: missing responses are
//! ignored.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::discovery::wait_for_first_response;
use super::session::Session;
use crate::client::WaitOutcome;
use crate::wire::Id;

/// The maximum number of pages per list.
const MAX_PAGES: usize = 8;

/// How many resources to read, and how many prompts to get.
pub(super) const MAX_USED: usize = 3;

/// The timeout of the lists, and then of the reads.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// Each list method with its capability and the member that contains the items.
const LISTS: [(&str, &str, &str); 3] = [
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resources", "resourceTemplates"),
    ("prompts/list", "prompts", "prompts"),
];

/// A prompt that the server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) name: String,
    /// Its required arguments, each with a short string.
    pub(super) arguments: Map<String, Value>,
    /// Whether getting it with them succeeded.
    served: bool,
}

/// The resources and prompts of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Primitives {
    /// The URIs of the listed resources.
    pub(super) resources: Vec<String>,
    prompts: Vec<Prompt>,
    /// The keys of each list that was read to its end, by list method.
    pub(super) complete_lists: BTreeMap<&'static str, Vec<String>>,
}

impl Primitives {
    /// The listed prompts.
    pub(super) fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// A prompt with required arguments that was served.
    pub(super) fn prompt_with_arguments(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.served && !prompt.arguments.is_empty())
    }

    /// Records arguments with which getting a prompt succeeded.
    pub(super) fn record_working_arguments(&mut self, name: &str, arguments: &Map<String, Value>) {
        let prompt = Prompt { name: name.to_owned(), arguments: arguments.clone(), served: true };
        match self.prompts.iter_mut().find(|known| known.name == name) {
            Some(known) if known.served => {}
            Some(known) => *known = prompt,
            None => self.prompts.push(prompt),
        }
    }

    /// Records that a list was read to its end.
    fn mark_complete(&mut self, method: &'static str) {
        let keys = match method {
            "resources/list" => self.resources.clone(),
            "prompts/list" => self.prompts.iter().map(|prompt| prompt.name.clone()).collect(),
            _ => return,
        };
        self.complete_lists.insert(method, keys);
    }

    fn add(&mut self, method: &str, result: &Value) {
        let items = |member: &str| result.get(member).and_then(Value::as_array).into_iter().flatten();
        match method {
            "resources/list" => {
                let uris = items("resources").filter_map(|resource| resource.get("uri")?.as_str());
                self.resources.extend(uris.map(str::to_owned));
            }
            "prompts/list" => self.prompts.extend(items("prompts").filter_map(prompt)),
            _ => {}
        }
    }
}

fn prompt(definition: &Value) -> Option<Prompt> {
    let name = definition.get("name")?.as_str()?.to_owned();
    let given = definition.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let required = given.filter(|argument| argument.get("required") == Some(&Value::Bool(true)));
    let arguments =
        required.filter_map(|argument| Some((argument.get("name")?.as_str()?.to_owned(), json!("test")))).collect();
    Some(Prompt { name, arguments, served: false })
}

/// Reads the declared lists, and reads or gets a few of their items.
pub(super) async fn discover(session: &mut Session, timeout: Duration) -> Primitives {
    let mut primitives = Primitives::default();
    if session.parameters.opening.is_none() || session.connection.is_closed() {
        return primitives;
    }
    list(session, &mut primitives, LIST_TIMEOUT.min(timeout)).await;
    read_and_get_some(session, &mut primitives, LIST_TIMEOUT.min(timeout)).await;
    primitives
}

/// Reads the declared lists only.
pub(super) async fn list_only(session: &mut Session, timeout: Duration) -> Primitives {
    let mut primitives = Primitives::default();
    if session.parameters.opening.is_some() && !session.connection.is_closed() {
        read(session, &mut primitives, str::to_owned, LIST_TIMEOUT.min(timeout)).await;
    }
    primitives
}

/// Reads those lists again whose changes the server promised to announce.
pub(super) async fn list_announced_again(session: &mut Session, timeout: Duration) {
    if session.parameters.opening.is_some() && !session.connection.is_closed() {
        let announced = |capability: &str| format!("{capability}.listChanged");
        read(session, &mut Primitives::default(), announced, LIST_TIMEOUT.min(timeout)).await;
    }
}

async fn send(session: &mut Session, method: &str, params: &Value) -> Id {
    let message = session.complete(&json!({ "method": method, "params": params }), true, None);
    session.send(&message, None).await;
    message["id"].clone()
}

/// Reads the pages of all declared lists concurrently.
async fn list(session: &mut Session, primitives: &mut Primitives, limit: Duration) {
    read(session, primitives, str::to_owned, limit).await;
}

/// Reads the lists whose capability, or the given member of it, was declared.
async fn read(session: &mut Session, primitives: &mut Primitives, needed: impl Fn(&str) -> String, limit: Duration) {
    let began = (session.connection.len(), Instant::now());
    let mut pending: Vec<(Id, usize, Vec<Value>)> = Vec::new();
    for (at, (method, capability, _)) in LISTS.into_iter().enumerate() {
        if session.parameters.declares(&needed(capability)) {
            pending.push((send(session, method, &json!({})).await, at, Vec::new()));
        }
    }
    while !pending.is_empty() {
        let ids: Vec<Id> = pending.iter().map(|(id, ..)| id.clone()).collect();
        let left = limit.saturating_sub(began.1.elapsed());
        let WaitOutcome::Ready((at, response)) = wait_for_first_response(session, began.0, &ids, left).await else {
            return;
        };
        let (_, of, mut cursors) = pending.remove(at);
        let (method, _, member) = LISTS[of];
        let Some(result) = response.get("result").filter(|result| result.get(member).is_some()) else { continue };
        primitives.add(method, result);
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else {
            primitives.mark_complete(method);
            continue;
        };
        if cursors.len() + 1 < MAX_PAGES && !cursors.contains(cursor) {
            cursors.push(cursor.clone());
            pending.push((send(session, method, &json!({ "cursor": cursor })).await, of, cursors));
        }
    }
}

/// Reads the first few resources again.
pub(super) async fn read_resources_again(session: &mut Session, primitives: &Primitives, timeout: Duration) {
    let resources = primitives.resources.clone();
    read_and_get_some(session, &mut Primitives { resources, ..Primitives::default() }, LIST_TIMEOUT.min(timeout)).await;
}

/// Reads the first few resources and gets the first few prompts, concurrently.
async fn read_and_get_some(session: &mut Session, primitives: &mut Primitives, limit: Duration) {
    let began = (session.connection.len(), Instant::now());
    let mut pending: Vec<(Id, Option<usize>)> = Vec::new();
    for uri in primitives.resources.iter().take(MAX_USED) {
        pending.push((send(session, "resources/read", &json!({ "uri": uri })).await, None));
    }
    for (at, prompt) in primitives.prompts.iter().enumerate().take(MAX_USED) {
        let params = if prompt.arguments.is_empty() {
            json!({ "name": prompt.name })
        } else {
            json!({ "name": prompt.name, "arguments": prompt.arguments })
        };
        pending.push((send(session, "prompts/get", &params).await, Some(at)));
    }
    while !pending.is_empty() {
        let ids: Vec<Id> = pending.iter().map(|(id, _)| id.clone()).collect();
        let left = limit.saturating_sub(began.1.elapsed());
        let WaitOutcome::Ready((at, response)) = wait_for_first_response(session, began.0, &ids, left).await else {
            return;
        };
        if let (_, Some(prompt)) = pending.remove(at) {
            primitives.prompts[prompt].served = response.get("result").is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_get_a_short_string() {
        let read = prompt(&json!({
            "name": "review",
            "arguments": [{"name": "code", "required": true}, {"name": "style"}, {"required": true}],
        }));
        let read = read.expect("it has a name");
        assert_eq!(json!(read.arguments), json!({"code": "test"}));
        assert_eq!(prompt(&json!({"arguments": []})), None);
    }

    #[test]
    fn a_prompt_with_arguments_counts_once_it_was_served() {
        let mut primitives = Primitives::default();
        primitives.add(
            "prompts/list",
            &json!({"prompts": [{"name": "a"}, {"name": "b", "arguments": [{"name": "c", "required": true}]}]}),
        );
        assert_eq!(primitives.prompt_with_arguments(), None);
        primitives.prompts[0].served = true;
        assert_eq!(primitives.prompt_with_arguments(), None);
        primitives.prompts[1].served = true;
        assert_eq!(primitives.prompt_with_arguments().map(|prompt| prompt.name.as_str()), Some("b"));
    }
}
