//! The member that violates a schema, as a difference between what the schema wants and what is there.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use super::text::shortened;

/// The maximum length of a value, in bytes.
const MAX_VALUE_BYTES: usize = 200;

/// The lines of the difference: what is wanted begins with `-`, what is there with `+`. None if the keyword does not say
/// what it wants of a single member.
pub(super) fn member_diff(error: &ValidationError<'_>) -> Option<String> {
    if let ValidationErrorKind::Required { property } = error.kind() {
        return Some(format!("-{property}: required\n"));
    }
    let name = match error.instance_path().into_iter().last() {
        Some(LocationSegment::Property(name)) => format!("{}: ", Value::from(name.into_owned())),
        Some(LocationSegment::Index(index)) => format!("[{index}]: "),
        None => String::new(),
    };
    let wanted = shortened(&wanted(error.kind())?, MAX_VALUE_BYTES);
    Some(format!("-{name}{wanted}\n+{name}{}\n", shortened(&error.instance().to_string(), MAX_VALUE_BYTES)))
}

/// What a keyword wants, in words or as JSON.
fn wanted(kind: &ValidationErrorKind) -> Option<String> {
    let one_of = |options: Vec<String>| options.join(" or ");
    Some(match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(one) } => one.to_string(),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(all) } => {
            one_of(all.iter().map(|one| one.to_string()).collect())
        }
        ValidationErrorKind::Constant { expected_value } => expected_value.to_string(),
        ValidationErrorKind::Enum { options } => one_of(options.as_array()?.iter().map(Value::to_string).collect()),
        ValidationErrorKind::Pattern { pattern } => format!("string that matches {pattern}"),
        ValidationErrorKind::Format { format } => format!("string of the format {format}"),
        ValidationErrorKind::Minimum { limit } => format!("number from {limit} on"),
        ValidationErrorKind::Maximum { limit } => format!("number up to {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("string of at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("string of at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("array of at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("array of at most {limit} items"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diff(schema: &Value, value: &Value) -> Option<String> {
        let validator = jsonschema::validator_for(schema).expect("a schema");
        member_diff(&validator.iter_errors(value).next().expect("a violation"))
    }

    #[test]
    fn only_the_member_that_violates_the_schema_is_shown() {
        let schema = json!({"properties": {
            "icons": {"type": "array", "items": {"type": ["string", "null"]}},
            "kind": {"enum": ["a", "b"]},
        }, "required": ["name"]});
        for (value, expected) in [
            (json!({"name": 1, "other": "long", "icons": "x.png"}), "-\"icons\": array\n+\"icons\": \"x.png\"\n"),
            (json!({"name": 1, "icons": ["a", 2]}), "-[1]: null or string\n+[1]: 2\n"),
            (json!({"name": 1, "kind": "c"}), "-\"kind\": \"a\" or \"b\"\n+\"kind\": \"c\"\n"),
            (json!({"icons": []}), "-\"name\": required\n"),
        ] {
            assert_eq!(diff(&schema, &value).as_deref(), Some(expected));
        }
        assert_eq!(diff(&json!({"type": "object"}), &json!([])).as_deref(), Some("-object\n+[]\n"));
        assert_eq!(diff(&json!({"not": {}}), &json!({})), None);
    }

    #[test]
    fn a_text_with_lines_stays_on_one_line() {
        let lines = diff(&json!({"pattern": "^x"}), &json!("a\n-b\n+c")).expect("a pattern wants something");
        assert_eq!(lines.lines().count(), 2, "{lines}");
        let long = diff(&json!({"type": "null"}), &json!("a".repeat(5_000))).expect("a type wants something");
        assert!(long.len() < 300, "{}", long.len());
    }
}
