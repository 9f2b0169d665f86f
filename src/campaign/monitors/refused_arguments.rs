//! Compares how a tool refuses invalid arguments with how it refuses valid ones: with `isError`, only its own words show
//! that it means the arguments.
//!
//! A refusal of valid arguments counts if its text names a member of the schema, if calls with invalid arguments are refused
//! for the same reason or with the same opening that speaks of arguments, and if the tool serves other values of the
//! members that it names. A tool that looks a value up, and has nothing of that name, serves hardly any other value there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::process::environment::BoxFuture;
use crate::check::fuzz::{
    Arguments, Call, FuzzExchange, Refusal, Validity, described_members, outcome, refusal, refused_like_invalid,
};
use crate::event::CallOutcome;

/// How many different values of a member have to be served.
const MIN_SERVED_VALUES: usize = 3;
/// The number of kinds of refusal that are kept for each tool, and of those that are suspected.
const MAX_REFUSALS: usize = 32;
const MAX_SUSPICIONS: usize = 8;

/// Looks for valid arguments that are refused like invalid ones.
#[derive(Debug, Default)]
pub(super) struct RefusedArguments {
    tools: BTreeMap<usize, Learned>,
}

/// What is known of one tool.
#[derive(Debug)]
struct Learned {
    /// The members that the schema describes, and those of them whose values it lists.
    names: BTreeSet<String>,
    listed: BTreeSet<String>,
    /// How calls with invalid arguments are refused.
    controls: Controls,
    /// One refusal of valid arguments for each text.
    refusals: Vec<(Refusal, FuzzExchange)>,
    /// Values that were served, by member, at most as many as are needed.
    served: BTreeMap<String, BTreeSet<String>>,
    suspicions: usize,
}

#[derive(Debug, Default)]
struct Controls {
    shapes: BTreeSet<String>,
    openings: BTreeSet<String>,
}

impl Learned {
    fn of(schema: &Value) -> Self {
        let described = described_members(schema);
        let names =
            |members: &mut dyn Iterator<Item = &(&str, &Value)>| members.map(|(name, _)| (*name).to_owned()).collect();
        Self {
            names: names(&mut described.iter()),
            listed: names(&mut described.iter().filter(|(_, schema)| lists_values(schema))),
            controls: Controls::default(),
            refusals: Vec::new(),
            served: BTreeMap::new(),
            suspicions: 0,
        }
    }

    fn learn(&mut self, exchange: &FuzzExchange) {
        const MAX_CONTROLS: usize = 200;
        let Some(refusal) = refusal(exchange, &self.names) else { return };
        if exchange.call.validity != Validity::Valid {
            if self.controls.shapes.len() < MAX_CONTROLS {
                self.controls.shapes.insert(refusal.shape);
                self.controls.openings.extend(refusal.opening);
            }
        } else if self.refusals.len() < MAX_REFUSALS && self.refusals.iter().all(|(known, _)| *known != refusal) {
            self.refusals.push((refusal, exchange.clone()));
        }
    }

    fn learn_served(&mut self, call: &Call) {
        const MAX_VALUES: usize = 100;
        let Arguments::Json(arguments) = &call.arguments else { return };
        let (mut pending, mut seen) = (vec![arguments], 0);
        while let Some(value) = pending.pop() {
            seen += 1;
            if seen > MAX_VALUES {
                return;
            }
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        if self.names.contains(name) {
                            let values = self.served.entry(name.clone()).or_default();
                            if values.len() < MIN_SERVED_VALUES {
                                values.insert(value.to_string());
                            }
                        }
                        pending.push(value);
                    }
                }
                Value::Array(items) => pending.extend(items),
                _ => {}
            }
        }
    }

    /// Whether a refusal of valid arguments is like those of invalid ones, and not for want of what a value names.
    fn is_like_invalid(&self, refusal: &Refusal) -> bool {
        let has_control = self.controls.shapes.contains(&refusal.shape)
            || refusal.opening.as_ref().is_some_and(|opening| self.controls.openings.contains(opening));
        let is_served = |name: &String| {
            let needed = if self.listed.contains(name) { 1 } else { MIN_SERVED_VALUES };
            self.served.get(name).is_some_and(|values| values.len() >= needed)
        };
        has_control && refusal.names.iter().all(is_served)
    }

    /// The refusals of valid arguments that are like those of invalid ones, each once.
    fn suspicions(&mut self, tool: usize) -> Vec<Suspicion> {
        let (found, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.refusals).into_iter().partition(|(refusal, _)| self.is_like_invalid(refusal));
        self.refusals = others;
        let left = MAX_SUSPICIONS.saturating_sub(self.suspicions);
        let suspicions: Vec<Suspicion> = found
            .into_iter()
            .take(left)
            .filter_map(|(_, exchange)| {
                let violation = refused_like_invalid(&exchange)?;
                let failing = Some((FuzzCall::new(tool, Arc::clone(&exchange.call)), exchange));
                Some(Suspicion { test: FailureTest::Response, violation, failing, preceding: Vec::new() })
            })
            .collect();
        self.suspicions += suspicions.len();
        suspicions
    }
}

/// Whether a schema lists the values of a member.
fn lists_values(schema: &Value) -> bool {
    let is_boolean = schema.get("type").is_some_and(|kind| kind == "boolean");
    is_boolean || schema.get("enum").is_some() || schema.get("const").is_some()
}

impl Monitor for RefusedArguments {
    fn observe(&mut self, call_plan: &CallPlan, exchanges: &[FuzzExchange]) {
        let schema = call_plan.schema().schema();
        let learned = self.tools.entry(call_plan.tool()).or_insert_with(|| Learned::of(schema));
        for exchange in exchanges {
            match outcome(exchange) {
                CallOutcome::ToolError => learned.learn(exchange),
                CallOutcome::Success if exchange.call.validity == Validity::Valid => {
                    learned.learn_served(&exchange.call);
                }
                _ => {}
            }
        }
    }

    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let tool = watched.call_plan.tool();
            let Some(learned) = self.tools.get_mut(&tool).filter(|_| matches!(moment, Moment::AfterCalls { .. }))
            else {
                return Ok(Vec::new());
            };
            let suspicions = learned.suspicions(tool).into_iter();
            let new = suspicions.filter(|suspicion| !watched.failures.is_known(tool, &suspicion.violation));
            Ok(new.map(|suspicion| Found::Suspicion { suspicion, spoiled: false }).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::process::scripted::{Answer, ScriptedServer, call_all, valid_call};
    use crate::fuzz::Constraint;
    use crate::verdict::CallKind;
    use serde_json::json;

    fn invalid_call(arguments: Value) -> FuzzCall {
        let constraint = Constraint { pointer: "/properties/page".into(), keyword: "minimum".into(), name: None };
        let validity = Validity::Violates(Arc::new(constraint));
        let arguments = Arguments::Json(arguments);
        FuzzCall::new(0, Arc::new(Call { kind: CallKind::Invalid, validity, arguments, choices: None }))
    }

    /// The texts of what is suspected after calls of a tool that answers each page with a text, or refuses it.
    async fn suspected(answer: fn(i64) -> Result<String, String>, valid: &[i64], invalid: &[i64]) -> Vec<String> {
        let properties = json!({ "page": { "type": "integer", "minimum": 0 } });
        let server =
            ScriptedServer::new(&[("list", properties.clone())], move |call| match answer(call.integer("page")) {
                Ok(text) => Answer::text(text),
                Err(text) => Answer::tool_error(&text),
            });
        let mut caller = server.caller();
        let page = |page: &i64| json!({ "page": page });
        let calls: Vec<FuzzCall> = valid
            .iter()
            .map(|at| valid_call(0, page(at)))
            .chain(invalid.iter().map(|at| invalid_call(page(at))))
            .collect();
        let mut learned = Learned::of(&json!({ "type": "object", "properties": properties }));
        for exchange in call_all(&mut caller, &calls).await {
            if outcome(&exchange) == CallOutcome::Success {
                learned.learn_served(&exchange.call);
            } else {
                learned.learn(&exchange);
            }
        }
        learned.suspicions(0).into_iter().map(|suspicion| suspicion.violation.actual).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_valid_value_that_is_refused_for_the_reason_of_an_invalid_one_is_suspected() {
        let off_by_one =
            |page: i64| if page < 1 { Err(format!("page {page} is too small")) } else { Ok(page.to_string()) };
        let found = suspected(off_by_one, &[0, 1, 2, 3], &[-1]).await;
        assert_eq!(found, ["the server says: page 0 is too small"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reason_of_its_own_counts_after_an_opening_that_speaks_of_arguments() {
        let closed = |page| match page {
            ..0 => Err("Invalid arguments: page is negative".to_owned()),
            7 => Err("Invalid arguments: page brings bad luck".to_owned()),
            _ => Ok(page.to_string()),
        };
        assert_eq!(suspected(closed, &[1, 2, 3, 7], &[-1]).await.len(), 1);
        let other = |page| match page {
            ..0 => Err("Error: page is negative".to_owned()),
            7 => Err("Error: page brings bad luck".to_owned()),
            _ => Ok(page.to_string()),
        };
        assert_eq!(suspected(other, &[1, 2, 3, 7], &[-1]).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_looks_values_up_is_not_suspected() {
        let lookup = |page| if page == 1 { Ok(String::new()) } else { Err("page is wrong".to_owned()) };
        assert_eq!(suspected(lookup, &[0, 1, 2, 3], &[-1]).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_suspected_without_a_refusal_of_invalid_arguments_that_names_a_member() {
        let unlike = |page: i64| if page < 1 { Err("try again later".to_owned()) } else { Ok(page.to_string()) };
        assert_eq!(suspected(unlike, &[0, 1, 2, 3], &[-1]).await, Vec::<String>::new());
        let off_by_one =
            |page: i64| if page < 1 { Err(format!("page {page} is too small")) } else { Ok(page.to_string()) };
        assert_eq!(suspected(off_by_one, &[0, 1, 2, 3], &[]).await, Vec::<String>::new());
    }

    #[test]
    fn values_are_listed_by_enumerations_constants_and_booleans() {
        for (schema, expected) in [
            (json!({ "enum": [1] }), true),
            (json!({ "const": 1 }), true),
            (json!({ "type": "boolean" }), true),
            (json!({ "type": "integer" }), false),
        ] {
            assert_eq!(lists_values(&schema), expected, "{schema}");
        }
    }
}
