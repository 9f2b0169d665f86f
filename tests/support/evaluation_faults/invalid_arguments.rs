//! Faults that invalid or malformed arguments trigger: validation that is missing or wrong.

use serde_json::{Value, json};

use super::effect::Effect::{Crash, Freeze, Hang, ProtocolError, SkipValidation};
use super::fault::FaultSpec;
use super::trigger::Trigger::{AnyArguments, RawLine};
use super::trigger::{has_duplicates, has_exactly_keys};

/// Depth and length that no ordinary client sends.
const DEEP: usize = 900;
const LONG: usize = 1 << 20;

pub(super) const FAULTS: &[FaultSpec] = &[
    FaultSpec {
        name: "search-limit-text",
        description: "accepts a string as the limit of search",
        tool: "search",
        trigger: AnyArguments(|arguments| arguments["limit"].is_string()),
        effect: SkipValidation(|arguments| drop(arguments.remove("limit"))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "limit": ""}),
    },
    FaultSpec {
        name: "search-range-open",
        description: "accepts a range of search without from",
        tool: "search",
        trigger: AnyArguments(|arguments| {
            arguments["filter"]["kind"] == "range" && arguments["filter"].get("from").is_none()
        }),
        effect: SkipValidation(|arguments| drop(arguments.remove("filter"))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "filter": {"kind": "range"}}),
    },
    FaultSpec {
        name: "search-sort-null",
        description: "accepts null as the sort of search",
        tool: "search",
        trigger: AnyArguments(|arguments| arguments.get("sort").is_some_and(Value::is_null)),
        effect: SkipValidation(|arguments| drop(arguments.remove("sort"))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "sort": null}),
    },
    FaultSpec {
        name: "search-sort-unknown",
        description: "accepts any string as the sort of search",
        tool: "search",
        trigger: AnyArguments(|arguments| arguments["sort"].is_string()),
        effect: SkipValidation(|arguments| drop(arguments.remove("sort"))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "sort": ""}),
    },
    FaultSpec {
        name: "search-extra-member",
        description: "accepts unknown arguments of search",
        tool: "search",
        trigger: AnyArguments(|arguments| {
            arguments.as_object().is_some_and(|members| members.keys().any(|key| !is_known(key)))
        }),
        effect: SkipValidation(|arguments| arguments.retain(|key, _| is_known(key))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| {
            arguments["query"] == "a" && arguments.as_object().is_some_and(|members| members.len() == 2)
        },
    },
    FaultSpec {
        name: "search-limit-zero",
        description: "accepts a limit of search below its minimum",
        tool: "search",
        trigger: AnyArguments(|arguments| {
            arguments["limit"].as_f64().is_some_and(|limit| limit < 1.0 && limit.fract() == 0.0)
        }),
        effect: SkipValidation(|arguments| drop(arguments.remove("limit"))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "limit": 0}),
    },
    FaultSpec {
        name: "search-limit-fraction",
        description: "answers search with a fractional limit with -32601",
        tool: "search",
        trigger: AnyArguments(|arguments| arguments["limit"].as_f64().is_some_and(|limit| limit.fract() != 0.0)),
        effect: ProtocolError(-32_601, "Method not found"),
        oracles: &["fuzz/error-class"],
        is_minimal: |_, arguments| has_exactly_keys(arguments, &["query", "limit"]) && arguments["query"] == "a",
    },
    FaultSpec {
        name: "search-tags-twice",
        description: "exits when search has a duplicate tag",
        tool: "search",
        trigger: AnyArguments(|arguments| arguments["tags"].as_array().is_some_and(|tags| has_duplicates(tags))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "tags": ["", ""]}),
    },
    FaultSpec {
        name: "search-tags-object",
        description: "answers search with -32603 when tags is an object",
        tool: "search",
        trigger: AnyArguments(|arguments| arguments["tags"].is_object()),
        effect: ProtocolError(-32_603, "TypeError: tags.map is not a function"),
        oracles: &["fuzz/internal-error", "fuzz/leak"],
        is_minimal: |_, arguments| arguments == &json!({"query": "a", "tags": {}}),
    },
    FaultSpec {
        name: "draft-title-too-long",
        description: "accepts a title that is longer than draft_open allows",
        tool: "draft_open",
        trigger: AnyArguments(|arguments| arguments["title"].as_str().is_some_and(|title| title.chars().count() > 40)),
        effect: SkipValidation(|arguments| {
            if let Some(Value::String(title)) = arguments.get_mut("title") {
                *title = title.chars().take(40).collect();
            }
        }),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"title": "a".repeat(41)}),
    },
    FaultSpec {
        name: "add-text",
        description: "accepts a string as a number to add",
        tool: "add",
        trigger: AnyArguments(|arguments| arguments["a"].is_string()),
        effect: SkipValidation(|arguments| drop(arguments.insert("a".to_owned(), json!(0)))),
        oracles: &["fuzz/invalid-accepted"],
        is_minimal: |_, arguments| arguments == &json!({"a": "", "b": 0}),
    },
    FaultSpec {
        name: "weather-city-number",
        description: "exits when the city of weather is a number",
        tool: "weather",
        trigger: AnyArguments(|arguments| arguments["city"].is_number()),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == &json!({"city": 0}),
    },
    FaultSpec {
        name: "draft-read-array",
        description: "exits when the arguments of draft_read are a non-empty array",
        tool: "draft_read",
        trigger: AnyArguments(|arguments| arguments.as_array().is_some_and(|items| !items.is_empty())),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments.is_array(),
    },
    FaultSpec {
        name: "draft-read-absent",
        description: "exits when draft_read is called without arguments",
        tool: "draft_read",
        trigger: RawLine(|line| !line.windows(11).any(|part| part == b"\"arguments\"")),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, arguments| arguments == "(absent)",
    },
    FaultSpec {
        name: "draft-read-text",
        description: "never answers when the arguments of draft_read are a JSON string",
        tool: "draft_read",
        trigger: AnyArguments(|arguments| arguments.as_str().is_some_and(|string| string.starts_with('{'))),
        effect: Hang,
        oracles: &["fuzz/hang"],
        is_minimal: |_, arguments| arguments.is_string(),
    },
    FaultSpec {
        name: "draft-open-true",
        description: "answers draft_open with -32603 when its arguments are true",
        tool: "draft_open",
        trigger: AnyArguments(|arguments| arguments == &json!(true)),
        effect: ProtocolError(-32_603, "Internal error"),
        oracles: &["fuzz/internal-error"],
        is_minimal: |_, arguments| arguments == &json!(true),
    },
    FaultSpec {
        name: "echo-long-key",
        description: "exits when an argument name of echo is 1 MiB long",
        tool: "echo",
        trigger: AnyArguments(|arguments| {
            arguments.as_object().is_some_and(|members| members.keys().any(|key| key.len() >= LONG))
        }),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "echo-deep",
        description: "exits when the arguments of echo are nested 900 deep",
        tool: "echo",
        trigger: RawLine(|line| line.windows(DEEP).step_by(64).any(|part| part.iter().all(|byte| *byte == b'['))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "echo-digits",
        description: "stops responding when echo gets a number of 900 digits",
        tool: "echo",
        trigger: RawLine(|line| line.windows(DEEP).step_by(64).any(|part| part.iter().all(u8::is_ascii_digit))),
        effect: Freeze,
        oracles: &["fuzz/hang"],
        is_minimal: |_, _| true,
    },
    FaultSpec {
        name: "fail-lone-surrogate",
        description: "exits on a lone surrogate in the arguments of fail",
        tool: "fail",
        trigger: RawLine(|line| line.windows(6).any(|part| part.eq_ignore_ascii_case(b"\\ud800"))),
        effect: Crash,
        oracles: &["fuzz/crash"],
        is_minimal: |_, _| true,
    },
];

/// Whether `search` has this argument.
fn is_known(key: &str) -> bool {
    ["query", "limit", "sort", "tags", "after", "filter"].contains(&key)
}
