//! The report as one self-contained HTML page.
//!
//! [`Html`] turns a report into views, in which control and invisible characters are escaped, and passes them to
//! the templates in `reports/html/`, which escape HTML. The page is complete without scripts; the embedded script only
//! filters, expands and copies. The content security policy allows only the embedded style and script.

mod changes;
mod compare;
mod display;
mod finding;
mod fuzzing;
mod page;
mod result;
mod wire;

pub use page::{Html, HtmlComparison};
