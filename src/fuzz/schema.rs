//! A tool's inputSchema in compiled form: valid instances, the simplest valid arguments, and obviously
//! invalid arguments that a server must reject.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use jsonschema::{
    canonical::{CanonicalSchema, CanonicalizationError, Satisfiability},
    error::ValidationErrorKind,
};
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    compile,
    constraint::{self, Constraint},
    dialect::Dialect,
    expansion,
    generate::ForcedDecision,
    generator::{Class, Domain, GenerationError, Generator},
    hint::{self, Hints},
    instance_path::{self, PathStep},
    limit,
    schema_error::SchemaError,
    source::{Random, Simplest, Source},
    splice,
};
use crate::json_pointer;

/// An obvious mistake that every server can detect.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Dialect, InvalidArguments, Mistake, ToolSchema, ViolationError};
/// use serde_json::json;
///
/// let id = json!({"type": "string", "minLength": 0});
/// let schema = json!({"type": "object", "properties": {"id": id}, "required": ["id"]});
/// let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
/// let InvalidArguments { arguments, pointer, keyword, .. } =
///     schema.with_mistake(Mistake::MissingRequired).expect("a property is required");
/// assert_eq!((arguments, pointer.as_str(), keyword.as_str()), (json!({}), "/id", "required"));
/// // Every string has at least no characters.
/// let pointless = schema.constraints().into_iter().find(|constraint| constraint.to_string().contains("minLength"));
/// let violation = schema.violating(&pointless.expect("it is a constraint"));
/// assert_eq!(violation.err(), Some(ViolationError::NoEffect));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mistake {
    /// A required property is absent.
    MissingRequired,
    /// A property has a JSON type that no server would convert: an object in place of a scalar or an array, a
    /// string in place of an object.
    WrongType,
    /// A property differs from every value listed for it.
    OutsideEnum,
    /// A property is present that the schema forbids.
    ExtraProperty,
}

/// Arguments with one mistake, confirmed by validation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InvalidArguments {
    /// What to send.
    pub arguments: Value,
    /// The JSON pointer of the property that is missing, invalid or extra.
    pub pointer: String,
    /// The keyword by which the schema rejects the arguments.
    pub keyword: String,
}

/// Why there is no instance that violates one constraint and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ViolationError {
    /// The constraint is proven to have no effect: the schema accepts the same instances without it.
    /// Worth reporting to the author of the schema.
    #[error("violate the constraint alone: it has no effect on what the schema accepts")]
    NoEffect,
    /// Without the constraint the schema accepts nothing more, though perhaps less: it is inside a
    /// negation or a `oneOf`.
    #[error("violate the constraint alone: the schema accepts nothing more without it")]
    AdmitsNoMore,
    /// The schema does not contain the constraint, or is not a schema without it.
    #[error("remove the constraint from the schema")]
    NoSuchConstraint,
    /// The schema without the constraint is too large to be compiled.
    #[error("compile the violation of the constraint: too many alternatives")]
    TooLarge,
    /// Nothing was found that violates the constraint alone; there may or may not be an instance.
    #[error("find an instance that violates the constraint alone")]
    NotFound,
}

/// A compiled schema.
///
/// Compiling takes a fraction of a millisecond for most tools; everything else except
/// [`violating`](Self::violating) is faster.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Dialect, Random, ToolSchema};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"n": {"minimum": 3, "type": "integer"}}, "required": ["n"]});
/// let schema = ToolSchema::compile(&schema, Dialect::Draft202012)?;
/// let arguments = schema.generate(&mut Random::new(7)).expect("there are some");
/// assert!(schema.is_valid(&arguments) && arguments["n"].as_i64() >= Some(3));
/// # Ok::<(), mcp_conformance::fuzz::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct ToolSchema {
    schema: Value,
    dialect: Dialect,
    hints: Hints,
    /// The canonical form within the domain.
    canonical: CanonicalSchema,
    valid: Generator,
    /// The depth of the schema.
    depth: usize,
    has_unevaluated: bool,
    /// Whether the canonical form accepts exactly what the schema accepts.
    exact: bool,
    cases: u64,
    instance_paths: OnceLock<HashMap<String, Vec<PathStep>>>,
}

/// How often a whole instance is generated again if validation rejects it.
const MAX_ATTEMPTS: u32 = 8;
/// The same if the difference cannot be compiled and random attempts must find an instance.
const MAX_RANDOM_ATTEMPTS: u32 = 400;
/// Whole schemas with more cases than this are not subtracted from each other.
const MAX_SUBTRACTED_CASES: u64 = 32;
/// Longer enumerations are not subtracted at all.
const MAX_SUBTRACTED_VALUES: usize = 500;

impl ToolSchema {
    /// Compiles a tool's inputSchema, read in the dialect that it declares or in `default`.
    ///
    /// # Errors
    ///
    /// When the schema is not valid in its dialect, refers to something outside itself, or is too
    /// large to be compiled safely. A schema that accepts nothing is not an error here; see
    /// [`minimal`](Self::minimal).
    pub fn compile(schema: &Value, default: Dialect) -> Result<Self, SchemaError> {
        Self::compile_for(schema, default, Domain::Arguments)
    }

    /// Compiles any schema, for instances of `domain`.
    ///
    /// # Errors
    ///
    /// As [`compile`](Self::compile).
    pub fn compile_for(schema: &Value, default: Dialect, domain: Domain) -> Result<Self, SchemaError> {
        let depth = limit::check(schema)?;
        let dialect =
            Dialect::of(schema, default).map_err(|uri| SchemaError::UnknownDialect { uri: uri.to_owned() })?;
        limit::with_stack_for(depth, || Self::compile_in(schema, dialect, domain, depth))?
    }

    fn compile_in(schema: &Value, dialect: Dialect, domain: Domain, depth: usize) -> Result<Self, SchemaError> {
        let validator = compile::validator(schema, dialect).map_err(|error| invalid_schema(&error))?;
        let expansion = expansion::limit_expansion(schema);
        let (simple, variants) = match expansion.variants.split_first() {
            Some((plainest, others)) => (plainest, others),
            None => (schema, [].as_slice()),
        };
        let whole = compile::canonicalize(simple, dialect).map_err(|error| match error {
            CanonicalizationError::ValidationError(error) => invalid_schema(&error),
            CanonicalizationError::ReferenceResolution(error) => unresolved(&error),
            other => SchemaError::Invalid { pointer: String::new(), message: other.to_string() },
        })?;
        let canonical = restrict_to(&whole, dialect, domain);
        let hints = Hints::collect(schema);
        let mut forms = vec![canonical.clone()];
        for variant in variants {
            let form = compile::canonicalize(variant, dialect);
            forms.extend(form.ok().map(|form| restrict_to(&form, dialect, domain)));
        }
        let mut plan = compile::compile(&forms, dialect, &hints)
            .map_err(|_| SchemaError::TooLarge { what: "alternatives", limit: compile::MAX_NODES })?;
        plan.exact &= expansion.variants.is_empty();
        Ok(Self {
            schema: schema.clone(),
            dialect,
            hints,
            canonical,
            valid: Generator {
                plan: Arc::new(plan),
                class: Class::Valid,
                domain,
                passes: Arc::new(validator),
                fails: None,
                attempts: MAX_ATTEMPTS,
            },
            depth,
            has_unevaluated: mentions_unevaluated(schema),
            exact: expansion.variants.is_empty(),
            cases: expansion.cases,
            instance_paths: OnceLock::new(),
        })
    }

    /// The schema as it was given.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The dialect in which the schema is read.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether `instance` satisfies the schema, including formats, and belongs to the domain.
    #[must_use]
    pub fn is_valid(&self, instance: &Value) -> bool {
        self.valid.holds(instance)
    }

    /// Whether the schema is proven to accept nothing.
    #[must_use]
    pub fn is_unsatisfiable(&self) -> bool {
        (self.exact && self.canonical.satisfiability() == Satisfiability::No)
            || self.valid.check_possible() == Err(GenerationError::Unsatisfiable)
    }

    /// The properties of the root whose `default` is a URL on another machine: a server that is called without one of
    /// them connects to it.
    #[must_use]
    pub fn remote_defaults(&self) -> Vec<String> {
        hint::remote_defaults(&self.schema)
    }

    /// The properties of the root whose description quotes values, such as `'Europe/Paris'`, with these values. They
    /// are plausible values, but may not satisfy the schema.
    #[must_use]
    pub fn values_in_descriptions(&self) -> Vec<(String, Vec<Value>)> {
        hint::quoted_in_descriptions(&self.schema)
    }

    /// The generator of valid instances.
    #[must_use]
    pub fn valid(&self) -> &Generator {
        &self.valid
    }

    /// Every constraint that [`violating`](Self::violating) can violate.
    ///
    /// In the domain of arguments, the `type` of the root is left out: arguments that are not an
    /// object violate the protocol before they violate the schema.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        let mut constraints = constraint::constraints(&self.schema);
        if self.valid.domain == Domain::Arguments {
            constraints.retain(|constraint| !(constraint.pointer.is_empty() && constraint.keyword == "type"));
        }
        constraints
    }

    /// The generator of instances that violate `constraint` and nothing else.
    ///
    /// # Errors
    ///
    /// When the constraint has no effect, or nothing was found that violates it alone.
    pub fn violating(&self, constraint: &Constraint) -> Result<Generator, ViolationError> {
        limit::with_stack_for(self.depth, || self.violate_alone(constraint)).map_err(|_| ViolationError::TooLarge)?
    }

    fn violate_alone(&self, constraint: &Constraint) -> Result<Generator, ViolationError> {
        let document =
            constraint::relax(&self.schema, constraint, self.dialect).ok_or(ViolationError::NoSuchConstraint)?;
        let passes = compile::validator(&document, self.dialect).map_err(|_| ViolationError::NoSuchConstraint)?;
        let expansion = expansion::limit_expansion(&document);
        let simple = expansion.variants.first().unwrap_or(&document);
        let exact = self.exact && expansion.variants.is_empty();
        let whole = compile::canonicalize(simple, self.dialect).map_err(|_| ViolationError::NoSuchConstraint)?;
        let relaxed = restrict_to(&whole, self.dialect, self.valid.domain);
        if (exact && relaxed == self.canonical) || self.is_unknown_format(constraint) {
            return Err(ViolationError::NoEffect);
        }
        let mut generator = Generator {
            plan: self.valid.plan.clone(),
            class: Class::Violates(constraint.clone()),
            domain: self.valid.domain,
            passes: Arc::new(passes),
            fails: Some(self.valid.passes.clone()),
            attempts: MAX_ATTEMPTS,
        };
        for alone in [true, false] {
            let Some(local) = self.difference_at(&document, &relaxed, constraint, alone) else {
                continue;
            };
            if local.satisfiability() == Satisfiability::No {
                // `unevaluated*` keywords depend on more than the accepted instances.
                if exact && !self.has_unevaluated {
                    return Err(ViolationError::NoEffect);
                }
                continue;
            }
            let path = &self.instance_paths()[&constraint.pointer];
            let plan = splice::compile_spliced(&relaxed, path, &local, self.dialect, &self.hints);
            if let Ok(plan) = plan {
                generator.plan = Arc::new(plan);
                if generator.generate(&mut Random::new(0)).is_ok() {
                    return Ok(generator);
                }
            }
        }
        // Subtracts every case of one schema from every case of the other.
        let small = self.cases.max(expansion.cases) <= MAX_SUBTRACTED_CASES && !self.is_long_list(constraint);
        let difference = (exact && small).then(|| relaxed.subtract(&self.canonical).ok()).flatten();
        let target = match &difference {
            Some(difference) if difference.satisfiability() == Satisfiability::No => {
                return Err(self.no_more(&relaxed));
            }
            Some(difference) => difference,
            None => {
                generator.attempts = MAX_RANDOM_ATTEMPTS;
                &relaxed
            }
        };
        let plan = compile::compile(std::slice::from_ref(target), self.dialect, &self.hints)
            .map_err(|_| ViolationError::TooLarge)?;
        generator.plan = Arc::new(plan);
        match generator.generate(&mut Random::new(0)) {
            Ok(_) => Ok(generator),
            Err(GenerationError::Unsatisfiable) if difference.is_some() => Err(self.no_more(&relaxed)),
            Err(_) => Err(ViolationError::NotFound),
        }
    }

    /// Whether it has keywords that depend on more than the accepted instances.
    pub(super) fn has_unevaluated(&self) -> bool {
        self.has_unevaluated
    }

    /// The meaning of a relaxed schema that accepts nothing that the schema rejects.
    fn no_more(&self, relaxed: &CanonicalSchema) -> ViolationError {
        match self.canonical.subtract(relaxed) {
            Ok(rest) if rest.satisfiability() == Satisfiability::No => ViolationError::NoEffect,
            _ => ViolationError::AdmitsNoMore,
        }
    }

    /// The difference that `constraint` makes in its subschema: the instances that the subschema accepts without
    /// the constraint and rejects with it, if it applies to a value that can be reached. Subtracts the
    /// constraint `alone`, or the whole subschema.
    fn difference_at(
        &self,
        document: &Value,
        relaxed: &CanonicalSchema,
        constraint: &Constraint,
        alone: bool,
    ) -> Option<CanonicalSchema> {
        if self.is_long_list(constraint) || !self.instance_paths().contains_key(&constraint.pointer) {
            return None;
        }
        let at = |document: &Value| {
            let options = jsonschema::canonical::options()
                .with_draft(self.dialect.draft())
                .should_validate_formats(true)
                .offline();
            let prepared = options.prepare(document).ok()?;
            prepared.canonicalize_at(&constraint.pointer).ok()
        };
        let without = match constraint.pointer.as_str() {
            // At the root nothing smaller can be subtracted than the constraint alone.
            "" if !alone => return None,
            "" => relaxed.clone(),
            _ => at(document)?,
        };
        let with = if alone {
            let lone = constraint::alone(&self.schema, constraint)?;
            compile::canonicalize(&lone, self.dialect).ok()?
        } else {
            at(&self.schema)?
        };
        without.subtract(&with).ok()
    }

    /// Very long enumerations are not subtracted; a value outside them is easily found.
    fn is_long_list(&self, constraint: &Constraint) -> bool {
        let subschema = self.schema.pointer(&constraint.pointer);
        let values = subschema.and_then(|subschema| subschema.get("enum")?.as_array());
        constraint.keyword == "enum" && values.is_some_and(|values| values.len() > MAX_SUBTRACTED_VALUES)
    }

    fn instance_paths(&self) -> &HashMap<String, Vec<PathStep>> {
        self.instance_paths.get_or_init(|| instance_path::instance_paths(&self.schema))
    }

    /// An unknown format asserts nothing.
    fn is_unknown_format(&self, constraint: &Constraint) -> bool {
        let format = || {
            let subschema = self.schema.pointer(&constraint.pointer)?;
            subschema.get("format")?.as_str()
        };
        constraint.keyword == "format"
            && format().is_some_and(|format| !jsonschema::options().is_known_format(self.dialect.draft(), format))
    }

    /// Generates a valid instance from the choices of `source`.
    ///
    /// # Errors
    ///
    /// When the schema accepts nothing, has only unreasonably large instances, or none was found.
    pub fn generate(&self, source: &mut impl Source) -> Result<Value, GenerationError> {
        self.valid.generate(source)
    }

    /// The simplest valid arguments: the required properties and nothing else, with the values that the
    /// schema suggests (`default`, `examples`, `const`, `enum`) before the smallest ones.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate).
    pub fn minimal(&self) -> Result<Value, GenerationError> {
        self.generate(&mut Simplest)
    }

    /// Simple valid arguments with every property that they may have, or `None` if none were found.
    pub(super) fn with_all_properties(&self) -> Option<Value> {
        let forced = vec![(self.valid.plan.object_root(), ForcedDecision::All)];
        self.valid.generate_forced(&mut Simplest, forced).map(|(full, _)| full)
    }

    /// Simple arguments with one mistake of the given kind, or `None` if the schema does not allow
    /// for it.
    #[must_use]
    pub fn with_mistake(&self, mistake: Mistake) -> Option<InvalidArguments> {
        let minimal = self.minimal().ok()?;
        let mut bases = vec![minimal];
        // Arguments with optional properties are the second choice, so that little else is unusual.
        bases.extend(self.with_all_properties());
        bases.iter().find_map(|base| self.make_mistake(base, mistake))
    }

    /// These arguments with one mistake of the given kind; simple ones if it cannot be made in these.
    #[must_use]
    pub fn with_mistake_in(&self, arguments: &Value, mistake: Mistake) -> Option<InvalidArguments> {
        self.make_mistake(arguments, mistake).or_else(|| self.with_mistake(mistake))
    }

    fn make_mistake(&self, base: &Value, mistake: Mistake) -> Option<InvalidArguments> {
        let entries = base.as_object()?;
        let names = || entries.keys();
        match mistake {
            Mistake::MissingRequired => names().find_map(|name| {
                let mut arguments = base.clone();
                arguments.as_object_mut()?.shift_remove(name);
                let pointer = pointer_to(name);
                self.confirm(arguments, pointer, |keyword, at| keyword == "required" && at.is_empty())
            }),
            Mistake::WrongType => {
                let replaced = |name: &str, accept: &dyn Fn(&str) -> bool| {
                    let mut arguments = base.clone();
                    let value = arguments.get_mut(name)?;
                    *value = if value.is_object() { json!("unexpected") } else { json!({"unexpected": true}) };
                    let pointer = pointer_to(name);
                    self.confirm(arguments, pointer.clone(), |keyword, at| accept(keyword) && at == pointer)
                };
                names()
                    .find_map(|name| replaced(name, &|keyword| keyword == "type"))
                    .or_else(|| names().find_map(|name| replaced(name, &|_| true)))
            }
            Mistake::OutsideEnum => names().find_map(|name| {
                ["not-one-of-the-listed-values".into(), json!(-987_654_321)].into_iter().find_map(|value| {
                    let mut arguments = base.clone();
                    *arguments.get_mut(name)? = value;
                    let pointer = pointer_to(name);
                    self.confirm(arguments, pointer.clone(), |keyword, at| {
                        matches!(keyword, "enum" | "const") && at == pointer
                    })
                })
            }),
            Mistake::ExtraProperty => {
                let mut arguments = base.clone();
                let name = "unexpectedProperty";
                arguments.as_object_mut()?.insert(name.to_owned(), Value::Bool(true));
                let pointer = pointer_to(name);
                self.confirm(arguments, pointer.clone(), |keyword, at| {
                    // If no property is declared, `false` itself rejects it.
                    matches!(keyword, "additionalProperties" | "unevaluatedProperties" | "falseSchema")
                        && (at.is_empty() || at == pointer)
                })
            }
        }
    }

    /// Accepts arguments that are invalid for exactly one reason, at the expected path.
    fn confirm(
        &self,
        arguments: Value,
        pointer: String,
        expected: impl Fn(&str, &str) -> bool,
    ) -> Option<InvalidArguments> {
        let keyword = {
            let mut errors = self.valid.passes.iter_errors(&arguments);
            let only = errors.next()?;
            let keyword = only.kind().keyword().to_owned();
            if errors.next().is_some() || !expected(&keyword, only.instance_path().as_str()) {
                return None;
            }
            keyword
        };
        Some(InvalidArguments { arguments, pointer, keyword })
    }
}

/// A schema restricted to a domain.
pub(super) fn restrict_to(canonical: &CanonicalSchema, dialect: Dialect, domain: Domain) -> CanonicalSchema {
    match domain {
        Domain::Any => canonical.clone(),
        Domain::Arguments => compile::canonicalize(&json!({"type": "object"}), dialect)
            .and_then(|objects| canonical.intersect(&objects))
            // What the canonical form cannot express is checked after generation.
            .unwrap_or_else(|_| canonical.clone()),
    }
}

/// Whether a schema uses `unevaluatedProperties` or `unevaluatedItems`.
fn mentions_unevaluated(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => {
            keywords.iter().any(|(keyword, value)| keyword.starts_with("unevaluated") || mentions_unevaluated(value))
        }
        Value::Array(items) => items.iter().any(mentions_unevaluated),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The JSON pointer of a property of the root.
fn pointer_to(name: &str) -> String {
    json_pointer::join("", name)
}

fn invalid_schema(error: &jsonschema::ValidationError<'_>) -> SchemaError {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        return unresolved(error);
    }
    SchemaError::Invalid { pointer: error.instance_path().as_str().to_owned(), message: error.to_string() }
}

fn unresolved(error: &jsonschema::ReferencingError) -> SchemaError {
    match error {
        jsonschema::ReferencingError::Unretrievable { uri, .. } => SchemaError::RemoteReference { uri: uri.clone() },
        other => SchemaError::Invalid { pointer: String::new(), message: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(schema: &Value) -> ToolSchema {
        ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema")
    }

    #[test]
    fn minimal_arguments_have_the_required_properties_and_prefer_suggested_values() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "count": {"type": "integer", "minimum": 1, "default": 10},
                "zone": {"type": "string", "examples": ["Europe/Paris"]},
                "mode": {"enum": ["slow", "fast"]},
                "limit": {"type": "integer", "minimum": 3},
                "verbose": {"type": "boolean"}
            },
            "required": ["path", "count", "zone", "mode", "limit"]
        }));
        assert_eq!(
            schema.minimal(),
            Ok(json!({"path": "", "count": 10, "zone": "Europe/Paris", "mode": "slow", "limit": 3}))
        );
    }

    #[test]
    fn an_invalid_suggestion_is_not_used() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 5, "default": null}},
            "required": ["n"]
        }));
        assert_eq!(schema.minimal(), Ok(json!({"n": 5})));
    }

    #[test]
    fn every_mistake_names_its_property_and_keyword() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "tags": {"type": "array", "items": {"type": "string"}}
            },
            "required": ["name", "mode"],
            "additionalProperties": false
        }));
        let broken = |mistake| {
            let broken = schema.with_mistake(mistake).expect("the schema has a place");
            assert!(!schema.is_valid(&broken.arguments));
            (broken.arguments, broken.pointer, broken.keyword)
        };
        assert_eq!(broken(Mistake::MissingRequired), (json!({"name": ""}), "/mode".into(), "required".into()));
        assert_eq!(
            broken(Mistake::WrongType),
            (json!({"mode": "a", "name": {"unexpected": true}}), "/name".into(), "type".into())
        );
        assert_eq!(broken(Mistake::OutsideEnum).1, "/mode");
        assert_eq!(broken(Mistake::ExtraProperty).2, "additionalProperties");
    }

    #[test]
    fn a_mistake_that_the_schema_accepts_is_not_made() {
        let closed = compile(&json!({"type": "object", "additionalProperties": false}));
        let extra = closed.with_mistake(Mistake::ExtraProperty).expect("nothing is allowed");
        assert_eq!(extra.arguments, json!({"unexpectedProperty": true}));
        let schema = compile(&json!({"type": "object", "properties": {"a": {}}}));
        for mistake in [Mistake::MissingRequired, Mistake::WrongType, Mistake::OutsideEnum, Mistake::ExtraProperty] {
            assert_eq!(schema.with_mistake(mistake), None);
        }
    }

    #[test]
    fn a_remote_reference_is_reported_and_not_fetched() {
        let schema = json!({"$ref": "https://example.com/other.json"});
        let error = ToolSchema::compile(&schema, Dialect::Draft202012).expect_err("remote");
        assert!(matches!(&error, SchemaError::RemoteReference { uri } if uri.contains("example.com")), "{error:?}");
    }

    #[test]
    fn a_contradiction_is_recognised() {
        let schema = compile(&json!({"type": "object", "required": ["a"], "properties": {"a": false}}));
        assert!(schema.is_unsatisfiable());
        assert_eq!(schema.minimal(), Err(GenerationError::Unsatisfiable));
        let text = compile(&json!({"type": "string"}));
        assert_eq!(text.minimal(), Err(GenerationError::Unsatisfiable));
    }

    #[test]
    fn generation_from_a_recursive_schema_ends() {
        let schema = compile(&json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {
                "type": "object",
                "required": ["children"],
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}
            }}
        }));
        assert_eq!(schema.minimal(), Ok(json!({"children": []})));
    }

    #[test]
    fn an_instance_that_is_too_large_is_a_separate_error() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {"a": {"type": "string", "minLength": 1_000_000_000}},
            "required": ["a"]
        }));
        assert_eq!(schema.minimal(), Err(GenerationError::TooLarge));
    }
}
