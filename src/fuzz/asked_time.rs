//! Arguments by which a caller says how long a call takes: how long to wait, and how often.
//!
//! Nothing but their names tells them from others, so that nothing is concluded from them but what is not sent, or not
//! held against a server.

use std::time::Duration;

use serde_json::Value;

use super::generator::GenerationError;
use super::schema::ToolSchema;

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

/// Further words in the name of an argument that may say how long a call waits for something.
const WAITS: [&str; 6] = ["timeout", "time", "interval", "period", "minutes", "hours"];

/// Without a unit, a duration that may be greater than this, or is by default, is in milliseconds.
const MAX_SECONDS: f64 = 300.0;

/// What a tool waits at least each time, in seconds: the shortest timer of most runtimes.
const SHORTEST_WAIT: f64 = 0.001;

/// An argument of a tool that is a number, with its bounds.
#[derive(Debug, Clone)]
pub(crate) struct NumericArgument {
    pub(crate) name: String,
    words: Vec<String>,
    is_integer: bool,
    minimum: f64,
    maximum: f64,
    default: Option<f64>,
}

impl NumericArgument {
    /// The arguments of a schema that are numbers.
    pub(crate) fn all(input_schema: &Value) -> Vec<Self> {
        let properties = input_schema.get("properties").and_then(Value::as_object);
        let numbers = properties.into_iter().flatten().filter(|(_, schema)| is_number(&schema["type"]));
        let arguments = numbers.map(|(name, schema)| {
            let bound = |plain: &str, exclusive: &str, inside: f64| {
                let excluded = schema[exclusive].as_f64().map(|bound| bound + inside);
                schema[plain].as_f64().or(excluded)
            };
            Self {
                name: name.clone(),
                words: words_of(name),
                is_integer: schema["type"] != "number",
                minimum: bound("minimum", "exclusiveMinimum", 1.0).unwrap_or(f64::NEG_INFINITY),
                maximum: bound("maximum", "exclusiveMaximum", -1.0).unwrap_or(f64::INFINITY),
                default: schema["default"].as_f64(),
            }
        });
        arguments.collect()
    }

    fn is_any_of(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    /// How many of its units a second has, if it says how long a call takes.
    pub(crate) fn in_a_second(&self) -> Option<f64> {
        if !self.is_any_of(&DURATIONS) || self.is_any_of(&LIMITS) {
            return None;
        }
        let is_great = |value: f64| value.is_finite() && value > MAX_SECONDS;
        let has_great_values = is_great(self.maximum) || self.default.is_some_and(is_great);
        let is_milliseconds = self.is_any_of(&MILLISECONDS) || !self.is_any_of(&SECONDS) && has_great_values;
        Some(if is_milliseconds { 1_000.0 } else { 1.0 })
    }

    /// Whether it says how much a call does.
    pub(crate) fn is_count(&self) -> bool {
        self.is_any_of(&COUNTS) && !self.is_any_of(&LIMITS) && self.in_a_second().is_none()
    }

    /// The whole number nearest to a value that the bounds allow.
    pub(crate) fn bounded(&self, value: f64) -> f64 {
        value.max(self.minimum.ceil()).min(self.maximum.floor())
    }

    /// A value that is no greater, as far as the bounds allow that, whole if it has to be.
    fn at_most(&self, value: f64) -> f64 {
        if self.is_integer { self.bounded(value.floor()) } else { value.max(self.minimum).min(self.maximum) }
    }

    /// Its value in a call, or its default.
    fn value_in(&self, arguments: &Value) -> Option<f64> {
        match arguments.get(&self.name) {
            // Some servers convert text.
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_f64(),
            None => self.default,
        }
    }
}

/// Whether the `type` of a schema allows numbers, among other things if it is a list.
fn is_number(kind: &Value) -> bool {
    let is_one = |kind: &Value| *kind == "integer" || *kind == "number";
    is_one(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_one))
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

/// How long calls of a tool take because their arguments say so.
#[derive(Debug, Clone, Default)]
pub(crate) struct AskedTime(Vec<NumericArgument>);

impl AskedTime {
    /// By the schema of the arguments.
    pub(crate) fn of(input_schema: &Value) -> Self {
        Self(NumericArgument::all(input_schema))
    }

    /// How long a call takes if its arguments mean what their names say: all that it waits, as often as it counts. Zero if the
    /// tool has no argument that says how long; each time that one with such an argument counts takes a moment. A part of one
    /// time may be what the tool divides its wait by.
    pub(crate) fn in_call(&self, arguments: &Value) -> Duration {
        let waits = self.0.iter().filter_map(|argument| Some((argument, argument.in_a_second()?)));
        let waits =
            waits.map(|(argument, in_a_second)| argument.value_in(arguments).unwrap_or(0.0).max(0.0) / in_a_second);
        let Some(waits) = waits.reduce(|one, other| one + other) else { return Duration::ZERO };
        let counts = self.0.iter().filter(|argument| argument.is_count());
        let factor = |count: f64| if count > 0.0 { count.max(count.recip()) } else { 1.0 };
        let times: f64 = counts.filter_map(|count| count.value_in(arguments)).map(factor).product();
        Duration::try_from_secs_f64(waits.max(SHORTEST_WAIT) * times).unwrap_or(Duration::MAX)
    }

    /// Whether a call may take as long as this because an argument says so, in seconds if the name is silent about the
    /// unit: the longest that it may mean.
    pub(crate) fn explains(&self, arguments: &Value, waited: Duration) -> bool {
        let may_be_long = |argument: &NumericArgument| {
            let is_in_milliseconds = argument.is_any_of(&MILLISECONDS);
            let in_a_second = if is_in_milliseconds { 1_000.0 } else { 1.0 };
            let is_wait = argument.is_any_of(&DURATIONS) || argument.is_any_of(&WAITS);
            is_wait && argument.value_in(arguments).is_some_and(|value| value / in_a_second >= waited.as_secs_f64())
        };
        self.in_call(arguments) >= waited || self.0.iter().any(may_be_long)
    }

    /// The arguments with each wait that takes longer than another value would, as far as that is allowed: `None` if there
    /// is none.
    pub(crate) fn shortened(&self, arguments: &Value, longest: Duration) -> Option<Value> {
        if self.in_call(arguments) <= longest {
            return None;
        }
        let mut shortened = arguments.clone();
        let members = shortened.as_object_mut()?;
        for argument in &self.0 {
            let Some(in_a_second) = argument.in_a_second() else { continue };
            if argument.value_in(arguments).is_some_and(|value| value / in_a_second > longest.as_secs_f64()) {
                let value = argument.at_most(longest.as_secs_f64() * in_a_second);
                // Whole numbers are written as integers.
                members.insert(argument.name.clone(), serde_json::from_str(&value.to_string()).ok()?);
            }
        }
        Some(shortened)
    }
}

/// The simplest arguments of a tool, with the shortest of these waits that the schema allows: by default some tools wait for
/// many seconds, each time that they are called. No wait is shortened to none, which might mean something else.
pub(crate) fn quick_arguments(schema: &ToolSchema, waits: &[Duration]) -> Result<Value, GenerationError> {
    let minimal = schema.minimal()?;
    let asked_time = AskedTime::of(schema.schema());
    let quick = |wait: &Duration| {
        let quick = asked_time.shortened(&minimal, *wait)?;
        (schema.is_valid(&quick) && asked_time.in_call(&quick) >= *wait / 2).then_some(quick)
    };
    Ok(waits.iter().find_map(quick).unwrap_or(minimal))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fuzz::Dialect;

    fn asked(properties: &Value, arguments: &Value) -> Duration {
        AskedTime::of(&json!({"properties": properties})).in_call(arguments)
    }

    #[test]
    fn the_words_of_names_in_every_style_are_found() {
        assert_eq!(words_of("pollIntervalMs"), ["poll", "interval", "ms"]);
        assert_eq!(words_of("max_wait-seconds"), ["max", "wait", "seconds"]);
        assert_eq!(words_of("delayInMS"), ["delay", "in", "ms"]);
        assert_eq!(words_of("sleep_secs-2"), ["sleep", "secs", "2"]);
    }

    #[test]
    fn a_call_takes_as_long_as_its_arguments_say_as_often_as_they_say() {
        let seconds = Duration::from_secs;
        let wait = json!({"seconds": {"type": "number"}, "note": {"type": "string"}});
        assert_eq!(asked(&wait, &json!({"seconds": 3, "note": "9"})), seconds(3));
        assert_eq!(asked(&wait, &json!({"seconds": "3"})), seconds(3), "servers convert text");
        assert_eq!(asked(&wait, &json!({"seconds": 1e300})), Duration::MAX);
        let moment = Duration::from_millis(1);
        assert_eq!(asked(&wait, &json!({"seconds": -5})), moment);
        let steps = json!({"duration": {"type": "number", "default": 10}, "steps": {"type": "integer"}});
        assert_eq!(asked(&steps, &json!({})), seconds(10));
        assert_eq!(asked(&steps, &json!({"duration": 2, "steps": 4})), seconds(8));
        assert_eq!(asked(&steps, &json!({"duration": 0, "steps": 1e4})), seconds(10), "a step takes a moment");
        assert_eq!(asked(&steps, &json!({"duration": 2, "steps": 0.25})), seconds(8), "the wait may be divided by it");
        assert_eq!(asked(&steps, &json!({"duration": 2, "steps": -4})), seconds(2));
        let poll = json!({"intervalMs": {"type": "integer"}});
        assert_eq!(asked(&poll, &json!({"intervalMs": 250})), Duration::from_millis(250));
        let count = json!({"count": {"type": "integer"}, "max_wait": {"type": "integer"}});
        assert_eq!(
            asked(&count, &json!({"count": 1e9, "max_wait": 60})),
            Duration::ZERO,
            "work and limits are no waits"
        );
    }

    #[test]
    fn a_missing_response_is_explained_by_the_longest_time_that_an_argument_may_mean() {
        let of = |properties: Value| AskedTime::of(&json!({"properties": properties}));
        let waited = Duration::from_secs(5);
        let timeout = of(json!({"timeout": {"type": "integer"}}));
        assert!(timeout.explains(&json!({"timeout": 5}), waited) && !timeout.explains(&json!({"timeout": 4}), waited));
        let delay = of(json!({"delay": {"type": "integer", "maximum": 60_000}}));
        assert!(delay.explains(&json!({"delay": 10}), waited), "it may be in seconds after all");
        let milliseconds = of(json!({"waitMs": {"type": "integer"}}));
        assert!(!milliseconds.explains(&json!({"waitMs": 4_999}), waited));
        let count = of(json!({"count": {"type": "integer"}}));
        assert!(!count.explains(&json!({"count": 1e18}), waited), "a loop is no wait");
    }

    #[test]
    fn waits_are_shortened_within_their_bounds() {
        let properties = json!({
            "delay": {"type": "integer", "minimum": 2, "maximum": 60},
            "pauseMs": {"type": "integer", "default": 5_000},
            "text": {"type": "string"},
        });
        let time = AskedTime::of(&json!({"properties": properties}));
        let second = Duration::from_secs(1);
        assert_eq!(
            time.shortened(&json!({"delay": 30, "text": "a"}), second),
            Some(json!({"delay": 2, "text": "a", "pauseMs": 1_000}))
        );
        assert_eq!(time.shortened(&json!({"delay": 0, "pauseMs": 20}), second), None);
    }

    #[test]
    fn the_simplest_arguments_of_a_tool_wait_shortly() {
        let quick = |duration: Value| {
            let schema = json!({"type": "object", "properties": {"duration": duration}});
            let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
            quick_arguments(&schema, &[Duration::from_millis(100), Duration::from_secs(1)])
        };
        assert_eq!(quick(json!({"type": "number", "default": 10})), Ok(json!({"duration": 0.1})));
        assert_eq!(quick(json!({"type": "integer", "default": 10})), Ok(json!({"duration": 1})));
        assert_eq!(quick(json!({"type": "integer", "default": 5_000})), Ok(json!({"duration": 100})));
        assert_eq!(quick(json!({"type": "integer", "default": 10, "minimum": 5})), Ok(json!({"duration": 5})));
        assert_eq!(quick(json!({"type": "integer"})), Ok(json!({})));
    }
}
