//! The points at which evaluation faults intercept a connection.

use std::time::Duration;

use serde_json::{Value, json};

use super::effect::Effect;
use super::fault::FaultSpec;
use super::state::State;
use super::trigger::Trigger;
use crate::reference::call::ToolOutput;
use crate::reference::message::{Object, RpcError, object};
use crate::reference::revision::Revision;

/// What happens to a line or call after interception.
pub(in crate::reference) enum Interception {
    /// It is processed as usual.
    Continue,
    /// It is processed with these params instead.
    Replaced(Object),
    /// It is answered with this protocol error.
    Error(RpcError),
    /// It is answered with this output.
    Output(ToolOutput),
    /// It is not answered.
    Ignored,
    /// The server stops responding.
    Frozen,
    /// The process exits.
    Crashed,
}

impl State {
    /// Intercepts a line before it is parsed.
    pub(in crate::reference) fn intercept_line(&mut self, line: &[u8], revision: Revision) -> Interception {
        self.trigger(
            revision,
            |spec, _| matches!(spec.trigger, Trigger::RawLine(fits) if calls_tool(line, spec.tool) && fits(line)),
        )
    }

    /// Intercepts a call before its arguments are validated.
    pub(in crate::reference) fn intercept_call(&mut self, params: &Object, revision: Revision) -> Interception {
        let Some(tool) = params.get("name").and_then(Value::as_str) else { return Interception::Continue };
        if let Some((broken_tool, message)) = self.broken_tool
            && broken_tool == tool
        {
            return Interception::Output(ToolOutput::failure(message));
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

    /// Intercepts a call with valid arguments.
    pub(in crate::reference) fn intercept_valid_call(
        &mut self,
        tool: &str,
        arguments: &Object,
        revision: Revision,
    ) -> Interception {
        if self.is_empty() {
            return Interception::Continue;
        }
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

    fn find(&self, revision: Revision, matches: impl Fn(&FaultSpec, &Self) -> bool) -> Option<&'static FaultSpec> {
        // All evaluation faults show in the revisions that have all of these tools.
        self.specs.iter().copied().find(|spec| revision >= Revision::V2025_06_18 && matches(spec, self))
    }

    fn trigger(&mut self, revision: Revision, matches: impl Fn(&FaultSpec, &Self) -> bool) -> Interception {
        match self.find(revision, matches) {
            Some(spec) => self.apply(spec),
            None => Interception::Continue,
        }
    }

    fn apply(&mut self, spec: &'static FaultSpec) -> Interception {
        self.times_triggered += 1;
        match spec.effect {
            Effect::Crash => return Interception::Crashed,
            Effect::Hang => return Interception::Ignored,
            Effect::Freeze => return Interception::Frozen,
            Effect::ProtocolError(code, message) => return Interception::Error(RpcError::new(code, message)),
            Effect::ToolError(message) => return Interception::Output(ToolOutput::failure(message)),
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

    /// Applies faults to the result of a call.
    pub(in crate::reference) fn inject(&mut self, result: &mut Object) {
        if let Some(edit) = self.change_result.take() {
            edit(result);
        }
        if let Some(edit) = self.change_result_each_call.take() {
            edit(result, self.times_triggered);
        }
    }

    /// Applies faults to a response message.
    pub(in crate::reference) fn inject_into_message(&mut self, message: &mut Value) {
        if let Some(edit) = self.change_message.take() {
            edit(message);
        }
    }

    /// Applies faults to the bytes of a response.
    pub(in crate::reference) fn inject_into_bytes(&mut self, bytes: &mut Vec<u8>) {
        if let Some(edit) = self.change_bytes.take() {
            edit(bytes);
        }
    }

    /// The delay of the current response.
    pub(in crate::reference) fn take_delay(&mut self) -> Option<Duration> {
        self.delay.take()
    }

    /// Whether the current response is to be swapped with the next one.
    pub(in crate::reference) fn swaps_responses(&self) -> bool {
        self.swap_responses
    }

    /// Ends the swap.
    pub(in crate::reference) fn clear_swap(&mut self) {
        self.swap_responses = false;
    }

    /// Adds the tools that only faults list.
    pub(in crate::reference) fn add_tools(&self, tools: &mut Vec<Object>, revision: Revision) {
        for spec in self.specs.iter().filter(|_| revision >= Revision::V2025_06_18) {
            match spec.effect {
                Effect::ListTool(make) | Effect::ListFailingTool(make) => tools.push(object(make())),
                Effect::AddTool if self.tool_added => tools.push(object(json!({
                    "name": "leftover",
                    "description": "Added by a tool that is marked as read-only.",
                    "inputSchema": {"type": "object", "additionalProperties": false},
                    "annotations": {"readOnlyHint": true},
                }))),
                _ => {}
            }
        }
    }

    /// Whether a fault makes all calls of a tool fail.
    pub(in crate::reference) fn always_fails(&self, tool: &str) -> bool {
        self.specs.iter().any(|spec| spec.tool == tool && matches!(spec.effect, Effect::ListFailingTool(_)))
    }

    /// Whether a fault has added a tool to the list.
    pub(in crate::reference) fn has_added_tool(&self) -> bool {
        self.tool_added
    }
}

/// Whether an unparsed line looks like a call of a tool.
fn calls_tool(line: &[u8], tool: &str) -> bool {
    let quoted = format!("\"{tool}\"");
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    has(b"tools/call") && has(quoted.as_bytes())
}
