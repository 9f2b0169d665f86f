//! Compiles object schemas: declared entries, other entries, and entries that violate a rule on purpose.

use std::sync::Arc;

use jsonschema::{
    Validator,
    canonical::{CanonicalSchema, CanonicalView, ObjectView, ObjectViolationView},
};
use serde_json::{Value, json};

use super::{
    compile::{Compiled, Compiler, TooManyNodes, canonicalize, count, validator},
    dialect::Dialect,
    hint::Hints,
    plan::{Key, Node, NodeId, Object, Wild},
};

/// The patterns of an object with matchers for names.
struct Patterns<'v> {
    patterns: Vec<(&'v str, &'v CanonicalSchema, Option<Arc<Validator>>)>,
}

impl<'v> Patterns<'v> {
    fn of(view: &'v ObjectView, dialect: Dialect) -> Self {
        let patterns = view.pattern_properties.iter();
        Self {
            patterns: patterns.map(|(pattern, schema)| (pattern.as_str(), schema, matcher(pattern, dialect))).collect(),
        }
    }

    /// The matchers of all patterns except the one at `own`.
    fn others(&self, own: Option<usize>) -> Vec<Arc<Validator>> {
        let others = self.patterns.iter().enumerate();
        others
            .filter(|(position, _)| Some(*position) != own)
            .filter_map(|(_, (_, _, matcher))| matcher.clone())
            .collect()
    }

    /// The schema of a named entry: its own intersected with that of every matching pattern, or else the one
    /// for additional properties. Sets `approximate` if an intersection cannot be computed.
    fn entry(&self, view: &ObjectView, name: &str, approximate: &mut bool) -> Option<CanonicalSchema> {
        let mut met = view.properties.get(name).cloned();
        let text = Value::String(name.to_owned());
        for (_, schema, matcher) in &self.patterns {
            let matches = matcher.as_ref().is_some_and(|matcher| matcher.is_valid(&text));
            if !matches {
                continue;
            }
            met = Some(match met {
                None => (*schema).clone(),
                Some(own) => own.intersect(schema).unwrap_or_else(|_| {
                    *approximate = true;
                    own.clone()
                }),
            });
        }
        met.or_else(|| view.additional_properties.clone())
    }
}

impl Compiler<'_> {
    pub(super) fn object(&mut self, schema: &CanonicalSchema, view: &ObjectView) -> Compiled {
        let patterns = Patterns::of(view, self.dialect);
        let mut approximate = !view.violations.is_empty();
        let mut entries = |names: Vec<&String>| -> Vec<(String, Option<CanonicalSchema>)> {
            let entry = |name: &String| (name.clone(), patterns.entry(view, name, &mut approximate));
            names.into_iter().map(entry).collect()
        };
        let required = entries(view.required.iter().collect());
        let is_optional = |name: &&String| !view.required.contains(name);
        let optional = entries(view.properties.keys().filter(is_optional).collect());
        let declared: Vec<String> = required.iter().chain(&optional).map(|(name, _)| name.clone()).collect();
        let required = self.entries(required)?;
        let optional = self.entries(optional)?;
        let mut wild = vec![self.undeclared(view, &patterns, &declared)?];
        for (position, (pattern, schema, _)) in patterns.patterns.iter().enumerate() {
            wild.push(Wild {
                key: Key::Drawn(self.key(Some(pattern), view.property_names.as_ref())?),
                value: self.schema(schema)?,
                avoid: patterns.others(Some(position)),
            });
        }
        let mut violations = Vec::new();
        for violation in &view.violations {
            violations.push(self.violation(view, violation, &patterns)?);
        }
        self.exact &= !approximate;
        let object = Object {
            min: view.min_properties.as_ref().map_or(0, count),
            max: view.max_properties.as_ref().map_or(usize::MAX, count),
            required,
            optional,
            declared,
            wild,
            violations,
        };
        let node = self.add(Node::Object(Box::new(object)))?;
        if approximate {
            return self.checked(vec![node], schema);
        }
        Ok(node)
    }

    fn entries(
        &mut self,
        entries: Vec<(String, Option<CanonicalSchema>)>,
    ) -> Result<Vec<(String, NodeId)>, TooManyNodes> {
        let mut placed = Vec::with_capacity(entries.len());
        for (name, schema) in entries {
            let node = match schema {
                Some(schema) => self.place_at(&name, &schema)?,
                None => self.anything()?,
            };
            placed.push((name, node));
        }
        Ok(placed)
    }

    /// The template for entries that neither `properties` nor a pattern covers.
    fn undeclared(
        &mut self,
        view: &ObjectView,
        patterns: &Patterns<'_>,
        declared: &[String],
    ) -> Result<Wild, TooManyNodes> {
        let value = match &view.additional_properties {
            Some(schema) => self.place_at(Hints::ENTRIES, schema)?,
            None => self.anything()?,
        };
        let names = view.property_names.as_ref();
        // If all listed names are declared, there is no other entry.
        let listed = match names.map(CanonicalSchema::view) {
            Some(CanonicalView::Enum(names)) => Some(names),
            Some(CanonicalView::Const(name)) => Some(vec![name]),
            _ => None,
        };
        let key = match listed {
            None => self.key(None, names)?,
            Some(mut names) => {
                names.retain(|name| !declared.iter().any(|known| name == known));
                self.add(Node::Values(names))?
            }
        };
        Ok(Wild { key: Key::Drawn(key), value, avoid: patterns.others(None) })
    }

    /// A node for names that match `pattern` and the schema of names.
    pub(super) fn key(&mut self, pattern: Option<&str>, names: Option<&CanonicalSchema>) -> Compiled {
        let Some(pattern) = pattern else {
            return match names {
                Some(names) => self.schema(names),
                None => self.any_of_type("string"),
            };
        };
        let Some(matching) = matching(pattern, self.dialect) else {
            return self.never();
        };
        let met = names.and_then(|names| names.intersect(&matching).ok());
        self.schema(&met.unwrap_or(matching))
    }

    /// The alternatives to violate one rule about names or undeclared entries.
    fn violation(
        &mut self,
        view: &ObjectView,
        violation: &ObjectViolationView,
        own: &Patterns<'_>,
    ) -> Result<Vec<Wild>, TooManyNodes> {
        match violation {
            ObjectViolationView::NameFails(schema) => self.name_fails(view, schema, own),
            ObjectViolationView::UndeclaredValueFails { names, patterns, additional } => match additional.negate() {
                Ok(failing) => self.undeclared_fails(view, names, patterns, &failing, own),
                Err(_) => Ok(Vec::new()),
            },
            ObjectViolationView::PatternValueFails { pattern, schema } => match schema.negate() {
                Ok(failing) => self.pattern_fails(view, pattern, &failing),
                Err(_) => Ok(Vec::new()),
            },
        }
    }

    fn name_fails(
        &mut self,
        view: &ObjectView,
        schema: &CanonicalSchema,
        own: &Patterns<'_>,
    ) -> Result<Vec<Wild>, TooManyNodes> {
        let names = view.property_names.as_ref();
        let Some(failing) = failing_name(schema, names, self.dialect) else {
            return Ok(Vec::new());
        };
        let value = match &view.additional_properties {
            Some(schema) => self.schema(schema)?,
            None => self.anything()?,
        };
        let mut ways = vec![Wild { key: Key::Drawn(self.schema(&failing)?), value, avoid: own.others(None) }];
        let check = validator(&failing.to_json_schema(), self.dialect).ok();
        for (name, schema) in &view.properties {
            let text = Value::String(name.clone());
            if check.as_ref().is_some_and(|check| check.is_valid(&text)) {
                ways.push(self.named(name, schema)?);
            }
        }
        for (pattern, schema) in &view.pattern_properties {
            let met = matching(pattern, self.dialect).and_then(|matching| matching.intersect(&failing).ok());
            if let Some(met) = met {
                ways.push(Wild { key: Key::Drawn(self.schema(&met)?), value: self.schema(schema)?, avoid: Vec::new() });
            }
        }
        Ok(ways)
    }

    fn undeclared_fails(
        &mut self,
        view: &ObjectView,
        listed: &[String],
        patterns: &[String],
        failing: &CanonicalSchema,
        own: &Patterns<'_>,
    ) -> Result<Vec<Wild>, TooManyNodes> {
        let mut ways = Vec::new();
        let names = view.property_names.as_ref();
        let barred: Vec<Arc<Validator>> =
            patterns.iter().filter_map(|pattern| matcher(pattern, self.dialect)).collect();
        if let Some(value) = meet(view.additional_properties.as_ref(), failing) {
            let mut avoid = own.others(None);
            avoid.extend(barred.iter().cloned());
            let is_listed = validator(&json!({"enum": listed}), self.dialect);
            avoid.extend(is_listed.ok().map(Arc::new));
            ways.push(Wild { key: Key::Drawn(self.key(None, names)?), value: self.schema(&value)?, avoid });
        }
        for (name, schema) in &view.properties {
            let text = Value::String(name.clone());
            if listed.contains(name) || barred.iter().any(|pattern| pattern.is_valid(&text)) {
                continue;
            }
            if let Some(value) = meet(Some(schema), failing) {
                ways.push(self.named(name, &value)?);
            }
        }
        for (pattern, schema) in &view.pattern_properties {
            if patterns.contains(pattern) {
                continue;
            }
            if let Some(value) = meet(Some(schema), failing) {
                ways.push(Wild {
                    key: Key::Drawn(self.key(Some(pattern), names)?),
                    value: self.schema(&value)?,
                    avoid: barred.clone(),
                });
            }
        }
        Ok(ways)
    }

    fn pattern_fails(
        &mut self,
        view: &ObjectView,
        pattern: &str,
        failing: &CanonicalSchema,
    ) -> Result<Vec<Wild>, TooManyNodes> {
        let mut ways = Vec::new();
        let rest = view.additional_properties.as_ref();
        if let Some(value) = meet(view.pattern_properties.get(pattern).or(rest), failing) {
            ways.push(Wild {
                key: Key::Drawn(self.key(Some(pattern), view.property_names.as_ref())?),
                value: self.schema(&value)?,
                avoid: Vec::new(),
            });
        }
        let matcher = matcher(pattern, self.dialect);
        for (name, schema) in &view.properties {
            let text = Value::String(name.clone());
            if matcher.as_ref().is_none_or(|matcher| !matcher.is_valid(&text)) {
                continue;
            }
            if let Some(value) = meet(Some(schema), failing) {
                ways.push(self.named(name, &value)?);
            }
        }
        Ok(ways)
    }

    fn named(&mut self, name: &str, schema: &CanonicalSchema) -> Result<Wild, TooManyNodes> {
        Ok(Wild { key: Key::Named(name.to_owned()), value: self.schema(schema)?, avoid: Vec::new() })
    }
}

/// A validator for the names that a pattern matches.
fn matcher(pattern: &str, dialect: Dialect) -> Option<Arc<Validator>> {
    let matcher = validator(&json!({"pattern": pattern}), dialect);
    matcher.ok().map(Arc::new)
}

/// The strings that a pattern matches, as a schema.
fn matching(pattern: &str, dialect: Dialect) -> Option<CanonicalSchema> {
    canonicalize(&json!({"type": "string", "pattern": pattern}), dialect).ok()
}

/// The intersection of both schemas, if it can be computed and is not empty.
fn meet(own: Option<&CanonicalSchema>, other: &CanonicalSchema) -> Option<CanonicalSchema> {
    let met = match own {
        None => other.clone(),
        Some(own) => own.intersect(other).ok()?,
    };
    (!matches!(met.view(), CanonicalView::False)).then_some(met)
}

/// The names that violate `schema` and satisfy `names`.
fn failing_name(
    schema: &CanonicalSchema,
    names: Option<&CanonicalSchema>,
    dialect: Dialect,
) -> Option<CanonicalSchema> {
    let texts = canonicalize(&json!({"type": "string"}), dialect).ok()?;
    let failing = texts.subtract(schema).ok()?;
    meet(names, &failing)
}
