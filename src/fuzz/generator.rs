//! Generates instances of one class: valid, or invalid by exactly one constraint.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use thiserror::Error;

use super::{
    constraint::Constraint,
    generate::{ForcedDecision, Generation},
    plan::{NodeId, Plan},
    source::{EnumeratedChoices, Random, Source},
};

/// How many simple instances are tried in order if generated ones keep being rejected.
const MAX_ENUMERATED: u64 = 64;

/// How many values one call may generate in all before it fails.
const MAX_GENERATED_VALUES: u32 = 1_000_000;

/// Why a usable schema has no instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The class is proven to be empty.
    #[error("find arguments: the schema contradicts itself and accepts none")]
    Unsatisfiable,
    /// The smallest instance is larger than anything that is generated.
    #[error("find arguments: the smallest ones would be unreasonably large")]
    TooLarge,
    /// No candidate belongs to the class; it may or may not be empty.
    #[error("find arguments: none of the candidates passed the final check")]
    NotFound,
}

/// The set of instances to which a schema is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Domain {
    /// Objects only: the arguments of a tool.
    Arguments,
    /// Whatever the schema accepts.
    Any,
}

/// What the instances of a generator have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// They satisfy the schema.
    Valid,
    /// They violate the schema, and satisfy it without this one constraint.
    Violates(Constraint),
}

/// Generates instances of one class, and checks each of them by validation.
///
/// Cheap to clone and without borrows, so that it can be moved to its driver: a seeded run,
/// `proptest` (with the feature `proptest` it is a `Strategy`), or a fuzzer's bytes.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Bytes, ChoiceSequence, Class, Constraint, Dialect, Domain, Generator, Simplest, ToolSchema};
/// use serde_json::json;
///
/// // Any JSON Schema, not only that of arguments.
/// let schema = json!({"type": "string", "maxLength": 3});
/// let schema = ToolSchema::compile_for(&schema, Dialect::Draft202012, Domain::Any).expect("a usable schema");
/// assert_eq!(schema.generate(&mut Simplest), Ok(json!("")));
///
/// let longest: Constraint = schema.constraints().pop().expect("it has constraints");
/// let too_long: Generator = schema.violating(&longest).expect("it has an effect");
/// assert_eq!(too_long.class(), &Class::Violates(longest));
/// assert!(!schema.is_valid(&too_long.generate(&mut Bytes::new(b"some bytes")).expect("a long string")));
///
/// // What was chosen once can be chosen again.
/// let mut choices = ChoiceSequence::record(7);
/// let value = too_long.generate(&mut choices);
/// assert_eq!(too_long.generate(&mut ChoiceSequence::replay(choices.into_choices())), value);
/// ```
#[derive(Debug, Clone)]
pub struct Generator {
    pub(super) plan: Arc<Plan>,
    pub(super) class: Class,
    pub(super) domain: Domain,
    pub(super) passes: Arc<Validator>,
    pub(super) fails: Option<Arc<Validator>>,
    /// How often an instance is generated again if the final check rejects it.
    pub(super) attempts: u32,
}

impl Generator {
    /// The class of the instances.
    #[must_use]
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// Whether `value` belongs to the class, by validation alone.
    #[must_use]
    pub fn holds(&self, value: &Value) -> bool {
        (self.domain == Domain::Any || value.is_object())
            && self.passes.is_valid(value)
            && self.fails.as_ref().is_none_or(|fails| !fails.is_valid(value))
    }

    /// Generates an instance of the class from the choices of `source`.
    ///
    /// # Errors
    ///
    /// When the class is empty, has only unreasonably large instances, or none was found.
    pub fn generate(&self, source: &mut impl Source) -> Result<Value, GenerationError> {
        self.check_possible()?;
        self.generate_within(source, MAX_GENERATED_VALUES).0.ok_or(GenerationError::NotFound)
    }

    /// The same with a limit on the values that are generated, parts and rejected ones included; with their number.
    pub(super) fn generate_within(&self, source: &mut impl Source, max_values: u32) -> (Option<Value>, u32) {
        let mut generated = 0;
        for _ in 0..self.attempts {
            if let Some(value) = self.attempt(source, &mut generated, max_values) {
                return (Some(value), generated);
            }
        }
        // Reached by a source that repeats its choices, such as the simplest one.
        let value = (0..MAX_ENUMERATED)
            .find_map(|counter| self.attempt(&mut EnumeratedChoices::new(counter), &mut generated, max_values))
            .or_else(|| {
                (0..MAX_ENUMERATED).find_map(|seed| self.attempt(&mut Random::new(seed), &mut generated, max_values))
            });
        (value, generated)
    }

    /// One attempt; `None` if the result is not in the class or the budget is used up.
    fn attempt(&self, source: &mut impl Source, generated: &mut u32, max_values: u32) -> Option<Value> {
        if *generated > max_values {
            return None;
        }
        let mut generation = Generation::new(&self.plan, source).within(max_values);
        let value = generation.root();
        *generated = generated.saturating_add(generation.generated());
        value.filter(|value| self.holds(value))
    }

    /// The instance for forced decisions, and whether all of them were made.
    pub(super) fn generate_forced(
        &self,
        source: &mut impl Source,
        forced: Vec<(NodeId, ForcedDecision)>,
    ) -> Option<(Value, bool)> {
        self.check_possible().ok()?;
        let mut generation = Generation::forcing(&self.plan, source, forced);
        let value = generation.root()?;
        let all_decisions_made = generation.all_decisions_made();
        self.holds(&value).then_some((value, all_decisions_made))
    }

    /// Whether the plan can generate anything.
    pub(super) fn check_possible(&self) -> Result<(), GenerationError> {
        if self.plan.is_possible(self.plan.root) {
            Ok(())
        } else if self.plan.too_large {
            Err(GenerationError::TooLarge)
        } else if self.plan.exact {
            Err(GenerationError::Unsatisfiable)
        } else {
            Err(GenerationError::NotFound)
        }
    }
}
