//! Faults that valid arguments draw: bounds, odd strings and numbers, branches, combinations.

use serde_json::json;

use super::effect::Effect::{Crash, Deform, Drift, Fail, Freeze, Grow, Hang, Readdress, Refuse, Spoil, Write};
use super::effect::{add_noise, cut, double, set_structured, set_text, unescape_breaks, unescape_quotes};
use super::row::Row;
use super::trigger::Trigger::Valid;
use super::trigger::{any_step, contains, depth, has_twins, items, keys, real, text, whole};

pub(super) const ROWS: &[Row] = &[
    // search: bounds and branches
    Row {
        name: "search-limit-maximum",
        description: "exits when search has the maximum limit",
        tool: "search",
        trigger: Valid(|given| real(given, "limit") == Some(100.0)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |before, given| before.is_empty() && given == &json!({"query": "a", "limit": 100}),
    },
    Row {
        name: "search-query-longest",
        description: "exits when the query of search has 64 characters",
        tool: "search",
        trigger: Valid(|given| text(given, "query").is_some_and(|query| query.chars().count() == 64)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"query": "a".repeat(64)}),
    },
    Row {
        name: "search-tags-empty",
        description: "answers search with -32603 when tags is empty",
        tool: "search",
        trigger: Valid(|given| items(given, "tags").is_some_and(<[_]>::is_empty)),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| given == &json!({"query": "a", "tags": []}),
    },
    Row {
        name: "search-tags-full",
        description: "omits content when search has five tags",
        tool: "search",
        trigger: Valid(|given| items(given, "tags").is_some_and(|tags| tags.len() == 5)),
        effect: Deform(|result| drop(result.remove("content"))),
        oracles: &["fuzz/result-shape"],
        least: |_, given| {
            keys(given, &["query", "tags"])
                && given["tags"].as_array().is_some_and(|tags| tags.len() == 5)
                && given["tags"].to_string().len() <= 21
        },
    },
    Row {
        name: "search-tag-empty",
        description: "returns null as total when a tag of search is empty",
        tool: "search",
        trigger: Valid(|given| items(given, "tags").is_some_and(|tags| tags.contains(&json!("")))),
        effect: Deform(|result| set_structured(result, "total", json!(null))),
        oracles: &["fuzz/output-schema"],
        least: |_, given| given == &json!({"query": "a", "tags": [""]}),
    },
    Row {
        name: "search-third-sort",
        description: "never answers a search sorted by date",
        tool: "search",
        trigger: Valid(|given| text(given, "sort") == Some("date")),
        effect: Hang,
        oracles: &["fuzz/hang"],
        least: |_, given| given == &json!({"query": "a", "sort": "date"}),
    },
    Row {
        name: "search-range-backwards",
        description: "exits when the range of search ends before it starts",
        tool: "search",
        trigger: Valid(|given| {
            given.get("filter").and_then(|filter| filter.as_object()).is_some_and(
                |filter| matches!((real(filter, "from"), real(filter, "to")), (Some(from), Some(to)) if to < from),
            )
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| {
            let filter = &given["filter"];
            let ends = (filter["from"].as_i64(), filter["to"].as_i64());
            keys(given, &["query", "filter"]) && matches!(ends, (Some(0), Some(-1)) | (Some(1), Some(0)))
        },
    },
    Row {
        name: "search-match-branch",
        description: "returns a number as content for a case-folded match",
        tool: "search",
        trigger: Valid(|given| given.get("filter").is_some_and(|filter| filter["fold"] == true)),
        effect: Deform(|result| drop(result.insert("content".to_owned(), json!([5])))),
        oracles: &["fuzz/result-shape"],
        least: |_, given| given == &json!({"query": "a", "filter": {"kind": "match", "text": "", "fold": true}}),
    },
    Row {
        name: "search-any-last-kind",
        description: "answers a search for links with the id null",
        tool: "search",
        trigger: Valid(|given| {
            let kinds = given.get("filter").and_then(|filter| filter["of"].as_array());
            kinds.is_some_and(|kinds| kinds.contains(&json!("link")))
        }),
        effect: Readdress(|message| message["id"] = json!(null)),
        oracles: &["fuzz/malformed-answer", "fuzz/hang"],
        least: |_, given| given == &json!({"query": "a", "filter": {"kind": "any", "of": ["link"]}}),
    },
    Row {
        name: "search-two-together",
        description: "answers search with -32603 when it has both tags and a date",
        tool: "search",
        trigger: Valid(|given| given.contains_key("tags") && given.contains_key("after")),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| {
            keys(given, &["query", "tags", "after"]) && given["query"] == "a" && given["tags"] == json!([])
        },
    },
    Row {
        name: "search-limit-without-sort",
        description: "rejects a search with tags and limit but without sort",
        tool: "search",
        trigger: Valid(|given| {
            given.contains_key("tags") && given.contains_key("limit") && !given.contains_key("sort")
        }),
        effect: Refuse(-32_602, "Invalid arguments: sort is missing"),
        oracles: &["fuzz/valid-refused"],
        least: |_, given| given == &json!({"query": "a", "tags": [], "limit": 1}),
    },
    Row {
        name: "search-quote-breaks-tool",
        description: "fails every search after a query with a quote",
        tool: "search",
        trigger: Valid(|given| contains(given, "query", "'")),
        effect: Spoil("search", "The database is locked."),
        oracles: &["fuzz/worse-after"],
        least: |before, given| {
            let calls = before.iter().map(|params| &params["arguments"]).chain([given]);
            before.len() <= 1 && calls.filter(|given| **given == json!({"query": "'"})).count() == 1
        },
    },
    Row {
        name: "search-owner-writes",
        description: "lists one more tool after a search sorted by owner",
        tool: "search",
        trigger: Valid(|given| text(given, "sort") == Some("owner")),
        effect: Grow,
        oracles: &["fuzz/read-only"],
        least: |before, given| before.is_empty() && given == &json!({"query": "a", "sort": "owner"}),
    },
    Row {
        name: "search-rank-drifts",
        description: "returns a different total for each search sorted by rank",
        tool: "search",
        trigger: Valid(|given| text(given, "sort") == Some("rank")),
        effect: Drift(|result, struck| set_structured(result, "total", json!(struck))),
        oracles: &["fuzz/idempotent"],
        least: |_, given| given == &json!({"query": "a", "sort": "rank"}),
    },
    Row {
        name: "search-limit-57",
        description: "leaks a path when the limit of search is 57 or more",
        tool: "search",
        trigger: Valid(|given| real(given, "limit").is_some_and(|limit| limit >= 57.0)),
        effect: Fail("Cannot read /home/deploy/app/node_modules/index/shards/57.json"),
        oracles: &["fuzz/leak"],
        least: |_, given| given == &json!({"query": "a", "limit": 57}),
    },
    // transform: strings
    Row {
        name: "transform-nul",
        description: "exits when the text of transform contains NUL",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "\0")),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"text": "\0"}),
    },
    Row {
        name: "transform-astral",
        description: "truncates the response when transform gets a non-BMP character",
        tool: "transform",
        trigger: Valid(|given| text(given, "text").is_some_and(|text| text.chars().any(|c| c > '\u{ffff}'))),
        effect: Write(cut),
        oracles: &["fuzz/malformed-answer", "fuzz/stdout-noise"],
        least: |_, given| keys(given, &["text"]) && given["text"].as_str().is_some_and(|t| t.chars().count() == 1),
    },
    Row {
        name: "transform-combining",
        description: "returns a negative length for a combining character in transform",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "\u{301}")),
        effect: Deform(|result| set_structured(result, "length", json!(-1))),
        oracles: &["fuzz/output-schema"],
        least: |_, given| given == &json!({"text": "\u{301}"}),
    },
    Row {
        name: "transform-bidi",
        description: "never answers when transform gets a right-to-left override",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "\u{202e}")),
        effect: Hang,
        oracles: &["fuzz/hang"],
        least: |_, given| given == &json!({"text": "\u{202e}"}),
    },
    Row {
        name: "transform-quote",
        description: "does not escape quotes in the text of transform",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "\"")),
        effect: Write(unescape_quotes),
        oracles: &["fuzz/malformed-answer", "fuzz/stdout-noise"],
        least: |_, given| given == &json!({"text": "\""}),
    },
    Row {
        name: "transform-newline",
        description: "does not escape line breaks in the text of transform",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "\n")),
        effect: Write(unescape_breaks),
        oracles: &["fuzz/malformed-answer", "fuzz/stdout-noise"],
        least: |_, given| given == &json!({"text": "\n"}),
    },
    Row {
        name: "transform-format-string",
        description: "leaks a stack trace when the text of transform contains %s",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "%s")),
        effect: Fail(
            "Traceback (most recent call last):\n  File \"/srv/app/transform.py\", line 57, in run\nTypeError: not enough arguments for format string",
        ),
        oracles: &["fuzz/leak"],
        least: |_, given| given == &json!({"text": "%s"}),
    },
    Row {
        name: "transform-traversal",
        description: "leaks its path when the text of transform contains ../",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "../")),
        effect: Fail("ENOENT: no such file or directory, open '/home/deploy/app/data/passwd'"),
        oracles: &["fuzz/leak"],
        least: |_, given| given == &json!({"text": "../"}),
    },
    Row {
        name: "transform-template",
        description: "prints a log line when the text of transform contains {{",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "{{")),
        effect: Write(add_noise),
        oracles: &["fuzz/stdout-noise"],
        least: |_, given| given == &json!({"text": "{{"}),
    },
    Row {
        name: "transform-leading-blank",
        description: "rejects transform when text starts with a space",
        tool: "transform",
        trigger: Valid(|given| text(given, "text").is_some_and(|text| text.starts_with(' '))),
        effect: Refuse(-32_602, "Invalid arguments: text must not begin with a blank"),
        oracles: &["fuzz/valid-refused"],
        least: |_, given| given == &json!({"text": " "}),
    },
    Row {
        name: "transform-long-text",
        description: "exits when the text of transform exceeds 120 characters",
        tool: "transform",
        trigger: Valid(|given| text(given, "text").is_some_and(|text| text.chars().count() > 120)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"text": "a".repeat(121)}),
    },
    Row {
        name: "transform-prototype-breaks-echo",
        description: "fails every echo after a transform of __proto__",
        tool: "transform",
        trigger: Valid(|given| contains(given, "text", "__proto__")),
        effect: Spoil("echo", "undefined"),
        oracles: &["fuzz/worse-after"],
        least: |before, given| {
            let calls = before.iter().map(|params| &params["arguments"]).chain([given]);
            before.len() <= 1 && calls.filter(|given| **given == json!({"text": "__proto__"})).count() == 1
        },
    },
    // transform: numbers
    Row {
        name: "transform-beyond-i32",
        description: "exits when repeat of transform exceeds an i32",
        tool: "transform",
        trigger: Valid(|given| whole(given, "repeat").is_some_and(|repeat| repeat > i128::from(i32::MAX))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"text": "", "repeat": 2_147_483_648_u64}),
    },
    Row {
        name: "transform-beyond-double",
        description: "returns repeat as a string when it exceeds 2^53",
        tool: "transform",
        trigger: Valid(|given| whole(given, "repeat").is_some_and(|repeat| repeat > 1 << 53)),
        effect: Deform(|result| set_structured(result, "repeat", json!("9.007199254740992e+15"))),
        oracles: &["fuzz/output-schema"],
        least: |_, given| given == &json!({"text": "", "repeat": 9_007_199_254_740_993_u64}),
    },
    Row {
        name: "transform-negative",
        description: "answers transform with a negative repeat with -32603",
        tool: "transform",
        trigger: Valid(|given| whole(given, "repeat").is_some_and(|repeat| repeat < 0)),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| given == &json!({"text": "", "repeat": -1}),
    },
    Row {
        name: "transform-negative-zero",
        description: "answers twice when the factor of transform is -0.0",
        tool: "transform",
        trigger: Valid(|given| real(given, "factor").is_some_and(|factor| factor == 0.0 && factor.is_sign_negative())),
        effect: Write(double),
        oracles: &["fuzz/malformed-answer"],
        least: |_, given| keys(given, &["text", "factor"]) && given["text"] == "",
    },
    Row {
        name: "transform-tiny-factor",
        description: "returns a number as text for a tiny factor",
        tool: "transform",
        trigger: Valid(|given| real(given, "factor").is_some_and(|factor| factor != 0.0 && factor.abs() < 1e-6)),
        effect: Deform(|result| {
            set_text(result, "");
            result["content"][0]["text"] = json!(5);
        }),
        oracles: &["fuzz/result-shape"],
        least: |_, given| keys(given, &["text", "factor"]) && given["text"] == "",
    },
    Row {
        name: "transform-huge-factor",
        description: "answers with another id for a huge factor",
        tool: "transform",
        trigger: Valid(|given| real(given, "factor").is_some_and(|factor| factor.abs() > 1e18)),
        effect: Readdress(|message| message["id"] = json!("transform-1")),
        oracles: &["fuzz/malformed-answer", "fuzz/hang"],
        least: |_, given| keys(given, &["text", "factor"]) && given["text"] == "",
    },
    // transform: structure
    Row {
        name: "transform-repeat-and-factor",
        description: "stops responding when transform has both repeat and factor",
        tool: "transform",
        trigger: Valid(|given| given.contains_key("repeat") && given.contains_key("factor")),
        effect: Freeze,
        oracles: &["fuzz/hang"],
        least: |_, given| given == &json!({"text": "", "repeat": 0, "factor": 0}),
    },
    Row {
        name: "transform-three-deep",
        description: "exits when the steps of transform are nested three deep",
        tool: "transform",
        trigger: Valid(|given| items(given, "steps").is_some_and(|steps| depth(steps) >= 3)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| {
            keys(given, &["text", "steps"])
                && items_of(given).is_some_and(|steps| depth(steps) == 3)
                && given.to_string().matches("op").count() == 3
        },
    },
    Row {
        name: "transform-trim-with-code",
        description: "answers transform with -32603 when a trim step has a code",
        tool: "transform",
        trigger: Valid(|given| {
            let coded = |step: &serde_json::Value| step["op"] == "trim" && step.get("code").is_some();
            items(given, "steps").is_some_and(|steps| any_step(steps, &coded))
        }),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| given == &json!({"text": "", "steps": [{"op": "trim", "code": "AA-000"}]}),
    },
    Row {
        name: "transform-equal-steps",
        description: "exits when two steps of transform are equal",
        tool: "transform",
        trigger: Valid(|given| items(given, "steps").is_some_and(has_twins)),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| {
            keys(given, &["text", "steps"])
                && items_of(given)
                    .is_some_and(|steps| steps.len() == 2 && steps[0].as_object().is_some_and(|s| s.len() == 1))
        },
    },
    Row {
        name: "transform-prototype-option",
        description: "exits when an option of transform is named __proto__",
        tool: "transform",
        trigger: Valid(|given| {
            given.get("options").and_then(|options| options.as_object()).is_some_and(|o| o.contains_key("__proto__"))
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| keys(given, &["text", "options"]) && keys(&given["options"], &["__proto__"]),
    },
    Row {
        name: "transform-unknown-member",
        description: "answers transform with an unknown argument with -32603",
        tool: "transform",
        trigger: Valid(|given| {
            given.keys().any(|key| !["text", "repeat", "factor", "steps", "options"].contains(&key.as_str()))
        }),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| given["text"] == "" && given.as_object().is_some_and(|members| members.len() == 2),
    },
    // the plain tools
    Row {
        name: "echo-trailing-blank",
        description: "echoes a different text on each call with a trailing space",
        tool: "echo",
        trigger: Valid(|given| text(given, "text").is_some_and(|text| text.ends_with(' '))),
        effect: Drift(|result, struck| set_text(result, &format!("{struck} "))),
        oracles: &["fuzz/idempotent"],
        least: |_, given| given == &json!({"text": " "}),
    },
    Row {
        name: "add-cancels",
        description: "exits when a number is added to its negative",
        tool: "add",
        trigger: Valid(
            |given| matches!((real(given, "a"), real(given, "b")), (Some(a), Some(b)) if a != 0.0 && a + b == 0.0),
        ),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| {
            let (a, b) = (given["a"].as_f64().unwrap_or_default(), given["b"].as_f64().unwrap_or_default());
            keys(given, &["a", "b"]) && a.abs() <= 1.0 && b.abs() <= 1.0
        },
    },
    Row {
        name: "count-to-nine",
        description: "omits the type of the content when it counts to nine",
        tool: "count",
        trigger: Valid(|given| real(given, "to") == Some(9.0)),
        effect: Deform(|result| {
            if let Some(block) = result["content"][0].as_object_mut() {
                block.remove("type");
            }
        }),
        oracles: &["fuzz/result-shape"],
        least: |_, given| given == &json!({"to": 9}),
    },
];

/// The steps of a call of `transform`.
fn items_of(given: &serde_json::Value) -> Option<&[serde_json::Value]> {
    given["steps"].as_array().map(Vec::as_slice)
}
