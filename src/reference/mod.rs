//! The built-in reference server: it conforms in every revision, and violates the specification on demand.
//!
//! The suite runs each case against it with and without a fault. Client authors can use it as a server that
//! misbehaves in a known way. It runs over any reader and writer. It shares no code with the judge: otherwise
//! an error in that code would hide itself.
//!
//! The path of a message: [`serve`] splits lines, `connection` classifies and answers messages, the modules
//! of the methods produce results, `injection` applies faults to them, and the line is written. A test of the fuzzer
//! intercepts this path, by `interception`.

mod call;
mod client_request;
mod client_request_params;
mod client_response;
mod complex_tool;
mod connection;
mod connection_state;
mod content;
mod fault;
#[cfg(feature = "http")]
mod http;
mod identity;
mod incoming;
mod injection;
mod input_required;
mod interception;
mod latency;
mod message;
mod method;
mod outgoing;
mod pagination;
mod particular_tool;
mod pending_call;
mod primitive_method;
mod prompt;
mod request;
mod resource;
mod revision;
mod root_file;
mod server;
mod subscription;
mod task;
mod task_method;
mod tool;
mod tool_method;
mod user;
mod variant;
mod variant_member;
mod variant_tool;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use fault::HttpFault;
pub use fault::{Fault, FaultSet, Surroundings, UnknownFault};
#[cfg(feature = "http")]
#[doc(hidden)]
pub use http::{binds_every_address, serve_http, serve_http_intercepted, serve_http_protected};
#[doc(hidden)]
pub use interception::{Interception, Interceptor, InterceptorFactory};
#[doc(hidden)]
pub use revision::Revision;
#[doc(hidden)]
pub use server::Crash;
pub use server::serve;
#[doc(hidden)]
pub use server::{
    ignores_sigterm, ignores_sigterm_before_eof, leaves_process, serve_intercepted, stderr_line, stderr_noise,
};
