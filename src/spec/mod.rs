//! The specification as data: its revisions and its requirements.
//!
//! Contains no case and does no input or output. All data is embedded in the binary.

mod requirement;
mod revision;

pub use requirement::{Catalogue, CatalogueError, Level, Requirement, Transport};
pub use revision::{Era, Revision, RevisionSet, UnknownRevision};
