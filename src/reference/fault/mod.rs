//! The named faults of the reference server: names, descriptions and the revisions in which each one shows.
//!
//! What a fault does is implemented where it takes effect, mostly in `injection`.
//!
//! The tables are divided by area. Each is a macro that appends its rows to those that it receives and hands
//! them to the next macro; the last one, `define_faults`, makes a single enum of all rows.

#[macro_use]
mod base;
#[macro_use]
mod lifecycle;
#[macro_use]
mod tool;
#[macro_use]
mod content;
#[macro_use]
mod primitive;
#[macro_use]
mod task;
#[macro_use]
mod client_request;
#[macro_use]
mod stress;
#[macro_use]
mod variant;
mod http;
mod set;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use thiserror::Error;

use super::revision::Revision;
use super::revision::Revision::{V2024_10_07, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

pub use http::HttpFault;
pub use set::{FaultSet, Surroundings};

const EVERY: &[Revision] = Revision::ALL;
const LEGACY: &[Revision] = &[V2024_10_07, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];
const HANDSHAKE: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];
const FROM_2024_11_05: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
/// Revisions in which a server cancels its own requests that time out.
const HANDSHAKE_WITH_CANCELLED_TIMEOUTS: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
const FROM_2025_03_26: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
const FROM_2025_06_18: &[Revision] = &[V2025_06_18, V2025_11_25, V2026_07_28];
const FROM_2025_11_25: &[Revision] = &[V2025_11_25, V2026_07_28];
const MODERN: &[Revision] = &[V2026_07_28];
/// Revisions in which the server supports `resources/subscribe`.
const RESOURCE_SUBSCRIPTIONS: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
const ONLY_2024_10_07: &[Revision] = &[V2024_10_07];
const ONLY_2024_11_05: &[Revision] = &[V2024_11_05];
const ONLY_2025_03_26: &[Revision] = &[V2025_03_26];
const ONLY_2025_06_18: &[Revision] = &[V2025_06_18];
const ONLY_2025_11_25: &[Revision] = &[V2025_11_25];
/// Revisions without JSON-RPC batches.
const WITHOUT_BATCHES: &[Revision] = &[V2024_10_07, V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28];
/// Revisions in which structured content must be an object.
const STRUCTURED_OBJECTS: &[Revision] = &[V2025_06_18, V2025_11_25];
/// Revisions whose tool results have content, but no resource links.
const WITHOUT_RESOURCE_LINKS: &[Revision] = &[V2024_11_05, V2025_03_26];
/// Revisions that specify how a server reports invalid arguments.
const INVALID_ARGUMENTS_SPECIFIED: &[Revision] = &[V2024_10_07, V2025_11_25];

macro_rules! define_faults {
    (; $($variant:ident, $name:literal, $revisions:ident, $description:literal;)*) => {
        /// A named way in which the reference server violates the specification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $(#[doc = concat!("The server ", $description, ".")] $variant,)*
            /// A fault that only shows over HTTP.
            Http(HttpFault),
        }

        impl Fault {
            const EVERY_TRANSPORT: &'static [Self] = &[$(Self::$variant,)*];

            /// The kebab-case name, as `--fault` takes it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Http(http) => http.name(), }
            }

            /// What the server does wrong: a predicate whose subject is "the server".
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                    Self::Http(http) => http.description(),
                }
            }

            /// The revisions in which the fault shows, oldest first. It has no effect in others.
            #[must_use]
            pub const fn revisions(self) -> &'static [Revision] {
                match self {
                    $(Self::$variant => $revisions,)*
                    Self::Http(http) => http.revisions(),
                }
            }
        }
    };
}

base_faults! {
    lifecycle_faults tool_faults content_faults primitive_faults task_faults client_request_faults stress_faults
    variant_faults define_faults;
}

impl Fault {
    /// Every fault, in the order of the tables: those of all transports, then HTTP faults.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Fault>> = LazyLock::new(|| {
            let http = HttpFault::ALL.iter().copied().map(Fault::Http);
            Fault::EVERY_TRANSPORT.iter().copied().chain(http).collect()
        });
        &ALL
    }

    /// Whether the fault only shows over HTTP.
    #[must_use]
    pub const fn is_http_only(self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Whether the fault only shows on a server that requires authorization.
    #[must_use]
    pub fn requires_authorization(self) -> bool {
        matches!(self, Self::Http(fault) if fault.requires_authorization())
    }

    /// Whether the fault only shows to a client whose token is not sufficient for tool calls.
    #[must_use]
    pub fn requires_narrow_token(self) -> bool {
        matches!(self, Self::Http(HttpFault::AuthScopeNoChallenge))
    }

    /// Whether the fault only shows with a second user who sees neither tools nor resources.
    #[must_use]
    pub fn requires_guest(self) -> bool {
        matches!(self, Self::Http(HttpFault::AuthHiddenToolServed | HttpFault::AuthHiddenResourceServed))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some(fault) = Self::all().iter().find(|fault| fault.name() == name) {
            return Ok(*fault);
        }
        let nearest = Self::all()
            .iter()
            .map(|fault| (strsim::normalized_damerau_levenshtein(name, fault.name()), *fault))
            .filter(|(similarity, _)| *similarity > 0.5)
            .max_by(|(left, _), (right, _)| left.total_cmp(right))
            .map(|(_, fault)| fault);
        Err(UnknownFault { name: name.to_owned(), nearest })
    }
}

/// The error for a name that is not the name of a fault.
///
/// # Examples
///
/// ```
/// use mcp_conformance::reference::{Fault, UnknownFault};
///
/// let UnknownFault { name, nearest } = "image-data-ulr".parse::<Fault>().expect_err("it is misspelt");
/// assert_eq!((name.as_str(), nearest), ("image-data-ulr", Some(Fault::ImageDataUrl)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no fault is named `{name}`{}", suggestion(*nearest))]
pub struct UnknownFault {
    /// The unknown name.
    pub name: String,
    /// The fault with the most similar name, if any is similar.
    pub nearest: Option<Fault>,
}

fn suggestion(nearest: Option<Fault>) -> String {
    nearest.map_or_else(String::new, |fault| format!("; did you mean `{fault}`?"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_unique_kebab_case_and_can_be_parsed() {
        let mut seen = BTreeSet::new();
        for fault in Fault::all() {
            let name = fault.name();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert!(seen.insert(name), "{name} appears twice");
            assert_eq!(name.parse(), Ok(*fault));
        }
    }

    #[test]
    fn every_description_is_a_short_unique_phrase() {
        let mut seen = BTreeSet::new();
        for fault in Fault::all() {
            let text = fault.description();
            assert!(!text.is_empty() && text.chars().count() <= 70, "{fault}: {text}");
            assert!(!text.contains("should") && !text.ends_with('.'), "{fault}: {text}");
            assert!(seen.insert(text), "{fault}: {text} appears twice");
        }
    }

    #[test]
    fn revisions_are_unique_and_in_order() {
        for fault in Fault::all() {
            assert!(!fault.revisions().is_empty(), "{fault}");
            assert!(fault.revisions().is_sorted_by(|left, right| left < right), "{fault}");
        }
    }

    #[test]
    fn the_error_for_an_unknown_name_suggests_the_nearest_one() {
        let error = "id-as-sting".parse::<Fault>().expect_err("the name is wrong");
        assert_eq!(error.nearest, Some(Fault::IdAsString));
        assert_eq!(error.to_string(), "no fault is named `id-as-sting`; did you mean `id-as-string`?");
        let error = "zzzzzz".parse::<Fault>().expect_err("the name is wrong");
        assert_eq!(error.to_string(), "no fault is named `zzzzzz`");
    }
}
