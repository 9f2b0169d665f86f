//! Turns text into cases, and selects among them; reads hint files.
//!
//! Owns the case language: its types, its closed schema (`cases/schema.json`), its placeholders, its
//! formats and the names of its checks. It judges nothing, sends nothing and runs nothing; only the
//! loader touches the disk.

mod asking;
mod baseline;
mod checks;
mod coverage;
mod fault;
mod format;
mod hint;
mod http;
mod inspect;
mod jsonc;
mod load;
mod loaded;
mod model;
mod pattern;
mod place;
mod placeholder;
mod schema;
mod select;
mod shape;
mod shard;
mod stimuli;

pub use asking::{InputResponses, Reply, RequestState, Retry};
pub use baseline::{BASELINE_SCHEMA, Baseline, BaselineEntry, Change, NO_REASON_YET};
pub use checks::{
    Absence, AtMostPerSecond, Audience, CapabilityUse, Check, Comparison, ConnectionCheck, ConnectionRule, EqualValues,
    ListChangesAnnounced, ListKind, OnlyAfterRequest, Oracle, RepeatedItem, RequiresCapability, ResponseMember,
    SameAcrossPages, Unique, UnknownName, ValueCheck,
};
pub use coverage::{Answer, Count, Counts, Coverage, Entry, Reason, reasons};
pub use fault::{CaseFault, LoadError};
pub use format::{FORMATS, with_formats};
pub use hint::{Ask, Hint, load_hints, understand_hints};
pub use http::{HeaderValues, HttpCall, HttpKind, Status, Until};
pub use load::{CaseText, MAX_FILE_BYTES, MAX_FILES, Trust, load, read_directory, read_embedded, understand};
pub use loaded::{Act, Body, Case, Source};
pub use model::{
    CaseFile, Each, Needs, Otherwise, Outcome, Poll, Process, Row, Rule, Shutdown, Step, Together, Watch, WatchKind,
};
pub use pattern::Pattern;
pub use place::{Place, PlaceError};
pub use placeholder::{MAX_TEXT, Placeholder, UnknownPlaceholder, fill, fill_text, find};
pub use select::{SelectError, SelectedCases, Selection};
pub use shape::{HINTS_SCHEMA, SCHEMA};
pub use shard::{NoShard, Shard, stable_hash};
pub use stimuli::stimuli;
