//! The front door of the library: [`Judge`](crate::Judge).

mod builder;
mod error;
mod fuzzing;

pub use builder::Judge;
#[cfg(feature = "harness")]
pub(crate) use builder::{Part, block_on};
pub use error::JudgeError;
pub use fuzzing::Fuzzing;
