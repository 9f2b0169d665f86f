//! Steps that are made with several methods: `methods` in a step of a case file, and `${method}` in it.
//!
//! Such a step is written out as one step for each method before anything else reads the case.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The member of a step that lists its methods.
pub(super) const METHODS: &str = "methods";

/// What stands for the method in such a step.
const PLACEHOLDER: &str = "${method}";

/// A case with each step that has methods written out, once for each.
pub(super) fn written_out(case: &Value) -> Cow<'_, Value> {
    expanded(case, |step, methods| {
        let with = |method: &Value| {
            let mut one = with_method(step, method);
            one.remove(METHODS);
            Value::Object(one)
        };
        methods.iter().map(with).collect()
    })
}

/// A case with the first method in each step that has methods, so that its steps are still where the file has them.
pub(super) fn with_first(case: &Value) -> Cow<'_, Value> {
    expanded(case, |step, methods| {
        let first = methods.first().map_or_else(|| step.clone(), |method| with_method(step, method));
        vec![Value::Object(first)]
    })
}

fn expanded(case: &Value, expand: impl Fn(&Map<String, Value>, &[Value]) -> Vec<Value>) -> Cow<'_, Value> {
    let methods_of = |step: &Value| step.get(METHODS).and_then(Value::as_array).cloned();
    let Some(steps) = case.get("steps").and_then(Value::as_array) else { return Cow::Borrowed(case) };
    if !steps.iter().any(|step| methods_of(step).is_some()) {
        return Cow::Borrowed(case);
    }
    let steps = steps.iter().flat_map(|step| match (step, methods_of(step)) {
        (Value::Object(members), Some(methods)) => expand(members, &methods),
        _ => vec![step.clone()],
    });
    let steps = Value::Array(steps.collect());
    let mut case = case.clone();
    case["steps"] = steps;
    Cow::Owned(case)
}

/// A step with a method in place of each `${method}`.
fn with_method(step: &Map<String, Value>, method: &Value) -> Map<String, Value> {
    let method = method.as_str().unwrap_or_default();
    let own = step.iter().map(|(name, value)| (name.clone(), replaced(value, method)));
    own.collect()
}

fn replaced(value: &Value, method: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(PLACEHOLDER, method)),
        Value::Array(items) => items.iter().map(|item| replaced(item, method)).collect(),
        Value::Object(members) => {
            let own = members.iter().map(|(name, value)| (name.replace(PLACEHOLDER, method), replaced(value, method)));
            Value::Object(own.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_is_written_out_once_for_each_method() {
        let case = json!({"steps": [
            {"send": {"method": "ping"}},
            {"methods": ["a", "b"], "send": {"method": "${method}"}, "otherwise": {"subject": "${method}"}},
        ]});
        let step = |method: &str| json!({"send": {"method": method}, "otherwise": {"subject": method}});
        let ping = &case["steps"][0];
        assert_eq!(*written_out(&case), json!({"steps": [ping, step("a"), step("b")]}));
        let mut first = step("a");
        first["methods"] = json!(["a", "b"]);
        assert_eq!(*with_first(&case), json!({"steps": [ping, first]}));
    }

    #[test]
    fn other_cases_are_as_they_were() {
        let case = json!({"steps": [{"send": {"method": "${method}"}}]});
        assert!(matches!(written_out(&case), Cow::Borrowed(_)) && matches!(with_first(&case), Cow::Borrowed(_)));
    }
}
