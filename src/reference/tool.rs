//! The tools of the reference server: which ones a revision has, and their definitions.

use serde_json::{Value, json};

use super::complex_tool;
use super::content;
use super::message::{Object, object};
use super::revision::Revision;
use super::revision::Revision::{V2024_10_07, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};
use super::root_file;

/// What decides, besides the revision, which tools are listed.
#[derive(Debug, Default)]
pub(super) struct ToolAvailability {
    /// Whether the client has called `grow` on this connection.
    pub(super) grown: bool,
    /// The tools that make requests which the client supports.
    pub(super) client_request_tools: Vec<&'static str>,
}

struct ToolSpec {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    since: Revision,
    until: Revision,
    input: fn() -> Value,
    output: Option<fn() -> Value>,
}

const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "echo",
        title: "Echo",
        description: "Returns its input text.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: || closed_object(&json!({"text": {"type": "string", "description": "What to return"}}), &["text"]),
        output: None,
    },
    ToolSpec {
        name: "add",
        title: "Add",
        description: "Adds two numbers.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: || closed_object(&json!({"a": {"type": "number"}, "b": {"type": "number"}}), &["a", "b"]),
        output: Some(|| {
            let mut schema = closed_object(&json!({"sum": {"$ref": "#/$defs/sum"}}), &["sum"]);
            schema["$defs"] = json!({"sum": {"type": "number"}});
            schema
        }),
    },
    ToolSpec {
        name: "weather",
        title: "Weather",
        description: "Reports the weather in a city, which is always fine.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: || {
            let unit = json!({"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"});
            closed_object(&json!({"city": {"type": "string", "minLength": 1}, "unit": unit}), &["city"])
        },
        output: None,
    },
    ToolSpec {
        name: "image",
        title: "Image",
        description: "Returns a small PNG.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "audio",
        title: "Audio",
        description: "Returns a short WAV.",
        since: V2025_03_26,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "link",
        title: "Link",
        description: "Returns a link to a resource of this server.",
        since: V2025_06_18,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "embed_text",
        title: "Embed text",
        description: "Returns a text resource of this server.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "embed_blob",
        title: "Embed bytes",
        description: "Returns a binary resource of this server.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "annotated",
        title: "Annotated",
        description: "Returns text with annotations.",
        since: V2024_11_05,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "count",
        title: "Count",
        description: "Counts to a number and reports progress on the way.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: || closed_object(&json!({"to": {"type": "integer", "minimum": 2, "maximum": 9}}), &["to"]),
        output: None,
    },
    ToolSpec {
        name: "log",
        title: "Log",
        description: "Writes three log messages of rising severity.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: || json!({"type": "object"}),
        output: None,
    },
    ToolSpec {
        name: "no_arguments",
        title: "No arguments",
        description: "Takes no arguments.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "fail",
        title: "Fail",
        description: "Succeeds or fails, as requested.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: || closed_object(&json!({"outcome": {"type": "string", "enum": ["works", "fails"]}}), &["outcome"]),
        output: None,
    },
    ToolSpec {
        name: "research",
        title: "Research",
        description: "Looks something up, which may take a while.",
        since: V2025_11_25,
        until: V2026_07_28,
        input: || closed_object(&json!({"topic": {"type": "string", "minLength": 1}}), &["topic"]),
        output: None,
    },
    ToolSpec {
        name: "interview",
        title: "Interview",
        description: "Takes a while, and may ask the user for a word.",
        since: V2025_11_25,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "batch",
        title: "Batch",
        description: "Takes so long that it must run as a task.",
        since: V2025_11_25,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "primes",
        title: "Primes",
        description: "Returns the primes below ten as an array.",
        since: V2026_07_28,
        until: V2026_07_28,
        input: no_arguments,
        output: Some(|| json!({"type": "array", "items": {"type": "integer"}})),
    },
    // Only in revisions with annotations, since a client may call any tool without them.
    ToolSpec {
        name: "erase",
        title: "Erase",
        description: "Pretends to erase everything; only call it at the request of the user.",
        since: V2025_03_26,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "grow",
        title: "Grow",
        description: "Adds the tool grown to the list, or removes it again.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "ask_roots",
        title: "Ask for roots",
        description: "Asks the client for its roots.",
        since: V2024_11_05,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: root_file::TOOL,
        title: "Read a file",
        description: "Reads a file within the roots of the client.",
        since: V2024_11_05,
        until: V2026_07_28,
        input: || closed_object(&json!({"path": {"type": "string"}}), &["path"]),
        output: None,
    },
    ToolSpec {
        name: "ask_model",
        title: "Ask a model",
        description: "Asks the client's model for a word.",
        since: V2024_11_05,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "ask_model_with_tools",
        title: "Ask a model with tools",
        description: "Asks the client's model for a word that it may look up.",
        since: V2025_11_25,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "ask_user",
        title: "Ask the user",
        description: "Asks the user for a word in a form.",
        since: V2025_06_18,
        until: V2026_07_28,
        input: || closed_object(&json!({"topic": {"type": "string"}}), &[]),
        output: None,
    },
    ToolSpec {
        name: "ask_user_on_page",
        title: "Ask the user on a page",
        description: "Asks the user for a word on a web page.",
        since: V2025_11_25,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "ask_user_first",
        title: "Ask the user first",
        description: "Fails until the user has visited a web page.",
        since: V2025_11_25,
        until: V2025_11_25,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "withdraw",
        title: "Withdraw",
        description: "Sends a request to the client and cancels it.",
        since: V2024_11_05,
        until: V2025_11_25,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "grown",
        title: "Grown",
        description: "Exists because grow was called.",
        since: V2024_10_07,
        until: V2026_07_28,
        input: no_arguments,
        output: None,
    },
    ToolSpec {
        name: "search",
        title: "Search",
        description: "Searches a small catalogue with various options.",
        since: V2025_06_18,
        until: V2026_07_28,
        input: || complex_tool::search_schemas().0,
        output: Some(|| complex_tool::search_schemas().1),
    },
    ToolSpec {
        name: "transform",
        title: "Transform",
        description: "Transforms a text step by step.",
        since: V2025_06_18,
        until: V2026_07_28,
        input: || complex_tool::transform_schemas().0,
        output: Some(|| complex_tool::transform_schemas().1),
    },
    ToolSpec {
        name: "draft_open",
        title: "Open a draft",
        description: "Opens a draft and returns its id. The server keeps the last 64 drafts of a connection.",
        since: V2025_06_18,
        until: V2026_07_28,
        input: || complex_tool::draft_open_schemas().0,
        output: Some(|| complex_tool::draft_open_schemas().1),
    },
    ToolSpec {
        name: "draft_read",
        title: "Read a draft",
        description: "Reads a draft that was opened.",
        since: V2025_06_18,
        until: V2026_07_28,
        input: || complex_tool::draft_read_schemas().0,
        output: Some(|| complex_tool::draft_read_schemas().1),
    },
];

/// The definitions of all available tools, in list order.
pub(super) fn available(revision: Revision, availability: &ToolAvailability) -> Vec<Object> {
    TOOLS
        .iter()
        .filter(|entry| (entry.since..=entry.until).contains(&revision))
        .filter(|entry| match entry.name {
            "grown" => availability.grown,
            "withdraw" => !availability.client_request_tools.is_empty(),
            name if name.starts_with("ask_") || name == root_file::TOOL => {
                availability.client_request_tools.contains(&name)
            }
            _ => true,
        })
        .map(|entry| definition(entry, revision))
        .collect()
}

fn definition(entry: &ToolSpec, revision: Revision) -> Object {
    let mut tool = object(json!({"name": entry.name}));
    if revision >= V2025_06_18 {
        tool.insert("title".to_owned(), json!(entry.title));
    }
    tool.insert("description".to_owned(), json!(entry.description));
    tool.insert("inputSchema".to_owned(), input_schema(entry, revision));
    if let Some(output) = entry.output.filter(|_| revision >= V2025_06_18) {
        tool.insert("outputSchema".to_owned(), output());
    }
    if revision >= V2025_03_26 {
        tool.insert("annotations".to_owned(), annotations(entry));
    }
    match entry.name {
        "echo" if revision >= V2025_11_25 => {
            tool.insert("icons".to_owned(), json!([content::icon()]));
        }
        "add" if revision >= V2025_06_18 => {
            tool.insert("_meta".to_owned(), json!({"com.example.mock/subject": "arithmetic"}));
        }
        name @ ("count" | "research" | "interview" | "batch") if revision == V2025_11_25 => {
            let support = match name {
                "count" => "forbidden",
                "batch" => "required",
                _ => "optional",
            };
            tool.insert("execution".to_owned(), json!({"taskSupport": support}));
        }
        _ => {}
    }
    tool
}

fn input_schema(entry: &ToolSpec, revision: Revision) -> Value {
    let mut schema = (entry.input)();
    match entry.name {
        "add" if revision >= V2025_11_25 => {
            schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        }
        "weather" if revision.is_modern() => {
            schema["properties"]["city"]["x-mcp-header"] = json!("City");
            schema["properties"]["unit"]["x-mcp-header"] = json!("Unit");
        }
        "count" if revision.is_modern() => {
            schema["properties"]["to"]["x-mcp-header"] = json!("To");
        }
        _ => {}
    }
    schema
}

fn annotations(entry: &ToolSpec) -> Value {
    match entry.name {
        "echo" => json!({
            "title": entry.title,
            "readOnlyHint": true,
            "idempotentHint": true,
            "openWorldHint": false,
        }),
        "search" | "transform" => json!({"readOnlyHint": true, "idempotentHint": true}),
        "draft_open" => json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false}),
        "erase" => json!({"readOnlyHint": false, "destructiveHint": true}),
        // It changes the list; a second call reverts that.
        "grow" => json!({"readOnlyHint": false, "destructiveHint": false}),
        _ => json!({"readOnlyHint": true}),
    }
}

/// The schema of an object with these properties and no others.
fn closed_object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of an object without properties.
fn no_arguments() -> Value {
    json!({"type": "object", "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_has_enough_tools_for_three_pages() {
        for revision in Revision::ALL {
            let tools = available(*revision, &ToolAvailability::default());
            assert!(tools.len() > 8, "{revision}: {}", tools.len());
        }
    }

    #[test]
    fn only_erase_is_destructive_and_it_only_exists_with_annotations() {
        for revision in Revision::ALL {
            for tool in available(*revision, &ToolAvailability::default()) {
                let annotations = tool.get("annotations");
                assert_eq!(annotations.is_some(), *revision >= V2025_03_26);
                if tool["name"] == "erase" {
                    assert_eq!(tool["annotations"]["destructiveHint"], json!(true));
                } else if tool["name"] == "draft_open" {
                    assert_eq!(tool["annotations"]["destructiveHint"], json!(false));
                } else if let Some(annotations) = annotations {
                    assert_eq!(annotations["readOnlyHint"], json!(tool["name"] != "grow"));
                }
            }
        }
    }
}
