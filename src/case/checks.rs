//! The closed lists of checks that a case may name where a JSON Schema cannot say what holds.
//!
//! Owns the names and what each asks for, in a sentence. What a check does stands in the judge, which
//! matches on these types exhaustively. A new check is one line here (and its word in
//! `cases/schema.json`, which a test asks for).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A name that is no check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{name}`")]
pub struct UnknownName {
    /// What the name was meant to be.
    pub kind: &'static str,
    /// The name.
    pub name: String,
}

macro_rules! names {
    ($(#[$meta:meta])* $kind:literal $type:ident { $($variant:ident = $name:literal: $asks:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type {
            $(#[doc = $asks] $variant,)+
        }

        impl $type {
            /// Every one, in the order in which they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in case files.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it asks for, in a sentence.
            #[must_use]
            pub fn asks(self) -> &'static str {
                match self {
                    $(Self::$variant => $asks,)+
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

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

names! {
    /// A check of one value that a case watches.
    "check" ValueCheck {
        JsonSchema = "json-schema": "The value is a valid JSON Schema of the dialect that it names.",
        StructuredConforms = "structured-conforms": "`structuredContent` fits the tool's `outputSchema`.",
        StructuredPresent = "structured-present": "A tool with an `outputSchema` returns `structuredContent`.",
        StructuredText = "structured-text": "Structured content also stands in a text item, as JSON.",
        JsonSchemaInItsDialect = "json-schema-in-its-dialect": "What is valid in some dialect of JSON Schema is so in the one that it names.",
        JsonSchemaInAnyDialect = "json-schema-in-any-dialect": "The value is a valid JSON Schema of some dialect.",
        NoRemoteRef = "no-remote-ref": "No reference of the schema leads to the network.",
        HeaderNamesUnique = "header-names-unique": "No two `x-mcp-header` of a schema are the same but for letter case.",
        ImageMagic = "image-magic": "The bytes of an image are of the type that `mimeType` names.",
        AskedDeclared = "asked-declared": "What the server asks for, in kind and mode, was declared by the client.",
        ToolUsesBalanced = "tool-uses-balanced": "Each use of a tool in the messages of a completion is followed by its result.",
        ToolKnown = "tool-known": "The call of a listed tool is not answered by -32601.",
    }
}

names! {
    /// A check of a connection as a whole.
    "check" ConnectionCheck {
        AnsweredOnce = "answered-once": "No request has two responses, and no response comes without a request.",
        ResultIdEcho = "result-id-echo": "The id of a result equals that of its request in value and JSON type.",
        ErrorIdEcho = "error-id-echo": "The id of an error equals that of its request in value and JSON type.",
        NotificationsUnanswered = "notifications-unanswered": "No notification is answered.",
        ToolNamesUnique = "tool-names-unique": "No two tools of one list share a name.",
        CursorsAdvance = "cursors-advance": "No page and no cursor repeats within a walk.",
        PagesDisjoint = "pages-disjoint": "No item stands on two pages of a walk.",
        CacheScopeSame = "cache-scope-same": "Every page of a walk says the same `cacheScope`.",
        ProgressTokens = "progress-tokens": "Progress is reported only for tokens that we gave.",
        ProgressIncreases = "progress-increases": "The progress of a token increases with each notification.",
        ProgressStops = "progress-stops": "No progress is reported once its request is answered.",
        RequestsDeclared = "requests-declared": "Server requests use only capabilities that the client declared.",
        ListChangedDeclared = "list-changed-declared": "List changes are told only where `listChanged` was declared.",
        ListChangedSent = "list-changed-sent": "A list that changed was announced where `listChanged` was declared.",
        LoggingDeclared = "logging-declared": "Log messages are sent only where `logging` was declared.",
        LogOptIn = "log-opt-in": "Log messages are sent only for requests that asked for them.",
        EmbeddedNeedsResources = "embedded-needs-resources": "Embedded resources come only from a server that declared `resources`.",
        CallsSurvived = "calls-survived": "The server does not end while a valid call is under way.",
        EndsOnSigterm = "ends-on-sigterm": "A process that outlives the closing of its input ends on SIGTERM.",
        QuietBeforeInitialized = "quiet-before-initialized": "The server asks nothing but ping before `notifications/initialized`.",
        UnknownVersionNotEchoed = "unknown-version-not-echoed": "A version that nobody knows is not agreed to.",
        ToolsDeclared = "tools-declared": "A server that lists or runs tools declared `tools`.",
        ResourceUrisUnique = "resource-uris-unique": "No two different resources of one list share a uri.",
        PromptNamesUnique = "prompt-names-unique": "No two different prompts of one list share a name.",
        OtherCacheScopeSame = "other-cache-scope-same": "Every page of a list of resources or prompts says the same `cacheScope`.",
        UpdatesSubscribed = "updates-subscribed": "Updates of resources are told only while there is a subscription.",
        ListenAcknowledgedFirst = "listen-acknowledged-first": "The first message of a subscription acknowledges it, under the id of its request.",
        ListenGrantsAsked = "listen-grants-asked": "A subscription is granted nothing that was not asked for.",
        ChangesListened = "changes-listened": "Changes are told only while a subscription is open.",
        ElicitationsKnown = "elicitations-known": "An elicitation that is told to be complete was asked for before.",
        InputKeysUnique = "input-keys-unique": "No result asks for two things under one key.",
        ListenServed = "listen-served": "A subscription to something that the server declared is acknowledged.",
        ListenTagged = "listen-tagged": "What a subscription delivers carries the id of its request.",
        ListenOnlyAsked = "listen-only-asked": "A subscription delivers nothing but what it asked for.",
        ListenCancelled = "listen-cancelled": "A subscription that was cancelled delivers nothing more.",
        ToolChangesTold = "tool-changes-told": "A change of the tools is told to who listens for it.",
        OtherChangesTold = "other-changes-told": "A change of the resources or the prompts is told to who listens for it.",
        UpdatesTold = "updates-told": "A change of a resource is told to who listens for it.",
        PingBeforeInitialized = "ping-before-initialized": "A ping before `notifications/initialized` is answered with a result.",
        FallbackNewest = "fallback-newest": "The version offered for an unknown one is not older than one that is spoken.",
        TaskIdsUnique = "task-ids-unique": "No two tasks are created under one id.",
        TaskIdsUnguessable = "task-ids-unguessable": "The ids of tasks leave room enough that nobody guesses one.",
        TaskTransitions = "task-transitions": "A task that has ended stays as it is.",
        TaskTimes = "task-times": "The times of a task are timestamps that agree with each other.",
        TaskResultWaits = "task-result-waits": "`tasks/result` is answered once the task has ended.",
        TaskResultsRelated = "task-results-related": "The result of `tasks/result` names its task.",
        TasksListed = "tasks-listed": "A task that `tasks/get` knows stands in the list of tasks.",
        TaskFailuresTold = "task-failures-told": "A task whose tool failed is failed, and says why.",
        TaskInputRelated = "task-input-related": "What the server asks for a task names the task.",
        TaskProgressStops = "task-progress-stops": "No progress is reported on a task that has ended.",
        TaskOnlyOnCalls = "task-only-on-calls": "Nothing but `tools/call` is answered with a task.",
        TaskInputKeys = "task-input-keys": "A key of what a task asks for stands for one request.",
        ServerCancelsOwn = "server-cancels-own": "The server cancels its own requests only, while they are open.",
        ServerCancelsNoTask = "server-cancels-no-task": "The server cancels no request so that was to become a task.",
        ServerCancelsListen = "server-cancels-listen": "The server cancels nothing but subscriptions.",
        CancelledSilent = "cancelled-silent": "A request that was cancelled while it was open is not answered.",
        ResourcesChangedSent = "resources-changed-sent": "Resources that changed were announced where `resources.listChanged` was declared.",
        PromptsChangedSent = "prompts-changed-sent": "Prompts that changed were announced where `prompts.listChanged` was declared.",
        PromptsGot = "prompts-got": "A listed prompt without required arguments is served.",
        VersionAgreed = "version-agreed": "A version that was agreed to once is agreed to again.",
        LogsPaced = "logs-paced": "Log messages do not come by the hundred within a second.",
        ProgressPaced = "progress-paced": "Progress on a token is not reported a hundred times within a second.",
        PingsPaced = "pings-paced": "The server does not ping dozens of times within a second.",
        ServerRequestIds = "server-request-ids": "The ids of server requests are strings or integers and never repeat.",
        EventIdsUnique = "event-ids-unique": "No two events of the streams of a session share an id.",
        SentOnOneStream = "sent-on-one-stream": "No message is sent on two streams.",
    }
}

names! {
    /// What the fuzzer looks at in the answers to its calls.
    "oracle" Oracle {
        Crash = "crash": "No call ends the server.",
        Hang = "hang": "Every call is answered.",
        MalformedAnswer = "malformed-answer": "Every call is answered once, by a well-formed response under its own id.",
        AnswersSwapped = "answers-swapped": "Calls under way at once get each its own answer.",
        StdoutNoise = "stdout-noise": "Nothing but messages is written to standard output, whatever is called.",
        InvalidAccepted = "invalid-accepted": "Arguments that the inputSchema forbids are refused.",
        ValidRefused = "valid-refused": "Arguments that the inputSchema admits are not refused as invalid.",
        ErrorClass = "error-class": "An error has the code that its cause asks for.",
        InternalError = "internal-error": "No arguments lead to an internal error.",
        Leak = "leak": "Errors tell no stack traces, foreign paths, secrets or internals of a language.",
        ResultShape = "result-shape": "Every result has the shape of the revision.",
        OutputSchema = "output-schema": "Structured results fit the outputSchema, whatever the arguments.",
        ReadOnly = "read-only": "A tool that says readOnlyHint changes nothing that can be seen.",
        Idempotent = "idempotent": "A tool that says idempotentHint does the same when it is called again.",
        WorseAfter = "worse-after": "A call that worked before many others works after them.",
        Memory = "memory": "Memory does not grow with every call.",
        LatencyClimb = "latency": "Answers do not take longer with every call.",
        Descriptors = "descriptors": "Open files and child processes do not pile up with every call.",
        NeverSucceeds = "never-succeeds": "Some call that the inputSchema admits succeeds.",
        SchemaContradiction = "schema-contradiction": "Some arguments satisfy the inputSchema.",
        SchemaWithoutEffect = "schema-without-effect": "Every bound in the inputSchema bounds something.",
    }
}

names! {
    /// A comparison of the answers to several steps.
    "comparison" Comparison {
        Same = "same": "The values are the same at every step.",
        SameSet = "same-set": "The values are the same at every step, in whatever order.",
        SameOrder = "same-order": "The values that steps have in common come in the same order.",
        SameSetBetween = "same-set-between": "Where the first and the last step agree, the one between them agrees too.",
        SameSetOnShared = "same-set-on-shared": "The values are those that the survey found on the connection that cases share.",
        Differ = "differ": "The values of two steps are not the same.",
        NoServerRequests = "no-server-requests": "From the first step to the answer of the last the server asks nothing but ping.",
        RequestsDeclared = "requests-declared": "Meanwhile server requests use only capabilities that the client declared.",
        LogsFollowLevel = "logs-follow-level": "What is logged at the first step is not logged at the second, which asks for emergencies only.",
        FewQuestions = "few-questions": "Meanwhile the server asks the client at most twenty times.",
        Disjoint = "disjoint": "No value comes at two steps.",
    }
}

/// A check that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Check {
    /// It looks at one value.
    Value(ValueCheck),
    /// It looks at a connection.
    Connection(ConnectionCheck),
}

impl Check {
    /// Every check, those of values first.
    pub fn all() -> impl Iterator<Item = Self> {
        let values = ValueCheck::ALL.iter().copied().map(Self::Value);
        values.chain(ConnectionCheck::ALL.iter().copied().map(Self::Connection))
    }

    /// The name in case files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Value(check) => check.as_str(),
            Self::Connection(check) => check.as_str(),
        }
    }

    /// What it asks for, in a sentence.
    #[must_use]
    pub fn asks(self) -> &'static str {
        match self {
            Self::Value(check) => check.asks(),
            Self::Connection(check) => check.asks(),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Check {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        name.parse().map(Self::Value).or_else(|_| name.parse().map(Self::Connection))
    }
}

impl<'de> Deserialize<'de> for Check {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl ConnectionCheck {
    /// Whether it looks at streams of HTTP, which other transports do not have.
    #[must_use]
    pub fn is_of_http(self) -> bool {
        matches!(self, Self::EventIdsUnique | Self::SentOnOneStream)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_leads_to_its_check_and_back() {
        for check in Check::all() {
            assert_eq!(check.as_str().parse(), Ok(check));
        }
        for comparison in Comparison::ALL {
            assert_eq!(comparison.as_str().parse(), Ok(*comparison));
        }
        let error = "json-schemas".parse::<Check>().expect_err("no check");
        assert_eq!(error.to_string(), "unknown check `json-schemas`");
    }

    #[test]
    fn no_two_checks_share_a_name() {
        let names: BTreeSet<_> = Check::all().map(Check::as_str).collect();
        assert_eq!(names.len(), Check::all().count());
    }
}
