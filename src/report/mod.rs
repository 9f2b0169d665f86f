//! The report of a run and its renderings.
//!
//! A [`Report`] is built from the events of a run; each format is a [`Renderer`] that writes a report to any writer.
//! Renderers do not read the clock, open files or change verdicts.
//!
//! # Examples
//!
//! ```
//! use mcp_conformance::reference::Fault;
//! use mcp_conformance::report::{
//!     Badge, Detail, FORMAT, Github, Json, Markdown, Requirements, Sarif, Tap, Target, Text, UnjudgedRequirements,
//! };
//! use mcp_conformance::{Judge, Report, Server, Settings};
//!
//! let settings = Settings { select: vec!["content/*".to_owned()], ..Settings::default() };
//! let report = Judge::new(Server::reference([Fault::ImageDataUrl])).settings(settings).run_blocking()?;
//!
//! assert!(report.render(&Markdown).contains("content-image"));
//! assert!(report.render(&Tap).contains("not ok"));
//! assert!(report.render(&Github).starts_with("::error"));
//! assert!(report.render(&Sarif::default()).contains("2.1.0"));
//! assert!(report.render(&Badge).contains("<svg"));
//! assert_eq!(Report::parse(&report.render(&Json)).expect("it is a report").format, FORMAT);
//! let everything = Text { detail: Detail::Everything, width: 60, ..Text::default() };
//! assert!(report.render(&everything).len() > report.render(&Text::default()).len());
//! # #[cfg(feature = "reports")] {
//! use mcp_conformance::report::{Html, Junit};
//!
//! assert!(report.render(&Junit).contains("<testsuite"));
//! assert!(report.render(&Html).contains("</html>"));
//! # }
//!
//! // What was judged in each revision, and what the server did not show.
//! for Target { results, summary, .. } in &report.targets {
//!     let requirements = Requirements::of(results);
//!     assert!(requirements.has_judged("content-image"), "{}", summary.revision);
//!     for UnjudgedRequirements { reason, requirements, .. } in &requirements.not_observed {
//!         println!("{reason}: {}", requirements.join(", "));
//!     }
//! }
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! The comparison with a baseline, and reports from elsewhere:
//!
//! ```
//! use mcp_conformance::report::{BaselineComparison, FORMAT, NO_CALLS, Options, ReportError, StaleEntry};
//! use mcp_conformance::{Judge, Report, Server, Settings};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let baseline = folder.path().join("baseline.json");
//! // It accepts a finding that is not made any more.
//! let accepted = r#"{"findings": [{
//!     "case": "content/image", "requirement": "content-image", "verdict": "fail", "reason": "fixed in the next release"
//! }]}"#;
//! std::fs::write(&baseline, accepted).expect("the folder exists");
//! let settings = Settings { select: vec!["content/*".to_owned()], baseline: Some(baseline), ..Settings::default() };
//! let report = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
//! let comparison: &BaselineComparison = report.baseline.as_ref().expect("there is a baseline");
//! let StaleEntry { entry, missing_in, .. } = &comparison.stale[0];
//! assert_eq!(entry.requirement, "content-image");
//! assert!(comparison.is_out_of_date() && !missing_in.is_empty() && comparison.new.is_empty());
//! let Options { select, calls, .. } = &report.options;
//! assert_eq!(*select, ["content/*"]);
//! assert_ne!(calls, NO_CALLS, "a server was called: this is no recording");
//!
//! let newer = format!(r#"{{"format": {}}}"#, FORMAT + 1);
//! assert!(matches!(Report::parse(&newer), Err(ReportError::Format { .. })));
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```

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
pub mod sdk;
#[doc(hidden)]
pub mod visible;

mod attribution;
mod badge;
mod comparison_result;
mod conclusion;
mod example;
mod finding_text;
mod fleet_page;
mod github;
#[cfg(test)]
mod golden;
mod hostile;
#[cfg(feature = "reports")]
mod html;
mod json;
#[cfg(feature = "reports")]
mod junit;
mod markdown;
mod markup;
mod model;
mod palette;
#[cfg(feature = "cli")]
mod progress;
mod renderer;
mod rendering;
mod requirements;
mod sarif;
mod saved_calls;
mod tap;
#[cfg(feature = "harness")]
pub(crate) mod test_output;
mod text;
mod untested;
mod waits;

pub use badge::Badge;
pub use comparison_result::{BaselineComparison, StaleEntry};
pub use conclusion::Conclusion;
#[doc(hidden)]
pub use conclusion::{CaseCounts, verdict_line};
#[doc(hidden)]
pub use example::example;
pub use github::Github;
#[doc(hidden)]
pub use hostile::{FIXED_MEMBERS, HOSTILE, poison};
#[cfg(feature = "reports")]
pub use html::{Html, HtmlComparison};
pub use json::Json;
#[cfg(feature = "reports")]
pub use junit::Junit;
pub use markdown::Markdown;
#[doc(hidden)]
pub use model::ReportBuilder;
pub use model::{FORMAT, FailOn, NO_CALLS, Options, Report, ReportError, Target, Tool};
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use progress::ProgressReporter;
pub use renderer::Renderer;
pub use requirements::{Requirements, UnjudgedRequirements};
pub use sarif::Sarif;
pub use sdk::Accept;
pub use tap::Tap;
pub use text::{Detail, Text};

pub use crate::shard::Shard;
