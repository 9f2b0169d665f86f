//! Tools that serve only particular values, each of which the server names somewhere: in a description, in an error
//! message, in the result of another tool, in a list, or in a completion. And a tool with several kinds of results.

use serde_json::{Value, json};

use super::call::ToolOutput;
use super::content;
use super::message::{Object, object};
use super::resource;

/// The tool whose enumeration selects the kind of its result.
pub(super) const RENDER: &str = "render";

/// The folder that the tool `open_folder` serves.
const FOLDER: &str = "/srv/documents";
/// The record that the tool `find_record` serves.
const RECORD: &str = "r-17";

/// The definitions of the tools that serve only particular values.
pub(super) fn particular_tools() -> Vec<Object> {
    let tool = |name: &str, description: &str, argument: &str, schema: Value| {
        let input = json!({
            "type": "object",
            "properties": {argument: schema},
            "required": [argument],
            "additionalProperties": false,
        });
        object(json!({"name": name, "description": description, "inputSchema": input}))
    };
    let text = || json!({"type": "string"});
    let none = json!({"type": "object", "additionalProperties": false});
    let list = json!({"name": "list_records", "description": "Lists the records.", "inputSchema": none});
    vec![
        tool("local_time", "Tells the time.", "zone", text()),
        tool("lift", "Goes to a floor.", "floor", json!({"type": "integer"})),
        tool("open_folder", "Opens a folder.", "path", text()),
        tool("station", "Describes a station.", "code", json!({"type": "string", "description": "Such as 'HKI'."})),
        tool("find_record", "Finds a record.", "record_id", text()),
        object(list),
        tool("show_note", "Shows a resource.", "uri", text()),
        tool("spell", "Spells a number.", "number", text()),
    ]
}

/// The definition of the tool whose enumeration selects the kind of its result.
pub(super) fn render_tool() -> Object {
    let kinds = json!({"type": "string", "enum": ["text", "image", "resource"]});
    let input = json!({
        "type": "object",
        "properties": {"kind": kinds, "exact": {"type": "boolean"}},
        "required": ["kind"],
        "additionalProperties": false,
    });
    object(json!({"name": RENDER, "description": "Renders a page.", "inputSchema": input}))
}

/// Calls one of these tools with valid arguments; `None` if it is another tool.
pub(super) fn run(name: &str, arguments: &Object) -> Option<ToolOutput> {
    let word = |argument: &str| arguments.get(argument).and_then(Value::as_str).unwrap_or_default();
    let served = |is_served: bool, error: &str| {
        if is_served { ToolOutput::text("Done.") } else { ToolOutput::failure(error) }
    };
    Some(match name {
        "local_time" => served(word("zone") == "Europe/Paris", "Invalid zone, try Europe/Paris."),
        "lift" => {
            let floor = arguments.get("floor").and_then(Value::as_i64);
            served(matches!(floor, Some(41 | 42)), "floor: expected one of 41, 42")
        }
        "open_folder" => served(word("path") == FOLDER, &format!("Access denied, allowed directories: {FOLDER}")),
        "station" => served(word("code") == "HKI", "There is no such station."),
        "find_record" => served(word("record_id") == RECORD, "There is no such record."),
        "list_records" => ToolOutput::text(json!({"records": [{"id": RECORD}]}).to_string()),
        "show_note" => served(word("uri") == resource::NOTES, "There is no such note."),
        "spell" => served(word("number").parse::<u32>().is_ok(), "This is no number."),
        RENDER => render(word("kind")),
        _ => return None,
    })
}

/// The result of the tool [`RENDER`].
fn render(kind: &str) -> ToolOutput {
    match kind {
        "image" => ToolOutput::blocks(vec![content::image()]),
        "resource" => {
            let notes = resource::contents(resource::NOTES);
            ToolOutput::blocks(notes.as_ref().map(content::embedded).into_iter().collect())
        }
        _ => ToolOutput::text("A page."),
    }
}
