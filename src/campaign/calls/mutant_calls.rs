//! The calls that tell the mutants of a tool's schema apart from it: what wrong validators accept and reject. Between
//! them are those with input that breaks handlers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::call_source::{CallBuilder, call};
use crate::check::fuzz::{Arguments, Call, Validity};
use crate::event::{Gap, MutantCoverage};
use crate::fuzz::{
    HandlerArguments, HandlerText, Telling, TellingArguments, ToolSchema, Undecided, UntoldMutant, handler_arguments,
    mutants, telling_arguments,
};
use crate::verdict::CallKind;

/// How many calls are made for mutants at most for each other call.
const MAX_PER_OTHER_CALL: u64 = 2;
/// How many calls for mutants are made before each one with input that breaks handlers.
const TELLING_PER_HANDLER_CALL: usize = 3;
/// How many mutants of a class are listed that no call told apart.
const MAX_NOT_TOLD: usize = 16;

/// Why a mutant is not told apart.
const BUDGET: &str = "budget: no call was left for it";
const NOT_CALLED: &str = "not called: fuzzing of the tool ended before";
const REMOTE: &str = "not called: the server would contact another machine";
const NOT_FOUND: &str = "no instance found that tells it apart";

/// A mutant of a schema: the JSON pointer of the subschema, and the name in the catalogue.
type MutantId = (String, &'static str);

/// A planned call.
#[derive(Debug)]
enum PlannedCall {
    Telling(TellingArguments),
    Handler(HandlerArguments),
}

impl PlannedCall {
    /// The mutants that it tells from the schema.
    fn mutants(&self) -> &[MutantId] {
        match self {
            Self::Telling(telling) => &telling.mutants,
            Self::Handler(_) => &[],
        }
    }

    fn build(self) -> Arc<Call> {
        match self {
            Self::Telling(telling) => match telling.violates {
                None => call(CallKind::Coverage, Validity::Valid, telling.arguments, None),
                Some(constraint) => {
                    call(CallKind::Invalid, Validity::Violates(Arc::new(constraint)), telling.arguments, None)
                }
            },
            Self::Handler(HandlerArguments { input, arguments, .. }) => match arguments {
                HandlerText::Valid(arguments) => call(CallKind::Handler, Validity::Valid, arguments, None),
                HandlerText::Raw { bytes, grammar, .. } => Arc::new(Call {
                    kind: CallKind::Handler,
                    validity: Validity::Malformed(grammar, input),
                    arguments: Arguments::Raw(bytes.into()),
                    choices: None,
                }),
            },
        }
    }
}

/// The calls of two lists, `every` of the first one before each of the second one, until both are used up.
fn interleaved(first: Vec<PlannedCall>, second: Vec<PlannedCall>, every: usize) -> VecDeque<PlannedCall> {
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut calls = VecDeque::new();
    loop {
        let before = calls.len();
        calls.extend(first.by_ref().take(every));
        calls.extend(second.next());
        if calls.len() == before {
            return calls;
        }
    }
}

/// The calls of one tool that tell mutants of its schema apart from it, the most telling first.
#[derive(Debug)]
pub(in crate::campaign) struct MutantCalls {
    pending: VecDeque<PlannedCall>,
    /// The number of calls that there are.
    count: u64,
    /// The number of calls that may be made.
    budget: u64,
    /// How many calls were built.
    built: u64,
    /// Those that a call was made for.
    told: HashSet<MutantId>,
    /// Those that only calls of other machines would tell apart.
    remote: HashSet<MutantId>,
    /// Those that no call tells apart.
    untold: Vec<UntoldMutant>,
}

impl MutantCalls {
    /// Plans the calls; `served` are arguments that the tool is known to serve.
    pub(in crate::campaign) fn new(schema: &ToolSchema, builder: &CallBuilder, served: Option<&Value>) -> Self {
        let Telling { arguments, untold, .. } = telling_arguments(schema, served);
        let ids = |calls: &[TellingArguments]| calls.iter().flat_map(|telling| telling.mutants.clone()).collect();
        // A server that is called without such a property would contact another machine.
        let (pending, omitted): (Vec<_>, Vec<_>) =
            arguments.into_iter().partition(|telling| builder.names_local_servers(&telling.arguments));
        let (all, mut remote): (HashSet<MutantId>, HashSet<MutantId>) = (ids(&pending), ids(&omitted));
        remote.retain(|mutant| !all.contains(mutant));
        let names_local = |one: &HandlerArguments| match &one.arguments {
            HandlerText::Valid(arguments) | HandlerText::Raw { like: arguments, .. } => {
                builder.names_local_servers(arguments)
            }
        };
        let handler = handler_arguments(schema, served).into_iter().filter(names_local);
        let telling = pending.into_iter().map(PlannedCall::Telling).collect();
        let pending = interleaved(telling, handler.map(PlannedCall::Handler).collect(), TELLING_PER_HANDLER_CALL);
        let (count, told) = (pending.len() as u64, HashSet::new());
        Self { pending, count, budget: count, built: 0, told, remote, untold }
    }

    /// Limits the number of calls.
    pub(in crate::campaign) fn limit(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// How many calls are made for mutants in addition to so many others.
    pub(in crate::campaign) fn planned(&self, calls: u64) -> u64 {
        self.count.min(calls.saturating_mul(MAX_PER_OTHER_CALL))
    }

    /// The next calls, at most `limit`.
    pub(in crate::campaign) fn next(&mut self, limit: u64) -> Vec<Arc<Call>> {
        let count = usize::try_from(limit).unwrap_or(usize::MAX).min(self.pending.len());
        self.built += count as u64;
        let calls = self.pending.drain(..count).map(|planned| {
            self.told.extend(planned.mutants().iter().cloned());
            planned.build()
        });
        calls.collect()
    }

    /// Why no call was made for each mutant that could be told apart.
    fn unmade(&self) -> impl Iterator<Item = (&MutantId, &'static str)> {
        let planned = usize::try_from(self.budget.saturating_sub(self.built)).unwrap_or(usize::MAX);
        let mut seen = HashSet::new();
        let pending = self.pending.iter().enumerate().flat_map(move |(at, call)| {
            let reason = if at < planned { NOT_CALLED } else { BUDGET };
            call.mutants().iter().map(move |mutant| (mutant, reason))
        });
        let pending = pending.filter(move |(mutant, _)| !self.told.contains(*mutant) && seen.insert(*mutant));
        pending.chain(self.remote.iter().map(|mutant| (mutant, REMOTE)))
    }

    /// How many mutants the calls told apart so far, by class.
    pub(in crate::campaign) fn coverage(&self) -> Vec<MutantCoverage> {
        let mut classes: Vec<&str> = mutants().iter().map(|mutant| mutant.class).collect();
        classes.dedup();
        let class_of: HashMap<&str, &str> = mutants().iter().map(|mutant| (mutant.name, mutant.class)).collect();
        let unmade: Vec<(&MutantId, &str)> = self.unmade().collect();
        let coverage = classes.into_iter().map(|class| {
            let is_own = |name: &str| class_of.get(name) == Some(&class);
            let unfound = self.untold.iter().filter(|mutant| mutant.reason == Undecided::NotFound);
            let unfound = unfound.map(|mutant| (mutant.pointer.as_str(), mutant.name, NOT_FOUND));
            let unmade = unmade.iter().map(|((pointer, name), reason)| (pointer.as_str(), *name, *reason));
            let not_told = unmade.chain(unfound).filter(|(_, name, _)| is_own(name));
            let mut not_told: Vec<Gap> = not_told
                .map(|(pointer, name, reason)| Gap {
                    obligation: format!("{name} at {}", if pointer.is_empty() { "the root" } else { pointer }),
                    reason: reason.to_owned(),
                })
                .collect();
            not_told.sort_by(|a, b| a.obligation.cmp(&b.obligation));
            let told = self.told.iter().filter(|(_, name)| is_own(name)).count();
            let total = told + not_told.len();
            not_told.truncate(MAX_NOT_TOLD);
            let is_equivalent = |mutant: &&UntoldMutant| mutant.reason == Undecided::Equivalent && is_own(mutant.name);
            let equivalent = self.untold.iter().filter(is_equivalent).count();
            MutantCoverage { class: class.to_owned(), told, total, equivalent, not_told }
        });
        coverage.filter(|coverage| coverage.total + coverage.equivalent > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Dialect;
    use serde_json::json;

    #[test]
    fn each_call_is_labelled_by_what_the_schema_says_of_it() {
        let schema = json!({
            "type": "object",
            "properties": {"limit": {"type": "integer", "minimum": 1}},
            "required": ["limit"],
        });
        let schema = Arc::new(ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema"));
        let mut calls = MutantCalls::new(&schema, &CallBuilder::new(&schema, &[]), None);
        assert!(calls.coverage().iter().all(|class| class.told == 0 && !class.not_told.is_empty()));
        let made = calls.next(u64::MAX);
        assert_eq!((made.len() as u64, calls.planned(3)), (calls.planned(u64::MAX), 6));
        let told = |class: &MutantCoverage| class.not_told.iter().all(|gap| gap.reason == NOT_FOUND);
        assert!(calls.coverage().iter().all(told), "{:?}", calls.coverage());
        assert!(made.iter().any(|call| call.kind == CallKind::Handler));
        for call in made.iter().filter(|call| call.kind != CallKind::Handler) {
            let crate::check::fuzz::Arguments::Json(arguments) = &call.arguments else { panic!("{call:?}") };
            assert_eq!(schema.is_valid(arguments), call.validity == Validity::Valid, "{arguments}");
        }
        let sent = |arguments: &Value| {
            let wanted = crate::check::fuzz::Arguments::Json(arguments.clone());
            made.iter().any(|call| call.arguments == wanted)
        };
        for arguments in [json!({"limit": 0}), json!({"limit": "1"}), json!({"limit": true}), json!({})] {
            assert!(sent(&arguments), "{arguments} is not sent");
        }
    }

    #[test]
    fn a_mutant_that_is_not_told_apart_has_a_reason() {
        let schema = json!({"type": "object", "properties": {"limit": {"type": "integer", "minimum": 1}}});
        let schema = Arc::new(ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema"));
        let mut calls = MutantCalls::new(&schema, &CallBuilder::new(&schema, &[]), None);
        calls.limit(8);
        calls.next(4);
        let reasons: Vec<String> =
            calls.coverage().into_iter().flat_map(|class| class.not_told).map(|gap| gap.reason).collect();
        let count = |reason: &str| reasons.iter().filter(|known| *known == reason).count();
        assert!(count(BUDGET) > 0 && count(NOT_CALLED) > 0, "{reasons:?}");
        let before: usize = calls.coverage().iter().map(|class| class.total).sum();
        calls.next(u64::MAX);
        let after: usize = calls.coverage().iter().map(|class| class.total).sum();
        assert_eq!(before, after, "the number of mutants does not depend on the calls");
    }
}
