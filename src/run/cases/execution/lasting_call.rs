//! Calls that take some seconds: an argument of the tool says how long or how often, or its plain call took long.

use std::time::Duration;

use serde_json::Value;

use crate::fuzz::NumericArgument;
use crate::inventory::Tool;
use crate::limits::{LASTING_CALL, MAX_LASTING_COUNT};

/// A call with the arguments of a tool that make it last.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::run::cases) struct LastingCall {
    pub(super) arguments: Value,
    /// How long the call presumably takes.
    pub(in crate::run::cases) duration: Duration,
}

impl LastingCall {
    /// The call of a tool that lasts longest up to some seconds; none if no arguments are known.
    pub(in crate::run::cases) fn of(tool: &Tool) -> Option<Self> {
        let arguments = tool.arguments.clone()?;
        let measured = tool.first_call.map_or(Duration::ZERO, |(_, duration)| duration);
        let plain = Self { arguments, duration: measured };
        if measured >= LASTING_CALL {
            return Some(plain);
        }
        let numbers = tool.definition.get("inputSchema").map(NumericArgument::all).unwrap_or_default();
        let longest = |is_time: bool| {
            let of_kind = numbers.iter().filter(|number| number.in_a_second().is_some() == is_time);
            let changed = of_kind.filter_map(|number| plain.changed(number, measured));
            let is_valid = |call: &Self| tool.schema.as_ref().is_some_and(|schema| schema.is_valid(&call.arguments));
            changed.filter(is_valid).max_by_key(|call| call.duration).filter(|call| call.duration > measured)
        };
        // More steps may divide the time instead of adding to it.
        let (time, count) = (longest(true), longest(false));
        let is_long_enough = |call: &Self| call.duration >= LASTING_CALL / 3;
        let by_time = time.as_ref().is_some_and(is_long_enough);
        let longest = if by_time { time } else { count.into_iter().chain(time).max_by_key(|call| call.duration) };
        Some(longest.unwrap_or(plain))
    }

    /// This call with another value of an argument that says how long or how often.
    fn changed(&self, argument: &NumericArgument, measured: Duration) -> Option<Self> {
        let (value, duration) = if let Some(in_a_second) = argument.in_a_second() {
            let value = argument.bounded(LASTING_CALL.as_secs_f64() * in_a_second);
            (value, value / in_a_second)
        } else if argument.is_count() {
            let own = self.arguments.get(&argument.name).and_then(Value::as_f64).unwrap_or(1.0).max(1.0);
            let per_unit = measured.as_secs_f64() / own;
            let wanted = (LASTING_CALL.as_secs_f64() / per_unit.max(f64::EPSILON)).round();
            let value = argument.bounded(wanted.min(MAX_LASTING_COUNT));
            (value, per_unit * value)
        } else {
            return None;
        };
        let mut arguments = self.arguments.clone();
        // Whole numbers are written as integers.
        arguments.as_object_mut()?.insert(argument.name.clone(), serde_json::from_str(&value.to_string()).ok()?);
        Some(Self { arguments, duration: Duration::try_from_secs_f64(duration).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn an_argument_that_says_how_long_is_preferred_to_one_that_says_how_often() {
        let properties = |maximum: f64| {
            let duration = json!({"type": "number", "maximum": maximum});
            json!({"duration": duration, "steps": {"type": "integer", "minimum": 1}})
        };
        // As long as the call with one step took, so that 28 steps seem to take longer than the three seconds.
        let lasting = call(&properties(60.0), &["steps"], 108);
        assert_eq!(lasting.arguments, json!({"steps": 1, "duration": 3}));
        let lasting = call(&properties(0.5), &["steps"], 108);
        assert_eq!(lasting.arguments, json!({"steps": 28}), "half a second is too short");
    }

    #[test]
    fn a_tool_that_is_slow_by_itself_is_called_as_before() {
        let lasting = call(&json!({"count": {"type": "integer"}}), &["count"], 4_000);
        assert_eq!(lasting, LastingCall { arguments: json!({"count": 0}), duration: Duration::from_secs(4) });
    }
}
