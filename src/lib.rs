//! Judges Model Context Protocol servers against every revision of the specification.
//!
//! A [`Judge`] is told which server and what to ask of it, and makes a [`Report`]: the verdict of each case in
//! each revision that the server speaks, with the proof of each finding.
//!
//! ```
//! use mcp_conformance::{Conclusion, Judge};
//!
//! # let (program, faults) = ("./my-server", []);
//! # let _unused = Judge::command([program]);
//! let judge = Judge::command(["./my-server", "--stdio"]).select("tools");
//! # let judge = Judge::built_in(faults).select("tools");
//! let report = judge.run_blocking()?;
//! for result in report.results().filter(|result| !result.findings.is_empty()) {
//!     println!("{} in {}: {}", result.case, result.revision, result.findings[0].message);
//! }
//! assert_eq!(report.conclusion(), Conclusion::Passed);
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! A server need not be a program: [`Judge::in_process`] judges one within this process, [`Judge::connect`] one
//! behind any stream of bytes, [`Judge::http`] one behind an address.
//!
//! # Each case a test
//!
//! With the feature `harness` every case is a test of your crate, named by its id and run by `cargo test` or
//! `cargo nextest run`: see the module `harness`.
//!
//! # Fuzzing
//!
//! [`Judge::fuzz`] calls tools over the wire with arguments made from their inputSchema by the module [`fuzz`]. The
//! module [`guided`] makes the same arguments from the bytes of a coverage-guided fuzzer, so that a fuzz target of
//! your own calls your tools within its process.
//!
//! # Features
//!
//! - `cli` (on by default): the program, and what only it needs. A library goes without:
//!   `default-features = false`.
//! - `harness`: each case a test.
//!
//! # How it is built
//!
//! The flow runs one way:
//!
//! ```text
//! Judge -> Plan -> Case -> Session -> Transcript -> Verdict -> Event -> Report -> bytes
//! ```
//!
//! Sending (`run`, `client`), judging (`check`) and rendering ([`report`]) never mix: a check is a pure function
//! of a transcript, and a renderer cannot change a verdict. Modules that are not shown here are for the program
//! and its tests, and may change in any version.

#[doc(hidden)]
pub mod case;
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod client;
pub mod event;
pub mod fuzz;
pub mod guided;
#[cfg(feature = "harness")]
pub mod harness;
mod judge;
pub mod reference;
pub mod report;
#[doc(hidden)]
pub mod run;
pub mod spec;
#[doc(hidden)]
pub mod transcript;
pub mod verdict;
#[doc(hidden)]
pub mod wire;

pub use case::{LoadError, SelectError};
pub use client::SiteError;
pub use judge::{Fuzzing, Judge, JudgeError};
pub use report::{Conclusion, FailOn, Report};
pub use run::{Calls, Revisions};
pub use spec::Revision;
pub use verdict::Verdict;
