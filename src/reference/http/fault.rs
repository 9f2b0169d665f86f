//! The faults that show over HTTP only: in statuses, headers, streams and sessions.

use crate::reference::revision::Revision;
use crate::reference::revision::Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// Where there is Streamable HTTP.
const STREAMABLE: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
/// Where there are sessions as well.
const SESSIONS: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
/// Where a client looks for the metadata by itself.
const FROM_2025_11_25: &[Revision] = &[V2025_11_25, V2026_07_28];
/// Where the server is its own authorization server.
const ONLY_2025_03_26: &[Revision] = &[V2025_03_26];
const MODERN: &[Revision] = &[V2026_07_28];
const OLDER: &[Revision] = &[V2024_11_05];
const ONLY_2025_11_25: &[Revision] = &[V2025_11_25];
/// Where a JSON answer is one object.
const OBJECTS: &[Revision] = &[V2025_06_18, V2025_11_25, V2026_07_28];
/// Where a stream is not to end before the response.
const EARLY: &[Revision] = &[V2025_03_26, V2025_06_18];
/// Where there are sessions and no tasks, whose progress outlives its request.
const UNTASKED: &[Revision] = &[V2025_03_26, V2025_06_18];
/// Where the header names what was agreed on.
const VERSIONED: &[Revision] = &[V2025_06_18, V2025_11_25];
/// Where the status of a foreign Origin is fixed.
const ORIGIN_403: &[Revision] = &[V2025_11_25, V2026_07_28];

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
    // answers to what is posted
    RedirectsPost, "http-redirects-post", STREAMABLE, "redirects the POST of resources/templates/list";
    Notification200, "http-notification-200", STREAMABLE, "answers an accepted notification with status 200";
    NotificationBody, "http-notification-body", STREAMABLE, "answers an accepted notification with a body";
    Response200, "http-response-200", SESSIONS, "answers an accepted response with status 200";
    ResponseBody, "http-response-body", SESSIONS, "answers an accepted response with a body";
    Refused200, "http-refused-200", SESSIONS, "refuses a notification with status 200";
    JsonAsText, "http-json-as-text", STREAMABLE, "labels the answer to tools/list as text/plain";
    JsonTwice, "http-json-twice", OBJECTS, "writes the answer to resources/templates/list twice into the body";
    // streams
    StreamStaysOpen, "http-stream-stays-open", STREAMABLE, "keeps a stream open after the response";
    StreamWithoutResponse, "http-stream-without-response", SESSIONS, "ends streams without the response where the token is an integer";
    StreamEndsEarly, "http-stream-ends-early", EARLY, "ends streams after an event where the token is an integer";
    ForeignProgress, "http-foreign-progress", STREAMABLE, "reports progress of another request on a stream";
    ChangesOnStream, "http-changes-on-stream", MODERN, "tells of a changed list on the stream of a call";
    BufferingUnsaid, "http-buffering-unsaid", MODERN, "leaves X-Accel-Buffering out";
    DisconnectCancels, "http-disconnect-cancels", ONLY_2025_11_25, "cancels a request whose connection was dropped";
    DisconnectHarms, "http-disconnect-harms", MODERN, "fails tools/list once the stream of a followed subscription was closed";
    TasksGetStream, "http-tasks-get-stream", ONLY_2025_11_25, "answers tasks/get by a stream";
    // the stream that a client opens
    GetNotFound, "http-get-not-found", SESSIONS, "answers GET with status 404";
    GetJson, "http-get-json", SESSIONS, "answers GET with an empty JSON array";
    ResponseOnGet, "http-response-on-get", SESSIONS, "sends responses on the GET stream as well";
    ProgressOnGet, "http-progress-on-get", UNTASKED, "reports progress of calls on the GET stream";
    Broadcast, "http-broadcast", SESSIONS, "sends progress on every stream that is open";
    // event ids and resumption
    EventIdsRepeat, "http-event-ids-repeat", ONLY_2025_11_25, "counts the event ids of each stream from 0";
    PrimingMissing, "http-priming-missing", ONLY_2025_11_25, "opens streams without an event that primes the client";
    ReplayCrosses, "http-replay-crosses", ONLY_2025_11_25, "replays the events of other streams as well";
    ResumeRefused, "http-resume-refused", ONLY_2025_11_25, "refuses to resume a stream that a POST opened";
    Polls, "http-polls", ONLY_2025_11_25, "conforms, but closes the streams of calls, which are resumed";
    PollsWithoutRetry, "http-polls-without-retry", ONLY_2025_11_25, "closes streams that go on without a retry field";
    // sessions
    Sessionless, "http-sessionless", SESSIONS, "conforms, but opens no sessions";
    SessionIdSpace, "http-session-id-space", SESSIONS, "issues session ids with a blank in them";
    SessionIdShort, "http-session-id-short", SESSIONS, "counts its sessions, and the count is the session id";
    SessionIdOfTitle, "http-session-id-of-title", SESSIONS, "gives clients with the same title the same session";
    SessionIdReused, "http-session-id-reused", SESSIONS, "gives a client of the same title the id of an ended session";
    SessionMissing422, "http-session-missing-422", SESSIONS, "answers a POST without its session id with status 422";
    GetSessionMissing404, "http-get-session-missing-404", SESSIONS, "answers a GET without its session id with status 404";
    SessionSurvivesDelete, "http-session-survives-delete", SESSIONS, "serves a session that a client has ended";
    // protected servers
    AuthForbidden, "auth-forbidden", STREAMABLE, "answers 403 where a token is missing";
    AuthToolsLeaked, "auth-tools-leaked", STREAMABLE, "adds its tools to the refusal of a client without a token";
    AuthAnyToken, "auth-any-token", STREAMABLE, "takes any token";
    AuthUnsignedToken, "auth-unsigned-token", STREAMABLE, "takes a token that nobody has signed";
    AuthMalformed500, "auth-malformed-500", STREAMABLE, "answers an Authorization without a token by status 500";
    AuthSessionExcuses, "auth-session-excuses", SESSIONS, "asks for no token within a session";
    AuthNoScope, "auth-no-scope", STREAMABLE, "names no scope in its challenges";
    AuthNoMetadata, "auth-no-metadata", STREAMABLE, "has no metadata of its resource, and names none";
    AuthNoServers, "auth-no-servers", STREAMABLE, "lists no authorization server in the metadata of its resource";
    AuthNoResource, "auth-no-resource", STREAMABLE, "does not say in its metadata which resource it is of";
    AuthMetadataDead, "auth-metadata-dead", OBJECTS, "names metadata in its challenges that is not there";
    AuthMetadataElsewhere, "auth-metadata-elsewhere", OBJECTS, "names metadata of another host in its challenges";
    AuthResourceOther, "auth-resource-other", OBJECTS, "gives another resource of its host in its metadata";
    AuthOfflineAccess, "auth-offline-access", STREAMABLE, "asks for the scope offline_access";
    AuthBare, "auth-bare", STREAMABLE, "refuses without a challenge and without any metadata";
    AuthScopeBare, "auth-scope-bare", STREAMABLE, "refuses a token of too little scope without a challenge";
    AuthServerNoIssuer, "auth-server-no-issuer", STREAMABLE, "leaves out the issuer in the metadata of its authorization server";
    AuthServerPlain, "auth-server-plain", STREAMABLE, "names an endpoint for tokens that is not behind TLS";
    AuthServerNoRegistration, "auth-server-no-registration", STREAMABLE, "names no endpoint for registration";
    AuthPathOnly, "auth-path-only", FROM_2025_11_25, "has its metadata at the well-known place for its path alone";
    AuthDefaults, "auth-defaults", ONLY_2025_03_26, "has no metadata, and the default endpoints";
    AuthNoEndpoints, "auth-no-endpoints", STREAMABLE, "has neither metadata nor the default endpoints";
    GetEnded400, "http-get-ended-400", SESSIONS, "answers a GET in an ended session with status 400";
    SessionUnknown400, "http-session-unknown-400", SESSIONS, "answers an unknown session id with status 400";
    ModernGetStream, "http-modern-get-stream", MODERN, "answers GET with a stream";
    ModernDeleteServed, "http-modern-delete-served", MODERN, "answers DELETE with status 204";
    ModernSessionChecked, "http-modern-session-checked", MODERN, "looks for the session that a request names";
    ModernSessionMinted, "http-modern-session-minted", MODERN, "issues session ids";
    ModernSessionEchoed, "http-modern-session-echoed", MODERN, "echoes the session id of a request";
    ModernLastEventId, "http-modern-last-event-id", MODERN, "refuses a request that has a Last-Event-ID";
    // the version header
    VersionGarbageServed, "http-version-garbage-served", VERSIONED, "serves requests whose MCP-Protocol-Version is no version";
    VersionUnknownServed, "http-version-unknown-served", VERSIONED, "serves requests whose MCP-Protocol-Version is unknown";
    VersionHeaderRefused, "http-version-header-refused", VERSIONED, "refuses ping with the version that was agreed on in its header";
    VersionHeaderNeeded, "http-version-header-needed", VERSIONED, "refuses requests without MCP-Protocol-Version";
    VersionMissingServed, "http-version-missing-served", MODERN, "serves requests without MCP-Protocol-Version";
    VersionMismatchServed, "http-version-mismatch-served", MODERN, "does not look at what MCP-Protocol-Version says";
    UnsupportedVersion200, "http-unsupported-version-200", MODERN, "refuses an unknown version with status 200";
    // the other headers of the stateless era
    MethodHeaderUnasked, "http-method-header-unasked", MODERN, "serves requests without Mcp-Method";
    MethodHeaderUnchecked, "http-method-header-unchecked", MODERN, "does not look at what Mcp-Method says";
    MethodCaseFolded, "http-method-case-folded", MODERN, "takes the value of Mcp-Method in any letter case";
    ToolHeaderUnasked, "http-tool-header-unasked", MODERN, "serves calls of tools without Mcp-Name";
    PromptHeaderUnasked, "http-prompt-header-unasked", MODERN, "serves prompts without Mcp-Name";
    ResourceHeaderUnasked, "http-resource-header-unasked", MODERN, "serves resources without Mcp-Name";
    ToolHeaderUnchecked, "http-tool-header-unchecked", MODERN, "does not look at Mcp-Name when a tool is called";
    PromptHeaderUnchecked, "http-prompt-header-unchecked", MODERN, "does not look at Mcp-Name when a prompt is got";
    ResourceHeaderUnchecked, "http-resource-header-unchecked", MODERN, "does not look at Mcp-Name when a resource is read";
    NameSentinelRefused, "http-name-sentinel-refused", MODERN, "does not decode Mcp-Name";
    NameSentinelUnchecked, "http-name-sentinel-unchecked", MODERN, "takes any Mcp-Name in Base64";
    InvalidCharactersServed, "http-invalid-characters-served", MODERN, "serves requests whose Mcp-Name is not ASCII";
    HeaderNameCase, "http-header-name-case", MODERN, "knows headers in lower case only";
    MismatchCode, "http-mismatch-code", MODERN, "refuses what its headers contradict with the code -32600";
    MismatchStatus, "http-mismatch-status", MODERN, "refuses what its headers contradict with status 200";
    // mirrored parameters
    ParamUnasked, "http-param-unasked", MODERN, "serves calls without the Mcp-Param headers that are due";
    ParamUnchecked, "http-param-unchecked", MODERN, "does not look at what Mcp-Param headers say";
    ParamSentinelRefused, "http-param-sentinel-refused", MODERN, "does not decode Mcp-Param headers";
    ParamIntegersAsText, "http-param-integers-as-text", MODERN, "compares integers in Mcp-Param headers as texts";
    ParamExpected, "http-param-expected", MODERN, "expects an Mcp-Param header for an absent argument";
    // statuses of the stateless era
    MissingCapability200, "http-missing-capability-200", MODERN, "answers a missing capability with status 200";
    MissingMeta200, "http-missing-meta-200", MODERN, "answers missing metadata with status 200";
    UnknownMethod200, "http-unknown-method-200", MODERN, "answers unknown methods with status 200";
    UnknownMethodPlain, "http-unknown-method-plain", MODERN, "answers unknown methods without a message";
    ListenAsJson, "http-listen-as-json", MODERN, "answers subscriptions/listen by one JSON object";
    ListenEnds, "http-listen-ends", MODERN, "ends a subscription right after the acknowledgement";
    // security
    OriginUnchecked, "http-origin-unchecked", STREAMABLE, "serves requests from any Origin";
    Origin400, "http-origin-400", ORIGIN_403, "answers a foreign Origin with status 400";
    // the older transport
    SseOriginUnchecked, "http-sse-origin-unchecked", OLDER, "opens streams for any Origin";
    SsePostOriginUnchecked, "http-sse-post-origin-unchecked", OLDER, "takes messages from any Origin";
    SseAsText, "http-sse-as-text", OLDER, "opens text/plain for a client that takes JSON as well";
    SseEndpointSecond, "http-sse-endpoint-second", OLDER, "sends another event before that of the endpoint";
    SseEventNamed, "http-sse-event-named", OLDER, "sends messages as events named mcp";
    SseReplyInPost, "http-sse-reply-in-post", OLDER, "answers ping in the answer to the POST";
    SsePostFails, "http-sse-post-fails", OLDER, "answers the POST of a cancellation with status 500";
    SseEndpointShared, "http-sse-endpoint-shared", OLDER, "names one endpoint for all who take JSON as well";
    SseSessionOutlives, "http-sse-session-outlives", OLDER, "takes messages of a stream that was closed";
}

impl HttpFault {
    /// Whether it shows in a protected server only.
    #[must_use]
    pub fn is_of_protection(self) -> bool {
        self.name().starts_with("auth-")
    }
}
