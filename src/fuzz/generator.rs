//! Generates instances of one class: valid, or invalid by exactly one constraint.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use thiserror::Error;

use super::{
    generate::{Forced, Generation},
    plan::{NodeId, Plan},
    schema::Domain,
    site::Site,
    source::{Odometer, Random, Source},
};

/// How many simple instances are tried in order if generated ones keep being rejected.
const ENUMERATED: u64 = 64;

/// How many values one call may generate in all before it fails.
const DRAWN: u32 = 1_000_000;

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

/// What the instances of a generator have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// They satisfy the schema.
    Valid,
    /// They violate the schema, and satisfy it without this one constraint.
    Violates(Site),
}

/// Generates instances of one class, and checks each of them by validation.
///
/// Cheap to clone and without borrows, so that it can be moved to its driver: a seeded run,
/// `proptest` (it is a [`Strategy`](proptest::strategy::Strategy)), or a fuzzer's bytes.
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
        let mut drawn = 0;
        for _ in 0..self.attempts {
            if let Some(value) = self.attempt(source, &mut drawn) {
                return Ok(value);
            }
        }
        // Reached by a source that repeats its choices, such as the simplest one.
        (0..ENUMERATED)
            .find_map(|counter| self.attempt(&mut Odometer::new(counter), &mut drawn))
            .or_else(|| (0..ENUMERATED).find_map(|seed| self.attempt(&mut Random::new(seed), &mut drawn)))
            .ok_or(GenerationError::NotFound)
    }

    /// One attempt; `None` if the result is not in the class or the budget is used up.
    fn attempt(&self, source: &mut impl Source, drawn: &mut u32) -> Option<Value> {
        if *drawn > DRAWN {
            return None;
        }
        let mut generation = Generation::new(&self.plan, source);
        let value = generation.root();
        *drawn = drawn.saturating_add(generation.spent());
        value.filter(|value| self.holds(value))
    }

    /// The instance for forced decisions, and whether all of them were made.
    pub(super) fn steer(&self, source: &mut impl Source, forced: Vec<(NodeId, Forced)>) -> Option<(Value, bool)> {
        self.check_possible().ok()?;
        let mut generation = Generation::forcing(&self.plan, source, forced);
        let value = generation.root()?;
        let reached = generation.reached();
        self.holds(&value).then_some((value, reached))
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
