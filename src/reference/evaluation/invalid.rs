//! Faults that invalid and malformed arguments draw: what is not checked, and what is checked badly.

use serde_json::{Value, json};

use super::effect::Effect::{Crash, Freeze, Hang, Overlook, Refuse};
use super::row::Row;
use super::trigger::Trigger::{Any, Line};
use super::trigger::{has_twins, keys};

/// How many levels or bytes are more than anyone means.
const DEEP: usize = 900;
const LONG: usize = 1 << 20;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "search-limit-text",
        description: "takes a string for the limit of search",
        tool: "search",
        trigger: Any(|given| given["limit"].is_string()),
        effect: Overlook(|given| drop(given.remove("limit"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "limit": ""}),
    },
    Row {
        name: "search-range-open",
        description: "takes a range of search without its beginning",
        tool: "search",
        trigger: Any(|given| given["filter"]["kind"] == "range" && given["filter"].get("from").is_none()),
        effect: Overlook(|given| drop(given.remove("filter"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "filter": {"kind": "range"}}),
    },
    Row {
        name: "search-sort-null",
        description: "takes null for the sort of search",
        tool: "search",
        trigger: Any(|given| given.get("sort").is_some_and(Value::is_null)),
        effect: Overlook(|given| drop(given.remove("sort"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "sort": null}),
    },
    Row {
        name: "search-sort-unknown",
        description: "takes any string for the sort of search",
        tool: "search",
        trigger: Any(|given| given["sort"].is_string()),
        effect: Overlook(|given| drop(given.remove("sort"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "sort": ""}),
    },
    Row {
        name: "search-extra-member",
        description: "takes arguments of search that it does not know",
        tool: "search",
        trigger: Any(|given| given.as_object().is_some_and(|members| members.keys().any(|key| !is_known(key)))),
        effect: Overlook(|given| given.retain(|key, _| is_known(key))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given["query"] == "a" && given.as_object().is_some_and(|members| members.len() == 2),
    },
    Row {
        name: "search-limit-zero",
        description: "takes a limit of search below its minimum",
        tool: "search",
        trigger: Any(|given| given["limit"].as_f64().is_some_and(|limit| limit < 1.0 && limit.fract() == 0.0)),
        effect: Overlook(|given| drop(given.remove("limit"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "limit": 0}),
    },
    Row {
        name: "search-limit-fraction",
        description: "answers a limit of search with a fraction by -32601",
        tool: "search",
        trigger: Any(|given| given["limit"].as_f64().is_some_and(|limit| limit.fract() != 0.0)),
        effect: Refuse(-32_601, "Method not found"),
        oracles: &["fuzz/error-class"],
        least: |_, given| keys(given, &["query", "limit"]) && given["query"] == "a",
    },
    Row {
        name: "search-tags-twice",
        description: "ends when search is given a tag twice",
        tool: "search",
        trigger: Any(|given| given["tags"].as_array().is_some_and(|tags| has_twins(tags))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"query": "a", "tags": ["", ""]}),
    },
    Row {
        name: "search-tags-object",
        description: "fails with -32603 when the tags of search are an object",
        tool: "search",
        trigger: Any(|given| given["tags"].is_object()),
        effect: Refuse(-32_603, "TypeError: tags.map is not a function"),
        oracles: &["fuzz/internal-error", "fuzz/leak"],
        least: |_, given| given == &json!({"query": "a", "tags": {}}),
    },
    Row {
        name: "draft-title-too-long",
        description: "takes a title that is longer than draft_open allows",
        tool: "draft_open",
        trigger: Any(|given| given["title"].as_str().is_some_and(|title| title.chars().count() > 40)),
        effect: Overlook(|given| {
            if let Some(Value::String(title)) = given.get_mut("title") {
                *title = title.chars().take(40).collect();
            }
        }),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"title": "a".repeat(41)}),
    },
    Row {
        name: "add-text",
        description: "adds the numbers that strings spell",
        tool: "add",
        trigger: Any(|given| given["a"].is_string()),
        effect: Overlook(|given| drop(given.insert("a".to_owned(), json!(0)))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"a": "", "b": 0}),
    },
    Row {
        name: "weather-city-number",
        description: "ends when the city of weather is a number",
        tool: "weather",
        trigger: Any(|given| given["city"].is_number()),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"city": 0}),
    },
    Row {
        name: "draft-read-array",
        description: "ends when draft_read is given an array with something in it",
        tool: "draft_read",
        trigger: Any(|given| given.as_array().is_some_and(|items| !items.is_empty())),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given.is_array(),
    },
    Row {
        name: "draft-read-text",
        description: "never answers when draft_read is given an object in a string",
        tool: "draft_read",
        trigger: Any(|given| given.as_str().is_some_and(|text| text.starts_with('{'))),
        effect: Hang,
        oracles: &["fuzz/hang"],
        least: |_, given| given.is_string(),
    },
    Row {
        name: "draft-open-null",
        description: "fails with -32603 when draft_open is given true",
        tool: "draft_open",
        trigger: Any(|given| given == &json!(true)),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| given == &json!(true),
    },
    Row {
        name: "echo-long-key",
        description: "ends when a key of echo has a mebibyte",
        tool: "echo",
        trigger: Any(|given| given.as_object().is_some_and(|members| members.keys().any(|key| key.len() >= LONG))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, _| true,
    },
    Row {
        name: "echo-deep",
        description: "ends when the arguments of echo go a thousand deep",
        tool: "echo",
        trigger: Line(|line| line.windows(DEEP).step_by(64).any(|part| part.iter().all(|byte| *byte == b'['))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, _| true,
    },
    Row {
        name: "echo-digits",
        description: "freezes when the arguments of echo have a number of 900 digits",
        tool: "echo",
        trigger: Line(|line| line.windows(DEEP).step_by(64).any(|part| part.iter().all(u8::is_ascii_digit))),
        effect: Freeze,
        oracles: &["fuzz/hang"],
        least: |_, _| true,
    },
    Row {
        name: "fail-lone-surrogate",
        description: "ends on half of a surrogate pair in the arguments of fail",
        tool: "fail",
        trigger: Line(|line| line.windows(6).any(|part| part.eq_ignore_ascii_case(b"\\ud800"))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, _| true,
    },
];

/// Whether `search` has an argument of this name.
fn is_known(key: &str) -> bool {
    ["query", "limit", "sort", "tags", "after", "filter"].contains(&key)
}
