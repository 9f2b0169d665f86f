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

pub use baseline::{BASELINE_SCHEMA, Baseline, Change, Line, NO_REASON_YET};
pub use checks::{Check, Comparison, ConnectionCheck, Oracle, UnknownName, ValueCheck};
pub use client_response::ClientResponse;
pub use coverage::{Answer, Count, Counts, Coverage, Entry, Reason, reasons};
pub use file_schema::{HINTS_SCHEMA, SCHEMA};
pub use format::{FORMATS, with_formats};
pub use hint::{Ask, Hint, load_hints, understand_hints};
pub use http_step::{HeaderValues, HttpCall, HttpKind, StatusPattern, Until};
pub use lazy_schema::Pattern;
pub use load::{CaseText, MAX_FILE_BYTES, MAX_FILES, Trust, load, read_directory, read_embedded, understand};
pub use model::{
    Act, Action, Body, Case, Delivery, Expected, ExpectedResponse, ForEach, InputResponses, MAX_WAIT_MS, Meta, Methods,
    Needs, Otherwise, Outcome, Passive, Poll, Process, RawLine, RequestState, Retry, Rule, SavedPointers, Shutdown,
    Source, Step, Together, ValueRule, Watch, WatchKind, WatchedValues,
};
pub use path_pattern::{Place, PlaceError};
pub use placeholder::{MAX_TEXT, Placeholder, UnknownPlaceholder, fill, fill_text, find};
pub use problem::{CaseFault, LoadError};
pub use select::{SelectError, Selection};
pub use shard::{NoShard, Shard, stable_hash};
