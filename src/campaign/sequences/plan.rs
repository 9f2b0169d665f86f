//! The sequence of calls for a kind of objects, and what its results have to show.
//!
//! Pure: it makes steps and expectations, and calls nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::arguments::{Amount, ArgumentMaker};
use super::discovery::example;
use super::kinds::{Identifier, ObjectKind, ParentLink};
use crate::campaign::calls::tools::FuzzTools;
use crate::case::Oracle;
use crate::sequence::{Claim, Expectation, Role, SequenceStep, SequenceTool, StepSource, StepValue};

/// Calls, and what each oracle expects of them.
#[derive(Debug, Default)]
pub(super) struct SequencePlan {
    pub(super) steps: Vec<SequenceStep>,
    pub(super) expectations: Vec<(Oracle, Expectation)>,
    /// The objects that the steps create, with their kinds, oldest first.
    pub(super) objects: Vec<(usize, usize)>,
}

/// An object of a plan.
#[derive(Debug, Clone)]
struct PlannedObject {
    /// The step that creates it.
    step: usize,
    identifier: StepSource,
    /// Its name, if the client names it.
    name: Option<Value>,
}

/// Plans the calls for each kind.
pub(super) struct SequencePlanner<'s> {
    pub(super) tools: &'s FuzzTools,
    pub(super) views: &'s [SequenceTool],
    pub(super) kinds: &'s [ObjectKind],
    pub(super) links: &'s [ParentLink],
    pub(super) amounts: &'s BTreeMap<usize, Amount>,
    pub(super) maker: &'s mut ArgumentMaker,
}

/// The two objects of a plan, after they were created and read twice.
struct ObjectPair {
    kind: ObjectKind,
    /// The tool that reads an object, with the argument that names it.
    reader: (usize, String),
    first: PlannedObject,
    second: PlannedObject,
    parents: Parents,
    /// The steps that read each of them.
    reads_of_first: (usize, usize),
    reads_of_second: (usize, usize),
    /// The identifiers of both, and what was written to them.
    known: Vec<StepSource>,
}

/// The objects that other objects belong to, by kind.
type Parents = BTreeMap<usize, PlannedObject>;

impl SequencePlanner<'_> {
    /// The calls for a kind: two objects, each read twice; what changes one and what deletes it, and what the reads and
    /// lists show after each.
    pub(super) fn plan(&mut self, kind: usize) -> Option<SequencePlan> {
        let mut plan = SequencePlan::default();
        let mut parents = Parents::new();
        let first = self.create(&mut plan, kind, &mut parents, 0)?;
        let kind_tools = self.kinds[kind].clone();
        let reader = kind_tools.with_role(Role::Read).next().map(|reader| (reader.tool, reader.argument.clone()))?;
        let read_first = self.use_object(&mut plan, &reader, &first, &parents)?;
        let read_again = self.use_object(&mut plan, &reader, &first, &parents)?;
        let lists_one = self.lists(&mut plan, &kind_tools, &parents);
        let second = self.create(&mut plan, kind, &mut parents, 0)?;
        let read_second = self.use_object(&mut plan, &reader, &second, &parents)?;
        let read_second_again = self.use_object(&mut plan, &reader, &second, &parents)?;
        let lists_two = self.lists(&mut plan, &kind_tools, &parents);
        let known = [written(&plan, &first), written(&plan, &second)].concat();
        for (object, earlier, later) in [(&first, read_first, read_again), (&second, read_second, read_second_again)] {
            expect_read_back(&mut plan, object, object.step, earlier, &[]);
            let claim = Claim::Same { earlier: vec![earlier], later, values: known.clone() };
            plan.expect(Oracle::RepeatedRead, claim, vec![Claim::Served(earlier)], vec![earlier]);
            plan.expect(Oracle::RepeatedRead, Claim::Served(later), vec![Claim::Served(earlier)], vec![earlier]);
        }
        for (one, two) in lists_one.iter().zip(&lists_two) {
            for (object, other, list, shown) in
                [(&first, &second, *two, *two), (&second, &first, *two, *two), (&first, &first, *one, *two)]
            {
                // That the same list shows one of them proves that it is a list of these objects.
                let controls = vec![Claim::Shows(shown, other.identifier.clone())];
                let claim = Claim::Shows(list, object.identifier.clone());
                plan.expect(Oracle::CreatedUnlisted, claim, controls, vec![other.step.min(object.step)]);
            }
        }
        let pair = ObjectPair {
            kind: kind_tools,
            reader,
            first,
            second,
            parents,
            reads_of_first: (read_first, read_again),
            reads_of_second: (read_second, read_second_again),
            known,
        };
        self.read_by_others(&mut plan, &pair);
        let changes = self.change(&mut plan, &pair);
        self.delete(&mut plan, &pair, &changes);
        Some(plan)
    }

    /// Adds the call that creates an object, after those that create what it belongs to.
    fn create(
        &mut self,
        plan: &mut SequencePlan,
        kind: usize,
        parents: &mut Parents,
        depth: usize,
    ) -> Option<PlannedObject> {
        let creator = self.kinds[kind].creator;
        for link in self.links.iter().filter(|link| link.tool == creator && link.kind != kind) {
            if depth < 4 && !parents.contains_key(&link.kind) {
                let parent = self.create(plan, link.kind, parents, depth + 1)?;
                parents.insert(link.kind, parent);
            }
        }
        let step = self.call(plan, creator, &[], parents)?;
        let (identifier, name) = match &self.kinds[kind].identifier {
            Identifier::Result(place) => (StepSource::Result { step, place: place.clone() }, None),
            Identifier::Argument(name) => {
                let value = plan.steps[step].arguments.get(name).cloned();
                (StepSource::Argument { step, name: name.clone() }, value)
            }
        };
        plan.objects.push((kind, step));
        Some(PlannedObject { step, identifier, name })
    }

    /// Adds a call of a tool for an object.
    fn use_object(
        &mut self,
        plan: &mut SequencePlan,
        (tool, argument): &(usize, String),
        object: &PlannedObject,
        parents: &Parents,
    ) -> Option<usize> {
        self.call(plan, *tool, &[(argument, object)], parents)
    }

    /// Adds a call; returns the index of its step.
    fn call(
        &mut self,
        plan: &mut SequencePlan,
        tool: usize,
        own: &[(&str, &PlannedObject)],
        parents: &Parents,
    ) -> Option<usize> {
        let view = &self.views[tool];
        let linked =
            self.links.iter().filter(|link| link.tool == tool && own.iter().all(|(name, _)| *name != link.argument));
        let linked = linked.filter_map(|link| Some((link.argument.as_str(), parents.get(&link.kind)?)));
        let (mut fixed, mut values) = (Map::new(), Vec::new());
        for (name, object) in own.iter().copied().chain(linked) {
            let placeholder = object.name.clone().or_else(|| view.parameter(name).map(example)).unwrap_or_default();
            fixed.insert(name.to_owned(), placeholder);
            if let StepSource::Result { step, place } = &object.identifier {
                values.push(StepValue { argument: name.to_owned(), step: *step, place: place.clone() });
            }
        }
        let amount = self.amounts.get(&tool).copied().unwrap_or(Amount::Required);
        let arguments = self.maker.arguments(self.tools, tool, view, amount, &fixed)?;
        plan.steps.push(SequenceStep { tool: view.name.clone(), arguments, values });
        Some(plan.steps.len() - 1)
    }

    fn lists(&mut self, plan: &mut SequencePlan, kind: &ObjectKind, parents: &Parents) -> Vec<usize> {
        kind.lists.iter().filter_map(|list| self.call(plan, *list, &[], parents)).collect()
    }

    /// Expects that other tools annotated `readOnlyHint` leave an object as it is.
    fn read_by_others(&mut self, plan: &mut SequencePlan, pair: &ObjectPair) {
        let others = pair.kind.tools.iter().filter(|other| other.is_confirmed && other.tool != pair.reader.0);
        let others: Vec<(usize, Option<&str>)> = others
            .map(|other| (other.tool, Some(other.argument.as_str())))
            .chain(pair.kind.lists.iter().map(|list| (*list, None)))
            .filter(|(tool, _)| self.views[*tool].is_read_only)
            .collect();
        for (tool, argument) in others {
            let own: Vec<(&str, &PlannedObject)> = argument.iter().map(|argument| (*argument, &pair.first)).collect();
            let Some(called) = self.call(plan, tool, &own, &pair.parents) else { continue };
            let Some(read) = self.use_object(plan, &pair.reader, &pair.first, &pair.parents) else { continue };
            let (one, two) = pair.reads_of_first;
            let claim = Claim::Same { earlier: vec![one, two], later: read, values: pair.known.clone() };
            let controls = vec![Claim::Served(called), is_stable(one, two, &pair.known)];
            plan.expect(Oracle::ReadOnly, claim, controls, vec![called]);
        }
    }

    /// Adds calls that change the first object, and expects that they do, that a second one changes nothing more if the
    /// tool says so, and that the other object stays as it is. Returns the changes.
    fn change(&mut self, plan: &mut SequencePlan, pair: &ObjectPair) -> Vec<usize> {
        let mut calls = Vec::new();
        for tool in pair.kind.with_role(Role::Change) {
            let target = (tool.tool, tool.argument.clone());
            let read = |this: &mut Self, plan: &mut SequencePlan, object: &PlannedObject| {
                this.use_object(plan, &pair.reader, object, &pair.parents)
            };
            let Some(written) = self.use_object(plan, &target, &pair.first, &pair.parents) else { continue };
            let Some(read_once) = read(self, plan, &pair.first) else { continue };
            let Some(read_again) = read(self, plan, &pair.first) else { continue };
            let Some(other) = read(self, plan, &pair.second) else { continue };
            calls.push(written);
            let was_served = Claim::Served(written);
            expect_read_back(plan, &pair.first, written, read_once, std::slice::from_ref(&was_served));
            let values: Vec<StepSource> = pair.known.iter().cloned().chain(written_arguments(plan, written)).collect();
            let (one, two) = pair.reads_of_second;
            let claim = Claim::Same { earlier: vec![one, two], later: other, values: values.clone() };
            let controls = vec![was_served.clone(), is_stable(one, two, &pair.known)];
            plan.expect(Oracle::OtherObject, claim, controls.clone(), vec![written]);
            plan.expect(Oracle::OtherObject, Claim::Served(other), controls, vec![written]);
            if self.views[tool.tool].is_idempotent {
                // The same call again, with the same arguments.
                plan.steps.push(plan.steps[written].clone());
                let again = plan.steps.len() - 1;
                let Some(later) = read(self, plan, &pair.first) else { continue };
                let stable = is_stable(read_once, read_again, &values);
                let claim = Claim::Same { earlier: vec![read_once, read_again], later, values };
                let controls = vec![was_served, Claim::Served(again), stable];
                plan.expect(Oracle::Idempotent, claim, controls, vec![written, again]);
            }
        }
        calls
    }

    /// Adds the call that deletes the first object, and expects that it is gone and the other one is not.
    fn delete(&mut self, plan: &mut SequencePlan, pair: &ObjectPair, changes: &[usize]) -> Option<()> {
        let target = pair.kind.deleter()?;
        let call = (target.tool, target.argument.clone());
        // What the other object shows now, after the changes.
        let one = self.use_object(plan, &pair.reader, &pair.second, &pair.parents)?;
        let two = self.use_object(plan, &pair.reader, &pair.second, &pair.parents)?;
        let deleted = self.use_object(plan, &call, &pair.first, &pair.parents)?;
        let gone = self.use_object(plan, &pair.reader, &pair.first, &pair.parents)?;
        let lists = self.lists(plan, &pair.kind, &pair.parents);
        let other = self.use_object(plan, &pair.reader, &pair.second, &pair.parents)?;
        let was_served = vec![Claim::Served(deleted)];
        if target.is_confirmed {
            plan.expect(Oracle::DeletedServed, Claim::Refused(gone), was_served.clone(), vec![deleted]);
            for changed in changes {
                plan.steps.push(plan.steps[*changed].clone());
                let again = plan.steps.len() - 1;
                let controls = vec![Claim::Served(deleted), Claim::Served(*changed)];
                plan.expect(Oracle::DeletedServed, Claim::Refused(again), controls, vec![deleted]);
            }
        }
        let is_gone = vec![Claim::Served(deleted), Claim::Refused(gone)];
        for list in lists {
            let hides = Claim::Hides(list, pair.first.identifier.clone());
            plan.expect(Oracle::DeletedListed, hides, is_gone.clone(), vec![deleted]);
            let shows = Claim::Shows(list, pair.second.identifier.clone());
            let controls = vec![Claim::Served(deleted), Claim::Served(other)];
            plan.expect(Oracle::OtherObject, shows, controls, vec![deleted]);
        }
        let values = written(plan, &pair.second);
        let claim = Claim::Same { earlier: vec![one, two], later: other, values: values.clone() };
        let controls = vec![Claim::Served(deleted), is_stable(one, two, &values)];
        plan.expect(Oracle::OtherObject, claim, controls, vec![deleted]);
        let controls = vec![Claim::Served(deleted), Claim::Served(two)];
        plan.expect(Oracle::OtherObject, Claim::Served(other), controls, vec![deleted]);
        Some(())
    }
}

impl SequencePlan {
    fn expect(&mut self, oracle: Oracle, claim: Claim, controls: Vec<Claim>, needs: Vec<usize>) {
        self.expectations.push((oracle, Expectation { claim, controls, needs }));
    }
}

/// That two reads in a row show the same.
fn is_stable(first: usize, second: usize, known: &[StepSource]) -> Claim {
    Claim::Same { earlier: vec![first], later: second, values: known.to_vec() }
}

/// The identifier of an object, and the texts and numbers with which it was created.
fn written(plan: &SequencePlan, object: &PlannedObject) -> Vec<StepSource> {
    let arguments = written_arguments(plan, object.step).filter(|source| *source != object.identifier);
    std::iter::once(object.identifier.clone()).chain(arguments).collect()
}

/// Expects that what a step wrote to an object is read.
fn expect_read_back(plan: &mut SequencePlan, object: &PlannedObject, written: usize, read: usize, controls: &[Claim]) {
    let sources: Vec<StepSource> = written_arguments(plan, written).collect();
    for source in sources {
        let shown = Claim::Shows(read, object.identifier.clone());
        let controls = controls.iter().cloned().chain([shown]).collect();
        plan.expect(Oracle::ReadBack, Claim::Keeps(read, source), controls, Vec::new());
    }
}

/// The arguments of a step that are texts and numbers and not identifiers of other objects.
fn written_arguments(plan: &SequencePlan, step: usize) -> impl Iterator<Item = StepSource> + use<> {
    let arguments = plan.steps[step].arguments.as_object().cloned().unwrap_or_default();
    let values = plan.steps[step].values.clone();
    arguments.into_iter().filter_map(move |(name, value)| {
        let is_reference = values.iter().any(|value| value.argument == name);
        let is_told = value.is_string() || value.is_number();
        (is_told && !is_reference).then_some(StepSource::Argument { step, name })
    })
}
