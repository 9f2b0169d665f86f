//! The judge of fuzzed calls: from an exchange, or from measurements over many calls, to violations.
//!
//! Pure functions over what was recorded: nothing here sends, waits, or reads a clock. `call`, `exchange` and
//! `violation` are leaves; the oracles import them, and `judge` imports the oracles.

mod argument_validity;
mod call;
mod environment;
mod exchange;
mod finding;
mod growth;
mod input_schema;
mod judge;
mod leak;
mod message_text;
mod refusal;
mod response;
mod response_class;
mod result_rules;
mod sequence;
mod violation;

pub(crate) use call::{Arguments, Call, Choices, Validity};
pub(crate) use environment::is_environmental;
pub(crate) use exchange::{CONNECTION_DROPPED, ExchangeOutcome, FuzzExchange, FuzzedTool, OtherOutput};
pub(crate) use finding::finding;
pub(crate) use growth::{
    ResourceSample, descriptor_growth, latency_after_calls, latency_growth, may_show_memory_growth, memory_growth,
};
pub(crate) use input_schema::{is_misplaced_keyword, misplaced_keywords, unsatisfiable, values_remedy};
pub(crate) use judge::judge;
pub(crate) use message_text::excerpt;
pub(crate) use refusal::{Refusal, described_members, refusal, refused_like_invalid};
pub(crate) use response::is_noise;
pub(crate) use response_class::{outcome, response_class};
pub(crate) use result_rules::ResultRules;
pub(crate) use sequence::sequence_violation;
pub(crate) use violation::OracleViolation;
