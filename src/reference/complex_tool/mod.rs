//! Tools with arguments that are complex enough for fuzzing: schemas, validation, results.
//!
//! They validate arguments by hand, exactly as their schemas say, like most servers. No fault is implemented
//! here.

mod arguments;
mod draft;
mod search;
#[cfg(test)]
mod tests;
mod transform;

use serde_json::Value;

use super::call::ToolOutput;
use super::message::Object;

pub(super) use draft::Drafts;

/// The implementation of a tool.
struct ComplexTool {
    name: &'static str,
    check: fn(&Object) -> Result<(), String>,
    run: fn(&Object, &mut Drafts) -> ToolOutput,
}

const TOOLS: [ComplexTool; 4] = [
    ComplexTool { name: "search", check: search::check, run: |arguments, _| search::run(arguments) },
    ComplexTool { name: "transform", check: transform::check, run: |arguments, _| transform::run(arguments) },
    ComplexTool { name: "draft_open", check: draft::check_open, run: draft::open },
    ComplexTool {
        name: "draft_read",
        check: draft::check_read,
        run: |arguments, drafts| draft::read(arguments, drafts),
    },
];

/// Validates the arguments of one of these tools; nothing for any other tool.
pub(super) fn check(name: &str, arguments: &Object) -> Option<Result<(), String>> {
    TOOLS.iter().find(|tool| tool.name == name).map(|tool| (tool.check)(arguments))
}

/// Runs one of these tools with valid arguments; nothing for any other tool.
pub(super) fn run(name: &str, arguments: &Object, drafts: &mut Drafts) -> Option<ToolOutput> {
    TOOLS.iter().find(|tool| tool.name == name).map(|tool| (tool.run)(arguments, drafts))
}

/// The schemas of the tool `search`.
pub(super) fn search_schemas() -> (Value, Value) {
    (search::input(), search::output())
}

/// The schemas of the tool `transform`.
pub(super) fn transform_schemas() -> (Value, Value) {
    (transform::input(), transform::output())
}

/// The schemas of the tool `draft_open`.
pub(super) fn draft_open_schemas() -> (Value, Value) {
    (draft::open_input(), draft::output())
}

/// The schemas of the tool `draft_read`.
pub(super) fn draft_read_schemas() -> (Value, Value) {
    (draft::read_input(), draft::output())
}
