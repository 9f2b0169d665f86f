//! The faults that only show over HTTP: in statuses, headers, streams, sessions and authorization.

use crate::reference::revision::Revision;
use crate::reference::revision::Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// Revisions with Streamable HTTP.
const STREAMABLE: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
/// Revisions with a transport over HTTP.
const EVERY_HTTP: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
/// Revisions with sessions.
const SESSIONS: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
/// Revisions whose clients look for metadata at well-known URIs.
const FROM_2025_11_25: &[Revision] = &[V2025_11_25, V2026_07_28];
/// The revision in which the server is its own authorization server.
const ONLY_2025_03_26: &[Revision] = &[V2025_03_26];
const MODERN: &[Revision] = &[V2026_07_28];
const HTTP_SSE: &[Revision] = &[V2024_11_05];
const ONLY_2025_11_25: &[Revision] = &[V2025_11_25];
/// Revisions in which a JSON response is a single object.
const WITHOUT_BATCHES: &[Revision] = &[V2025_06_18, V2025_11_25, V2026_07_28];
/// Revisions in which a stream must not end before the response.
const WITHOUT_EARLY_STREAM_END: &[Revision] = &[V2025_03_26, V2025_06_18];
/// Revisions with sessions and without tasks, whose progress may outlive the request.
const SESSIONS_WITHOUT_TASKS: &[Revision] = &[V2025_03_26, V2025_06_18];
/// Revisions with sessions and the MCP-Protocol-Version header.
const SESSIONS_WITH_VERSION_HEADER: &[Revision] = &[V2025_06_18, V2025_11_25];
/// Revisions with the MCP-Protocol-Version header.
const WITH_VERSION_HEADER: &[Revision] = &[V2025_06_18, V2025_11_25, V2026_07_28];
/// Revisions that require status 403 for a foreign Origin.
const ORIGIN_403: &[Revision] = &[V2025_11_25, V2026_07_28];

macro_rules! faults {
    ($($variant:ident, $name:literal, $revisions:ident, $description:literal;)*) => {
        /// A named way in which the reference server violates the specification over HTTP.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum HttpFault {
            $(#[doc = concat!("The server ", $description, ".")] $variant,)*
        }

        impl HttpFault {
            /// Every HTTP fault, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kebab-case name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the server does wrong: a predicate whose subject is "the server".
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
    // responses to POST
    RedirectsPost, "http-redirects-post", STREAMABLE, "redirects the POST of resources/templates/list";
    Notification200, "http-notification-200", STREAMABLE, "accepts a notification with status 200";
    NotificationBody, "http-notification-body", STREAMABLE, "accepts a notification with a response body";
    Response200, "http-response-200", SESSIONS, "accepts a response with status 200";
    ResponseBody, "http-response-body", SESSIONS, "accepts a response with a response body";
    UnknownNotification400, "http-unknown-notification-400", STREAMABLE, "conforms, but refuses unknown notifications with status 400";
    Rejected200, "http-rejected-200", SESSIONS, "rejects a notification with status 200";
    JsonAsText, "http-json-as-text", STREAMABLE, "sends the tools/list response as text/plain";
    MediaTypesUpperCase, "http-media-types-upper-case", STREAMABLE, "conforms, but writes media types in upper case with parameters";
    IdentityRequired, "http-identity-required", STREAMABLE, "conforms, but rejects clients that accept compressed responses";
    SessionExpires, "http-session-expires", SESSIONS, "conforms, but ends a session after many messages in it";
    CancellationEndsSession, "http-cancellation-ends-session", SESSIONS, "ends a session in which the client cancels a request";
    ClosesKeptAlive, "http-closes-kept-alive", STREAMABLE, "conforms, but closes a connection at its fourth request";
    LargeBodiesUnread, "http-large-bodies-unread", EVERY_HTTP, "conforms, but refuses bodies above 512 KiB without reading them";
    LargeBodiesCutOff, "http-large-bodies-cut-off", EVERY_HTTP, "conforms, but closes the connection in a body above 512 KiB";
    Proxied, "http-proxied", STREAMABLE, "conforms, behind a proxy that changes headers in both directions";
    BodiesInPieces, "http-bodies-in-pieces", EVERY_HTTP, "conforms, but sends bodies in pieces of seven bytes";
    OneSession, "http-one-session", SESSIONS, "conforms, but ends a session when another one opens";
    OneSessionRefused, "http-one-session-refused", SESSIONS, "conforms, but opens no session while there is one";
    AlwaysStreams, "http-always-streams", SESSIONS, "conforms without tasks, and answers every request with a stream";
    LengthAndChunks, "http-length-and-chunks", STREAMABLE, "sends a Content-Length with the streams that it sends in chunks";
    JsonTwice, "http-json-twice", WITHOUT_BATCHES, "writes the resources/templates/list response twice into the body";
    // the form of requests
    ChunkedEmpty, "http-chunked-empty", STREAMABLE, "takes a body that comes in chunks to be empty";
    ContentTypeExact, "http-content-type-exact", STREAMABLE, "rejects a Content-Type with parameters with status 415";
    ConnectionCloseRejected, "http-connection-close-rejected", STREAMABLE, "rejects a request that closes its connection";
    ExpectRejected, "http-expect-rejected", STREAMABLE, "rejects a request that expects status 100 with status 417";
    FirstPartOnly, "http-first-part-only", STREAMABLE, "reads only the first part of a body that comes in two";
    PartsDecoded, "http-parts-decoded", STREAMABLE, "decodes each part of a body by itself, so a split character is lost";
    // response streams
    StreamStaysOpen, "http-stream-stays-open", STREAMABLE, "keeps a stream open after the response";
    StreamUnfinished, "http-stream-unfinished", STREAMABLE, "ends the streams of calls within an event";
    StreamWithoutData, "http-stream-without-data", STREAMABLE, "writes progress into streams without data fields";
    StreamHeartbeat, "http-stream-heartbeat", STREAMABLE, "sends {\"type\":\"heartbeat\"} on the streams of calls";
    StreamCutData, "http-stream-cut-data", STREAMABLE, "cuts the data of progress events in half";
    ListStreamWithoutResponse, "http-list-stream-without-response", SESSIONS_WITHOUT_TASKS, "answers resources/templates/list with a stream without the response";
    StreamWithoutResponse, "http-stream-without-response", SESSIONS, "ends streams without a response if the progressToken is a number";
    StreamEndsEarly, "http-stream-ends-early", WITHOUT_EARLY_STREAM_END, "ends streams after one event if the progressToken is a number";
    ForeignProgress, "http-foreign-progress", STREAMABLE, "sends progress of another request on a stream";
    ChangesOnStream, "http-changes-on-stream", MODERN, "sends list_changed on the stream of a call";
    BufferingHeaderMissing, "http-buffering-header-missing", MODERN, "omits the X-Accel-Buffering header";
    DisconnectCancels, "http-disconnect-cancels", ONLY_2025_11_25, "cancels a request when its connection is dropped";
    DisconnectBreaksServer, "http-disconnect-breaks-server", MODERN, "fails tools/list after a subscription stream was dropped";
    TasksGetStream, "http-tasks-get-stream", ONLY_2025_11_25, "answers tasks/get with a stream";
    // the GET stream
    GetBlocksPosts, "http-get-blocks-posts", SESSIONS, "answers no POST while a GET stream is open";
    GetNotFound, "http-get-not-found", SESSIONS, "answers GET with status 404";
    GetJson, "http-get-json", SESSIONS, "answers GET with an empty JSON array";
    ResponseOnGet, "http-response-on-get", SESSIONS, "sends responses on the GET stream as well";
    ProgressOnGet, "http-progress-on-get", SESSIONS_WITHOUT_TASKS, "sends progress of calls on the GET stream";
    Broadcast, "http-broadcast", SESSIONS, "sends progress on every open stream";
    // event ids and resumption
    EventIdsRepeat, "http-event-ids-repeat", ONLY_2025_11_25, "numbers the events of each stream from 0";
    PrimingMissing, "http-priming-missing", ONLY_2025_11_25, "opens streams without an initial event that has an id";
    ReplayCrosses, "http-replay-crosses", ONLY_2025_11_25, "replays the events of other streams as well";
    ResumeRejected, "http-resume-rejected", ONLY_2025_11_25, "rejects resumption of a stream that a POST opened";
    Polls, "http-polls", ONLY_2025_11_25, "conforms, but closes the streams of calls early for resumption";
    PollsWithoutRetry, "http-polls-without-retry", ONLY_2025_11_25, "closes unfinished streams without a retry field";
    // clients
    RoutesById, "http-routes-by-id", STREAMABLE, "routes responses to whichever client last used a string as an id";
    SharedTransport, "http-shared-transport", STREAMABLE, "has no sessions, and routes responses of all clients by string ids";
    ReplaysAnySession, "http-replays-any-session", ONLY_2025_11_25, "replays the events of other sessions";
    TasksListedToAll, "http-tasks-listed-to-all", ONLY_2025_11_25, "lists the tasks of other sessions in one without tasks";
    EndedSessionsKept, "http-ended-sessions-kept", SESSIONS, "serves nothing after 200 sessions, although they have ended";
    ConnectionsKept, "http-connections-kept", STREAMABLE, "serves nothing after 200 requests that close their connections";
    ConnectionsUnclosed, "http-connections-unclosed", STREAMABLE, "closes no connection, also if the client has closed it";
    NewestSessionOnly, "http-newest-session-only", SESSIONS, "never answers calls in a session once another one was opened";
    UpdatesEverySession, "http-updates-every-session", SESSIONS, "sends resource updates to every session, subscribed or not";
    // sessions
    Sessionless, "http-sessionless", SESSIONS, "conforms, but issues no session ids";
    SessionIdSpace, "http-session-id-space", SESSIONS, "issues session ids that contain a space";
    SessionIdSequential, "http-session-id-sequential", SESSIONS, "issues sequential session ids";
    SessionIdFromTitle, "http-session-id-from-title", SESSIONS, "gives clients with the same title the same session";
    SessionIdReused, "http-session-id-reused", SESSIONS, "gives a client with the same title the id of an ended session";
    SessionMissing422, "http-session-missing-422", SESSIONS, "answers a POST without its session id with status 422";
    GetSessionMissing404, "http-get-session-missing-404", SESSIONS, "answers a GET without its session id with status 404";
    SessionSurvivesDelete, "http-session-survives-delete", SESSIONS, "keeps serving a session that the client has deleted";
    DeleteRefused, "http-delete-refused", SESSIONS, "conforms, but refuses DELETE and forgets its oldest sessions";
    // authorization
    AuthForbidden, "auth-forbidden", STREAMABLE, "answers 403 when the token is missing";
    AuthErrorBody, "auth-error-body", STREAMABLE, "conforms, but writes a JSON-RPC error into its 401 responses";
    AuthErrorWithId, "auth-error-with-id", STREAMABLE, "conforms, but writes a JSON-RPC error with an id into 401 responses";
    AuthOAuthBody, "auth-oauth-body", STREAMABLE, "conforms, but writes an OAuth error into its 401 responses";
    AuthPageBody, "auth-page-body", STREAMABLE, "conforms, but writes a web page into its 401 responses";
    AuthToolsLeaked, "auth-tools-leaked", STREAMABLE, "lists its tools in the 401 response";
    AuthAnyToken, "auth-any-token", STREAMABLE, "accepts any token";
    AuthUnsignedToken, "auth-unsigned-token", STREAMABLE, "accepts an unsigned token";
    AuthForeignAudience, "auth-foreign-audience", WITHOUT_BATCHES, "accepts a token that was issued for another server";
    AuthTasksShared, "auth-tasks-shared", ONLY_2025_11_25, "shows a user the tasks of other users";
    AuthStateShared, "auth-state-shared", MODERN, "accepts a requestState that it gave to another user";
    AuthPublicPerUser, "auth-public-per-user", MODERN, "marks a list of tools as public that depends on the user";
    AuthHiddenToolServed, "auth-hidden-tool-served", STREAMABLE, "serves calls of tools that it hides from the user";
    AuthHiddenResourceServed, "auth-hidden-resource-served", STREAMABLE, "serves resources that it hides from the user";
    AuthMalformed500, "auth-malformed-500", STREAMABLE, "answers a malformed Authorization header with status 500";
    AuthSessionWithoutToken, "auth-session-without-token", SESSIONS, "requires no token within a session";
    AuthNoScope, "auth-no-scope", STREAMABLE, "omits the scope from its challenges";
    AuthNoMetadata, "auth-no-metadata", STREAMABLE, "has no protected resource metadata and does not refer to any";
    AuthNoServers, "auth-no-servers", STREAMABLE, "lists no authorization server in its resource metadata";
    AuthNoResource, "auth-no-resource", STREAMABLE, "omits resource from its resource metadata";
    AuthMetadataNotFound, "auth-metadata-not-found", WITHOUT_BATCHES, "refers to resource metadata that does not exist";
    AuthMetadataOtherHost, "auth-metadata-other-host", WITHOUT_BATCHES, "refers to resource metadata on another host";
    AuthResourceOther, "auth-resource-other", WITHOUT_BATCHES, "has resource metadata for another resource of its host";
    AuthOfflineAccess, "auth-offline-access", STREAMABLE, "includes offline_access in the scope of its challenges";
    AuthNoChallenge, "auth-no-challenge", STREAMABLE, "rejects requests without a challenge and has no metadata";
    AuthScopeNoChallenge, "auth-scope-no-challenge", STREAMABLE, "rejects a token with insufficient scope without a challenge";
    AuthServerNoIssuer, "auth-server-no-issuer", STREAMABLE, "omits issuer from its authorization server metadata";
    AuthServerPlainHttp, "auth-server-plain-http", STREAMABLE, "has a token endpoint without TLS";
    AuthServerNoRegistration, "auth-server-no-registration", STREAMABLE, "has no registration endpoint";
    AuthPathOnly, "auth-path-only", FROM_2025_11_25, "has its resource metadata only at the path-specific well-known URI";
    AuthBareChallenge, "auth-bare-challenge", FROM_2025_11_25, "has challenges without parameters and metadata at its path only";
    AuthDefaults, "auth-defaults", ONLY_2025_03_26, "has no metadata and only the default endpoints";
    AuthOwnScheme, "auth-own-scheme", WITHOUT_BATCHES, "has a bearer scheme of its own that answers 403";
    AuthNoEndpoints, "auth-no-endpoints", STREAMABLE, "has neither metadata nor the default endpoints";
    GetEnded400, "http-get-ended-400", SESSIONS, "answers a GET in an ended session with status 400";
    SessionUnknown400, "http-session-unknown-400", SESSIONS, "answers an unknown session id with status 400";
    ModernGetStream, "http-modern-get-stream", MODERN, "answers GET with a stream";
    ModernDeleteServed, "http-modern-delete-served", MODERN, "answers DELETE with status 204";
    ModernSessionChecked, "http-modern-session-checked", MODERN, "rejects a request because of its session id";
    ModernSessionIssued, "http-modern-session-issued", MODERN, "issues session ids";
    ModernSessionEchoed, "http-modern-session-echoed", MODERN, "echoes the session id of a request";
    ModernLastEventId, "http-modern-last-event-id", MODERN, "rejects a request with a Last-Event-ID header";
    // MCP-Protocol-Version
    VersionGarbageServed, "http-version-garbage-served", SESSIONS_WITH_VERSION_HEADER, "accepts a malformed MCP-Protocol-Version header";
    VersionUnknownServed, "http-version-unknown-served", SESSIONS_WITH_VERSION_HEADER, "accepts an unknown version in MCP-Protocol-Version";
    VersionHeaderRejected, "http-version-header-rejected", SESSIONS_WITH_VERSION_HEADER, "rejects ping with the negotiated MCP-Protocol-Version";
    VersionHeaderRequired, "http-version-header-required", SESSIONS_WITH_VERSION_HEADER, "rejects requests without MCP-Protocol-Version";
    VersionMissingServed, "http-version-missing-served", MODERN, "accepts requests without MCP-Protocol-Version";
    VersionMismatchServed, "http-version-mismatch-served", MODERN, "does not check the value of MCP-Protocol-Version";
    UnsupportedVersion200, "http-unsupported-version-200", MODERN, "rejects an unknown version with status 200";
    // the other headers of 2026-07-28
    MethodHeaderNotRequired, "http-method-header-not-required", MODERN, "accepts requests without Mcp-Method";
    MethodHeaderUnchecked, "http-method-header-unchecked", MODERN, "does not check the value of Mcp-Method";
    MethodCaseFolded, "http-method-case-folded", MODERN, "matches the value of Mcp-Method case-insensitively";
    NameHeaderRequired, "http-name-header-required", MODERN, "conforms, but rejects calls without Mcp-Name before it reads them";
    ToolHeaderNotRequired, "http-tool-header-not-required", MODERN, "accepts tools/call without Mcp-Name";
    PromptHeaderNotRequired, "http-prompt-header-not-required", MODERN, "accepts prompts/get without Mcp-Name";
    ResourceHeaderNotRequired, "http-resource-header-not-required", MODERN, "accepts resources/read without Mcp-Name";
    ToolHeaderUnchecked, "http-tool-header-unchecked", MODERN, "does not check the value of Mcp-Name in tools/call";
    PromptHeaderUnchecked, "http-prompt-header-unchecked", MODERN, "does not check the value of Mcp-Name in prompts/get";
    ResourceHeaderUnchecked, "http-resource-header-unchecked", MODERN, "does not check the value of Mcp-Name in resources/read";
    TaskHeaderUnchecked, "http-task-header-unchecked", MODERN, "does not check the value of Mcp-Name in requests for a task";
    NameSentinelRejected, "http-name-sentinel-rejected", MODERN, "does not decode Base64 in Mcp-Name";
    NameSentinelUnchecked, "http-name-sentinel-unchecked", MODERN, "accepts any Base64 value in Mcp-Name";
    InvalidCharactersServed, "http-invalid-characters-served", MODERN, "accepts requests whose Mcp-Name is not ASCII";
    HeaderNameCase, "http-header-name-case", MODERN, "recognizes header names in lower case only";
    HeaderSpaceKept, "http-header-space-kept", WITH_VERSION_HEADER, "takes white space before a header value for a part of it";
    MismatchCode, "http-mismatch-code", MODERN, "rejects mismatched headers with the code -32600";
    MismatchStatus, "http-mismatch-status", MODERN, "rejects mismatched headers with status 200";
    // Mcp-Param headers
    ParamNotRequired, "http-param-not-required", MODERN, "accepts calls without the required Mcp-Param headers";
    ParamUnchecked, "http-param-unchecked", MODERN, "does not check the values of Mcp-Param headers";
    ParamSentinelRejected, "http-param-sentinel-rejected", MODERN, "does not decode Base64 in Mcp-Param headers";
    ParamBase64Unchecked, "http-param-base64-unchecked", MODERN, "ignores malformed Base64 in Mcp-Param headers";
    ParamIntegersAsStrings, "http-param-integers-as-strings", MODERN, "compares integers in Mcp-Param headers as strings";
    ParamExpected, "http-param-expected", MODERN, "requires an Mcp-Param header for an absent argument";
    // statuses of 2026-07-28
    MissingCapability200, "http-missing-capability-200", MODERN, "answers a missing capability with status 200";
    MissingMeta200, "http-missing-meta-200", MODERN, "answers requests without metadata with status 200";
    UnknownMethod200, "http-unknown-method-200", MODERN, "answers unknown methods with status 200";
    UnknownMethodPlain, "http-unknown-method-plain", MODERN, "answers unknown methods without a JSON-RPC error";
    ListenAsJson, "http-listen-as-json", MODERN, "answers subscriptions/listen with one JSON object";
    ListenEnds, "http-listen-ends", MODERN, "ends a subscription stream right after the acknowledgement";
    // security
    OriginUnchecked, "http-origin-unchecked", STREAMABLE, "accepts requests from any Origin";
    OriginMatchesHost, "http-origin-matches-host", STREAMABLE, "accepts every Origin that equals the Host";
    HostUnchecked, "http-host-unchecked", STREAMABLE, "accepts requests for any Host";
    BindsEveryAddress, "http-binds-every-address", EVERY_HTTP, "listens at every address of the machine";
    Origin400, "http-origin-400", ORIGIN_403, "answers a foreign Origin with status 400";
    // the HTTP+SSE transport
    SseOriginUnchecked, "http-sse-origin-unchecked", HTTP_SSE, "opens SSE streams for any Origin";
    SsePostOriginUnchecked, "http-sse-post-origin-unchecked", HTTP_SSE, "accepts POSTed messages from any Origin";
    SseAsText, "http-sse-as-text", HTTP_SSE, "opens the stream as text/plain for clients that also accept JSON";
    SseEndpointSecond, "http-sse-endpoint-second", HTTP_SSE, "sends another event before the endpoint event";
    SseEventNamed, "http-sse-event-named", HTTP_SSE, "sends messages as events of the type mcp";
    SseReplyInPost, "http-sse-reply-in-post", HTTP_SSE, "answers ping in the response to the POST";
    SsePostFails, "http-sse-post-fails", HTTP_SSE, "answers the POST of a cancellation with status 500";
    SseEndpointShared, "http-sse-endpoint-shared", HTTP_SSE, "gives all clients that also accept JSON the same endpoint";
    SseSessionOutlivesStream, "http-sse-session-outlives-stream", HTTP_SSE, "accepts messages for a stream that was closed";
}

impl HttpFault {
    /// Whether the fault only shows on a server that requires authorization.
    #[must_use]
    pub fn requires_authorization(self) -> bool {
        self.name().starts_with("auth-")
    }
}
