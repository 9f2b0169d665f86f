//! Varies arguments of a tool, so that each kind of result appears: every value of an enumeration, both
//! booleans, and every branch of the schema.

use serde_json::Value;

use super::example_arguments::{is_moderate, names_only_what_is_listed};
use crate::fuzz::{CoverageGoal, ToolSchema};
use crate::limits::MAX_VARIANT_GOALS;

/// Valid arguments that differ from given ones in one decision, at most `most` of them: enumerations and booleans first,
/// then branches, then the rest.
pub(super) fn variants(schema: &ToolSchema, given: &Value, most: usize) -> Vec<Value> {
    let Value::Object(members) = given else { return Vec::new() };
    let mut goals = schema.valid().coverage_goals();
    goals.truncate(MAX_VARIANT_GOALS);
    goals.sort_by_key(priority);
    let mut made: Vec<Value> = Vec::new();
    for goal in goals.iter().filter(|goal| priority(goal) < LAST) {
        if made.len() >= most {
            break;
        }
        let Some(Value::Object(covered)) = schema.valid().cover(goal) else { continue };
        let decided = goal.path().split('/').nth(1).unwrap_or_default();
        // What the goal does not decide stays as it is.
        let mut arguments = covered.clone();
        for (name, value) in members.iter().filter(|(name, _)| *name != decided) {
            arguments.insert(name.clone(), value.clone());
        }
        let whole = [Value::Object(arguments), Value::Object(covered)].into_iter().find(|one| schema.is_valid(one));
        let Some(arguments) = whole.filter(|one| is_moderate(one) && names_only_what_is_listed(schema.schema(), one))
        else {
            continue;
        };
        if *given != arguments && !made.contains(&arguments) {
            made.push(arguments);
        }
    }
    made
}

/// The priority of goals that are left out.
const LAST: u8 = 3;

/// The order in which goals are covered.
fn priority(goal: &CoverageGoal) -> u8 {
    let description = goal.description();
    let value = description.strip_prefix("value ").or_else(|| description.strip_prefix("suggested "));
    match value.and_then(|value| value.chars().next()) {
        // A number is the edge of a range rather than a choice, and many a schema allows fractions by mistake.
        Some('0'..='9' | '-') if value.is_some_and(|value| value.contains(['.', 'e'])) => LAST,
        Some('0'..='9' | '-') => 2,
        Some(_) => 0,
        None if description.starts_with("branch ") => 1,
        None if description == "present" || description.ends_with("optional entry") => 2,
        None => LAST,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fuzz::Dialect;

    #[test]
    fn every_value_of_an_enumeration_and_both_booleans_appear() {
        let properties = json!({
            "zone": {"type": "string"},
            "kind": {"enum": ["text", "image", "audio"]},
            "exact": {"type": "boolean"},
            "size": {"type": "number"},
        });
        let schema = json!({"type": "object", "properties": properties, "required": ["zone", "kind"]});
        let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
        let given = json!({"zone": "UTC", "kind": "text"});
        let made = variants(&schema, &given, 12);
        assert!(made.iter().all(|one| one["zone"] == "UTC"), "{made:?}");
        assert!(made.iter().all(|one| one.get("size").is_none_or(Value::is_i64)), "{made:?}");
        let has = |name: &str, value: &Value| made.iter().any(|one| one.get(name) == Some(value));
        assert!(has("kind", &json!("image")) && has("kind", &json!("audio")), "{made:?}");
        assert!(has("exact", &json!(true)) && has("exact", &json!(false)), "{made:?}");
        assert_eq!(variants(&schema, &given, 2).len(), 2);
    }
}
