//! What stands in for the placeholders of a case.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::inventory::{Inventory, Tool};
use super::session::{Session, stateless_meta};
use crate::case::{Act, Ask, Case, Placeholder};
use crate::client::OWN_VALUE;
use crate::fuzz::{Breakage, Random};
use crate::spec::{Era, Revision};
use crate::transcript::Terms;

/// Why a placeholder cannot be filled: the reason why the case is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfilled(pub(super) String);

/// A tool with the arguments that a case calls it with.
#[derive(Debug, Clone)]
pub(super) struct Bound<'a> {
    pub(super) tool: &'a Tool,
    arguments: Option<Value>,
}

impl<'a> Bound<'a> {
    fn plain(tool: &'a Tool) -> Self {
        Self { tool, arguments: tool.arguments.clone() }
    }
}

/// What stands in for the placeholders of one pass over a case's steps.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    case: &'a Case,
    tool: Option<Bound<'a>>,
    inventory: &'a Inventory,
    seed: u64,
    saved: BTreeMap<String, Value>,
}

impl<'a> Bindings<'a> {
    /// Bindings for a tool, or for none.
    pub(super) fn new(case: &'a Case, inventory: &'a Inventory, tool: Option<Bound<'a>>, seed: u64) -> Self {
        Self { case, tool, inventory, seed, saved: BTreeMap::new() }
    }

    /// What the first hint asks that is for the case and was served, of those that a function picks.
    fn hinted<T>(&self, session: &Session, pick: impl Fn(&'a Ask) -> Option<T>) -> Option<T> {
        let mut followed =
            self.inventory.hint_results.iter().filter(|followed| followed.applies_to(self.case, session.revision));
        followed.find_map(|followed| pick(&followed.hint.ask))
    }

    /// Keeps a value for later steps.
    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.saved.insert(name.to_owned(), value);
    }

    /// Whether a value was kept by a name.
    pub(super) fn has_saved(&self, name: &str) -> bool {
        self.saved.contains_key(name)
    }

    /// What stands in for a placeholder.
    pub(super) fn value(&self, placeholder: &Placeholder, session: &mut Session) -> Result<Value, Unfilled> {
        let unfilled = |reason: &str| Err(Unfilled(reason.to_owned()));
        match placeholder {
            Placeholder::Tool
            | Placeholder::ToolArguments
            | Placeholder::ToolArgumentsMissing
            | Placeholder::ToolArgumentsWrongType
            | Placeholder::ToolArgumentsOutsideEnum
            | Placeholder::ToolArgumentsAdditional
            | Placeholder::ToolArguments2020Only
            | Placeholder::ToolArgumentsAlternative
            | Placeholder::ToolSwappedCase => match &self.tool {
                Some(tool) => of_tool(tool, placeholder, self.inventory, self.seed),
                None => unfilled("no tool that may be called fits the case"),
            },
            Placeholder::UnknownTool => Ok(json!(format!("conformance-no-such-tool-{:x}", self.seed))),
            Placeholder::UnknownMethod => Ok(json!(format!("conformance/none-{:x}", self.seed))),
            Placeholder::Random => Ok(json!(format!("conformance-{:x}", self.seed))),
            Placeholder::NextCursor => match &self.inventory.next_cursor {
                Some(cursor) => Ok(json!(cursor)),
                None => unfilled("the list of tools has one page only"),
            },
            Placeholder::AlteredCursor => match self.inventory.next_cursor.as_deref().and_then(altered) {
                Some(cursor) => Ok(json!(cursor)),
                None => unfilled("the list of tools has one page only"),
            },
            Placeholder::Resource => {
                let hinted = self.hinted(session, |ask| match ask {
                    Ask::Read { uri } => Some(uri),
                    Ask::Call { .. } | Ask::Get { .. } => None,
                });
                match hinted.or(self.inventory.primitives.resources.first()) {
                    Some(uri) => Ok(json!(uri)),
                    None => unfilled("the server lists no resource"),
                }
            }
            Placeholder::Prompt | Placeholder::PromptArguments | Placeholder::PromptArgument => {
                let hinted = self.hinted(session, |ask| match ask {
                    Ask::Get { prompt, arguments } if !arguments.is_empty() => Some((prompt, arguments)),
                    Ask::Get { .. } | Ask::Call { .. } | Ask::Read { .. } => None,
                });
                let listed = || {
                    self.inventory.primitives.prompt_with_arguments().map(|prompt| (&prompt.name, &prompt.arguments))
                };
                let Some((name, arguments)) = hinted.or_else(listed) else {
                    return unfilled("no prompt with a required argument was served");
                };
                Ok(match placeholder {
                    Placeholder::PromptArguments => json!(arguments),
                    Placeholder::PromptArgument => json!(arguments.keys().next()),
                    _ => json!(name),
                })
            }
            Placeholder::Text(length) => Ok(json!("x".repeat(*length))),
            Placeholder::ListedVersion => match listed_version(&self.inventory.terms) {
                Some(version) => Ok(json!(version)),
                None => unfilled("the server lists no version that is opened by a handshake"),
            },
            Placeholder::Revision => Ok(json!(session.revision.as_str())),
            Placeholder::Id => Ok(json!(session.new_id())),
            Placeholder::Meta => Ok(match session.revision.era() {
                Era::Stateless => stateless_meta(&session.terms.client_capabilities),
                Era::Handshake => json!({}),
            }),
            // The connection knows what it would send.
            Placeholder::Header => Ok(json!(OWN_VALUE)),
            Placeholder::Session => match session.connection.http_session() {
                Some(id) => Ok(json!(id)),
                None => unfilled("the server opened no session"),
            },
            Placeholder::ClientRequestContent
            | Placeholder::ClientRequestInvalidContent
            | Placeholder::ClientRequestTool
            | Placeholder::ClientRequestCount => unfilled("nothing was asked"),
            Placeholder::Saved(name) => match self.saved.get(name) {
                Some(value) => Ok(value.clone()),
                None => unfilled("an earlier step was not answered with what a later one needs"),
            },
            Placeholder::Declined(name) => match self.saved.get(name) {
                Some(Value::Object(requests)) => {
                    Ok(requests.iter().map(|(key, asked)| (key, declined(asked))).collect())
                }
                Some(_) => unfilled("what the server asks for has no keys"),
                None => unfilled("the server asks for nothing"),
            },
        }
    }
}

/// What a client answers that grants nothing, to a request that came inside of a result.
fn declined(request: &Value) -> Value {
    match request.get("method").and_then(Value::as_str) {
        Some("roots/list") => json!({ "roots": [] }),
        Some("sampling/createMessage") => json!({
            "role": "assistant",
            "content": { "type": "text", "text": "A short answer." },
            "model": "mcp-conformance",
        }),
        _ => json!({ "action": "decline" }),
    }
}

fn of_tool(bound: &Bound<'_>, placeholder: &Placeholder, inventory: &Inventory, seed: u64) -> Result<Value, Unfilled> {
    let tool = bound.tool;
    let broken = |breakage: Breakage, what: &str| {
        let schema = tool.schema.as_ref();
        let broken = schema.and_then(|schema| match &bound.arguments {
            Some(arguments) => schema.broken_in(arguments, breakage),
            None => schema.broken(breakage),
        });
        broken.map(|broken| broken.arguments).ok_or_else(|| Unfilled(format!("no tool that may be called has {what}")))
    };
    match placeholder {
        Placeholder::ToolArguments => {
            bound.arguments.clone().ok_or_else(|| Unfilled("no tool has arguments that could be made".to_owned()))
        }
        Placeholder::ToolArgumentsMissing => broken(Breakage::MissingRequired, "a required argument"),
        Placeholder::ToolArgumentsWrongType => {
            broken(Breakage::WrongType, "an argument of a type that nobody converts")
        }
        Placeholder::ToolArgumentsOutsideEnum => broken(Breakage::OutsideEnum, "an argument with listed values"),
        Placeholder::ToolArgumentsAdditional => broken(Breakage::ExtraProperty, "additionalProperties: false"),
        Placeholder::ToolArguments2020Only => newer(tool)
            .ok_or_else(|| Unfilled("no tool that may be called has an argument with prefixItems".to_owned())),
        Placeholder::ToolArgumentsAlternative => other_arguments(tool, seed)
            .ok_or_else(|| Unfilled("no tool that may be called takes other arguments".to_owned())),
        Placeholder::ToolSwappedCase => {
            let swapped: String = tool
                .name
                .chars()
                .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            if swapped == tool.name || inventory.tools.iter().any(|other| other.name == swapped) {
                return Err(Unfilled("no tool has a name whose other case is free".to_owned()));
            }
            Ok(json!(swapped))
        }
        _ => Ok(json!(tool.name)),
    }
}

/// The newest version with a handshake among those that `server/discover` lists.
fn listed_version(terms: &Terms) -> Option<&'static str> {
    let listed = terms.opening.as_ref()?.get("supportedVersions")?.as_array()?;
    let known = listed.iter().filter_map(|version| version.as_str()?.parse::<Revision>().ok());
    known.filter(|revision| revision.era() == Era::Handshake).max().map(Revision::as_str)
}

/// Arguments that break a keyword which only the 2020-12 dialect of JSON Schema has; the tool's schema
/// names that dialect or none.
fn newer(tool: &Tool) -> Option<Value> {
    let schema = tool.definition.get("inputSchema")?;
    let named = schema.get("$schema").and_then(Value::as_str);
    if named.is_some_and(|dialect| !dialect.contains("2020-12")) {
        return None;
    }
    let arguments = tool.arguments.clone()?;
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, property) in own {
        let first = property.pointer("/prefixItems/0/type").and_then(Value::as_str);
        let wrong = match first {
            Some("object" | "array") => json!("unexpected"),
            Some("string" | "integer" | "number" | "boolean" | "null") => json!({"unexpected": true}),
            _ => continue,
        };
        let mut broken = arguments.clone();
        broken.as_object_mut()?.insert(name.clone(), json!([wrong]));
        return Some(broken);
    }
    None
}

/// Valid arguments that are not the minimal ones.
fn other_arguments(tool: &Tool, seed: u64) -> Option<Value> {
    const ATTEMPTS: usize = 20;
    let mut random = Random::new(seed);
    let generated = (0..ATTEMPTS).filter_map(|_| tool.schema.as_ref()?.generate(&mut random).ok());
    generated.into_iter().find(|arguments| tool.arguments.as_ref() != Some(arguments))
}

/// A text with one character in its middle changed.
pub(super) fn altered(cursor: &str) -> Option<String> {
    let mut characters: Vec<char> = cursor.chars().collect();
    let middle = characters.len() / 2;
    let character = characters.get_mut(middle)?;
    *character = match *character {
        '0' => '1',
        c if c.is_ascii_digit() => '0',
        'a' => 'b',
        'A' => 'B',
        c if c.is_ascii_uppercase() => 'A',
        _ => 'a',
    };
    Some(characters.into_iter().collect())
}

/// The tools that a case's placeholders can be bound to, best first; empty if it binds none.
pub(super) fn candidates<'a>(
    case: &'a Case,
    body: &Act,
    inventory: &'a Inventory,
    session: &mut Session,
) -> Result<Vec<Option<Bound<'a>>>, Unfilled> {
    const MOST: usize = 40;
    let placeholders = case.placeholders();
    let of_tool: Vec<&Placeholder> = placeholders.iter().filter(|placeholder| placeholder.is_of_tool()).collect();
    let asked = case.needs.client_request.as_ref();
    if of_tool.is_empty() && body.for_each.is_none() && case.needs.tool.is_none() && asked.is_none() {
        return Ok(vec![None]);
    }
    let mut why = Unfilled("no tool that may be called was served".to_owned());
    let mut found: Vec<Bound<'a>> = Vec::new();
    let wanted = if body.for_each.is_some() { MOST } else { 1 };
    let hinted = hinted(case, inventory, session);
    // A tool whose plain call was served proves more than one that refuses everything, and one that asks
    // nothing of the client serves a case better that is not about asking.
    let plain = inventory.tools.iter().filter(|tool| tool.is_served() && tool.client_requests.is_empty());
    let asking = inventory.tools.iter().filter(|tool| tool.is_served() && !tool.client_requests.is_empty());
    let all = body.for_each.is_some() || asked.is_some();
    let refused = inventory.tools.iter().filter(|tool| tool.is_usable() && !tool.is_served() && all);
    for bound in hinted.into_iter().chain(plain.chain(asking).chain(refused).map(Bound::plain)) {
        if found.len() >= wanted {
            break;
        }
        if found.iter().any(|known| known.tool.name == bound.tool.name) {
            continue;
        }
        if case.needs.tool.as_ref().is_some_and(|schema| !schema.fits(&bound.tool.definition)) {
            why = Unfilled("no tool that may be called is of the kind that the case needs".to_owned());
            continue;
        }
        if asked.is_some_and(|asked| !bound.tool.client_requests.iter().any(|request| asked.fits(request))) {
            why = Unfilled("no call of a tool led the server to ask the client for such a thing".to_owned());
            continue;
        }
        let bindings = Bindings::new(case, inventory, Some(bound.clone()), 0);
        match of_tool.iter().try_for_each(|placeholder| bindings.value(placeholder, session).map(drop)) {
            Ok(()) => found.push(bound),
            Err(unfilled) => why = unfilled,
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found.into_iter().map(Some).collect()) }
}

/// The tools that hints for the case were served by, with the arguments that they were served with.
fn hinted<'a>(case: &Case, inventory: &'a Inventory, session: &Session) -> Vec<Bound<'a>> {
    let helping = inventory.hint_results.iter().filter(|followed| followed.applies_to(case, session.revision));
    let bound = helping.filter_map(|followed| match &followed.hint.ask {
        Ask::Call { tool, arguments } => {
            let tool = inventory.tools.iter().find(|listed| listed.name == *tool && listed.is_usable())?;
            Some(Bound { tool, arguments: Some(Value::Object(arguments.clone())) })
        }
        Ask::Read { .. } | Ask::Get { .. } => None,
    });
    bound.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan::Calls;

    #[test]
    fn arguments_of_the_newer_dialect_break_prefix_items_and_nothing_else() {
        let tool = |schema: Value| {
            Tool::new(&json!({"name": "pair", "inputSchema": schema}), Calls::NonDestructive).expect("it has a name")
        };
        let pair = json!({"type": "array", "prefixItems": [{"type": "string"}]});
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "pair": pair}, "required": ["n"]});
        let broken = newer(&tool(schema.clone())).expect("it has prefixItems");
        assert_eq!(broken["pair"], json!([{"unexpected": true}]));
        assert!(broken["n"].is_i64(), "{broken}");
        let mut older = schema;
        older["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        assert_eq!(newer(&tool(older)), None);
        assert_eq!(newer(&tool(json!({"type": "object"}))), None);
    }

    #[test]
    fn the_newest_listed_version_with_a_handshake_is_found() {
        let terms = |versions: Value| Terms {
            client_capabilities: json!({}),
            opening: Some(json!({"supportedVersions": versions})),
        };
        let listed = terms(json!(["2026-07-28", "2024-11-05", "2025-06-18", "2099-01-01"]));
        assert_eq!(listed_version(&listed), Some("2025-06-18"));
        assert_eq!(listed_version(&terms(json!(["2026-07-28"]))), None);
    }

    #[test]
    fn what_is_asked_for_is_declined_in_its_own_form() {
        assert_eq!(declined(&json!({"method": "elicitation/create"})), json!({"action": "decline"}));
        assert_eq!(declined(&json!({"method": "roots/list"})), json!({"roots": []}));
        assert_eq!(declined(&json!({"method": "sampling/createMessage"}))["role"], "assistant");
    }

    #[test]
    fn an_altered_cursor_differs_in_one_character() {
        for cursor in ["MTA=", "10", "abc", "ü"] {
            let altered = altered(cursor).expect("it has a character");
            assert_ne!(altered, cursor);
            assert_eq!(altered.chars().count(), cursor.chars().count());
        }
        assert_eq!(altered(""), None);
    }
}
