//! Fuzzing statistics of one revision: counts and coverage, no single calls.
//!
//! Findings are case results (area `fuzz`); the statistics show how thorough the search was. Memory is bounded by the
//! number of tools and the size of their schemas.

use serde::{Deserialize, Serialize};

use crate::verdict::CallKind;

/// The fuzzing statistics of one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct FuzzSummary {
    /// The seed of all random choices.
    pub seed: u64,
    /// The number of calls, including those to shrink and confirm failures.
    pub calls: u64,
    /// The number of calls to shrink or confirm failures.
    pub shrinking: u64,
    /// The duration in milliseconds.
    pub wall_ms: f64,
    /// The number of server restarts.
    pub restarts: usize,
    /// Why fuzzing stopped before its budget was spent, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_early: Option<String>,
    /// The tools, in the order of the server.
    pub tools: Vec<ToolFuzz>,
}

/// The fuzzing statistics of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolFuzz {
    /// Its name.
    pub tool: String,
    /// Why it was not called, or a note about the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The number of calls by kind and outcome, without zeros.
    pub calls: Vec<CallCount>,
    /// The response times, if there were responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The coverage of the keywords of its inputSchema.
    pub keywords: Vec<KeywordCoverage>,
    /// The number of boundaries and branches of its inputSchema.
    pub obligations: usize,
    /// The number of boundaries and branches that were covered.
    pub covered: usize,
    /// The response classes by status, code, text and structure, most frequent first.
    pub responses: Vec<ResponseClass>,
    /// What could not be generated, and why.
    pub gaps: Vec<Gap>,
}

/// The number of calls of one kind with one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct CallCount {
    /// The kind of the calls.
    pub kind: CallKind,
    /// The outcome of the calls.
    pub outcome: CallOutcome,
    /// The number of calls.
    pub count: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// A result without `isError: true`.
    Success,
    /// A result with `isError: true`.
    ToolError,
    /// Error -32602.
    InvalidParams,
    /// Another JSON-RPC error.
    OtherError,
    /// A response that is neither a result nor an error.
    Malformed,
    /// No response before the timeout.
    NoResponse,
    /// The server exited or closed the connection before it responded.
    Closed,
}

impl CallOutcome {
    /// All outcomes, successful ones first.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::ToolError,
        Self::InvalidParams,
        Self::OtherError,
        Self::Malformed,
        Self::NoResponse,
        Self::Closed,
    ];

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ToolError => "tool-error",
            Self::InvalidParams => "invalid-params",
            Self::OtherError => "other-error",
            Self::Malformed => "malformed",
            Self::NoResponse => "no-response",
            Self::Closed => "closed",
        }
    }
}

/// Response times in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Latency {
    /// The 50th percentile.
    pub p50_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The maximum.
    pub max_us: u64,
    /// A histogram: element n is the number of responses that took at least 2^n and less than 2^(n+1) microseconds; the
    /// first also counts those that took less than one.
    pub buckets: Vec<u64>,
}

/// The coverage of a keyword at one location of an inputSchema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct KeywordCoverage {
    /// The location of the subschema, as a JSON Pointer.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The number of calls that satisfied the keyword.
    pub satisfied: u64,
    /// The number of calls that violated this keyword and no other.
    pub violated: u64,
    /// Whether the keyword has no effect: no instance violates it alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_effect: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A class of similar responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ResponseClass {
    /// The description of the class: outcome, code and text without variable parts; shortened if long.
    pub class: String,
    /// The number of responses in the class.
    pub count: u64,
    /// The shortest arguments that led to such a response, as JSON; shortened if long.
    pub example: String,
}

/// Something that could not be generated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Gap {
    /// A keyword at a location, or a boundary.
    pub obligation: String,
    /// Why.
    pub reason: String,
}
