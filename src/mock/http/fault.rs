//! The faults that show over HTTP only: in statuses, headers, streams and sessions.

use crate::mock::revision::Revision;
use crate::mock::revision::Revision::{V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// Where there is Streamable HTTP.
const STREAMABLE: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
/// Where there are sessions as well.
const SESSIONS: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
/// Where a client looks for the metadata by itself.
const FROM_2025_11_25: &[Revision] = &[V2025_11_25, V2026_07_28];
/// Where the server is its own authorization server.
const ONLY_2025_03_26: &[Revision] = &[V2025_03_26];
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
    // protected servers
    AuthForbidden, "auth-forbidden", STREAMABLE, "answers 403 where a token is missing";
    AuthToolsLeaked, "auth-tools-leaked", STREAMABLE, "adds its tools to the refusal of a client without a token";
    AuthAnyToken, "auth-any-token", STREAMABLE, "takes any token";
    AuthUnsignedToken, "auth-unsigned-token", STREAMABLE, "takes a token that nobody has signed";
    AuthMalformed500, "auth-malformed-500", STREAMABLE, "answers an Authorization without a token by status 500";
    AuthSessionExcuses, "auth-session-excuses", SESSIONS, "asks for no token within a session";
    AuthNoChallenge, "auth-no-challenge", STREAMABLE, "refuses without WWW-Authenticate";
    AuthNoScope, "auth-no-scope", STREAMABLE, "names no scope in its challenges";
    AuthNoMetadata, "auth-no-metadata", STREAMABLE, "has no metadata of its resource, and names none";
    AuthNoServers, "auth-no-servers", STREAMABLE, "lists no authorization server in the metadata of its resource";
    AuthNoResource, "auth-no-resource", STREAMABLE, "does not say in its metadata which resource it is of";
    AuthOfflineAccess, "auth-offline-access", STREAMABLE, "asks for the scope offline_access";
    AuthBare, "auth-bare", STREAMABLE, "refuses without a challenge and without any metadata";
    AuthScopeBare, "auth-scope-bare", STREAMABLE, "refuses a token of too little scope without a challenge";
    AuthServerNoIssuer, "auth-server-no-issuer", STREAMABLE, "leaves out the issuer in the metadata of its authorization server";
    AuthServerPlain, "auth-server-plain", STREAMABLE, "names an endpoint for tokens that is not behind TLS";
    AuthServerNoRegistration, "auth-server-no-registration", STREAMABLE, "names no endpoint for registration";
    AuthPathOnly, "auth-path-only", FROM_2025_11_25, "has its metadata at the well-known place for its path alone";
    AuthDefaults, "auth-defaults", ONLY_2025_03_26, "has no metadata, and the default endpoints";
    AuthNoEndpoints, "auth-no-endpoints", STREAMABLE, "has neither metadata nor the default endpoints";
    // headers of the stateless era
    MethodHeaderUnchecked, "http-method-header-unchecked", MODERN, "does not look at what Mcp-Method says";
}

impl HttpFault {
    /// Whether it shows in a protected server only.
    #[must_use]
    pub fn is_of_protection(self) -> bool {
        self.name().starts_with("auth-")
    }
}
