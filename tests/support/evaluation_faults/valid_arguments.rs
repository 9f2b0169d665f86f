//! Faults that valid arguments trigger: boundaries, unusual strings and numbers, branches, combinations.

use serde_json::json;

use super::effect::Effect::{
    AddTool, BreakTool, ChangeBytes, ChangeMessage, ChangeResult, ChangeResultEachCall, Crash, Freeze, Hang,
    ProtocolError, ToolError,
};
use super::effect::{
    add_noise, add_odd_log, duplicate, set_structured, set_text, truncate, unescape_breaks, unescape_quotes,
};
use super::fault::FaultSpec;
use super::trigger::Trigger::ValidArguments;
use super::trigger::{any_step, contains, depth, has_duplicates, has_exactly_keys, integer, items, number, string};

pub(super) const FAULTS: &[FaultSpec] = &[
    // search: boundaries and branches
    FaultSpec {
        name: "search-limit-maximum",
        description: "exits when search has the maximum limit",
        tool: "search",
        trigger: ValidArguments(|arguments| number(arguments, "limit") == Some(100.0)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |before, arguments| before.is_empty() && arguments == &json!({"query": "a", "limit": 100}),
    },
    FaultSpec {
        name: "search-query-longest",
        description: "exits when the query of search has 64 characters",
        tool: "search",
        trigger: ValidArguments(|arguments| {
            string(arguments, "query").is_some_and(|query| query.chars().count() == 64)
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a".repeat(64)}),
    },
    FaultSpec {
        name: "search-tags-empty",
        description: "answers search with -32603 when tags is empty",
        tool: "search",
        trigger: ValidArguments(|arguments| items(arguments, "tags").is_some_and(<[_]>::is_empty)),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "tags": []}),
    },
    FaultSpec {
        name: "search-tags-full",
        description: "omits content when search has five tags",
        tool: "search",
        trigger: ValidArguments(|arguments| items(arguments, "tags").is_some_and(|tags| tags.len() == 5)),
        effect: ChangeResult(|result| drop(result.remove("content"))),
        oracles: &["fuzz/result-shape"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["query", "tags"])
                && arguments["tags"].as_array().is_some_and(|tags| tags.len() == 5)
                && arguments["tags"].to_string().len() <= 21
        },
    },
    FaultSpec {
        name: "search-tags-priority",
        description: "gives its text a priority of 2 when search has four tags",
        tool: "search",
        trigger: ValidArguments(|arguments| items(arguments, "tags").is_some_and(|tags| tags.len() == 4)),
        effect: ChangeResult(|result| result["content"][0]["annotations"] = json!({ "priority": 2 })),
        oracles: &["fuzz/result-rules"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["query", "tags"])
                && arguments["tags"].as_array().is_some_and(|tags| tags.len() == 4)
        },
    },
    FaultSpec {
        name: "search-tags-log",
        description: "logs at an unknown level when search has three tags",
        tool: "search",
        trigger: ValidArguments(|arguments| items(arguments, "tags").is_some_and(|tags| tags.len() == 3)),
        effect: ChangeBytes(add_odd_log),
        oracles: &["fuzz/result-rules"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["query", "tags"])
                && arguments["tags"].as_array().is_some_and(|tags| tags.len() == 3)
        },
    },
    FaultSpec {
        name: "search-tag-empty",
        description: "returns null as total when a tag of search is empty",
        tool: "search",
        trigger: ValidArguments(|arguments| items(arguments, "tags").is_some_and(|tags| tags.contains(&json!("")))),
        effect: ChangeResult(|result| set_structured(result, "total", json!(null))),
        oracles: &["fuzz/output-schema"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "tags": [""]}),
    },
    FaultSpec {
        name: "search-third-sort",
        description: "never answers a search sorted by date",
        tool: "search",
        trigger: ValidArguments(|arguments| string(arguments, "sort") == Some("date")),
        effect: Hang,
        oracles: &["fuzz/hang"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "sort": "date"}),
    },
    FaultSpec {
        name: "search-range-backwards",
        description: "exits when the range of search ends before it starts",
        tool: "search",
        trigger: ValidArguments(|arguments| {
            arguments.get("filter").and_then(|filter| filter.as_object()).is_some_and(
                |filter| matches!((number(filter, "from"), number(filter, "to")), (Some(from), Some(to)) if to < from),
            )
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| {
            let filter = &arguments["filter"];
            let ends = (filter["from"].as_i64(), filter["to"].as_i64());
            has_exactly_keys(arguments, &["query", "filter"])
                && matches!(ends, (Some(0), Some(-1)) | (Some(1), Some(0)))
        },
    },
    FaultSpec {
        name: "search-match-branch",
        description: "returns a number as content for a case-folded match",
        tool: "search",
        trigger: ValidArguments(|arguments| arguments.get("filter").is_some_and(|filter| filter["fold"] == true)),
        effect: ChangeResult(|result| drop(result.insert("content".to_owned(), json!([5])))),
        oracles: &["fuzz/result-shape"],
        is_minimal: |_, arguments| {
            arguments == &json!({"query": "a", "filter": {"kind": "match", "text": "", "fold": true}})
        },
    },
    FaultSpec {
        name: "search-any-last-kind",
        description: "answers a search for links with the id null",
        tool: "search",
        trigger: ValidArguments(|arguments| {
            let kinds = arguments.get("filter").and_then(|filter| filter["of"].as_array());
            kinds.is_some_and(|kinds| kinds.contains(&json!("link")))
        }),
        effect: ChangeMessage(|message| message["id"] = json!(null)),
        oracles: &["fuzz/malformed-response", "fuzz/hang"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "filter": {"kind": "any", "of": ["link"]}}),
    },
    FaultSpec {
        name: "search-two-together",
        description: "answers search with -32603 when it has both tags and a date",
        tool: "search",
        trigger: ValidArguments(|arguments| arguments.contains_key("tags") && arguments.contains_key("after")),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["query", "tags", "after"])
                && arguments["query"] == "a"
                && arguments["tags"] == json!([])
        },
    },
    FaultSpec {
        name: "search-limit-without-sort",
        description: "rejects a search with tags and limit but without sort",
        tool: "search",
        trigger: ValidArguments(|arguments| {
            arguments.contains_key("tags") && arguments.contains_key("limit") && !arguments.contains_key("sort")
        }),
        effect: ProtocolError(-32_602, "Invalid arguments: sort is missing"),
        oracles: &["fuzz/valid-rejected"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "tags": [], "limit": 1}),
    },
    FaultSpec {
        name: "search-quote-breaks-tool",
        description: "fails every search after a query with a quote",
        tool: "search",
        trigger: ValidArguments(|arguments| contains(arguments, "query", "'")),
        effect: BreakTool("search", "The database is locked."),
        oracles: &["fuzz/degradation"],
        is_minimal: |before, arguments| {
            let calls = before.iter().map(|params| &params["arguments"]).chain([arguments]);
            before.len() <= 1 && calls.filter(|arguments| **arguments == json!({"query": "'"})).count() == 1
        },
    },
    FaultSpec {
        name: "search-owner-writes",
        description: "lists one more tool after a search sorted by owner",
        tool: "search",
        trigger: ValidArguments(|arguments| string(arguments, "sort") == Some("owner")),
        effect: AddTool,
        oracles: &["fuzz/read-only"],
        is_minimal: |before, arguments| before.is_empty() && arguments == &json!({"query": "a", "sort": "owner"}),
    },
    FaultSpec {
        name: "search-rank-drifts",
        description: "returns a different total for each search sorted by rank",
        tool: "search",
        trigger: ValidArguments(|arguments| string(arguments, "sort") == Some("rank")),
        effect: ChangeResultEachCall(|result, times_triggered| set_structured(result, "total", json!(times_triggered))),
        oracles: &["fuzz/idempotent"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "sort": "rank"}),
    },
    FaultSpec {
        name: "search-limit-57",
        description: "leaks a path when the limit of search is 57 or more",
        tool: "search",
        trigger: ValidArguments(|arguments| number(arguments, "limit").is_some_and(|limit| limit >= 57.0)),
        effect: ToolError("Cannot read /home/deploy/app/node_modules/index/shards/57.json"),
        oracles: &["fuzz/leak"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "limit": 57}),
    },
    // transform: strings
    FaultSpec {
        name: "transform-nul",
        description: "exits when the text of transform contains NUL",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "\0")),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == &json!({"text": "\0"}),
    },
    FaultSpec {
        name: "transform-astral",
        description: "truncates the response when transform gets a non-BMP character",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            string(arguments, "text").is_some_and(|string| string.chars().any(|c| c > '\u{ffff}'))
        }),
        effect: ChangeBytes(truncate),
        oracles: &["fuzz/malformed-response", "fuzz/stdout-noise"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["text"]) && arguments["text"].as_str().is_some_and(|t| t.chars().count() == 1)
        },
    },
    FaultSpec {
        name: "transform-combining",
        description: "returns a negative length for a combining character in transform",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "\u{301}")),
        effect: ChangeResult(|result| set_structured(result, "length", json!(-1))),
        oracles: &["fuzz/output-schema"],
        is_minimal: |_, arguments| arguments == &json!({"text": "\u{301}"}),
    },
    FaultSpec {
        name: "transform-bidi",
        description: "never answers when transform gets a right-to-left override",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "\u{202e}")),
        effect: Hang,
        oracles: &["fuzz/hang"],
        is_minimal: |_, arguments| arguments == &json!({"text": "\u{202e}"}),
    },
    FaultSpec {
        name: "transform-quote",
        description: "does not escape quotes in the text of transform",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "\"")),
        effect: ChangeBytes(unescape_quotes),
        oracles: &["fuzz/malformed-response", "fuzz/stdout-noise"],
        is_minimal: |_, arguments| arguments == &json!({"text": "\""}),
    },
    FaultSpec {
        name: "transform-newline",
        description: "does not escape line breaks in the text of transform",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "\n")),
        effect: ChangeBytes(unescape_breaks),
        oracles: &["fuzz/malformed-response", "fuzz/stdout-noise"],
        is_minimal: |_, arguments| arguments == &json!({"text": "\n"}),
    },
    FaultSpec {
        name: "transform-format-string",
        description: "leaks a stack trace when the text of transform contains %s",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "%s")),
        effect: ToolError(
            "Traceback (most recent call last):\n  File \"/srv/app/transform.py\", line 57, in run\nTypeError: not enough arguments for format string",
        ),
        oracles: &["fuzz/leak"],
        is_minimal: |_, arguments| arguments == &json!({"text": "%s"}),
    },
    FaultSpec {
        name: "transform-traversal",
        description: "leaks its path when the text of transform contains ../",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "../")),
        effect: ToolError("ENOENT: no such file or directory, open '/home/deploy/app/data/passwd'"),
        oracles: &["fuzz/leak"],
        is_minimal: |_, arguments| arguments == &json!({"text": "../"}),
    },
    FaultSpec {
        name: "transform-template",
        description: "prints a log line when the text of transform contains {{",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "{{")),
        effect: ChangeBytes(add_noise),
        oracles: &["fuzz/stdout-noise"],
        is_minimal: |_, arguments| arguments == &json!({"text": "{{"}),
    },
    FaultSpec {
        name: "transform-leading-blank",
        description: "rejects transform when text starts with a space",
        tool: "transform",
        trigger: ValidArguments(|arguments| string(arguments, "text").is_some_and(|string| string.starts_with(' '))),
        effect: ProtocolError(-32_602, "Invalid arguments: text must not begin with a blank"),
        oracles: &["fuzz/valid-rejected"],
        is_minimal: |_, arguments| arguments == &json!({"text": " "}),
    },
    FaultSpec {
        name: "transform-long-text",
        description: "exits when the text of transform exceeds 120 characters",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            string(arguments, "text").is_some_and(|string| string.chars().count() > 120)
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == &json!({"text": "a".repeat(121)}),
    },
    FaultSpec {
        name: "transform-prototype-breaks-echo",
        description: "fails every echo after a transform of __proto__",
        tool: "transform",
        trigger: ValidArguments(|arguments| contains(arguments, "text", "__proto__")),
        effect: BreakTool("echo", "undefined"),
        oracles: &["fuzz/degradation"],
        is_minimal: |before, arguments| {
            let calls = before.iter().map(|params| &params["arguments"]).chain([arguments]);
            before.len() <= 1 && calls.filter(|arguments| **arguments == json!({"text": "__proto__"})).count() == 1
        },
    },
    // transform: numbers
    FaultSpec {
        name: "transform-beyond-i32",
        description: "exits when repeat of transform exceeds an i32",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            integer(arguments, "repeat").is_some_and(|repeat| repeat > i128::from(i32::MAX))
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == &json!({"text": "", "repeat": 2_147_483_648_u64}),
    },
    FaultSpec {
        name: "transform-beyond-double",
        description: "returns repeat as a string when it exceeds 2^53",
        tool: "transform",
        trigger: ValidArguments(|arguments| integer(arguments, "repeat").is_some_and(|repeat| repeat > 1 << 53)),
        effect: ChangeResult(|result| set_structured(result, "repeat", json!("9.007199254740992e+15"))),
        oracles: &["fuzz/output-schema"],
        is_minimal: |_, arguments| arguments == &json!({"text": "", "repeat": 9_007_199_254_740_993_u64}),
    },
    FaultSpec {
        name: "transform-negative",
        description: "answers transform with a negative repeat with -32603",
        tool: "transform",
        trigger: ValidArguments(|arguments| integer(arguments, "repeat").is_some_and(|repeat| repeat < 0)),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |_, arguments| arguments == &json!({"text": "", "repeat": -1}),
    },
    FaultSpec {
        name: "transform-negative-zero",
        description: "answers twice when the factor of transform is -0.0",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            number(arguments, "factor").is_some_and(|factor| factor == 0.0 && factor.is_sign_negative())
        }),
        effect: ChangeBytes(duplicate),
        oracles: &["fuzz/malformed-response"],
        is_minimal: |_, arguments| has_exactly_keys(arguments, &["text", "factor"]) && arguments["text"] == "",
    },
    FaultSpec {
        name: "transform-tiny-factor",
        description: "returns a number as text for a tiny factor",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            number(arguments, "factor").is_some_and(|factor| factor != 0.0 && factor.abs() < 1e-6)
        }),
        effect: ChangeResult(|result| {
            set_text(result, "");
            result["content"][0]["text"] = json!(5);
        }),
        oracles: &["fuzz/result-shape"],
        is_minimal: |_, arguments| has_exactly_keys(arguments, &["text", "factor"]) && arguments["text"] == "",
    },
    FaultSpec {
        name: "transform-huge-factor",
        description: "answers with another id for a huge factor",
        tool: "transform",
        trigger: ValidArguments(|arguments| number(arguments, "factor").is_some_and(|factor| factor.abs() > 1e18)),
        effect: ChangeMessage(|message| message["id"] = json!("transform-1")),
        oracles: &["fuzz/malformed-response", "fuzz/hang"],
        is_minimal: |_, arguments| has_exactly_keys(arguments, &["text", "factor"]) && arguments["text"] == "",
    },
    // transform: structure
    FaultSpec {
        name: "transform-repeat-and-factor",
        description: "stops responding when transform has both repeat and factor",
        tool: "transform",
        trigger: ValidArguments(|arguments| arguments.contains_key("repeat") && arguments.contains_key("factor")),
        effect: Freeze,
        oracles: &["fuzz/hang"],
        is_minimal: |_, arguments| arguments == &json!({"text": "", "repeat": 0, "factor": 0}),
    },
    FaultSpec {
        name: "transform-three-deep",
        description: "exits when the steps of transform are nested three deep",
        tool: "transform",
        trigger: ValidArguments(|arguments| items(arguments, "steps").is_some_and(|steps| depth(steps) >= 3)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["text", "steps"])
                && items_of(arguments).is_some_and(|steps| depth(steps) == 3)
                && arguments.to_string().matches("op").count() == 3
        },
    },
    FaultSpec {
        name: "transform-trim-with-code",
        description: "answers transform with -32603 when a trim step has a code",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            let coded = |step: &serde_json::Value| step["op"] == "trim" && step.get("code").is_some();
            items(arguments, "steps").is_some_and(|steps| any_step(steps, &coded))
        }),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |_, arguments| arguments == &json!({"text": "", "steps": [{"op": "trim", "code": "AA-000"}]}),
    },
    FaultSpec {
        name: "transform-equal-steps",
        description: "exits when two steps of transform are equal",
        tool: "transform",
        trigger: ValidArguments(|arguments| items(arguments, "steps").is_some_and(has_duplicates)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["text", "steps"])
                && items_of(arguments)
                    .is_some_and(|steps| steps.len() == 2 && steps[0].as_object().is_some_and(|s| s.len() == 1))
        },
    },
    FaultSpec {
        name: "transform-prototype-option",
        description: "exits when an option of transform is named __proto__",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            arguments
                .get("options")
                .and_then(|options| options.as_object())
                .is_some_and(|o| o.contains_key("__proto__"))
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| {
            has_exactly_keys(arguments, &["text", "options"]) && has_exactly_keys(&arguments["options"], &["__proto__"])
        },
    },
    FaultSpec {
        name: "transform-unknown-member",
        description: "answers transform with an unknown argument with -32603",
        tool: "transform",
        trigger: ValidArguments(|arguments| {
            arguments.keys().any(|key| !["text", "repeat", "factor", "steps", "options"].contains(&key.as_str()))
        }),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |_, arguments| {
            arguments["text"] == "" && arguments.as_object().is_some_and(|members| members.len() == 2)
        },
    },
    // simple tools
    FaultSpec {
        name: "echo-trailing-blank",
        description: "echoes a different text on each call with a trailing space",
        tool: "echo",
        trigger: ValidArguments(|arguments| string(arguments, "text").is_some_and(|string| string.ends_with(' '))),
        effect: ChangeResultEachCall(|result, times_triggered| set_text(result, &format!("{times_triggered} "))),
        oracles: &["fuzz/idempotent"],
        is_minimal: |_, arguments| arguments == &json!({"text": " "}),
    },
    FaultSpec {
        name: "add-cancels",
        description: "exits when a number is added to its negative",
        tool: "add",
        trigger: ValidArguments(
            |arguments| matches!((number(arguments, "a"), number(arguments, "b")), (Some(a), Some(b)) if a != 0.0 && a + b == 0.0),
        ),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| {
            let (a, b) = (arguments["a"].as_f64().unwrap_or_default(), arguments["b"].as_f64().unwrap_or_default());
            has_exactly_keys(arguments, &["a", "b"]) && a.abs() <= 1.0 && b.abs() <= 1.0
        },
    },
    FaultSpec {
        name: "count-to-nine",
        description: "omits the type of the content when it counts to nine",
        tool: "count",
        trigger: ValidArguments(|arguments| number(arguments, "to") == Some(9.0)),
        effect: ChangeResult(|result| {
            if let Some(block) = result["content"][0].as_object_mut() {
                block.remove("type");
            }
        }),
        oracles: &["fuzz/result-shape"],
        is_minimal: |_, arguments| arguments == &json!({"to": 9}),
    },
];

/// The steps of a call of `transform`.
fn items_of(arguments: &serde_json::Value) -> Option<&[serde_json::Value]> {
    arguments["steps"].as_array().map(Vec::as_slice)
}
