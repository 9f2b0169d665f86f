//! Calls that are planned but not yet built.
//!
//! The source of each call is chosen in order, because it depends on the seed and on earlier responses. Building the
//! call is most of the work and depends only on its source, so it can run on another thread, concurrently with
//! earlier calls.

use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::{Arguments, Call, Choices, Validity};
use crate::fuzz::{ChoiceSequence, Constraint, CoverageGoal, Generator, Random, Source as _, ToolSchema};
use crate::verdict::CallKind;

/// URLs that do not lead to another machine.
const LOCAL_URLS: [&str; 2] = ["data:text/plain,a", "http://localhost:9/"];
/// The number of sources that may fail to build before the rest is skipped.
const MAX_FAILED_SOURCES: usize = 64;
/// Derives the seed of the inserted values from the seed of the arguments.
const VALUE_SEED_MASK: u64 = 0x9e37_79b9_7f4a_7c15;

/// The source from which one call is built.
#[derive(Debug)]
pub(super) struct CallSource {
    seed: u64,
    arguments: ArgumentSource,
    /// Whether to send the call twice in a row.
    pub(in crate::campaign) twice: bool,
}

#[derive(Debug)]
enum ArgumentSource {
    /// Valid arguments, generated from the seed.
    Random,
    /// Valid arguments, generated from a mutated choice sequence.
    FromChoices(Vec<u64>),
    /// Arguments that violate a constraint: in the given way if there is one, otherwise randomly.
    Violating(Arc<Constraint>, Arc<Generator>, Option<CoverageGoal>),
}

impl CallSource {
    /// A source of random valid arguments.
    pub(in crate::campaign) fn random(seed: u64) -> Self {
        Self { seed, arguments: ArgumentSource::Random, twice: false }
    }

    /// A source of valid arguments from choices; the seed is used for inserted values.
    pub(in crate::campaign) fn from_choices(choices: Vec<u64>, seed: u64) -> Self {
        Self { seed, arguments: ArgumentSource::FromChoices(choices), twice: false }
    }

    /// A source of arguments that violate a constraint.
    pub(in crate::campaign) fn violating(
        constraint: &Arc<Constraint>,
        by: &Arc<Generator>,
        goal: Option<CoverageGoal>,
        seed: u64,
    ) -> Self {
        Self { seed, arguments: ArgumentSource::Violating(Arc::clone(constraint), Arc::clone(by), goal), twice: false }
    }

    /// Whether the built call is valid.
    pub(in crate::campaign) fn is_valid(&self) -> bool {
        !matches!(self.arguments, ArgumentSource::Violating(..))
    }
}

/// Builds the calls of one tool.
#[derive(Debug)]
pub(in crate::campaign) struct CallBuilder {
    pub(in crate::campaign) schema: Arc<ToolSchema>,
    /// Values supplied by the user, by property name.
    seeds: Vec<(String, Value)>,
    /// Values quoted in property descriptions.
    described: Vec<(String, Vec<Value>)>,
    /// Properties that are always set because their defaults point to another machine.
    remote_defaults: Vec<String>,
}

impl CallBuilder {
    pub(in crate::campaign) fn new(schema: &Arc<ToolSchema>, seeds: &[(String, Value)]) -> Self {
        Self {
            schema: Arc::clone(schema),
            seeds: seeds.to_vec(),
            described: schema.values_in_descriptions(),
            remote_defaults: schema.remote_defaults(),
        }
    }

    /// Builds the calls of all sources, in order; sources that cannot be built are skipped.
    pub(super) fn build_all(&self, sources: &[CallSource]) -> Vec<Arc<Call>> {
        let mut calls = Vec::with_capacity(sources.len());
        let mut failed = 0;
        for source in sources {
            match self.build(source) {
                Some(call) => {
                    if source.twice {
                        calls.push(Arc::clone(&call));
                    }
                    calls.push(call);
                }
                None if failed == MAX_FAILED_SOURCES => break,
                None => failed += 1,
            }
        }
        calls
    }

    fn build(&self, source: &CallSource) -> Option<Arc<Call>> {
        let CallSource { seed, arguments, .. } = source;
        let random = || Choices::Drawn(*seed);
        match arguments {
            ArgumentSource::Random => {
                let arguments = self.schema.generate(&mut Random::new(*seed)).ok()?;
                Some(self.valid(arguments, *seed, random()))
            }
            ArgumentSource::FromChoices(choices) => {
                let mut choices = ChoiceSequence::replay(choices.clone());
                let arguments = self.schema.generate(&mut choices).ok()?;
                Some(self.valid(arguments, *seed, Choices::Written(choices.into_choices())))
            }
            ArgumentSource::Violating(constraint, generator, goal) => {
                let covering = goal.as_ref().and_then(|goal| generator.cover(goal));
                let by_chance = covering.is_none();
                let mut arguments = match covering {
                    Some(covering) => covering,
                    None => generator.generate(&mut Random::new(*seed)).ok()?,
                };
                let changed = self.keep_local(&mut arguments, generator);
                let choices = (by_chance && !changed).then(random);
                Some(call(CallKind::Invalid, Validity::Violates(Arc::clone(constraint)), arguments, choices))
            }
        }
    }

    fn valid(&self, mut arguments: Value, seed: u64, choices: Choices) -> Arc<Call> {
        let changed = self.apply_described_values(&mut arguments, seed)
            | self.apply_seeds(&mut arguments)
            | self.keep_local(&mut arguments, self.schema.valid());
        call(CallKind::Valid, Validity::Valid, arguments, (!changed).then_some(choices))
    }

    /// Sets properties to values quoted in their descriptions, in every other call on average.
    fn apply_described_values(&self, arguments: &mut Value, seed: u64) -> bool {
        if self.described.is_empty() {
            return false;
        }
        let mut random = Random::new(seed ^ VALUE_SEED_MASK);
        if random.below(2) == 0 {
            return false;
        }
        let chosen: Vec<(String, Value)> = self
            .described
            .iter()
            .map(|(name, values)| (name.clone(), values[random.index(values.len())].clone()))
            .collect();
        self.apply_values(arguments, &chosen)
    }

    /// Sets properties whose default would make the server contact another machine.
    pub(super) fn keep_local(&self, arguments: &mut Value, class: &Generator) -> bool {
        let mut changed_any = false;
        for name in &self.remote_defaults {
            if arguments.as_object().is_none_or(|members| members.contains_key(name)) {
                continue;
            }
            let local = LOCAL_URLS.iter().find_map(|local| {
                let mut with = arguments.clone();
                with.as_object_mut()?.insert(name.clone(), Value::from(*local));
                class.holds(&with).then_some(with)
            });
            if let Some(local) = local {
                *arguments = local;
                changed_any = true;
            }
        }
        changed_any
    }

    /// Whether the arguments have each property whose default would make the server contact another machine.
    pub(super) fn names_local_servers(&self, arguments: &Value) -> bool {
        self.remote_defaults.iter().all(|name| arguments.get(name).is_some())
    }

    /// Sets properties to the user's values if the schema permits it.
    fn apply_seeds(&self, arguments: &mut Value) -> bool {
        self.apply_values(arguments, &self.seeds)
    }

    /// Sets the named properties if the schema permits it; returns whether anything changed.
    fn apply_values(&self, arguments: &mut Value, values: &[(String, Value)]) -> bool {
        let mut changed = false;
        for (name, value) in values {
            let Some(members) = arguments.as_object_mut() else { break };
            let properties = self.schema.schema().pointer("/properties");
            let is_property = members.contains_key(name) || properties.is_some_and(|known| known.get(name).is_some());
            if !is_property || members.get(name) == Some(value) {
                continue;
            }
            let before = members.insert(name.clone(), value.clone());
            if self.schema.is_valid(arguments) {
                changed = true;
            } else if let Some(members) = arguments.as_object_mut() {
                match before {
                    Some(before) => {
                        members.insert(name.clone(), before);
                    }
                    None => {
                        members.shift_remove(name);
                    }
                }
            }
        }
        changed
    }
}

/// A call whose arguments are a JSON value.
pub(in crate::campaign) fn call(
    kind: CallKind,
    validity: Validity,
    arguments: Value,
    choices: Option<Choices>,
) -> Arc<Call> {
    Arc::new(Call { kind, validity, arguments: Arguments::Json(arguments), choices })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Dialect;
    use serde_json::json;

    #[test]
    fn a_call_depends_only_on_its_source() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Such as \"Bonn\" or \"Ulm\""}, "n": {"minimum": 3}},
            "required": ["n"],
        });
        let schema = Arc::new(ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema"));
        let builder = CallBuilder::new(&schema, &[("n".to_owned(), json!(7)), ("m".to_owned(), json!(1))]);
        let constraint =
            schema.constraints().into_iter().find(|constraint| constraint.keyword == "minimum").expect("it has one");
        let breaker = Arc::new(schema.violating(&constraint).expect("it can be broken"));
        let sources = || {
            let mut twice = CallSource::random(1);
            twice.twice = true;
            [
                twice,
                CallSource::from_choices(vec![0, 3], 2),
                CallSource::violating(&Arc::new(constraint.clone()), &breaker, None, 3),
            ]
        };
        let made = builder.build_all(&sources());
        assert_eq!(made, builder.build_all(&sources()));
        let [first, second, _, broken] = made.as_slice() else { panic!("{made:?}") };
        assert!(Arc::ptr_eq(first, second));
        let of = |call: &Call| match &call.arguments {
            Arguments::Json(arguments) => arguments.clone(),
            Arguments::Raw(bytes) => panic!("{bytes:?}"),
        };
        assert_eq!((&of(first)["n"], of(first).get("m")), (&json!(7), None));
        assert!(first.choices.is_none() && schema.is_valid(&of(first)));
        assert!(breaker.holds(&of(broken)) && broken.choices.is_some());
    }
}
