//! Splits streams of bytes into lines or server-sent events and parses them, reporting errors instead of
//! correcting them. Does no input or output and knows nothing of the protocol beyond JSON-RPC.

mod frame;
mod message;
mod sse;

pub use frame::{Frame, FramingError, Splitter};
pub(crate) use frame::{Line, MAX_DEPTH, MAX_MESSAGE_BYTES};
pub(crate) use message::{Id, MessageKind, same_id, same_id_loosely};
pub use sse::{SseDecoder, SseEvent};
