//! Judges Model Context Protocol servers.

pub mod event;
pub mod report;
pub mod spec;
pub mod transcript;
pub mod verdict;
pub mod wire;
