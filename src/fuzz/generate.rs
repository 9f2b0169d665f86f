//! Generates a value from a plan and a source of choices.

use serde_json::{Map, Value};

use super::{
    plan::{ArraySpec, EntryName, EntryTemplate, Node, NodeId, ObjectSpec, Plan},
    source::{EnumeratedChoices, Source},
    string,
};

/// Below this depth only the smallest alternatives are chosen.
const SMALLEST_ONLY_DEPTH: u32 = 12;
/// The maximum depth of a value: few parsers read deeper ones, and the stack of the calling thread may be small. It
/// also ends the search for values that exist at no depth.
const MAX_DEPTH: u32 = 120;
/// After this many values only the smallest alternatives are chosen.
const SMALLEST_ONLY_VALUES: u32 = 4_000;
/// After this many values generation fails: retries inside retries must end.
const MAX_VALUES: u32 = 400_000;
/// How often a value that fails a local check is generated again.
const MAX_ATTEMPTS: u32 = 12;
/// How many simple values are tried in order after that.
const MAX_ENUMERATED: u64 = 64;

/// One generation: the plan, the source of choices and the used budget.
pub(super) struct Generation<'p, S> {
    plan: &'p Plan,
    source: &'p mut S,
    generated: u32,
    max_values: u32,
    /// Forced decisions, each at the first visit of its node only: forcing every visit would make a
    /// recursive schema as deep as possible.
    forced: Vec<(NodeId, ForcedDecision)>,
}

/// A decision that a coverage goal forces at a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForcedDecision {
    /// This alternative of a union, value of an enumeration or edge of a number.
    Alternative(usize),
    /// The length of a string or array.
    Length(usize),
    /// Only the optional entries at these positions are present.
    Present(Vec<usize>),
    /// Every optional entry is present.
    All,
    /// An undeclared entry, from this template and with this name of the unusual ones.
    Extra(usize, usize),
    /// One of the strings that combine many special characters.
    Composite(usize),
    /// The author's suggestion is not used.
    IgnoreSuggestion,
}

impl<'p, S: Source> Generation<'p, S> {
    pub(super) fn new(plan: &'p Plan, source: &'p mut S) -> Self {
        Self::forcing(plan, source, Vec::new())
    }

    /// A generation with forced decisions; the last one is the goal, the others lead to it.
    pub(super) fn forcing(plan: &'p Plan, source: &'p mut S, forced: Vec<(NodeId, ForcedDecision)>) -> Self {
        Self { plan, source, generated: 0, max_values: MAX_VALUES, forced }
    }

    /// The same, but it fails after so many values.
    pub(super) fn within(self, max_values: u32) -> Self {
        Self { max_values: max_values.min(MAX_VALUES), ..self }
    }

    /// How many values were generated, including rejected ones.
    pub(super) fn generated(&self) -> u32 {
        self.generated
    }

    /// Whether every forced decision was made.
    pub(super) fn all_decisions_made(&self) -> bool {
        self.forced.is_empty()
    }

    /// A value of the root, or `None` if local checks rejected every attempt.
    pub(super) fn root(&mut self) -> Option<Value> {
        if !self.plan.is_possible(self.plan.root) {
            return None;
        }
        self.value(self.plan.root, 0)
    }

    fn force(&mut self, id: NodeId) -> Option<ForcedDecision> {
        if self.forced.is_empty() {
            return None;
        }
        let at = self.forced.iter().position(|(node, _)| *node == id)?;
        Some(self.forced.remove(at).1)
    }

    fn is_tight(&self, depth: u32) -> bool {
        depth >= SMALLEST_ONLY_DEPTH || self.generated >= SMALLEST_ONLY_VALUES
    }

    fn value(&mut self, id: NodeId, depth: u32) -> Option<Value> {
        self.source.begin(id.0.into());
        let value = self.value_of(id, depth);
        self.source.end();
        value
    }

    fn value_of(&mut self, id: NodeId, depth: u32) -> Option<Value> {
        self.generated += 1;
        if self.generated > self.max_values || depth > MAX_DEPTH {
            return None;
        }
        let plan = self.plan;
        match plan.node(id) {
            Node::Never => None,
            Node::Null => Some(Value::Null),
            Node::Bool => {
                let chosen = match self.force(id) {
                    Some(ForcedDecision::Alternative(chosen)) => chosen == 1,
                    _ => self.source.below(2) == 1,
                };
                Some(Value::Bool(chosen))
            }
            Node::Integer(whole) => match self.force(id) {
                Some(ForcedDecision::Alternative(edge)) => whole.edges().nth(edge),
                _ => Some(whole.draw(self.source)),
            },
            Node::Number(real) => match self.force(id) {
                Some(ForcedDecision::Alternative(edge)) => real.edges().into_iter().nth(edge),
                _ => real.draw(self.source),
            },
            Node::String(text) => match self.force(id) {
                Some(ForcedDecision::Length(length)) => text.draw_within(self.source, length, length),
                Some(ForcedDecision::Composite(chosen)) => text.composite(chosen),
                _ => text.draw(self.source),
            }
            .map(Value::String),
            Node::Values(values) => {
                let chosen = match self.force(id) {
                    Some(ForcedDecision::Alternative(chosen)) => chosen,
                    _ => self.source.index(values.len()),
                };
                values.get(chosen).cloned()
            }
            Node::Union(nodes) => {
                let chosen = match self.force(id) {
                    Some(ForcedDecision::Alternative(chosen)) => chosen,
                    _ if self.is_tight(depth) => 0,
                    _ => self.source.index(nodes.len()),
                };
                self.value(*nodes.get(chosen)?, depth)
            }
            Node::Same(node) => self.value(*node, depth),
            Node::Suggested { values, node } => {
                let own = match self.force(id) {
                    Some(ForcedDecision::IgnoreSuggestion) => true,
                    Some(ForcedDecision::Alternative(chosen)) => return values.get(chosen).cloned(),
                    _ => self.source.below(4) > 0,
                };
                if own {
                    return self.value(*node, depth);
                }
                values.get(self.source.index(values.len())).cloned()
            }
            Node::Checked { candidates, check } => {
                for _ in 0..MAX_ATTEMPTS {
                    let forced = self.forced.clone();
                    let chosen = match self.force(id) {
                        Some(ForcedDecision::Alternative(chosen)) => chosen,
                        _ if self.is_tight(depth) => 0,
                        _ => self.source.index(candidates.len()),
                    };
                    let value = self.value(*candidates.get(chosen)?, depth)?;
                    if check.is_valid(&value) {
                        return Some(value);
                    }
                    // The decisions that a rejected value used are forced again.
                    self.forced = forced;
                }
                self.enumerate(candidates, depth, |value| check.is_valid(value))
            }
            Node::Array(array) => self.array(id, array, depth),
            Node::Object(object) => self.object(id, object, depth),
        }
    }

    /// The simplest of the first few values of `candidates` in order that `passes`.
    fn enumerate(&mut self, candidates: &[NodeId], depth: u32, passes: impl Fn(&Value) -> bool) -> Option<Value> {
        for counter in 0..MAX_ENUMERATED {
            let mut choices = EnumeratedChoices::new(counter);
            let chosen = choices.index(candidates.len());
            let mut inner = Generation::new(self.plan, &mut choices).within(self.max_values);
            inner.generated = self.generated;
            let value = inner.value(*candidates.get(chosen)?, depth);
            self.generated = inner.generated;
            if let Some(value) = value.filter(|value| passes(value)) {
                return Some(value);
            }
            if self.generated > self.max_values {
                return None;
            }
        }
        None
    }

    fn array(&mut self, id: NodeId, array: &ArraySpec, depth: u32) -> Option<Value> {
        let forced = self.force(id);
        let slots = self.contains_slots(array)?;
        let needed = slots.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
        let mut min = array.min.max(needed);
        if array.repeated {
            min = min.max(2);
        }
        let mut open = array.max;
        if let Some(end) = array.prefix.iter().position(|slot| !self.plan.is_possible(*slot)) {
            open = open.min(end);
        } else if !self.plan.is_possible(array.rest) {
            open = open.min(array.prefix.len());
        }
        if min > open {
            return None;
        }
        let length = match forced {
            Some(ForcedDecision::Length(length)) => length.clamp(min, open),
            _ if self.is_tight(depth) => min,
            _ => min + self.extra_length(open - min),
        };
        let mut items: Vec<Value> = Vec::with_capacity(length);
        for position in 0..length {
            let rule = slots.iter().find(|(slot, _)| *slot == position);
            let node = rule.map_or_else(|| array.slot(position), |(_, node)| *node);
            let mut item = self.value(node, depth + 1)?;
            if array.distinct && items.contains(&item) {
                let fresh = |value: &Value| !items.contains(value);
                item = self.enumerate(&[node], depth + 1, fresh)?;
            }
            items.push(item);
        }
        if array.repeated && !has_equal_pair(&items) {
            // The last two elements are the likeliest to share a schema; the final check decides.
            let last = items.len() - 1;
            items[last] = items[last - 1].clone();
        }
        Some(Value::Array(items))
    }

    fn extra_length(&mut self, room: usize) -> usize {
        match self.source.below(8) {
            0..=5 => self.source.index(room.min(3) + 1),
            6 => self.source.index(room.min(12) + 1),
            _ if room <= 64 => room,
            _ => self.source.index(33),
        }
    }

    /// The positions of the elements that must match a `contains`.
    fn contains_slots(&self, array: &ArraySpec) -> Option<Vec<(usize, NodeId)>> {
        let mut slots: Vec<(usize, NodeId)> = Vec::new();
        for rule in &array.contains_rules {
            let mut missing = rule.min;
            let mut position = 0;
            while missing > 0 {
                let node = rule.prefix.get(position).copied().unwrap_or(rule.rest);
                let taken = slots.iter().any(|(slot, _)| *slot == position);
                if !taken && self.plan.is_possible(node) {
                    slots.push((position, node));
                    missing -= 1;
                } else if position >= rule.prefix.len() && !taken {
                    return None;
                }
                position += 1;
                if position > array.max {
                    return None;
                }
            }
        }
        Some(slots)
    }

    fn object(&mut self, id: NodeId, object: &ObjectSpec, depth: u32) -> Option<Value> {
        let forced = self.force(id);
        // Reserve room for a small number of entries: growing the map later costs more than this saves.
        let mut entries = Map::with_capacity(object.required.len() + object.optional.len().min(8));
        for (name, node) in &object.required {
            entries.insert(name.clone(), self.value(*node, depth + 1)?);
        }
        for alternatives in &object.violations {
            self.violation(object, alternatives, &mut entries, depth)?;
        }
        let tight = self.is_tight(depth);
        let mode = match &forced {
            Some(ForcedDecision::All) => 1,
            Some(_) => 0,
            None if tight || object.optional.is_empty() => 0,
            None => self.source.below(4),
        };
        for (rank, (name, node)) in object.optional.iter().enumerate() {
            let wanted = match mode {
                0 => matches!(&forced, Some(ForcedDecision::Present(ranks)) if ranks.contains(&rank)),
                1 => true,
                _ => self.source.below(2) == 1,
            };
            let room = entries.len() < object.max && !self.is_tight(depth);
            if wanted && room && !entries.contains_key(name) {
                match self.value(*node, depth + 1) {
                    Some(value) => {
                        entries.insert(name.clone(), value);
                    }
                    // An entry that fails its checks is left out, unless it was forced.
                    None if forced.is_some() => return None,
                    None => {}
                }
            }
        }
        if let Some(ForcedDecision::Extra(chosen, name)) = forced {
            let template = object.templates.get(chosen)?;
            match string::unusual_name(name).filter(|_| name > 0) {
                Some(name) if entries.contains_key(name) => return None,
                Some(name) => {
                    let value = self.value(template.value, depth + 1)?;
                    entries.insert(name.to_owned(), value);
                }
                None => self.insert_from_template(object, template, &mut entries, depth)?,
            }
        } else if !tight && !object.templates.is_empty() && self.source.one_in(16) {
            let template = &object.templates[self.source.index(object.templates.len())];
            if entries.len() < object.max {
                self.insert_from_template(object, template, &mut entries, depth);
            }
        }
        self.fill(object, &mut entries, depth)?;
        Some(Value::Object(entries))
    }

    /// Adds entries until there are as many as the schema requires.
    fn fill(&mut self, object: &ObjectSpec, entries: &mut Map<String, Value>, depth: u32) -> Option<()> {
        let mut optional = object.optional.iter();
        let mut failures = 0;
        while entries.len() < object.min {
            if let Some((name, node)) = optional.next() {
                if !entries.contains_key(name)
                    && let Some(value) = self.value(*node, depth + 1)
                {
                    entries.insert(name.clone(), value);
                }
                continue;
            }
            if object.templates.is_empty() || failures > 8 {
                return None;
            }
            let template = &object.templates[self.source.index(object.templates.len())];
            if self.insert_from_template(object, template, entries, depth).is_none() {
                failures += 1;
            }
        }
        Some(())
    }

    fn violation(
        &mut self,
        object: &ObjectSpec,
        alternatives: &[EntryTemplate],
        entries: &mut Map<String, Value>,
        depth: u32,
    ) -> Option<()> {
        let first = self.source.index(alternatives.len());
        let order = (first..alternatives.len()).chain(0..first);
        for chosen in order {
            let template = &alternatives[chosen];
            if self.insert_from_template(object, template, entries, depth).is_some() {
                return Some(());
            }
        }
        None
    }

    fn insert_from_template(
        &mut self,
        object: &ObjectSpec,
        template: &EntryTemplate,
        entries: &mut Map<String, Value>,
        depth: u32,
    ) -> Option<()> {
        let key = match &template.key {
            EntryName::Fixed(name) => name.clone(),
            EntryName::Generated(node) => {
                let is_free = |key: &str| {
                    !entries.contains_key(key)
                        && !object.declared.iter().any(|name| name == key)
                        && !template.excluded_names.iter().any(|taken| taken.is_valid(&Value::String(key.to_owned())))
                };
                self.key(*node, is_free, depth)?
            }
        };
        let value = self.value(template.value, depth + 1)?;
        entries.insert(key, value);
        Some(())
    }

    fn key(&mut self, node: NodeId, is_free: impl Fn(&str) -> bool, depth: u32) -> Option<String> {
        for attempt in 0..4 {
            let drawn = match self.plan.node(node) {
                Node::String(text) if text.is_free() && attempt < 2 => string::key(self.source, text.min()),
                _ => match self.value(node, depth + 1)? {
                    Value::String(text) => text,
                    _ => return None,
                },
            };
            if is_free(&drawn) {
                return Some(drawn);
            }
        }
        let free = |value: &Value| value.as_str().is_some_and(&is_free);
        match self.enumerate(&[node], depth + 1, free)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl ArraySpec {
    /// The node for the element at a position.
    pub(super) fn slot(&self, position: usize) -> NodeId {
        self.prefix.get(position).copied().unwrap_or(self.rest)
    }
}

fn has_equal_pair(items: &[Value]) -> bool {
    items.iter().enumerate().any(|(position, item)| items[..position].contains(item))
}
