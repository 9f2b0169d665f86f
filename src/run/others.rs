//! The first look at what a server offers beside tools: its resources, their templates and its prompts,
//! and a few of them read and got. What comes back is there for every watching case to see.
//!
//! Everything is asked side by side and waited for a bounded time, since none of it is needed for the
//! rest: what is not answered is left open.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::session::Session;
use super::survey::first_of;
use crate::client::Waited;
use crate::wire::Id;

/// How many pages of each list are read.
const MOST_PAGES: usize = 8;

/// How many resources are read, and how many prompts got.
pub(super) const MOST_USED: usize = 3;

/// How long the lists are waited for, and then what is read and got.
const PATIENCE: Duration = Duration::from_secs(1);

/// The list methods, the capability that each needs, and the member that holds the items.
const LISTS: [(&str, &str, &str); 3] = [
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resources", "resourceTemplates"),
    ("prompts/list", "prompts", "prompts"),
];

/// A prompt that the server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) name: String,
    /// Its required arguments, each with a short text.
    pub(super) arguments: Map<String, Value>,
    /// Whether it was got with them.
    served: bool,
}

/// What a server offers beside tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Others {
    /// The uris of the resources that it lists.
    pub(super) resources: Vec<String>,
    prompts: Vec<Prompt>,
    /// The keys of what each list holds that was read to its end, by the method of the list.
    pub(super) whole: BTreeMap<&'static str, Vec<String>>,
}

impl Others {
    /// The prompts that it lists.
    pub(super) fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// A prompt that wants arguments and was served with them.
    pub(super) fn demanding(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.served && !prompt.arguments.is_empty())
    }

    /// Takes note of arguments with which a prompt was served.
    pub(super) fn learn(&mut self, name: &str, arguments: &Map<String, Value>) {
        let prompt = Prompt { name: name.to_owned(), arguments: arguments.clone(), served: true };
        match self.prompts.iter_mut().find(|known| known.name == name) {
            Some(known) if known.served => {}
            Some(known) => *known = prompt,
            None => self.prompts.push(prompt),
        }
    }

    /// Notes that a list was read to its end.
    fn end(&mut self, method: &'static str) {
        let keys = match method {
            "resources/list" => self.resources.clone(),
            "prompts/list" => self.prompts.iter().map(|prompt| prompt.name.clone()).collect(),
            _ => return,
        };
        self.whole.insert(method, keys);
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

/// Lists what the server declared, and reads and gets a few of it.
pub(super) async fn look(session: &mut Session, timeout: Duration) -> Others {
    let mut others = Others::default();
    if session.terms.opening.is_none() || session.connection.is_closed() {
        return others;
    }
    list(session, &mut others, PATIENCE.min(timeout)).await;
    use_some(session, &mut others, PATIENCE.min(timeout)).await;
    others
}

/// Lists what the server declared, and uses none of it.
pub(super) async fn list_all(session: &mut Session, timeout: Duration) -> Others {
    let mut others = Others::default();
    if session.terms.opening.is_some() && !session.connection.is_closed() {
        read(session, &mut others, str::to_owned, PATIENCE.min(timeout)).await;
    }
    others
}

/// Reads the lists once more whose changes the server promised to announce.
pub(super) async fn look_again(session: &mut Session, timeout: Duration) {
    if session.terms.opening.is_some() && !session.connection.is_closed() {
        let announced = |capability: &str| format!("{capability}.listChanged");
        read(session, &mut Others::default(), announced, PATIENCE.min(timeout)).await;
    }
}

async fn send(session: &mut Session, method: &str, params: &Value) -> Id {
    let message = session.complete(&json!({ "method": method, "params": params }), true, None);
    session.send(&message, None).await;
    message["id"].clone()
}

/// Reads the pages of every list that was declared, the lists side by side.
async fn list(session: &mut Session, others: &mut Others, limit: Duration) {
    read(session, others, str::to_owned, limit).await;
}

/// Reads the lists whose capability was declared, which may be a member of that of their primitive.
async fn read(session: &mut Session, others: &mut Others, needed: impl Fn(&str) -> String, limit: Duration) {
    let began = (session.connection.len(), Instant::now());
    let mut under: Vec<(Id, usize, Vec<Value>)> = Vec::new();
    for (at, (method, capability, _)) in LISTS.into_iter().enumerate() {
        if session.terms.declares(&needed(capability)) {
            under.push((send(session, method, &json!({})).await, at, Vec::new()));
        }
    }
    while !under.is_empty() {
        let ids: Vec<Id> = under.iter().map(|(id, ..)| id.clone()).collect();
        let left = limit.saturating_sub(began.1.elapsed());
        let Waited::Came((at, response)) = first_of(session, began.0, &ids, left).await else { return };
        let (_, of, mut cursors) = under.remove(at);
        let (method, _, member) = LISTS[of];
        let Some(result) = response.get("result").filter(|result| result.get(member).is_some()) else { continue };
        others.add(method, result);
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else {
            others.end(method);
            continue;
        };
        if cursors.len() + 1 < MOST_PAGES && !cursors.contains(cursor) {
            cursors.push(cursor.clone());
            under.push((send(session, method, &json!({ "cursor": cursor })).await, of, cursors));
        }
    }
}

/// Reads the first few resources again.
pub(super) async fn read_again(session: &mut Session, others: &Others, timeout: Duration) {
    let resources = others.resources.clone();
    use_some(session, &mut Others { resources, ..Others::default() }, PATIENCE.min(timeout)).await;
}

/// Reads the first few resources and gets the first few prompts, all side by side.
async fn use_some(session: &mut Session, others: &mut Others, limit: Duration) {
    let began = (session.connection.len(), Instant::now());
    let mut under: Vec<(Id, Option<usize>)> = Vec::new();
    for uri in others.resources.iter().take(MOST_USED) {
        under.push((send(session, "resources/read", &json!({ "uri": uri })).await, None));
    }
    for (at, prompt) in others.prompts.iter().enumerate().take(MOST_USED) {
        let params = if prompt.arguments.is_empty() {
            json!({ "name": prompt.name })
        } else {
            json!({ "name": prompt.name, "arguments": prompt.arguments })
        };
        under.push((send(session, "prompts/get", &params).await, Some(at)));
    }
    while !under.is_empty() {
        let ids: Vec<Id> = under.iter().map(|(id, _)| id.clone()).collect();
        let left = limit.saturating_sub(began.1.elapsed());
        let Waited::Came((at, response)) = first_of(session, began.0, &ids, left).await else { return };
        if let (_, Some(prompt)) = under.remove(at) {
            others.prompts[prompt].served = response.get("result").is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_get_a_short_text() {
        let read = prompt(&json!({
            "name": "review",
            "arguments": [{"name": "code", "required": true}, {"name": "style"}, {"required": true}],
        }));
        let read = read.expect("it has a name");
        assert_eq!(json!(read.arguments), json!({"code": "test"}));
        assert_eq!(prompt(&json!({"arguments": []})), None);
    }

    #[test]
    fn a_prompt_that_wants_arguments_counts_once_it_was_served() {
        let mut others = Others::default();
        others.add(
            "prompts/list",
            &json!({"prompts": [{"name": "a"}, {"name": "b", "arguments": [{"name": "c", "required": true}]}]}),
        );
        assert_eq!(others.demanding(), None);
        others.prompts[0].served = true;
        assert_eq!(others.demanding(), None);
        others.prompts[1].served = true;
        assert_eq!(others.demanding().map(|prompt| prompt.name.as_str()), Some("b"));
    }
}
