//! The built-in reference server: it conforms in every revision, and violates the specification on demand.
//!
//! The suite runs each case against it with and without a fault. Client authors can use it as a server that
//! misbehaves in a known way. It runs over any reader and writer. It shares no code with the judge: otherwise
//! an error in that code would hide itself.
//!
//! The path of a message: [`serve`] splits lines, `connection` classifies and answers messages, the modules
//! of the methods produce results, `injection` applies faults to them, and the line is written.

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
