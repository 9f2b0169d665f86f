//! Sequences as data: calls whose arguments come from earlier results, and what their results have to show.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::{Place, occurrences};

/// A call of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SequenceStep {
    /// The name of the tool.
    pub(crate) tool: String,
    /// The arguments.
    pub(crate) arguments: Value,
    /// The arguments whose values come from the results of earlier steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<StepValue>,
}

/// An argument whose value comes from the result of an earlier step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StepValue {
    /// The name of the argument.
    pub(crate) argument: String,
    /// The index of the earlier step.
    pub(crate) step: usize,
    /// Where its result has the value.
    pub(crate) place: Place,
}

/// A value that the calls of a sequence send or receive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum StepSource {
    /// In the result of a step.
    Result {
        /// The index of the step.
        step: usize,
        /// The place in its result.
        place: Place,
    },
    /// An argument of a step.
    Argument {
        /// The index of the step.
        step: usize,
        /// The name of the argument.
        name: String,
    },
}

/// What the results of a sequence have to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Claim {
    /// The call of a step succeeds.
    Served(usize),
    /// The call of a step fails, with an error or with `isError: true`.
    Refused(usize),
    /// The result of a step contains a value.
    Shows(usize, StepSource),
    /// The result of a step does not contain a value.
    Hides(usize, StepSource),
    /// If the result of a step has one member that is named like an argument of an earlier step, it has its value.
    Keeps(usize, StepSource),
    /// A result shows each of these values as often as an earlier result did. If there are two earlier results, it also
    /// has the members that are the same in both of them.
    Same {
        /// One or two steps that read the same in a row.
        earlier: Vec<usize>,
        /// The step that reads it later.
        later: usize,
        /// The values.
        values: Vec<StepSource>,
    },
    /// The response to a step violates no rule of this fuzz oracle.
    Sound(usize, String),
}

/// What a sequence has to show, if something else holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Expectation {
    /// What has to hold.
    pub(crate) claim: Claim,
    /// What has to hold for the claim to mean anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) controls: Vec<Claim>,
    /// The steps without which the claim says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs: Vec<usize>,
}

/// How a call of a sequence was answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepAnswer {
    /// It succeeded; a list has one result for each of its pages.
    Served(Vec<Value>),
    Refused,
    /// There was no response, or one that is no result and no error.
    Missing,
}

/// A call of a sequence as it was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepRecord {
    /// The arguments that were sent.
    pub(crate) arguments: Value,
    pub(crate) answer: StepAnswer,
    /// The fuzz oracles whose rules the response violates.
    pub(crate) violated: Vec<String>,
}

impl StepRecord {
    /// The results, if it succeeded.
    pub(crate) fn results(&self) -> &[Value] {
        match &self.answer {
            StepAnswer::Served(results) => results,
            StepAnswer::Refused | StepAnswer::Missing => &[],
        }
    }

    /// How often the results show a value.
    pub(crate) fn occurrences(&self, value: &Value) -> usize {
        self.results().iter().map(|result| occurrences(result, value)).sum()
    }
}

impl StepSource {
    /// The step that has the value.
    pub(crate) fn step(&self) -> usize {
        match self {
            Self::Result { step, .. } | Self::Argument { step, .. } => *step,
        }
    }

    /// The value in the calls that were made.
    pub(crate) fn find(&self, records: &[StepRecord]) -> Option<Value> {
        let record = records.get(self.step())?;
        match self {
            Self::Result { place, .. } => place.find(record.results().first()?, &record.arguments),
            Self::Argument { name, .. } => record.arguments.get(name).cloned(),
        }
    }

    fn moved(&self, to: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        Some(match self {
            Self::Result { step, place } => Self::Result { step: to(*step)?, place: place.clone() },
            Self::Argument { step, name } => Self::Argument { step: to(*step)?, name: name.clone() },
        })
    }
}

impl SequenceStep {
    /// The arguments with the values of earlier results; `None` if one of these has none.
    pub(crate) fn arguments_after(&self, records: &[StepRecord]) -> Option<Value> {
        let mut arguments = self.arguments.clone();
        for value in &self.values {
            let source = StepSource::Result { step: value.step, place: value.place.clone() };
            let found = source.find(records)?;
            let place = arguments.get_mut(&value.argument)?;
            *place = like(place, found);
        }
        Some(arguments)
    }
}

/// A value with the type of another: a word of a text may be a number.
pub(crate) fn like(example: &Value, value: Value) -> Value {
    match (example, &value) {
        (Value::Number(_), Value::String(text)) => text.parse::<i64>().map_or(value, Value::from),
        (Value::String(_), Value::Number(number)) => Value::String(number.to_string()),
        _ => value,
    }
}

impl Claim {
    /// The steps that it is about.
    pub(crate) fn steps(&self) -> Vec<usize> {
        match self {
            Self::Served(step) | Self::Refused(step) | Self::Sound(step, _) => vec![*step],
            Self::Shows(step, source) | Self::Hides(step, source) | Self::Keeps(step, source) => {
                vec![*step, source.step()]
            }
            Self::Same { earlier, later, values } => {
                values.iter().map(StepSource::step).chain(earlier.iter().copied()).chain([*later]).collect()
            }
        }
    }

    /// The step whose result may violate it.
    pub(crate) fn last(&self) -> usize {
        match self {
            Self::Served(step)
            | Self::Refused(step)
            | Self::Sound(step, _)
            | Self::Shows(step, _)
            | Self::Hides(step, _)
            | Self::Keeps(step, _) => *step,
            Self::Same { later, .. } => *later,
        }
    }

    /// The same claim where the steps have other indexes; `None` if one of its steps is missing.
    fn moved(&self, to: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        Some(match self {
            Self::Served(step) => Self::Served(to(*step)?),
            Self::Refused(step) => Self::Refused(to(*step)?),
            Self::Shows(step, source) => Self::Shows(to(*step)?, source.moved(to)?),
            Self::Hides(step, source) => Self::Hides(to(*step)?, source.moved(to)?),
            Self::Keeps(step, source) => Self::Keeps(to(*step)?, source.moved(to)?),
            Self::Same { earlier, later, values } => Self::Same {
                earlier: earlier.iter().map(|step| to(*step)).collect::<Option<Vec<_>>>()?,
                later: to(*later)?,
                values: values.iter().map(|source| source.moved(to)).collect::<Option<Vec<_>>>()?,
            },
            Self::Sound(step, oracle) => Self::Sound(to(*step)?, oracle.clone()),
        })
    }
}

/// A sequence: its calls, and what they have to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallSequence {
    pub(crate) steps: Vec<SequenceStep>,
    pub(crate) expectation: Expectation,
}

impl CallSequence {
    /// The steps that cannot be left out: those of the claim, and those whose results they use.
    pub(crate) fn needed(&self) -> Vec<usize> {
        let mut needed = BTreeSet::new();
        let mut pending = self.expectation.claim.steps();
        pending.extend(&self.expectation.needs);
        while let Some(index) = pending.pop() {
            if let Some(step) = self.steps.get(index)
                && needed.insert(index)
            {
                pending.extend(step.values.iter().map(|value| value.step));
            }
        }
        needed.into_iter().collect()
    }

    /// The same sequence with only these steps, which are in order; `None` if the claim needs others. Controls about
    /// other steps are left out.
    pub(crate) fn with_only(&self, kept: &[usize]) -> Option<Self> {
        let to = |step: usize| kept.iter().position(|kept| *kept == step);
        let steps = kept
            .iter()
            .map(|index| {
                let step = self.steps.get(*index)?;
                let moved = |value: &StepValue| Some(StepValue { step: to(value.step)?, ..value.clone() });
                let values = step.values.iter().map(moved).collect::<Option<Vec<_>>>()?;
                Some(SequenceStep { values, ..step.clone() })
            })
            .collect::<Option<Vec<_>>>()?;
        let expectation = Expectation {
            claim: self.expectation.claim.moved(&to)?,
            controls: self.expectation.controls.iter().filter_map(|control| control.moved(&to)).collect(),
            needs: self.expectation.needs.iter().map(|step| to(*step)).collect::<Option<Vec<_>>>()?,
        };
        Some(Self { steps, expectation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(tool: &str, from: &[usize]) -> SequenceStep {
        let value = |step: &usize| StepValue {
            argument: "id".to_owned(),
            step: *step,
            place: Place::Member("/structuredContent/id".to_owned()),
        };
        SequenceStep { tool: tool.to_owned(), arguments: json!({"id": ""}), values: from.iter().map(value).collect() }
    }

    #[test]
    fn a_sequence_keeps_the_steps_whose_results_it_uses() {
        let steps = vec![
            step("create", &[]),
            step("read", &[0]),
            step("create", &[]),
            step("delete", &[0]),
            step("read", &[0]),
        ];
        let claim = Claim::Refused(4);
        let controls = vec![Claim::Served(3), Claim::Served(1)];
        let sequence = CallSequence { steps, expectation: Expectation { claim, controls, needs: vec![3] } };
        assert_eq!(sequence.needed(), [0, 3, 4]);
        let smaller = sequence.with_only(&sequence.needed()).expect("all needed steps are there");
        let tools: Vec<&str> = smaller.steps.iter().map(|step| step.tool.as_str()).collect();
        assert_eq!(tools, ["create", "delete", "read"]);
        assert_eq!(smaller.expectation.claim, Claim::Refused(2));
        assert_eq!(smaller.expectation.controls, [Claim::Served(1)]);
        assert_eq!(sequence.with_only(&[0, 1, 4]), None, "the deletion is needed");
        assert_eq!(sequence.with_only(&[3, 4]), None, "the creation is needed");
    }

    #[test]
    fn arguments_take_the_values_and_the_types_of_this_run() {
        let record = StepRecord {
            arguments: json!({}),
            answer: StepAnswer::Served(vec![json!({"structuredContent": {"id": 7}})]),
            violated: Vec::new(),
        };
        assert_eq!(step("read", &[0]).arguments_after(std::slice::from_ref(&record)), Some(json!({"id": "7"})));
        let refused = StepRecord { answer: StepAnswer::Refused, ..record };
        assert_eq!(step("read", &[0]).arguments_after(&[refused]), None);
    }
}
