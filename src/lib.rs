//! Judges Model Context Protocol servers.

pub mod case;
pub mod spec;
pub mod transcript;
pub mod verdict;
pub mod wire;
