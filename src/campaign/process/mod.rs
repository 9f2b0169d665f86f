//! The process that is called: starting it, keeping another ready, making calls and waiting for their responses.
//!
//! It is started through the [`environment`], so that a scripted server without process or clock can take its place.

pub(super) mod caller;
pub(super) mod environment;
mod lists;
#[cfg(test)]
pub(super) mod scripted;
mod server_process;
mod slow_process;
mod standby;
mod timeouts;
