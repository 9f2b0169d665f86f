//! The conductor: finds out what a server speaks, runs the cases and tells a sink what came of it.

mod again;
mod bindings;
mod conduct;
mod exchange;
mod lane;
mod offer;
mod others;
mod plan;
mod probe;
mod session;
mod survey;
mod target;

pub use conduct::{Stop, run};
pub use plan::{Calls, Launcher, Plan, Revisions, ServerCommand};
