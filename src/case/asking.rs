//! How a case answers what the server asks for, and how it repeats a request that was answered by a
//! question of the server's.

use serde::Deserialize;
use serde_json::Value;

/// An answer to a request of the server.
///
/// In its strings the placeholders `${client-request...}` stand for what the request at hand makes of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// The request is answered by this result.
    Result(Value),
    /// It is answered by this error. In the stateless era, where no error can be given, nothing is.
    Error(Value),
}

/// A request that is made again, with answers to what its result asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Retry {
    /// The step whose answer asked, by name; it may be a retry itself.
    pub step: String,
    /// What `inputResponses` is.
    #[serde(default)]
    pub input_responses: InputResponses,
    /// What `requestState` is.
    #[serde(default)]
    pub request_state: RequestState,
    /// Members of `params` that differ from those of the request.
    #[serde(default)]
    pub params: Option<Value>,
    /// How often it is made while the answer asks again; only the last time is judged.
    #[serde(default)]
    pub rounds: Option<usize>,
}

/// What a retry gives as `inputResponses`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputResponses {
    /// An answer to each request.
    #[default]
    All,
    /// Nothing: the member is left out.
    None,
    /// An object without members.
    Empty,
    /// An answer to each request, and one to a request that nobody made.
    Extra,
    /// A number under each key.
    Malformed,
    /// A text in the place of the object.
    String,
}

/// What a retry gives as `requestState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestState {
    /// What the server gave, if it gave anything.
    #[default]
    Echoed,
    /// What the server gave; without it the case does not apply.
    Required,
    /// What the server gave with one character changed.
    Altered,
    /// The first half of what the server gave.
    Truncated,
}
