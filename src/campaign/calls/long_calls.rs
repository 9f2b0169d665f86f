//! Calls that would take long because their arguments say so: they are shortened if that keeps what they are for, and
//! omitted otherwise. A tool that waits as long as it is told has no fault, and each such call costs as long.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::fuzz_call::FuzzCall;
use super::schedule::Phase;
use crate::campaign::limits::MAX_ASKED_TIME;
use crate::check::fuzz::{Arguments, Call, Validity};
use crate::fuzz::{AskedTime, ToolSchema};

/// Which calls of one tool would take long.
#[derive(Debug)]
pub(in crate::campaign) struct LongCalls {
    asked_time: AskedTime,
    /// The longest time that a call may ask for: what its plain call does, if that is longer than the usual one.
    longest: Duration,
    omitted: u64,
}

impl LongCalls {
    /// By the schema of a tool, and the arguments of its plain call if it has one.
    pub(in crate::campaign) fn new(input_schema: &Value, plain: Option<&Value>) -> Self {
        let asked_time = AskedTime::of(input_schema);
        let longest = plain.map_or(Duration::ZERO, |arguments| asked_time.in_call(arguments)).max(MAX_ASKED_TIME);
        Self { asked_time, longest, omitted: 0 }
    }

    /// The call, or a shorter one of the same class; `None` if it has to be omitted.
    pub(in crate::campaign) fn admit(
        &mut self,
        fuzz_call: FuzzCall,
        phase: Phase,
        schema: &ToolSchema,
    ) -> Option<FuzzCall> {
        // In the other phases a call is made for the sake of one value, which may be this one.
        let may_change = phase == Phase::Mixed && fuzz_call.call.validity == Validity::Valid;
        let quick = if may_change {
            self.shortened(&fuzz_call.call, schema)
        } else {
            self.is_quick(&fuzz_call.call).then(|| Arc::clone(&fuzz_call.call))
        };
        self.omitted += u64::from(quick.is_none());
        quick.map(|call| FuzzCall { call, ..fuzz_call })
    }

    /// A valid call, or one like it that takes no longer than it may; `None` if there is none.
    pub(in crate::campaign) fn shortened(&self, call: &Arc<Call>, schema: &ToolSchema) -> Option<Arc<Call>> {
        if self.is_quick(call) {
            return Some(Arc::clone(call));
        }
        let shortened = self.asked_time.shortened(&call.arguments.value(), self.longest)?;
        let arguments = Arguments::Json(shortened);
        let shorter = Arc::new(Call { arguments, choices: None, ..Call::clone(call) });
        (schema.is_valid(&shorter.arguments.value()) && self.is_quick(&shorter)).then_some(shorter)
    }

    /// Whether a call asks for no longer time than it may.
    fn is_quick(&self, call: &Call) -> bool {
        self.asked_time.in_call(&call.arguments.value()) <= self.longest
    }

    /// What the report says of omitted calls.
    pub(in crate::campaign) fn note(&self) -> Option<String> {
        match self.omitted {
            0 => None,
            1 => Some("1 planned call was omitted, because its arguments ask the tool to wait".to_owned()),
            count => Some(format!("{count} planned calls were omitted, because their arguments ask the tool to wait")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::campaign::process::scripted::valid_call;
    use crate::fuzz::Dialect;

    fn admitted(long_calls: &mut LongCalls, schema: &Value, arguments: Value, phase: Phase) -> Option<Value> {
        let schema = ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema");
        let admitted = long_calls.admit(valid_call(0, arguments), phase, &schema)?;
        match &admitted.call.arguments {
            Arguments::Json(arguments) => Some(arguments.clone()),
            Arguments::Raw(_) => None,
        }
    }

    #[test]
    fn a_call_that_waits_long_is_shortened_among_mixed_calls_and_omitted_among_those_with_a_purpose() {
        let schema =
            json!({"type": "object", "properties": {"seconds": {"type": "number"}, "text": {"type": "string"}}});
        let mut long_calls = LongCalls::new(&schema, Some(&json!({"seconds": 1})));
        let long = json!({"seconds": 1e9, "text": "a"});
        assert_eq!(admitted(&mut long_calls, &schema, long.clone(), Phase::Mutants), None);
        assert_eq!(admitted(&mut long_calls, &schema, long, Phase::Mixed), Some(json!({"seconds": 1, "text": "a"})));
        for short in [json!({"seconds": 1}), json!({"seconds": -1e9}), json!({"text": "a"})] {
            assert_eq!(admitted(&mut long_calls, &schema, short.clone(), Phase::Mutants), Some(short));
        }
        assert!(long_calls.note().is_some_and(|note| note.starts_with("1 planned call was omitted")));
    }

    #[test]
    fn a_tool_that_cannot_be_quick_is_called_as_its_plain_call_is() {
        let schema = json!({"type": "object", "properties": {"delay": {"type": "integer", "minimum": 2}}});
        let mut long_calls = LongCalls::new(&schema, Some(&json!({"delay": 2})));
        assert_eq!(admitted(&mut long_calls, &schema, json!({"delay": 9}), Phase::Mixed), Some(json!({"delay": 2})));
        let mut long_calls = LongCalls::new(&schema, None);
        assert_eq!(admitted(&mut long_calls, &schema, json!({"delay": 9}), Phase::Mixed), None);
    }
}
