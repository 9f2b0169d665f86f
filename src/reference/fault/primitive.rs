//! Faults of resources, prompts, completion and subscriptions.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! primitive_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // resources
            ResourcesUndeclared, "resources-undeclared", FROM_2024_11_05, "serves resources without declaring the capability";
            ResourcesListRejected, "resources-list-rejected", FROM_2024_11_05, "declares resources but answers resources/list with -32603";
            ResourcesListUnanswered, "resources-list-unanswered", FROM_2024_11_05, "never answers resources/list";
            TemplatesNotFound, "templates-not-found", FROM_2024_11_05, "declares resources but does not know resources/templates/list";
            TemplatesUnanswered, "templates-unanswered", FROM_2024_11_05, "never answers resources/templates/list";
            ReadIncompleteExits, "read-incomplete-exits", FROM_2024_11_05, "exits on resources/read without a URI";
            ReadsUnanswered, "reads-unanswered", FROM_2024_11_05, "never answers resources/read";
            SubscribeUnanswered, "subscribe-unanswered", RESOURCE_SUBSCRIPTIONS, "never answers resources/subscribe";
            ResourceWithoutName, "resource-without-name", FROM_2024_11_05, "lists a resource without a name";
            ResourceRelativeUri, "resource-relative-uri", FROM_2024_11_05, "lists a resource with a relative uri";
            ResourceSchemeUnderscore, "resource-scheme-underscore", FROM_2025_06_18, "lists a resource whose URI scheme has an underscore";
            ResourceHttpsReserved, "resource-https-reserved", FROM_2024_11_05, "lists an https:// resource on a host of the reserved domain .invalid";
            ResourceUriTwice, "resource-uri-twice", FROM_2024_11_05, "lists two resources with the same uri";
            ResourcePriorityTwo, "resource-priority-two", FROM_2024_11_05, "gives a listed resource the priority 2";
            TemplateWithoutName, "template-without-name", FROM_2024_11_05, "lists a resource template without a name";
            TemplateUnclosed, "template-unclosed", FROM_2024_11_05, "lists a resource template with an unclosed brace";
            ReadContentsObject, "read-contents-object", FROM_2024_11_05, "writes the contents of resources/read as one object";
            ReadEmpty, "read-empty", FROM_2024_11_05, "omits both text and blob from the contents of a resource";
            ReadBlobNotBase64, "read-blob-not-base64", FROM_2024_11_05, "returns a resource whose blob is not base64";
            ListedNotRead, "listed-not-read", FROM_2024_11_05, "rejects resources/read of the first resource that it lists";
            MissingResourceCode, "missing-resource-code", FROM_2024_11_05, "answers resources/read of an unknown uri with -32603";
            DataUriServed, "data-uri-served", FROM_2024_11_05, "reads data: URIs that it does not list";
            MissingResourceEmpty, "missing-resource-empty", FROM_2024_11_05, "answers resources/read of an unknown uri with empty contents";
            ReadCrash, "read-crash", FROM_2024_11_05, "exits when the uri of resources/read is not a string";
            SubscribeNotEmpty, "subscribe-not-empty", RESOURCE_SUBSCRIPTIONS, "adds a member to the empty result of resources/subscribe";
            SubscribeUndeclared, "subscribe-undeclared", RESOURCE_SUBSCRIPTIONS, "accepts resources/subscribe without declaring subscribe";
            UpdateWithoutUri, "update-without-uri", RESOURCE_SUBSCRIPTIONS, "omits the uri from notifications/resources/updated";
            UpdateAfterUnsubscribe, "update-after-unsubscribe", RESOURCE_SUBSCRIPTIONS, "reports updates of a resource after an unsubscription";
            UpdateUnsubscribed, "update-unsubscribed", HANDSHAKE, "reports updates of a resource without a subscription";
            ResourceCursorUnchecked, "resource-cursor-unchecked", FROM_2024_11_05, "accepts any cursor in the lists of resources and prompts";
            ResourceCacheScopeVaries, "resource-cache-scope-varies", MODERN, "returns another cacheScope on the second page of resources";
            InternalErrorCode, "internal-error-code", FROM_2024_11_05, "reports an internal error of resources/read with the code 0";
            PathTraversal, "path-traversal", FROM_2024_11_05, "follows .. in a resource uri to files that it does not offer";
            ResourcesPerConnection, "resources-per-connection", MODERN, "lists a different extra resource on each connection";
            // prompts
            PromptsUndeclared, "prompts-undeclared", FROM_2024_11_05, "serves prompts without declaring the capability";
            PromptsListRejected, "prompts-list-rejected", FROM_2024_11_05, "declares prompts but answers prompts/list with -32603";
            PromptsListUnanswered, "prompts-list-unanswered", FROM_2024_11_05, "never answers prompts/list";
            PromptIncompleteExits, "prompt-incomplete-exits", FROM_2024_11_05, "exits on prompts/get without a name";
            PromptsUnanswered, "prompts-unanswered", FROM_2024_11_05, "never answers prompts/get";
            PromptWithoutName, "prompt-without-name", FROM_2024_11_05, "lists a prompt without a name";
            PromptNameTwice, "prompt-name-twice", FROM_2024_11_05, "lists two prompts with the same name";
            PromptArgumentRequiredString, "prompt-argument-required-string", FROM_2024_11_05, "writes required of a prompt argument as a string";
            PromptArgumentTitleNumber, "prompt-argument-title-number", FROM_2025_06_18, "writes title of a prompt argument as a number";
            PromptContentArray, "prompt-content-array", FROM_2024_11_05, "writes the content of a prompt message as an array";
            PromptContentVideo, "prompt-content-video", FROM_2024_11_05, "returns prompt content of the type video";
            PromptImageDataUrl, "prompt-image-data-url", FROM_2024_11_05, "writes the image of a prompt as a data: URL";
            PromptAudioUrlAlphabet, "prompt-audio-url-alphabet", FROM_2025_03_26, "encodes the audio of a prompt in the URL-safe base64 alphabet";
            PromptEmbeddedWithoutMime, "prompt-embedded-without-mime", FROM_2024_11_05, "omits mimeType from a resource embedded in a prompt";
            UnknownPromptServed, "unknown-prompt-served", FROM_2024_11_05, "answers prompts/get of an unknown name with a prompt";
            MissingPromptArgumentServed, "missing-prompt-argument-served", FROM_2024_11_05, "accepts prompts/get without a required argument";
            PromptArgumentTypesUnchecked, "prompt-argument-types-unchecked", FROM_2024_11_05, "accepts prompt arguments that are not strings";
            ListedPromptRejected, "listed-prompt-rejected", FROM_2024_11_05, "rejects prompts/get of a prompt that it lists";
            PromptTemplateExpanded, "prompt-template-expanded", FROM_2024_11_05, "evaluates template expressions in prompt arguments";
            PromptsPerConnection, "prompts-per-connection", MODERN, "lists a different extra prompt on each connection";
            // completion
            CompletionsUndeclared, "completions-undeclared", FROM_2025_06_18, "completes arguments without declaring the capability";
            CompletionUnanswered, "completion-unanswered", FROM_2025_06_18, "never answers completion/complete";
            CompletionNotFound, "completion-not-found", FROM_2025_06_18, "declares completions but does not know completion/complete";
            CompletionRejected, "completion-rejected", MODERN, "declares completions but answers completion/complete with -32601";
            CompletionValuesString, "completion-values-string", FROM_2025_06_18, "writes the values of a completion as a string";
            CompletionTooMany, "completion-too-many", FROM_2025_06_18, "returns 101 values in one completion";
            CompletionUnknownServed, "completion-unknown-served", FROM_2025_06_18, "completes arguments of an unknown prompt";
            CompletionIncompleteServed, "completion-incomplete-served", FROM_2025_06_18, "accepts completion/complete without ref or value";
            CompletionContextRejected, "completion-context-rejected", FROM_2025_06_18, "rejects completion/complete with a context";
            CompletionCrash, "completion-crash", FROM_2025_06_18, "exits on a completion value of more than 4,000 characters";
            // subscriptions
            ListenRejected, "listen-rejected", MODERN, "rejects subscriptions to notifications that it declared";
            ListenUnacknowledged, "listen-unacknowledged", MODERN, "opens subscriptions without an acknowledgement";
            ListenOnlyOne, "listen-only-one", MODERN, "rejects a second subscription";
            ListenUnrequestedNotification, "listen-unrequested-notification", MODERN, "notifies subscribers of a list that they did not select";
            ListenWithoutSubscriptionId, "listen-without-subscription-id", MODERN, "omits the subscription id from notifications";
            ListenCancelIgnored, "listen-cancel-ignored", MODERN, "keeps sending notifications to a cancelled subscription";
            ListenEndsAbruptly, "listen-ends-abruptly", MODERN, "exits when a subscription selects nothing";
            ListenResultWithoutSubscriptionId, "listen-result-without-subscription-id", MODERN, "omits the subscription id from the result of a subscription";
            ListenToolsSilent, "listen-tools-silent", MODERN, "does not notify subscribers of changed tools";
            ListenListsSilent, "listen-lists-silent", MODERN, "does not notify subscribers of changed prompts and resources";
            ListenUpdatesSilent, "listen-updates-silent", MODERN, "does not notify subscribers of updated resources";
            ListenFilterUnchecked, "listen-filter-unchecked", MODERN, "accepts a subscription without a filter";
            ListenGrantsMore, "listen-grants-more", MODERN, "acknowledges more than the subscription requested";
            ListenGrantString, "listen-grant-string", MODERN, "acknowledges a subscription with a string as notifications";
            ListenUpdateFirst, "listen-update-first", MODERN, "sends an update before it acknowledges the subscription";
            ListChangedUnsubscribed, "list-changed-unsubscribed", MODERN, "sends list_changed to a client without a subscription";
        }
    };
}
