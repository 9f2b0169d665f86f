//! Calls that are chosen but not yet made.
//!
//! What to call with next is chosen in order, since it follows from a seed and from earlier answers. Making it is most
//! of the work, and follows from what was chosen alone: so it can be done anywhere, beside the calls before it.

use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::{Arguments, Call, Choices, Standing};
use crate::fuzz::{Generator, Obligation, Random, Site, Source as _, Tape, ToolSchema};
use crate::verdict::CallKind;

/// Addresses that lead nowhere else.
const NEAR: [&str; 2] = ["data:text/plain,a", "http://localhost:9/"];
/// After how many recipes of which nothing can be made no more are tried.
const FAILED: usize = 64;
/// What tells the seed of the values from that of the arguments that they are put into.
const OTHER: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a call is to be made from.
#[derive(Debug)]
pub(super) struct Recipe {
    seed: u64,
    what: WatchKind,
    /// Whether it is made twice in a row.
    pub(super) twice: bool,
}

#[derive(Debug)]
enum WatchKind {
    /// Valid arguments, drawn from the seed.
    Drawn,
    /// Valid arguments by choices of other ones.
    Written(Vec<u64>),
    /// Arguments that break a keyword, in a way that is aimed at or else as it comes.
    Breaking(Arc<Site>, Arc<Generator>, Option<Obligation>),
}

impl Recipe {
    /// Valid arguments by chance.
    pub(super) fn drawn(seed: u64) -> Self {
        Self { seed, what: WatchKind::Drawn, twice: false }
    }

    /// Valid arguments by choices; the seed is for what is put into them.
    pub(super) fn written(choices: Vec<u64>, seed: u64) -> Self {
        Self { seed, what: WatchKind::Written(choices), twice: false }
    }

    /// Arguments that break a keyword, by what breaks it.
    pub(super) fn breaking(site: &Arc<Site>, by: &Arc<Generator>, aim: Option<Obligation>, seed: u64) -> Self {
        Self { seed, what: WatchKind::Breaking(Arc::clone(site), Arc::clone(by), aim), twice: false }
    }

    /// Whether what is made of it is valid.
    pub(super) fn is_valid(&self) -> bool {
        !matches!(self.what, WatchKind::Breaking(..))
    }
}

/// What the calls of a tool are made with.
#[derive(Debug)]
pub(super) struct Making {
    pub(super) schema: Arc<ToolSchema>,
    /// Values that the user gave, by the name of the property.
    seeds: Vec<(String, Value)>,
    /// Values that the descriptions of properties quote.
    described: Vec<(String, Vec<Value>)>,
    /// Properties that are not left out, as their default leads to another machine.
    away: Vec<String>,
}

impl Making {
    pub(super) fn new(schema: &Arc<ToolSchema>, seeds: &[(String, Value)]) -> Self {
        Self {
            schema: Arc::clone(schema),
            seeds: seeds.to_vec(),
            described: schema.described(),
            away: schema.leading_away(),
        }
    }

    /// The calls of all recipes, in order; fewer where some cannot be made.
    pub(super) fn all(&self, recipes: &[Recipe]) -> Vec<Arc<Call>> {
        let mut calls = Vec::with_capacity(recipes.len());
        let mut failed = 0;
        for recipe in recipes {
            match self.one(recipe) {
                Some(call) => {
                    if recipe.twice {
                        calls.push(Arc::clone(&call));
                    }
                    calls.push(call);
                }
                None if failed == FAILED => break,
                None => failed += 1,
            }
        }
        calls
    }

    fn one(&self, recipe: &Recipe) -> Option<Arc<Call>> {
        let Recipe { seed, what, .. } = recipe;
        let drawn = || Choices::Drawn(*seed);
        match what {
            WatchKind::Drawn => {
                let arguments = self.schema.generate(&mut Random::new(*seed)).ok()?;
                Some(self.valid(arguments, *seed, drawn()))
            }
            WatchKind::Written(choices) => {
                let mut tape = Tape::replay(choices.clone());
                let arguments = self.schema.generate(&mut tape).ok()?;
                Some(self.valid(arguments, *seed, Choices::Written(tape.into_used())))
            }
            WatchKind::Breaking(site, generator, aim) => {
                let aimed = aim.as_ref().and_then(|aim| generator.meet(aim));
                let by_chance = aimed.is_none();
                let mut arguments = match aimed {
                    Some(aimed) => aimed,
                    None => generator.generate(&mut Random::new(*seed)).ok()?,
                };
                let changed = self.keep_near(&mut arguments, generator);
                let tape = (by_chance && !changed).then(drawn);
                Some(call(CallKind::Invalid, Standing::Breaks(Arc::clone(site)), arguments, tape))
            }
        }
    }

    fn valid(&self, mut arguments: Value, seed: u64, choices: Choices) -> Arc<Call> {
        let changed = self.quote(&mut arguments, seed)
            | self.sow(&mut arguments)
            | self.keep_near(&mut arguments, self.schema.valid());
        call(CallKind::Valid, Standing::Valid, arguments, (!changed).then_some(choices))
    }

    /// Gives properties values that their descriptions quote, every other time.
    fn quote(&self, arguments: &mut Value, seed: u64) -> bool {
        if self.described.is_empty() {
            return false;
        }
        let mut random = Random::new(seed ^ OTHER);
        if random.below(2) == 0 {
            return false;
        }
        let chosen: Vec<(String, Value)> = self
            .described
            .iter()
            .map(|(name, values)| (name.clone(), values[random.index(values.len())].clone()))
            .collect();
        self.put(arguments, &chosen)
    }

    /// Gives properties a value whose default would lead the server to another machine.
    pub(super) fn keep_near(&self, arguments: &mut Value, class: &Generator) -> bool {
        let mut kept = false;
        for name in &self.away {
            if arguments.as_object().is_none_or(|members| members.contains_key(name)) {
                continue;
            }
            let near = NEAR.iter().find_map(|near| {
                let mut with = arguments.clone();
                with.as_object_mut()?.insert(name.clone(), Value::from(*near));
                class.holds(&with).then_some(with)
            });
            if let Some(near) = near {
                *arguments = near;
                kept = true;
            }
        }
        kept
    }

    /// Puts the user's values where properties of their name stand, as long as the schema admits it.
    fn sow(&self, arguments: &mut Value) -> bool {
        self.put(arguments, &self.seeds)
    }

    /// Puts values where properties of their name stand or may stand, as long as the schema admits it; says whether
    /// anything changed.
    fn put(&self, arguments: &mut Value, values: &[(String, Value)]) -> bool {
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

/// A call with arguments that are a JSON value.
pub(super) fn call(kind: CallKind, standing: Standing, arguments: Value, tape: Option<Choices>) -> Arc<Call> {
    Arc::new(Call { kind, standing, arguments: Arguments::Json(arguments), tape })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Dialect;
    use serde_json::json;

    #[test]
    fn what_is_made_follows_from_the_recipe_alone() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Such as \"Bonn\" or \"Ulm\""}, "n": {"minimum": 3}},
            "required": ["n"],
        });
        let schema = Arc::new(ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema"));
        let making = Making::new(&schema, &[("n".to_owned(), json!(7)), ("m".to_owned(), json!(1))]);
        let site = schema.sites().into_iter().find(|site| site.keyword == "minimum").expect("it has one");
        let breaker = Arc::new(schema.violating(&site).expect("it can be broken"));
        let recipes = || {
            let mut twice = Recipe::drawn(1);
            twice.twice = true;
            [twice, Recipe::written(vec![0, 3], 2), Recipe::breaking(&Arc::new(site.clone()), &breaker, None, 3)]
        };
        let made = making.all(&recipes());
        assert_eq!(made, making.all(&recipes()));
        let [first, second, _, broken] = made.as_slice() else { panic!("{made:?}") };
        assert!(Arc::ptr_eq(first, second));
        let of = |call: &Call| match &call.arguments {
            Arguments::Json(arguments) => arguments.clone(),
            Arguments::Raw(bytes) => panic!("{bytes:?}"),
        };
        assert_eq!((&of(first)["n"], of(first).get("m")), (&json!(7), None));
        assert!(first.tape.is_none() && schema.is_valid(&of(first)));
        assert!(breaker.holds(&of(broken)) && broken.tape.is_some());
    }
}
