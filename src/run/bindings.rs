//! The values of the placeholders of a case.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::inventory::{Inventory, Tool};
use super::primitives::Prompt;
use super::session::{Session, stateless_meta};
use crate::case::{Active, Case, ForEach, HintRequest, Placeholder};
use crate::client::CLIENT_HEADER_VALUE;
use crate::fuzz::{Mistake, Random};
use crate::spec::{Era, Revision};
use crate::transcript::SessionParameters;

/// Why a placeholder cannot be filled in, and so why the case is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingValue(pub(super) String);

/// A tool with the arguments that a case calls it with.
#[derive(Debug, Clone)]
pub(super) struct BoundTool<'a> {
    pub(super) tool: &'a Tool,
    arguments: Option<Value>,
}

impl<'a> BoundTool<'a> {
    fn plain(tool: &'a Tool) -> Self {
        Self { tool, arguments: tool.arguments.clone() }
    }
}

/// What the steps of a case are carried out for.
#[derive(Debug, Clone)]
pub(super) enum Item<'a> {
    /// Nothing in particular.
    Nothing,
    /// A tool.
    Tool(BoundTool<'a>),
    /// A resource, by its URI.
    Resource(&'a str),
    /// A prompt.
    Prompt(&'a Prompt),
    /// A page of a list.
    Page { method: String, number: usize, cursor: Value },
}

impl Item<'_> {
    /// The name of the tool.
    pub(super) fn tool_name(&self) -> Option<&str> {
        match self {
            Self::Tool(bound) => Some(&bound.tool.name),
            _ => None,
        }
    }

    /// How findings name it.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Tool(bound) => format!("tool {}", bound.tool.name),
            Self::Resource(uri) => format!("resource {uri}"),
            Self::Prompt(prompt) => format!("prompt {}", prompt.name),
            Self::Page { method, number, .. } => format!("page {number} of {method}"),
        }
    }
}

/// The values of the placeholders in one pass over a case's steps.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    case: &'a Case,
    item: Item<'a>,
    inventory: &'a Inventory,
    seed: u64,
    saved: BTreeMap<String, Value>,
}

impl<'a> Bindings<'a> {
    /// Bindings for an item.
    pub(super) fn new(case: &'a Case, inventory: &'a Inventory, item: Item<'a>, seed: u64) -> Self {
        Self { case, item, inventory, seed, saved: BTreeMap::new() }
    }

    /// The request of the first hint that is for the case and was served, among those that a function selects.
    fn hinted<T>(&self, session: &Session, pick: impl Fn(&'a HintRequest) -> Option<T>) -> Option<T> {
        let mut followed =
            self.inventory.hint_results.iter().filter(|followed| followed.applies_to(self.case, session.revision));
        followed.find_map(|followed| pick(&followed.hint.request))
    }

    /// Saves a value for later steps.
    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.saved.insert(name.to_owned(), value);
    }

    /// Whether a value was saved under a name.
    pub(super) fn has_saved(&self, name: &str) -> bool {
        self.saved.contains_key(name)
    }

    /// The value of a placeholder.
    pub(super) fn value(&self, placeholder: &Placeholder, session: &mut Session) -> Result<Value, MissingValue> {
        let unfilled = |reason: &str| Err(MissingValue(reason.to_owned()));
        match placeholder {
            Placeholder::Tool
            | Placeholder::ToolArguments
            | Placeholder::ToolArgumentsMissing
            | Placeholder::ToolArgumentsWrongType
            | Placeholder::ToolArgumentsOutsideEnum
            | Placeholder::ToolArgumentsAdditional
            | Placeholder::ToolArguments2020Only
            | Placeholder::ToolArgumentsAlternative
            | Placeholder::ToolSwappedCase => match &self.item {
                Item::Tool(tool) => of_tool(tool, placeholder, self.inventory, self.seed),
                _ => unfilled("no tool that may be called is suitable for the case"),
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
            Placeholder::PageCursor => match &self.item {
                Item::Page { cursor, .. } => Ok(cursor.clone()),
                _ => unfilled("the case is not carried out for a page"),
            },
            Placeholder::Resource => {
                if let Item::Resource(uri) = &self.item {
                    return Ok(json!(uri));
                }
                let hinted = self.hinted(session, |request| match request {
                    HintRequest::Read { uri } => Some(uri),
                    HintRequest::Call { .. } | HintRequest::Get { .. } => None,
                });
                match hinted.or(self.inventory.primitives.resources.first()) {
                    Some(uri) => Ok(json!(uri)),
                    None => unfilled("the server lists no resource"),
                }
            }
            Placeholder::Prompt | Placeholder::PromptArguments | Placeholder::PromptArgument => {
                let hinted = self.hinted(session, |request| match request {
                    HintRequest::Get { prompt, arguments } if !arguments.is_empty() => Some((prompt, arguments)),
                    HintRequest::Get { .. } | HintRequest::Call { .. } | HintRequest::Read { .. } => None,
                });
                let listed = || {
                    self.inventory.primitives.prompt_with_arguments().map(|prompt| (&prompt.name, &prompt.arguments))
                };
                let bound = match &self.item {
                    Item::Prompt(prompt) => Some((&prompt.name, &prompt.arguments)),
                    _ => None,
                };
                let Some((name, arguments)) = bound.or(hinted).or_else(listed) else {
                    return unfilled("no prompt with a required argument was served");
                };
                Ok(match placeholder {
                    Placeholder::PromptArguments => json!(arguments),
                    Placeholder::PromptArgument => json!(arguments.keys().next()),
                    _ => json!(name),
                })
            }
            Placeholder::Text(length) => Ok(json!("x".repeat(*length))),
            Placeholder::ListedVersion => match listed_version(&self.inventory.session_parameters) {
                Some(version) => Ok(json!(version)),
                None => unfilled("the server lists no version with a handshake"),
            },
            Placeholder::Revision => Ok(json!(session.revision.as_str())),
            Placeholder::Id => Ok(json!(session.new_id())),
            Placeholder::Meta => Ok(match session.revision.era() {
                Era::Stateless => stateless_meta(&session.parameters.client_capabilities),
                Era::Handshake => json!({}),
            }),
            // The connection replaces it by its own value.
            Placeholder::Header => Ok(json!(CLIENT_HEADER_VALUE)),
            Placeholder::Session => match session.connection.http_session() {
                Some(id) => Ok(json!(id)),
                None => unfilled("the server opened no session"),
            },
            Placeholder::ClientRequestContent
            | Placeholder::ClientRequestInvalidContent
            | Placeholder::ClientRequestTool
            | Placeholder::ClientRequestCount => unfilled("there is no request of the server"),
            Placeholder::Saved(name) => match self.saved.get(name) {
                Some(value) => Ok(value.clone()),
                None => unfilled("the response to an earlier step lacks what a later one needs"),
            },
            Placeholder::Declined(name) => match self.saved.get(name) {
                Some(Value::Object(requests)) => {
                    Ok(requests.iter().map(|(key, request)| (key, declined(request))).collect())
                }
                Some(_) => unfilled("what the server requests has no keys"),
                None => unfilled("the server requests nothing"),
            },
        }
    }
}

/// The response of a client that grants nothing, to a request inside of a result.
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

fn of_tool(
    bound: &BoundTool<'_>,
    placeholder: &Placeholder,
    inventory: &Inventory,
    seed: u64,
) -> Result<Value, MissingValue> {
    let tool = bound.tool;
    let invalid = |breakage: Mistake, what: &str| {
        let schema = tool.schema.as_ref();
        let broken = schema.and_then(|schema| match &bound.arguments {
            Some(arguments) => schema.with_mistake_in(arguments, breakage),
            None => schema.with_mistake(breakage),
        });
        broken
            .map(|broken| broken.arguments)
            .ok_or_else(|| MissingValue(format!("no tool that may be called has {what}")))
    };
    match placeholder {
        Placeholder::ToolArguments => {
            bound.arguments.clone().ok_or_else(|| MissingValue("no arguments could be generated for a tool".to_owned()))
        }
        Placeholder::ToolArgumentsMissing => invalid(Mistake::MissingRequired, "a required argument"),
        Placeholder::ToolArgumentsWrongType => {
            invalid(Mistake::WrongType, "an argument of a type that is not converted")
        }
        Placeholder::ToolArgumentsOutsideEnum => invalid(Mistake::OutsideEnum, "an argument with listed values"),
        Placeholder::ToolArgumentsAdditional => invalid(Mistake::ExtraProperty, "additionalProperties: false"),
        Placeholder::ToolArguments2020Only => invalid_in_2020_12(tool)
            .ok_or_else(|| MissingValue("no tool that may be called has an argument with prefixItems".to_owned())),
        Placeholder::ToolArgumentsAlternative => other_arguments(tool, seed)
            .ok_or_else(|| MissingValue("no tool that may be called takes other arguments".to_owned())),
        Placeholder::ToolSwappedCase => {
            let swapped: String = tool
                .name
                .chars()
                .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            if swapped == tool.name || inventory.tools.iter().any(|other| other.name == swapped) {
                return Err(MissingValue("every tool name in swapped case is that of a tool".to_owned()));
            }
            Ok(json!(swapped))
        }
        _ => Ok(json!(tool.name)),
    }
}

/// The newest version with a handshake among those that `server/discover` lists.
fn listed_version(session_parameters: &SessionParameters) -> Option<&'static str> {
    let listed = session_parameters.opening.as_ref()?.get("supportedVersions")?.as_array()?;
    let known = listed.iter().filter_map(|version| version.as_str()?.parse::<Revision>().ok());
    known.filter(|revision| revision.era() == Era::Handshake).max().map(Revision::as_str)
}

/// Arguments that violate a keyword which only the 2020-12 dialect of JSON Schema has; the tool's schema names that dialect
/// or none.
fn invalid_in_2020_12(tool: &Tool) -> Option<Value> {
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

/// A string with the character in its middle changed.
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

/// The items that a case is carried out for, best first; an item of nothing if its placeholders need none.
pub(super) fn candidates<'a>(
    case: &'a Case,
    body: &Active,
    inventory: &'a Inventory,
    session: &mut Session,
) -> Result<Vec<Item<'a>>, MissingValue> {
    match body.for_each.as_ref().and_then(|for_each| listed(for_each, inventory)) {
        None => tools(case, body, inventory, session),
        Some(items) if items.is_empty() => {
            Err(MissingValue("the server lists nothing that the case could be repeated for".to_owned()))
        }
        Some(items) => Ok(items),
    }
}

/// The listed resources or prompts that a case is repeated for, if it is for these.
fn listed<'a>(for_each: &ForEach, inventory: &'a Inventory) -> Option<Vec<Item<'a>>> {
    let primitives = &inventory.primitives;
    match for_each {
        ForEach::Resource => Some(primitives.resources.iter().take(MAX_ITEMS).map(|uri| Item::Resource(uri)).collect()),
        ForEach::Prompt => Some(primitives.prompts().iter().take(MAX_ITEMS).map(Item::Prompt).collect()),
        ForEach::Tool | ForEach::Page(_) => None,
    }
}

/// How many items a case is repeated for at most.
const MAX_ITEMS: usize = 40;

/// The tools that a case's placeholders can be bound to.
fn tools<'a>(
    case: &'a Case,
    body: &Active,
    inventory: &'a Inventory,
    session: &mut Session,
) -> Result<Vec<Item<'a>>, MissingValue> {
    let placeholders = case.placeholders();
    let of_tool: Vec<&Placeholder> = placeholders.iter().filter(|placeholder| placeholder.is_of_tool()).collect();
    let client_request = case.needs.client_request.as_ref();
    if of_tool.is_empty() && body.for_each.is_none() && case.needs.tool.is_none() && client_request.is_none() {
        return Ok(vec![Item::Nothing]);
    }
    let mut why = MissingValue("no tool that may be called was served".to_owned());
    let mut found: Vec<BoundTool<'a>> = Vec::new();
    let wanted = if body.for_each.is_some() { MAX_ITEMS } else { 1 };
    let hinted = hinted(case, inventory, session);
    // A tool whose plain call was served proves more than one that rejects everything, and one that makes no request of
    // the client is better for a case that is not about such requests.
    let plain = inventory.tools.iter().filter(|tool| tool.is_served() && tool.client_requests.is_empty());
    let requesting = inventory.tools.iter().filter(|tool| tool.is_served() && !tool.client_requests.is_empty());
    let all = body.for_each.is_some() || client_request.is_some();
    let unserved = inventory.tools.iter().filter(|tool| tool.is_usable() && !tool.is_served() && all);
    for bound in hinted.into_iter().chain(plain.chain(requesting).chain(unserved).map(BoundTool::plain)) {
        if found.len() >= wanted {
            break;
        }
        if found.iter().any(|known| known.tool.name == bound.tool.name) {
            continue;
        }
        if case.needs.tool.as_ref().is_some_and(|schema| !schema.fits(&bound.tool.definition)) {
            why = MissingValue("no tool that may be called is of the kind that the case needs".to_owned());
            continue;
        }
        if client_request.is_some_and(|schema| !bound.tool.client_requests.iter().any(|request| schema.fits(request))) {
            why = MissingValue("the server made no such request of the client during the call of a tool".to_owned());
            continue;
        }
        let bindings = Bindings::new(case, inventory, Item::Tool(bound.clone()), 0);
        match of_tool.iter().try_for_each(|placeholder| bindings.value(placeholder, session).map(drop)) {
            Ok(()) => found.push(bound),
            Err(unfilled) => why = unfilled,
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found.into_iter().map(Item::Tool).collect()) }
}

/// The tools that served hints for the case, with the arguments of the hints.
fn hinted<'a>(case: &Case, inventory: &'a Inventory, session: &Session) -> Vec<BoundTool<'a>> {
    let helping = inventory.hint_results.iter().filter(|followed| followed.applies_to(case, session.revision));
    let bound = helping.filter_map(|followed| match &followed.hint.request {
        HintRequest::Call { tool, arguments } => {
            let tool = inventory.tools.iter().find(|listed| listed.name == *tool && listed.is_usable())?;
            Some(BoundTool { tool, arguments: Some(Value::Object(arguments.clone())) })
        }
        HintRequest::Read { .. } | HintRequest::Get { .. } => None,
    });
    bound.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan::CallPolicy;

    #[test]
    fn arguments_for_2020_12_violate_prefix_items_and_nothing_else() {
        let tool = |schema: Value| {
            Tool::new(&json!({"name": "pair", "inputSchema": schema}), CallPolicy::NonDestructive)
                .expect("it has a name")
        };
        let pair = json!({"type": "array", "prefixItems": [{"type": "string"}]});
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "pair": pair}, "required": ["n"]});
        let broken = invalid_in_2020_12(&tool(schema.clone())).expect("it has prefixItems");
        assert_eq!(broken["pair"], json!([{"unexpected": true}]));
        assert!(broken["n"].is_i64(), "{broken}");
        let mut older = schema;
        older["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        assert_eq!(invalid_in_2020_12(&tool(older)), None);
        assert_eq!(invalid_in_2020_12(&tool(json!({"type": "object"}))), None);
    }

    #[test]
    fn a_case_is_repeated_for_each_listed_resource_and_prompt() {
        let mut inventory = Inventory::default();
        inventory.primitives.resources = vec!["file:///a".to_owned(), "file:///b".to_owned()];
        inventory.primitives.record_working_arguments("review", &serde_json::Map::new());
        let labels = |for_each: &ForEach| -> Option<Vec<String>> {
            Some(listed(for_each, &inventory)?.iter().map(Item::label).collect())
        };
        assert_eq!(
            labels(&ForEach::Resource),
            Some(vec!["resource file:///a".to_owned(), "resource file:///b".to_owned()])
        );
        assert_eq!(labels(&ForEach::Prompt), Some(vec!["prompt review".to_owned()]));
        assert_eq!(labels(&ForEach::Tool), None);
        let page = Item::Page { method: "tools/list".to_owned(), number: 2, cursor: json!("x") };
        assert_eq!(page.label(), "page 2 of tools/list");
    }

    #[test]
    fn the_newest_listed_version_with_a_handshake_is_found() {
        let session_parameters = |versions: Value| SessionParameters {
            client_capabilities: json!({}),
            opening: Some(json!({"supportedVersions": versions})),
        };
        let listed = session_parameters(json!(["2026-07-28", "2024-11-05", "2025-06-18", "2099-01-01"]));
        assert_eq!(listed_version(&listed), Some("2025-06-18"));
        assert_eq!(listed_version(&session_parameters(json!(["2026-07-28"]))), None);
    }

    #[test]
    fn each_kind_of_request_is_declined_in_its_own_form() {
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
