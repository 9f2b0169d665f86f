//! The report of a run and its renderings.
//!
//! A [`Report`] is built from the events of a run; each format is a [`Renderer`] that writes a report to any writer.
//! Renderers do not read the clock, open files or change verdicts.

// For the command line and the tests; not part of the stable API.
#[doc(hidden)]
pub mod baseline_comparison;
#[doc(hidden)]
pub mod diff;
#[doc(hidden)]
pub mod fleet;
#[doc(hidden)]
pub mod group;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod merge;
#[doc(hidden)]
pub mod visible;

mod badge;
mod conclusion;
mod example;
mod finding_text;
mod github;
#[cfg(test)]
mod golden;
mod hostile;
mod html;
mod json;
mod junit;
mod markdown;
mod model;
mod palette;
#[cfg(feature = "cli")]
mod progress;
mod renderer;
mod requirements;
mod sarif;
mod tap;
#[cfg(feature = "harness")]
pub(crate) mod test_output;
mod text;

pub use badge::Badge;
pub use baseline_comparison::{BaselineComparison, StaleEntry};
pub use conclusion::Conclusion;
#[doc(hidden)]
pub use conclusion::{CaseCounts, verdict_line};
#[doc(hidden)]
pub use example::example;
pub use github::Github;
#[doc(hidden)]
pub use hostile::{HOSTILE, poison};
pub use html::Html;
pub use json::Json;
pub use junit::Junit;
pub use markdown::Markdown;
#[doc(hidden)]
pub use model::ReportBuilder;
pub use model::{FORMAT, FailOn, Options, Report, ReportError, Target, Tool};
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use progress::ProgressReporter;
pub use renderer::Renderer;
pub use requirements::{Requirements, UnjudgedRequirements};
pub use sarif::Sarif;
pub use tap::Tap;
pub use text::{Detail, Text};

pub use crate::case::Shard;
