//! The report of a run and its renderings.
//!
//! A run's events are folded into a [`Report`]; each format is a [`Renderer`] of a report, over any writer. None of
//! them reads a clock, opens a file or changes a verdict.

// What the program does with reports, and how it writes: no promise.
#[doc(hidden)]
pub mod diff;
#[doc(hidden)]
pub mod fleet;
#[doc(hidden)]
pub mod gate;
#[doc(hidden)]
pub mod group;
#[doc(hidden)]
pub mod merge;
#[doc(hidden)]
pub mod prose;
#[doc(hidden)]
pub mod visible;

mod account;
mod badge;
mod conclusion;
mod example;
mod github;
#[cfg(test)]
mod golden;
mod hostile;
mod html;
mod json;
mod junit;
#[cfg(feature = "cli")]
mod live;
mod markdown;
mod model;
mod palette;
#[cfg(feature = "harness")]
pub(crate) mod prove;
mod renderer;
mod requirements;
mod sarif;
mod tap;
mod text;

pub use badge::Badge;
pub use conclusion::Conclusion;
#[doc(hidden)]
pub use conclusion::{Standing, verdict_line};
#[doc(hidden)]
pub use example::example;
pub use gate::{BaselineComparison, Stale};
pub use github::Github;
#[doc(hidden)]
pub use hostile::{HOSTILE, poison};
pub use html::Html;
pub use json::Json;
pub use junit::Junit;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use live::Live;
pub use markdown::Markdown;
#[doc(hidden)]
pub use model::Fold;
pub use model::{FORMAT, FailOn, Options, Report, ReportError, Target, Tool};
pub use renderer::Renderer;
pub use requirements::{OpenRequirements, Requirements};
pub use sarif::Sarif;
pub use tap::Tap;
pub use text::{Detail, Text};

pub use crate::case::Shard;
