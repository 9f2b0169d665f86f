//! Compiles a plan for the instances of a schema in which the value at one path matches another schema.
//!
//! The difference between two whole schemas has a branch for each way in which they may differ; the
//! difference between two subschemas, placed at their path, is equivalent and smaller.

use jsonschema::canonical::{ArrayView, CanonicalSchema, CanonicalView, ObjectView};
use serde_json::json;

use super::{
    compile::{Compiled, Compiler, TooManyNodes, canonicalize, supported_part},
    dialect::Dialect,
    hint::Hints,
    instance_path::PathStep,
    plan::{ArraySpec, ContainsRule, EntryName, EntryTemplate, Node, NodeId, ObjectSpec, Plan},
};

/// Compiles the instances of `schema` whose value at the end of `path` also matches `target`.
pub(super) fn compile_spliced(
    schema: &CanonicalSchema,
    path: &[PathStep],
    target: &CanonicalSchema,
    dialect: Dialect,
    hints: &Hints,
) -> Result<Plan, TooManyNodes> {
    let mut splicer = Splicer { compiler: Compiler::new(dialect, hints), target };
    let root = splicer.splice(schema, path)?;
    Ok(splicer.compiler.finish(root))
}

/// Compiles a schema along one path; the compiler does the rest.
struct Splicer<'s> {
    compiler: Compiler<'s>,
    target: &'s CanonicalSchema,
}

impl Splicer<'_> {
    /// Compiles `schema` so that the value at the end of `path` also matches the target.
    fn splice(&mut self, schema: &CanonicalSchema, path: &[PathStep]) -> Compiled {
        let Some((step, rest)) = path.split_first() else {
            return match schema.intersect(self.target) {
                Ok(intersection) => self.compiler.compile_with_hints(&intersection),
                Err(_) => self.compiler.compile_with_hints(self.target),
            };
        };
        self.compiler.enter()?;
        let node = match schema.view() {
            CanonicalView::Reference(uri) => match schema.definition(&uri) {
                Some(definition) => self.splice(&definition, path),
                None => self.compiler.never(),
            },
            CanonicalView::AnyOf(branches) => {
                let nodes = self.splice_each(&branches, path)?;
                self.compiler.add(Node::Union(nodes))
            }
            CanonicalView::OneOf(branches) | CanonicalView::AllOf(branches) => {
                let nodes = self.splice_each(&branches, path)?;
                self.compiler.checked(nodes, schema)
            }
            CanonicalView::Object(view) => self.splice_object(schema, &view, step, rest),
            CanonicalView::Array(view) => self.splice_array(schema, &view, step, rest),
            CanonicalView::True | CanonicalView::MultiType(_) => {
                let kind = match step {
                    PathStep::Name(_) | PathStep::Pattern(_) | PathStep::Entry => "object",
                    PathStep::Slot(_) | PathStep::Item => "array",
                };
                let container = json!({"type": kind, "minProperties": 1, "minItems": 1});
                match canonicalize(&container, self.compiler.dialect).and_then(|it| it.intersect(schema)) {
                    Ok(intersection)
                        if matches!(intersection.view(), CanonicalView::Object(_) | CanonicalView::Array(_)) =>
                    {
                        self.splice(&intersection, path)
                    }
                    _ => self.compiler.never(),
                }
            }
            CanonicalView::TypedGroup(_)
            | CanonicalView::String(_)
            | CanonicalView::Integer(_)
            | CanonicalView::Number(_)
            | CanonicalView::Const(_)
            | CanonicalView::Enum(_)
            | CanonicalView::Not(_)
            | CanonicalView::False => self.compiler.never(),
            CanonicalView::Raw(view) => match supported_part(&view, self.compiler.dialect) {
                Some(canonical) => self.splice(&canonical, path),
                None => self.compiler.never(),
            },
        };
        self.compiler.leave();
        node
    }

    fn splice_each(&mut self, branches: &[CanonicalSchema], path: &[PathStep]) -> Result<Vec<NodeId>, TooManyNodes> {
        branches.iter().map(|branch| self.splice(branch, path)).collect()
    }

    /// Continues along the path where the schema may say nothing about the value.
    fn splice_child(&mut self, child: Option<&CanonicalSchema>, rest: &[PathStep]) -> Compiled {
        match child {
            Some(child) => self.splice(child, rest),
            None if rest.is_empty() => self.compiler.compile_with_hints(self.target),
            None => {
                let anything = canonicalize(&json!(true), self.compiler.dialect);
                match anything {
                    Ok(anything) => self.splice(&anything, rest),
                    Err(_) => self.compiler.never(),
                }
            }
        }
    }

    fn splice_object(
        &mut self,
        schema: &CanonicalSchema,
        view: &ObjectView,
        step: &PathStep,
        rest: &[PathStep],
    ) -> Compiled {
        let child = match step {
            PathStep::Name(name) => view.properties.get(name).or(view.additional_properties.as_ref()).cloned(),
            PathStep::Pattern(pattern) => {
                view.pattern_properties.get(pattern).or(view.additional_properties.as_ref()).cloned()
            }
            PathStep::Entry => view.additional_properties.clone(),
            PathStep::Slot(_) | PathStep::Item => return self.compiler.never(),
        };
        let names = view.property_names.clone();
        let whole = self.compiler.object(schema, view)?;
        let value = self.splice_child(child.as_ref(), rest)?;
        let pattern_name = match step {
            PathStep::Pattern(pattern) => Some(self.compiler.key(Some(pattern), names.as_ref())?),
            _ => None,
        };
        let Some(object) = self.object_of(whole) else {
            return self.compiler.never();
        };
        if let PathStep::Name(name) = step {
            object.required.retain(|(known, _)| known != name);
            object.optional.retain(|(known, _)| known != name);
            object.required.push((name.clone(), value));
            return Ok(whole);
        }
        // Without a pattern any undeclared name will do, as for other entries.
        let template = match (pattern_name, object.templates.first().cloned()) {
            (Some(key), _) => EntryTemplate { key: EntryName::Generated(key), value, excluded_names: Vec::new() },
            (None, Some(first)) => EntryTemplate { value, ..first },
            (None, None) => return self.compiler.never(),
        };
        object.violations.push(vec![template]);
        Ok(whole)
    }

    fn splice_array(
        &mut self,
        schema: &CanonicalSchema,
        view: &ArrayView,
        step: &PathStep,
        rest: &[PathStep],
    ) -> Compiled {
        let child = match step {
            PathStep::Slot(position) => view.prefix_items.get(*position).or(view.items.as_ref()),
            PathStep::Item => view.items.as_ref(),
            PathStep::Name(_) | PathStep::Pattern(_) | PathStep::Entry => return self.compiler.never(),
        }
        .cloned();
        let whole = self.compiler.array(schema, view)?;
        let value = self.splice_child(child.as_ref(), rest)?;
        let elsewhere = self.compiler.add(Node::Never)?;
        let Some(array) = self.array_of(whole) else {
            return self.compiler.never();
        };
        match step {
            PathStep::Slot(position) if *position < array.prefix.len() => {
                array.prefix[*position] = value;
                array.min = array.min.max(position + 1);
            }
            _ => array.contains_rules.push(ContainsRule {
                min: 1,
                prefix: vec![elsewhere; array.prefix.len()],
                rest: value,
            }),
        }
        Ok(whole)
    }

    fn object_of(&mut self, id: NodeId) -> Option<&mut ObjectSpec> {
        let id = self.unchecked(id);
        match &mut self.compiler.nodes[id.index()] {
            Node::Object(object) => Some(object),
            _ => None,
        }
    }

    fn array_of(&mut self, id: NodeId) -> Option<&mut ArraySpec> {
        let id = self.unchecked(id);
        match &mut self.compiler.nodes[id.index()] {
            Node::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The node inside a check.
    fn unchecked(&self, id: NodeId) -> NodeId {
        match &self.compiler.nodes[id.index()] {
            Node::Checked { candidates, .. } => candidates.first().copied().unwrap_or(id),
            _ => id,
        }
    }
}
