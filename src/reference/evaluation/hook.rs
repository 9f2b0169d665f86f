//! Where the hidden faults reach into a connection.

use std::time::Duration;

use serde_json::{Value, json};

use super::effect::Effect;
use super::row::Row;
use super::state::State;
use super::trigger::Trigger;
use crate::reference::call::Reply;
use crate::reference::message::{Object, Refusal, object};
use crate::reference::revision::Revision;

/// What becomes of a call before its arguments are looked at, and of one whose arguments fit.
pub(in crate::reference) enum Early {
    /// It goes on.
    Pass,
    /// It goes on with these params.
    Mended(Object),
    /// It is answered by an error of the protocol.
    Refused(Refusal),
    /// It is answered by this.
    Replied(Reply),
    /// It is not answered.
    Silent,
    /// Nothing is answered any more.
    Frozen,
    /// The process ends.
    Crashed,
}

impl State {
    /// Meets a line before it is parsed.
    pub(in crate::reference) fn line(&mut self, line: &[u8], revision: Revision) -> Early {
        self.strike(
            revision,
            |row, _| matches!(row.trigger, Trigger::Line(fits) if names(line, row.tool) && fits(line)),
        )
    }

    /// Meets a call before its arguments are looked at.
    pub(in crate::reference) fn called(&mut self, params: &Object, revision: Revision) -> Early {
        let Some(tool) = params.get("name").and_then(Value::as_str) else { return Early::Pass };
        if let Some((spoiled, told)) = self.spoiled
            && spoiled == tool
        {
            return Early::Replied(Reply::failure(told));
        }
        let none = Value::Null;
        let arguments = params.get("arguments").unwrap_or(&none);
        let met = self
            .find(revision, |row, _| matches!(row.trigger, Trigger::Any(fits) if row.tool == tool && fits(arguments)));
        let Some(row) = met else { return Early::Pass };
        if let Effect::Overlook(mend) = row.effect {
            let mut params = params.clone();
            if let Some(Value::Object(arguments)) = params.get_mut("arguments") {
                mend(arguments);
            }
            return Early::Mended(params);
        }
        self.take_effect(row)
    }

    /// Meets a call whose arguments fit its tool.
    pub(in crate::reference) fn fitted(&mut self, tool: &str, arguments: &Object, revision: Revision) -> Early {
        if self.is_idle() {
            return Early::Pass;
        }
        if self.rows.iter().any(|row| row.tool == tool) {
            self.calls += 1;
        }
        let answer = self.strike(revision, |row, state| {
            row.tool == tool
                && match row.trigger {
                    Trigger::Valid(fits) => fits(arguments),
                    Trigger::Nth(number) => state.calls == number,
                    Trigger::After(fits) => fits(&state.served, arguments),
                    Trigger::Any(_) | Trigger::Line(_) | Trigger::Listed => false,
                }
        });
        self.remember(tool, arguments);
        answer
    }

    fn find(&self, revision: Revision, met: impl Fn(&Row, &Self) -> bool) -> Option<&'static Row> {
        // Every hidden fault shows in the same revisions, those that have the tools in full.
        self.rows.iter().copied().find(|row| revision >= Revision::V2025_06_18 && met(row, self))
    }

    fn strike(&mut self, revision: Revision, met: impl Fn(&Row, &Self) -> bool) -> Early {
        match self.find(revision, met) {
            Some(row) => self.take_effect(row),
            None => Early::Pass,
        }
    }

    fn take_effect(&mut self, row: &'static Row) -> Early {
        self.struck += 1;
        match row.effect {
            Effect::Crash => return Early::Crashed,
            Effect::Hang => return Early::Silent,
            Effect::Freeze => return Early::Frozen,
            Effect::Refuse(code, told) => return Early::Refused(Refusal::new(code, told)),
            Effect::Fail(told) => return Early::Replied(Reply::failure(told)),
            Effect::Deform(edit) => self.deform = Some(edit),
            Effect::Drift(edit) => self.drift = Some(edit),
            Effect::Write(edit) => self.write = Some(edit),
            Effect::Readdress(edit) => self.readdress = Some(edit),
            Effect::Swap => self.swap = true,
            Effect::Spoil(tool, told) => self.spoiled = Some((tool, told)),
            Effect::Retain(bytes) => self.retain(bytes),
            Effect::Slow(step) => self.delay = Some(Duration::from_micros(step * self.struck)),
            Effect::Open => self.open(),
            Effect::Spawn => self.spawn(),
            Effect::Grow => self.grown = true,
            Effect::Overlook(_) | Effect::List(_) | Effect::ListFailing(_) => {}
        }
        Early::Pass
    }

    /// Makes the result of a call what the faults want it to be.
    pub(in crate::reference) fn deviate(&mut self, result: &mut Object) {
        if let Some(edit) = self.deform.take() {
            edit(result);
        }
        if let Some(edit) = self.drift.take() {
            edit(result, self.struck);
        }
    }

    /// Makes the message of an answer what the faults want it to be.
    pub(in crate::reference) fn readdress(&mut self, message: &mut Value) {
        if let Some(edit) = self.readdress.take() {
            edit(message);
        }
    }

    /// Makes the bytes of an answer what the faults want them to be.
    pub(in crate::reference) fn rewrite(&mut self, bytes: &mut Vec<u8>) {
        if let Some(edit) = self.write.take() {
            edit(bytes);
        }
    }

    /// How long the answer in hand is held back.
    pub(in crate::reference) fn take_delay(&mut self) -> Option<Duration> {
        self.delay.take()
    }

    /// Whether the answer in hand is to be confused with the next one.
    pub(in crate::reference) fn swaps(&self) -> bool {
        self.swap
    }

    /// The confusion is over.
    pub(in crate::reference) fn has_swapped(&mut self) {
        self.swap = false;
    }

    /// The tools that only faults list.
    pub(in crate::reference) fn add_tools(&self, tools: &mut Vec<Object>, revision: Revision) {
        for row in self.rows.iter().filter(|_| revision >= Revision::V2025_06_18) {
            match row.effect {
                Effect::List(make) | Effect::ListFailing(make) => tools.push(object(make())),
                Effect::Grow if self.grown => tools.push(object(json!({
                    "name": "leftover",
                    "description": "Was left behind by a tool that only reads.",
                    "inputSchema": {"type": "object", "additionalProperties": false},
                    "annotations": {"readOnlyHint": true},
                }))),
                _ => {}
            }
        }
    }

    /// Whether all calls of a tool fail that only faults list.
    pub(in crate::reference) fn refuses(&self, tool: &str) -> bool {
        self.rows.iter().any(|row| row.tool == tool && matches!(row.effect, Effect::ListFailing(_)))
    }

    /// Whether the list of tools has grown.
    pub(in crate::reference) fn is_grown(&self) -> bool {
        self.grown
    }
}

/// Whether a line calls a tool, as far as a look at the bytes tells.
fn names(line: &[u8], tool: &str) -> bool {
    let quoted = format!("\"{tool}\"");
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    has(b"tools/call") && has(quoted.as_bytes())
}
