//! The tools `draft_open`, which returns ids, and `draft_read`, which takes them.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::arguments::{Check, allow_only, integer_in_range, optional, require, string};
use crate::reference::call::ToolOutput;
use crate::reference::message::Object;

/// The maximum number of stored drafts; the oldest is dropped first.
const MAX_DRAFTS: usize = 64;
/// The draft that always exists.
const PERMANENT_DRAFT_ID: &str = "draft-000000";

/// The drafts that were opened on a connection.
#[derive(Debug, Default)]
pub(in crate::reference) struct Drafts {
    opened: u32,
    stored: VecDeque<Draft>,
}

#[derive(Debug, Clone)]
struct Draft {
    id: String,
    title: String,
    pages: Value,
}

pub(super) fn open_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 40},
            "pages": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["title"],
        "additionalProperties": false,
    })
}

pub(super) fn read_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "draft_id": {"type": "string", "description": "What draft_open returned", "examples": [PERMANENT_DRAFT_ID]},
            "page": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["draft_id"],
        "additionalProperties": false,
    })
}

pub(super) fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "draft_id": {"type": "string", "pattern": "^draft-[0-9a-f]{6}$"},
            "title": {"type": "string"},
            "pages": {"type": "integer"},
        },
        "required": ["draft_id", "title", "pages"],
    })
}

pub(super) fn check_open(arguments: &Object) -> Check {
    require(arguments, &["title"])?;
    allow_only(arguments, &["title", "pages"])?;
    optional(arguments, "title", |value| string(value, 1, 40))?;
    optional(arguments, "pages", |value| integer_in_range(value, 1, 9))
}

pub(super) fn check_read(arguments: &Object) -> Check {
    require(arguments, &["draft_id"])?;
    allow_only(arguments, &["draft_id", "page"])?;
    optional(arguments, "draft_id", |value| string(value, 0, usize::MAX))?;
    optional(arguments, "page", |value| integer_in_range(value, 1, 9))
}

pub(super) fn open(arguments: &Object, drafts: &mut Drafts) -> ToolOutput {
    drafts.opened += 1;
    // Scattered, so that the next id cannot be guessed.
    let number = drafts.opened.wrapping_mul(2_654_435_761) & 0xff_ffff;
    let draft = Draft {
        id: format!("draft-{number:06x}"),
        title: arguments.get("title").and_then(Value::as_str).unwrap_or_default().to_owned(),
        pages: arguments.get("pages").cloned().unwrap_or(json!(1)),
    };
    drafts.stored.push_back(draft.clone());
    if drafts.stored.len() > MAX_DRAFTS {
        drafts.stored.pop_front();
    }
    draft_output(&draft)
}

pub(super) fn read(arguments: &Object, drafts: &Drafts) -> ToolOutput {
    let id = arguments.get("draft_id").and_then(Value::as_str).unwrap_or_default();
    if id == PERMANENT_DRAFT_ID {
        return draft_output(&Draft {
            id: PERMANENT_DRAFT_ID.to_owned(),
            title: "The first draft".to_owned(),
            pages: json!(1),
        });
    }
    match drafts.stored.iter().find(|draft| draft.id == id) {
        Some(draft) => draft_output(draft),
        None => ToolOutput::failure("There is no such draft."),
    }
}

fn draft_output(draft: &Draft) -> ToolOutput {
    ToolOutput::structured(json!({"draft_id": draft.id, "title": draft.title, "pages": draft.pages}))
}
