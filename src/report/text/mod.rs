//! The report for a reader at a terminal: findings first, each with its proof, then what was left out,
//! then a summary that fits a screen, and the verdict line last.
//!
//! Every text that a server had a hand in passes [`visible`](super::visible) before it is written.

mod finding;
mod fuzzing;
mod open;
mod page;
mod server;

pub(super) use finding::wire_line;
pub use page::{Detail, Text};
