//! The specification as data: its revisions and its requirements.
//!
//! Contains no case and does no input or output. All data is embedded in the binary.
//!
//! # Examples
//!
//! ```
//! use mcp_conformance::spec::{Catalogue, Era, Level, Requirement, Revision, RevisionSet, Transport, UnknownRevision};
//!
//! let binding = |requirement: &&Requirement| requirement.level == Level::Must && requirement.transport == Transport::Stdio;
//! let rules: Vec<&Requirement> = Catalogue::embedded().iter().filter(binding).collect();
//! assert!(!rules.is_empty());
//!
//! // Where a rule is stated, and the page that states it.
//! let stated: RevisionSet = rules[0].revisions();
//! let newest = stated.iter().last().expect("every rule has a revision");
//! assert!(rules[0].link(newest).contains(newest.as_str()));
//!
//! assert_eq!("2026-07-28".parse::<Revision>()?.era(), Era::Stateless);
//! assert!("2026-02-30".parse::<Revision>().is_err());
//! # Ok::<(), UnknownRevision>(())
//! ```

mod page;
mod requirement;
mod revision;
mod version_name;

pub use page::{book_address, case_page, requirement_page};
pub use requirement::{Catalogue, CatalogueError, Level, Requirement, Transport};
pub use revision::{Era, Revision, RevisionSet, UnknownRevision};
pub(crate) use version_name::VersionName;
