//! Turns text into cases, and selects among them; reads hint files.
//!
//! Owns the case language: its types, the schema of its files (`cases/schema.json`), its placeholders, its formats, its
//! shared schemas and the names of its checks. It checks no server and sends nothing; only the loader reads files.

mod baseline;
mod checks;
mod client_response;
mod coverage;
mod file;
mod file_schema;
mod format;
mod hint;
mod http_step;
mod jsonc;
mod lazy_schema;
mod load;
mod model;
mod parse;
mod path_pattern;
mod placeholder;
mod problem;
mod schema_lint;
#[cfg(test)]
mod schema_types;
mod select;
mod semantics;
mod shapes;
mod shard;
mod stimuli;

pub(crate) use baseline::NO_REASON_YET;
pub use baseline::{Baseline, BaselineEntry, Change};
pub(crate) use checks::{
    Absence, AtMostPerSecond, Audience, CapabilityUse, Comparison, ConnectionCheck, ConnectionRule,
    ListChangesAnnounced, ListKind, OnlyAfterRequest, Oracle, RepeatedItem, RequiresCapability, ResponseMember,
    SameAcrossPages, Unique, ValueCheck,
};
pub(crate) use client_response::ClientResponse;
pub use coverage::{Answer, Count, Counts, Coverage, Entry, Reason, reasons};
pub use hint::{Hint, HintRequest, load_hints, parse_hints};
pub(crate) use http_step::Until;
pub use http_step::{HttpCall, HttpKind};
pub use lazy_schema::LazySchema;
pub use load::{CaseText, Trust, load, parse_cases, read_embedded};
pub(crate) use model::{
    AcrossSteps, Active, ExpectedResponse, InputResponses, Methods, Outcome, Poll, RequestState, Retry, WatchedValues,
};
pub use model::{
    Action, Body, Case, ConnectionAssertion, Delivery, Expected, ForEach, Meta, Passive, Process, RawLine, Rule,
    SavedPointers, Shutdown, Source, Step, ValueRule, Watch, WatchKind,
};
pub use path_pattern::PathPattern;
pub use placeholder::{Placeholder, find};
pub(crate) use placeholder::{fill, fill_text};
pub use problem::LoadError;
pub use select::{SelectError, SelectedCases, Selection};
pub use shard::Shard;
pub(crate) use shard::stable_hash;
