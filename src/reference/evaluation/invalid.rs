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
        description: "accepts a string as the limit of search",
        tool: "search",
        trigger: Any(|given| given["limit"].is_string()),
        effect: Overlook(|given| drop(given.remove("limit"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "limit": ""}),
    },
    Row {
        name: "search-range-open",
        description: "accepts a range of search without from",
        tool: "search",
        trigger: Any(|given| given["filter"]["kind"] == "range" && given["filter"].get("from").is_none()),
        effect: Overlook(|given| drop(given.remove("filter"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "filter": {"kind": "range"}}),
    },
    Row {
        name: "search-sort-null",
        description: "accepts null as the sort of search",
        tool: "search",
        trigger: Any(|given| given.get("sort").is_some_and(Value::is_null)),
        effect: Overlook(|given| drop(given.remove("sort"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "sort": null}),
    },
    Row {
        name: "search-sort-unknown",
        description: "accepts any string as the sort of search",
        tool: "search",
        trigger: Any(|given| given["sort"].is_string()),
        effect: Overlook(|given| drop(given.remove("sort"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "sort": ""}),
    },
    Row {
        name: "search-extra-member",
        description: "accepts unknown arguments of search",
        tool: "search",
        trigger: Any(|given| given.as_object().is_some_and(|members| members.keys().any(|key| !is_known(key)))),
        effect: Overlook(|given| given.retain(|key, _| is_known(key))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given["query"] == "a" && given.as_object().is_some_and(|members| members.len() == 2),
    },
    Row {
        name: "search-limit-zero",
        description: "accepts a limit of search below its minimum",
        tool: "search",
        trigger: Any(|given| given["limit"].as_f64().is_some_and(|limit| limit < 1.0 && limit.fract() == 0.0)),
        effect: Overlook(|given| drop(given.remove("limit"))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"query": "a", "limit": 0}),
    },
    Row {
        name: "search-limit-fraction",
        description: "answers search with a fractional limit with -32601",
        tool: "search",
        trigger: Any(|given| given["limit"].as_f64().is_some_and(|limit| limit.fract() != 0.0)),
        effect: Refuse(-32_601, "Method not found"),
        oracles: &["fuzz/error-class"],
        least: |_, given| keys(given, &["query", "limit"]) && given["query"] == "a",
    },
    Row {
        name: "search-tags-twice",
        description: "exits when search has a duplicate tag",
        tool: "search",
        trigger: Any(|given| given["tags"].as_array().is_some_and(|tags| has_twins(tags))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"query": "a", "tags": ["", ""]}),
    },
    Row {
        name: "search-tags-object",
        description: "answers search with -32603 when tags is an object",
        tool: "search",
        trigger: Any(|given| given["tags"].is_object()),
        effect: Refuse(-32_603, "TypeError: tags.map is not a function"),
        oracles: &["fuzz/internal-error", "fuzz/leak"],
        least: |_, given| given == &json!({"query": "a", "tags": {}}),
    },
    Row {
        name: "draft-title-too-long",
        description: "accepts a title that is longer than draft_open allows",
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
        description: "accepts a string as a number to add",
        tool: "add",
        trigger: Any(|given| given["a"].is_string()),
        effect: Overlook(|given| drop(given.insert("a".to_owned(), json!(0)))),
        oracles: &["fuzz/invalid-accepted"],
        least: |_, given| given == &json!({"a": "", "b": 0}),
    },
    Row {
        name: "weather-city-number",
        description: "exits when the city of weather is a number",
        tool: "weather",
        trigger: Any(|given| given["city"].is_number()),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given == &json!({"city": 0}),
    },
    Row {
        name: "draft-read-array",
        description: "exits when the arguments of draft_read are a non-empty array",
        tool: "draft_read",
        trigger: Any(|given| given.as_array().is_some_and(|items| !items.is_empty())),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, given| given.is_array(),
    },
    Row {
        name: "draft-read-text",
        description: "never answers when the arguments of draft_read are a JSON string",
        tool: "draft_read",
        trigger: Any(|given| given.as_str().is_some_and(|text| text.starts_with('{'))),
        effect: Hang,
        oracles: &["fuzz/hang"],
        least: |_, given| given.is_string(),
    },
    Row {
        name: "draft-open-true",
        description: "answers draft_open with -32603 when its arguments are true",
        tool: "draft_open",
        trigger: Any(|given| given == &json!(true)),
        effect: Refuse(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        least: |_, given| given == &json!(true),
    },
    Row {
        name: "echo-long-key",
        description: "exits when an argument name of echo is 1 MiB long",
        tool: "echo",
        trigger: Any(|given| given.as_object().is_some_and(|members| members.keys().any(|key| key.len() >= LONG))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, _| true,
    },
    Row {
        name: "echo-deep",
        description: "exits when the arguments of echo are nested 900 deep",
        tool: "echo",
        trigger: Line(|line| line.windows(DEEP).step_by(64).any(|part| part.iter().all(|byte| *byte == b'['))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        least: |_, _| true,
    },
    Row {
        name: "echo-digits",
        description: "stops responding when echo gets a number of 900 digits",
        tool: "echo",
        trigger: Line(|line| line.windows(DEEP).step_by(64).any(|part| part.iter().all(u8::is_ascii_digit))),
        effect: Freeze,
        oracles: &["fuzz/hang"],
        least: |_, _| true,
    },
    Row {
        name: "fail-lone-surrogate",
        description: "exits on a lone surrogate in the arguments of fail",
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
