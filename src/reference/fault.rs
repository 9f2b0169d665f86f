//! The closed table of named faults, each a deviation in one thing, and sets of them.
//!
//! Where a fault takes effect is written where the deviation is made; this module only knows names,
//! sentences and the revisions in which a fault can be seen.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use thiserror::Error;

use super::evaluation::EvaluationFault;
use super::http::HttpFault;
use super::revision::Revision;
use super::revision::Revision::{V2024_10_07, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

const EVERY: &[Revision] = Revision::ALL;
const LEGACY: &[Revision] = &[V2024_10_07, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];
const HANDSHAKE: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];
const FROM_2024_11_05: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
const FROM_2025_03_26: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
const FROM_2025_06_18: &[Revision] = &[V2025_06_18, V2025_11_25, V2026_07_28];
const FROM_2025_11_25: &[Revision] = &[V2025_11_25, V2026_07_28];
const MODERN: &[Revision] = &[V2026_07_28];
/// Where the server takes subscriptions by request.
const SUBSCRIBING: &[Revision] = &[V2025_03_26, V2025_06_18, V2025_11_25];
const ONLY_2024_10_07: &[Revision] = &[V2024_10_07];
const ONLY_2024_11_05: &[Revision] = &[V2024_11_05];
const ONLY_2025_03_26: &[Revision] = &[V2025_03_26];
const ONLY_2025_06_18: &[Revision] = &[V2025_06_18];
const ONLY_2025_11_25: &[Revision] = &[V2025_11_25];
/// Where a message is never an array.
const WITHOUT_BATCHES: &[Revision] = &[V2024_10_07, V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28];
/// Where structured content and its schema are objects.
const OUTPUT_OBJECTS: &[Revision] = &[V2025_06_18, V2025_11_25];
/// Where tool results have a content array and no resource links.
const LINKLESS: &[Revision] = &[V2024_11_05, V2025_03_26];
/// Where the text is clear on how invalid arguments are answered.
const ARGUMENT_CLASS: &[Revision] = &[V2024_10_07, V2025_11_25];

macro_rules! faults {
    ($($variant:ident, $name:literal, $revisions:ident, $description:literal;)*) => {
        /// A named way in which the built-in server deviates from the specification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $(#[doc = concat!("The server ", $description, ".")] $variant,)*
            /// A fault that shows over HTTP only.
            Http(HttpFault),
            /// A fault that no case can see, hidden where only a fuzzer looks.
            Evaluation(EvaluationFault),
        }

        impl Fault {
            const PLAIN: &'static [Self] = &[$(Self::$variant,)*];

            /// The kebab-case name, as `--fault` takes it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Http(http) => http.name(), Self::Evaluation(hidden) => hidden.name() }
            }

            /// What the server does wrong: the rest of a sentence that begins "the server".
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                    Self::Http(http) => http.description(),
                    Self::Evaluation(hidden) => hidden.description(),
                }
            }

            /// The revisions in which the fault shows, oldest first; in the others it has no effect.
            #[must_use]
            pub const fn revisions(self) -> &'static [Revision] {
                match self {
                    $(Self::$variant => $revisions,)*
                    Self::Http(http) => http.revisions(),
                    Self::Evaluation(_) => FROM_2025_06_18,
                }
            }
        }
    };
}

faults! {
    // base messages
    Jsonrpc10, "jsonrpc-1-0", EVERY, "says \"jsonrpc\": \"1.0\" in its responses";
    MessageWithoutKind, "message-without-kind", EVERY, "follows each tools/list response with an object of no message kind";
    IdAsString, "id-as-string", EVERY, "returns integer ids as strings in results other than the opening";
    ErrorIdNull, "error-id-null", EVERY, "answers well-formed requests with errors whose id is null";
    AnswersTwice, "answers-twice", EVERY, "writes each tools/list response twice";
    StringIdRefused, "string-id-refused", EVERY, "refuses requests whose id is a string with -32600";
    EmptyIdIgnored, "empty-id-ignored", EVERY, "never answers a request whose id is the empty string";
    ZeroIdIgnored, "zero-id-ignored", EVERY, "never answers a request whose id is 0";
    NegativeIdPositive, "negative-id-positive", EVERY, "answers a request with a negative id under the positive id";
    LargeIdRounded, "large-id-rounded", EVERY, "returns ids beyond 2^53 - 2 rounded to the next even number";
    UnicodeIdMangled, "unicode-id-mangled", EVERY, "returns ids with every non-ASCII character turned into '?'";
    IdKindsConfused, "id-kinds-confused", EVERY, "answers 7 and \"7\" in flight together both under the integer";
    ReusedIdRefused, "reused-id-refused", MODERN, "refuses an id that was used for an earlier request with -32600";
    ResultAndError, "result-and-error", EVERY, "adds an empty result to its error responses";
    ResultArray, "result-array", EVERY, "answers ping, or tools/list with an unknown member, by result []";
    ErrorCodeString, "error-code-string", EVERY, "writes the error code -32601 as a string";
    ErrorMessageStack, "error-message-stack", EVERY, "puts a stack trace of several lines into error messages";
    NotificationAnswered, "notification-answered", EVERY, "answers an unknown notification with an error";
    InitializedAnswered, "initialized-answered", LEGACY, "answers notifications/initialized with an error";
    ServerRequestIdReused, "server-request-id-reused", HANDSHAKE, "gives every request to the client the same id";
    CancelledAnswered, "cancelled-answered", FROM_2024_11_05, "answers the cancellation of an unknown request with an error";
    NotificationWithId, "notification-with-id", EVERY, "gives its list_changed or progress notifications an id";
    ArrayParamsCrash, "array-params-crash", EVERY, "ends when params is an array";
    UnknownMemberRefused, "unknown-member-refused", EVERY, "refuses tools/list with an unknown member in params";
    UnknownMetaRefused, "unknown-meta-refused", EVERY, "refuses requests with an unknown vendor key in _meta";
    ReservedMetaCrash, "reserved-meta-crash", FROM_2025_06_18, "fails with -32603 on an unknown reserved key in _meta";
    UnknownMethodInvalidParams, "unknown-method-invalid-params", EVERY, "answers unknown methods with -32602";
    UnknownMethodSucceeds, "unknown-method-succeeds", EVERY, "answers unknown methods with an empty result";
    RpcMethodSucceeds, "rpc-method-succeeds", EVERY, "answers methods that begin with \"rpc.\" with an empty result";
    MethodCaseFolded, "method-case-folded", EVERY, "serves method names in any letter case";
    ParseErrorExits, "parse-error-exits", EVERY, "ends on a line that is not JSON";
    ParseErrorSilent, "parse-error-silent", EVERY, "drops lines that are not JSON without an answer";
    NoMethodSucceeds, "no-method-succeeds", EVERY, "answers a message without method with a result";
    MethodNumberExits, "method-number-exits", EVERY, "ends when method is a number";
    JsonrpcMemberUnchecked, "jsonrpc-member-unchecked", EVERY, "serves requests that do not say \"jsonrpc\": \"2.0\"";
    ObjectIdServed, "object-id-served", EVERY, "serves requests whose id is an object";
    BatchRefused, "batch-refused", ONLY_2025_03_26, "refuses every batch with one -32600";
    BatchNotificationAnswered, "batch-notification-answered", ONLY_2025_03_26, "answers notifications inside a batch";
    EmptyBatchAnswer, "empty-batch-answer", ONLY_2025_03_26, "answers a batch of notifications with an empty array";
    BatchEmitted, "batch-emitted", WITHOUT_BATCHES, "wraps tools/list responses in an array";
    BatchServedLate, "batch-served-late", FROM_2025_06_18, "serves a batch although the revision has none";
    PingRefused, "ping-refused", LEGACY, "answers ping with -32601";
    SwappedIds, "swapped-ids", EVERY, "exchanges the ids of two requests in flight together";
    ReservedCode, "reserved-code", MODERN, "answers unknown methods with the reserved code -32050";
    LegacyCode, "legacy-code", MODERN, "answers unknown methods with the legacy code -32001";
    RetiredCode, "retired-code", MODERN, "answers unknown tools with the retired code -32002";
    NullNextCursor, "null-next-cursor", EVERY, "says \"nextCursor\": null on the last page";
    MetaArray, "meta-array", EVERY, "writes _meta of tools/list results as an array";
    MetaKeyBad, "meta-key-bad", FROM_2025_06_18, "uses the malformed key \"-bad key\" in _meta";
    MetaKeyReservedAny, "meta-key-reserved-any", ONLY_2025_06_18, "uses a _meta prefix reserved by the label mcp";
    MetaKeyReservedSecond, "meta-key-reserved-second", FROM_2025_11_25, "uses a _meta prefix reserved by its second label";
    MetaKeyForwardDns, "meta-key-forward-dns", FROM_2025_11_25, "uses a _meta prefix that is not in reverse DNS order";
    InvalidParamsWrongCode, "invalid-params-wrong-code", EVERY, "answers tools/call without params or name with -32603";
    // stdio
    PrettyPrinted, "pretty-printed", FROM_2024_11_05, "spreads tools/list responses over several lines";
    BannerOnStdout, "banner-on-stdout", FROM_2024_11_05, "prints \"Server ready\" before its first response";
    LogOnStdout, "log-on-stdout", FROM_2024_11_05, "prints a log line before each tools/call response";
    BlankLine, "blank-line", FROM_2024_11_05, "writes an empty line after each response";
    Latin1Output, "latin1-output", FROM_2025_03_26, "writes tool results in Latin-1 instead of UTF-8";
    IgnoresEof, "ignores-eof", FROM_2024_11_05, "stays when its input has ended";
    IgnoresSigterm, "ignores-sigterm", FROM_2024_11_05, "stays when its input has ended and when SIGTERM arrives";
    // opening with a handshake
    InitializeInstructionsArray, "initialize-instructions-array", HANDSHAKE, "writes the instructions of initialize as an array";
    InitializeWithoutServerInfo, "initialize-without-server-info", HANDSHAKE, "leaves serverInfo out of the initialize result";
    ServerInfoTitleNumber, "server-info-title-number", FROM_2025_06_18, "gives serverInfo a title that is a number";
    ServerInfoIconString, "server-info-icon-string", FROM_2025_11_25, "gives serverInfo icons that are a string";
    CapabilityLoggingTrue, "capability-logging-true", FROM_2024_11_05, "declares the capability logging as true";
    UnknownVersionRefused, "unknown-version-refused", HANDSHAKE, "refuses initialize with an unknown version";
    UnknownVersionEchoed, "unknown-version-echoed", HANDSHAKE, "agrees to any unknown version that initialize names";
    EarlyRequest, "early-request", HANDSHAKE, "sends a request before notifications/initialized";
    UndeclaredSampling, "undeclared-sampling", HANDSHAKE, "asks for sampling a client that did not declare it";
    PingNotEmpty, "ping-not-empty", HANDSHAKE, "adds a member to the empty result of ping";
    // opening without a handshake
    DiscoverRefused, "discover-refused", MODERN, "does not know server/discover";
    DiscoverWithoutCapabilities, "discover-without-capabilities", MODERN, "leaves capabilities out of the server/discover result";
    DiscoverOmitsVersion, "discover-omits-version", MODERN, "leaves 2026-07-28 out of supportedVersions";
    MissingMetaServed, "missing-meta-served", MODERN, "serves requests without _meta";
    MissingVersionServed, "missing-version-served", MODERN, "serves requests that name no protocol version";
    MissingCapabilitiesServed, "missing-capabilities-served", MODERN, "serves requests without client capabilities";
    ClientInfoRequired, "client-info-required", MODERN, "refuses requests without client information";
    UnsupportedVersionServed, "unsupported-version-served", MODERN, "serves requests that name an unknown protocol version";
    UnsupportedVersionBare, "unsupported-version-bare", MODERN, "answers an unknown protocol version with -32022 without data";
    ServerInfoMissing, "server-info-missing", MODERN, "leaves serverInfo out of the _meta of its results";
    ServerInfoString, "server-info-string", MODERN, "writes serverInfo in _meta as a string";
    PingStillServed, "ping-still-served", MODERN, "answers ping although the revision removed it";
    ServerRequestModern, "server-request-modern", MODERN, "sends a request to the client during tools/call";
    ResultTypeMissing, "result-type-missing", MODERN, "leaves resultType out of tools/list results";
    ResultTypeOdd, "result-type-odd", MODERN, "says \"resultType\": \"done\" in tools/list results";
    CachingHintsMissing, "caching-hints-missing", MODERN, "leaves ttlMs and cacheScope out of tools/list results";
    CacheScopeShared, "cache-scope-shared", MODERN, "says \"cacheScope\": \"shared\" in tools/list results";
    TtlNegative, "ttl-negative", MODERN, "says \"ttlMs\": -1 in tools/list results";
    CacheScopeVaries, "cache-scope-varies", MODERN, "says another cacheScope on every page but the first";
    NeedsDiscoverFirst, "needs-discover-first", MODERN, "refuses requests until server/discover was called";
    ListPerConnection, "list-per-connection", MODERN, "lists another extra tool on each connection";
    ListOrderRandom, "list-order-random", MODERN, "turns the order of tools around in every other listing";
    // capability of tools
    ToolsUndeclared, "tools-undeclared", EVERY, "serves tools without declaring the capability";
    ToolsCapabilityTrue, "tools-capability-true", EVERY, "declares the capability tools as true";
    ListChangedString, "list-changed-string", EVERY, "declares listChanged as a string";
    ListChangedUndeclared, "list-changed-undeclared", LEGACY, "sends list_changed without having declared listChanged";
    ListRefused, "list-refused", EVERY, "declares tools and answers tools/list with -32603";
    CallNotFound, "call-not-found", EVERY, "declares tools and answers tools/call with -32601";
    ToolsOffServed, "tools-off-served", EVERY, "declares no tools, refuses the list, and serves calls of any name";
    ListChangedParamsArray, "list-changed-params-array", LEGACY, "writes the params of list_changed as an array";
    ListChangedSilent, "list-changed-silent", HANDSHAKE, "changes its lists without sending list_changed";
    // tools/list
    ToolsObject, "tools-object", EVERY, "lists tools as an object keyed by name";
    ListParamsRequired, "list-params-required", LEGACY, "refuses tools/list without params";
    ListEmptyMetaRefused, "list-empty-meta-refused", LEGACY, "refuses tools/list with an empty _meta";
    ListDependsOnParams, "list-depends-on-params", LEGACY, "lists fewer tools when params is missing";
    NextCursorNumber, "next-cursor-number", EVERY, "writes nextCursor as a number";
    CursorRepeats, "cursor-repeats", EVERY, "answers every cursor with the first page and the same nextCursor";
    OwnCursorRefused, "own-cursor-refused", EVERY, "refuses the cursors that it issued itself";
    SecondWalkDiffers, "second-walk-differs", FROM_2024_11_05, "drops a tool from every other listing";
    CursorOnce, "cursor-once", FROM_2024_11_05, "refuses a cursor that was used before";
    PageOverlap, "page-overlap", FROM_2024_11_05, "opens each page with the last tool of the page before";
    InvalidCursorServed, "invalid-cursor-served", FROM_2024_11_05, "answers a cursor that it never issued with the first page";
    InvalidCursorInternal, "invalid-cursor-internal", FROM_2024_11_05, "answers an invalid cursor with -32603";
    LongCursorCrash, "long-cursor-crash", FROM_2024_11_05, "ends on a cursor of more than 4,000 characters";
    AlteredCursorServed, "altered-cursor-served", FROM_2024_11_05, "serves the first page for its own cursor with characters changed";
    CursorNumberServed, "cursor-number-served", FROM_2024_11_05, "serves the first page for a cursor that is a number";
    CursorPerConnection, "cursor-per-connection", MODERN, "refuses cursors issued on another connection";
    EmptyCursorRestarts, "empty-cursor-restarts", MODERN, "issues an empty cursor that leads to the first page again";
    // definitions of tools
    ToolNameNumber, "tool-name-number", EVERY, "lists a tool whose name is a number";
    ToolNameTwice, "tool-name-twice", EVERY, "lists two tools of the same name";
    ToolNameLong, "tool-name-long", FROM_2025_11_25, "lists a tool whose name has 129 characters";
    ToolNameSpace, "tool-name-space", FROM_2025_11_25, "lists a tool whose name contains a space";
    DescriptionArray, "description-array", EVERY, "lists a tool whose description is an array";
    TitleNumber, "title-number", FROM_2025_06_18, "lists a tool whose title is a number";
    InputSchemaMissing, "input-schema-missing", EVERY, "lists a tool without inputSchema";
    InputSchemaTypeList, "input-schema-type-list", EVERY, "lists a tool whose inputSchema has the type [\"object\"]";
    InputSchemaBooleanProperty, "input-schema-boolean-property", LEGACY, "lists a tool with a boolean schema under properties";
    InputSchemaRequiredString, "input-schema-required-string", LEGACY, "lists a tool whose inputSchema has a string as required";
    InputSchemaInvalid, "input-schema-invalid", FROM_2025_11_25, "lists a tool whose inputSchema names the type \"strin\"";
    InputSchemaDraft4, "input-schema-draft4", FROM_2025_11_25, "lists a tool with draft 4 keywords and no $schema";
    InputSchemaRemoteRef, "input-schema-remote-ref", MODERN, "lists a tool whose inputSchema refers to the network";
    OutputSchemaArrayRoot, "output-schema-array-root", OUTPUT_OBJECTS, "lists a tool whose outputSchema has the type array";
    OutputSchemaInvalid, "output-schema-invalid", FROM_2025_11_25, "lists a tool whose outputSchema is no valid JSON Schema";
    OutputSchemaTrue, "output-schema-true", MODERN, "lists a tool whose outputSchema is true";
    AnnotationsStringHint, "annotations-string-hint", FROM_2025_03_26, "lists a tool whose readOnlyHint is the string \"true\"";
    AnnotationsTitleNumber, "annotations-title-number", FROM_2025_03_26, "lists a tool whose annotation title is a number";
    ExecutionOdd, "execution-odd", ONLY_2025_11_25, "lists a tool whose taskSupport is \"maybe\"";
    IconSizesString, "icon-sizes-string", FROM_2025_11_25, "lists a tool with an icon whose sizes is a string";
    IconJavascript, "icon-javascript", FROM_2025_11_25, "lists a tool with an icon whose source is a script";
    HeaderNameSpace, "header-name-space", MODERN, "lists a tool with a space in an x-mcp-header";
    HeaderNameTwice, "header-name-twice", MODERN, "lists a tool with two x-mcp-header that differ in case only";
    HeaderOnObject, "header-on-object", MODERN, "lists a tool with an x-mcp-header on an object";
    HeaderInItems, "header-in-items", MODERN, "lists a tool with an x-mcp-header inside items";
    HeaderOnPassword, "header-on-password", MODERN, "lists a tool with an x-mcp-header on a password";
    ToolMetaString, "tool-meta-string", FROM_2025_06_18, "lists a tool whose _meta is a string";
    TerminalEscapeInDescription, "terminal-escape-in-description", FROM_2024_11_05, "lists a tool with terminal escapes in its description";
    BidiInDescription, "bidi-in-description", FROM_2024_11_05, "lists a tool with invisible characters in its description";
    // tools/call
    ExtraArgumentAccepted, "extra-argument-accepted", EVERY, "accepts arguments that additionalProperties forbids";
    ContentMissing, "content-missing", FROM_2024_11_05, "leaves content out of the result of the tool add";
    ContentObject, "content-object", FROM_2024_11_05, "writes the content of the tool echo as one object";
    ToolResultMissing, "tool-result-missing", ONLY_2024_10_07, "answers tools/call with content instead of toolResult";
    IsErrorString, "is-error-string", FROM_2024_11_05, "writes isError as a string";
    ValidCallError, "valid-call-error", EVERY, "answers a valid call of the tool weather with an error";
    ArgumentsRequired, "arguments-required", EVERY, "refuses tools/call without arguments";
    UnknownToolIsError, "unknown-tool-is-error", EVERY, "answers unknown tools with a failed tool result";
    UnknownToolSucceeds, "unknown-tool-succeeds", EVERY, "answers unknown tools with success";
    UnknownToolCode32601, "unknown-tool-code-32601", EVERY, "answers unknown tools with -32601";
    ToolNameCaseFolded, "tool-name-case-folded", FROM_2025_11_25, "serves tool names in any letter case";
    NoNameSucceeds, "no-name-succeeds", EVERY, "answers tools/call without a name with success";
    NameNumberSucceeds, "name-number-succeeds", EVERY, "answers tools/call with a number as name with success";
    ArgumentsArraySucceeds, "arguments-array-succeeds", EVERY, "answers tools/call with an array as arguments with success";
    ArgumentsStringSucceeds, "arguments-string-succeeds", EVERY, "answers tools/call with a string as arguments with success";
    MissingArgumentSucceeds, "missing-argument-succeeds", EVERY, "accepts calls that lack a required argument";
    WrongTypeSucceeds, "wrong-type-succeeds", EVERY, "accepts arguments of the wrong type";
    InvalidArgumentsProtocolError, "invalid-arguments-protocol-error", ARGUMENT_CLASS, "answers invalid arguments with the other kind of error";
    EnumUnchecked, "enum-unchecked", EVERY, "accepts arguments outside their enum";
    ErrorUnexplained, "error-unexplained", FROM_2025_11_25, "writes failed tool results without content";
    CallsSwapped, "calls-swapped", EVERY, "exchanges the ids of two calls in flight together";
    RefusesAfterError, "refuses-after-error", EVERY, "fails the call that follows a refused one";
    // content
    ContentTypeVideo, "content-type-video", FROM_2024_11_05, "adds content of the type video to the tool image";
    AudioIn20241105, "audio-in-2024-11-05", ONLY_2024_11_05, "adds audio to the tool image before audio existed";
    LinkBefore20250618, "link-before-2025-06-18", LINKLESS, "adds a resource link to the tool image before links existed";
    TextNumber, "text-number", FROM_2024_11_05, "writes the text of the tool echo as a number";
    ImageWithoutMime, "image-without-mime", FROM_2024_11_05, "leaves mimeType out of an image";
    ImageDataUrl, "image-data-url", FROM_2024_11_05, "writes the data of an image as a data: URL";
    ImageMimeText, "image-mime-text", FROM_2024_11_05, "gives an image the MIME type text/plain";
    ImageMagic, "image-magic", FROM_2024_11_05, "labels PNG bytes as image/jpeg";
    AudioWithoutData, "audio-without-data", FROM_2025_03_26, "leaves data out of audio content";
    AudioBase64Url, "audio-base64-url", FROM_2025_03_26, "writes audio in the URL alphabet of base64";
    AudioMimeVideo, "audio-mime-video", FROM_2025_03_26, "gives audio the MIME type video/mp4";
    LinkWithoutName, "link-without-name", FROM_2025_06_18, "leaves the name out of a resource link";
    LinkSizeString, "link-size-string", FROM_2025_06_18, "writes the size of a resource link as a string";
    EmbeddedWithoutUri, "embedded-without-uri", FROM_2024_11_05, "leaves the uri out of an embedded resource";
    EmbeddedEmpty, "embedded-empty", FROM_2024_11_05, "leaves both text and blob out of an embedded resource";
    EmbeddedBlobNotBase64, "embedded-blob-not-base64", FROM_2024_11_05, "writes the blob of an embedded resource not in base64";
    EmbeddedRelativeUri, "embedded-relative-uri", FROM_2024_11_05, "gives an embedded resource a relative uri";
    EmbeddedUndeclared, "embedded-undeclared", FROM_2025_06_18, "embeds resources without the capability resources";
    AudienceString, "audience-string", FROM_2024_11_05, "writes the audience of annotated content as a string";
    AudienceRobot, "audience-robot", FROM_2024_11_05, "names \"robot\" as audience of annotated content";
    PriorityTwo, "priority-two", FROM_2024_11_05, "gives annotated content the priority 2";
    LastModifiedNumber, "last-modified-number", FROM_2025_06_18, "writes lastModified of annotated content as a number";
    LastModifiedWords, "last-modified-words", FROM_2025_06_18, "says \"yesterday\" as lastModified of annotated content";
    StructuredMismatch, "structured-mismatch", FROM_2025_06_18, "returns structured content that breaks the output schema";
    StructuredMissing, "structured-missing", FROM_2025_06_18, "leaves out the structured content that the schema promises";
    StructuredArray, "structured-array", OUTPUT_OBJECTS, "returns structured content that is an array";
    StructuredWithoutText, "structured-without-text", FROM_2025_06_18, "returns structured content without a copy as text";
    // progress, logging, safety
    ProgressString, "progress-string", EVERY, "writes the value of progress as a string";
    ProgressUnknownToken, "progress-unknown-token", FROM_2024_11_05, "reports progress on a token that nobody gave";
    ProgressGoesBack, "progress-goes-back", FROM_2024_11_05, "reports progress that decreases";
    ProgressAfterResult, "progress-after-result", FROM_2024_11_05, "reports progress after the result";
    LogLevelLoud, "log-level-loud", EVERY, "logs at the level \"loud\"";
    LogUndeclared, "log-undeclared", FROM_2024_11_05, "logs without declaring the capability logging";
    LogWithoutOptIn, "log-without-opt-in", MODERN, "logs for requests that did not ask for it";
    TerminalEscapeInResult, "terminal-escape-in-result", FROM_2024_11_05, "writes terminal escapes into a tool result";
    // resources
    ResourcesUndeclared, "resources-undeclared", FROM_2024_11_05, "serves resources without declaring the capability";
    ResourcesListRefused, "resources-list-refused", MODERN, "declares resources and answers resources/list with -32603";
    ResourceWithoutName, "resource-without-name", FROM_2024_11_05, "lists a resource without a name";
    ResourceRelativeUri, "resource-relative-uri", FROM_2024_11_05, "lists a resource under a relative uri";
    ResourceSchemeUnderscore, "resource-scheme-underscore", FROM_2025_06_18, "lists a resource whose URI scheme has an underscore";
    ResourceUriTwice, "resource-uri-twice", FROM_2024_11_05, "lists two resources under the same uri";
    ResourcePriorityTwo, "resource-priority-two", FROM_2024_11_05, "gives a listed resource the priority 2";
    TemplateWithoutName, "template-without-name", FROM_2024_11_05, "lists a resource template without a name";
    TemplateUnclosed, "template-unclosed", FROM_2024_11_05, "lists a resource template with an unclosed brace";
    ReadContentsObject, "read-contents-object", FROM_2024_11_05, "writes the contents of resources/read as one object";
    ReadEmpty, "read-empty", FROM_2024_11_05, "leaves both text and blob out of the contents of a resource";
    ReadBlobNotBase64, "read-blob-not-base64", FROM_2024_11_05, "writes the blob of a resource not in base64";
    ListedNotRead, "listed-not-read", FROM_2024_11_05, "refuses to read the first resource that it lists";
    MissingResourceCode, "missing-resource-code", FROM_2024_11_05, "answers resources/read of an unknown uri with -32603";
    MissingResourceEmpty, "missing-resource-empty", FROM_2024_11_05, "answers resources/read of an unknown uri with no contents";
    ReadCrash, "read-crash", FROM_2024_11_05, "ends when the uri of resources/read is no string";
    SubscribeNotEmpty, "subscribe-not-empty", SUBSCRIBING, "adds a member to the empty result of resources/subscribe";
    SubscribeUndeclared, "subscribe-undeclared", SUBSCRIBING, "serves resources/subscribe without declaring subscribe";
    UpdateWithoutUri, "update-without-uri", SUBSCRIBING, "leaves the uri out of notifications/resources/updated";
    UpdateUnasked, "update-unasked", HANDSHAKE, "reports updates of a resource that nobody subscribed to";
    OtherCursorServed, "other-cursor-served", FROM_2024_11_05, "serves the first page of resources and prompts for any cursor";
    OtherCacheScopeVaries, "other-cache-scope-varies", MODERN, "says another cacheScope on the second page of resources";
    // prompts
    PromptsUndeclared, "prompts-undeclared", FROM_2024_11_05, "serves prompts without declaring the capability";
    PromptsListRefused, "prompts-list-refused", MODERN, "declares prompts and answers prompts/list with -32603";
    PromptWithoutName, "prompt-without-name", FROM_2024_11_05, "lists a prompt without a name";
    PromptNameTwice, "prompt-name-twice", FROM_2024_11_05, "lists two prompts of the same name";
    PromptArgumentRequiredString, "prompt-argument-required-string", FROM_2024_11_05, "says required of a prompt's argument by a string";
    PromptContentArray, "prompt-content-array", FROM_2024_11_05, "writes the content of a prompt message as an array";
    PromptContentVideo, "prompt-content-video", FROM_2024_11_05, "returns prompt content of the type video";
    PromptImageDataUrl, "prompt-image-data-url", FROM_2024_11_05, "writes the image of a prompt as a data: URL";
    PromptAudioUrlAlphabet, "prompt-audio-url-alphabet", FROM_2025_03_26, "writes the audio of a prompt in the URL alphabet of base64";
    PromptEmbeddedWithoutMime, "prompt-embedded-without-mime", FROM_2024_11_05, "leaves mimeType out of a resource embedded in a prompt";
    UnknownPromptServed, "unknown-prompt-served", FROM_2024_11_05, "answers prompts/get of an unknown name with a prompt";
    MissingPromptArgumentServed, "missing-prompt-argument-served", FROM_2024_11_05, "serves prompts without a required argument";
    PromptArgumentTypesUnchecked, "prompt-argument-types-unchecked", FROM_2024_11_05, "serves prompts with arguments that are no strings";
    // completion
    CompletionsUndeclared, "completions-undeclared", FROM_2025_06_18, "completes arguments without declaring the capability";
    CompletionRefused, "completion-refused", MODERN, "declares completions and answers completion/complete with -32601";
    CompletionValuesString, "completion-values-string", FROM_2025_06_18, "writes the values of a completion as a string";
    CompletionTooMany, "completion-too-many", FROM_2025_06_18, "returns 101 values in one completion";
    CompletionUnknownServed, "completion-unknown-served", FROM_2025_06_18, "completes for a prompt that is not there";
    CompletionIncompleteServed, "completion-incomplete-served", FROM_2025_06_18, "completes without a reference or a value";
    CompletionContextRefused, "completion-context-refused", FROM_2025_06_18, "refuses completion/complete with a context";
    CompletionCrash, "completion-crash", FROM_2025_06_18, "ends on a value of more than 4,000 characters to complete";
    // more of the openings
    CapabilityCompletionsTrue, "capability-completions-true", FROM_2025_03_26, "declares the capability completions as true";
    CapabilityTasksTrue, "capability-tasks-true", ONLY_2025_11_25, "declares the capability tasks as true";
    ExtensionString, "extension-string", MODERN, "writes the settings of an extension as a string";
    ExtensionBare, "extension-bare", MODERN, "declares an extension without a prefix";
    EarlyPingRefused, "early-ping-refused", HANDSHAKE, "refuses a ping before notifications/initialized";
    FallbackOldest, "fallback-oldest", SUBSCRIBING, "offers its oldest version for an unknown one";
    InitializeModern, "initialize-modern", MODERN, "agrees to 2026-07-28 in a handshake";
    LateCancelCrash, "late-cancel-crash", FROM_2024_11_05, "ends when an answered request is cancelled";
    SetLevelNotEmpty, "set-level-not-empty", HANDSHAKE, "adds a member to the empty result of logging/setLevel";
    SetLevelAny, "set-level-any", HANDSHAKE, "takes any log level";
    LogLevelAny, "log-level-any", MODERN, "serves requests that ask for logs of an unknown level";
    ListByClient, "list-by-client", MODERN, "lists fewer tools for clients that it does not know by name";
    // subscriptions
    ListenRefused, "listen-refused", MODERN, "refuses subscriptions to what it declared";
    ListenOnlyOne, "listen-only-one", MODERN, "refuses a second subscription";
    ListenTellsMore, "listen-tells-more", MODERN, "tells subscribers of a list that they did not ask for";
    ListenUntagged, "listen-untagged", MODERN, "tells subscribers of changes without the id of the subscription";
    ListenCancelIgnored, "listen-cancel-ignored", MODERN, "goes on telling of changes once a subscription was cancelled";
    ListenEndsAbruptly, "listen-ends-abruptly", MODERN, "ends where a subscription has nothing to deliver";
    ListenResultUntagged, "listen-result-untagged", MODERN, "ends a subscription by a result without its id";
    ListenToolsSilent, "listen-tools-silent", MODERN, "does not tell subscribers of tools that changed";
    ListenListsSilent, "listen-lists-silent", MODERN, "does not tell subscribers of other lists that changed";
    ListenUpdatesSilent, "listen-updates-silent", MODERN, "does not tell subscribers of resources that changed";
    ListenFilterUnchecked, "listen-filter-unchecked", MODERN, "opens a subscription without a filter";
    ListenGrantsMore, "listen-grants-more", MODERN, "grants a subscription more than was asked for";
    ListenGrantString, "listen-grant-string", MODERN, "says by a string what a subscription is granted";
    ListenUpdateFirst, "listen-update-first", MODERN, "sends an update before it acknowledges the subscription";
    ChangeUnasked, "change-unasked", MODERN, "reports a changed list to a client that does not listen";
    // tasks of 2025-11-25
    TasksUndeclared, "tasks-undeclared", ONLY_2025_11_25, "runs calls as tasks without declaring the capability tasks";
    TaskMemberRefused, "task-member-refused", ONLY_2025_11_25, "declares no tasks and refuses calls with a task member";
    TasksListUndeclared, "tasks-list-undeclared", ONLY_2025_11_25, "serves tasks/list without declaring tasks.list";
    TasksListRefused, "tasks-list-refused", ONLY_2025_11_25, "declares tasks.list and answers tasks/list with -32601";
    ForbiddenTaskServed, "forbidden-task-served", ONLY_2025_11_25, "runs any tool as a task, whatever its taskSupport says";
    RequiredTaskPlain, "required-task-plain", ONLY_2025_11_25, "serves plain calls of a tool that is to be called as a task";
    TaskAnsweredPlainly, "task-answered-plainly", ONLY_2025_11_25, "answers calls that are to become tasks with their result";
    TaskCreatedWithoutTtl, "task-created-without-ttl", ONLY_2025_11_25, "leaves ttl out of a task that it creates";
    TaskStatusOdd, "task-status-odd", ONLY_2025_11_25, "says \"status\": \"running\" of every task that is asked for";
    TaskListedWithoutStatus, "task-listed-without-status", ONLY_2025_11_25, "lists a task without its status";
    TaskToldWithoutId, "task-told-without-id", ONLY_2025_11_25, "leaves taskId out of notifications/tasks/status";
    TaskIdReused, "task-id-reused", FROM_2025_11_25, "gives every task of a tool the same id";
    TaskIdCounted, "task-id-counted", FROM_2025_11_25, "numbers its tasks";
    TaskCreatedEnded, "task-created-ended", ONLY_2025_11_25, "creates tasks that have ended";
    TaskRevives, "task-revives", ONLY_2025_11_25, "says that a task works again after it has ended";
    TaskTimesOdd, "task-times-odd", ONLY_2025_11_25, "writes createdAt of a task in words";
    TaskGetWithoutTtl, "task-get-without-ttl", ONLY_2025_11_25, "leaves ttl out of the answer to tasks/get";
    TaskResultEarly, "task-result-early", ONLY_2025_11_25, "answers tasks/result while the task still works";
    TaskResultDiffers, "task-result-differs", ONLY_2025_11_25, "returns another result for a task than for a plain call";
    TaskResultBare, "task-result-bare", ONLY_2025_11_25, "leaves content out of the result of a task";
    TaskResultUnrelated, "task-result-unrelated", ONLY_2025_11_25, "leaves related-task out of the answer to tasks/result";
    RelatedTaskWins, "related-task-wins", ONLY_2025_11_25, "goes by related-task where taskId names another task";
    UnknownTaskCode, "unknown-task-code", FROM_2025_11_25, "answers for an unknown task with -32603";
    TasksCursorUnchecked, "tasks-cursor-unchecked", ONLY_2025_11_25, "answers tasks/list with any cursor with the first page";
    TaskUnlisted, "task-unlisted", ONLY_2025_11_25, "leaves the newest task out of the list";
    TaskCancelTwice, "task-cancel-twice", ONLY_2025_11_25, "cancels tasks that have ended";
    TaskCancelWorks, "task-cancel-works", ONLY_2025_11_25, "answers tasks/cancel and goes on working";
    TaskFailureCompletes, "task-failure-completes", ONLY_2025_11_25, "says that a task completed whose tool failed";
    TaskFailureMute, "task-failure-mute", ONLY_2025_11_25, "leaves statusMessage out of a task that failed";
    TaskInputUnrelated, "task-input-unrelated", ONLY_2025_11_25, "asks for the input of a task without naming the task";
    TaskInputStuck, "task-input-stuck", ONLY_2025_11_25, "leaves a task in input_required when it has its input";
    TaskProgressLate, "task-progress-late", ONLY_2025_11_25, "reports progress on a task that has ended";
    TaskAsksClient, "task-asks-client", ONLY_2025_11_25, "asks the client for a task that it never declared";
    TaskExtensionLegacy, "task-extension-legacy", ONLY_2025_11_25, "makes tasks of plain calls for clients with extensions";
    // the extension for tasks of 2026-07-28
    HandleUnasked, "handle-unasked", MODERN, "returns a task to a client that did not declare the extension";
    HandleForLegacy, "handle-for-legacy", MODERN, "returns a task to a client that declares the old capability";
    TaskParamHonoured, "task-param-honoured", MODERN, "makes a task of a call with a task member";
    TaskMethodsUngated, "task-methods-ungated", MODERN, "serves the methods of tasks to any client";
    TaskListenUngated, "task-listen-ungated", MODERN, "opens a subscription to tasks for any client";
    HandleComplete, "handle-complete", MODERN, "says \"resultType\": \"complete\" of a new task";
    TaskGetTyped, "task-get-typed", MODERN, "says \"resultType\": \"task\" in the answer to tasks/get";
    HandleLegacyNames, "handle-legacy-names", MODERN, "calls the lifetime of a new task ttl";
    HandleEarly, "handle-early", MODERN, "returns tasks that tasks/get does not know yet";
    HandleOnList, "handle-on-list", MODERN, "says \"resultType\": \"task\" in tools/list results";
    TaskCompletedBare, "task-completed-bare", MODERN, "leaves the result out of a task that completed";
    TaskErrorFailed, "task-error-failed", MODERN, "says that a task failed whose tool returned an error";
    TaskCancelShown, "task-cancel-shown", MODERN, "answers tasks/cancel with the status of the task";
    TaskResultServed, "task-result-served", MODERN, "still serves tasks/result";
    TaskCancelRefused, "task-cancel-refused", MODERN, "answers tasks/cancel with -32603";
    TaskUpdateRefused, "task-update-refused", MODERN, "answers tasks/update with -32603";
    TaskListenRefused, "task-listen-refused", MODERN, "refuses subscriptions to a task";
    LegacyTasksAdvertised, "legacy-tasks-advertised", MODERN, "declares the capability tasks beside the extension";
    TaskInputKeyReused, "task-input-key-reused", MODERN, "asks two questions in the course of a task by one key";
    TaskToldBare, "task-told-bare", MODERN, "leaves the status out of notifications/tasks";
    // cancellation by the server
    CancelsForeign, "cancels-foreign", HANDSHAKE, "cancels a request that it never sent";
    CancelsModern, "cancels-modern", MODERN, "cancels a call that it serves";
    CancelsByObject, "cancels-by-object", FROM_2024_11_05, "names the request that it cancels by an object";
    CancelledServed, "cancelled-served", FROM_2025_11_25, "answers requests after they were cancelled";
    // what is left of every area
    BatchAllOrNothing, "batch-all-or-nothing", ONLY_2025_03_26, "refuses a whole batch for one invalid member, and ignores an empty one";
    InterimCaching, "interim-caching", MODERN, "puts caching hints into a result that asks for a retry";
    InternalErrorCode, "internal-error-code", FROM_2024_11_05, "reports an internal error of resources/read under the code 0";
    NewerKeywordsUnchecked, "newer-keywords-unchecked", FROM_2025_11_25, "accepts arguments that prefixItems forbids";
    VersionForgotten, "version-forgotten", HANDSHAKE, "offers another version to clients that declare nothing";
    ForeignNotification, "foreign-notification", HANDSHAKE, "sends a notification that came with 2026-07-28";
    InterimEarly, "interim-early", HANDSHAKE, "answers calls of the tool add by an interim result of 2026-07-28";
    LogSecret, "log-secret", FROM_2024_11_05, "writes a bearer token into its log messages";
    LogBurst, "log-burst", FROM_2024_11_05, "writes 400 log messages at once";
    LogThresholdIgnored, "log-threshold-ignored", FROM_2024_11_05, "logs everything, whatever the level asked for";
    LogOnSubscription, "log-on-subscription", MODERN, "marks log messages as those of a subscription";
    ProgressOnSubscription, "progress-on-subscription", MODERN, "marks progress as that of a subscription";
    ProgressBurst, "progress-burst", FROM_2024_11_05, "reports progress 400 times at once";
    ProgressMessageEmpty, "progress-message-empty", FROM_2025_03_26, "reports progress with an empty message";
    TraceparentShort, "traceparent-short", MODERN, "writes a traceparent that lacks its trace id";
    PingBurst, "ping-burst", HANDSHAKE, "pings the client sixty times in a row";
    ListedPromptRefused, "listed-prompt-refused", FROM_2024_11_05, "refuses a prompt that it lists";
    PromptTemplateExpanded, "prompt-template-expanded", FROM_2024_11_05, "expands template expressions in the arguments of prompts";
    PathTraversal, "path-traversal", FROM_2024_11_05, "follows .. in the uri of a resource out of what it offers";
    ResourcesPerConnection, "resources-per-connection", MODERN, "lists another extra resource on each connection";
    PromptsPerConnection, "prompts-per-connection", MODERN, "lists another extra prompt on each connection";
    InitializeErrorBare, "initialize-error-bare", MODERN, "refuses a handshake in 2026-07-28 without naming a version";
    CallNeedsList, "call-needs-list", MODERN, "refuses calls until tools/list was called on the connection";
    UnusableVersionListed, "unusable-version-listed", MODERN, "lists 2025-11-25 as supported and refuses a handshake in it";
    MarkupInDescription, "markup-in-description", FROM_2024_11_05, "lists a tool with a script in its description";
    // elicitation
    ElicitFormNested, "elicit-form-nested", FROM_2025_06_18, "asks for a field that is an object";
    ElicitFormLink, "elicit-form-link", FROM_2025_11_25, "puts a link into the description of a field";
    ElicitFormPassword, "elicit-form-password", FROM_2025_06_18, "asks for a password by a form";
    ElicitFormUndeclared, "elicit-form-undeclared", FROM_2025_11_25, "asks by a form a client that declared pages only";
    ElicitMessageMissing, "elicit-message-missing", FROM_2025_11_25, "asks by a form without a message";
    ElicitUrlUndeclared, "elicit-url-undeclared", FROM_2025_11_25, "sends a client to a page that declared forms only";
    ElicitUrlBare, "elicit-url-bare", FROM_2025_11_25, "leaves the url out when it sends the user to a page";
    ElicitUrlRelative, "elicit-url-relative", FROM_2025_11_25, "sends the user to a relative url";
    ElicitUrlEmail, "elicit-url-email", FROM_2025_11_25, "sends the user to a url with an e-mail address";
    ElicitRequiredBare, "elicit-required-bare", ONLY_2025_11_25, "answers with -32042 without elicitations";
    ElicitCompleteStranger, "elicit-complete-stranger", ONLY_2025_11_25, "tells that an unknown elicitation is complete";
    ElicitRefusalHangs, "elicit-refusal-hangs", FROM_2025_06_18, "never answers a call when the user declines";
    ElicitContentUnchecked, "elicit-content-unchecked", FROM_2025_06_18, "takes content that does not fit its form";
    // sampling
    SamplingContext, "sampling-context", FROM_2025_11_25, "asks a model for context that the client did not declare";
    SamplingEndless, "sampling-endless", FROM_2025_11_25, "lets a model use tools without end";
    SamplingRoleSystem, "sampling-role-system", MODERN, "sends a model a message of the role system";
    SamplingWithoutMaxTokens, "sampling-without-max-tokens", FROM_2024_11_05, "leaves maxTokens out when it asks a model";
    SamplingRefusalHangs, "sampling-refusal-hangs", HANDSHAKE, "never answers a call when sampling is refused";
    SamplingUnbalanced, "sampling-unbalanced", FROM_2025_11_25, "leaves out the result of a tool that a model used";
    SamplingResultsMixed, "sampling-results-mixed", FROM_2025_11_25, "mixes text into a message of tool results";
    SamplingToolsUndeclared, "sampling-tools-undeclared", FROM_2025_11_25, "offers tools to a model of a client that has none";
    SamplingContentUnchecked, "sampling-content-unchecked", FROM_2024_11_05, "takes an answer of a model without content";
    // roots
    RootsChangeCrash, "roots-change-crash", HANDSHAKE, "ends when the client's roots change";
    RootsParamsArray, "roots-params-array", FROM_2024_11_05, "asks for roots with an array as params";
    RootsUnavailableHangs, "roots-unavailable-hangs", HANDSHAKE, "never answers a call when the client has no roots to tell";
    RootsMissingHangs, "roots-missing-hangs", FROM_2024_11_05, "never answers a call when the client's root is not there";
    // input that results ask for
    MrtrWaits, "mrtr-waits", MODERN, "answers nothing before it has the input that it asked for";
    MrtrUndeclared, "mrtr-undeclared", MODERN, "asks for input that the client did not declare";
    MrtrEmpty, "mrtr-empty", MODERN, "asks for input without saying which";
    MrtrKeyTwice, "mrtr-key-twice", MODERN, "asks for two inputs under the same key";
    MrtrMalformedServed, "mrtr-malformed-served", MODERN, "serves calls whose input is malformed";
    MrtrMissingRefused, "mrtr-missing-refused", MODERN, "refuses a second call that lacks the input";
    MrtrOnCompletion, "mrtr-on-completion", MODERN, "asks for input when it is to complete an argument";
    MrtrForeignKind, "mrtr-foreign-kind", MODERN, "asks for input by tools/list";
    MrtrStateNumber, "mrtr-state-number", MODERN, "writes requestState as a number";
    MrtrStateUnbound, "mrtr-state-unbound", MODERN, "takes the requestState of a call for another call";
    MrtrStateUnchecked, "mrtr-state-unchecked", MODERN, "takes an altered requestState";
    MrtrStateCrash, "mrtr-state-crash", MODERN, "ends on a requestState that is not ASCII";
    MrtrRetryRefused, "mrtr-retry-refused", MODERN, "refuses the requestState that it issued itself";
    MrtrSurplusRefused, "mrtr-surplus-refused", MODERN, "refuses input that it did not ask for";
    MissingCapabilityCode, "missing-capability-code", MODERN, "answers with -32603 where a client capability is missing";
    MissingCapabilityList, "missing-capability-list", MODERN, "lists missing client capabilities in an array";
    // bad servers: what makes judging itself hard
    Floods, "floods", EVERY, "writes notifications without end once it was opened";
    HugeLine, "huge-line", EVERY, "answers tools/list with a message of 100 MiB";
    DeepNesting, "deep-nesting", EVERY, "answers tools/list with a message nested 100,000 deep";
    NoNewline, "no-newline", EVERY, "writes 8 MiB without a newline before anything else";
    NeverAnswers, "never-answers", EVERY, "reads everything and answers nothing";
    AnswersGarbage, "answers-garbage", EVERY, "answers every request with a line that is not JSON";
    AnswersEmptyObject, "answers-empty-object", EVERY, "answers every request with the result {}";
    AnswersSameError, "answers-same-error", EVERY, "answers every request with the same error";
    IdsWrongType, "ids-wrong-type", EVERY, "returns every integer id as a string and every other as a number";
    SlowStart, "slow-start", EVERY, "waits half a second before its first byte";
    DiesOnCall, "dies-on-call", EVERY, "ends at the first tools/call";
    StderrNoise, "stderr-noise", EVERY, "conforms, but writes a great deal to stderr";
    WithoutTools, "without-tools", EVERY, "conforms, but offers nothing at all";
    WithoutTasks, "without-tasks", FROM_2025_11_25, "conforms, but offers no tasks";
    EmptyCursor, "empty-cursor", MODERN, "conforms, but issues the empty string as a cursor";
    Awkward, "awkward", EVERY, "conforms, but fails, refuses and wants more wherever it may";
    ChoosyTools, "choosy-tools", EVERY, "conforms, but its tools fail unless they are given a word";
    HostileText, "hostile-text", EVERY, "conforms, but fills every text with markup and control characters";
}

impl Fault {
    /// Every fault, in the order of the tables: those of every transport, those of HTTP, and the hidden ones.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Fault>> = LazyLock::new(|| {
            let http = HttpFault::ALL.iter().copied().map(Fault::Http);
            Fault::PLAIN.iter().copied().chain(http).chain(EvaluationFault::all().map(Fault::Evaluation)).collect()
        });
        &ALL
    }

    /// Whether it shows over HTTP only.
    #[must_use]
    pub const fn is_of_http(self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Whether it shows in a protected server only.
    #[must_use]
    pub fn is_of_protection(self) -> bool {
        matches!(self, Self::Http(fault) if fault.is_of_protection())
    }

    /// Whether no case can see it, since only a fuzzer comes across what triggers it.
    #[must_use]
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Evaluation(_))
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
            .filter(|(likeness, _)| *likeness > 0.5)
            .max_by(|(left, _), (right, _)| left.total_cmp(right))
            .map(|(_, fault)| fault);
        Err(UnknownFault { name: name.to_owned(), nearest })
    }
}

/// A fault was asked for by a name that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no fault is named `{name}`{}", suggestion(*nearest))]
pub struct UnknownFault {
    /// The name as it was given.
    pub name: String,
    /// The fault of the most similar name, where one is similar at all.
    pub nearest: Option<Fault>,
}

fn suggestion(nearest: Option<Fault>) -> String {
    nearest.map_or_else(String::new, |fault| format!("; did you mean `{fault}`?"))
}

/// The faults that are switched on together; the empty set is the conforming server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSet(BTreeSet<Fault>);

impl FaultSet {
    /// The empty set: a server that conforms.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether the fault is switched on.
    #[must_use]
    pub fn contains(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// The faults of the set, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = Fault> {
        self.0.iter().copied()
    }

    /// Whether the fault is switched on and has an effect in the revision in force.
    pub(super) fn shows(&self, fault: Fault, revision: Revision) -> bool {
        self.contains(fault) && fault.revisions().contains(&revision)
    }
}

impl FromIterator<Fault> for FaultSet {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self(faults.into_iter().collect())
    }
}

impl From<Fault> for FaultSet {
    fn from(fault: Fault) -> Self {
        Self(BTreeSet::from([fault]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_kebab_case_unique_and_found() {
        let mut seen = BTreeSet::new();
        for fault in Fault::all() {
            let name = fault.name();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert!(seen.insert(name), "{name} stands twice");
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
            assert!(seen.insert(text), "{fault}: {text} stands twice");
        }
    }

    #[test]
    fn revisions_are_listed_once_and_in_order() {
        for fault in Fault::all() {
            assert!(!fault.revisions().is_empty(), "{fault}");
            assert!(fault.revisions().is_sorted_by(|left, right| left < right), "{fault}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_one() {
        let error = "id-as-sting".parse::<Fault>().expect_err("the name is wrong");
        assert_eq!(error.nearest, Some(Fault::IdAsString));
        assert_eq!(error.to_string(), "no fault is named `id-as-sting`; did you mean `id-as-string`?");
        let error = "zzzzzz".parse::<Fault>().expect_err("the name is wrong");
        assert_eq!(error.to_string(), "no fault is named `zzzzzz`");
    }
}
