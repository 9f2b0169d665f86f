//! The points at which an evaluation of the fuzzer intercepts what a connection receives and sends.
//!
//! The server itself intercepts nothing. The tests of this package plant faults here that depend on the arguments of
//! calls and on their order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::revision::Revision;

/// What happens to a line or call that was intercepted.
#[derive(Debug, PartialEq)]
pub enum Interception {
    /// It is processed as usual.
    Continue,
    /// The call is processed with these params instead.
    Replaced(Map<String, Value>),
    /// It is answered with a protocol error.
    ProtocolError {
        /// The error code.
        code: i64,
        /// The error message.
        message: String,
    },
    /// It is answered with a tool error that has this text.
    ToolError(String),
    /// It is not answered.
    Ignored,
    /// The server stops responding.
    Frozen,
    /// The process exits.
    Crashed,
}

/// Intercepts one connection. Each method does nothing by default.
pub trait Interceptor: fmt::Debug + Send {
    /// Intercepts a line before it is parsed: it is processed, or the server freezes or crashes.
    fn intercept_line(&mut self, _line: &[u8], _revision: Revision) -> Interception {
        Interception::Continue
    }

    /// Intercepts a call before its arguments are validated.
    fn intercept_call(&mut self, _params: &Map<String, Value>, _revision: Revision) -> Interception {
        Interception::Continue
    }

    /// Intercepts a call whose arguments are valid.
    fn intercept_valid_call(
        &mut self,
        _tool: &str,
        _arguments: &Map<String, Value>,
        _revision: Revision,
    ) -> Interception {
        Interception::Continue
    }

    /// Changes the result of a call.
    fn change_result(&mut self, _result: &mut Map<String, Value>) {}

    /// Changes a response.
    fn change_message(&mut self, _message: &mut Value) {}

    /// Changes the bytes of a response, including the line ending.
    fn change_bytes(&mut self, _bytes: &mut Vec<u8>) {}

    /// How long the current response is delayed.
    fn take_delay(&mut self) -> Option<Duration> {
        None
    }

    /// Whether the response to the current call is swapped with that to the next one.
    fn swaps_responses(&self) -> bool {
        false
    }

    /// Ends the swap of responses.
    fn end_swap(&mut self) {}

    /// Adds tools to those that the server lists.
    fn add_tools(&self, _tools: &mut Vec<Map<String, Value>>, _revision: Revision) {}

    /// Whether a tool was added during the connection, so that the list has to be made again.
    fn has_added_tool(&self) -> bool {
        false
    }
}

/// Makes the interceptor of each connection.
pub type InterceptorFactory = Arc<dyn Fn() -> Box<dyn Interceptor> + Send + Sync>;

/// Intercepts nothing.
#[derive(Debug)]
struct NoInterceptor;

impl Interceptor for NoInterceptor {}

/// The interceptor of a connection that is not intercepted.
pub(super) fn none() -> Box<dyn Interceptor> {
    Box::new(NoInterceptor)
}
