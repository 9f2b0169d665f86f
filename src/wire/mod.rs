//! Splits streams of bytes into lines or server-sent events and parses them, reporting errors instead of
//! correcting them. Does no input or output and knows nothing of the protocol beyond JSON-RPC.

mod exact;
mod frame;
mod json_text;
mod long_strings;
mod message;
mod rate_limit;
mod sse;
mod surrogate;
mod value_text;

#[cfg(feature = "http")]
pub(crate) use frame::MAX_MESSAGE_BYTES;
pub use frame::{Frame, FramingError, Splitter};
pub(crate) use frame::{MAX_DEPTH, MAX_SENT_BYTES, SHORTENED, exceeds_limits};
pub(crate) use json_text::JsonText;
pub(crate) use message::{
    HTTP_STATUS_MEMBER, Id, MessageKind, id_of, is_lost_id, member, messages, method_of, same_id, same_id_loosely,
};
pub(crate) use rate_limit::reports_rate_limit;
pub use sse::{SseDecoder, SseEvent};
pub(crate) use surrogate::before_lone_surrogate;
