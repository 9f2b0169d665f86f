//! Where in a valid instance a subschema applies.

use serde_json::{Map, Value};

use super::super::{
    compile,
    dialect::Dialect,
    instance_path::{self, PathStep},
    schema::ToolSchema,
};
use crate::json_pointer;

/// The maximum number of sites of a schema.
const MAX_SITES: usize = 160;

/// A subschema, with a value in a valid instance to which it applies.
#[derive(Debug)]
pub(in crate::fuzz) struct Site<'s> {
    /// The JSON pointer of the subschema.
    pub(in crate::fuzz) pointer: String,
    pub(in crate::fuzz) keywords: &'s Map<String, Value>,
    /// The path of the value, with any element and entry.
    pub(in crate::fuzz) steps: Vec<PathStep>,
    /// The valid instance.
    pub(in crate::fuzz) base: &'s Value,
    /// The JSON pointer of the value in the instance.
    pub(in crate::fuzz) location: String,
    /// The value.
    pub(in crate::fuzz) current: &'s Value,
}

impl Site<'_> {
    /// The instance with another value at the site.
    pub(in crate::fuzz) fn with(&self, value: Value) -> Value {
        let mut instance = self.base.clone();
        if let Some(place) = instance.pointer_mut(&self.location) {
            *place = value;
        }
        instance
    }
}

/// The sites of a schema that some of the valid instances reach, each in one of them, in the order of the schema.
pub(in crate::fuzz) fn sites<'s>(schema: &'s ToolSchema, pool: &'s [Value]) -> Vec<Site<'s>> {
    let mut paths: Vec<(String, Vec<PathStep>)> = instance_path::instance_paths(schema.schema()).into_iter().collect();
    // The order must not depend on that of a hash map.
    paths.sort_by(|a, b| a.1.len().cmp(&b.1.len()).then_with(|| a.0.cmp(&b.0)));
    let mut sites = Vec::new();
    for (pointer, steps) in paths {
        if sites.len() >= MAX_SITES {
            break;
        }
        let Some(keywords) = schema.schema().pointer(&pointer).and_then(Value::as_object) else { continue };
        let reached = pool.iter().filter_map(|base| {
            let location = locate(&steps, base, schema.dialect())?;
            let current = base.pointer(&location)?;
            fits(keywords, current).then_some((base, location, current))
        });
        // The first of the values that have the most parts to vary.
        let found =
            reached.reduce(|best, other| if parts(keywords, other.2) > parts(keywords, best.2) { other } else { best });
        if let Some((base, location, current)) = found {
            sites.push(Site { pointer, keywords, steps, base, location, current });
        }
    }
    sites
}

/// How many parts of a value can be varied; more items than a few show nothing new.
fn parts(keywords: &Map<String, Value>, value: &Value) -> usize {
    const ENOUGH: usize = 3;
    match value {
        Value::Array(items) => items.len().min(ENOUGH),
        Value::Object(members) => {
            let declared = keywords.get("properties").and_then(Value::as_object);
            let known = members.keys().filter(|name| declared.is_some_and(|own| own.contains_key(*name))).count();
            known * ENOUGH + (members.len() - known).min(ENOUGH - 1)
        }
        _ => 0,
    }
}

/// The JSON pointer of the value at the end of a path in an instance.
fn locate(steps: &[PathStep], base: &Value, dialect: Dialect) -> Option<String> {
    let mut location = String::new();
    let mut value = base;
    for step in steps {
        let token = match step {
            PathStep::Name(name) => name.clone(),
            PathStep::Pattern(pattern) => {
                let names = compile::validator(&serde_json::json!({"pattern": pattern}), dialect).ok()?;
                value.as_object()?.keys().find(|name| names.is_valid(&Value::from(name.as_str())))?.clone()
            }
            PathStep::Entry => value.as_object()?.keys().next_back()?.clone(),
            PathStep::Slot(position) => position.to_string(),
            PathStep::Item => value.as_array()?.len().checked_sub(1)?.to_string(),
        };
        location = json_pointer::join(&location, &token);
        value = base.pointer(&location)?;
    }
    Some(location)
}

/// Whether a value may be one of the subschema: it has the type, and the constants of a discriminated union.
fn fits(keywords: &Map<String, Value>, current: &Value) -> bool {
    let types = types_of(keywords);
    if !types.is_empty() && !types.iter().any(|name| is_of_type(current, name)) {
        return false;
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().all(|(name, property)| {
        property.get("const").is_none_or(|constant| current.get(name).is_none_or(|value| value == constant))
    })
}

/// The types that a subschema allows by name; none if it does not say.
pub(in crate::fuzz) fn types_of(keywords: &Map<String, Value>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a value has a JSON type.
pub(in crate::fuzz) fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
