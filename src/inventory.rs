//! The inventory of a server in one revision: its tools, which of them may be called, and the outcomes of their first
//! calls.
//!
//! It holds values only: discovery sends the requests that fill them.

mod hint_result;
mod known_values;
mod primitives;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub(crate) use self::hint_result::{HintOutcome, HintResult};
pub(crate) use self::known_values::KnownValues;
pub(crate) use self::primitives::{Primitives, Prompt};
use crate::fuzz::{Dialect, ToolSchema, quick_arguments};
use crate::limits::{SHORT_WAITS, SLOW_CALL};
use crate::plan::CallPolicy;
use crate::transcript::SessionParameters;

/// The outcome of a tool's first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstCallOutcome {
    /// The response is a result without `isError`.
    Served,
    /// The response is a result with `isError: true`, or an error.
    Failed,
    /// The call was rejected because the client lacks something: a capability, or calling it as a task.
    MissingClientFeature,
    /// There was no response in time.
    Unanswered,
    /// The server ended, or closed its output, before it answered.
    Ended,
}

/// A tool that the server lists.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) definition: Value,
    /// Why it must not or cannot be called.
    pub(crate) exclusion: Option<String>,
    /// Whether its annotations allow calling it, if only with the arguments of a hint.
    pub(crate) permitted: bool,
    pub(crate) schema: Option<Arc<ToolSchema>>,
    /// Valid arguments.
    pub(crate) arguments: Option<Value>,
    /// The outcome and the duration of the first call.
    pub(crate) first_call: Option<(FirstCallOutcome, Duration)>,
    /// Whether the arguments contain a value of an earlier result, which another session may not have.
    pub(crate) depends_on_results: bool,
    /// The requests that the server sent to the client during the call, each with method and params.
    pub(crate) client_requests: Vec<Value>,
    /// Whether the server may send such requests: it sent some while this call and others were in flight.
    pub(crate) may_ask_client: bool,
}

impl Tool {
    /// Parses a tool definition; returns `None` without a name.
    pub(crate) fn new(definition: &Value, calls: CallPolicy) -> Option<Self> {
        let name = definition.get("name")?.as_str()?.to_owned();
        let mut exclusion = exclusion(definition.get("annotations"), calls);
        let permitted = exclusion.is_none();
        let schema = match definition.get("inputSchema") {
            Some(schema) => ToolSchema::compile(schema, Dialect::Draft202012).map_err(|error| error.to_string()),
            None => Err("it has no inputSchema".to_owned()),
        };
        let quick = |schema: &ToolSchema| quick_arguments(schema, &SHORT_WAITS).map_err(|error| error.to_string());
        let arguments = schema.as_ref().map_err(Clone::clone).and_then(quick);
        if let (None, Err(problem)) = (&exclusion, &arguments) {
            exclusion = Some(format!("no arguments could be generated: {problem}"));
        }
        let definition = definition.clone();
        let (schema, arguments) = (schema.ok().map(Arc::new), arguments.ok());
        Some(Self {
            name,
            definition,
            exclusion,
            permitted,
            schema,
            arguments,
            first_call: None,
            depends_on_results: false,
            client_requests: Vec::new(),
            may_ask_client: false,
        })
    }

    /// Replaces the generated arguments by ones that succeeded, unless the generated ones did too.
    pub(crate) fn use_working_arguments(&mut self, arguments: Value, client_requests: Vec<Value>, duration: Duration) {
        if !self.is_served() {
            self.client_requests = client_requests;
            self.may_ask_client = false;
            self.exclusion = None;
            self.arguments = Some(arguments);
            self.first_call = Some((FirstCallOutcome::Served, duration));
        }
    }

    /// Whether one of its annotations is `true`.
    pub(crate) fn has_annotation(&self, annotation: &str) -> bool {
        self.definition.get("annotations").and_then(|annotations| annotations.get(annotation))
            == Some(&Value::Bool(true))
    }

    /// Whether cases may use it: it may be called, and the first call was answered.
    pub(crate) fn is_usable(&self) -> bool {
        self.exclusion.is_none()
            && self.first_call.is_some_and(|(how, _)| {
                matches!(
                    how,
                    FirstCallOutcome::Served | FirstCallOutcome::Failed | FirstCallOutcome::MissingClientFeature
                )
            })
    }

    /// Whether it may be called, and the first call was not answered in time.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.exclusion.is_none() && self.first_call.is_some_and(|(how, _)| how == FirstCallOutcome::Unanswered)
    }

    /// Whether the server makes requests of the client during a call, or may do so.
    pub(crate) fn asks_client(&self) -> bool {
        self.may_ask_client || !self.client_requests.is_empty()
    }

    /// Whether the first call took long.
    pub(crate) fn is_slow(&self) -> bool {
        self.first_call.is_some_and(|(_, duration)| duration >= SLOW_CALL)
    }

    /// Whether the first call succeeded.
    pub(crate) fn is_served(&self) -> bool {
        self.is_usable() && self.first_call.is_some_and(|(how, _)| how == FirstCallOutcome::Served)
    }
}

/// Why a tool with these annotations must not be called.
fn exclusion(annotations: Option<&Value>, calls: CallPolicy) -> Option<String> {
    let hint = |name: &str| annotations.and_then(|annotations| annotations.get(name)).and_then(Value::as_bool);
    let (read_only, destructive) = (hint("readOnlyHint"), hint("destructiveHint"));
    match calls {
        CallPolicy::Destructive => None,
        _ if read_only == Some(true) => None,
        CallPolicy::ReadOnly => Some("it is not annotated readOnlyHint: true (--safe)".to_owned()),
        CallPolicy::NonDestructive => match (read_only, destructive) {
            (_, Some(true)) => Some("it is annotated destructive (--call-destructive calls it)".to_owned()),
            (Some(false), None) => Some(
                "it is annotated readOnlyHint: false, and destructiveHint is true by default (--call-destructive calls it)"
                    .to_owned(),
            ),
            _ => None,
        },
    }
}

/// The inventory of a server in one revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inventory {
    pub(crate) tools: Vec<Tool>,
    /// The names of the listed tools beyond the greatest number that is used.
    pub(crate) further_tools: Vec<String>,
    /// Whether they are all tools of the list, which was read to its end.
    pub(crate) is_tool_list_complete: bool,
    /// The resources and prompts.
    pub(crate) primitives: Primitives,
    /// Values for arguments.
    pub(crate) known_values: KnownValues,
    /// The parameters negotiated when the main session was opened.
    pub(crate) session_parameters: SessionParameters,
    /// How long the process of the main session took to write its first line.
    pub(crate) startup: Duration,
    /// The hints that applied, with their outcomes.
    pub(crate) hint_results: Vec<HintResult>,
    /// A cursor that the server issued for `tools/list`.
    pub(crate) next_cursor: Option<String>,
    /// Whether first calls are still in flight, so that the inventory will be replaced by one with their outcomes.
    pub(crate) awaits_first_calls: bool,
    /// Whether it is not known yet during the calls of which tools the server makes requests of the client, so that the
    /// inventory will be replaced by one that has them.
    pub(crate) awaits_client_requests: bool,
    /// The methods of the requests that the server made of the client.
    pub(crate) requested_of_client: BTreeSet<String>,
    /// Why no further requests can be sent, if so.
    pub(crate) stop_reason: Option<String>,
}

/// The greatest number of tools that are used.
pub(crate) const MAX_TOOLS: usize = 500;

impl Inventory {
    /// Whether at least half of the tools that cases may use are slow.
    pub(crate) fn has_slow_tools(&self) -> bool {
        let usable = || self.tools.iter().filter(|tool| tool.is_usable());
        let slow = usable().filter(|tool| tool.is_slow()).count();
        slow > 0 && slow * 2 >= usable().count()
    }

    /// Whether the server made a request of the client with one of these methods.
    pub(crate) fn has_requested<'m>(&self, methods: impl IntoIterator<Item = &'m String>) -> bool {
        let by_tools = || self.tools.iter().flat_map(|tool| &tool.client_requests);
        methods.into_iter().any(|method| {
            self.requested_of_client.contains(method) || by_tools().any(|request| request["method"] == method.as_str())
        })
    }

    /// The listed names, by list method, of each list that was read to its end.
    pub(crate) fn listed_names(&self) -> BTreeMap<&'static str, Vec<String>> {
        let mut listed = self.primitives.complete_lists.clone();
        // A list that timed out is not empty.
        if self.is_tool_list_complete {
            listed.insert("tools/list", self.tools.iter().map(|tool| tool.name.clone()).collect());
        }
        listed
    }

    /// Sets during the calls of which tools the server makes requests of the client, now that it is known.
    pub(crate) fn set_client_requests(&mut self, mut by_tool: BTreeMap<String, Vec<Value>>) {
        for tool in &mut self.tools {
            tool.may_ask_client = false;
            if let Some(requests) = by_tool.remove(&tool.name) {
                tool.client_requests = requests;
            }
        }
        self.awaits_client_requests = false;
    }

    /// The tools of the pages of a list.
    pub(crate) fn from_pages(pages: &[Value], calls: CallPolicy) -> Self {
        let listed = || pages.iter().filter_map(|page| page.get("tools")?.as_array()).flatten();
        let is_last = |page: &Value| {
            page.get("tools").is_some_and(Value::is_array) && !page.get("nextCursor").is_some_and(Value::is_string)
        };
        let tools = listed().take(MAX_TOOLS).filter_map(|definition| Tool::new(definition, calls)).collect();
        let further = listed().skip(MAX_TOOLS).filter_map(|definition| definition.get("name")?.as_str());
        let further_tools = further.map(str::to_owned).collect();
        let next_cursor = pages.iter().find_map(|page| page.get("nextCursor")?.as_str().map(str::to_owned));
        let is_tool_list_complete = pages.last().is_some_and(is_last) && listed().count() <= MAX_TOOLS;
        Self { tools, further_tools, is_tool_list_complete, next_cursor, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotations_and_their_defaults_decide_which_tools_may_be_called() {
        let rows = [
            (json!(null), CallPolicy::NonDestructive, true),
            (json!(null), CallPolicy::ReadOnly, false),
            (json!({"readOnlyHint": true}), CallPolicy::ReadOnly, true),
            (json!({"readOnlyHint": true, "destructiveHint": true}), CallPolicy::NonDestructive, true),
            (json!({"destructiveHint": false}), CallPolicy::NonDestructive, true),
            (json!({"destructiveHint": true}), CallPolicy::NonDestructive, false),
            (json!({"readOnlyHint": false}), CallPolicy::NonDestructive, false),
            (json!({"readOnlyHint": false, "destructiveHint": false}), CallPolicy::NonDestructive, true),
            (json!({"title": "x"}), CallPolicy::NonDestructive, true),
            (json!({"destructiveHint": true}), CallPolicy::Destructive, true),
        ];
        for (annotations, calls, allowed) in rows {
            assert_eq!(exclusion(Some(&annotations), calls).is_none(), allowed, "{annotations} {calls:?}");
        }
    }

    #[test]
    fn tools_beyond_the_greatest_number_are_kept_by_name() {
        let tool = |at: usize| json!({"name": format!("tool-{at}"), "inputSchema": {"type": "object"}});
        let page = json!({"tools": (0..=MAX_TOOLS).map(tool).collect::<Vec<Value>>()});
        let inventory = Inventory::from_pages(&[page], CallPolicy::NonDestructive);
        assert_eq!(inventory.tools.len(), MAX_TOOLS);
        assert_eq!(inventory.further_tools, ["tool-500"]);
        assert!(!inventory.is_tool_list_complete);
    }
}
