//! The compiled form of a schema: an arena of nodes, each with the size of its smallest instance.
//!
//! References are edges, so a recursive schema is a graph that is never unrolled. The smallest sizes are
//! a least fixed point; a node without one has no instance, and no alternative leads to it. Choosing the
//! smallest alternative strictly decreases that size, so generation always ends.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use super::{
    number::{IntegerSpec, NumberSpec},
    string::StringSpec,
};

/// The size of a node without an instance, or without one within bounds.
pub(super) const INFINITE: u64 = u64::MAX;
/// The maximum number of values in an instance.
pub(super) const MAX_SIZE: u64 = 50_000;

/// An index into the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What one node generates.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Nothing.
    Never,
    Null,
    Bool,
    Integer(Box<IntegerSpec>),
    Number(Box<NumberSpec>),
    String(Box<StringSpec>),
    Array(Box<ArraySpec>),
    Object(Box<ObjectSpec>),
    /// One of the listed values.
    Values(Vec<Value>),
    /// One of the alternatives, the smallest first.
    Union(Vec<NodeId>),
    /// The values of one of the candidates that `check` accepts.
    Checked {
        candidates: Vec<NodeId>,
        check: Arc<Validator>,
    },
    /// Values that the schema's author suggests, or those of `node`.
    Suggested {
        values: Vec<Value>,
        node: NodeId,
    },
    /// The same as another node: a reference.
    Same(NodeId),
}

/// The arrays of one node.
#[derive(Debug, Clone)]
pub(super) struct ArraySpec {
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) prefix: Vec<NodeId>,
    pub(super) rest: NodeId,
    pub(super) contains_rules: Vec<ContainsRule>,
    pub(super) distinct: bool,
    /// Some two elements must be equal.
    pub(super) repeated: bool,
}

/// A number of elements that must match one `contains`.
#[derive(Debug, Clone)]
pub(super) struct ContainsRule {
    pub(super) min: usize,
    /// By position: prefix items that must match as well.
    pub(super) prefix: Vec<NodeId>,
    pub(super) rest: NodeId,
}

/// The objects of one node.
#[derive(Debug, Clone)]
pub(super) struct ObjectSpec {
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) required: Vec<(String, NodeId)>,
    pub(super) optional: Vec<(String, NodeId)>,
    /// Every name with a schema of its own, whether it is allowed or not.
    pub(super) declared: Vec<String>,
    pub(super) templates: Vec<EntryTemplate>,
    /// Of each list of alternatives, one entry must be present.
    pub(super) violations: Vec<Vec<EntryTemplate>>,
}

/// A template for entries.
#[derive(Debug, Clone)]
pub(super) struct EntryTemplate {
    pub(super) key: EntryName,
    pub(super) value: NodeId,
    /// Names that match one of these are not generated.
    pub(super) excluded_names: Vec<Arc<Validator>>,
}

/// The name of an entry: fixed or generated.
#[derive(Debug, Clone)]
pub(super) enum EntryName {
    Fixed(String),
    Generated(NodeId),
}

/// A compiled schema, without lifetimes, shareable between threads.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) sizes: Vec<u64>,
    pub(super) root: NodeId,
    /// Something needs more characters or elements than are ever generated.
    pub(super) too_large: bool,
    /// Whether a plan without instances proves that the schema has none.
    pub(super) exact: bool,
}

impl Plan {
    /// Whether the template generates any undeclared name.
    pub(super) fn takes_any_name(&self, template: &EntryTemplate) -> bool {
        let EntryName::Generated(key) = &template.key else { return false };
        template.excluded_names.is_empty()
            && matches!(self.node(*key), Node::String(text) if text.is_free() && text.min() == 0)
    }

    /// Completes an arena: computes the smallest sizes and sorts the alternatives by them.
    pub(super) fn new(nodes: Vec<Node>, root: NodeId, too_large: bool, exact: bool) -> Self {
        let mut plan = Self { sizes: vec![INFINITE; nodes.len()], nodes, root, too_large, exact };
        plan.find_sizes();
        let sizes = std::mem::take(&mut plan.sizes);
        for node in &mut plan.nodes {
            match node {
                Node::Union(nodes) | Node::Checked { candidates: nodes, .. } => {
                    nodes.retain(|node| sizes[node.index()] <= MAX_SIZE);
                    nodes.sort_by_key(|node| sizes[node.index()]);
                }
                Node::Object(object) => {
                    let possible = |node: &NodeId| sizes[node.index()] <= MAX_SIZE;
                    object.optional.retain(|(_, node)| possible(node));
                    object.templates.retain(|template| {
                        possible(&template.value)
                            && match &template.key {
                                EntryName::Fixed(_) => true,
                                EntryName::Generated(key) => possible(key),
                            }
                    });
                    for alternatives in &mut object.violations {
                        alternatives.retain(|template| possible(&template.value));
                        alternatives.sort_by_key(|template| sizes[template.value.index()]);
                    }
                }
                _ => {}
            }
        }
        plan.too_large |= (MAX_SIZE..INFINITE).contains(&sizes[plan.root.index()]);
        plan.sizes = sizes;
        plan
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The root without nodes that only lead to it: references, suggestions and checks.
    pub(super) fn object_root(&self) -> NodeId {
        let mut id = self.root;
        for _ in 0..self.nodes.len() {
            id = match self.node(id) {
                Node::Same(node) | Node::Suggested { node, .. } => *node,
                Node::Checked { candidates, .. } | Node::Union(candidates) => match candidates.first() {
                    Some(&node) => node,
                    None => return id,
                },
                _ => return id,
            };
        }
        id
    }

    /// The number of values in the smallest instance of a node.
    pub(super) fn size(&self, id: NodeId) -> u64 {
        self.sizes[id.index()]
    }

    pub(super) fn is_possible(&self, id: NodeId) -> bool {
        self.size(id) <= MAX_SIZE
    }

    fn find_sizes(&mut self) {
        // Children mostly follow their parents, so a backward pass settles a tree at once.
        loop {
            let mut changed = false;
            for index in (0..self.nodes.len()).rev() {
                let size = self.measure(&self.nodes[index]);
                if size < self.sizes[index] {
                    self.sizes[index] = size;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn measure(&self, node: &Node) -> u64 {
        let size = |id: &NodeId| self.sizes[id.index()];
        let smallest = |ids: &[NodeId]| ids.iter().map(size).min().unwrap_or(INFINITE);
        match node {
            Node::Never => INFINITE,
            Node::Values(values) if values.is_empty() => INFINITE,
            Node::Null | Node::Bool | Node::Integer(_) | Node::Number(_) | Node::Values(_) => 1,
            Node::String(text) => 1 + text.min() as u64 / 64,
            Node::Union(nodes) | Node::Checked { candidates: nodes, .. } => smallest(nodes).saturating_add(1),
            Node::Suggested { node, .. } | Node::Same(node) => size(node).saturating_add(1),
            Node::Array(array) => self.measure_array(array),
            Node::Object(object) => self.measure_object(object),
        }
    }

    fn measure_array(&self, array: &ArraySpec) -> u64 {
        let size = |id: &NodeId| self.sizes[id.index()];
        let mut total = 1_u64;
        for slot in array.prefix.iter().take(array.min) {
            total = total.saturating_add(size(slot));
        }
        let rest = array.min.saturating_sub(array.prefix.len());
        if rest > 0 {
            total = total.saturating_add(times(size(&array.rest), rest));
        }
        for rule in array.contains_rules.iter().filter(|rule| rule.min > 0) {
            let match_size = rule.prefix.iter().chain([&rule.rest]).map(size).min().unwrap_or(INFINITE);
            total = total.saturating_add(times(match_size, rule.min));
        }
        total
    }

    fn measure_object(&self, object: &ObjectSpec) -> u64 {
        let size = |id: &NodeId| self.sizes[id.index()];
        let mut total = 1_u64;
        for (_, node) in &object.required {
            total = total.saturating_add(size(node));
        }
        for alternatives in &object.violations {
            let smallest = alternatives.iter().map(|template| size(&template.value)).min();
            total = total.saturating_add(smallest.unwrap_or(INFINITE));
        }
        let missing = object.min.saturating_sub(object.required.len());
        if missing > 0 {
            let smallest = object.templates.iter().map(|template| size(&template.value)).min();
            let mut optional: Vec<u64> = object.optional.iter().map(|(_, node)| size(node)).collect();
            optional.sort_unstable();
            for taken in 0..missing {
                let next = optional.get(taken).copied().unwrap_or(INFINITE);
                total = total.saturating_add(next.min(smallest.unwrap_or(INFINITE)));
                if total > MAX_SIZE {
                    break;
                }
            }
        }
        total
    }
}

/// The size of `count` elements: large, but infinite only if one element is.
fn times(size: u64, count: usize) -> u64 {
    match size {
        INFINITE => INFINITE,
        size => size.saturating_mul(count as u64).min(INFINITE / 2),
    }
}
