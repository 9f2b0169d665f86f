//! Fuzzing statistics of one revision: counts and coverage, no single calls.
//!
//! Findings are case results (area `fuzz`); the statistics show how thorough the search was. Memory is bounded by the
//! number of tools and the size of their schemas.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::verdict::{CallKind, CallOutcome};

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
    /// What happened in the folder of saved failing calls, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_calls: Option<SavedCalls>,
    /// The calls in sequences, if any tool takes what another returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequences: Option<SequenceSummary>,
    /// The tools, in the order of the server.
    pub tools: Vec<ToolFuzz>,
}

/// The calls in sequences: which tools belong together, and what the calls left on the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct SequenceSummary {
    /// The number of calls, including those to shrink and confirm failures and to delete what was created.
    pub calls: u64,
    /// The number of long sequences, one for each kind of objects that tools create and read.
    pub sequences: usize,
    /// The values of results that are arguments of other tools.
    pub links: Vec<ToolLink>,
    /// The number of objects that were created.
    pub created: usize,
    /// The number of them that could not be deleted again.
    pub left: usize,
    /// The tools that created those.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub left_by: BTreeSet<String>,
    /// Why no further sequences were made, if something went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A value of the result of one tool that is an argument of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolLink {
    /// The tool that returns the value.
    pub producer: String,
    /// Where its result has the value.
    pub value: String,
    /// The tool that takes the value.
    pub consumer: String,
    /// The argument that takes it.
    pub argument: String,
    /// Whether calls confirmed it: the tool serves such a value, and refuses a made-up one.
    pub confirmed: bool,
}

/// The failing calls in the folder of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct SavedCalls {
    /// The path of the folder.
    pub folder: String,
    /// The number of failing calls that were written to it.
    pub saved: usize,
    /// The number of calls of earlier runs that no longer fail.
    pub fixed: usize,
    /// The number of them that were removed.
    pub removed: usize,
    /// What could not be read, written or removed; at most 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl SavedCalls {
    /// An empty folder.
    pub(crate) fn new(folder: String) -> Self {
        Self { folder, saved: 0, fixed: 0, removed: 0, problems: Vec::new() }
    }

    /// Whether nothing happened.
    pub(crate) fn is_empty(&self) -> bool {
        self.saved == 0 && self.fixed == 0 && self.problems.is_empty()
    }
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
    /// Why it was not tested although it was called: no generated call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<Untested>,
    /// The number of planned calls: what its schema needs, or what the user set.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub planned: u64,
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
    /// How many mutants of its inputSchema, which wrong validators read instead, the calls tell apart from it, by class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<MutantCoverage>,
    /// The response classes by status, code, text and structure, most frequent first.
    pub responses: Vec<ResponseClass>,
    /// What could not be generated, and why.
    pub gaps: Vec<Gap>,
}

/// A tool that no generated call could satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Untested {
    /// What the calls got instead of a result.
    pub reason: String,
    /// What would help.
    pub remedy: String,
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

/// How many mutants of one class the calls tell apart from the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct MutantCoverage {
    /// The class, such as `bounds`.
    pub class: String,
    /// The number of mutants that the calls tell apart.
    pub told: usize,
    /// The number of mutants, without those that are proven to be equivalent to the schema.
    pub total: usize,
    /// The number of mutants that are proven to accept the same arguments as the schema, so that nothing tells them apart.
    #[serde(default, skip_serializing_if = "is_none")]
    pub equivalent: usize,
    /// Mutants that the calls do not tell apart, and why; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_told: Vec<Gap>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
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
