//! What stands in for the placeholders of a case.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::offer::{Offer, Tool};
use super::session::{Session, stateless_meta};
use crate::case::{Act, Case, Placeholder};
use crate::fuzz::Breakage;
use crate::spec::{Era, Revision};
use crate::transcript::Terms;

/// Why a placeholder cannot be filled: the reason why the case is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfilled(pub(super) String);

/// What stands in for the placeholders of one pass over a case's steps.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    pub(super) tool: Option<&'a Tool>,
    offer: &'a Offer,
    seed: u64,
    saved: BTreeMap<String, Value>,
}

impl<'a> Bindings<'a> {
    /// Bindings for a tool, or for none.
    pub(super) fn new(offer: &'a Offer, tool: Option<&'a Tool>, seed: u64) -> Self {
        Self { tool, offer, seed, saved: BTreeMap::new() }
    }

    /// Keeps a value for later steps.
    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.saved.insert(name.to_owned(), value);
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
            | Placeholder::ToolArgumentsExtra
            | Placeholder::ToolArgumentsNewer
            | Placeholder::ToolSwappedCase => match self.tool {
                Some(tool) => of_tool(tool, placeholder, self.offer),
                None => unfilled("no tool that may be called fits the case"),
            },
            Placeholder::UnknownTool => Ok(json!(format!("conformance-no-such-tool-{:x}", self.seed))),
            Placeholder::UnknownMethod => Ok(json!(format!("conformance/none-{:x}", self.seed))),
            Placeholder::Random => Ok(json!(format!("conformance-{:x}", self.seed))),
            Placeholder::NextCursor => match &self.offer.next_cursor {
                Some(cursor) => Ok(json!(cursor)),
                None => unfilled("the list of tools has one page only"),
            },
            Placeholder::AlteredCursor => match self.offer.next_cursor.as_deref().and_then(altered) {
                Some(cursor) => Ok(json!(cursor)),
                None => unfilled("the list of tools has one page only"),
            },
            Placeholder::Resource => match self.offer.others.resources.first() {
                Some(uri) => Ok(json!(uri)),
                None => unfilled("the server lists no resource"),
            },
            Placeholder::Prompt | Placeholder::PromptArguments | Placeholder::PromptArgument => {
                let Some(prompt) = self.offer.others.demanding() else {
                    return unfilled("no prompt with a required argument was served");
                };
                Ok(match placeholder {
                    Placeholder::PromptArguments => json!(prompt.arguments),
                    Placeholder::PromptArgument => json!(prompt.arguments.keys().next()),
                    _ => json!(prompt.name),
                })
            }
            Placeholder::Text(length) => Ok(json!("x".repeat(*length))),
            Placeholder::ListedVersion => match listed_version(&self.offer.terms) {
                Some(version) => Ok(json!(version)),
                None => unfilled("the server lists no version that is opened by a handshake"),
            },
            Placeholder::Revision => Ok(json!(session.revision.as_str())),
            Placeholder::Id => Ok(json!(session.new_id())),
            Placeholder::Meta => Ok(match session.revision.era() {
                Era::Stateless => stateless_meta(&session.terms.client_capabilities),
                Era::Handshake => json!({}),
            }),
            Placeholder::Saved(name) => match self.saved.get(name) {
                Some(value) => Ok(value.clone()),
                None => unfilled("an earlier step was not answered with what a later one needs"),
            },
        }
    }
}

fn of_tool(tool: &Tool, placeholder: &Placeholder, offer: &Offer) -> Result<Value, Unfilled> {
    let broken = |breakage: Breakage, what: &str| {
        tool.schema
            .as_ref()
            .and_then(|schema| schema.broken(breakage))
            .map(|broken| broken.arguments)
            .ok_or_else(|| Unfilled(format!("no tool that may be called has {what}")))
    };
    match placeholder {
        Placeholder::ToolArguments => {
            tool.arguments.clone().ok_or_else(|| Unfilled("no tool has arguments that could be made".to_owned()))
        }
        Placeholder::ToolArgumentsMissing => broken(Breakage::MissingRequired, "a required argument"),
        Placeholder::ToolArgumentsWrongType => {
            broken(Breakage::WrongType, "an argument of a type that nobody converts")
        }
        Placeholder::ToolArgumentsOutsideEnum => broken(Breakage::OutsideEnum, "an argument with listed values"),
        Placeholder::ToolArgumentsExtra => broken(Breakage::ExtraProperty, "additionalProperties: false"),
        Placeholder::ToolArgumentsNewer => newer(tool)
            .ok_or_else(|| Unfilled("no tool that may be called has an argument with prefixItems".to_owned())),
        Placeholder::ToolSwappedCase => {
            let swapped: String = tool
                .name
                .chars()
                .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            if swapped == tool.name || offer.tools.iter().any(|other| other.name == swapped) {
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

/// A cursor with one character in its middle changed.
fn altered(cursor: &str) -> Option<String> {
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
    case: &Case,
    body: &Act,
    offer: &'a Offer,
    session: &mut Session,
) -> Result<Vec<Option<&'a Tool>>, Unfilled> {
    const MOST: usize = 24;
    let placeholders = case.placeholders();
    let of_tool: Vec<&Placeholder> = placeholders.iter().filter(|placeholder| placeholder.is_of_tool()).collect();
    if of_tool.is_empty() && body.each.is_none() && case.needs.tool.is_none() {
        return Ok(vec![None]);
    }
    let mut why = Unfilled("no tool that may be called was served".to_owned());
    let mut found: Vec<&Tool> = Vec::new();
    let wanted = if body.each.is_some() { MOST } else { 1 };
    // A tool whose plain call was served proves more than one that refuses everything.
    let served = offer.tools.iter().filter(|tool| tool.is_served());
    let refused = offer.tools.iter().filter(|tool| tool.is_usable() && !tool.is_served() && body.each.is_some());
    for tool in served.chain(refused) {
        if found.len() >= wanted {
            break;
        }
        if case.needs.tool.as_ref().is_some_and(|schema| !schema.fits(&tool.definition)) {
            why = Unfilled("no tool that may be called is of the kind that the case needs".to_owned());
            continue;
        }
        let bindings = Bindings::new(offer, Some(tool), 0);
        match of_tool.iter().try_for_each(|placeholder| bindings.value(placeholder, session).map(drop)) {
            Ok(()) => found.push(tool),
            Err(unfilled) => why = unfilled,
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found.into_iter().map(Some).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan::Calls;

    #[test]
    fn arguments_of_the_newer_dialect_break_prefix_items_and_nothing_else() {
        let tool = |schema: Value| {
            Tool::new(&json!({"name": "pair", "inputSchema": schema}), Calls::Harmless).expect("it has a name")
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
    fn an_altered_cursor_differs_in_one_character() {
        for cursor in ["MTA=", "10", "abc", "ü"] {
            let altered = altered(cursor).expect("it has a character");
            assert_ne!(altered, cursor);
            assert_eq!(altered.chars().count(), cursor.chars().count());
        }
        assert_eq!(altered(""), None);
    }
}
