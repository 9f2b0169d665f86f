//! Turns text into cases, and selects among them; reads hint files.
//!
//! Owns the case language: its types, the schema of its files (`cases/schema.json`), its placeholders, its formats, its
//! shared schemas and the names of its checks. It checks no server and sends nothing; only the loader reads files.

mod active;
mod baseline;
mod checker;
mod checks;
mod client_response;
mod constrained_types;
mod coverage;
mod expected;
mod file;
mod file_schema;
mod format;
mod hint;
mod http_step;
mod jsonc;
mod lazy_schema;
mod load;
mod methods;
mod model;
mod parse;
mod passive;
mod path_pattern;
mod placeholder;
mod problem;
mod regression;
mod rule_semantics;
mod schema_lint;
#[cfg(test)]
mod schema_types;
mod select;
mod semantics;
mod shapes;
mod step_semantics;
mod stimuli;

pub use active::{
    Action, Delivery, ForEach, LineTransfer, Locale, Meta, Moment, Process, RawLine, SavedPointers, Shutdown,
    StandardError, Start, Step,
};
pub(crate) use active::{Active, InputResponses, OpenRequest, Poll, RequestState, Retry};
pub(crate) use checks::{
    Absence, AtMostPerSecond, Audience, CapabilityUse, Comparison, ConnectionCheck, ConnectionRule,
    ListChangesAnnounced, ListKind, OnlyAfterRequest, Oracle, RepeatedItem, RequiresCapability, ResponseMember,
    SameAcrossPages, Unique, ValueCheck,
};
pub(crate) use client_response::ClientResponse;
pub use coverage::{Answer, Count, Counts, Coverage, Entry, Reason, not_observable, reason_in_detail, reasons};
pub use expected::Expected;
pub(crate) use expected::{AcrossSteps, ExpectedResponse, Outcome};
pub use hint::{Hint, HintRequest, load_hints, parse_hints};
pub(crate) use http_step::{After, Transfer, Until};
pub use http_step::{HttpCall, HttpKind};
pub use lazy_schema::LazySchema;
pub use load::{CaseText, Trust, load, parse_cases, read_embedded};
pub use model::{Body, Case, Source};
pub use passive::{ConnectionAssertion, Passive, Rule, ValueRule, Watch, WatchKind};
pub(crate) use passive::{Methods, WatchedValues};
pub use path_pattern::PathPattern;
pub use placeholder::{FilePath, Placeholder, find};
pub(crate) use placeholder::{fill, fill_text};
pub use problem::LoadError;
pub(crate) use regression::{PrecedingCall, ReusedArgument};
pub use regression::{Regression, RegressionError};
pub use select::{SelectError, SelectedCases, Selection};
