//! What a server offers: its tools, which of them may be called, and what is known of their calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::hinted::Followed;
use super::others::Others;
use super::plan::Calls;
use crate::fuzz::{Dialect, ToolSchema};
use crate::transcript::Terms;

/// How a first call of a tool went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// It was answered by a result without `isError`.
    Served,
    /// It was answered by a result with `isError: true`, or by an error.
    Refused,
    /// It was refused for what the client lacks: a capability, or that it is called as a task.
    Lacking,
    /// It was not answered while we waited.
    Unanswered,
    /// The server ended, or closed its output, before it was answered.
    Ended,
}

/// A tool that the server lists.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) definition: Value,
    /// Why it may not be called, or cannot.
    pub(super) barred: Option<String>,
    /// Whether its annotations allow it to be called, if only with the arguments of a hint.
    pub(super) permitted: bool,
    pub(super) schema: Option<Arc<ToolSchema>>,
    /// Valid arguments.
    pub(super) arguments: Option<Value>,
    /// How the first call went, and how long it took.
    pub(super) called: Option<(Called, Duration)>,
    /// What the server asked the client for on the way, each with method and params.
    pub(super) asked: Vec<Value>,
}

/// How long a tool may take for the cases to use it again.
const QUICK: Duration = Duration::from_secs(1);

impl Tool {
    /// Reads a tool's definition; one without a name cannot be called.
    pub(super) fn new(definition: &Value, calls: Calls) -> Option<Self> {
        let name = definition.get("name")?.as_str()?.to_owned();
        let mut barred = barred(definition.get("annotations"), calls);
        let permitted = barred.is_none();
        let schema = match definition.get("inputSchema") {
            Some(schema) => ToolSchema::compile(schema, Dialect::Draft202012).map_err(|error| error.to_string()),
            None => Err("it has no inputSchema".to_owned()),
        };
        let arguments = schema.as_ref().map_err(Clone::clone).and_then(|s| s.minimal().map_err(|e| e.to_string()));
        if let (None, Err(problem)) = (&barred, &arguments) {
            barred = Some(format!("no arguments could be made for it: {problem}"));
        }
        let definition = definition.clone();
        let (schema, arguments) = (schema.ok().map(Arc::new), arguments.ok());
        Some(Self { name, definition, barred, permitted, schema, arguments, called: None, asked: Vec::new() })
    }

    /// Takes arguments that were served in place of the made ones, unless those were served too.
    pub(super) fn learn(&mut self, arguments: Value, asked: Vec<Value>, took: Duration) {
        if !self.is_served() {
            self.asked = asked;
            self.barred = None;
            self.arguments = Some(arguments);
            self.called = Some((Called::Served, took));
        }
    }

    /// Whether an annotation of it is `true`.
    pub(super) fn says(&self, annotation: &str) -> bool {
        self.definition.get("annotations").and_then(|said| said.get(annotation)) == Some(&Value::Bool(true))
    }

    /// Whether cases may use it: it may be called, and a first call was answered soon.
    pub(super) fn is_usable(&self) -> bool {
        self.barred.is_none()
            && self.called.is_some_and(|(how, took)| {
                matches!(how, Called::Served | Called::Refused | Called::Lacking) && took < QUICK
            })
    }

    /// Whether a first call was served as it ought to be.
    pub(super) fn is_served(&self) -> bool {
        self.is_usable() && self.called.is_some_and(|(how, _)| how == Called::Served)
    }
}

/// Why a tool with these annotations may not be called.
fn barred(annotations: Option<&Value>, calls: Calls) -> Option<String> {
    let hint = |name: &str| annotations.and_then(|annotations| annotations.get(name)).and_then(Value::as_bool);
    let (read_only, destructive) = (hint("readOnlyHint"), hint("destructiveHint"));
    match calls {
        Calls::Destructive => None,
        _ if read_only == Some(true) => None,
        Calls::ReadOnly => Some("it is not annotated readOnlyHint: true (--safe)".to_owned()),
        Calls::NonDestructive => match (read_only, destructive) {
            (_, Some(true)) => Some("it is annotated destructive (--call-destructive calls it)".to_owned()),
            (Some(false), None) => Some(
                "it is annotated readOnlyHint: false, and destructiveHint is true by default (--call-destructive calls it)"
                    .to_owned(),
            ),
            _ => None,
        },
    }
}

/// What a server offers in one revision.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<Tool>,
    /// What it offers beside tools.
    pub(super) others: Others,
    /// What was agreed when the main session was opened.
    pub(super) terms: Terms,
    /// How long the process of the main session took to its first line.
    pub(super) startup: Duration,
    /// The hints of the plan that were in force, and what came of each.
    pub(super) hinted: Vec<Followed>,
    /// A cursor that the server issued for `tools/list`.
    pub(super) next_cursor: Option<String>,
    /// Why nothing more can be asked of the server, if that is so.
    pub(super) dead: Option<String>,
}

impl Offer {
    /// What was listed, by the method of the list.
    pub(super) fn listed(&self) -> BTreeMap<&'static str, Vec<String>> {
        let mut listed = self.others.whole.clone();
        listed.insert("tools/list", self.tools.iter().map(|tool| tool.name.clone()).collect());
        listed
    }

    /// The tools of a list's pages.
    pub(super) fn read(pages: &[Value], calls: Calls) -> Self {
        const MOST: usize = 500;
        let tools = pages
            .iter()
            .filter_map(|page| page.get("tools")?.as_array())
            .flatten()
            .take(MOST)
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
    fn what_may_be_called_follows_the_hints_and_their_defaults() {
        let rows = [
            (json!(null), Calls::NonDestructive, true),
            (json!(null), Calls::ReadOnly, false),
            (json!({"readOnlyHint": true}), Calls::ReadOnly, true),
            (json!({"readOnlyHint": true, "destructiveHint": true}), Calls::NonDestructive, true),
            (json!({"destructiveHint": false}), Calls::NonDestructive, true),
            (json!({"destructiveHint": true}), Calls::NonDestructive, false),
            (json!({"readOnlyHint": false}), Calls::NonDestructive, false),
            (json!({"readOnlyHint": false, "destructiveHint": false}), Calls::NonDestructive, true),
            (json!({"title": "x"}), Calls::NonDestructive, true),
            (json!({"destructiveHint": true}), Calls::Destructive, true),
        ];
        for (annotations, calls, allowed) in rows {
            assert_eq!(barred(Some(&annotations), calls).is_none(), allowed, "{annotations} {calls:?}");
        }
    }
}
