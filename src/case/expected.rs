//! The responses to the steps of an active case that are right, and what the others mean.

use serde::Deserialize;

use super::checks::Comparison;
use super::http_step::StatusPattern;
use super::lazy_schema::LazySchema;
use super::path_pattern::PathPattern;
#[cfg(test)]
use super::schema_types as types;
use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// The responses to a step that are right.
#[derive(Debug, Clone, Default)]
pub enum Expected {
    /// Any response, or none.
    #[default]
    Anything,
    /// A result, as the step is the control: without it nothing is proved.
    Served,
    /// Those of the first entry that matches.
    Listed {
        /// The entries: never none.
        responses: Vec<ExpectedResponse>,
        /// What a response means that matches no entry; by default a violation of the case's requirement.
        otherwise: Option<Otherwise>,
        /// Whether the step is the control in revisions that no entry is for.
        control: bool,
    },
}

impl Expected {
    /// The entries.
    #[must_use]
    pub fn responses(&self) -> &[ExpectedResponse] {
        match self {
            Self::Anything | Self::Served => &[],
            Self::Listed { responses, .. } => responses,
        }
    }

    /// What a response means that matches no entry.
    #[must_use]
    pub fn otherwise(&self) -> Option<&Otherwise> {
        match self {
            Self::Anything | Self::Served => None,
            Self::Listed { otherwise, .. } => otherwise.as_ref(),
        }
    }

    /// Whether any response at all is right.
    #[must_use]
    pub fn allows_response(&self) -> bool {
        let is_response = |outcome: &Outcome| match outcome {
            Outcome::Result
            | Outcome::Success
            | Outcome::ToolError
            | Outcome::InputRequired
            | Outcome::Error
            | Outcome::Malformed => true,
            Outcome::NoResponse
            | Outcome::HttpError
            | Outcome::Closed
            | Outcome::StdinClosed
            | Outcome::Sigterm
            | Outcome::Sigkill => false,
        };
        let mut right =
            self.responses().iter().filter(|response| response.verdict.is_none_or(|it| it == Verdict::Pass));
        right.any(|response| response.outcome.is_empty() || response.outcome.iter().any(is_response))
    }

    /// Whether having no response is a finding of its own.
    #[must_use]
    pub fn blames_silence(&self) -> bool {
        self.responses().iter().any(ExpectedResponse::blames_silence)
    }

    /// Whether the request of the step is one that a server has to answer.
    #[must_use]
    pub fn is_of_valid_request(&self) -> bool {
        self.is_control() || self.blames_silence()
    }

    /// Whether the step is the control.
    #[must_use]
    pub fn is_control(&self) -> bool {
        match self {
            Self::Anything => false,
            Self::Served => true,
            Self::Listed { control, .. } => *control,
        }
    }
}

/// One response that may come, and what it means.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "expected-response"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExpectedResponse {
    /// The outcomes that match.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<Outcome>>"))]
    pub outcome: Vec<Outcome>,
    /// The error codes that match.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::ErrorCode>>"))]
    pub code: Vec<i64>,
    /// A JSON Schema that the response is valid against.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub schema: Option<LazySchema>,
    /// The HTTP statuses that match: numbers, or classes such as `4xx`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::StatusOrClass>>"))]
    pub status: Vec<StatusPattern>,
    /// A JSON Schema that the HTTP exchange is valid against; `watch` describes its form.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub exchange: Option<LazySchema>,
    /// The revisions that the entry applies in; by default all of the case's.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Revisions>"))]
    pub revisions: Option<RevisionSet>,
    /// What the response means; by default `pass`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub verdict: Option<Verdict>,
    /// The requirement that it is reported under, where it does not pass.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub requirement: Option<String>,
    /// What is wrong, or worth knowing, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub message: Option<String>,
}

impl ExpectedResponse {
    /// Whether the entry makes having no response a finding.
    #[must_use]
    pub fn blames_silence(&self) -> bool {
        let is_silence = |outcome: &Outcome| matches!(outcome, Outcome::NoResponse | Outcome::Closed);
        matches!(self.verdict, Some(Verdict::Warn | Verdict::Fail))
            && self.outcome.contains(&Outcome::NoResponse)
            && self.outcome.iter().all(is_silence)
    }
}

/// What a response means that matches no entry.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "otherwise", extend("minProperties" = 1)))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Otherwise {
    /// The verdict; by default the level of the requirement decides.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub verdict: Option<Verdict>,
    /// The requirement that it is reported under; by default the first of the case's that the revision states.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub requirement: Option<String>,
    /// What is wrong, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub message: Option<String>,
    /// What the step is about. Findings of steps with the same message are one finding, which names what each of
    /// these steps is about.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub subject: Option<String>,
}

/// What may come of something that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// a response with a result of any kind
    Result,
    /// a result without `isError: true`
    Success,
    /// a result with `isError: true`
    ToolError,
    /// a result that requests input; it counts as `success` too
    InputRequired,
    /// a response with an error
    Error,
    /// a response with neither a result nor an error, or with both
    Malformed,
    /// no response, although the server was running
    NoResponse,
    /// an HTTP status of 400 or more without a JSON-RPC message; an entry for `error` matches it too
    HttpError,
    /// the server exited or closed the connection first
    Closed,
    /// the process exited when its standard input was closed
    StdinClosed,
    /// the process exited on SIGTERM
    Sigterm,
    /// the process had to be killed
    Sigkill,
}

/// A check that compares the responses to several steps.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "across-steps", transform = types::two_steps_where_compared)
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AcrossSteps {
    /// The comparison.
    #[cfg_attr(test, schemars(with = "types::ComparisonName"))]
    pub check: Comparison,
    /// The names of the steps.
    #[cfg_attr(test, schemars(with = "types::Distinct<types::StepReference>"))]
    pub steps: Vec<String>,
    /// The places in each response whose values are compared; by default the whole response. The values of all
    /// pages of a `paginate` step are joined.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::PathText>"))]
    pub path: Option<PathPattern>,
    /// A JSON Schema; unless every one of the responses is valid against it, nothing is compared.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub matching: Option<LazySchema>,
    /// The verdict on a violation; by default the level of the requirement decides.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub verdict: Option<Verdict>,
    /// The requirement that a violation is reported under; by default the first of the case's that the revision
    /// states.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub requirement: Option<String>,
    /// What is wrong, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub message: Option<String>,
}
