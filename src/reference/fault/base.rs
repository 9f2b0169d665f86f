//! Faults of JSON-RPC messages, of the stdio transport and of cancellation.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! base_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // messages, ids and errors
            Jsonrpc10, "jsonrpc-1-0", EVERY, "writes \"jsonrpc\": \"1.0\" in its responses";
            MessageWithoutKind, "message-without-kind", EVERY, "writes an object that is no message after each tools/list response";
            IdAsString, "id-as-string", EVERY, "returns integer ids as strings in results after the first response";
            ErrorIdEmpty, "error-id-empty", EVERY, "writes an empty text as the id in errors";
            ErrorIdNull, "error-id-null", EVERY, "returns null as the id in errors to well-formed requests";
            AnswersTwice, "answers-twice", EVERY, "writes each tools/list response twice";
            StringIdRejected, "string-id-rejected", EVERY, "rejects requests whose id is a string with -32600";
            EmptyIdIgnored, "empty-id-ignored", EVERY, "never answers a request whose id is the empty string";
            ZeroIdIgnored, "zero-id-ignored", EVERY, "never answers a request whose id is 0";
            NegativeIdPositive, "negative-id-positive", EVERY, "returns the absolute value of negative ids";
            LargeIdRounded, "large-id-rounded", EVERY, "returns ids beyond 2^53 - 2 rounded to the next even number";
            UnicodeIdMangled, "unicode-id-mangled", EVERY, "replaces every non-ASCII character of an id by '?'";
            IdAsDouble, "id-as-double", EVERY, "returns ids beyond 2^53 rounded to a double";
            ReadableIdOmitted, "readable-id-omitted", EVERY, "omits the id from errors to malformed requests";
            NullIdServed, "null-id-served", EVERY, "accepts requests whose id is null";
            SurrogateEscapeExits, "surrogate-escape-exits", EVERY, "exits on an escaped lone surrogate in a string";
            SurrogateIdReplaced, "surrogate-id-replaced", EVERY, "returns a fixed id in place of one with an escaped lone surrogate";
            DeepInputExits, "deep-input-exits", EVERY, "exits on a message with more than 1,000 nested arrays";
            LongNumberExits, "long-number-exits", EVERY, "exits on a number of more than 4,300 digits";
            LongLineExits, "long-line-exits", EVERY, "exits on a message of 65,536 bytes or more";
            LongLineIgnored, "long-line-ignored", EVERY, "never answers a message of more than 8,192 bytes";
            LongLineRefused, "long-line-refused", EVERY, "conforms, but refuses messages of more than 100,000 bytes";
            NestedRequestExits, "nested-request-exits", EVERY, "exits on a request with more than 126 nested arrays";
            NestedRequestIgnored, "nested-request-ignored", EVERY, "never answers a request with more than 512 nested arrays";
            NestedRequestRefused, "nested-request-refused", EVERY, "conforms, but refuses more than 100 nested arrays";
            LongIdCut, "long-id-cut", EVERY, "returns only the first 255 characters of a longer id";
            LongMethodExits, "long-method-exits", EVERY, "exits on a method of more than 255 characters";
            LongKeyIgnored, "long-key-ignored", EVERY, "never answers a request with a key of more than 1,024 characters";
            ManyMembersExit, "many-members-exit", EVERY, "exits on an object with more than 1,000 members";
            ParamsMissingIgnored, "params-missing-ignored", HANDSHAKE, "never answers a call or a read without params";
            EmptyParamsExit, "empty-params-exit", HANDSHAKE, "exits on prompts/get or resources/read with empty params";
            InnerIdAnswered, "inner-id-answered", EVERY, "answers the id in params, if they have one";
            RequestWithoutIdExits, "request-without-id-exits", EVERY, "exits on a request method without an id";
            RequestWithoutIdAnswered, "request-without-id-answered", EVERY, "answers a request method without an id";
            IdLastRejected, "id-last-rejected", EVERY, "takes a request whose id comes after its method to be no JSON";
            IdKindsConfused, "id-kinds-confused", EVERY, "answers concurrent requests with ids 7 and \"7\" both under 7";
            ReusedIdRejected, "reused-id-rejected", MODERN, "rejects an id that an earlier request used with -32600";
            ResultAndError, "result-and-error", EVERY, "adds an empty result to its error responses";
            ResultArray, "result-array", EVERY, "returns [] as the result of ping or of an unusual tools/list";
            ErrorCodeString, "error-code-string", EVERY, "writes the error code -32601 as a string";
            ErrorMessageStack, "error-message-stack", EVERY, "puts a multi-line stack trace into error messages";
            NotificationAnswered, "notification-answered", EVERY, "answers an unknown notification with an error";
            NotificationAnsweredLate, "notification-answered-late", EVERY, "answers an unknown notification after 150 ms";
            InitializedAnswered, "initialized-answered", LEGACY, "answers notifications/initialized with an error";
            ServerRequestIdReused, "server-request-id-reused", HANDSHAKE, "uses the same id for every request to the client";
            CancelledAnswered, "cancelled-answered", FROM_2024_11_05, "answers the cancellation of an unknown request with an error";
            NotificationWithId, "notification-with-id", EVERY, "adds an id to its list_changed or progress notifications";
            ArrayParamsCrash, "array-params-crash", EVERY, "exits on a list request whose params are an array";
            NullParamsCrash, "null-params-crash", EVERY, "exits on a call whose params are null";
            UnknownMemberRejected, "unknown-member-rejected", EVERY, "rejects tools/list with an unknown member in params";
            UnknownMemberRejectedByCalls, "unknown-member-rejected-by-calls", EVERY, "rejects a call, read or prompt with an unknown member in params";
            UnknownMetaRejected, "unknown-meta-rejected", EVERY, "rejects requests with an unknown vendor key in _meta";
            ReservedMetaCrash, "reserved-meta-crash", FROM_2025_06_18, "fails with -32603 on an unknown reserved key in _meta";
            UnknownMethodInvalidParams, "unknown-method-invalid-params", EVERY, "answers unknown methods with -32602";
            UnknownMethodSucceeds, "unknown-method-succeeds", EVERY, "answers unknown methods with an empty result";
            RpcMethodSucceeds, "rpc-method-succeeds", EVERY, "answers methods that start with \"rpc.\" with an empty result";
            MethodCaseFolded, "method-case-folded", EVERY, "matches method names case-insensitively";
            ParseErrorExits, "parse-error-exits", EVERY, "exits on a line that is not JSON";
            ParseErrorSilent, "parse-error-silent", EVERY, "ignores lines that are not JSON";
            NoMethodSucceeds, "no-method-succeeds", EVERY, "answers a message without a method with a result";
            MethodNumberExits, "method-number-exits", EVERY, "exits when method is a number";
            JsonrpcMemberUnchecked, "jsonrpc-member-unchecked", EVERY, "accepts requests without \"jsonrpc\": \"2.0\"";
            ObjectIdServed, "object-id-served", EVERY, "accepts requests whose id is an object";
            BatchRefused, "batch-refused", ONLY_2025_03_26, "rejects every batch with a single -32600 error";
            BatchNotificationAnswered, "batch-notification-answered", ONLY_2025_03_26, "answers notifications inside a batch";
            EmptyBatchAnswer, "empty-batch-answer", ONLY_2025_03_26, "answers a batch that has only notifications with []";
            BatchEmitted, "batch-emitted", WITHOUT_BATCHES, "wraps tools/list responses in an array";
            BatchServedLate, "batch-served-late", FROM_2025_06_18, "accepts batches in revisions that have none";
            PingRejected, "ping-rejected", LEGACY, "answers ping with -32601";
            SwappedIds, "swapped-ids", EVERY, "swaps the ids of two concurrent requests";
            ReservedCode, "reserved-code", MODERN, "answers unknown methods with the reserved code -32050";
            LegacyCode, "legacy-code", MODERN, "answers unknown methods with the legacy code -32001";
            RetiredCode, "retired-code", MODERN, "answers unknown tools with the retired code -32002";
            NullNextCursor, "null-next-cursor", EVERY, "writes \"nextCursor\": null on the last page";
            MetaArray, "meta-array", EVERY, "writes _meta of tools/list results as an array";
            MetaKeyBad, "meta-key-bad", FROM_2025_06_18, "uses the invalid key \"-bad key\" in _meta";
            MetaKeyReservedAny, "meta-key-reserved-any", ONLY_2025_06_18, "uses a _meta prefix in which a label mcp is reserved";
            MetaKeyReservedSecond, "meta-key-reserved-second", FROM_2025_11_25, "uses a _meta prefix whose second label is reserved";
            MetaKeyForwardDns, "meta-key-forward-dns", FROM_2025_11_25, "uses a _meta prefix that is not in reverse DNS order";
            InvalidParamsWrongCode, "invalid-params-wrong-code", EVERY, "answers tools/call without params or name with -32603";
            BatchAllOrNothing, "batch-all-or-nothing", ONLY_2025_03_26, "rejects a whole batch for one invalid member, ignores an empty one";
            // stdio
            PrettyPrinted, "pretty-printed", FROM_2024_11_05, "writes tools/list responses over several lines";
            BannerOnStdout, "banner-on-stdout", FROM_2024_11_05, "prints \"Server ready\" before its first response";
            LogOnStdout, "log-on-stdout", FROM_2024_11_05, "prints a log line before each tools/call response";
            ByteOrderMark, "byte-order-mark", FROM_2024_11_05, "writes a byte order mark before its first response";
            FirstLineUnterminated, "first-line-unterminated", FROM_2024_11_05, "writes its first response without a newline";
            BlankLine, "blank-line", FROM_2024_11_05, "writes an empty line after each response";
            Latin1Output, "latin1-output", FROM_2025_03_26, "writes tool results in Latin-1 instead of UTF-8";
            LocaleOutput, "locale-output", FROM_2024_11_05, "writes characters beyond ASCII as ? where no locale is set";
            SplitCharactersLost, "split-characters-lost", FROM_2024_11_05, "decodes what each read returns by itself, so split characters are lost";
            OneLinePerRead, "one-line-per-read", FROM_2024_11_05, "handles only the first of the lines that one read returns";
            StderrNeeded, "stderr-needed", FROM_2024_11_05, "exits when it logs its first message and nobody reads standard error";
            IgnoresEof, "ignores-eof", FROM_2024_11_05, "does not exit when its input ends";
            IgnoresSigterm, "ignores-sigterm", FROM_2024_11_05, "does not exit when its input ends or on SIGTERM";
            LeavesProcess, "leaves-process", FROM_2024_11_05, "starts a process that still runs when it has exited";
            StderrLatin1, "stderr-latin-1", FROM_2024_11_05, "writes Latin-1 to its standard error";
            SigtermWaitsForEof, "sigterm-waits-for-eof", FROM_2024_11_05, "does not exit on SIGTERM while its input is open";
            // cancellation
            CancelsUnknownRequest, "cancels-unknown-request", HANDSHAKE, "cancels a request that it never sent";
            CancelsModern, "cancels-modern", MODERN, "cancels a call that it is processing";
            CancelsWithObjectId, "cancels-with-object-id", FROM_2024_11_05, "sends notifications/cancelled with an object as requestId";
            CancelledServed, "cancelled-served", FROM_2025_11_25, "answers requests after the client cancelled them";
            CancellationWithoutParamsExits, "cancellation-without-params-exits", FROM_2024_11_05, "exits on notifications/cancelled without params";
            CancelledCallExits, "cancelled-call-exits", FROM_2024_11_05, "exits when the client cancels a tool call";
            RunningCallExits, "running-call-exits", FROM_2024_11_05, "exits when the client cancels a call that runs";
            LateCancellationExits, "late-cancellation-exits", FROM_2024_11_05, "exits when the client cancels a call that is about to end";
            RunningCallAnswered, "running-call-answered", FROM_2024_11_05, "answers a running call with an error when it is cancelled";
            CancelledTwiceExits, "cancelled-twice-exits", FROM_2024_11_05, "exits when the client cancels a running call twice";
            CancellationWaits, "cancellation-waits", FROM_2024_11_05, "reads nothing while a call runs, so a cancellation comes too late";
            LateCancelCrash, "late-cancel-crash", FROM_2024_11_05, "exits when the client cancels an answered request";
        }
    };
}
