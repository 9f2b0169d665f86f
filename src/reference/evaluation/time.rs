//! Faults that need more than one call: sequences, numbers of calls, calls in flight, and what piles up;
//! and those of a definition, which need none.

use serde_json::{Value, json};

use super::effect::Effect::{Crash, List, ListFailing, Open, Refuse, Retain, Slow, Spawn, Swap};
use super::row::Row;
use super::trigger::Trigger::{After, Listed, Nth, Valid};
use super::trigger::{real, text};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "draft-read-opened",
        description: "exits when the client reads an opened draft of two or more pages",
        tool: "draft_read",
        trigger: After(|served, given| {
            let id = text(given, "draft_id");
            let long = |arguments| real(arguments, "pages").is_some_and(|pages| pages >= 2.0);
            served.iter().any(|call| call.draft_id.is_some() && call.draft_id.as_deref() == id && long(&call.arguments))
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |before, given| {
            let opened = |params: &Value| params["arguments"] == json!({"title": "a", "pages": 2});
            matches!(before, [params] if opened(params)) && given.as_object().is_some_and(|given| given.len() == 1)
        },
    },
    Row {
        name: "draft-read-any-opened",
        description: "answers draft_read of an opened draft with -32603",
        tool: "draft_read",
        trigger: After(|served, given| {
            let id = text(given, "draft_id");
            served.iter().any(|call| call.tool == "draft_open" && call.draft_id.as_deref() == id)
        }),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |before, given| {
            matches!(before, [params] if params["arguments"] == json!({"title": "a"}))
                && given.as_object().is_some_and(|given| given.len() == 1)
        },
    },
    Row {
        name: "draft-title-reused",
        description: "answers draft_open with -32603 when the title was used before",
        tool: "draft_open",
        trigger: After(|served, given| {
            let title = text(given, "title");
            served.iter().any(|call| call.tool == "draft_open" && text(&call.arguments, "title") == title)
        }),
        effect: Refuse(-32_603, "UNIQUE constraint failed"),
        oracles: &["fuzz/internal-error"],
        least: |before, given| {
            given == &json!({"title": "a"})
                && matches!(before, [params] if params["arguments"] == json!({"title": "a"}))
        },
    },
    Row {
        name: "count-fiftieth",
        description: "exits on the fiftieth valid call of count",
        tool: "count",
        trigger: Nth(50),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, _| true,
    },
    Row {
        name: "echo-swaps-responses",
        description: "swaps concurrent responses when echo gets a capital letter",
        tool: "echo",
        trigger: Valid(|given| {
            text(given, "text").is_some_and(|text| text.bytes().any(|byte| byte.is_ascii_uppercase()))
        }),
        effect: Swap,
        oracles: &["fuzz/answers-swapped"],
        least: |_, _| true,
    },
    Row {
        name: "search-swaps-responses",
        description: "swaps concurrent responses when the limit of search exceeds 50",
        tool: "search",
        trigger: Valid(|given| real(given, "limit").is_some_and(|limit| limit > 50.0)),
        effect: Swap,
        oracles: &["fuzz/answers-swapped"],
        least: |_, _| true,
    },
    Row {
        name: "echo-memory",
        description: "leaks 100 KiB on each call of echo",
        tool: "echo",
        trigger: Valid(|_| true),
        effect: Retain(100 << 10),
        oracles: &["fuzz/memory"],
        least: |_, _| true,
    },
    Row {
        name: "search-memory",
        description: "leaks 256 KiB on each search with a filter",
        tool: "search",
        trigger: Valid(|given| given.contains_key("filter")),
        effect: Retain(256 << 10),
        oracles: &["fuzz/memory"],
        least: |_, _| true,
    },
    Row {
        name: "add-slower",
        description: "slows down with each call of add",
        tool: "add",
        trigger: Valid(|_| true),
        effect: Slow(100),
        oracles: &["fuzz/latency"],
        least: |_, _| true,
    },
    Row {
        name: "transform-slower",
        description: "slows down with each transform that has steps",
        tool: "transform",
        trigger: Valid(|given| given.contains_key("steps")),
        effect: Slow(400),
        oracles: &["fuzz/latency"],
        least: |_, _| true,
    },
    Row {
        name: "search-files",
        description: "leaks a file descriptor on each search with tags",
        tool: "search",
        trigger: Valid(|given| given.contains_key("tags")),
        effect: Open,
        oracles: &["fuzz/descriptors"],
        least: |_, _| true,
    },
    Row {
        name: "transform-children",
        description: "leaks a process on each transform with steps",
        tool: "transform",
        trigger: Valid(|given| given.contains_key("steps")),
        effect: Spawn,
        oracles: &["fuzz/descriptors"],
        least: |_, _| true,
    },
    Row {
        name: "lookup-never-succeeds",
        description: "lists a tool that rejects all arguments",
        tool: "lookup",
        trigger: Listed,
        effect: ListFailing(|| {
            json!({
                "name": "lookup",
                "description": "Looks up the time of a place.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"timezone": {"type": "string"}},
                    "required": ["timezone"],
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": true},
            })
        }),
        oracles: &["fuzz/never-succeeds"],
        least: |_, _| true,
    },
    Row {
        name: "impossible-schema",
        description: "lists a tool whose schema contradicts itself",
        tool: "impossible",
        trigger: Listed,
        effect: ListFailing(|| {
            json!({
                "name": "impossible",
                "description": "Takes what cannot be.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"word": {"type": "string", "minLength": 5, "maxLength": 3}},
                    "required": ["word"],
                },
                "annotations": {"readOnlyHint": true},
            })
        }),
        oracles: &["fuzz/schema-contradiction"],
        least: |_, _| true,
    },
    Row {
        name: "idle-keyword",
        description: "lists a tool whose schema has a keyword without effect",
        tool: "idle",
        trigger: Listed,
        effect: List(|| {
            json!({
                "name": "idle",
                "description": "Takes a number.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"number": {"type": "integer", "maxLength": 40}},
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": true},
            })
        }),
        oracles: &["fuzz/schema-without-effect"],
        least: |_, _| true,
    },
];
