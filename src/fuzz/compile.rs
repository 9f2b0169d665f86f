//! From a canonical schema to a plan.
//!
//! The canonical form has done the hard part: `allOf` is folded, conditionals are unions, and what
//! contradicts itself is gone. This walk turns its views into nodes and asks its algebra where two
//! demands meet on one value.

use std::{collections::HashMap, sync::Arc};

use jsonschema::{
    JsonType, JsonTypeSet, Validator,
    canonical::{
        ArrayView, CanonicalSchema, CanonicalView, Distinctness, ObjectView, ObjectViolationView,
        RawView, StringView,
    },
};
use serde_json::{Number, Value, json};

use super::{
    dialect::Dialect,
    hint::Hints,
    number::{Real, Whole},
    plan::{Array, Demand, Key, Node, NodeId, Object, Plan, Wild},
    reach::Step,
    text::Text,
};

/// A plan of more nodes is refused.
pub(super) const NODES: usize = 20_000;
/// Nesting of views beyond which the walk stops: the schema's own depth is bounded, but algebra
/// may nest its results further.
const DEPTH: usize = 256;
/// No string longer than this is generated.
const LONGEST: usize = 65_536;
/// How many keywords are taken away from a schema that the canonical form does not model.
const STRIPPED: usize = 16;

/// Keywords that the canonical form may fail to model, in the order in which they are given up.
const UNMODELLED: [&str; 12] = [
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
    "dependencies",
    "not",
    "if",
    "multipleOf",
    "oneOf",
];

/// Why a canonical schema has no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyNodes;

/// Compiles a canonical schema; `hints` are the values that its author suggests.
pub(super) fn compile(
    schema: &CanonicalSchema,
    dialect: Dialect,
    hints: &Hints,
) -> Result<Plan, TooManyNodes> {
    let mut compiler = Compiler::new(dialect, hints);
    let root = compiler.place(schema)?;
    Ok(compiler.finish(root))
}

/// Compiles the instances of `schema` whose value at the end of `way` lies in `target` as well.
pub(super) fn compile_spliced(
    schema: &CanonicalSchema,
    way: &[Step],
    target: &CanonicalSchema,
    dialect: Dialect,
    hints: &Hints,
) -> Result<Plan, TooManyNodes> {
    let mut compiler = Compiler::new(dialect, hints);
    let root = compiler.splice(schema, way, target)?;
    Ok(compiler.finish(root))
}

/// The canonical form of a schema in `dialect`, formats asserted and nothing fetched.
pub(super) fn canonicalize(
    schema: &Value,
    dialect: Dialect,
) -> Result<CanonicalSchema, jsonschema::canonical::CanonicalizationError> {
    jsonschema::canonical::options()
        .with_draft(dialect.draft())
        .should_validate_formats(true)
        .offline()
        .canonicalize(schema)
}

/// The validator of a schema in `dialect`, formats asserted and nothing fetched.
pub(super) fn validator(
    schema: &Value,
    dialect: Dialect,
) -> Result<Validator, jsonschema::ValidationError<'static>> {
    jsonschema::options()
        .with_draft(dialect.draft())
        .should_validate_formats(true)
        .offline()
        .build(schema)
}

pub(super) struct Compiler<'h> {
    pub(super) dialect: Dialect,
    hints: &'h Hints,
    /// Where in an instance the walk is, as [`Hints`] write it.
    path: String,
    pub(super) nodes: Vec<Node>,
    references: HashMap<String, NodeId>,
    builtin: HashMap<&'static str, NodeId>,
    depth: usize,
    too_large: bool,
    exact: bool,
}

pub(super) type Compiled = Result<NodeId, TooManyNodes>;

impl<'h> Compiler<'h> {
    fn new(dialect: Dialect, hints: &'h Hints) -> Self {
        Self {
            dialect,
            hints,
            path: String::new(),
            nodes: Vec::new(),
            references: HashMap::new(),
            builtin: HashMap::new(),
            depth: 0,
            too_large: false,
            exact: true,
        }
    }

    fn finish(self, root: NodeId) -> Plan {
        Plan::new(self.nodes, root, self.too_large, self.exact)
    }

    pub(super) fn enter(&mut self) -> Result<(), TooManyNodes> {
        if self.depth >= DEPTH {
            return Err(TooManyNodes);
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn add(&mut self, node: Node) -> Compiled {
        if self.nodes.len() >= NODES {
            return Err(TooManyNodes);
        }
        let id = u32::try_from(self.nodes.len()).map_err(|_| TooManyNodes)?;
        self.nodes.push(node);
        Ok(NodeId(id))
    }

    /// A node for what may exist but is not generated.
    pub(super) fn never(&mut self) -> Compiled {
        self.exact = false;
        self.add(Node::Never)
    }

    fn check(&self, schema: &CanonicalSchema) -> Option<Arc<Validator>> {
        let schema = schema.to_json_schema();
        validator(&schema, self.dialect).ok().map(Arc::new)
    }

    /// Compiles a schema at the current path, with the suggestions for that path.
    pub(super) fn place(&mut self, schema: &CanonicalSchema) -> Compiled {
        let node = self.schema(schema)?;
        let Some(suggested) = self.hints.at(&self.path) else {
            return Ok(node);
        };
        let Some(check) = self.check(schema) else {
            return Ok(node);
        };
        let mut values: Vec<Value> = Vec::new();
        for value in suggested {
            if check.is_valid(value) && !values.contains(value) {
                values.push(value.clone());
            }
        }
        if values.is_empty() {
            return Ok(node);
        }
        self.add(Node::Suggested { values, node })
    }

    fn place_at(&mut self, step: &str, schema: &CanonicalSchema) -> Compiled {
        let length = self.path.len();
        Hints::descend(&mut self.path, step);
        let node = self.place(schema);
        self.path.truncate(length);
        node
    }

    fn schema(&mut self, schema: &CanonicalSchema) -> Compiled {
        self.enter()?;
        let node = self.view(schema);
        self.leave();
        node
    }

    fn view(&mut self, schema: &CanonicalSchema) -> Compiled {
        match schema.view() {
            CanonicalView::True => self.anything(),
            CanonicalView::False => self.add(Node::Never),
            CanonicalView::Const(value) => self.add(Node::Values(vec![value])),
            CanonicalView::Enum(values) => self.add(Node::Values(values)),
            CanonicalView::MultiType(types) => self.types(types),
            CanonicalView::Integer(view) => match Whole::new(&view) {
                Some(whole) => self.add(Node::Whole(Box::new(whole))),
                None => self.never(),
            },
            CanonicalView::Number(view) => match Real::new(&view) {
                Some(real) => self.add(Node::Real(Box::new(real))),
                None => self.never(),
            },
            CanonicalView::String(view) => self.text(schema, &view),
            CanonicalView::Array(view) => self.array(schema, view),
            CanonicalView::Object(view) => self.object(schema, view),
            CanonicalView::AnyOf(branches) => {
                let nodes = self.branches(&branches)?;
                self.add(Node::Union(nodes))
            }
            CanonicalView::OneOf(branches) | CanonicalView::AllOf(branches) => {
                let nodes = self.branches(&branches)?;
                self.checked(nodes, schema)
            }
            CanonicalView::TypedGroup(group) => {
                let node = self.schema(&group.body)?;
                self.checked(vec![node], schema)
            }
            CanonicalView::Not(inner) => {
                let mut candidates = vec![self.anything()?];
                if let Ok(negated) = self.resolve(&inner).negate()
                    && !matches!(negated.view(), CanonicalView::Not(_))
                {
                    candidates.push(self.schema(&negated)?);
                }
                self.checked(candidates, schema)
            }
            CanonicalView::Reference(uri) => self.reference(&uri, schema),
            CanonicalView::Raw(view) => self.raw(&view),
        }
    }

    fn branches(&mut self, branches: &[CanonicalSchema]) -> Result<Vec<NodeId>, TooManyNodes> {
        branches.iter().map(|branch| self.schema(branch)).collect()
    }

    pub(super) fn checked(
        &mut self,
        candidates: Vec<NodeId>,
        schema: &CanonicalSchema,
    ) -> Compiled {
        match self.check(schema) {
            Some(check) => self.add(Node::Checked { candidates, check }),
            None => self.add(Node::Union(candidates)),
        }
    }

    fn resolve(&self, schema: &CanonicalSchema) -> CanonicalSchema {
        match schema.view() {
            CanonicalView::Reference(uri) => {
                schema.definition(&uri).unwrap_or_else(|| schema.clone())
            }
            _ => schema.clone(),
        }
    }

    fn reference(&mut self, uri: &str, schema: &CanonicalSchema) -> Compiled {
        if let Some(&known) = self.references.get(uri) {
            return Ok(known);
        }
        let id = self.add(Node::Never)?;
        self.references.insert(uri.to_owned(), id);
        if let Some(target) = schema.definition(uri) {
            let target = self.schema(&target)?;
            self.nodes[id.index()] = Node::Same(target);
        }
        Ok(id)
    }

    /// A schema that the canonical form keeps as it stands: what is left when the keywords that
    /// stopped it are taken away, checked against all of it.
    fn raw(&mut self, view: &RawView) -> Compiled {
        let Ok(check) = validator(&view.schema, self.dialect) else {
            return self.never();
        };
        self.exact = false;
        let mut schema = view.schema.clone();
        let mut pointer = view.pointer.clone().unwrap_or_default();
        let mut candidates = Vec::new();
        for _ in 0..STRIPPED {
            if !strip(&mut schema, &pointer) {
                break;
            }
            match canonicalize(&schema, self.dialect) {
                Ok(canonical) => match canonical.view() {
                    CanonicalView::Raw(next) => pointer = next.pointer.unwrap_or_default(),
                    _ => {
                        candidates.push(self.schema(&canonical)?);
                        break;
                    }
                },
                Err(_) => break,
            }
        }
        if candidates.is_empty() {
            candidates.push(self.anything()?);
        }
        self.add(Node::Checked {
            candidates,
            check: Arc::new(check),
        })
    }

    fn types(&mut self, types: JsonTypeSet) -> Compiled {
        let names = [
            (JsonType::String, "string"),
            (JsonType::Number, "number"),
            (JsonType::Integer, "integer"),
            (JsonType::Boolean, "boolean"),
            (JsonType::Array, "array"),
            (JsonType::Object, "object"),
            (JsonType::Null, "null"),
        ];
        let mut nodes = Vec::new();
        for (kind, name) in names {
            if types.contains(kind) {
                nodes.push(self.any_of_type(name)?);
            }
        }
        match nodes[..] {
            [node] => Ok(node),
            _ => self.add(Node::Union(nodes)),
        }
    }

    /// A node of all values of one type. Those that lead to others are made once; a leaf is made
    /// for each place, so that each place has its boundaries tried.
    fn any_of_type(&mut self, name: &'static str) -> Compiled {
        if let Some(&known) = self.builtin.get(name) {
            return Ok(known);
        }
        let id = self.add(Node::Never)?;
        if matches!(name, "array" | "object") {
            self.builtin.insert(name, id);
        }
        let node = match name {
            "string" => Node::Text(Box::new(Text::any())),
            "number" => {
                let view = jsonschema::canonical::NumberView {
                    minimum: None,
                    exclusive_minimum: false,
                    maximum: None,
                    exclusive_maximum: false,
                    multiple_of: Vec::new(),
                    not_multiple_of: Vec::new(),
                    excludes_integers: false,
                };
                Real::new(&view).map_or(Node::Never, |real| Node::Real(Box::new(real)))
            }
            "integer" => {
                let view = jsonschema::canonical::IntegerView {
                    minimum: None,
                    maximum: None,
                    multiple_of: Vec::new(),
                    not_multiple_of: Vec::new(),
                };
                Whole::new(&view).map_or(Node::Never, |whole| Node::Whole(Box::new(whole)))
            }
            "boolean" => Node::Bool,
            "array" => Node::Array(Box::new(Array {
                min: 0,
                max: usize::MAX,
                prefix: Vec::new(),
                rest: self.anything()?,
                demands: Vec::new(),
                distinct: false,
                repeated: false,
            })),
            "object" => {
                let key = self.any_of_type("string")?;
                let value = self.anything()?;
                Node::Object(Box::new(Object {
                    min: 0,
                    max: usize::MAX,
                    required: Vec::new(),
                    optional: Vec::new(),
                    declared: Vec::new(),
                    wild: vec![Wild {
                        key: Key::Drawn(key),
                        value,
                        avoid: Vec::new(),
                    }],
                    violations: Vec::new(),
                }))
            }
            _ => Node::Null,
        };
        self.nodes[id.index()] = node;
        Ok(id)
    }

    fn anything(&mut self) -> Compiled {
        if let Some(&known) = self.builtin.get("anything") {
            return Ok(known);
        }
        let id = self.add(Node::Never)?;
        self.builtin.insert("anything", id);
        let mut nodes = Vec::new();
        for name in ["string", "number", "boolean", "null", "array", "object"] {
            nodes.push(self.any_of_type(name)?);
        }
        self.nodes[id.index()] = Node::Union(nodes);
        Ok(id)
    }

    fn text(&mut self, schema: &CanonicalSchema, view: &StringView) -> Compiled {
        let text = Text::new(view, LONGEST, || self.check(schema));
        if let Some(text) = text {
            return self.add(Node::Text(Box::new(text)));
        }
        self.too_large = true;
        self.add(Node::Never)
    }

    pub(super) fn array(&mut self, schema: &CanonicalSchema, view: ArrayView) -> Compiled {
        let mut fillers = view.items.clone();
        let mut approximate = false;
        let mut filled_prefix = view.prefix_items.clone();
        // Where a match is counted, what is not meant to match must not match by chance.
        for counted in view.contains.iter().filter(|c| c.max_contains.is_some()) {
            let Ok(outside) = counted.schema.negate() else {
                approximate = true;
                continue;
            };
            fillers = match &fillers {
                None => Some(outside.clone()),
                Some(items) => Some(items.intersect(&outside).unwrap_or_else(|_| {
                    approximate = true;
                    items.clone()
                })),
            };
            for slot in &mut filled_prefix {
                match slot.intersect(&outside) {
                    Ok(narrowed) if !matches!(narrowed.view(), CanonicalView::False) => {
                        *slot = narrowed;
                    }
                    _ => approximate = true,
                }
            }
        }
        let mut prefix = Vec::with_capacity(filled_prefix.len());
        for (position, slot) in filled_prefix.iter().enumerate() {
            prefix.push(self.place_at(&position.to_string(), slot)?);
        }
        let rest = match &fillers {
            Some(items) => self.place_at(Hints::ITEMS, items)?,
            None => self.anything()?,
        };
        let mut demands = Vec::new();
        let mut met: Option<CanonicalSchema> = None;
        for contains in &view.contains {
            let min = contains.min_contains.as_ref().map_or(1, count);
            // One element may answer several demands; asking for it saves room under `maxItems`.
            let together = met
                .as_ref()
                .and_then(|met| met.intersect(&contains.schema).ok());
            let together = together.filter(|both| !matches!(both.view(), CanonicalView::False));
            if let (Some(both), true, Some(last)) = (together, min == 1, demands.last_mut()) {
                *last = self.demand(&view, &both, 1)?;
                met = Some(both);
                continue;
            }
            demands.push(self.demand(&view, &contains.schema, min)?);
            met = (min == 1 && contains.max_contains.is_none()).then(|| contains.schema.clone());
        }
        let array = Array {
            min: view.min_items.as_ref().map_or(0, count),
            max: view.max_items.as_ref().map_or(usize::MAX, count),
            prefix,
            rest,
            demands,
            distinct: view.distinctness == Distinctness::AllDistinct,
            repeated: view.distinctness == Distinctness::SomeRepeated,
        };
        approximate |= array.repeated || array.demands.len() > 1;
        self.exact &= !approximate;
        let node = self.add(Node::Array(Box::new(array)))?;
        if approximate {
            return self.checked(vec![node], schema);
        }
        Ok(node)
    }

    fn demand(
        &mut self,
        view: &ArrayView,
        wanted: &CanonicalSchema,
        min: usize,
    ) -> Result<Demand, TooManyNodes> {
        let meet =
            |slot: &CanonicalSchema| slot.intersect(wanted).unwrap_or_else(|_| wanted.clone());
        let mut prefix = Vec::with_capacity(view.prefix_items.len());
        for slot in &view.prefix_items {
            prefix.push(self.schema(&meet(slot))?);
        }
        let rest = match &view.items {
            Some(items) => self.schema(&meet(items))?,
            None => self.schema(wanted)?,
        };
        Ok(Demand { min, prefix, rest })
    }

    pub(super) fn object(&mut self, schema: &CanonicalSchema, view: ObjectView) -> Compiled {
        let patterns: Vec<(&str, &CanonicalSchema, Option<Arc<Validator>>)> = view
            .pattern_properties
            .iter()
            .map(|(pattern, schema)| {
                let matcher = validator(&json!({"pattern": pattern}), self.dialect);
                (pattern.as_str(), schema, matcher.ok().map(Arc::new))
            })
            .collect();
        let mut approximate = false;
        // The schema of a named entry: its own, or the undeclared one, and of every pattern.
        let mut schema_of = |name: &str| -> Option<CanonicalSchema> {
            let mut met = view.properties.get(name).cloned();
            let text = Value::String(name.to_owned());
            for (_, schema, matcher) in &patterns {
                if matcher
                    .as_ref()
                    .is_none_or(|matcher| !matcher.is_valid(&text))
                {
                    continue;
                }
                met = Some(match met {
                    None => (*schema).clone(),
                    Some(own) => own.intersect(schema).unwrap_or_else(|_| {
                        approximate = true;
                        own.clone()
                    }),
                });
            }
            met.or_else(|| view.additional_properties.clone())
        };
        let mut required = Vec::new();
        for name in &view.required {
            required.push((name.clone(), schema_of(name)));
        }
        let mut optional = Vec::new();
        for name in view.properties.keys() {
            if !view.required.contains(name) {
                optional.push((name.clone(), schema_of(name)));
            }
        }
        let mut declared: Vec<String> = view.properties.keys().cloned().collect();
        declared.extend(
            view.required
                .iter()
                .filter(|name| !view.properties.contains_key(*name))
                .cloned(),
        );
        let matchers: Vec<Arc<Validator>> = patterns
            .iter()
            .filter_map(|(_, _, matcher)| matcher.clone())
            .collect();
        let required = self.entries(required)?;
        let optional = self.entries(optional)?;
        let mut wild = Vec::new();
        let additional = match &view.additional_properties {
            Some(schema) => self.place_at(Hints::ENTRIES, schema)?,
            None => self.anything()?,
        };
        let name = view.property_names.as_ref();
        // Names that are listed may all be declared: then there is no other entry.
        let listed = match name.map(CanonicalSchema::view) {
            Some(CanonicalView::Enum(names)) => Some(names),
            Some(CanonicalView::Const(name)) => Some(vec![name]),
            _ => None,
        };
        let key = match listed {
            None => self.key(None, name)?,
            Some(mut names) => {
                let is_declared = |name: &Value| declared.iter().any(|known| name == known);
                names.retain(|name| !is_declared(name));
                self.add(Node::Values(names))?
            }
        };
        wild.push(Wild {
            key: Key::Drawn(key),
            value: additional,
            avoid: matchers.clone(),
        });
        for (pattern, schema, own) in &patterns {
            let others = patterns
                .iter()
                .filter_map(|(_, _, matcher)| matcher.clone());
            let is_own = |matcher: &Arc<Validator>| {
                own.as_ref().is_some_and(|own| Arc::ptr_eq(own, matcher))
            };
            wild.push(Wild {
                key: Key::Drawn(self.key(Some(pattern), name)?),
                value: self.schema(schema)?,
                avoid: others.filter(|matcher| !is_own(matcher)).collect(),
            });
        }
        let mut violations = Vec::new();
        for violation in &view.violations {
            violations.push(self.violation(&view, violation, &matchers)?);
        }
        approximate |= !violations.is_empty();
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

    /// Names that match `pattern` and the schema of names.
    pub(super) fn key(
        &mut self,
        pattern: Option<&str>,
        names: Option<&CanonicalSchema>,
    ) -> Compiled {
        let Some(pattern) = pattern else {
            return match names {
                Some(names) => self.schema(names),
                None => self.any_of_type("string"),
            };
        };
        let schema = json!({"type": "string", "pattern": pattern});
        let Ok(matching) = canonicalize(&schema, self.dialect) else {
            return self.never();
        };
        let met = names.and_then(|names| names.intersect(&matching).ok());
        self.schema(&met.unwrap_or(matching))
    }

    /// The ways to break one rule about names or undeclared entries.
    fn violation(
        &mut self,
        view: &ObjectView,
        violation: &ObjectViolationView,
        matchers: &[Arc<Validator>],
    ) -> Result<Vec<Wild>, TooManyNodes> {
        let mut ways = Vec::new();
        let undeclared = view.additional_properties.as_ref();
        let names = view.property_names.as_ref();
        match violation {
            ObjectViolationView::NameFails(schema) => {
                let Some(failing) = failing_name(schema, names, self.dialect) else {
                    return Ok(ways);
                };
                let key = self.schema(&failing)?;
                let value = match undeclared {
                    Some(schema) => self.schema(schema)?,
                    None => self.anything()?,
                };
                ways.push(Wild {
                    key: Key::Drawn(key),
                    value,
                    avoid: matchers.to_vec(),
                });
                let check = validator(&failing.to_json_schema(), self.dialect).ok();
                for (name, schema) in &view.properties {
                    let text = Value::String(name.clone());
                    if check.as_ref().is_some_and(|check| check.is_valid(&text)) {
                        ways.push(Wild {
                            key: Key::Named(name.clone()),
                            value: self.schema(schema)?,
                            avoid: Vec::new(),
                        });
                    }
                }
                for (pattern, schema) in &view.pattern_properties {
                    let pattern = json!({"type": "string", "pattern": pattern});
                    let matching = canonicalize(&pattern, self.dialect).ok();
                    let met = matching.and_then(|matching| matching.intersect(&failing).ok());
                    if let Some(met) = met {
                        ways.push(Wild {
                            key: Key::Drawn(self.schema(&met)?),
                            value: self.schema(schema)?,
                            avoid: Vec::new(),
                        });
                    }
                }
            }
            ObjectViolationView::UndeclaredValueFails {
                names: listed,
                patterns,
                additional,
            } => {
                let Ok(failing) = additional.negate() else {
                    return Ok(ways);
                };
                let mut avoid = matchers.to_vec();
                let mut barred = Vec::new();
                for pattern in patterns {
                    barred.extend(
                        validator(&json!({"pattern": pattern}), self.dialect)
                            .ok()
                            .map(Arc::new),
                    );
                }
                let listed_check = validator(&json!({"enum": listed}), self.dialect).ok();
                avoid.extend(barred.iter().cloned());
                avoid.extend(listed_check.map(Arc::new));
                let key = self.key(None, names)?;
                if let Some(value) = meet(undeclared, &failing) {
                    ways.push(Wild {
                        key: Key::Drawn(key),
                        value: self.schema(&value)?,
                        avoid,
                    });
                }
                for (name, schema) in &view.properties {
                    let text = Value::String(name.clone());
                    let is_barred = barred.iter().any(|pattern| pattern.is_valid(&text));
                    if listed.contains(name) || is_barred {
                        continue;
                    }
                    if let Some(value) = meet(Some(schema), &failing) {
                        ways.push(Wild {
                            key: Key::Named(name.clone()),
                            value: self.schema(&value)?,
                            avoid: Vec::new(),
                        });
                    }
                }
                for (pattern, schema) in &view.pattern_properties {
                    if let (false, Some(value)) =
                        (patterns.contains(pattern), meet(Some(schema), &failing))
                    {
                        ways.push(Wild {
                            key: Key::Drawn(self.key(Some(pattern), names)?),
                            value: self.schema(&value)?,
                            avoid: barred.clone(),
                        });
                    }
                }
            }
            ObjectViolationView::PatternValueFails { pattern, schema } => {
                let Ok(failing) = schema.negate() else {
                    return Ok(ways);
                };
                let own = view.pattern_properties.get(pattern).or(undeclared);
                if let Some(value) = meet(own, &failing) {
                    ways.push(Wild {
                        key: Key::Drawn(self.key(Some(pattern), names)?),
                        value: self.schema(&value)?,
                        avoid: Vec::new(),
                    });
                }
                let matcher = validator(&json!({"pattern": pattern}), self.dialect).ok();
                for (name, schema) in &view.properties {
                    let text = Value::String(name.clone());
                    let matches = matcher.as_ref().is_some_and(|m| m.is_valid(&text));
                    if let (true, Some(value)) = (matches, meet(Some(schema), &failing)) {
                        ways.push(Wild {
                            key: Key::Named(name.clone()),
                            value: self.schema(&value)?,
                            avoid: Vec::new(),
                        });
                    }
                }
            }
        }
        Ok(ways)
    }
}

/// What both schemas admit, if the algebra can say it and there is anything.
fn meet(own: Option<&CanonicalSchema>, other: &CanonicalSchema) -> Option<CanonicalSchema> {
    let met = match own {
        None => other.clone(),
        Some(own) => own.intersect(other).ok()?,
    };
    (!matches!(met.view(), CanonicalView::False)).then_some(met)
}

/// The names that fail `schema` and satisfy `names`.
fn failing_name(
    schema: &CanonicalSchema,
    names: Option<&CanonicalSchema>,
    dialect: Dialect,
) -> Option<CanonicalSchema> {
    let texts = canonicalize(&json!({"type": "string"}), dialect).ok()?;
    let failing = texts.subtract(schema).ok()?;
    meet(names, &failing)
}

fn count(number: &Number) -> usize {
    number.as_u64().map_or(usize::MAX, |count| {
        usize::try_from(count).unwrap_or(usize::MAX)
    })
}

/// Takes one keyword away from the schema at `pointer`, the likeliest culprit first; or replaces
/// the whole subschema. Says whether anything changed.
fn strip(schema: &mut Value, pointer: &str) -> bool {
    let Some(place) = schema.pointer_mut(pointer) else {
        return false;
    };
    let Some(keywords) = place.as_object_mut() else {
        return false;
    };
    for keyword in UNMODELLED {
        if keywords.shift_remove(keyword).is_some() {
            return true;
        }
    }
    let bignum = |value: &Value| value.is_number() && value.as_i64().is_none();
    let odd = keywords
        .iter()
        .find(|(_, value)| bignum(value))
        .map(|(keyword, _)| keyword.clone());
    if let Some(keyword) = odd {
        keywords.shift_remove(&keyword);
        return true;
    }
    if pointer.is_empty() || keywords.is_empty() {
        return false;
    }
    *place = Value::Bool(true);
    true
}
