//! Judges Model Context Protocol servers.

pub mod mock;
