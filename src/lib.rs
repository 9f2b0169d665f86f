//! Judges Model Context Protocol servers against every revision of the specification.
//!
//! The flow runs one way:
//!
//! ```text
//! Plan -> Case -> Session -> Transcript -> Verdict -> Event -> Report -> bytes
//! ```
//!
//! Sending ([`run`], [`client`]), judging ([`check`]) and rendering ([`report`]) never mix: a check is
//! a pure function of a transcript, and a renderer cannot change a verdict.

pub mod case;
pub mod check;
pub mod client;
pub mod event;
pub mod fuzz;
pub mod mock;
pub mod report;
pub mod run;
pub mod spec;
pub mod transcript;
pub mod verdict;
pub mod wire;
