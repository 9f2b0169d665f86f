//! The built-in server: conforming in every revision, and wrong in one named way on demand.
//!
//! It shows that a case passes on a good server and fails on a bad one, and it is there for whoever
//! writes a client and needs a server that misbehaves. It speaks over any pair of reader and writer,
//! decides by itself what is right, and shares nothing with the judge: a fake that did would prove
//! nothing.
//!
//! The way of a message: [`serve`] splits lines, the connection sorts and answers them, the methods of
//! the revision in force make a result, the deviations deform it, and the line is written.

mod call;
mod client_request;
mod complex_tool;
mod connection;
mod content;
mod evaluation;
mod fault;
mod http;
mod identity;
mod incoming;
mod injection;
mod input_required;
mod message;
mod method;
mod outgoing;
mod pagination;
mod primitive_method;
mod prompt;
mod request;
mod resource;
mod revision;
mod server;
mod subscription;
mod task;
mod task_method;
mod tool;
mod tool_method;

#[cfg(test)]
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use evaluation::EvaluationFault;
pub use fault::{Fault, FaultSet, UnknownFault};
#[doc(hidden)]
pub use http::{HttpFault, serve_http, serve_http_protected};
#[doc(hidden)]
pub use revision::Revision;
pub use server::{Crash, serve};
#[doc(hidden)]
pub use server::{ignores_sigterm, stderr_noise};
