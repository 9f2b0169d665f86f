//! The report of a run and its renderings.
//!
//! [`Fold`] makes a [`Report`] of a run's events; each format is a [`Renderer`] of a report, over any
//! writer. None of them reads a clock, opens a file or changes a verdict.

pub mod group;
pub mod prose;
pub mod visible;

mod conclusion;
mod example;
mod fuzz_text;
#[cfg(test)]
mod golden;
mod json;
mod live;
mod model;
mod palette;
mod renderer;
mod text;

pub use conclusion::{Conclusion, verdict_line};
#[doc(hidden)]
pub use example::{HOSTILE, example};
pub use json::Json;
pub use live::Live;
pub use model::{FORMAT, Fold, Options, Report, Target, Tool};
pub use renderer::Renderer;
pub use text::{Detail, Text};
