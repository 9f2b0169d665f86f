//! The conductor: finds out what a server speaks, runs the cases and tells a sink what came of it.

mod plan;

pub use plan::{Calls, Launcher, Plan, Revisions, ServerCommand};
