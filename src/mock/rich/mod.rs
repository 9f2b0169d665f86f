//! Tools of the built-in server whose arguments are rich enough to be fuzzed: definitions, checks, results.
//!
//! They check their arguments by hand, word for word what their schemas say, as most servers do. Nothing
//! here knows a fault.

mod arguments;
mod draft;
mod search;
#[cfg(test)]
mod tests;
mod transform;

use serde_json::Value;

use super::call::Reply;
use super::message::Object;

pub(super) use draft::Drafts;

/// What a rich tool is: each has one such row.
struct Rich {
    name: &'static str,
    misfit: fn(&Object) -> Option<String>,
    run: fn(&Object, &mut Drafts) -> Reply,
}

const TABLE: [Rich; 4] = [
    Rich { name: "search", misfit: search::misfit, run: |arguments, _| search::run(arguments) },
    Rich { name: "transform", misfit: transform::misfit, run: |arguments, _| transform::run(arguments) },
    Rich { name: "draft_open", misfit: draft::open_misfit, run: draft::open },
    Rich { name: "draft_read", misfit: draft::read_misfit, run: |arguments, drafts| draft::read(arguments, drafts) },
];

/// Why arguments do not fit a tool of these; nothing at all of any other tool.
pub(super) fn misfit(name: &str, arguments: &Object) -> Option<Option<String>> {
    TABLE.iter().find(|rich| rich.name == name).map(|rich| (rich.misfit)(arguments))
}

/// The result of a tool of these, for arguments that fit.
pub(super) fn run(name: &str, arguments: &Object, drafts: &mut Drafts) -> Option<Reply> {
    TABLE.iter().find(|rich| rich.name == name).map(|rich| (rich.run)(arguments, drafts))
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
