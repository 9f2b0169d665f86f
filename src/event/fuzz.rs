//! What fuzzing exercised in one revision: counts and coverage, never single calls.
//!
//! What it found stands among the case results (area `fuzz`); this is what a reader needs to trust that
//! little was found. Memory is bounded by the number of tools and the size of their schemas.

use serde::{Deserialize, Serialize};

use crate::verdict::CallKind;

/// What fuzzing did in one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct FuzzSummary {
    /// The seed that everything random came from.
    pub seed: u64,
    /// How many calls were made, those of shrinking and confirming included.
    pub calls: u64,
    /// How many of them shrank or confirmed a failure.
    pub shrinking: u64,
    /// Milliseconds that it took.
    pub wall_ms: f64,
    /// How often the server had to be started again.
    pub restarts: usize,
    /// Why it ended before its budget was spent, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_early: Option<String>,
    /// The tools, in the server's order.
    pub tools: Vec<ToolFuzz>,
}

/// What fuzzing did with one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolFuzz {
    /// Its name.
    pub tool: String,
    /// Why it was not called, or what is worth knowing about how it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The calls by why they were made and what came of them; only what happened.
    pub calls: Vec<CallCount>,
    /// How long answers took, if any came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The keywords of its inputSchema, and which of their sides were tried.
    pub keywords: Vec<KeywordCoverage>,
    /// The boundaries and branches of its inputSchema that were enumerated.
    pub obligations: usize,
    /// How many of them were met.
    pub covered: usize,
    /// The kinds of answer, told apart by status, code, words and structure; the commonest first.
    pub responses: Vec<ResponseClass>,
    /// What could not be generated, and why.
    pub gaps: Vec<Gap>,
}

/// How many calls of a kind came to the same outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct CallCount {
    /// Why they were made.
    pub kind: CallKind,
    /// What came of them.
    pub outcome: CallOutcome,
    /// How many.
    pub count: u64,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// A result that does not say `isError: true`.
    Success,
    /// A result that says `isError: true`.
    ToolError,
    /// An error of the code -32602.
    InvalidParams,
    /// An error of another code.
    OtherError,
    /// An answer that is neither.
    Malformed,
    /// No answer in time.
    NoResponse,
    /// The process ended, or closed the connection, before it answered.
    Closed,
}

impl CallOutcome {
    /// Every outcome, the good ones first.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::ToolError,
        Self::InvalidParams,
        Self::OtherError,
        Self::Malformed,
        Self::NoResponse,
        Self::Closed,
    ];

    /// The word.
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

/// How long answers took, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Latency {
    /// Half of the answers came within it.
    pub p50_us: u64,
    /// 90 in 100 came within it.
    pub p90_us: u64,
    /// 99 in 100 came within it.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
    /// A histogram: the answers that took at least 2^n and less than 2^(n+1) microseconds, by n; the first
    /// also counts what took less than one.
    pub buckets: Vec<u64>,
}

/// A keyword at a place in an inputSchema, and which of its sides were tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct KeywordCoverage {
    /// The place of the subschema, as a JSON pointer.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// Calls whose arguments were valid at this place.
    pub satisfied: u64,
    /// Calls that broke this keyword and no other.
    pub violated: u64,
    /// Whether no instance tells the schema from the same without this keyword.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_effect: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A kind of answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ResponseClass {
    /// What it looks like: the outcome, the code, and the words with what varies taken out; cut where long.
    pub class: String,
    /// How many answers were of it.
    pub count: u64,
    /// Arguments that drew it, the shortest seen, as JSON; cut where long.
    pub example: String,
}

/// Something that could not be generated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Gap {
    /// What: a keyword at a place, or a boundary.
    pub obligation: String,
    /// Why.
    pub reason: String,
}
