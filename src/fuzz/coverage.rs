//! Coverage goals: both sides of every boundary and every branch of a schema.
//!
//! An [`CoverageGoal`] is one decision at one node: this value of an enumeration, this branch, this
//! length, this entry present. It is covered by forcing that decision and those that lead to it, with
//! the simplest choices elsewhere. Decisions are forced at the first visit of a node only, so that a
//! recursive schema is not generated as deep as possible.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::{
    generate::ForcedDecision,
    generator::{Class, Generator},
    plan::{ArraySpec, Node, NodeId, ObjectSpec},
    source::{Random, Simplest},
    string::UNUSUAL_NAMES_TRIED,
};
use crate::json_pointer::{self, InstanceStep, instance_steps};

/// How many goals one generator has at most.
const MAX_GOALS: usize = 4_096;
/// How many values of one enumeration are tried.
const MAX_VALUES_PER_ENUM: usize = 64;
/// How many entries take part in pairwise combinations, and how many alternatives of each.
const PAIRWISE_LIMITS: (usize, usize) = (24, 6);
/// How many random completions are tried if the simplest one is rejected.
const MAX_COMPLETIONS: u64 = 8;

const PRESENT: &str = "present";

type Decisions = Vec<(NodeId, ForcedDecision)>;

/// A coverage goal: one decision that an instance should make.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{CoverageGoal, Dialect, GenerationError, ToolSchema};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 10}}});
/// let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
/// let goals: Vec<CoverageGoal> = schema.valid().coverage_goals();
/// let sizes: Vec<_> = goals.iter().filter(|goal| goal.path() == "/size").collect();
/// let reached = sizes.iter().filter_map(|goal| schema.valid().cover(goal)).map(|arguments| arguments["size"].clone());
/// assert!(reached.clone().any(|size| size == 1) && reached.clone().any(|size| size == 10));
///
/// // Nothing can be covered where nothing is valid.
/// let nothing = json!({"type": "object", "properties": {"size": false}, "required": ["size"]});
/// let nothing = ToolSchema::compile(&nothing, Dialect::Draft202012).expect("a usable schema");
/// assert_eq!(nothing.minimal(), Err(GenerationError::Unsatisfiable));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageGoal {
    place: String,
    description: String,
    decisions: Decisions,
    /// How many decisions it covers: one, several for a bundle, none for a pairwise combination.
    bundled: usize,
}

impl CoverageGoal {
    /// The path of the decision in an instance, as a JSON pointer in which `*` is any element or entry.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.place
    }

    /// How many decisions it covers: one, several for a bundle, none for a pairwise combination.
    #[must_use]
    pub fn decision_count(&self) -> usize {
        self.bundled
    }

    /// The decision as text: `length 3`, `branch 2`, `present`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl Generator {
    /// Every decision of the class: each value, branch, bound, length and entry, in breadth-first order
    /// from the root.
    #[must_use]
    pub fn coverage_goals(&self) -> Vec<CoverageGoal> {
        let mut collector =
            GoalCollector { generator: self, goals: Vec::new(), seen: HashSet::new(), pending: VecDeque::new() };
        if self.check_possible().is_ok() {
            collector.visit(self.plan.root, Decisions::new(), String::new());
        }
        collector.goals
    }

    /// The decisions of [`coverage_goals`](Self::coverage_goals) in few bundles: one instance covers decisions about
    /// different properties of the root. About half of the properties take part in each bundle, so that the effects
    /// of one property do not always hide those of the others.
    #[must_use]
    pub fn bundled_goals(&self) -> Vec<CoverageGoal> {
        let goals = self.coverage_goals();
        let root = self.plan.object_root();
        let Node::Object(object) = self.plan.node(root) else { return goals };
        let prefix = self.decisions_to_object();
        let required = object.required.iter().map(|(name, _)| (name, None));
        let optional = object.optional.iter().enumerate().map(|(rank, (name, _))| (name, Some(rank)));
        let mut properties: Vec<(Option<usize>, VecDeque<CoverageGoal>)> = Vec::new();
        let mut rest = goals;
        for (name, rank) in required.chain(optional) {
            let place = json_pointer::join("", name);
            let inside = format!("{place}/");
            let is_own = |one: &CoverageGoal| {
                one.decisions.len() > prefix.len() && (one.place == place || one.place.starts_with(&inside))
            };
            let (own, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_own);
            rest = others;
            properties.push((rank, own.into()));
        }
        let mut bundles = rest;
        for round in 0.. {
            let longest = properties.iter().map(|(_, own)| own.len()).max().unwrap_or(0);
            if longest == 0 {
                break;
            }
            let (mut decisions, mut descriptions, mut ranks) = (prefix.clone(), Vec::new(), Vec::new());
            let mut further_decisions = Decisions::new();
            for (at, (rank, own)) in properties.iter_mut().enumerate() {
                // The property with the most decisions left always takes part, which keeps the number of bundles small.
                if rank.is_some() && own.len() < longest && (round + at) % 2 == 1 {
                    continue;
                }
                let Some(one) = own.pop_front() else { continue };
                ranks.extend(*rank);
                further_decisions
                    .extend(one.decisions[prefix.len()..].iter().filter(|(node, _)| *node != root).cloned());
                descriptions.push(format!("{} {}", one.place, one.description));
            }
            decisions.push((root, ForcedDecision::Present(ranks)));
            decisions.append(&mut further_decisions);
            bundles.push(CoverageGoal {
                place: String::new(),
                bundled: descriptions.len(),
                description: descriptions.join(", "),
                decisions,
            });
        }
        bundles
    }

    /// The decisions at the place that a class of invalid instances violates: which wrong type, on which side of the
    /// bound, and so on. Empty for a class of valid instances.
    #[must_use]
    pub fn violation_goals(&self) -> Vec<CoverageGoal> {
        let Class::Violates(constraint) = &self.class else { return Vec::new() };
        let mut place = String::new();
        let mut steps = instance_steps(&constraint.pointer);
        while let Some(step) = steps.next() {
            match step {
                InstanceStep::Member(token) => place = format!("{place}/{token}"),
                InstanceStep::Item if steps.next().is_none() => place.push_str("/*"),
                InstanceStep::Item | InstanceStep::Other => return Vec::new(),
            }
        }
        let mut goals = self.coverage_goals();
        goals.retain(|goal| goal.place == place && goal.description != PRESENT);
        goals
    }

    /// Pairwise combinations: any two decisions about different properties of the root occur together in
    /// one of them, as far as the class allows.
    #[must_use]
    pub fn pairwise_goals(&self) -> Vec<CoverageGoal> {
        if self.check_possible().is_err() {
            return Vec::new();
        }
        let root = self.plan.object_root();
        let Node::Object(object) = self.plan.node(root) else {
            return Vec::new();
        };
        let prefix = self.decisions_to_object();
        let goals = self.coverage_goals();
        let mut factors: Vec<Factor> = Vec::new();
        let entries = object
            .required
            .iter()
            .map(|(name, _)| (name, None))
            .chain(object.optional.iter().enumerate().map(|(rank, (name, _))| (name, Some(rank))));
        for (name, rank) in entries.take(PAIRWISE_LIMITS.0) {
            let place = json_pointer::join("", name);
            let mut levels: Vec<Level> = Vec::new();
            if rank.is_some() {
                levels.push(Level { rank: None, decisions: Decisions::new(), description: format!("{place} absent") });
            }
            let own = goals.iter().filter(|goal| goal.place == place && goal.decisions.len() > prefix.len());
            for goal in own.take(PAIRWISE_LIMITS.1) {
                let decisions = goal.decisions[prefix.len()..].iter();
                levels.push(Level {
                    rank,
                    decisions: decisions.filter(|(node, _)| *node != root).cloned().collect(),
                    description: format!("{place} {}", goal.description),
                });
            }
            if levels.len() > usize::from(rank.is_some()) {
                factors.push(Factor { levels });
            }
        }
        let rows = rows(&factors);
        rows.into_iter()
            .map(|row| {
                let mut decisions = prefix.clone();
                let chosen = |(factor, level): (&Factor, &usize)| factor.levels[*level].rank;
                let ranks = factors.iter().zip(&row).filter_map(chosen).collect();
                decisions.push((root, ForcedDecision::Present(ranks)));
                let mut descriptions = Vec::new();
                for (factor, level) in factors.iter().zip(&row) {
                    decisions.extend(factor.levels[*level].decisions.iter().cloned());
                    descriptions.push(factor.levels[*level].description.clone());
                }
                CoverageGoal { place: String::new(), description: descriptions.join(", "), decisions, bundled: 0 }
            })
            .collect()
    }

    /// The simplest instance found that makes the decision, or `None` if none was found: the decision may
    /// be impossible in combination with those that lead to it.
    #[must_use]
    pub fn cover(&self, goal: &CoverageGoal) -> Option<Value> {
        let taken = |(value, reached): (Value, bool)| reached.then_some(value);
        self.generate_forced(&mut Simplest, goal.decisions.clone()).and_then(taken).or_else(|| {
            (0..MAX_COMPLETIONS)
                .find_map(|seed| self.generate_forced(&mut Random::new(seed), goal.decisions.clone()).and_then(taken))
        })
    }

    /// The decisions that lead from the root of the plan to the object that it describes.
    fn decisions_to_object(&self) -> Decisions {
        let mut decisions = Decisions::new();
        let mut id = self.plan.root;
        while id != self.plan.object_root() {
            id = match self.plan.node(id) {
                Node::Same(node) => *node,
                Node::Suggested { node, .. } => {
                    decisions.push((id, ForcedDecision::IgnoreSuggestion));
                    *node
                }
                Node::Union(nodes) | Node::Checked { candidates: nodes, .. } => {
                    decisions.push((id, ForcedDecision::Alternative(0)));
                    match nodes.first() {
                        Some(node) => *node,
                        None => return decisions,
                    }
                }
                _ => return decisions,
            };
        }
        decisions
    }
}

/// A property of the root with the alternatives for it.
struct Factor {
    levels: Vec<Level>,
}

struct Level {
    rank: Option<usize>,
    decisions: Decisions,
    description: String,
}

/// Rows with one level of each factor that together contain every pair of levels of different factors.
///
/// Greedy: each row starts from a pair that is still missing and takes for every other factor the
/// level that completes the most missing pairs.
fn rows(factors: &[Factor]) -> Vec<Vec<usize>> {
    let mut missing = HashSet::new();
    let mut order = Vec::new();
    for (left, factor) in factors.iter().enumerate() {
        for (right, other) in factors.iter().enumerate().skip(left + 1) {
            for level in 0..factor.levels.len() {
                for counterpart in 0..other.levels.len() {
                    missing.insert((left, level, right, counterpart));
                    order.push((left, level, right, counterpart));
                }
            }
        }
    }
    let mut rows = Vec::new();
    for pair in order {
        if !missing.contains(&pair) {
            continue;
        }
        let mut row: Vec<Option<usize>> = vec![None; factors.len()];
        row[pair.0] = Some(pair.1);
        row[pair.2] = Some(pair.3);
        for factor in 0..factors.len() {
            if row[factor].is_some() {
                continue;
            }
            let gain = |level: usize| {
                let completes = |(other, chosen): (usize, &Option<usize>)| {
                    chosen.is_some_and(|chosen| {
                        let pair = if other < factor {
                            (other, chosen, factor, level)
                        } else {
                            (factor, level, other, chosen)
                        };
                        missing.contains(&pair)
                    })
                };
                row.iter().enumerate().filter(|it| completes(*it)).count()
            };
            let levels = 0..factors[factor].levels.len();
            // Of equally good levels the first is the simplest.
            row[factor] = levels.rev().max_by_key(|level| gain(*level));
        }
        let row: Vec<usize> = row.into_iter().map(Option::unwrap_or_default).collect();
        for (left, level) in row.iter().enumerate() {
            for (right, counterpart) in row.iter().enumerate().skip(left + 1) {
                missing.remove(&(left, *level, right, *counterpart));
            }
        }
        rows.push(row);
    }
    rows
}

struct GoalCollector<'g> {
    generator: &'g Generator,
    goals: Vec<CoverageGoal>,
    seen: HashSet<NodeId>,
    pending: VecDeque<(NodeId, Decisions, String)>,
}

impl GoalCollector<'_> {
    /// Traverses breadth-first, so that the path to each node is the shortest one.
    fn visit(&mut self, root: NodeId, decisions: Decisions, place: String) {
        self.pending.push_back((root, decisions, place));
        while let Some((id, decisions, place)) = self.pending.pop_front() {
            if self.seen.insert(id) {
                self.collect_node(id, &decisions, &place);
            }
            if self.goals.len() >= MAX_GOALS {
                self.goals.truncate(MAX_GOALS);
                return;
            }
        }
    }

    fn add_goal(
        &mut self,
        id: NodeId,
        decisions: &Decisions,
        forced: ForcedDecision,
        place: &str,
        description: String,
    ) -> Decisions {
        let mut decisions = decisions.clone();
        decisions.push((id, forced));
        self.goals.push(CoverageGoal {
            place: place.to_owned(),
            description,
            decisions: decisions.clone(),
            bundled: 1,
        });
        decisions
    }

    fn enqueue(&mut self, node: NodeId, decisions: Decisions, place: String) {
        if self.generator.plan.is_possible(node) {
            self.pending.push_back((node, decisions, place));
        }
    }

    fn collect_node(&mut self, id: NodeId, decisions: &Decisions, place: &str) {
        let plan = self.generator.plan.clone();
        match plan.node(id) {
            Node::Never | Node::Null => {}
            Node::Bool => {
                for chosen in 0..2 {
                    let description = format!("value {}", chosen == 1);
                    self.add_goal(id, decisions, ForcedDecision::Alternative(chosen), place, description);
                }
            }
            Node::Integer(whole) => {
                for (edge, value) in whole.edges().enumerate() {
                    let description = format!("value {value}");
                    self.add_goal(id, decisions, ForcedDecision::Alternative(edge), place, description);
                }
            }
            Node::Number(real) => {
                for (edge, value) in real.edges().into_iter().enumerate() {
                    let description = format!("value {value}");
                    self.add_goal(id, decisions, ForcedDecision::Alternative(edge), place, description);
                }
            }
            Node::String(text) => {
                for length in text.edge_lengths() {
                    let description = format!("length {length}");
                    self.add_goal(id, decisions, ForcedDecision::Length(length), place, description);
                }
                for chosen in 0..text.composite_count() {
                    let description = format!("unusual string {}", chosen + 1);
                    self.add_goal(id, decisions, ForcedDecision::Composite(chosen), place, description);
                }
            }
            Node::Values(values) => {
                for (chosen, value) in values.iter().enumerate().take(MAX_VALUES_PER_ENUM) {
                    let description = format!("value {value}");
                    self.add_goal(id, decisions, ForcedDecision::Alternative(chosen), place, description);
                }
            }
            Node::Suggested { values, node } => {
                for (chosen, value) in values.iter().enumerate() {
                    let description = format!("suggested {value}");
                    self.add_goal(id, decisions, ForcedDecision::Alternative(chosen), place, description);
                }
                let mut decisions = decisions.clone();
                decisions.push((id, ForcedDecision::IgnoreSuggestion));
                self.enqueue(*node, decisions, place.to_owned());
            }
            Node::Same(node) => self.enqueue(*node, decisions.clone(), place.to_owned()),
            Node::Union(nodes) | Node::Checked { candidates: nodes, .. } => {
                for (chosen, node) in nodes.iter().enumerate() {
                    let description = format!("branch {}", chosen + 1);
                    let decisions =
                        self.add_goal(id, decisions, ForcedDecision::Alternative(chosen), place, description);
                    self.enqueue(*node, decisions, place.to_owned());
                }
            }
            Node::Array(array) => self.collect_array(id, array, decisions, place),
            Node::Object(object) => self.collect_object(id, object, decisions, place),
        }
    }

    fn collect_array(&mut self, id: NodeId, array: &ArraySpec, decisions: &Decisions, place: &str) {
        let mut lengths = vec![array.min, array.min.saturating_add(1)];
        if array.max <= MAX_VALUES_PER_ENUM {
            lengths.extend([array.max.saturating_sub(1), array.max]);
        }
        lengths.retain(|length| (array.min..=array.max).contains(length));
        lengths.sort_unstable();
        lengths.dedup();
        for length in lengths {
            let description = format!("length {length}");
            self.add_goal(id, decisions, ForcedDecision::Length(length), place, description);
        }
        for (position, slot) in array.prefix.iter().enumerate() {
            let mut decisions = decisions.clone();
            decisions.push((id, ForcedDecision::Length(position + 1)));
            self.enqueue(*slot, decisions, json_pointer::join(place, "*"));
        }
        // The first unconstrained place follows those that `contains` requires.
        let demanded: usize = array.contains_rules.iter().map(|rule| rule.min).sum();
        let length = array.prefix.len().saturating_add(demanded).saturating_add(1);
        if length <= array.max {
            let mut decisions = decisions.clone();
            decisions.push((id, ForcedDecision::Length(length)));
            self.enqueue(array.rest, decisions, json_pointer::join(place, "*"));
        }
        for rule in &array.contains_rules {
            self.enqueue(rule.rest, decisions.clone(), json_pointer::join(place, "*"));
        }
    }

    fn collect_object(&mut self, id: NodeId, object: &ObjectSpec, decisions: &Decisions, place: &str) {
        for (name, node) in &object.required {
            self.enqueue(*node, decisions.clone(), json_pointer::join(place, name));
        }
        if !object.optional.is_empty() {
            let none = "no optional entry".to_owned();
            self.add_goal(id, decisions, ForcedDecision::Present(Vec::new()), place, none);
            let all = "every optional entry".to_owned();
            self.add_goal(id, decisions, ForcedDecision::All, place, all);
        }
        for (rank, (name, node)) in object.optional.iter().enumerate() {
            let place = json_pointer::join(place, name);
            let forced = ForcedDecision::Present(vec![rank]);
            let decisions = self.add_goal(id, decisions, forced, &place, PRESENT.to_owned());
            self.enqueue(*node, decisions, place);
        }
        for (chosen, template) in object.templates.iter().enumerate() {
            let place = json_pointer::join(place, "*");
            let description = "an entry of another name".to_owned();
            let entry_decisions = self.add_goal(id, decisions, ForcedDecision::Extra(chosen, 0), &place, description);
            if self.generator.plan.takes_any_name(template) {
                for name in 1..UNUSUAL_NAMES_TRIED {
                    let description = format!("an entry with unusual name {name}");
                    self.add_goal(id, decisions, ForcedDecision::Extra(chosen, name), &place, description);
                }
            }
            let decisions = entry_decisions;
            self.enqueue(template.value, decisions, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Dialect, ToolSchema};
    use serde_json::json;

    fn compile(schema: &Value) -> ToolSchema {
        ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema")
    }

    #[test]
    fn both_sides_of_every_boundary_are_covered() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 3, "maximum": 9},
                "mode": {"enum": ["a", "b", "c"]},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 2}
            },
            "required": ["n"],
            "additionalProperties": false
        }));
        let covered: Vec<Value> = schema
            .valid()
            .coverage_goals()
            .iter()
            .map(|goal| {
                let covered = schema.valid().cover(goal);
                covered.unwrap_or_else(|| panic!("{goal:?} is not covered"))
            })
            .collect();
        for expected in [
            json!({"n": 3}),
            json!({"n": 4}),
            json!({"n": 8}),
            json!({"n": 9}),
            json!({"n": 3, "mode": "c"}),
            json!({"n": 3, "mode": "a", "tags": []}),
            json!({"n": 3, "tags": ["", ""]}),
            json!({"n": 3, "tags": ["aaaa"]}),
        ] {
            assert!(covered.contains(&expected), "{expected} is not among {covered:?}");
        }
    }

    #[test]
    fn any_two_decisions_occur_together() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "a": {"type": "boolean"},
                "b": {"enum": [1, 2, 3]},
                "c": {"type": "string", "maxLength": 1}
            },
            "additionalProperties": false
        }));
        let covered: Vec<Value> =
            schema.valid().pairwise_goals().iter().filter_map(|pair| schema.valid().cover(pair)).collect();
        for b in [json!(null), json!(1), json!(2), json!(3)] {
            for c in [json!(null), json!(""), json!("a")] {
                let together = |value: &&Value| {
                    value.get("b").unwrap_or(&Value::Null) == &b && value.get("c").unwrap_or(&Value::Null) == &c
                };
                assert!(covered.iter().any(|value| together(&value)), "{b} and {c}");
            }
        }
        // All combinations would be 45.
        assert!(covered.len() < 30, "{} rows are no saving", covered.len());
    }

    #[test]
    fn a_recursive_schema_is_not_generated_deep() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}},
            "additionalProperties": false
        }));
        for goal in schema.valid().coverage_goals() {
            let covered = schema.valid().cover(&goal);
            let value = covered.unwrap_or_else(|| panic!("{goal:?} is not covered"));
            assert!(value.to_string().len() < 60, "{value}");
        }
    }

    #[test]
    fn bundles_cover_every_decision_in_fewer_instances() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 0, "maximum": 9},
                "b": {"type": "string", "maxLength": 8},
                "c": {"enum": [1, 2, 3, 4]}
            },
            "required": ["a"],
            "additionalProperties": false
        }));
        let single = schema.valid().coverage_goals();
        let bundles = schema.valid().bundled_goals();
        assert_eq!(bundles.iter().map(CoverageGoal::decision_count).sum::<usize>(), single.len());
        assert!(bundles.len() * 3 < single.len() * 2, "{} of {}", bundles.len(), single.len());
        for bundle in &bundles {
            let value = schema.valid().cover(bundle).expect("nothing here excludes anything else");
            assert!(schema.is_valid(&value), "{value}");
        }
    }

    #[test]
    fn each_wrong_type_is_a_goal() {
        let schema = compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
        let constraint = schema
            .constraints()
            .into_iter()
            .find(|constraint| constraint.to_string() == "/properties/n type")
            .expect("a constraint");
        let generator = schema.violating(&constraint).expect("it has an effect");
        let covered: Vec<Value> = generator.violation_goals().iter().filter_map(|goal| generator.cover(goal)).collect();
        let has = |is: fn(&Value) -> bool| covered.iter().any(|value| is(&value["n"]));
        assert!(has(Value::is_null) && has(Value::is_string) && has(Value::is_boolean), "{covered:?}");
        assert!(has(Value::is_array) && has(Value::is_object) && has(Value::is_f64), "{covered:?}");
    }
}
