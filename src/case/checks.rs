//! The checks that a rule of a case can name where a JSON Schema cannot express the rule.
//!
//! A check is a name, or one of the rules with parameters ([`ConnectionRule`]). Each name has one sentence that
//! states its rule. How a check is carried out is decided in [`crate::check`], which matches on these types
//! exhaustively. A new name is one line here, and its entry in `cases/schema.json`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::lazy_schema::LazySchema;
use super::path_pattern::PathPattern;
#[cfg(test)]
use super::schema_types as types;

/// A name that no check has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{name}`")]
pub struct UnknownName {
    /// What was expected: a check, an oracle or a comparison.
    pub kind: &'static str,
    /// The name.
    pub name: String,
}

macro_rules! names {
    ($(#[$meta:meta])* $kind:literal $type:ident { $($variant:ident = $name:literal: $rule:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
        pub enum $type {
            $(#[doc = $rule] #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in case files.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The rule in one sentence.
            #[must_use]
            pub fn rule(self) -> &'static str {
                match self {
                    $(Self::$variant => $rule,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let unknown = || UnknownName { kind: $kind, name: name.to_owned() };
                Self::ALL.iter().copied().find(|known| known.as_str() == name).ok_or_else(unknown)
            }
        }
    };
}

names! {
    /// A check by name of each value that a passive case selects.
    "check" ValueCheck {
        JsonSchema = "json-schema": "The value is a valid JSON Schema of the dialect that it declares, or of the default one.",
        JsonSchemaInDeclaredDialect = "json-schema-in-declared-dialect": "A JSON Schema that is valid in some dialect is valid in the one that it declares.",
        JsonSchemaInAnyDialect = "json-schema-in-any-dialect": "The value is a valid JSON Schema of at least one dialect.",
        PatternsValid = "patterns-valid": "Every `pattern` in the schema is a regular expression of ECMA-262.",
        ReferencesResolve = "references-resolve": "Every reference within the schema points to a schema.",
        NoRemoteReference = "no-remote-reference": "No reference in the schema points to the network.",
        HeaderNamesUnique = "header-names-unique": "No two `x-mcp-header` names of a schema are the same when letter case is ignored.",
        StructuredContentConforms = "structured-content-conforms": "`structuredContent` conforms to the tool's `outputSchema`.",
        StructuredContentPresent = "structured-content-present": "A successful result of a tool with an `outputSchema` has `structuredContent`.",
        StructuredContentInText = "structured-content-in-text": "A text item of the result contains its `structuredContent` as JSON.",
        ImageMatchesMimeType = "image-matches-mime-type": "The data of an image is of the type that `mimeType` names.",
        ClientRequestDeclared = "client-request-declared": "What the server requests from the client, in kind and mode, was declared by the client.",
        ToolUsesHaveResults = "tool-uses-have-results": "In the messages of a sampling request, every tool use is followed by its result.",
        ProtocolVersion = "protocol-version": "The string names a version of the protocol.",
        ToolKnown = "tool-known": "A call to a listed tool is not answered with -32601.",
    }
}

names! {
    /// A check by name of a connection as a whole.
    "check" ConnectionCheck {
        AnsweredOnce = "answered-once": "No request has two responses, and every response belongs to a request.",
        NoResponseToNotification = "no-response-to-notification": "The server sends no response to a notification.",
        NoResponseAfterCancellation = "no-response-after-cancellation": "The server sends no response to a request that was cancelled while it was open.",
        CancellationNotAnswered = "cancellation-not-answered": "The server sends no error in response to a call because it was cancelled.",
        CancelledRequestStops = "cancelled-request-stops": "The server does not go on with a request for more than a second after it was cancelled, and answer it then.",
        ServerRequestIdsValid = "server-request-ids-valid": "The ids of the server's requests are strings or integers and are never used twice.",
        CursorsAdvance = "cursors-advance": "No cursor of the tool list repeats while a client paginates.",
        PagesDoNotOverlap = "pages-do-not-overlap": "No page of the tool list starts with the last tool of the previous page.",
        ProgressIncreases = "progress-increases": "The progress of a token increases with each notification.",
        ProgressEndsWithResponse = "progress-ends-with-response": "No progress is reported on a request that has been answered.",
        LogsOnlyIfRequested = "logs-only-if-requested": "Log messages are sent only while a request is open that asks for them.",
        ResourceUpdatesOnlyIfSubscribed = "resource-updates-only-if-subscribed": "Resource updates are sent only while the client has a subscription.",
        CompletedElicitationsKnown = "completed-elicitations-known": "Only elicitations that the server requested before are reported as complete.",
        InputRequestKeysUnique = "input-request-keys-unique": "No key of `inputRequests` is duplicated in the JSON text.",
        PromptsServed = "prompts-served": "A listed prompt without required arguments is returned by `prompts/get`.",
        KeepsAnswering = "keeps-answering": "The server goes on answering valid requests while the connection is open.",
        ServerSurvivesCalls = "server-survives-calls": "The server does not exit while a valid call is open.",
        ExitsOnSigterm = "exits-on-sigterm": "A process that keeps running after its input was closed exits on SIGTERM.",
        LeavesNoProcess = "leaves-no-process": "A process that has exited leaves none running that it started, but for those that left its group.",
        StderrIsUtf8 = "stderr-is-utf8": "What the server writes to standard error is UTF-8.",
        InitializeAnswered = "initialize-answered": "The first `initialize` of a connection is answered.",
        VersionAgreedAgain = "version-agreed-again": "A version that the server agreed to once is agreed to again.",
        VersionFallbackNewest = "version-fallback-newest": "The version offered instead of an unknown one is not older than a version that the server supports.",
        ListedVersionServed = "listed-version-served": "A version that `server/discover` lists is not rejected as unsupported.",
        UnknownVersionNotAccepted = "unknown-version-not-accepted": "The server does not agree to a version that does not exist.",
        NoRequestsBeforeInitialized = "no-requests-before-initialized": "The server sends no request but ping before `notifications/initialized`.",
        PingAnsweredBeforeInitialized = "ping-answered-before-initialized": "A ping before `notifications/initialized` is answered with a result.",
        SubscriptionAccepted = "subscription-accepted": "A subscription to something that the server declares is acknowledged.",
        SubscriptionAcknowledgedFirst = "subscription-acknowledged-first": "The first message of a subscription acknowledges it, with the id of its request.",
        SubscriptionGrantsOnlyRequested = "subscription-grants-only-requested": "A subscription is granted nothing that it did not request.",
        SubscriptionIdInNotifications = "subscription-id-in-notifications": "Notifications of a subscription carry the id of its request.",
        SubscriptionDeliversOnlyRequested = "subscription-delivers-only-requested": "A subscription delivers nothing that it did not request.",
        SubscriptionEndsWhenCancelled = "subscription-ends-when-cancelled": "A cancelled subscription delivers nothing more.",
        ResourceUpdatesAnnounced = "resource-updates-announced": "A change of a resource is announced to clients that subscribed to it.",
        TaskIdsUnguessable = "task-ids-unguessable": "Task ids are long enough to be hard to guess.",
        TaskStatusFinal = "task-status-final": "The status of a task that has ended does not change.",
        TaskTimestampsConsistent = "task-timestamps-consistent": "The timestamps of a task are valid and consistent with each other.",
        TaskResultAfterEnd = "task-result-after-end": "`tasks/result` is answered only after the task has ended.",
        TaskResultNamesTask = "task-result-names-task": "The result of `tasks/result` names its task in `_meta`.",
        TasksListed = "tasks-listed": "A task that `tasks/get` returns is in the task list.",
        TaskFailureReported = "task-failure-reported": "The task of a failed tool has the status `failed` and a `statusMessage`.",
        TaskInputNamesTask = "task-input-names-task": "A request that the server makes for a task names the task in `_meta`.",
        TaskProgressEndsWithTask = "task-progress-ends-with-task": "No progress is reported on a task that has ended.",
        TaskOnlyFromToolCall = "task-only-from-tool-call": "Only a result of `tools/call` creates a task.",
        TaskInputKeysNotReused = "task-input-keys-not-reused": "A key in the `inputRequests` of a task always means the same request.",
        ServerCancelsOnlyOwnRequests = "server-cancels-only-own-requests": "The server cancels only its own requests, while they are open.",
        TimedOutRequestsCancelled = "timed-out-requests-cancelled": "A request of the server that the client leaves unanswered is cancelled when the server stops waiting for it.",
        ServerCancelsNoTaskRequest = "server-cancels-no-task-request": "The server does not use `notifications/cancelled` for a request that asks for a task.",
        ServerCancelsOnlySubscriptions = "server-cancels-only-subscriptions": "The server cancels nothing but subscriptions.",
        MessagesOnOneStream = "messages-on-one-stream": "No message is sent on two streams.",
        StreamsCarryResponses = "streams-carry-responses": "No stream of a request ends without the response, unless the request was cancelled or the stream can be resumed.",
    }
}

/// A check with parameters of a connection as a whole.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionRule {
    /// No two strings at a path are the same. Values of other types are ignored.
    Unique(Unique),
    /// All pages of a list have the same value at a path.
    SameAcrossPages(SameAcrossPages),
    /// The server sends no more than a number of messages of a kind within a second.
    AtMostPerSecond(AtMostPerSecond),
    /// The server sends messages of a kind only if it declares a capability.
    RequiresCapability(RequiresCapability),
    /// The server sends notifications of a kind only after a certain request of the client.
    OnlyAfterRequest(OnlyAfterRequest),
    /// The server announces changes of its lists, if it declares `listChanged` for them. A change is detected when
    /// two complete lists on one connection differ.
    ListChangesAnnounced(ListChangesAnnounced),
    /// Responses with this member have the id of their request, in value and JSON type.
    IdOfRequest(ResponseMember),
}

/// Values that are unique, and among which others.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "within", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Unique {
    /// Among the items of a list, from its first page to its last.
    List {
        /// The methods that return the lists, such as `tools/list`. Each list is checked by itself.
        methods: Vec<String>,
        /// The values, as a path into the result of one page, such as `/tools/*/name`. The item is the value one
        /// level above.
        #[cfg_attr(test, schemars(with = "types::PathText"))]
        path: PathPattern,
        /// The repeated items that are no violation.
        except: RepeatedItem,
    },
    /// Among all results of the methods on the connection. A single value proves nothing.
    Connection {
        /// The methods of the requests, such as `tools/call`.
        methods: Vec<String>,
        /// The values, as a path into the result.
        #[cfg_attr(test, schemars(with = "types::PathText"))]
        path: PathPattern,
    },
    /// Among all events of the SSE streams of an HTTP session, without streams that resume another. Empty strings
    /// are ignored.
    Streams {
        /// The values, as a path into an event (`id`, `event`, `data`, `message`).
        #[cfg_attr(test, schemars(with = "types::PathText"))]
        path: PathPattern,
    },
}

/// An item that is repeated in a list without being a violation of uniqueness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedItem {
    /// An identical item: a list that changes while a client paginates can return an item twice.
    Identical,
    /// An identical item that ends one page and starts the next: `pages-do-not-overlap` reports it.
    PageOverlap,
}

/// A value that is the same on all pages of a list.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SameAcrossPages {
    /// The methods that return the lists, such as `tools/list`. Each list is checked by itself.
    pub methods: Vec<String>,
    /// The value, as a path into the result of one page. A missing value is a value of its own.
    #[cfg_attr(test, schemars(with = "types::PathText"))]
    pub path: PathPattern,
}

/// A limit for how many messages the server sends within any period of one second.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AtMostPerSecond {
    /// The greatest number of messages within a second that is no violation.
    pub count: usize,
    /// The method of the notification or server request, such as `notifications/message`.
    pub method: String,
    /// A path into the message: messages with different values there are counted separately, those without a value
    /// not at all.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::PathText>"))]
    pub per: Option<PathPattern>,
    /// The verdict about a connection without such messages.
    #[serde(default)]
    pub absence: Absence,
}

/// What it means that the server sends none of the messages that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// Nothing: the connection is not judged.
    #[default]
    Skip,
    /// The connection conforms, if the server answered any request.
    Pass,
}

/// Messages that the server sends only if it declares a capability. A connection whose server never answered
/// with its capabilities is not judged.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequiresCapability {
    /// The capability, such as `tools`, or a flag of one, such as `tools.listChanged`. A flag that is false or null
    /// does not count as declared.
    pub capability: String,
    /// The kind of message.
    pub kind: CapabilityUse,
    /// The methods of the notifications, or of the requests that the results belong to.
    pub methods: Vec<String>,
    /// A JSON Schema that the notification or the result has to conform to.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub matching: Option<LazySchema>,
}

/// The kind of message that uses a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityUse {
    /// A notification of the server.
    Notification,
    /// The `result` of a response.
    Result,
}

/// Notifications that the server sends only after a certain request.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OnlyAfterRequest {
    /// The methods of the notifications.
    pub notifications: Vec<String>,
    /// The method of the request; by default any.
    #[serde(default)]
    pub request: Option<String>,
    /// Values that the notification and the request have in common. A notification without the value is not judged.
    #[serde(default)]
    pub equal: Option<EqualValues>,
    /// The verdict about a connection with neither such notifications nor such a request.
    #[serde(default)]
    pub absence: Absence,
}

/// A value of a notification that equals a value of a request, in value and JSON type.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EqualValues {
    /// A path into the notification.
    #[cfg_attr(test, schemars(with = "types::PathText"))]
    pub notification: PathPattern,
    /// A path into the request.
    #[cfg_attr(test, schemars(with = "types::PathText"))]
    pub request: PathPattern,
}

/// Lists whose changes the server announces.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ListChangesAnnounced {
    /// The lists.
    pub lists: Vec<ListKind>,
    /// The clients to which a change is announced.
    pub to: Audience,
}

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ListKind {
    /// The tools, by name.
    Tools,
    /// The prompts, by name.
    Prompts,
    /// The resources, by URI.
    Resources,
}

/// The clients to which a change of a list is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// Every client.
    AllClients,
    /// Clients with an open subscription (`subscriptions/listen`) that requests it.
    Subscribers,
}

/// The member that makes a response a result or an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResponseMember {
    /// A response with `result`.
    Result,
    /// A response with `error`.
    Error,
}

impl ConnectionRule {
    /// The names of all rules, in the order of their declaration.
    pub const NAMES: &'static [&'static str] = &[
        "unique",
        "same-across-pages",
        "at-most-per-second",
        "requires-capability",
        "only-after-request",
        "list-changes-announced",
        "id-of-request",
    ];
}

names! {
    /// A property that the fuzzer checks in the responses to its calls.
    "oracle" Oracle {
        Crash = "crash": "No call makes the server exit.",
        Hang = "hang": "Every call gets a response.",
        MalformedResponse = "malformed-response": "Every call gets exactly one well-formed response, with the id of the call.",
        ResponsesSwapped = "responses-swapped": "Each of several concurrent calls gets its own response.",
        StdoutNoise = "stdout-noise": "The server writes nothing but messages to standard output, whatever is called.",
        InvalidAccepted = "invalid-accepted": "Arguments that the inputSchema does not allow are rejected.",
        ValidRejected = "valid-rejected": "Arguments that the inputSchema allows are not rejected as invalid.",
        ErrorClass = "error-class": "The code of an error matches its cause.",
        InternalError = "internal-error": "No arguments cause an internal error.",
        Leak = "leak": "Errors contain no stack traces, secrets, paths of the server's machine or errors of its runtime.",
        ResultShape = "result-shape": "Every result has the shape that the revision requires.",
        ResultRules = "result-rules": "Results, and what the server sends before them, keep the rules that passive cases check, whatever the arguments.",
        OutputSchema = "output-schema": "Structured results conform to the outputSchema, whatever the arguments.",
        ReadOnly = "read-only": "A tool with readOnlyHint changes nothing that the client can observe.",
        Idempotent = "idempotent": "A tool with idempotentHint changes nothing more when it is called again.",
        Degradation = "degradation": "A call that succeeds before many others succeeds after them.",
        Memory = "memory": "Memory does not grow with every call.",
        LatencyGrowth = "latency": "Response times do not increase with every call.",
        Descriptors = "descriptors": "The numbers of open files and child processes do not grow with every call.",
        SchemaContradiction = "schema-contradiction": "Some arguments satisfy the inputSchema.",
        SchemaWithoutEffect = "schema-without-effect": "Every keyword in the inputSchema has an effect.",
        ReadBack = "read-back": "What was written to an object is what is read from it.",
        CreatedUnlisted = "created-unlisted": "A list has the objects that were created.",
        DeletedServed = "deleted-served": "An object that was deleted is no longer served.",
        DeletedListed = "deleted-listed": "A list has no objects that were deleted.",
        OtherObject = "other-object": "Changing or deleting an object leaves the others as they are.",
        RepeatedRead = "repeated-read": "Reading an object does not change what the next read returns.",
    }
}

names! {
    /// A comparison of the responses to several steps.
    "comparison" Comparison {
        Same = "same": "The values are the same at every step.",
        SameSet = "same-set": "The values are the same at every step, in any order.",
        SameOrder = "same-order": "The values that are the same at every step are in the same order.",
        SameSetBetween = "same-set-between": "If the first and the last step have the same values, the steps between them have them too.",
        SameSetAsShared = "same-set-as-shared": "The values are those that discovery found on the shared connection.",
        Differ = "differ": "The values of two steps are not the same.",
        Disjoint = "disjoint": "No value occurs at two steps.",
        NoServerRequests = "no-server-requests": "From the first step to the last response the server sends no request but ping.",
        ClientRequestsDeclared = "client-requests-declared": "Meanwhile the server requests from the client only what the client declared.",
        LogLevelRespected = "log-level-respected": "What the server logs at the first step it does not log at the second, which asks for emergencies only.",
        QuietBetween = "quiet-between": "Between two steps, while the client waits, no kind of notification comes more often than once a second.",
        ChangesAnnouncedOnly = "changes-announced-only": "After some of the requests for a list the server announces no change of it, if their results are the same.",
        FewServerRequests = "few-server-requests": "The server sends the client at most twenty requests.",
    }
}

impl Oracle {
    /// Whether only calls in sequences show a violation.
    #[must_use]
    pub fn needs_sequence(self) -> bool {
        matches!(
            self,
            Self::ReadBack
                | Self::CreatedUnlisted
                | Self::DeletedServed
                | Self::DeletedListed
                | Self::OtherObject
                | Self::RepeatedRead
        )
    }
}

/// A check that a rule names, or a rule with parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Check {
    /// It checks one value.
    Value(ValueCheck),
    /// It checks a connection.
    Connection(ConnectionCheck),
    /// It checks a connection, with parameters.
    Rule(ConnectionRule),
}

impl Check {
    /// The names of all checks without parameters, of a connection or of a value.
    pub(crate) fn names(of_connection: bool) -> impl Iterator<Item = &'static str> {
        let values = ValueCheck::ALL.iter().filter(move |_| !of_connection).map(|check| check.as_str());
        values.chain(ConnectionCheck::ALL.iter().filter(move |_| of_connection).map(|check| check.as_str()))
    }

    /// Whether it checks a connection as a whole, not one value.
    #[must_use]
    pub(crate) fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Value(_))
    }
}

impl FromStr for Check {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        name.parse().map(Self::Value).or_else(|_| name.parse().map(Self::Connection))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_name_is_parsed_to_the_check_that_has_it() {
        for of_connection in [false, true] {
            for name in Check::names(of_connection) {
                let check: Check = name.parse().expect("it is a check");
                assert_eq!(check.is_of_connection(), of_connection, "{name}");
            }
        }
        for check in ValueCheck::ALL {
            assert_eq!(check.as_str().parse(), Ok(*check));
        }
        for check in ConnectionCheck::ALL {
            assert_eq!(check.as_str().parse(), Ok(*check));
        }
        for comparison in Comparison::ALL {
            assert_eq!(comparison.as_str().parse(), Ok(*comparison));
        }
        let error = "json-schemas".parse::<Check>().expect_err("no check");
        assert_eq!(error.to_string(), "unknown check `json-schemas`");
    }

    #[test]
    fn no_two_checks_share_a_name() {
        let names = || Check::names(false).chain(Check::names(true)).chain(ConnectionRule::NAMES.iter().copied());
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
    }

    #[test]
    fn the_names_of_the_rules_are_those_that_are_parsed() {
        let error = serde_json::from_value::<ConnectionRule>(json!({"none": {}})).expect_err("no rule").to_string();
        let (_, known) = error.split_once("expected one of").expect("it lists the rules");
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        assert_eq!(known, ConnectionRule::NAMES);
    }

    #[test]
    fn a_check_is_a_name_or_a_rule_with_parameters() {
        let parse = |check: Value| serde_json::from_value::<Check>(check);
        assert!(matches!(parse(json!("tool-known")), Ok(Check::Value(ValueCheck::ToolKnown))));
        assert!(matches!(parse(json!("tasks-listed")), Ok(Check::Connection(ConnectionCheck::TasksListed))));
        let streams = parse(json!({"unique": {"within": "streams", "path": "/id"}})).expect("a rule");
        assert!(streams.is_of_connection());
        for wrong in [
            json!("unique"),
            json!({"unique": {"within": "streams", "path": "/id", "methods": ["tools/list"]}}),
            json!({"unique": {"within": "list", "path": "/tools/*/name"}}),
            json!({"id-of-request": "response"}),
            json!({"id-of-request": "result", "unique": {"within": "streams", "path": "/id"}}),
        ] {
            assert!(parse(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
