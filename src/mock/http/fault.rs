//! The faults that show over HTTP only: in statuses, headers, streams and sessions.

use crate::mock::revision::Revision;
use crate::mock::revision::Revision::{V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// Where there is Streamable HTTP.
const STREAMABLE: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
/// Where there are sessions as well.
const SESSIONS: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
const MODERN: &[Revision] = &[V2026_07_28];

macro_rules! faults {
    ($($variant:ident, $name:literal, $revisions:ident, $description:literal;)*) => {
        /// A named way in which the built-in server deviates over HTTP alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum HttpFault {
            $(#[doc = concat!("The server ", $description, ".")] $variant,)*
        }

        impl HttpFault {
            /// Every one, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kebab-case name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the server does wrong: the rest of a sentence that begins "the server".
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description,)* }
            }

            /// The revisions in which the fault shows, oldest first.
            #[must_use]
            pub const fn revisions(self) -> &'static [Revision] {
                match self { $(Self::$variant => $revisions,)* }
            }
        }
    };
}

faults! {
    // answers
    Notification200, "http-notification-200", STREAMABLE, "answers an accepted notification with status 200";
    // sessions
    SessionSurvivesDelete, "http-session-survives-delete", SESSIONS, "serves a session that a client has ended";
    // headers of the stateless era
    MethodHeaderUnchecked, "http-method-header-unchecked", MODERN, "does not look at what Mcp-Method says";
}
