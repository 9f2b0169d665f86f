//! Fault injection: changes to results and messages between their creation and their output.
//!
//! Each module has a table or a function for one kind of object. The code that creates conforming messages
//! does not know these faults. Faults that change behaviour rather than a message are implemented where the
//! behaviour is.

pub(super) mod client_request;
pub(super) mod crash;
pub(super) mod edit;
pub(super) mod envelope;
mod hostile;
pub(super) mod primitive;
pub(super) mod request;
pub(super) mod serialization;
pub(super) mod silence;
pub(super) mod size;
pub(super) mod surrogate;
pub(super) mod task;
pub(super) mod tool_list;
pub(super) mod tool_result;
