//! The text report: findings with their evidence first, then what was not judged or called, a summary table, and
//! the verdict line last.
//!
//! Every text that a server can influence passes [`visible`](super::visible) before it is written.

mod finding;
mod fuzzing;
mod next;
mod page;
mod renderer;
mod server;
mod unjudged;

pub use page::{Detail, Text};
