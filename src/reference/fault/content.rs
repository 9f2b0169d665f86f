//! Faults of the content of tool results, and of progress and log messages.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! content_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // content
            ContentTypeVideo, "content-type-video", FROM_2024_11_05, "adds content of the type video to the tool image";
            AudioIn20241105, "audio-in-2024-11-05", ONLY_2024_11_05, "returns audio from the tool image, which the revision does not have";
            LinkBefore20250618, "link-before-2025-06-18", WITHOUT_RESOURCE_LINKS, "returns a resource link, which the revision does not have";
            TextNumber, "text-number", FROM_2024_11_05, "writes the text of the tool echo as a number";
            ImageWithoutMime, "image-without-mime", FROM_2024_11_05, "omits mimeType from an image";
            ImageDataUrl, "image-data-url", FROM_2024_11_05, "writes the data of an image as a data: URL";
            ImageMimeText, "image-mime-text", FROM_2024_11_05, "gives an image the MIME type text/plain";
            ImageMagic, "image-magic", FROM_2024_11_05, "labels PNG bytes as image/jpeg";
            AudioWithoutData, "audio-without-data", FROM_2025_03_26, "omits data from audio content";
            AudioBase64Url, "audio-base64-url", FROM_2025_03_26, "encodes audio in the URL-safe base64 alphabet";
            AudioMimeVideo, "audio-mime-video", FROM_2025_03_26, "gives audio the MIME type video/mp4";
            LinkWithoutName, "link-without-name", FROM_2025_06_18, "omits the name of a resource link";
            LinkSizeString, "link-size-string", FROM_2025_06_18, "writes the size of a resource link as a string";
            EmbeddedWithoutUri, "embedded-without-uri", FROM_2024_11_05, "omits the uri of an embedded resource";
            EmbeddedEmpty, "embedded-empty", FROM_2024_11_05, "omits both text and blob from an embedded resource";
            EmbeddedBlobNotBase64, "embedded-blob-not-base64", FROM_2024_11_05, "returns an embedded resource whose blob is not base64";
            EmbeddedRelativeUri, "embedded-relative-uri", FROM_2024_11_05, "gives an embedded resource a relative uri";
            EmbeddedUndeclared, "embedded-undeclared", FROM_2025_06_18, "embeds resources without declaring the capability resources";
            AudienceString, "audience-string", FROM_2024_11_05, "writes the audience of annotated content as a string";
            AudienceRobot, "audience-robot", FROM_2024_11_05, "uses \"robot\" as the audience of annotated content";
            PriorityTwo, "priority-two", FROM_2024_11_05, "gives annotated content the priority 2";
            LastModifiedNumber, "last-modified-number", FROM_2025_06_18, "writes lastModified of annotated content as a number";
            LastModifiedInvalid, "last-modified-invalid", FROM_2025_06_18, "writes lastModified of annotated content as \"yesterday\"";
            StructuredMismatch, "structured-mismatch", FROM_2025_06_18, "returns structured content that violates the output schema";
            StructuredMissing, "structured-missing", FROM_2025_06_18, "omits the structured content that the output schema requires";
            StructuredArray, "structured-array", STRUCTURED_OBJECTS, "returns structured content that is an array";
            StructuredWithoutText, "structured-without-text", FROM_2025_06_18, "returns structured content without its serialized text";
            StructuredContentEarly, "structured-content-early", WITHOUT_RESOURCE_LINKS, "returns structured content, which the revision does not have";
            EmbeddedMetaArray, "embedded-meta-array", FROM_2025_06_18, "writes _meta of an embedded resource as an array";
            ContentMetaArray, "content-meta-array", FROM_2025_06_18, "writes _meta of a content item as an array";
            // progress, logging, terminal escapes
            ProgressString, "progress-string", EVERY, "writes the progress value as a string";
            ProgressUnknownToken, "progress-unknown-token", FROM_2024_11_05, "reports progress for a token that no request has";
            IntegerTokenRejected, "integer-token-rejected", FROM_2024_11_05, "rejects requests whose progress token is an integer";
            ProgressTokenAsString, "progress-token-as-string", FROM_2024_11_05, "returns integer progress tokens as strings";
            ProgressGoesBack, "progress-goes-back", FROM_2024_11_05, "reports decreasing progress";
            ProgressAfterResult, "progress-after-result", FROM_2024_11_05, "reports progress after the result";
            LogLevelLoud, "log-level-loud", EVERY, "logs at the level \"loud\"";
            LogUndeclared, "log-undeclared", FROM_2024_11_05, "logs without declaring the capability logging";
            LogWithoutOptIn, "log-without-opt-in", MODERN, "logs for requests that set no log level";
            TerminalEscapeInResult, "terminal-escape-in-result", FROM_2024_11_05, "writes terminal escapes into a tool result";
            LogSecret, "log-secret", FROM_2024_11_05, "writes a bearer token into its log messages";
            LogBurst, "log-burst", FROM_2024_11_05, "writes 400 log messages in a row";
            LogThresholdIgnored, "log-threshold-ignored", FROM_2024_11_05, "logs at every level, whatever level the client set";
            LogOnSubscription, "log-on-subscription", MODERN, "adds a subscription id to log messages";
            ProgressOnSubscription, "progress-on-subscription", MODERN, "adds a subscription id to progress notifications";
            ProgressBurst, "progress-burst", FROM_2024_11_05, "sends 400 progress notifications in a row";
            ProgressMessageEmpty, "progress-message-empty", FROM_2025_03_26, "reports progress with an empty message";
            TraceparentShort, "traceparent-short", MODERN, "writes a traceparent without a trace id";
            SetLevelUnanswered, "set-level-unanswered", HANDSHAKE, "never answers logging/setLevel";
            SetLevelNotFound, "set-level-not-found", HANDSHAKE, "declares logging but does not know logging/setLevel";
            SetLevelNotEmpty, "set-level-not-empty", HANDSHAKE, "adds a member to the empty result of logging/setLevel";
            SetLevelUnchecked, "set-level-unchecked", HANDSHAKE, "accepts any log level in logging/setLevel";
            LogLevelUnchecked, "log-level-unchecked", MODERN, "accepts requests with an unknown log level";
        }
    };
}
