//! The points at which evaluation faults intercept a connection.

use std::time::Duration;

use mcp_conformance::reference::{Interception, Interceptor, Revision};
use serde_json::{Value, json};

use super::effect::Effect;
use super::fault::FaultSpec;
use super::state::State;
use super::trigger::Trigger;
use super::{FIRST_REVISION, Object};

impl State {
    fn find(&self, revision: Revision, matches: impl Fn(&FaultSpec, &Self) -> bool) -> Option<&'static FaultSpec> {
        // All evaluation faults show in the revisions that have all of these tools.
        self.specs.iter().copied().find(|spec| revision >= FIRST_REVISION && matches(spec, self))
    }

    fn trigger(&mut self, revision: Revision, matches: impl Fn(&FaultSpec, &Self) -> bool) -> Interception {
        match self.find(revision, matches) {
            Some(spec) => self.apply(spec),
            None => Interception::Continue,
        }
    }

    /// Whether a fault makes all calls of a tool fail.
    fn always_fails(&self, tool: &str, revision: Revision) -> bool {
        let fails = |spec: &FaultSpec, _: &Self| spec.tool == tool && matches!(spec.effect, Effect::ListFailingTool(_));
        self.find(revision, fails).is_some()
    }

    fn apply(&mut self, spec: &'static FaultSpec) -> Interception {
        self.times_triggered += 1;
        match spec.effect {
            Effect::Crash => return Interception::Crashed,
            Effect::Hang => return Interception::Ignored,
            Effect::Freeze => return Interception::Frozen,
            Effect::ProtocolError(code, message) => {
                return Interception::ProtocolError { code, message: message.to_owned() };
            }
            Effect::ToolError(message) => return Interception::ToolError(message.to_owned()),
            Effect::ChangeResult(edit) => self.change_result = Some(edit),
            Effect::ChangeResultEachCall(edit) => self.change_result_each_call = Some(edit),
            Effect::ChangeBytes(edit) => self.change_bytes = Some(edit),
            Effect::ChangeMessage(edit) => self.change_message = Some(edit),
            Effect::SwapResponses => self.swap_responses = true,
            Effect::BreakTool(tool, message) => self.broken_tool = Some((tool, message)),
            Effect::LeakMemory(bytes) => self.retain(bytes),
            Effect::SlowDown(step) => self.delay = Some(Duration::from_micros(step * self.times_triggered)),
            Effect::LeakFile => self.open(),
            Effect::LeakProcess => self.spawn(),
            Effect::AddTool => self.tool_added = true,
            Effect::SkipValidation(_) | Effect::ListTool(_) | Effect::ListFailingTool(_) => {}
        }
        Interception::Continue
    }
}

impl Interceptor for State {
    fn intercept_line(&mut self, line: &[u8], revision: Revision) -> Interception {
        self.trigger(
            revision,
            |spec, _| matches!(spec.trigger, Trigger::RawLine(fits) if calls_tool(line, spec.tool) && fits(line)),
        )
    }

    fn intercept_call(&mut self, params: &Object, revision: Revision) -> Interception {
        let Some(tool) = params.get("name").and_then(Value::as_str) else { return Interception::Continue };
        if let Some((broken_tool, message)) = self.broken_tool
            && broken_tool == tool
        {
            return Interception::ToolError(message.to_owned());
        }
        if self.always_fails(tool, revision) && params.get("arguments").is_none_or(Value::is_object) {
            return Interception::ToolError("Not found.".to_owned());
        }
        let none = Value::Null;
        let arguments = params.get("arguments").unwrap_or(&none);
        let spec = self.find(
            revision,
            |spec, _| matches!(spec.trigger, Trigger::AnyArguments(fits) if spec.tool == tool && fits(arguments)),
        );
        let Some(spec) = spec else { return Interception::Continue };
        if let Effect::SkipValidation(fix_arguments) = spec.effect {
            let mut params = params.clone();
            if let Some(Value::Object(arguments)) = params.get_mut("arguments") {
                fix_arguments(arguments);
            }
            return Interception::Replaced(params);
        }
        self.apply(spec)
    }

    fn intercept_valid_call(&mut self, tool: &str, arguments: &Object, revision: Revision) -> Interception {
        if let Some(spec) = self.specs.iter().find(|spec| spec.tool == tool) {
            *self.calls.entry(spec.tool).or_default() += 1;
        }
        let interception = self.trigger(revision, |spec, state| {
            spec.tool == tool
                && match spec.trigger {
                    Trigger::ValidArguments(fits) => fits(arguments),
                    Trigger::NthCall(number) => state.calls.get(tool) == Some(&number),
                    Trigger::AfterCalls(fits) => fits(&state.served, arguments),
                    Trigger::AnyArguments(_) | Trigger::RawLine(_) | Trigger::Always => false,
                }
        });
        self.store_call(tool, arguments);
        interception
    }

    fn change_result(&mut self, result: &mut Object) {
        if let Some(edit) = self.change_result.take() {
            edit(result);
        }
        if let Some(edit) = self.change_result_each_call.take() {
            edit(result, self.times_triggered);
        }
        self.store_result(result);
    }

    fn change_message(&mut self, message: &mut Value) {
        if let Some(edit) = self.change_message.take() {
            edit(message);
        }
    }

    fn change_bytes(&mut self, bytes: &mut Vec<u8>) {
        if let Some(edit) = self.change_bytes.take() {
            edit(bytes);
        }
    }

    fn take_delay(&mut self) -> Option<Duration> {
        self.delay.take()
    }

    fn swaps_responses(&self) -> bool {
        self.swap_responses
    }

    fn end_swap(&mut self) {
        self.swap_responses = false;
    }

    fn add_tools(&self, tools: &mut Vec<Object>, revision: Revision) {
        for spec in self.specs.iter().filter(|_| revision >= FIRST_REVISION) {
            match spec.effect {
                Effect::ListTool(make) | Effect::ListFailingTool(make) => tools.extend(make().as_object().cloned()),
                Effect::AddTool if self.tool_added => tools.extend(leftover().as_object().cloned()),
                _ => {}
            }
        }
    }

    fn has_added_tool(&self) -> bool {
        self.tool_added
    }
}

/// Whether an unparsed line looks like a call of a tool.
fn calls_tool(line: &[u8], tool: &str) -> bool {
    let quoted = format!("\"{tool}\"");
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    has(b"tools/call") && has(quoted.as_bytes())
}

/// The tool that a call adds to the list.
fn leftover() -> Value {
    json!({
        "name": "leftover",
        "description": "Added by a tool that is marked as read-only.",
        "inputSchema": {"type": "object", "additionalProperties": false},
        "annotations": {"readOnlyHint": true},
    })
}
