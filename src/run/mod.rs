//! The conductor: finds out what a server speaks, runs the cases and tells a sink what came of it.

mod again;
mod asking;
mod astray;
mod bindings;
mod common;
mod conduct;
mod exchange;
mod fuzz;
mod guess;
mod hinted;
mod host;
mod lane;
mod launch;
mod listen;
mod offer;
mod others;
mod permits;
mod plan;
mod probe;
mod probing;
mod reply;
mod retry;
mod session;
mod survey;
mod target;
mod tryout;

pub use conduct::{Stop, run};
pub use fuzz::{Earlier, Fed, Regression, RegressionError};
pub(crate) use plan::shell_words;
pub use plan::{Calls, FuzzPlan, HttpServer, Launcher, Plan, Revisions, ServerCommand, side_by_side};
pub use tryout::{Found, TriedOut, try_out};
