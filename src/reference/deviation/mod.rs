//! Where most faults take effect: edits of a message between its making and its writing.
//!
//! Each module has a table or a function for one place. What is conforming is made elsewhere and knows
//! nothing of the faults here; faults that change what is done, and not only how it looks, stand where
//! it is done.

pub(super) mod asking;
pub(super) mod calling;
pub(super) mod edit;
pub(super) mod envelope;
mod hostile;
pub(super) mod listing;
pub(super) mod primitive;
pub(super) mod task;
pub(super) mod writing;
