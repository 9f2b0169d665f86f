//! The inventory of a server in one revision: its tools, which of them may be called, and the outcomes of their first
//! calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::hint_requests::HintResult;
use super::plan::CallPolicy;
use super::primitives::Primitives;
use crate::fuzz::{Dialect, ToolSchema};
use crate::transcript::SessionParameters;

/// The outcome of a tool's first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstCallOutcome {
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
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) definition: Value,
    /// Why it must not or cannot be called.
    pub(super) exclusion: Option<String>,
    /// Whether its annotations allow calling it, if only with the arguments of a hint.
    pub(super) permitted: bool,
    pub(super) schema: Option<Arc<ToolSchema>>,
    /// Valid arguments.
    pub(super) arguments: Option<Value>,
    /// The outcome and the duration of the first call.
    pub(super) first_call: Option<(FirstCallOutcome, Duration)>,
    /// The requests that the server sent to the client during the call, each with method and params.
    pub(super) client_requests: Vec<Value>,
}

/// How long the first call may take for cases to call the tool again.
const MAX_CALL_DURATION_FOR_CASES: Duration = Duration::from_secs(1);

impl Tool {
    /// Parses a tool definition; returns `None` without a name.
    pub(super) fn new(definition: &Value, calls: CallPolicy) -> Option<Self> {
        let name = definition.get("name")?.as_str()?.to_owned();
        let mut exclusion = exclusion(definition.get("annotations"), calls);
        let permitted = exclusion.is_none();
        let schema = match definition.get("inputSchema") {
            Some(schema) => ToolSchema::compile(schema, Dialect::Draft202012).map_err(|error| error.to_string()),
            None => Err("it has no inputSchema".to_owned()),
        };
        let arguments = schema.as_ref().map_err(Clone::clone).and_then(|s| s.minimal().map_err(|e| e.to_string()));
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
            client_requests: Vec::new(),
        })
    }

    /// Replaces the generated arguments by ones that succeeded, unless the generated ones did too.
    pub(super) fn use_working_arguments(&mut self, arguments: Value, client_requests: Vec<Value>, duration: Duration) {
        if !self.is_served() {
            self.client_requests = client_requests;
            self.exclusion = None;
            self.arguments = Some(arguments);
            self.first_call = Some((FirstCallOutcome::Served, duration));
        }
    }

    /// Whether one of its annotations is `true`.
    pub(super) fn has_annotation(&self, annotation: &str) -> bool {
        self.definition.get("annotations").and_then(|annotations| annotations.get(annotation))
            == Some(&Value::Bool(true))
    }

    /// Whether cases may use it: it may be called, and the first call was answered quickly.
    pub(super) fn is_usable(&self) -> bool {
        self.exclusion.is_none()
            && self.first_call.is_some_and(|(how, duration)| {
                matches!(
                    how,
                    FirstCallOutcome::Served | FirstCallOutcome::Failed | FirstCallOutcome::MissingClientFeature
                ) && duration < MAX_CALL_DURATION_FOR_CASES
            })
    }

    /// Whether the first call succeeded.
    pub(super) fn is_served(&self) -> bool {
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
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub(super) tools: Vec<Tool>,
    /// The resources and prompts.
    pub(super) primitives: Primitives,
    /// The parameters negotiated when the main session was opened.
    pub(super) session_parameters: SessionParameters,
    /// How long the process of the main session took to write its first line.
    pub(super) startup: Duration,
    /// The hints that applied, with their outcomes.
    pub(super) hint_results: Vec<HintResult>,
    /// A cursor that the server issued for `tools/list`.
    pub(super) next_cursor: Option<String>,
    /// Why no further requests can be sent, if so.
    pub(super) stop_reason: Option<String>,
}

impl Inventory {
    /// The listed names, by list method.
    pub(super) fn listed_names(&self) -> BTreeMap<&'static str, Vec<String>> {
        let mut listed = self.primitives.complete_lists.clone();
        listed.insert("tools/list", self.tools.iter().map(|tool| tool.name.clone()).collect());
        listed
    }

    /// The tools of the pages of a list.
    pub(super) fn from_pages(pages: &[Value], calls: CallPolicy) -> Self {
        const MAX_TOOLS: usize = 500;
        let tools = pages
            .iter()
            .filter_map(|page| page.get("tools")?.as_array())
            .flatten()
            .take(MAX_TOOLS)
            .filter_map(|definition| Tool::new(definition, calls))
            .collect();
        let next_cursor = pages.iter().find_map(|page| page.get("nextCursor")?.as_str().map(str::to_owned));
        Self { tools, next_cursor, ..Self::default() }
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
}
