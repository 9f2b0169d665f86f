//! The tools of a campaign, each known by its index.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::clean_results::CleanResults;
use super::fuzz_call::FuzzCall;
use crate::campaign::limits::{LONGER_CALL, MAX_LONG_TEXT_TOOLS, SLOW_CALL};
use crate::case::Oracle;
use crate::check::fuzz::{Arguments, Call, FuzzExchange, FuzzedTool, OracleViolation, ResultRules, Validity, judge};
use crate::fuzz::ToolSchema;
use crate::sequence::{Role, SequenceTool};
use crate::spec::Revision;
use crate::verdict::CallKind;

/// A tool to fuzz, as discovery found it.
#[derive(Debug)]
pub(crate) struct SelectedTool {
    pub(crate) name: String,
    pub(crate) definition: Value,
    /// Its `inputSchema`, if it can be read.
    pub(crate) schema: Option<Arc<ToolSchema>>,
    /// The arguments with which it succeeded in discovery, if it did.
    pub(crate) working_arguments: Option<Value>,
    /// How long its first call took, if there was one.
    pub(crate) first_call: Option<Duration>,
    /// Whether it is annotated `readOnlyHint: true`.
    pub(crate) is_read_only: bool,
    /// Whether it is annotated `idempotentHint: true`.
    pub(crate) is_idempotent: bool,
}

impl SelectedTool {
    /// Whether a call takes so long that many of them should be in flight.
    pub(in crate::campaign) fn is_slow(&self) -> bool {
        self.first_call.is_some_and(|duration| duration >= SLOW_CALL)
    }

    /// Whether it says by its annotations that it only reads, or its name says so and they do not contradict.
    fn only_reads(&self) -> bool {
        let reads = |tool: SequenceTool| matches!(tool.role, Some(Role::Read | Role::List));
        let is_contradicted = self.definition.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(false));
        self.is_read_only || (!is_contradicted && SequenceTool::new(&self.definition).is_some_and(reads))
    }

    /// Whether a call takes so long that it should be in flight with others in every phase.
    pub(in crate::campaign) fn takes_a_while(&self) -> bool {
        self.first_call.is_some_and(|duration| duration >= LONGER_CALL)
    }
}

/// The tools of a campaign with what their responses are judged by.
#[derive(Debug)]
pub(in crate::campaign) struct FuzzTools {
    selected: Vec<SelectedTool>,
    fuzzed: Vec<FuzzedTool>,
    result_rules: Option<Arc<ResultRules>>,
    /// The results that keep the rules, of each tool.
    clean_results: Vec<CleanResults>,
}

impl FuzzTools {
    /// Prepares the tools; `known_strings` may occur in error messages.
    pub(in crate::campaign) fn new(
        selected: Vec<SelectedTool>,
        revision: Revision,
        known_strings: &[String],
        result_rules: Option<Arc<ResultRules>>,
    ) -> Self {
        let fuzzed = |tool: &SelectedTool| FuzzedTool::new(&tool.definition, revision, known_strings.to_vec());
        let clean_results = selected.iter().map(|_| CleanResults::default()).collect();
        Self { fuzzed: selected.iter().map(fuzzed).collect(), selected, result_rules, clean_results }
    }

    pub(in crate::campaign) fn len(&self) -> usize {
        self.selected.len()
    }

    pub(in crate::campaign) fn all(&self) -> &[SelectedTool] {
        &self.selected
    }

    pub(in crate::campaign) fn get(&self, tool: usize) -> &SelectedTool {
        &self.selected[tool]
    }

    /// Whether a tool gets the longest texts: it only reads, by its annotation or its name, as another one could keep them, and
    /// it is one of the first such tools.
    pub(in crate::campaign) fn gets_long_texts(&self, tool: usize) -> bool {
        let earlier = self.selected[..tool].iter().filter(|earlier| earlier.only_reads()).count();
        self.selected[tool].only_reads() && earlier < MAX_LONG_TEXT_TOOLS
    }

    pub(in crate::campaign) fn name(&self, tool: usize) -> &str {
        &self.fuzzed[tool].name
    }

    pub(in crate::campaign) fn names(&self) -> impl Iterator<Item = &str> {
        self.fuzzed.iter().map(|tool| tool.name.as_str())
    }

    pub(in crate::campaign) fn definitions(&self) -> Vec<&Value> {
        self.selected.iter().map(|tool| &tool.definition).collect()
    }

    /// The schema of a tool, if it can be read.
    pub(in crate::campaign) fn schema(&self, tool: usize) -> Option<&ToolSchema> {
        self.selected[tool].schema.as_deref()
    }

    /// The index of the tool with a name.
    pub(in crate::campaign) fn position(&self, name: &str) -> Option<usize> {
        self.selected.iter().position(|tool| tool.name == name)
    }

    /// Judges the responses to a call of a tool.
    pub(in crate::campaign) fn judge(&self, tool: usize, exchange: &FuzzExchange) -> Vec<OracleViolation> {
        let mut violations = judge(&self.fuzzed[tool], exchange);
        let is_of_shape = |violation: &OracleViolation| {
            matches!(violation.oracle, Oracle::MalformedResponse | Oracle::ResultShape | Oracle::OutputSchema)
        };
        let has_result = exchange.responses.first().is_some_and(|response| response.get("result").is_some());
        let clean = &self.clean_results[tool];
        if (has_result || !exchange.other.messages.is_empty())
            && !violations.iter().any(is_of_shape)
            && !clean.include(exchange)
        {
            let broken = self.broken_rules(exchange);
            if broken.is_empty() {
                clean.add(exchange);
            }
            violations.extend(broken);
        }
        violations
    }

    /// The rules of passive cases that the result of a call breaks, or a message of the server before it.
    pub(in crate::campaign) fn broken_rules(&self, exchange: &FuzzExchange) -> Vec<OracleViolation> {
        self.result_rules.as_ref().map_or_else(Vec::new, |rules| rules.judge(exchange))
    }

    /// For each tool that succeeded in discovery, its plain call.
    pub(in crate::campaign) fn plain_calls(&self) -> Vec<FuzzCall> {
        let of = |(tool, selected): (usize, &SelectedTool)| {
            let arguments = Arguments::Json(selected.working_arguments.clone()?);
            let call = Call { kind: CallKind::Valid, validity: Validity::Valid, arguments, choices: None };
            Some(FuzzCall::new(tool, Arc::new(call)))
        };
        self.selected.iter().enumerate().filter_map(of).collect()
    }
}
