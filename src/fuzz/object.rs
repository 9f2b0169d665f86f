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
    plan::{EntryName, EntryTemplate, Node, NodeId, ObjectSpec},
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
        let mut intersection = view.properties.get(name).cloned();
        let text = Value::String(name.to_owned());
        for (_, schema, matcher) in &self.patterns {
            let matches = matcher.as_ref().is_some_and(|matcher| matcher.is_valid(&text));
            if !matches {
                continue;
            }
            intersection = Some(match intersection {
                None => (*schema).clone(),
                Some(own) => own.intersect(schema).unwrap_or_else(|_| {
                    *approximate = true;
                    own.clone()
                }),
            });
        }
        intersection.or_else(|| view.additional_properties.clone())
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
        let mut templates = vec![self.undeclared(view, &patterns, &declared)?];
        for (position, (pattern, schema, _)) in patterns.patterns.iter().enumerate() {
            templates.push(EntryTemplate {
                key: EntryName::Generated(self.key(Some(pattern), view.property_names.as_ref())?),
                value: self.schema(schema)?,
                excluded_names: patterns.others(Some(position)),
            });
        }
        let mut violations = Vec::new();
        for violation in &view.violations {
            violations.push(self.violation(view, violation, &patterns)?);
        }
        self.exact &= !approximate;
        let object = ObjectSpec {
            min: view.min_properties.as_ref().map_or(0, count),
            max: view.max_properties.as_ref().map_or(usize::MAX, count),
            required,
            optional,
            declared,
            templates,
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
                Some(schema) => self.compile_child(&name, &schema)?,
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
    ) -> Result<EntryTemplate, TooManyNodes> {
        let value = match &view.additional_properties {
            Some(schema) => self.compile_child(Hints::ENTRIES, schema)?,
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
        Ok(EntryTemplate { key: EntryName::Generated(key), value, excluded_names: patterns.others(None) })
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
        let intersection = names.and_then(|names| names.intersect(&matching).ok());
        self.schema(&intersection.unwrap_or(matching))
    }

    /// The alternatives to violate one rule about names or undeclared entries.
    fn violation(
        &mut self,
        view: &ObjectView,
        violation: &ObjectViolationView,
        own: &Patterns<'_>,
    ) -> Result<Vec<EntryTemplate>, TooManyNodes> {
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
    ) -> Result<Vec<EntryTemplate>, TooManyNodes> {
        let names = view.property_names.as_ref();
        let Some(failing) = failing_name(schema, names, self.dialect) else {
            return Ok(Vec::new());
        };
        let value = match &view.additional_properties {
            Some(schema) => self.schema(schema)?,
            None => self.anything()?,
        };
        let mut alternatives = vec![EntryTemplate {
            key: EntryName::Generated(self.schema(&failing)?),
            value,
            excluded_names: own.others(None),
        }];
        let check = validator(&failing.to_json_schema(), self.dialect).ok();
        for (name, schema) in &view.properties {
            let text = Value::String(name.clone());
            if check.as_ref().is_some_and(|check| check.is_valid(&text)) {
                alternatives.push(self.named(name, schema)?);
            }
        }
        for (pattern, schema) in &view.pattern_properties {
            let intersection = matching(pattern, self.dialect).and_then(|matching| matching.intersect(&failing).ok());
            if let Some(intersection) = intersection {
                alternatives.push(EntryTemplate {
                    key: EntryName::Generated(self.schema(&intersection)?),
                    value: self.schema(schema)?,
                    excluded_names: Vec::new(),
                });
            }
        }
        Ok(alternatives)
    }

    fn undeclared_fails(
        &mut self,
        view: &ObjectView,
        listed: &[String],
        patterns: &[String],
        failing: &CanonicalSchema,
        own: &Patterns<'_>,
    ) -> Result<Vec<EntryTemplate>, TooManyNodes> {
        let mut alternatives = Vec::new();
        let names = view.property_names.as_ref();
        let excluded: Vec<Arc<Validator>> =
            patterns.iter().filter_map(|pattern| matcher(pattern, self.dialect)).collect();
        if let Some(value) = meet(view.additional_properties.as_ref(), failing) {
            let mut excluded_names = own.others(None);
            excluded_names.extend(excluded.iter().cloned());
            let is_listed = validator(&json!({"enum": listed}), self.dialect);
            excluded_names.extend(is_listed.ok().map(Arc::new));
            alternatives.push(EntryTemplate {
                key: EntryName::Generated(self.key(None, names)?),
                value: self.schema(&value)?,
                excluded_names,
            });
        }
        for (name, schema) in &view.properties {
            let text = Value::String(name.clone());
            if listed.contains(name) || excluded.iter().any(|pattern| pattern.is_valid(&text)) {
                continue;
            }
            if let Some(value) = meet(Some(schema), failing) {
                alternatives.push(self.named(name, &value)?);
            }
        }
        for (pattern, schema) in &view.pattern_properties {
            if patterns.contains(pattern) {
                continue;
            }
            if let Some(value) = meet(Some(schema), failing) {
                alternatives.push(EntryTemplate {
                    key: EntryName::Generated(self.key(Some(pattern), names)?),
                    value: self.schema(&value)?,
                    excluded_names: excluded.clone(),
                });
            }
        }
        Ok(alternatives)
    }

    fn pattern_fails(
        &mut self,
        view: &ObjectView,
        pattern: &str,
        failing: &CanonicalSchema,
    ) -> Result<Vec<EntryTemplate>, TooManyNodes> {
        let mut alternatives = Vec::new();
        let rest = view.additional_properties.as_ref();
        if let Some(value) = meet(view.pattern_properties.get(pattern).or(rest), failing) {
            alternatives.push(EntryTemplate {
                key: EntryName::Generated(self.key(Some(pattern), view.property_names.as_ref())?),
                value: self.schema(&value)?,
                excluded_names: Vec::new(),
            });
        }
        let matcher = matcher(pattern, self.dialect);
        for (name, schema) in &view.properties {
            let text = Value::String(name.clone());
            if matcher.as_ref().is_none_or(|matcher| !matcher.is_valid(&text)) {
                continue;
            }
            if let Some(value) = meet(Some(schema), failing) {
                alternatives.push(self.named(name, &value)?);
            }
        }
        Ok(alternatives)
    }

    fn named(&mut self, name: &str, schema: &CanonicalSchema) -> Result<EntryTemplate, TooManyNodes> {
        Ok(EntryTemplate {
            key: EntryName::Fixed(name.to_owned()),
            value: self.schema(schema)?,
            excluded_names: Vec::new(),
        })
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
    let intersection = match own {
        None => other.clone(),
        Some(own) => own.intersect(other).ok()?,
    };
    (!matches!(intersection.view(), CanonicalView::False)).then_some(intersection)
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
