//! Faults of the way a connection or a stateless request starts: versions, capabilities and metadata.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! lifecycle_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // revisions with a handshake
            InitializeInstructionsArray, "initialize-instructions-array", HANDSHAKE, "writes the instructions of initialize as an array";
            InitializeUnanswered, "initialize-unanswered", HANDSHAKE, "never answers initialize";
            OldestInitializeUnanswered, "oldest-initialize-unanswered", ONLY_2024_11_05, "never answers initialize with 2024-11-05";
            OldestInitializeExits, "oldest-initialize-exits", ONLY_2024_11_05, "exits on initialize with 2024-11-05";
            InitializeWithoutServerInfo, "initialize-without-server-info", HANDSHAKE, "omits serverInfo from the initialize result";
            InitializeVersionMissing, "initialize-version-missing", HANDSHAKE, "omits protocolVersion from the initialize result";
            InitializeVersionLatest, "initialize-version-latest", HANDSHAKE, "writes \"latest\" as the protocolVersion of initialize";
            InitializeVersionNumber, "initialize-version-number", HANDSHAKE, "writes the protocolVersion of initialize as a number";
            InitializeCapabilitiesArray, "initialize-capabilities-array", HANDSHAKE, "writes the capabilities of initialize as an array";
            InitializeEmpty, "initialize-empty", HANDSHAKE, "answers initialize with the result {}";
            ServerInfoTitleNumber, "server-info-title-number", FROM_2025_06_18, "gives serverInfo a title that is a number";
            ServerInfoIconString, "server-info-icon-string", FROM_2025_11_25, "gives serverInfo icons that are a string";
            CapabilityLoggingTrue, "capability-logging-true", FROM_2024_11_05, "declares the capability logging as true";
            UnknownVersionRejected, "unknown-version-rejected", HANDSHAKE, "rejects initialize with an unknown version";
            UnknownVersionEchoed, "unknown-version-echoed", HANDSHAKE, "accepts any unknown version that initialize requests";
            OlderVersionEchoed, "older-version-echoed", HANDSHAKE, "accepts any unknown version that is older than its own";
            MadeUpVersionOffered, "made-up-version-offered", HANDSHAKE, "offers a version that does not exist";
            SecondInitializeExits, "second-initialize-exits", HANDSHAKE, "exits on a second initialize";
            RequestBeforeInitializeExits, "request-before-initialize-exits", HANDSHAKE, "exits on a request before initialize";
            EarlyRequest, "early-request", HANDSHAKE, "sends a request before notifications/initialized";
            UndeclaredSampling, "undeclared-sampling", HANDSHAKE, "requests sampling from a client that did not declare it";
            PingNotEmpty, "ping-not-empty", HANDSHAKE, "adds a member to the empty result of ping";
            VersionDependsOnCapabilities, "version-depends-on-capabilities", HANDSHAKE, "offers another version to clients without capabilities";
            NotificationOfNewerRevision, "notification-of-newer-revision", HANDSHAKE, "sends a notification of 2026-07-28 in an older revision";
            IdleNotifications, "idle-notifications", HANDSHAKE, "reports a changed list of tools three times a second";
            PingBurst, "ping-burst", HANDSHAKE, "pings the client 60 times in a row";
            CapabilityCompletionsTrue, "capability-completions-true", FROM_2025_03_26, "declares the capability completions as true";
            CapabilityTasksTrue, "capability-tasks-true", ONLY_2025_11_25, "declares the capability tasks as true";
            EarlyPingRejected, "early-ping-rejected", HANDSHAKE, "rejects a ping before notifications/initialized";
            FallbackOldest, "fallback-oldest", RESOURCE_SUBSCRIPTIONS, "offers its oldest version when the requested one is unknown";
            // revisions without a handshake
            DiscoverRejected, "discover-rejected", MODERN, "answers server/discover with -32601";
            DiscoverUnanswered, "discover-unanswered", MODERN, "never answers server/discover";
            DiscoverWithoutCapabilities, "discover-without-capabilities", MODERN, "omits capabilities from the server/discover result";
            DiscoverVersionsMissing, "discover-versions-missing", MODERN, "omits supportedVersions from the server/discover result";
            DiscoverVersionsString, "discover-versions-string", MODERN, "writes supportedVersions as a string";
            DiscoverVersionsLatest, "discover-versions-latest", MODERN, "lists only \"latest\" in supportedVersions";
            ListedVersionRejected, "listed-version-rejected", MODERN, "lists 2026-07-28 but rejects all other requests in it";
            DiscoverOmitsVersion, "discover-omits-version", MODERN, "omits 2026-07-28 from supportedVersions";
            MissingMetaServed, "missing-meta-served", MODERN, "accepts requests without _meta";
            MissingVersionServed, "missing-version-served", MODERN, "accepts requests without a protocol version";
            MissingCapabilitiesServed, "missing-capabilities-served", MODERN, "accepts requests without client capabilities";
            ClientInfoRequired, "client-info-required", MODERN, "rejects requests without client information";
            UnsupportedVersionServed, "unsupported-version-served", MODERN, "accepts requests with an unknown protocol version";
            UnsupportedVersionWithoutData, "unsupported-version-without-data", MODERN, "rejects an unknown protocol version without data in the error";
            ServerInfoMissing, "server-info-missing", MODERN, "omits serverInfo from the _meta of its results";
            ServerInfoString, "server-info-string", MODERN, "writes serverInfo in _meta as a string";
            PingStillServed, "ping-still-served", MODERN, "answers ping, which the revision removed";
            ServerRequestModern, "server-request-modern", MODERN, "sends a request to the client during tools/call";
            ResultTypeMissing, "result-type-missing", MODERN, "omits resultType from tools/list results";
            ResultTypeUnknown, "result-type-unknown", MODERN, "returns \"resultType\": \"done\" in tools/list results";
            CachingHintsMissing, "caching-hints-missing", MODERN, "omits ttlMs and cacheScope from tools/list results";
            CacheScopeShared, "cache-scope-shared", MODERN, "returns \"cacheScope\": \"shared\" in tools/list results";
            TtlNegative, "ttl-negative", MODERN, "returns \"ttlMs\": -1 in tools/list results";
            CacheScopeVaries, "cache-scope-varies", MODERN, "returns another cacheScope on every page after the first";
            NeedsDiscoverFirst, "needs-discover-first", MODERN, "rejects requests until server/discover has been called";
            NotificationPinsEra, "notification-pins-era", MODERN, "serves 2025-11-25 after a notification without _meta";
            ListPerConnection, "list-per-connection", MODERN, "lists a different extra tool on each connection";
            ListOrderRandom, "list-order-random", MODERN, "reverses the order of tools in every other listing";
            InitializeErrorWithoutVersions, "initialize-error-without-versions", MODERN, "rejects initialize without naming a supported version";
            UnusableVersionListed, "unusable-version-listed", MODERN, "lists 2025-11-25 as supported but rejects initialize with it";
            ExtensionString, "extension-string", MODERN, "writes the settings of an extension as a string";
            ExtensionWithoutPrefix, "extension-without-prefix", MODERN, "declares an extension without a vendor prefix";
            InitializeModern, "initialize-modern", MODERN, "accepts 2026-07-28 in initialize";
        }
    };
}
