//! What the specification says, as data of our own: its revisions and its requirements.
//!
//! Owns no case and does no input or output. Everything here is embedded in the binary.

mod requirement;
mod revision;

pub use requirement::{Catalogue, CatalogueError, Level, Requirement, Transport};
pub use revision::{Era, Revision, RevisionSet, UnknownRevision};
