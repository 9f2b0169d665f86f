//! Calls as they are made, what of them came out of earlier results, and what came of several.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::familiar::Met;
use super::pool::Origin;
use crate::check::fuzz::{Arguments, Call, Exchange};

/// A call of a tool, by the tool's position.
#[derive(Debug, Clone)]
pub(super) struct Shot {
    pub(super) tool: usize,
    pub(super) call: Arc<Call>,
    /// What of its arguments came out of earlier results.
    pub(super) fed: Arc<[Feed]>,
}

/// A property of a call's arguments that stood in an earlier result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Feed {
    pub(super) property: String,
    pub(super) origin: Origin,
    /// The call that returned it, where that is known.
    pub(super) source: Option<Arc<Call>>,
}

/// A call that was served, with its tool and its result.
pub(super) type Served = (usize, Arc<Call>, Value);

impl Shot {
    pub(super) fn new(tool: usize, call: Arc<Call>) -> Self {
        Self { tool, call, fed: Arc::default() }
    }

    /// The same call with what earlier results hold now: that of the very call which returned a value first, or
    /// else of the last one of its tool.
    pub(super) fn fed_by(&self, served: &[Served]) -> Self {
        self.renewed(served, true)
    }

    /// The same call with what the very calls returned this time that returned its values first.
    pub(super) fn fed_exactly_by(&self, served: &[Served]) -> Self {
        self.renewed(served, false)
    }

    fn renewed(&self, served: &[Served], by_others: bool) -> Self {
        let Arguments::Json(arguments) = &self.call.arguments else { return self.clone() };
        let mut renewed = arguments.clone();
        for feed in self.fed.iter() {
            let own = |known: &&Served| feed.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, &known.1));
            let of_tool = |known: &&Served| by_others && known.0 == feed.origin.tool;
            let found = served.iter().rev().find(own).or_else(|| served.iter().rev().find(of_tool));
            let value = found.and_then(|(_, _, result)| feed.origin.of(result));
            if let (Some(value), Some(place)) = (value, renewed.get_mut(&feed.property)) {
                *place = value;
            }
        }
        if renewed == *arguments {
            return self.clone();
        }
        let call = Call { arguments: Arguments::Json(renewed), ..(*self.call).clone() };
        Self { call: Arc::new(call), ..self.clone() }
    }
}

/// What stopped a burst before its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Broken {
    Ended { status: String, stderr: String },
    Silent,
    Flooded,
}

/// A call that was answered by what is known.
#[derive(Debug)]
pub(super) struct Known {
    /// The position of the call.
    pub(super) index: usize,
    pub(super) met: Arc<Met>,
    /// How long it took, if nothing else was under way.
    pub(super) alone: Option<Duration>,
}

/// What came of several calls.
#[derive(Debug, Default)]
pub(super) struct Burst {
    /// What was answered, by position.
    pub(super) done: Vec<(usize, Exchange)>,
    /// What was answered by what is known.
    pub(super) known: Vec<Known>,
    /// What was sent and not answered.
    pub(super) open: Vec<(usize, Exchange)>,
    /// The first that was not sent.
    pub(super) unsent: usize,
    pub(super) broken: Option<Broken>,
}
