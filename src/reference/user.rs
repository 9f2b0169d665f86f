//! The users of a protected server, and what each of them may see.
//!
//! The owner and the second user have the same rights, each with tasks and state of their own. The guest sees prompts
//! only: neither tools nor resources. A server without protection has one user, for whom nothing changes.

use serde_json::{Value, json};

use super::fault::{Fault, FaultSet, HttpFault};
use super::message::{Object, RpcError, invalid_params};
use super::resource;
use super::revision::Revision;

/// Who a connection belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only a server over HTTP distinguishes users"))]
pub(super) enum User {
    /// Anybody: the server does not ask for a token.
    #[default]
    Anybody,
    /// The user of the configured token.
    Owner,
    /// Another user with the same rights.
    Second,
    /// A user who sees neither tools nor resources.
    Guest,
}

impl User {
    /// What distinguishes the state of this user from that of others.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Anybody | Self::Owner => "",
            Self::Second => "second ",
            Self::Guest => "guest ",
        }
    }

    /// The error for a request that this user may not make.
    pub(super) fn reject(
        self,
        method: &str,
        params: Option<&Value>,
        revision: Revision,
        faults: &FaultSet,
    ) -> Option<RpcError> {
        if self != Self::Guest {
            return None;
        }
        match method {
            "tools/call" if !has(faults, HttpFault::AuthHiddenToolServed) => Some(invalid_params("Unknown tool")),
            "resources/read" if !has(faults, HttpFault::AuthHiddenResourceServed) => {
                let uri = params.and_then(|params| params.get("uri")).and_then(Value::as_str);
                Some(resource::not_found(uri.unwrap_or_default(), revision))
            }
            _ => None,
        }
    }

    /// Removes from a result what this user may not see, and marks what depends on the user as private.
    pub(super) fn restrict(self, method: &str, result: &mut Object, faults: &FaultSet) {
        let listed = match method {
            _ if self == Self::Anybody => return,
            "tools/list" => "tools",
            "resources/list" => "resources",
            "resources/templates/list" => "resourceTemplates",
            "resources/read" => "",
            _ => return,
        };
        let varies = has(faults, HttpFault::AuthPublicPerUser);
        if !varies && result.get("cacheScope").is_some_and(|scope| scope == "public") {
            result.insert("cacheScope".to_owned(), json!("private"));
        }
        let Some(Value::Array(items)) = result.get_mut(listed) else { return };
        if self == Self::Guest {
            items.clear();
            result.remove("nextCursor");
        } else if self == Self::Second && varies {
            items.truncate(1);
        }
    }
}

fn has(faults: &FaultSet, fault: HttpFault) -> bool {
    faults.contains(Fault::Http(fault))
}
