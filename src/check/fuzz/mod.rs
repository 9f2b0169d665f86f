//! The judge of fuzzed calls: from an exchange, or from measurements over many calls, to violations.
//!
//! Pure functions over what was recorded: nothing here sends, waits, or reads a clock. `call`, `exchange` and
//! `violation` are leaves; the oracles import them, and `judge` imports the oracles.

mod acceptable;
mod argument_validity;
mod call;
mod exchange;
mod finding;
mod growth;
mod input_schema;
mod judge;
mod leak;
mod message_text;
mod response;
mod response_class;
mod violation;

pub use acceptable::{Rank, is_in_order};
pub use call::{Arguments, Call, Choices, Standing};
pub use exchange::{DROPPED, Exchange, Fate, Subject};
pub use finding::finding;
pub use growth::{Sample, climbs, grows, may_grow, piles_up};
pub use input_schema::{lints, misplaced_bound, never_succeeds, unsatisfiable};
pub use judge::judge;
pub use message_text::{echoes, excerpt, skeleton};
pub use response::is_noise;
pub use response_class::{class_of, kind_of, outcome};
pub use violation::Breach;
