//! Where most faults take effect: edits of a message between its making and its writing.
//!
//! Each module has a table or a function for one place. What is conforming is made elsewhere and knows
//! nothing of the faults here; faults that change what is done, and not only how it looks, stand where
//! it is done.

pub(super) mod client_request;
pub(super) mod edit;
pub(super) mod envelope;
mod hostile;
pub(super) mod primitive;
pub(super) mod serialization;
pub(super) mod task;
pub(super) mod tool_list;
pub(super) mod tool_result;
