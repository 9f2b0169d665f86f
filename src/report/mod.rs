//! The report of a run and its renderings.

mod model;

pub use model::{FORMAT, Fold, Options, Report, Target, Tool};
