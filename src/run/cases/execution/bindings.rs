//! The values of the placeholders of a case.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::filled_message::fill_mark;
use super::lasting_call::LastingCall;
use super::tool_arguments::{BoundTool, MissingValue, altered, swapped_case};
use crate::case::{Case, HintRequest, Placeholder, fill, fill_text};
use crate::client::{CLIENT_HEADER_VALUE, FOREIGN_AUTHORIZATION, SECOND_AUTHORIZATION};
use crate::inventory::{Inventory, Prompt};
use crate::scratch::RootFolder;
use crate::session::{Session, stateless_meta};
use crate::spec::{Era, Revision};
use crate::transcript::SessionParameters;

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

    /// Whether it exists only on the session that discovered it.
    pub(super) fn depends_on_session(&self) -> bool {
        match self {
            Self::Tool(bound) => bound.tool.depends_on_results,
            Self::Page { .. } => true,
            Self::Nothing | Self::Resource(_) | Self::Prompt(_) => false,
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

/// The values of the placeholders in one execution of a case.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    case: &'a Case,
    item: Item<'a>,
    inventory: &'a Inventory,
    seed: u64,
    saved: BTreeMap<String, Value>,
    /// The files of a case about the roots of the client.
    folder: Option<&'a RootFolder>,
}

impl<'a> Bindings<'a> {
    /// Bindings for an item.
    pub(super) fn new(case: &'a Case, inventory: &'a Inventory, item: Item<'a>, seed: u64) -> Self {
        Self { case, item, inventory, seed, saved: BTreeMap::new(), folder: None }
    }

    /// The same with the files of a case about the roots of the client.
    pub(super) fn with_folder(self, folder: Option<&'a RootFolder>) -> Self {
        Self { folder, ..self }
    }

    /// The request of the first hint that is for the case and was served, among those that a function selects.
    fn hinted<T>(&self, session: &Session, pick: impl Fn(&'a HintRequest) -> Option<T>) -> Option<T> {
        let mut followed =
            self.inventory.hint_results.iter().filter(|followed| followed.applies_to(self.case, session.revision));
        followed.find_map(|followed| pick(&followed.hint.request))
    }

    /// How long the lasting call of the case's tool presumably takes.
    pub(super) fn lasting_call_duration(&self) -> Option<Duration> {
        match &self.item {
            Item::Tool(bound) => LastingCall::of(bound.tool).map(|call| call.duration),
            _ => None,
        }
    }

    /// Saves a value for later steps.
    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.saved.insert(name.to_owned(), value);
    }

    /// Whether a value was saved under a name.
    pub(super) fn has_saved(&self, name: &str) -> bool {
        self.saved.contains_key(name)
    }

    /// A value with its placeholders replaced.
    pub(super) fn fill(&self, value: &Value, session: &mut Session) -> Result<Value, MissingValue> {
        fill(value, &mut |placeholder: &Placeholder| self.value(placeholder, session))
    }

    /// A text with its placeholders replaced.
    pub(super) fn fill_text(&self, text: &str, session: &mut Session) -> Result<String, MissingValue> {
        fill_text(text, &mut |placeholder: &Placeholder| self.value(placeholder, session))
    }

    /// The value of a placeholder.
    pub(super) fn value(&self, placeholder: &Placeholder, session: &mut Session) -> Result<Value, MissingValue> {
        match placeholder {
            Placeholder::Tool
            | Placeholder::ToolArguments
            | Placeholder::ToolArgumentsMissing
            | Placeholder::ToolArgumentsWrongType
            | Placeholder::ToolArgumentsOutsideEnum
            | Placeholder::ToolArgumentsAdditional
            | Placeholder::ToolArguments2020Only
            | Placeholder::ToolArgumentsAlternative
            | Placeholder::ToolArgumentsLasting
            | Placeholder::ToolArgumentsFile(_)
            | Placeholder::ToolSwappedCase => match &self.item {
                Item::Tool(tool) => tool.value(placeholder, self.inventory, self.folder, self.seed),
                _ => unfilled("no tool that may be called is suitable for the case"),
            },
            Placeholder::UnknownTool => Ok(json!(format!("conformance-no-such-tool-{:x}", self.seed))),
            Placeholder::UnknownMethod => Ok(json!(format!("conformance/none-{:x}", self.seed))),
            Placeholder::Random => Ok(json!(format!("conformance-{:x}", self.seed))),
            Placeholder::NextCursor => self.cursor(|cursor| Some(cursor.to_owned())),
            Placeholder::AlteredCursor => self.cursor(altered),
            Placeholder::PageCursor => match &self.item {
                Item::Page { cursor, .. } => Ok(cursor.clone()),
                _ => unfilled("the case is not carried out for a page"),
            },
            Placeholder::Resource => self.resource(session),
            Placeholder::Prompt => Ok(json!(self.prompt(session)?.0)),
            Placeholder::PromptArguments => Ok(json!(self.prompt(session)?.1)),
            Placeholder::PromptArgument => Ok(json!(self.prompt(session)?.1.keys().next())),
            Placeholder::Text(length) => Ok(json!("x".repeat(*length))),
            Placeholder::Members(count) => Ok((0..*count).map(|at| (format!("member-{at}"), json!(at))).collect()),
            Placeholder::Fill(length) => Ok(json!(fill_mark(*length))),
            Placeholder::Nested(depth) => Ok(json!(format!("{}{}", "[".repeat(*depth), "]".repeat(*depth)))),
            Placeholder::Digits(number) => Ok(json!("7".repeat(*number))),
            Placeholder::ServedMethod => Ok(json!(served_method(session))),
            Placeholder::ServedMethodSwappedCase => Ok(json!(swapped_case(served_method(session)))),
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
            Placeholder::SecondAuthorization => further_authorization(
                session,
                SECOND_AUTHORIZATION,
                "it takes the token of a second user, which --second-bearer-env names",
            ),
            Placeholder::ForeignAuthorization => further_authorization(
                session,
                FOREIGN_AUTHORIZATION,
                "it takes a token that was issued for another server, which --foreign-bearer-env names",
            ),
            Placeholder::Session => match session.connection.http_session() {
                Some(id) => Ok(json!(id)),
                None => unfilled("the server opened no session"),
            },
            Placeholder::ClientRequestContent
            | Placeholder::ClientRequestInvalidContent
            | Placeholder::ClientRequestTool
            | Placeholder::ClientRequestCount
            | Placeholder::Root => unfilled("there is no request of the server"),
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

    /// A value made of the cursor that the server issued for `tools/list`.
    fn cursor(&self, make: impl FnOnce(&str) -> Option<String>) -> Result<Value, MissingValue> {
        match self.inventory.next_cursor.as_deref().and_then(make) {
            Some(cursor) => Ok(json!(cursor)),
            None => unfilled("the list of tools has one page only"),
        }
    }

    /// The URI of the resource that the case is carried out for, else of one that a hint names or the server lists.
    fn resource(&self, session: &Session) -> Result<Value, MissingValue> {
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

    /// The name and the arguments of the prompt that the case is carried out for, else of one that a hint names or that
    /// was served.
    fn prompt(&self, session: &Session) -> Result<(&str, &Map<String, Value>), MissingValue> {
        if let Item::Prompt(prompt) = &self.item {
            return Ok((&prompt.name, &prompt.arguments));
        }
        let hinted = self.hinted(session, |request| match request {
            HintRequest::Get { prompt, arguments } if !arguments.is_empty() => Some((prompt.as_str(), arguments)),
            HintRequest::Get { .. } | HintRequest::Call { .. } | HintRequest::Read { .. } => None,
        });
        let served = self.inventory.primitives.prompt_with_arguments();
        match hinted.or(served.map(|prompt| (prompt.name.as_str(), &prompt.arguments))) {
            Some(prompt) => Ok(prompt),
            None => unfilled("no prompt with a required argument was served"),
        }
    }
}

fn unfilled<T>(reason: &str) -> Result<T, MissingValue> {
    Err(MissingValue(reason.to_owned()))
}

/// The placeholder itself, in whose place the connection puts the value, so that the token is in no message.
fn further_authorization(session: &Session, placeholder: &str, missing: &str) -> Result<Value, MissingValue> {
    if session.connection.has_further_authorization(placeholder) { Ok(json!(placeholder)) } else { unfilled(missing) }
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

/// A method whose requests need no parameters and that the server serves.
fn served_method(session: &Session) -> &'static str {
    let lists = [("tools", "tools/list"), ("prompts", "prompts/list"), ("resources", "resources/list")];
    let list = lists.into_iter().find(|(capability, _)| session.parameters.declares(capability));
    let (_, method) = list.unwrap_or_else(|| match session.revision.era() {
        Era::Handshake => ("", "ping"),
        Era::Stateless => ("", "server/discover"),
    });
    method
}

/// The newest version with a handshake among those that `server/discover` lists.
fn listed_version(session_parameters: &SessionParameters) -> Option<&'static str> {
    let listed = session_parameters.opening.as_ref()?.get("supportedVersions")?.as_array()?;
    let known = listed.iter().filter_map(|version| version.as_str()?.parse::<Revision>().ok());
    known.filter(|revision| revision.era() == Era::Handshake).max().map(Revision::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_listed_version_with_a_handshake_is_found() {
        let session_parameters = |versions: Value| SessionParameters {
            client_capabilities: json!({}),
            opening: Some(json!({"supportedVersions": versions})),
            ..SessionParameters::default()
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
}
