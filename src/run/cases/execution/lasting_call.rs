//! Calls that take some seconds: an argument of the tool says how long or how often, or its plain call took long.

use std::time::Duration;

use serde_json::{Value, json};

use crate::inventory::Tool;
use crate::limits::{LASTING_CALL, MAX_LASTING_COUNT};

/// Words in the name of an argument that says how long the call takes.
const DURATIONS: [&str; 16] = [
    "duration",
    "delay",
    "sleep",
    "wait",
    "pause",
    "sec",
    "secs",
    "second",
    "seconds",
    "ms",
    "msec",
    "msecs",
    "milli",
    "millis",
    "millisecond",
    "milliseconds",
];

/// Words for the unit of a duration in milliseconds.
const MILLISECONDS: [&str; 7] = ["ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"];

/// Words for the unit of a duration in seconds.
const SECONDS: [&str; 4] = ["sec", "secs", "second", "seconds"];

/// Words in the name of an argument that says how much the call does.
const COUNTS: [&str; 14] = [
    "count",
    "counts",
    "step",
    "steps",
    "times",
    "repeat",
    "repeats",
    "repetitions",
    "iterations",
    "rounds",
    "ticks",
    "to",
    "n",
    "number",
];

/// Words in the name of an argument that limits something instead.
const LIMITS: [&str; 6] = ["timeout", "max", "maximum", "limit", "min", "minimum"];

/// Without a unit, a duration that may be greater than this is in milliseconds.
const MAX_SECONDS: f64 = 300.0;

/// A call with the arguments of a tool that make it last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LastingCall {
    pub(super) arguments: Value,
    /// How long the call presumably takes.
    pub(super) duration: Duration,
}

/// An argument that is a number, with its bounds.
struct NumericArgument<'a> {
    name: &'a str,
    words: Vec<String>,
    minimum: f64,
    maximum: f64,
}

impl LastingCall {
    /// The call of a tool that lasts longest up to some seconds; none if no arguments are known.
    pub(super) fn of(tool: &Tool) -> Option<Self> {
        let arguments = tool.arguments.clone()?;
        let measured = tool.first_call.map_or(Duration::ZERO, |(_, duration)| duration);
        let plain = Self { arguments, duration: measured };
        if measured >= LASTING_CALL {
            return Some(plain);
        }
        let numbers = numeric_arguments(tool);
        let changed = numbers.iter().filter_map(|number| plain.changed(number, measured));
        let valid = changed.filter(|call| tool.schema.as_ref().is_some_and(|schema| schema.is_valid(&call.arguments)));
        let longest = valid.max_by_key(|call| call.duration).filter(|call| call.duration > measured);
        Some(longest.unwrap_or(plain))
    }

    /// This call with another value of an argument that says how long or how often.
    fn changed(&self, argument: &NumericArgument<'_>, measured: Duration) -> Option<Self> {
        let (value, duration) = if argument.is_any_of(&DURATIONS) {
            let is_milliseconds = argument.is_any_of(&MILLISECONDS)
                || !argument.is_any_of(&SECONDS) && argument.maximum.is_finite() && argument.maximum > MAX_SECONDS;
            let in_a_second = if is_milliseconds { 1_000.0 } else { 1.0 };
            let value = argument.bounded(LASTING_CALL.as_secs_f64() * in_a_second);
            (value, value / in_a_second)
        } else if argument.is_any_of(&COUNTS) {
            let own = self.arguments.get(argument.name).and_then(Value::as_f64).unwrap_or(1.0).max(1.0);
            let per_unit = measured.as_secs_f64() / own;
            let wanted = (LASTING_CALL.as_secs_f64() / per_unit.max(f64::EPSILON)).round();
            let value = argument.bounded(wanted.min(MAX_LASTING_COUNT));
            (value, per_unit * value)
        } else {
            return None;
        };
        let mut arguments = self.arguments.clone();
        // Whole numbers are written as integers.
        arguments.as_object_mut()?.insert(argument.name.to_owned(), serde_json::from_str(&value.to_string()).ok()?);
        Some(Self { arguments, duration: Duration::try_from_secs_f64(duration).ok()? })
    }
}

impl NumericArgument<'_> {
    fn is_any_of(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    /// The whole number nearest to a value that the bounds allow.
    fn bounded(&self, value: f64) -> f64 {
        value.max(self.minimum.ceil()).min(self.maximum.floor())
    }
}

/// The arguments of a tool that are numbers and limit nothing.
fn numeric_arguments(tool: &Tool) -> Vec<NumericArgument<'_>> {
    let properties = tool.definition.pointer("/inputSchema/properties").and_then(Value::as_object);
    let numbers = properties.into_iter().flatten().filter(|(_, schema)| {
        let kind = &schema["type"];
        ["integer", "number"]
            .into_iter()
            .any(|name| *kind == json!(name) || kind.as_array().is_some_and(|kinds| kinds.contains(&json!(name))))
    });
    let arguments = numbers.map(|(name, schema)| {
        let bound = |plain: &str, exclusive: &str, inside: f64| {
            let excluded = schema[exclusive].as_f64().map(|bound| bound + inside);
            schema[plain].as_f64().or(excluded)
        };
        NumericArgument {
            name,
            words: words_of(name),
            minimum: bound("minimum", "exclusiveMinimum", 1.0).unwrap_or(f64::NEG_INFINITY),
            maximum: bound("maximum", "exclusiveMaximum", -1.0).unwrap_or(f64::INFINITY),
        }
    });
    arguments.filter(|argument| !argument.is_any_of(&LIMITS)).collect()
}

/// The words of a name in `camelCase`, `snake_case` or `kebab-case`, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() || character.is_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = character.is_lowercase() || character.is_ascii_digit();
        if character.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(character.to_lowercase()));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::FirstCallOutcome;
    use crate::plan::CallPolicy;

    fn call(properties: &Value, required: &[&str], measured_ms: u64) -> LastingCall {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let definition = json!({"name": "a", "inputSchema": schema});
        let mut tool = Tool::new(&definition, CallPolicy::NonDestructive).expect("it has a name");
        tool.first_call = Some((FirstCallOutcome::Served, Duration::from_millis(measured_ms)));
        LastingCall::of(&tool).expect("it has arguments")
    }

    #[test]
    fn a_duration_is_set_in_its_unit_and_within_its_bounds() {
        let lasting = call(&json!({"durationMs": {"type": "integer"}, "text": {"type": "string"}}), &[], 1);
        assert_eq!(lasting, LastingCall { arguments: json!({"durationMs": 3_000}), duration: LASTING_CALL });
        let lasting = call(&json!({"seconds": {"type": "number", "maximum": 2}}), &["seconds"], 1);
        assert_eq!(lasting.arguments, json!({"seconds": 2}));
        let lasting = call(&json!({"delay": {"type": "integer", "maximum": 60_000}}), &[], 1);
        assert_eq!(lasting.arguments, json!({"delay": 3_000}));
        let lasting = call(&json!({"wait_timeout": {"type": "integer"}}), &[], 1);
        assert_eq!(lasting.arguments, json!({}));
    }

    #[test]
    fn a_count_follows_what_a_unit_of_it_took() {
        let count = json!({"to": {"type": "integer", "minimum": 1, "maximum": 50}});
        let lasting = call(&count, &["to"], 100);
        assert_eq!(lasting, LastingCall { arguments: json!({"to": 30}), duration: LASTING_CALL });
        assert_eq!(call(&count, &["to"], 10).arguments, json!({"to": 50}));
        assert_eq!(call(&json!({"steps": {"type": "integer"}}), &["steps"], 0).arguments, json!({"steps": 0}));
    }

    #[test]
    fn a_tool_that_is_slow_by_itself_is_called_as_before() {
        let lasting = call(&json!({"count": {"type": "integer"}}), &["count"], 4_000);
        assert_eq!(lasting, LastingCall { arguments: json!({"count": 0}), duration: Duration::from_secs(4) });
    }

    #[test]
    fn names_are_divided_into_words() {
        assert_eq!(words_of("delayInMS"), ["delay", "in", "ms"]);
        assert_eq!(words_of("sleep_secs-2"), ["sleep", "secs", "2"]);
    }
}
