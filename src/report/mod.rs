//! The report of a run and its renderings.
//!
//! [`Fold`] makes a [`Report`] of a run's events; each format is a [`Renderer`] of a report, over any
//! writer. None of them reads a clock, opens a file or changes a verdict.

pub mod diff;
pub mod fleet;
pub mod gate;
pub mod group;
pub mod merge;
pub mod prose;
pub mod visible;

mod account;
mod badge;
mod conclusion;
mod example;
mod fuzz_text;
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
pub use conclusion::{Conclusion, Standing, verdict_line};
#[doc(hidden)]
pub use example::example;
pub use gate::{Held, Stale};
pub use github::Github;
#[doc(hidden)]
pub use hostile::{HOSTILE, poison};
pub use html::Html;
pub use json::Json;
pub use junit::Junit;
#[cfg(feature = "cli")]
pub use live::Live;
pub use markdown::Markdown;
pub use model::{FORMAT, FailOn, Fold, Options, Report, ReportError, Target, Tool};
pub use renderer::Renderer;
pub use requirements::{LeftOpen, Requirements};
pub use sarif::Sarif;
pub use tap::Tap;
pub use text::{Detail, Text};
