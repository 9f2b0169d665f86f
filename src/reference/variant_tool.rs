//! Tools that only conforming variants of the server have: many of them, one that vanishes, and tools whose errors are
//! easily mistaken for faults.

use serde_json::{Value, json};

use super::call::ToolOutput;
use super::fault::{Fault, FaultSet};
use super::message::{INTERNAL_ERROR, Object, RpcError, invalid_params, object};
use super::revision::Revision;

/// How many tools the server with many tools has in addition.
pub(super) const MANY: usize = 600;

/// The names of these tools are this and a number.
const SHELF: &str = "shelf_";

/// How much of an argument an error quotes, in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// What validates results says this of one that is invalid, as the SDKs of several languages do.
const RESULT_INVALID: &str = "MCP error -32602: Output validation error: Invalid structured content for tool";

/// Adds the tools of conforming variants to a list.
pub(super) fn add_tools(tools: &mut Vec<Object>, revision: Revision, faults: &FaultSet) {
    let is_active = |fault| faults.is_active(fault, revision);
    if is_active(Fault::ManyTools) {
        tools.extend(shelves(revision));
    }
    if is_active(Fault::ServicesUnreachable) {
        *tools = vec![
            tool("fetch_page", "Fetches a page from the network.", "url"),
            tool("list_pods", "Lists what runs in a namespace of the cluster.", "namespace"),
            tool("search_web", "Searches for some words.", "words"),
        ];
    }
    if is_active(Fault::QuotesArguments) {
        tools.push(tool("open_file", "Opens a file by its absolute path.", "path"));
    }
    if is_active(Fault::ResultRefused) {
        let output = json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
        for (name, description) in [("count_words", "Counts words."), ("count_lines", "Counts lines.")] {
            let mut counting = tool(name, description, "text");
            counting.insert("outputSchema".to_owned(), output.clone());
            tools.push(counting);
        }
    }
}

/// The definition of a tool that takes one text.
fn tool(name: &str, description: &str, argument: &str) -> Object {
    let input = json!({
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": false,
    });
    object(json!({"name": name, "description": description, "inputSchema": input}))
}

/// The tool that vanishes at the first call of any tool.
pub(super) fn mayfly() -> Object {
    tool("mayfly", "Says a word, as long as it lives.", "word")
}

/// Calls one of these tools with valid arguments; `None` if it is another tool.
pub(super) fn run(name: &str, arguments: &Object) -> Option<Result<ToolOutput, RpcError>> {
    let text = |argument: &str| arguments.get(argument).and_then(Value::as_str).unwrap_or_default();
    Some(match name {
        "fetch_page" => Ok(ToolOutput::failure(format!(
            "request to {} failed, reason: getaddrinfo ENOTFOUND pages.example.com",
            quoted_part(text("url"))
        ))),
        "list_pods" => Err(RpcError::new(
            INTERNAL_ERROR,
            "Failed to connect to the cluster: dial tcp 127.0.0.1:8080: connect: connection refused",
        )),
        "search_web" => Ok(ToolOutput::failure("401 Unauthorized: set the API key in SEARCH_KEY.")),
        "open_file" => Ok(ToolOutput::failure(no_file(text("path")))),
        "count_words" | "count_lines" => count(name, text("text")),
        _ => Ok(ToolOutput::text(shelf(name)?)),
    })
}

/// Counts, and refuses its own result where that does not fit its schema.
fn count(name: &str, text: &str) -> Result<ToolOutput, RpcError> {
    // Empty texts have no count, which the schema does not allow.
    if !text.trim().is_empty() {
        let count = if name == "count_words" { text.split_whitespace().count() } else { text.lines().count() };
        return Ok(ToolOutput::structured(json!({"count": count})));
    }
    let problem = format!("{RESULT_INVALID} {name}: data/count must be integer");
    if name == "count_words" { Ok(ToolOutput::failure(problem)) } else { Err(invalid_params(problem)) }
}

/// An error that quotes the path in several notations, and helps with examples.
fn no_file(path: &str) -> String {
    let quoted = quoted_part(path);
    let in_url: String = quoted
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let in_markup = quoted.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let in_code: String = quoted.chars().flat_map(char::escape_default).collect();
    format!(
        "Cannot open '{in_code}' (file://{in_url}, <q>{in_markup}</q>, {}). Pass an absolute path, e.g. \
         /home/ada/notes/today.txt or C:\\Users\\ada\\today.txt, as in /path/to/file.",
        json!(quoted)
    )
}

/// The beginning of what a client sent.
fn quoted_part(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).collect()
}

/// The definitions of many tools.
fn shelves(revision: Revision) -> impl Iterator<Item = Object> {
    let shelf = move |number: usize| {
        let mut tool = object(json!({
            "name": format!("{SHELF}{number}"),
            "description": format!("Tells what is on shelf {number} of the store."),
            "inputSchema": {
                "type": "object",
                "properties": {"sorted": {"type": "boolean", "description": "Whether to sort by name."}},
                "additionalProperties": false,
            },
        }));
        if revision >= Revision::V2025_03_26 {
            tool.insert("annotations".to_owned(), json!({"readOnlyHint": true}));
        }
        tool
    };
    (1..=MANY).map(shelf)
}

/// What the tool of this name is answered with, if it is one of many.
fn shelf(name: &str) -> Option<String> {
    let number: usize = name.strip_prefix(SHELF)?.parse().ok()?;
    (1..=MANY).contains(&number).then(|| format!("Shelf {number} is empty."))
}
