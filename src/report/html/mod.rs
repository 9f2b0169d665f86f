//! The report as one HTML page that needs nothing beside itself: no network, no folder, no server.
//!
//! [`Html`] turns a report into plain views (what to show, every text made visible) and hands them to the
//! templates in `reports/html/`, which escape whatever they are given. Everything is in the page as markup, so
//! that it can be read and printed without a script; the script only filters, opens and copies what is there.
//! The page's policy lets nothing run or load but the style and the script that are embedded here.

mod compare;
mod finding;
mod fuzzing;
mod page;
mod result;
mod shown;
mod wire;

pub use page::Html;
