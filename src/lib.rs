//! Judges Model Context Protocol servers.
