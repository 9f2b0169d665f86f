//! What a tool is called with: the phases of fuzzing one after the other, from one seed.
//!
//! Calls are made round by round, and what is made in a round depends on the seed and on the answers to
//! earlier rounds alone, never on time: so the same seed makes the same calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pool::{Learnt, Pool};
use super::reached::Reached;
use super::recipe::{Making, Recipe, call};
use super::shot::{Feed, Shot};
use crate::check::fuzz::{Arguments, Call, Standing};
use crate::event::Gap;
use crate::fuzz::{
    Generator, Malformed, Obligation, Oddity, Random, Simplest, Site, Source as _, ToolSchema, ViolationError,
};
use crate::verdict::CallKind;

/// How many keywords of a schema are broken.
const SITES: usize = 400;
/// How many ways of breaking one keyword are tried before chance decides.
const AIMS: usize = 8;
/// How much of a schema is read to find what breaks its keywords, in bytes: it is read once for each. Ten times what
/// the largest of 687 published tools takes.
const COMPILED: usize = 8 << 20;
/// How long that may take where even that is too slow, so that a hostile schema costs no more.
const COMPILING: Duration = Duration::from_secs(10);
/// How many arguments whose answer was new are kept.
const KEPT: usize = 48;
/// How many of the gaps are told.
const GAPS: usize = 64;

/// A keyword of the schema, and what breaks it.
pub(super) struct Breaker {
    pub(super) site: Arc<Site>,
    generator: Option<Result<Arc<Generator>, ViolationError>>,
    /// The ways of breaking it that are still to be tried, such as each wrong type.
    aimed: VecDeque<Obligation>,
    pub(super) kept: u64,
    pub(super) broken: u64,
}

impl Breaker {
    pub(super) fn is_without_effect(&self) -> bool {
        matches!(self.generator, Some(Err(ViolationError::Vacuous)))
    }
}

/// The calls of one tool, as they are made up.
pub(super) struct Stock {
    /// The position of the tool.
    pub(super) tool: usize,
    /// Whether valid calls are made twice in a row, to see whether the second does the same.
    pub(super) doubled: bool,
    /// Some of the valid calls that were served.
    served: Vec<Arc<Call>>,
    served_count: u64,
    making: Arc<Making>,
    random: Random,
    /// What is to be covered, and whether it is a boundary rather than a pair.
    pending: VecDeque<(Obligation, bool)>,
    pub(super) obligations: usize,
    pub(super) met: usize,
    pub(super) breakers: Vec<Breaker>,
    next_breaker: usize,
    /// How often every keyword had its turn.
    next_round: usize,
    compiling: Duration,
    /// What malformed calls are made of, and the kinds of them that are still to be made: they are enormous.
    plain: Value,
    malformed: VecDeque<Oddity>,
    /// Choices that led to an answer of a new kind.
    kept: Vec<Vec<u64>>,
    /// Which keywords look at what arguments have.
    reached: Reached,
    pub(super) gaps: Vec<Gap>,
    turn: u64,
}

/// How many calls of each kind a budget is divided into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) coverage: u64,
    pub(super) malformed: u64,
    pub(super) stateful: u64,
    pub(super) rest: u64,
}

impl Share {
    /// Shares for what there is to cover: decisions in bundles, and pairs of them beyond those.
    pub(super) fn of(calls: u64, bundles: usize, pairs: usize) -> Self {
        let usual = (calls * 2 / 5).min((bundles + pairs) as u64);
        let coverage = usual.max((calls / 2).min(bundles as u64));
        let malformed = (calls / 8).clamp(1, 18).min(calls - coverage);
        let stateful = calls / 10;
        let stateful = stateful.min(calls - coverage - malformed);
        Self { coverage, malformed, stateful, rest: calls - coverage - malformed - stateful }
    }
}

impl Stock {
    pub(super) fn new(tool: usize, schema: &Arc<ToolSchema>, name: &str, seed: u64, seeds: &[(String, Value)]) -> Self {
        let plain = schema.minimal().unwrap_or_else(|_| Value::Object(serde_json::Map::new()));
        let count = schema.valid().obligations().len();
        let pairs = schema.valid().pairs().into_iter().map(|pair| (pair, false));
        let bundles = schema.valid().bundles().into_iter().map(|one| (one, true));
        let pending = bundles.chain(pairs).collect();
        let mut gaps = Vec::new();
        let mut sites = schema.sites();
        if sites.len() > SITES {
            let what = format!("{} of {} keywords", sites.len() - SITES, sites.len());
            gaps.push(Gap { obligation: what, reason: "so many are not tried".to_owned() });
            sites.truncate(SITES);
        }
        let reached = Reached::new(sites.iter().map(|site| site.pointer.as_str()));
        let affordable = COMPILED / schema.schema().to_string().len().max(1);
        if sites.len() > affordable {
            let what = format!("{} of {} keywords", sites.len() - affordable, sites.len());
            gaps.push(Gap { obligation: what, reason: "the schema is too large to try all".to_owned() });
            sites.truncate(affordable);
        }
        let breaker =
            |site: Site| Breaker { site: Arc::new(site), generator: None, aimed: VecDeque::new(), kept: 0, broken: 0 };
        Self {
            tool,
            doubled: false,
            served: Vec::new(),
            served_count: 0,
            making: Arc::new(Making::new(schema, seeds)),
            random: Random::new(mix(seed, name)),
            pending,
            obligations: count,
            met: 0,
            breakers: sites.into_iter().map(breaker).collect(),
            next_breaker: 0,
            next_round: 0,
            compiling: Duration::ZERO,
            plain,
            malformed: Malformed::kinds().into(),
            kept: Vec::new(),
            reached,
            gaps,
            turn: 0,
        }
    }

    /// How the calls of the tool are divided.
    pub(super) fn share(&self, calls: u64) -> Share {
        let bundles = self.pending.iter().filter(|(_, is_boundary)| *is_boundary).count();
        Share::of(calls, bundles, self.pending.len() - bundles)
    }

    /// The next calls at boundaries and branches, at most so many.
    pub(super) fn coverage(&mut self, most: u64) -> Vec<Arc<Call>> {
        let mut calls = Vec::new();
        while (calls.len() as u64) < most {
            let Some((obligation, is_boundary)) = self.pending.pop_front() else { break };
            match self.making.schema.valid().meet(&obligation) {
                Some(mut arguments) => {
                    self.met += obligation.bundled();
                    self.making.keep_near(&mut arguments, self.making.schema.valid());
                    let made = call(CallKind::Coverage, Standing::Valid, arguments, None);
                    if self.doubled {
                        calls.push(Arc::clone(&made));
                    }
                    calls.push(made);
                }
                None if is_boundary => self.gap(
                    format!("{} at {}", obligation.aim(), place(obligation.place())),
                    "no arguments were found that meet it".to_owned(),
                ),
                None => {}
            }
        }
        calls
    }

    fn gap(&mut self, what: String, why: String) {
        if self.gaps.len() < GAPS {
            self.gaps.push(Gap { obligation: what, reason: why });
        }
    }

    /// The next malformed calls, at most so many.
    pub(super) fn malformed(&mut self, most: u64) -> Vec<Arc<Call>> {
        let mut calls = Vec::new();
        while (calls.len() as u64) < most {
            let Some(odd) = self.malformed.pop_front() else { break };
            let odd = odd.of(&self.plain);
            calls.push(Arc::new(Call {
                kind: CallKind::Malformed,
                standing: Standing::Malformed(odd.grammar, odd.name),
                arguments: Arguments::Raw(odd.arguments),
                tape: None,
            }));
        }
        calls
    }

    /// The next calls of the long phase, valid and invalid in turn; fewer where nothing can be made.
    pub(super) fn mixed(&mut self, most: u64) -> Vec<Arc<Call>> {
        let recipes = self.recipes(most);
        self.making.all(&recipes)
    }

    /// What calls are made with.
    pub(super) fn making(&self) -> &Arc<Making> {
        &self.making
    }

    /// What the next calls of the long phase are made from.
    pub(super) fn recipes(&mut self, most: u64) -> Vec<Recipe> {
        let mut recipes = Vec::new();
        let mut left = most;
        while left > 0 {
            self.turn += 1;
            // While there are ways of breaking something that were never tried, most calls try one.
            let aims = self.next_round == 0 || self.breakers.iter().any(|breaker| !breaker.aimed.is_empty());
            let every = if self.doubled { 6 } else { 3 };
            let is_valid = if aims { self.turn.is_multiple_of(every) } else { !self.turn.is_multiple_of(2) };
            let made = if is_valid { Some(self.valid()) } else { self.invalid() };
            // Where nothing can be broken, all calls are valid ones.
            let mut recipe = made.unwrap_or_else(|| self.valid());
            recipe.twice = self.doubled && recipe.is_valid() && left > 1;
            left -= if recipe.twice { 2 } else { 1 };
            recipes.push(recipe);
        }
        recipes
    }

    /// So many random valid calls; fewer where one cannot be made.
    pub(super) fn valid_ones(&mut self, most: usize) -> Vec<Arc<Call>> {
        let recipes: Vec<Recipe> = (0..most).map(|_| self.valid()).collect();
        self.making.all(&recipes)
    }

    fn valid(&mut self) -> Recipe {
        let seed = self.random.next_bits();
        if self.kept.is_empty() || self.random.below(4) != 0 {
            return Recipe::drawn(seed);
        }
        // Arguments that drew a new kind of answer are changed a little.
        let at = self.random.index(self.kept.len());
        let mut choices = self.kept[at].clone();
        for _ in 0..=self.random.below(2) {
            if !choices.is_empty() {
                let at = self.random.index(choices.len());
                choices[at] = self.random.below(choices[at].saturating_mul(2).max(4));
            }
        }
        Recipe::written(choices, seed)
    }

    fn invalid(&mut self) -> Option<Recipe> {
        for _ in 0..self.breakers.len() * 2 {
            let at = self.next_breaker;
            self.next_breaker = (at + 1) % self.breakers.len();
            self.next_round += usize::from(self.next_breaker == 0);
            self.compile(at);
            let aims_elsewhere = self.next_round > 0
                && self.breakers[at].aimed.is_empty()
                && self.breakers.iter().any(|breaker| !breaker.aimed.is_empty());
            if aims_elsewhere {
                continue;
            }
            let seed = self.random.next_bits();
            let breaker = &mut self.breakers[at];
            let Some(Ok(generator)) = &breaker.generator else { continue };
            return Some(Recipe::breaking(&breaker.site, generator, breaker.aimed.pop_front(), seed));
        }
        None
    }

    /// Compiles what breaks a keyword, once.
    fn compile(&mut self, at: usize) {
        if self.breakers[at].generator.is_some() {
            return;
        }
        let site = self.breakers[at].site.clone();
        if self.compiling > COMPILING {
            self.gap(site.to_string(), "finding what breaks the keywords of this schema takes too long".to_owned());
            self.breakers[at].generator = Some(Err(ViolationError::TooLarge));
            return;
        }
        let began = Instant::now();
        let made = self.making.schema.violating(&site);
        self.compiling += began.elapsed();
        match &made {
            Ok(_) | Err(ViolationError::Vacuous) => {}
            Err(error) => self.gap(site.to_string(), error.to_string()),
        }
        if let Ok(generator) = &made {
            // Which of the wrong types it is matters more than on which side of a bound it lies.
            let site = &self.breakers[at].site;
            let kinds = matches!(site.keyword.as_str(), "type" | "enum" | "const");
            let mut aimed = generator.aimed();
            if kinds {
                let asked =
                    self.making.schema.schema().pointer(&site.pointer).and_then(|beside| beside["type"].as_str());
                let asked = asked.unwrap_or_default();
                aimed.sort_by_cached_key(|aim| mistaken(generator.meet(aim).as_ref(), aim.place(), asked));
                // One of each type comes before the second of any.
                let mut of_type = [0_usize; TYPES];
                let mut counted: Vec<(usize, Obligation)> = Vec::new();
                for aim in aimed {
                    let made = generator.meet(&aim);
                    let count = &mut of_type[type_of(at_place(made.as_ref(), aim.place()))];
                    *count += 1;
                    counted.push((*count, aim));
                }
                counted.sort_by_key(|(count, _)| *count);
                aimed = counted.into_iter().map(|(_, aim)| aim).collect();
            }
            self.breakers[at].aimed = aimed.into_iter().take(if kinds { AIMS } else { 1 }).collect();
        }
        self.breakers[at].generator = Some(made.map(Arc::new));
    }

    /// Compiles what breaks each keyword, for the lint.
    pub(super) fn compile_all(&mut self) {
        (0..self.breakers.len()).for_each(|at| self.compile(at));
    }

    /// What makes more of a call's class, to shrink it by.
    pub(super) fn generator(&self, standing: &Standing) -> Option<Generator> {
        match standing {
            Standing::Valid => Some(self.making.schema.valid().clone()),
            Standing::Breaks(site) => {
                let breaker = self.breakers.iter().find(|breaker| *breaker.site == **site)?;
                match &breaker.generator {
                    Some(Ok(generator)) => Some(Generator::clone(generator)),
                    _ => self.making.schema.violating(site).ok(),
                }
            }
            Standing::Malformed(..) | Standing::Unknown => None,
        }
    }

    /// Breaks a keyword no more: what that leads to is known.
    pub(super) fn avoid(&mut self, site: &Site) {
        if let Some(breaker) = self.breakers.iter_mut().find(|breaker| *breaker.site == *site) {
            breaker.generator = Some(Err(ViolationError::NotFound));
            breaker.aimed.clear();
        }
    }

    /// Takes note that a valid call was served.
    pub(super) fn succeeded(&mut self, call: &Arc<Call>) {
        const SERVED: usize = 64;
        self.served_count += 1;
        if self.served.len() < SERVED {
            self.served.push(Arc::clone(call));
        } else {
            // Each call is kept with the same chance, however many there are.
            let at = self.random.below(self.served_count);
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| self.served.get_mut(at)) {
                *slot = Arc::clone(call);
            }
        }
    }

    /// Some of the valid calls that were served, at most so many.
    pub(super) fn picked(&self, most: usize) -> Vec<Arc<Call>> {
        let step = self.served.len().div_ceil(most.max(1)).max(1);
        self.served.iter().rev().step_by(step).cloned().collect()
    }

    /// Calls with values out of earlier results, at most so many; fewer where none fit.
    pub(super) fn stateful(&mut self, most: u64, pool: &Pool) -> Vec<Shot> {
        const TRIED: u64 = 4;
        let schema = Arc::clone(&self.making.schema);
        let Some(Value::Object(properties)) = schema.schema().get("properties") else { return Vec::new() };
        let fitting: Vec<(&String, Vec<Learnt>)> =
            properties.keys().map(|name| (name, pool.of(name))).filter(|(_, values)| !values.is_empty()).collect();
        let mut calls = Vec::new();
        let mut tried = 0;
        while !fitting.is_empty() && (calls.len() as u64) < most && tried < most * TRIED {
            tried += 1;
            // The simplest arguments beside what was learnt, every other time.
            let made = if tried % 2 == 0 {
                schema.generate(&mut Simplest)
            } else {
                schema.generate(&mut Random::new(self.random.next_bits()))
            };
            let Ok(mut arguments) = made else { break };
            let mut fed = Vec::new();
            for (name, values) in &fitting {
                let at = self.random.index(values.len());
                let Some(members) = arguments.as_object_mut() else { break };
                let before = members.insert((*name).clone(), values[at].value.clone());
                if schema.is_valid(&arguments) {
                    let (origin, source) = (values[at].origin.clone(), Some(Arc::clone(&values[at].source)));
                    fed.push(Feed { property: (*name).clone(), origin, source });
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
            if !fed.is_empty() {
                self.making.keep_near(&mut arguments, schema.valid());
                let call = call(CallKind::Stateful, Standing::Valid, arguments, None);
                calls.push(Shot { tool: self.tool, call, fed: fed.into() });
            }
        }
        calls
    }

    /// Takes note that a call drew an answer of a new kind.
    pub(super) fn keep(&mut self, call: &Call) {
        if let (Standing::Valid, Some(choices)) = (&call.standing, &call.tape) {
            let choices = choices.by(self.making.schema.valid());
            if self.kept.len() >= KEPT {
                let at = self.random.index(KEPT);
                self.kept.swap_remove(at);
            }
            self.kept.push(choices);
        }
    }

    pub(super) fn schema(&self) -> &ToolSchema {
        &self.making.schema
    }

    /// Counts which keywords a call kept or broke.
    pub(super) fn count(&mut self, call: &Call) {
        match (&call.standing, &call.arguments) {
            (Standing::Breaks(site), _) => {
                // Nearly always it is the very one.
                let own = self.breakers.iter().position(|breaker| Arc::ptr_eq(&breaker.site, site));
                let at = own.or_else(|| self.breakers.iter().position(|breaker| breaker.site == *site));
                if let Some(at) = at {
                    self.breakers[at].broken += 1;
                }
            }
            (Standing::Valid, Arguments::Json(arguments)) => {
                let breakers = &mut self.breakers;
                self.reached.by(arguments, |at| breakers[at].kept += 1);
            }
            _ => {}
        }
    }
}

/// How many types [`type_of`] tells apart.
const TYPES: usize = 7;

/// The number of a value's type.
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

/// What arguments have at a place, in which `*` is any element.
fn at_place<'v>(made: Option<&'v Value>, place: &str) -> Option<&'v Value> {
    made?.pointer(&place.replace("/*", "/0"))
}

/// Which wrong types are sent first: those that programs take most often for the one that is asked for.
fn mistaken(made: Option<&Value>, place: &str, asked: &str) -> usize {
    let list = asked == "array";
    match at_place(made, place) {
        Some(Value::Object(_)) => usize::from(!list) * 2,
        Some(Value::Null) => usize::from(list),
        Some(Value::String(_)) => 1 + usize::from(list),
        // A fraction is a number to programs that never look further.
        Some(Value::Number(_)) if asked == "integer" => 0,
        Some(Value::Number(_)) => 3,
        Some(Value::Array(_)) => 4,
        Some(Value::Bool(_)) => 5,
        None => 6,
    }
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the root" } else { pointer }
}

/// A seed of a tool's own.
fn mix(seed: u64, name: &str) -> u64 {
    // FNV-1a, so that the order and number of the tools do not matter.
    name.bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
