//! Plans the calls of one tool: the phases of fuzzing in order, derived from one seed.
//!
//! Calls are planned round by round. A round depends only on the seed and on the responses to earlier rounds, never
//! on time, so the same seed yields the same calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::applicable_keywords::ApplicableKeywords;
use super::call_source::{CallBuilder, CallSource, call};
use super::fuzz_call::{FuzzCall, ReusedValue};
use super::mutant_calls::MutantCalls;
use super::share::Share;
use super::value_pool::{PooledValue, ValuePool};
use crate::campaign::limits::{MAX_COMPILE_TIME, MAX_COMPILED_BYTES, MAX_CONSTRAINTS, MAX_VIOLATION_GOALS};
use crate::check::fuzz::{Arguments, Call, Validity};
use crate::event::{Gap, KeywordCoverage, MutantCoverage};
use crate::fnv;
use crate::fuzz::{
    Constraint, CoverageGoal, Generator, Malformed, MalformedKind, Random, Simplest, Source as _, ToolSchema,
    ViolationError,
};
use crate::plan::CallBudget;
use crate::verdict::CallKind;

/// The maximum number of corpus entries.
const MAX_CORPUS: usize = 48;
/// The maximum number of reported gaps.
const MAX_GAPS: usize = 64;

/// A constraint of the schema, and the generator of arguments that violate it.
struct ViolationTarget {
    constraint: Arc<Constraint>,
    generator: Option<Result<Arc<Generator>, ViolationError>>,
    /// Violations that are still to be tried, such as each wrong type.
    goals: VecDeque<CoverageGoal>,
    satisfied: u64,
    violated: u64,
}

impl ViolationTarget {
    fn is_without_effect(&self) -> bool {
        matches!(self.generator, Some(Err(ViolationError::NoEffect)))
    }
}

/// The planned calls of one tool.
pub(in crate::campaign) struct CallPlan {
    /// The index of the tool.
    tool: usize,
    share: Share,
    /// Whether to send each valid call twice in a row, to compare the results.
    doubled: bool,
    /// A sample of the valid calls that succeeded.
    served: Vec<Arc<Call>>,
    served_count: u64,
    builder: Arc<CallBuilder>,
    random: Random,
    mutants: MutantCalls,
    /// What is to be covered, and whether it is a boundary rather than a pair.
    pending: VecDeque<(CoverageGoal, bool)>,
    obligations: usize,
    covered: usize,
    targets: Vec<ViolationTarget>,
    next_target: usize,
    /// How often all constraints have been used.
    next_round: usize,
    compiling: Duration,
    /// The arguments that malformed calls are derived from, and the kinds of malformed calls still to be made. They
    /// are built late because they are very large.
    plain: Value,
    malformed: VecDeque<MalformedKind>,
    /// The corpus: choice sequences whose calls led to a response of a new class.
    corpus: Vec<Vec<u64>>,
    /// The keywords that apply to given arguments.
    applicable: ApplicableKeywords,
    gaps: Vec<Gap>,
    call_number: u64,
}

impl CallPlan {
    /// Plans the calls of a tool; `served` are arguments that it is known to serve.
    pub(in crate::campaign) fn new(
        tool: usize,
        schema: &Arc<ToolSchema>,
        name: &str,
        (seed, seeds): (u64, &[(String, Value)]),
        served: Option<&Value>,
        budget: CallBudget,
    ) -> Self {
        let builder = Arc::new(CallBuilder::new(schema, seeds));
        let plain = schema.minimal().unwrap_or_else(|_| Value::Object(serde_json::Map::new()));
        let count = schema.valid().coverage_goals().len();
        let (bundles, pairs) = (schema.valid().bundled_goals(), schema.valid().pairwise_goals());
        let counts = (bundles.len(), pairs.len());
        let pairs = pairs.into_iter().map(|pair| (pair, false));
        let pending = bundles.into_iter().map(|one| (one, true)).chain(pairs).collect();
        let mut gaps = Vec::new();
        let mut constraints = schema.constraints();
        if constraints.len() > MAX_CONSTRAINTS {
            let what = format!("{} of {} keywords", constraints.len() - MAX_CONSTRAINTS, constraints.len());
            gaps.push(Gap { obligation: what, reason: "the limit on constraints was reached".to_owned() });
            constraints.truncate(MAX_CONSTRAINTS);
        }
        let applicable = ApplicableKeywords::new(constraints.iter().map(|constraint| constraint.pointer.as_str()));
        let affordable = MAX_COMPILED_BYTES / schema.schema().to_string().len().max(1);
        if constraints.len() > affordable {
            let what = format!("{} of {} keywords", constraints.len() - affordable, constraints.len());
            gaps.push(Gap { obligation: what, reason: "the schema is too large to try all of them".to_owned() });
            constraints.truncate(affordable);
        }
        let target = |constraint: Constraint| ViolationTarget {
            constraint: Arc::new(constraint),
            generator: None,
            goals: VecDeque::new(),
            satisfied: 0,
            violated: 0,
        };
        let mut mutants = MutantCalls::new(schema, &builder, served);
        let share = match budget {
            CallBudget::ByNeed => Share::by_need(mutants.planned(u64::MAX), counts.0, counts.1, constraints.len()),
            CallBudget::PerTool(calls) => Share::of(calls, mutants.planned(calls), counts.0, counts.1),
        };
        mutants.limit(share.mutants);
        Self {
            tool,
            share,
            doubled: false,
            served: Vec::new(),
            served_count: 0,
            mutants,
            builder,
            random: Random::new(seed_for_tool(seed, name)),
            pending,
            obligations: count,
            covered: 0,
            targets: constraints.into_iter().map(target).collect(),
            next_target: 0,
            next_round: 0,
            compiling: Duration::ZERO,
            plain,
            malformed: Malformed::kinds().into(),
            corpus: Vec::new(),
            applicable,
            gaps,
            call_number: 0,
        }
    }

    /// How many calls are made in all, with those for mutants.
    pub(in crate::campaign) fn total(&self) -> u64 {
        self.share.total()
    }

    /// The index of the tool.
    pub(in crate::campaign) fn tool(&self) -> usize {
        self.tool
    }

    /// Whether each valid call is sent twice in a row, to compare the results.
    pub(in crate::campaign) fn is_doubled(&self) -> bool {
        self.doubled
    }

    /// Decides whether each valid call is sent twice in a row.
    pub(in crate::campaign) fn set_doubled(&mut self, doubled: bool) {
        self.doubled = doubled;
    }

    /// How many boundaries and branches are to be covered, and how many are.
    pub(in crate::campaign) fn covered(&self) -> (usize, usize) {
        (self.obligations, self.covered)
    }

    /// The next calls that tell mutants of the schema apart, at most `limit`.
    pub(in crate::campaign) fn mutants(&mut self, limit: u64) -> Vec<Arc<Call>> {
        self.mutants.next(limit)
    }

    /// How many mutants of the schema the calls told apart so far, by class.
    pub(in crate::campaign) fn mutant_coverage(&self) -> Vec<MutantCoverage> {
        self.mutants.coverage()
    }

    /// What could not be generated.
    pub(in crate::campaign) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// How often each constraint of the schema was satisfied and violated.
    pub(in crate::campaign) fn keyword_coverage(&self) -> Vec<KeywordCoverage> {
        let coverage = |target: &ViolationTarget| KeywordCoverage {
            pointer: target.constraint.pointer.clone(),
            keyword: match &target.constraint.name {
                Some(name) => format!("{} {name}", target.constraint.keyword),
                None => target.constraint.keyword.clone(),
            },
            satisfied: target.satisfied,
            violated: target.violated,
            no_effect: target.is_without_effect(),
        };
        self.targets.iter().map(coverage).collect()
    }

    /// The constraints that no arguments can violate. All have to be compiled.
    pub(in crate::campaign) fn constraints_without_effect(&self) -> impl Iterator<Item = &Constraint> {
        self.targets.iter().filter(|target| target.is_without_effect()).map(|target| &*target.constraint)
    }

    /// How the calls of this tool are divided among the phases.
    pub(in crate::campaign) fn share(&self) -> Share {
        self.share
    }

    /// The next boundary and branch calls, at most `limit`.
    pub(in crate::campaign) fn coverage(&mut self, limit: u64) -> Vec<Arc<Call>> {
        let mut calls = Vec::new();
        while (calls.len() as u64) < limit {
            let Some((obligation, is_boundary)) = self.pending.pop_front() else { break };
            match self.builder.schema.valid().cover(&obligation) {
                Some(mut arguments) => {
                    self.covered += obligation.decision_count();
                    self.builder.keep_local(&mut arguments, self.builder.schema.valid());
                    let made = call(CallKind::Coverage, Validity::Valid, arguments, None);
                    if self.doubled {
                        calls.push(Arc::clone(&made));
                    }
                    calls.push(made);
                }
                None if is_boundary => self.add_gap(
                    format!("{} at {}", obligation.description(), location(obligation.path())),
                    "no arguments were found that satisfy it".to_owned(),
                ),
                None => {}
            }
        }
        calls
    }

    fn add_gap(&mut self, what: String, why: String) {
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(Gap { obligation: what, reason: why });
        }
    }

    /// The next malformed calls, at most `limit`.
    pub(in crate::campaign) fn malformed(&mut self, limit: u64) -> Vec<Arc<Call>> {
        let mut calls = Vec::new();
        while (calls.len() as u64) < limit {
            let Some(kind) = self.malformed.pop_front() else { break };
            let kind = kind.of(&self.plain);
            calls.push(Arc::new(Call {
                kind: CallKind::Malformed,
                validity: Validity::Malformed(kind.grammar, kind.name),
                arguments: Arguments::Raw(kind.arguments),
                choices: None,
            }));
        }
        calls
    }

    /// The next calls of the long phase, valid and invalid ones alternately; fewer than `limit` if none can be built.
    pub(in crate::campaign) fn mixed(&mut self, limit: u64) -> Vec<Arc<Call>> {
        let sources = self.sources(limit);
        self.builder.build_all(&sources)
    }

    /// The sources of the next calls of the long phase.
    fn sources(&mut self, limit: u64) -> Vec<CallSource> {
        let mut sources = Vec::new();
        let mut left = limit;
        while left > 0 {
            self.call_number += 1;
            // While untried violations remain, most calls try one.
            let has_goals = self.next_round == 0 || self.targets.iter().any(|target| !target.goals.is_empty());
            let every = if self.doubled { 6 } else { 3 };
            let is_valid =
                if has_goals { self.call_number.is_multiple_of(every) } else { !self.call_number.is_multiple_of(2) };
            let made = if is_valid { Some(self.valid()) } else { self.invalid() };
            // If nothing can be violated, all calls are valid.
            let mut source = made.unwrap_or_else(|| self.valid());
            source.twice = self.doubled && source.is_valid() && left > 1;
            left -= if source.twice { 2 } else { 1 };
            sources.push(source);
        }
        sources
    }

    /// Random valid calls; fewer than `limit` if some cannot be built.
    pub(in crate::campaign) fn random_valid(&mut self, limit: usize) -> Vec<Arc<Call>> {
        let sources: Vec<CallSource> = (0..limit).map(|_| self.valid()).collect();
        self.builder.build_all(&sources)
    }

    fn valid(&mut self) -> CallSource {
        let seed = self.random.next_bits();
        if self.corpus.is_empty() || self.random.below(4) != 0 {
            return CallSource::random(seed);
        }
        // Mutate arguments from the corpus slightly.
        let at = self.random.index(self.corpus.len());
        let mut choices = self.corpus[at].clone();
        for _ in 0..=self.random.below(2) {
            if !choices.is_empty() {
                let at = self.random.index(choices.len());
                choices[at] = self.random.below(choices[at].saturating_mul(2).max(4));
            }
        }
        CallSource::from_choices(choices, seed)
    }

    fn invalid(&mut self) -> Option<CallSource> {
        for _ in 0..self.targets.len() * 2 {
            let at = self.next_target;
            self.next_target = (at + 1) % self.targets.len();
            self.next_round += usize::from(self.next_target == 0);
            self.compile(at);
            let aims_elsewhere = self.next_round > 0
                && self.targets[at].goals.is_empty()
                && self.targets.iter().any(|target| !target.goals.is_empty());
            if aims_elsewhere {
                continue;
            }
            let seed = self.random.next_bits();
            let target = &mut self.targets[at];
            let Some(Ok(generator)) = &target.generator else { continue };
            return Some(CallSource::violating(&target.constraint, generator, target.goals.pop_front(), seed));
        }
        None
    }

    /// Compiles the violation generator of a constraint, once.
    fn compile(&mut self, at: usize) {
        if self.targets[at].generator.is_some() {
            return;
        }
        let constraint = self.targets[at].constraint.clone();
        if self.compiling > MAX_COMPILE_TIME {
            self.add_gap(constraint.to_string(), "generating violations of this schema takes too long".to_owned());
            self.targets[at].generator = Some(Err(ViolationError::TooLarge));
            return;
        }
        let began = Instant::now();
        let made = self.builder.schema.violating(&constraint);
        self.compiling += began.elapsed();
        match &made {
            Ok(_) | Err(ViolationError::NoEffect) => {}
            Err(error) => self.add_gap(constraint.to_string(), error.to_string()),
        }
        if let Ok(generator) = &made {
            // Which wrong type is sent matters more than on which side of a bound it lies.
            let constraint = &self.targets[at].constraint;
            let kinds = matches!(constraint.keyword.as_str(), "type" | "enum" | "const");
            let mut goals = generator.violation_goals();
            if kinds {
                let declared = self
                    .builder
                    .schema
                    .schema()
                    .pointer(&constraint.pointer)
                    .and_then(|schema| schema["type"].as_str());
                let declared = declared.unwrap_or_default();
                goals.sort_by_cached_key(|goal| mistake_rank(generator.cover(goal).as_ref(), goal.path(), declared));
                // Try each type once before trying any of them twice.
                let mut of_type = [0_usize; TYPES];
                let mut counted: Vec<(usize, CoverageGoal)> = Vec::new();
                for goal in goals {
                    let made = generator.cover(&goal);
                    let count = &mut of_type[type_of(value_at(made.as_ref(), goal.path()))];
                    *count += 1;
                    counted.push((*count, goal));
                }
                counted.sort_by_key(|(count, _)| *count);
                goals = counted.into_iter().map(|(_, goal)| goal).collect();
            }
            self.targets[at].goals = goals.into_iter().take(if kinds { MAX_VIOLATION_GOALS } else { 1 }).collect();
        }
        self.targets[at].generator = Some(made.map(Arc::new));
    }

    /// Compiles all violation generators; the lint needs them.
    pub(in crate::campaign) fn compile_all(&mut self) {
        (0..self.targets.len()).for_each(|at| self.compile(at));
    }

    /// The generator for calls of the same class, used for shrinking.
    pub(in crate::campaign) fn generator(&self, validity: &Validity) -> Option<Generator> {
        match validity {
            Validity::Valid => Some(self.builder.schema.valid().clone()),
            Validity::Violates(constraint) => {
                let target = self.targets.iter().find(|target| *target.constraint == **constraint)?;
                match &target.generator {
                    Some(Ok(generator)) => Some(Generator::clone(generator)),
                    _ => self.builder.schema.violating(constraint).ok(),
                }
            }
            Validity::Malformed(..) | Validity::Unknown => None,
        }
    }

    /// Stops violating a constraint whose failure is known.
    pub(in crate::campaign) fn avoid(&mut self, constraint: &Constraint) {
        if let Some(target) = self.targets.iter_mut().find(|target| *target.constraint == *constraint) {
            target.generator = Some(Err(ViolationError::NotFound));
            target.goals.clear();
        }
    }

    /// Records a valid call that succeeded.
    pub(in crate::campaign) fn record_success(&mut self, call: &Arc<Call>) {
        const MAX_SERVED: usize = 64;
        self.served_count += 1;
        if self.served.len() < MAX_SERVED {
            self.served.push(Arc::clone(call));
        } else {
            // Reservoir sampling: each call is kept with the same probability.
            let at = self.random.below(self.served_count);
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| self.served.get_mut(at)) {
                *slot = Arc::clone(call);
            }
        }
    }

    /// A sample of the valid calls that succeeded, at most `limit`.
    pub(in crate::campaign) fn sample_served(&self, limit: usize) -> Vec<Arc<Call>> {
        let step = self.served.len().div_ceil(limit.max(1)).max(1);
        self.served.iter().rev().step_by(step).cloned().collect()
    }

    /// Valid calls that succeeded, as many as are kept.
    pub(in crate::campaign) fn served(&self) -> &[Arc<Call>] {
        &self.served
    }

    /// Calls that use values from earlier results, at most `limit`; fewer if no values fit.
    pub(in crate::campaign) fn stateful(&mut self, limit: u64, pool: &ValuePool) -> Vec<FuzzCall> {
        const ATTEMPTS_PER_CALL: u64 = 4;
        let schema = Arc::clone(&self.builder.schema);
        let Some(Value::Object(properties)) = schema.schema().get("properties") else { return Vec::new() };
        let fitting: Vec<(&String, Vec<PooledValue>)> = properties
            .keys()
            .map(|name| (name, pool.values_for(name)))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        let mut calls = Vec::new();
        let mut tried = 0;
        while !fitting.is_empty() && (calls.len() as u64) < limit && tried < limit * ATTEMPTS_PER_CALL {
            tried += 1;
            // Every other call has the simplest arguments apart from the reused values.
            let made = if tried % 2 == 0 {
                schema.generate(&mut Simplest)
            } else {
                schema.generate(&mut Random::new(self.random.next_bits()))
            };
            let Ok(mut arguments) = made else { break };
            let mut reused = Vec::new();
            for (name, values) in &fitting {
                let at = self.random.index(values.len());
                let Some(members) = arguments.as_object_mut() else { break };
                let before = members.insert((*name).clone(), values[at].value.clone());
                if schema.is_valid(&arguments) {
                    let (origin, source) = (values[at].origin.clone(), Some(Arc::clone(&values[at].source)));
                    reused.push(ReusedValue { property: (*name).clone(), origin, source });
                } else if let Some(members) = arguments.as_object_mut() {
                    match before {
                        Some(before) => {
                            members.insert((*name).clone(), before);
                        }
                        None => {
                            members.shift_remove(*name);
                        }
                    }
                }
            }
            if !reused.is_empty() {
                self.builder.keep_local(&mut arguments, schema.valid());
                let call = call(CallKind::Stateful, Validity::Valid, arguments, None);
                calls.push(FuzzCall { tool: self.tool, call, reused: reused.into() });
            }
        }
        calls
    }

    /// Adds a call that led to a response of a new class to the corpus.
    pub(in crate::campaign) fn add_to_corpus(&mut self, call: &Call) {
        if let (Validity::Valid, Some(choices)) = (&call.validity, &call.choices) {
            let choices = choices.by(self.builder.schema.valid());
            if self.corpus.len() >= MAX_CORPUS {
                let at = self.random.index(MAX_CORPUS);
                self.corpus.swap_remove(at);
            }
            self.corpus.push(choices);
        }
    }

    pub(in crate::campaign) fn schema(&self) -> &ToolSchema {
        &self.builder.schema
    }

    /// Counts which constraints a call satisfies or violates.
    pub(in crate::campaign) fn count(&mut self, call: &Call) {
        match (&call.validity, &call.arguments) {
            (Validity::Violates(constraint), _) => {
                // Nearly always it is the same allocation.
                let own = self.targets.iter().position(|target| Arc::ptr_eq(&target.constraint, constraint));
                let at = own.or_else(|| self.targets.iter().position(|target| target.constraint == *constraint));
                if let Some(at) = at {
                    self.targets[at].violated += 1;
                }
            }
            (Validity::Valid, Arguments::Json(arguments)) => {
                let targets = &mut self.targets;
                self.applicable.for_each_in(arguments, |at| targets[at].satisfied += 1);
            }
            _ => {}
        }
    }
}

/// The number of types that [`type_of`] distinguishes.
const TYPES: usize = 7;

/// The index of a value's type.
fn type_of(value: Option<&Value>) -> usize {
    match value {
        None => 0,
        Some(Value::Null) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Number(_)) => 3,
        Some(Value::String(_)) => 4,
        Some(Value::Array(_)) => 5,
        Some(Value::Object(_)) => 6,
    }
}

/// The value at a location of the arguments, in which `*` matches the first element.
fn value_at<'v>(made: Option<&'v Value>, location: &str) -> Option<&'v Value> {
    made?.pointer(&location.replace("/*", "/0"))
}

/// Ranks wrong types: those that programs most often confuse with the declared type come first.
fn mistake_rank(made: Option<&Value>, location: &str, declared: &str) -> usize {
    let list = declared == "array";
    match value_at(made, location) {
        Some(Value::Object(_)) => usize::from(!list) * 2,
        Some(Value::Null) => usize::from(list),
        Some(Value::String(_)) => 1 + usize::from(list),
        // Programs that do not look further accept a fraction as a number.
        Some(Value::Number(_)) if declared == "integer" => 0,
        Some(Value::Number(_)) => 3,
        Some(Value::Array(_)) => 4,
        Some(Value::Bool(_)) => 5,
        None => 6,
    }
}

fn location(pointer: &str) -> &str {
    if pointer.is_empty() { "the root" } else { pointer }
}

/// Derives a tool's own seed.
fn seed_for_tool(seed: u64, name: &str) -> u64 {
    // The name, so that the seed does not depend on the order or number of the tools.
    fnv::hash_from(seed ^ fnv::START, name.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_gets_the_calls_that_its_schema_needs() {
        let small = Share::by_need(30, 4, 0, 5);
        assert_eq!((small.others(), small.total()), (CallBudget::USUAL, CallBudget::USUAL + 30));
        let large = Share::by_need(900, 150, 4_000, 120);
        assert_eq!((large.mutants, large.others()), (900, 2 * 150 + 150 + 3 * 120));
        assert!(large.coverage >= 150, "{large:?}");
        assert_eq!(Share::by_need(0, 100_000, 0, 400).others(), 1_200, "a huge schema takes no endless time");
    }

    #[test]
    fn a_fixed_number_of_calls_is_kept() {
        for calls in [0, 1, 7, 40, 200, 5_000] {
            assert_eq!(Share::of(calls, 0, 30, 60).others(), calls, "{calls}");
        }
    }
}
