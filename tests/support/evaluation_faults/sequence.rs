//! Faults that need several calls (sequences, repetition, concurrency, resource leaks), and faults of tool
//! definitions, which need none.

use serde_json::{Value, json};

use super::effect::Effect::{
    Crash, LeakFile, LeakMemory, LeakProcess, ListFailingTool, ListTool, ProtocolError, SlowDown, SwapResponses,
};
use super::fault::FaultSpec;
use super::trigger::Trigger::{AfterCalls, Always, NthCall, ValidArguments};
use super::trigger::{number, string};

pub(super) const FAULTS: &[FaultSpec] = &[
    FaultSpec {
        name: "draft-read-opened",
        description: "exits when the client reads an opened draft of two or more pages",
        tool: "draft_read",
        trigger: AfterCalls(|served, arguments| {
            let id = string(arguments, "draft_id");
            let long = |arguments| number(arguments, "pages").is_some_and(|pages| pages >= 2.0);
            served.iter().any(|call| call.draft_id.is_some() && call.draft_id.as_deref() == id && long(&call.arguments))
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |before, arguments| {
            let opened = |params: &Value| params["arguments"] == json!({"title": "a", "pages": 2});
            matches!(before, [params] if opened(params))
                && arguments.as_object().is_some_and(|arguments| arguments.len() == 1)
        },
    },
    FaultSpec {
        name: "draft-read-any-opened",
        description: "answers draft_read of an opened draft with -32603",
        tool: "draft_read",
        trigger: AfterCalls(|served, arguments| {
            let id = string(arguments, "draft_id");
            served.iter().any(|call| call.tool == "draft_open" && call.draft_id.as_deref() == id)
        }),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |before, arguments| {
            matches!(before, [params] if params["arguments"] == json!({"title": "a"}))
                && arguments.as_object().is_some_and(|arguments| arguments.len() == 1)
        },
    },
    FaultSpec {
        name: "draft-title-reused",
        description: "answers draft_open with -32603 when the title was used before",
        tool: "draft_open",
        trigger: AfterCalls(|served, arguments| {
            let title = string(arguments, "title");
            served.iter().any(|call| call.tool == "draft_open" && string(&call.arguments, "title") == title)
        }),
        effect: ProtocolError(-32_603, "UNIQUE constraint failed"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |before, arguments| {
            arguments == &json!({"title": "a"})
                && matches!(before, [params] if params["arguments"] == json!({"title": "a"}))
        },
    },
    FaultSpec {
        name: "count-fiftieth",
        description: "exits on the fiftieth valid call of count",
        tool: "count",
        trigger: NthCall(50),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "echo-swaps-responses",
        description: "swaps concurrent responses when echo gets a capital letter",
        tool: "echo",
        trigger: ValidArguments(|arguments| {
            string(arguments, "text").is_some_and(|string| string.bytes().any(|byte| byte.is_ascii_uppercase()))
        }),
        effect: SwapResponses,
        oracles: &["fuzz/responses-swapped"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "search-swaps-responses",
        description: "swaps concurrent responses when the limit of search exceeds 50",
        tool: "search",
        trigger: ValidArguments(|arguments| number(arguments, "limit").is_some_and(|limit| limit > 50.0)),
        effect: SwapResponses,
        oracles: &["fuzz/responses-swapped"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "echo-memory",
        description: "leaks 100 KiB on each call of echo",
        tool: "echo",
        trigger: ValidArguments(|_| true),
        effect: LeakMemory(100 << 10),
        oracles: &["fuzz/memory"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "search-memory",
        description: "leaks 256 KiB on each search with a filter",
        tool: "search",
        trigger: ValidArguments(|arguments| arguments.contains_key("filter")),
        effect: LeakMemory(256 << 10),
        oracles: &["fuzz/memory"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "add-slower",
        description: "slows down with each call of add",
        tool: "add",
        trigger: ValidArguments(|_| true),
        effect: SlowDown(100),
        oracles: &["fuzz/latency"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "transform-slower",
        description: "slows down with each transform that has steps",
        tool: "transform",
        trigger: ValidArguments(|arguments| arguments.contains_key("steps")),
        effect: SlowDown(400),
        oracles: &["fuzz/latency"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "search-files",
        description: "leaks a file descriptor on each search with tags",
        tool: "search",
        trigger: ValidArguments(|arguments| arguments.contains_key("tags")),
        effect: LeakFile,
        oracles: &["fuzz/descriptors"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "transform-children",
        description: "leaks a process on each transform with steps",
        tool: "transform",
        trigger: ValidArguments(|arguments| arguments.contains_key("steps")),
        effect: LeakProcess,
        oracles: &["fuzz/descriptors"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "lookup-never-succeeds",
        description: "lists a tool that rejects all arguments",
        tool: "lookup",
        trigger: Always,
        effect: ListFailingTool(|| {
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
        oracles: &["untested"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "impossible-schema",
        description: "lists a tool whose schema contradicts itself",
        tool: "impossible",
        trigger: Always,
        effect: ListFailingTool(|| {
            json!({
                "name": "impossible",
                "description": "Has no valid arguments.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"word": {"type": "string", "minLength": 5, "maxLength": 3}},
                    "required": ["word"],
                },
                "annotations": {"readOnlyHint": true},
            })
        }),
        oracles: &["fuzz/schema-contradiction"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "idle-keyword",
        description: "lists a tool whose schema has a keyword without effect",
        tool: "idle",
        trigger: Always,
        effect: ListTool(|| {
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
        is_minimal: |_, _| true,
    },
];
