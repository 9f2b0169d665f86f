//! Calls as they are sent, the values they reuse from earlier results, and the results of bursts of calls.

use std::sync::Arc;

use serde_json::Value;

use super::value_pool::Origin;
use crate::check::fuzz::{Arguments, Call, FuzzExchange};

/// A call of a tool, which is identified by its index.
#[derive(Debug, Clone)]
pub(in crate::campaign) struct FuzzCall {
    pub(in crate::campaign) tool: usize,
    pub(in crate::campaign) call: Arc<Call>,
    /// The arguments that come from earlier results.
    pub(in crate::campaign) reused: Arc<[ReusedValue]>,
}

/// An argument whose value comes from an earlier result.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::campaign) struct ReusedValue {
    pub(in crate::campaign) property: String,
    pub(in crate::campaign) origin: Origin,
    /// The call that returned the value, if known.
    pub(in crate::campaign) source: Option<Arc<Call>>,
}

/// A successful call with the index of its tool and its result.
pub(in crate::campaign) type ServedCall = (usize, Arc<Call>, Value);

impl FuzzCall {
    pub(in crate::campaign) fn new(tool: usize, call: Arc<Call>) -> Self {
        Self { tool, call, reused: Arc::default() }
    }

    /// The same call with current values from earlier results: from the call that returned the value originally, or
    /// else from the last call of the same tool.
    pub(in crate::campaign) fn with_values_from(&self, served: &[ServedCall]) -> Self {
        self.with_current_values(served, true)
    }

    /// The same call with current values from repetitions of the calls that returned the values originally.
    pub(in crate::campaign) fn with_values_exactly_from(&self, served: &[ServedCall]) -> Self {
        self.with_current_values(served, false)
    }

    fn with_current_values(&self, served: &[ServedCall], or_same_tool: bool) -> Self {
        let Arguments::Json(arguments) = &self.call.arguments else { return self.clone() };
        let mut filled = arguments.clone();
        for reused_value in self.reused.iter() {
            let own =
                |known: &&ServedCall| reused_value.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, &known.1));
            let of_tool = |known: &&ServedCall| or_same_tool && known.0 == reused_value.origin.tool;
            let found = served.iter().rev().find(own).or_else(|| served.iter().rev().find(of_tool));
            let value = found.and_then(|(_, _, result)| reused_value.origin.extract(result));
            if let (Some(value), Some(place)) = (value, filled.get_mut(&reused_value.property)) {
                *place = value;
            }
        }
        if filled == *arguments {
            return self.clone();
        }
        let call = Call { arguments: Arguments::Json(filled), ..(*self.call).clone() };
        Self { call: Arc::new(call), ..self.clone() }
    }
}

/// The reason why a burst ended early.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::campaign) enum BurstEnd {
    Ended { status: String, stderr: String },
    Silent,
    Flooded,
}

/// The results of a burst of calls.
#[derive(Debug, Default)]
pub(in crate::campaign) struct Burst {
    /// Answered calls, by index.
    pub(in crate::campaign) done: Vec<(usize, FuzzExchange)>,
    /// Calls that were sent and not answered.
    pub(in crate::campaign) open: Vec<(usize, FuzzExchange)>,
    /// The index of the first call that was not sent.
    pub(in crate::campaign) unsent: usize,
    pub(in crate::campaign) end: Option<BurstEnd>,
}
