//! Compiles a canonical schema into a plan.
//!
//! The canonical form has done the hard part: `allOf` is folded, conditionals are unions, and
//! contradictions are removed. This module turns its views into nodes, and intersects schemas where two
//! of them constrain the same value.

use std::{collections::HashMap, sync::Arc};

use jsonschema::{
    JsonType, JsonTypeSet, Validator,
    canonical::{CanonicalSchema, CanonicalView, RawView, StringView},
};
use serde_json::{Number, Value};

use super::{
    dialect::Dialect,
    hint::Hints,
    number::{IntegerSpec, NumberSpec},
    plan::{ArraySpec, EntryName, EntryTemplate, Node, NodeId, ObjectSpec, Plan},
    string::StringSpec,
};

/// The maximum number of nodes of a plan; a larger one is rejected.
pub(super) const MAX_NODES: usize = 20_000;
/// The maximum nesting of views: the depth of the schema itself is limited, but results of
/// intersections and negations may nest further.
const MAX_DEPTH: usize = 256;
/// The maximum length of a generated string.
const MAX_STRING_LENGTH: usize = 65_536;
/// How many keywords are removed from a schema that the canonical form does not model.
const MAX_STRIPPED: usize = 16;

/// Keywords that the canonical form may fail to model, in the order in which they are removed.
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

/// Compiles the union of the given forms; `hints` are the values that the schema's author suggests.
pub(super) fn compile(forms: &[CanonicalSchema], dialect: Dialect, hints: &Hints) -> Result<Plan, TooManyNodes> {
    let mut compiler = Compiler::new(dialect, hints);
    let root = match forms {
        [form] => compiler.compile_with_hints(form)?,
        forms => {
            let mut roots = Vec::with_capacity(forms.len());
            for form in forms {
                // A reference has another meaning in each form.
                compiler.references.clear();
                roots.push(compiler.compile_with_hints(form)?);
            }
            compiler.add(Node::Union(roots))?
        }
    };
    Ok(compiler.finish(root))
}

/// The canonical form of a schema in `dialect`, with formats asserted and nothing fetched.
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

/// The validator of a schema in `dialect`, with formats asserted and nothing fetched.
pub(super) fn validator(schema: &Value, dialect: Dialect) -> Result<Validator, jsonschema::ValidationError<'static>> {
    jsonschema::options().with_draft(dialect.draft()).should_validate_formats(true).offline().build(schema)
}

pub(super) struct Compiler<'h> {
    pub(super) dialect: Dialect,
    hints: &'h Hints,
    /// The current path in an instance, as [`Hints`] write it.
    path: String,
    pub(super) nodes: Vec<Node>,
    references: HashMap<String, NodeId>,
    builtin: HashMap<&'static str, NodeId>,
    depth: usize,
    too_large: bool,
    pub(super) exact: bool,
}

pub(super) type Compiled = Result<NodeId, TooManyNodes>;

impl<'h> Compiler<'h> {
    pub(super) fn new(dialect: Dialect, hints: &'h Hints) -> Self {
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

    pub(super) fn finish(self, root: NodeId) -> Plan {
        Plan::new(self.nodes, root, self.too_large, self.exact)
    }

    pub(super) fn enter(&mut self) -> Result<(), TooManyNodes> {
        if self.depth >= MAX_DEPTH {
            return Err(TooManyNodes);
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn add(&mut self, node: Node) -> Compiled {
        if self.nodes.len() >= MAX_NODES {
            return Err(TooManyNodes);
        }
        let id = u32::try_from(self.nodes.len()).map_err(|_| TooManyNodes)?;
        self.nodes.push(node);
        Ok(NodeId(id))
    }

    /// A node for values that may exist but are not generated.
    pub(super) fn never(&mut self) -> Compiled {
        self.exact = false;
        self.add(Node::Never)
    }

    fn check(&self, schema: &CanonicalSchema) -> Option<Arc<Validator>> {
        let schema = schema.to_json_schema();
        validator(&schema, self.dialect).ok().map(Arc::new)
    }

    /// Compiles a schema at the current path, including the suggestions for that path.
    pub(super) fn compile_with_hints(&mut self, schema: &CanonicalSchema) -> Compiled {
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

    pub(super) fn compile_child(&mut self, step: &str, schema: &CanonicalSchema) -> Compiled {
        let length = self.path.len();
        Hints::descend(&mut self.path, step);
        let node = self.compile_with_hints(schema);
        self.path.truncate(length);
        node
    }

    pub(super) fn schema(&mut self, schema: &CanonicalSchema) -> Compiled {
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
            CanonicalView::Integer(view) => match IntegerSpec::new(&view) {
                Some(whole) => self.add(Node::Integer(Box::new(whole))),
                None => self.never(),
            },
            CanonicalView::Number(view) => match NumberSpec::new(&view) {
                Some(real) => self.add(Node::Number(Box::new(real))),
                None => self.never(),
            },
            CanonicalView::String(view) => self.text(schema, &view),
            CanonicalView::Array(view) => self.array(schema, &view),
            CanonicalView::Object(view) => self.object(schema, &view),
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
            CanonicalView::Not(inner) => self.negation(schema, &inner),
            CanonicalView::Reference(uri) => self.reference(&uri, schema),
            CanonicalView::Raw(view) => self.raw(&view),
        }
    }

    fn branches(&mut self, branches: &[CanonicalSchema]) -> Result<Vec<NodeId>, TooManyNodes> {
        branches.iter().map(|branch| self.schema(branch)).collect()
    }

    pub(super) fn checked(&mut self, candidates: Vec<NodeId>, schema: &CanonicalSchema) -> Compiled {
        match self.check(schema) {
            Some(check) => self.add(Node::Checked { candidates, check }),
            None => self.add(Node::Union(candidates)),
        }
    }

    fn negation(&mut self, schema: &CanonicalSchema, inner: &CanonicalSchema) -> Compiled {
        let CanonicalView::Reference(uri) = inner.view() else {
            return self.opposite(schema, inner);
        };
        // The negation of a recursive schema refers to itself further down.
        let key = format!("not {uri}");
        if let Some(&known) = self.references.get(&key) {
            return Ok(known);
        }
        let id = self.add(Node::Never)?;
        self.references.insert(key, id);
        let opposite = self.opposite(schema, &resolve(inner))?;
        self.nodes[id.index()] = Node::Same(opposite);
        Ok(id)
    }

    /// The computed negation if there is one, and any value, both checked against the schema.
    fn opposite(&mut self, schema: &CanonicalSchema, inner: &CanonicalSchema) -> Compiled {
        let mut candidates = vec![self.anything()?];
        if let Ok(negated) = inner.negate()
            && !matches!(negated.view(), CanonicalView::Not(_))
        {
            candidates.push(self.schema(&negated)?);
        }
        self.checked(candidates, schema)
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

    /// A schema that the canonical form keeps unchanged: generated without the keywords that it cannot
    /// model, and checked against the whole schema.
    fn raw(&mut self, view: &RawView) -> Compiled {
        let Ok(check) = validator(&view.schema, self.dialect) else {
            return self.never();
        };
        self.exact = false;
        let candidate = match supported_part(view, self.dialect) {
            Some(canonical) => self.schema(&canonical)?,
            None => self.anything()?,
        };
        self.add(Node::Checked { candidates: vec![candidate], check: Arc::new(check) })
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

    /// A node of all values of one type. Containers are compiled once; a leaf is compiled for each
    /// place, so that its boundaries are tested in each place.
    pub(super) fn any_of_type(&mut self, name: &'static str) -> Compiled {
        if let Some(&known) = self.builtin.get(name) {
            return Ok(known);
        }
        let id = self.add(Node::Never)?;
        if matches!(name, "array" | "object") {
            self.builtin.insert(name, id);
        }
        let node = match name {
            "string" => Node::String(Box::new(StringSpec::any())),
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
                NumberSpec::new(&view).map_or(Node::Never, |real| Node::Number(Box::new(real)))
            }
            "integer" => {
                let view = jsonschema::canonical::IntegerView {
                    minimum: None,
                    maximum: None,
                    multiple_of: Vec::new(),
                    not_multiple_of: Vec::new(),
                };
                IntegerSpec::new(&view).map_or(Node::Never, |whole| Node::Integer(Box::new(whole)))
            }
            "boolean" => Node::Bool,
            "array" => Node::Array(Box::new(ArraySpec {
                min: 0,
                max: usize::MAX,
                prefix: Vec::new(),
                rest: self.anything()?,
                contains_rules: Vec::new(),
                distinct: false,
                repeated: false,
            })),
            "object" => {
                let key = self.any_of_type("string")?;
                let value = self.anything()?;
                Node::Object(Box::new(ObjectSpec {
                    min: 0,
                    max: usize::MAX,
                    required: Vec::new(),
                    optional: Vec::new(),
                    declared: Vec::new(),
                    templates: vec![EntryTemplate {
                        key: EntryName::Generated(key),
                        value,
                        excluded_names: Vec::new(),
                    }],
                    violations: Vec::new(),
                }))
            }
            _ => Node::Null,
        };
        self.nodes[id.index()] = node;
        Ok(id)
    }

    pub(super) fn anything(&mut self) -> Compiled {
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
        let text = StringSpec::new(view, MAX_STRING_LENGTH, || self.check(schema));
        if let Some(text) = text {
            return self.add(Node::String(Box::new(text)));
        }
        self.too_large = true;
        self.add(Node::Never)
    }
}

/// The canonical form of a schema without the keywords that it cannot model; as few as possible are
/// removed.
pub(super) fn supported_part(view: &RawView, dialect: Dialect) -> Option<CanonicalSchema> {
    let mut schema = view.schema.clone();
    let mut pointer = view.pointer.clone().unwrap_or_default();
    for _ in 0..MAX_STRIPPED {
        if !strip(&mut schema, &pointer) {
            return None;
        }
        let canonical = canonicalize(&schema, dialect).ok()?;
        let CanonicalView::Raw(next) = canonical.view() else {
            return Some(canonical);
        };
        pointer = next.pointer.unwrap_or_default();
    }
    None
}

/// The target of a reference, or the schema itself.
fn resolve(schema: &CanonicalSchema) -> CanonicalSchema {
    if let CanonicalView::Reference(uri) = schema.view()
        && let Some(definition) = schema.definition(&uri)
    {
        return definition;
    }
    schema.clone()
}

pub(super) fn count(number: &Number) -> usize {
    number.as_u64().map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Removes one keyword from the schema at `pointer`, the likeliest obstacle first; or replaces the
/// whole subschema. Returns whether anything changed.
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
    let odd = keywords.iter().find(|(_, value)| bignum(value)).map(|(keyword, _)| keyword.clone());
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
