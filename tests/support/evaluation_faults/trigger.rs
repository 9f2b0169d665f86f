//! The triggers of evaluation faults: arguments, raw lines, or earlier calls.

use serde_json::Value;

use super::Object;

/// A valid call that was answered.
#[derive(Debug)]
pub(super) struct ServedCall {
    pub(super) tool: String,
    pub(super) arguments: Object,
    /// The `draft_id` that it returned, if any.
    pub(super) draft_id: Option<String>,
}

/// The trigger of an evaluation fault.
pub(super) enum Trigger {
    /// Valid arguments.
    ValidArguments(fn(&Object) -> bool),
    /// Any arguments, before validation; null if there are none.
    AnyArguments(fn(&Value) -> bool),
    /// The bytes of the line, before parsing.
    RawLine(fn(&[u8]) -> bool),
    /// The nth valid call of the tool.
    NthCall(u64),
    /// A valid call that follows certain other valid calls.
    AfterCalls(fn(&[ServedCall], &Object) -> bool),
    /// No call: the fault is in the tool definition.
    Always,
}

/// The string under a key.
pub(super) fn string<'a>(arguments: &'a Object, key: &str) -> Option<&'a str> {
    arguments.get(key)?.as_str()
}

/// Whether the string under a key contains something.
pub(super) fn contains(arguments: &Object, key: &str, part: &str) -> bool {
    string(arguments, key).is_some_and(|string| string.contains(part))
}

/// The number under a key.
pub(super) fn number(arguments: &Object, key: &str) -> Option<f64> {
    arguments.get(key)?.as_f64()
}

/// The integer under a key, even beyond the precision of a double.
pub(super) fn integer(arguments: &Object, key: &str) -> Option<i128> {
    let value = arguments.get(key)?;
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// The items of an array under a key.
pub(super) fn items<'a>(arguments: &'a Object, key: &str) -> Option<&'a [Value]> {
    arguments.get(key)?.as_array().map(Vec::as_slice)
}

/// Whether two of the items are equal.
pub(super) fn has_duplicates(items: &[Value]) -> bool {
    (1..items.len()).any(|at| items[..at].contains(&items[at]))
}

/// The nesting depth of the steps of `transform`.
pub(super) fn depth(steps: &[Value]) -> usize {
    let inner = |step: &Value| step.get("inner").and_then(Value::as_array).map_or(0, |inner| depth(inner));
    steps.iter().map(|step| 1 + inner(step)).max().unwrap_or(0)
}

/// Whether any step at any depth matches.
pub(super) fn any_step(steps: &[Value], wanted: &dyn Fn(&Value) -> bool) -> bool {
    steps.iter().any(|step| {
        let inner = step.get("inner").and_then(Value::as_array);
        wanted(step) || inner.is_some_and(|inner| any_step(inner, wanted))
    })
}

/// Whether the arguments are an object with exactly these keys.
pub(super) fn has_exactly_keys(arguments: &Value, keys: &[&str]) -> bool {
    let Some(members) = arguments.as_object() else { return false };
    members.len() == keys.len() && keys.iter().all(|key| members.contains_key(*key))
}
