//! Faults of tools: the capability, the list, the definitions and calls.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! tool_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // the capability
            ToolsUndeclared, "tools-undeclared", EVERY, "serves tools without declaring the capability";
            ToolsCapabilityTrue, "tools-capability-true", EVERY, "declares the capability tools as true";
            ListChangedString, "list-changed-string", EVERY, "declares listChanged as a string";
            ListChangedUndeclared, "list-changed-undeclared", LEGACY, "sends list_changed without declaring listChanged";
            ToolsListUnanswered, "tools-list-unanswered", EVERY, "never answers tools/list";
            ListRejected, "list-rejected", EVERY, "declares tools but answers tools/list with -32603";
            CallNotFound, "call-not-found", EVERY, "declares tools but answers tools/call with -32601";
            ToolGoneAfterCall, "tool-gone-after-call", EVERY, "no longer knows a tool that was called before on the connection";
            ToolsOffServed, "tools-off-served", EVERY, "declares no tools, rejects tools/list, but accepts any call";
            ListChangedParamsArray, "list-changed-params-array", LEGACY, "writes the params of list_changed as an array";
            ListChangedAfterList, "list-changed-after-list", HANDSHAKE, "sends list_changed after each response to a list request";
            ListChangedSilent, "list-changed-silent", HANDSHAKE, "changes its lists without sending list_changed";
            // tools/list
            ToolsObject, "tools-object", EVERY, "lists tools as an object keyed by name";
            ListParamsRequired, "list-params-required", LEGACY, "rejects tools/list without params";
            ListEmptyMetaRejected, "list-empty-meta-rejected", LEGACY, "rejects tools/list with an empty _meta";
            ListDependsOnParams, "list-depends-on-params", LEGACY, "lists fewer tools when params is missing";
            NextCursorNumber, "next-cursor-number", EVERY, "writes nextCursor as a number";
            CursorRepeats, "cursor-repeats", EVERY, "answers every cursor with the first page and the same nextCursor";
            OwnCursorRejected, "own-cursor-rejected", EVERY, "rejects the cursors that it issued";
            SecondListingDiffers, "second-listing-differs", FROM_2024_11_05, "omits a tool from every other listing";
            CursorSingleUse, "cursor-single-use", FROM_2024_11_05, "rejects a cursor that was already used";
            PageOverlap, "page-overlap", FROM_2024_11_05, "repeats the last tool of each page on the next page";
            InvalidCursorServed, "invalid-cursor-served", FROM_2024_11_05, "answers a cursor that it never issued with the first page";
            InvalidCursorInternal, "invalid-cursor-internal", FROM_2024_11_05, "answers an invalid cursor with -32603";
            LongCursorCrash, "long-cursor-crash", FROM_2024_11_05, "exits on a cursor of more than 4,000 characters";
            LongToolNameCrash, "long-tool-name-crash", EVERY, "exits when the tool name of a call has more than 255 characters";
            AlteredCursorServed, "altered-cursor-served", FROM_2024_11_05, "answers an altered cursor of its own with the first page";
            CursorNumberServed, "cursor-number-served", FROM_2024_11_05, "answers a cursor that is a number with the first page";
            CursorPerConnection, "cursor-per-connection", MODERN, "rejects cursors that it issued on another connection";
            EmptyCursorRestarts, "empty-cursor-restarts", MODERN, "issues an empty cursor that returns the first page again";
            ListByClient, "list-by-client", MODERN, "lists fewer tools for clients with an unknown name";
            // definitions
            ToolNameNumber, "tool-name-number", EVERY, "lists a tool whose name is a number";
            ToolNameTwice, "tool-name-twice", EVERY, "lists two tools with the same name";
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
            InputSchemaPatternInvalid, "input-schema-pattern-invalid", FROM_2025_11_25, "lists a tool whose inputSchema has a pattern in the dialect of Python";
            InputSchemaRefDangling, "input-schema-ref-dangling", FROM_2025_11_25, "lists a tool whose inputSchema refers to a missing definition";
            InputSchemaRemoteRef, "input-schema-remote-ref", MODERN, "lists a tool whose inputSchema refers to the network";
            OutputSchemaArrayRoot, "output-schema-array-root", STRUCTURED_OBJECTS, "lists a tool whose outputSchema has the type array";
            OutputSchemaBooleanProperty, "output-schema-boolean-property", STRUCTURED_OBJECTS, "lists a tool with a boolean property in its outputSchema";
            OutputSchemaInvalid, "output-schema-invalid", FROM_2025_11_25, "lists a tool whose outputSchema is not a valid JSON Schema";
            OutputSchemaPatternInvalid, "output-schema-pattern-invalid", FROM_2025_11_25, "lists a tool whose outputSchema has a pattern in the dialect of Java";
            OutputSchemaRefDangling, "output-schema-ref-dangling", FROM_2025_11_25, "lists a tool whose outputSchema refers to a missing definition";
            OutputSchemaRemoteRef, "output-schema-remote-ref", MODERN, "lists a tool whose outputSchema refers to a network address";
            OutputSchemaTrue, "output-schema-true", MODERN, "lists a tool whose outputSchema is true";
            AnnotationsStringHint, "annotations-string-hint", FROM_2025_03_26, "lists a tool whose readOnlyHint is the string \"true\"";
            AnnotationsTitleNumber, "annotations-title-number", FROM_2025_03_26, "lists a tool whose annotation title is a number";
            TaskSupportUnknown, "task-support-unknown", ONLY_2025_11_25, "lists a tool whose taskSupport is \"maybe\"";
            IconSizesString, "icon-sizes-string", FROM_2025_11_25, "lists a tool with an icon whose sizes is a string";
            IconThemeUnknown, "icon-theme-unknown", FROM_2025_11_25, "lists a tool with an icon whose theme is sepia";
            IconJavascript, "icon-javascript", FROM_2025_11_25, "lists a tool with an icon whose source is a javascript: URL";
            HeaderNameSpace, "header-name-space", MODERN, "lists a tool with a space in an x-mcp-header";
            HeaderNameTwice, "header-name-twice", MODERN, "lists a tool whose x-mcp-header names differ only in case";
            HeaderOnObject, "header-on-object", MODERN, "lists a tool with an x-mcp-header on an object property";
            HeaderInItems, "header-in-items", MODERN, "lists a tool with an x-mcp-header inside items";
            HeaderOnPassword, "header-on-password", MODERN, "lists a tool with an x-mcp-header on a password property";
            ToolMetaString, "tool-meta-string", FROM_2025_06_18, "lists a tool whose _meta is a string";
            TerminalEscapeInDescription, "terminal-escape-in-description", FROM_2024_11_05, "lists a tool with terminal escapes in its description";
            BidiInDescription, "bidi-in-description", FROM_2024_11_05, "lists a tool with invisible characters in its description";
            MarkupInDescription, "markup-in-description", FROM_2024_11_05, "lists a tool with a script element in its description";
            // tools/call
            ExtraArgumentAccepted, "extra-argument-accepted", EVERY, "accepts arguments that additionalProperties forbids";
            ContentMissing, "content-missing", FROM_2024_11_05, "omits content from the result of the tool add";
            ContentObject, "content-object", FROM_2024_11_05, "writes the content of the tool echo as one object";
            ToolResultMissing, "tool-result-missing", ONLY_2024_10_07, "answers tools/call with content instead of toolResult";
            IsErrorString, "is-error-string", FROM_2024_11_05, "writes isError as a string";
            CallsUnanswered, "calls-unanswered", EVERY, "never answers tools/call";
            CallEatsInput, "call-eats-input", FROM_2024_11_05, "loses the request that follows a call of the tool count";
            ToolUnanswered, "tool-unanswered", FROM_2024_11_05, "never answers calls of the tool annotated";
            ValidCallError, "valid-call-error", EVERY, "answers a valid call of the tool weather with a protocol error";
            ArgumentsRequired, "arguments-required", EVERY, "rejects tools/call without arguments";
            UnknownToolIsError, "unknown-tool-is-error", EVERY, "answers unknown tools with a failed tool result";
            UnknownToolSucceeds, "unknown-tool-succeeds", EVERY, "answers unknown tools with success";
            UnknownToolCode32601, "unknown-tool-code-32601", EVERY, "answers unknown tools with -32601";
            ToolNameCaseFolded, "tool-name-case-folded", FROM_2025_11_25, "matches tool names case-insensitively";
            NoNameSucceeds, "no-name-succeeds", EVERY, "answers tools/call without a name with success";
            NameNumberSucceeds, "name-number-succeeds", EVERY, "answers tools/call with a numeric name with success";
            ArgumentsArraySucceeds, "arguments-array-succeeds", EVERY, "answers tools/call with array arguments with success";
            ArgumentsStringSucceeds, "arguments-string-succeeds", EVERY, "answers tools/call with string arguments with success";
            MissingArgumentSucceeds, "missing-argument-succeeds", EVERY, "accepts calls without a required argument";
            WrongTypeSucceeds, "wrong-type-succeeds", EVERY, "accepts arguments of the wrong type";
            InvalidArgumentsProtocolError, "invalid-arguments-protocol-error", INVALID_ARGUMENTS_SPECIFIED, "reports invalid arguments by the wrong kind of error";
            EnumUnchecked, "enum-unchecked", EVERY, "accepts arguments that are not in their enum";
            ErrorUnexplained, "error-unexplained", FROM_2025_11_25, "returns tool errors without content";
            CallsSwapped, "calls-swapped", EVERY, "swaps the ids of two concurrent calls";
            FailsAfterError, "fails-after-error", EVERY, "fails the call that follows a rejected one";
            NewerKeywordsUnchecked, "newer-keywords-unchecked", FROM_2025_11_25, "accepts arguments that prefixItems forbids";
            InterimEarly, "interim-early", HANDSHAKE, "answers calls of the tool add with an input_required result";
            CallNeedsList, "call-needs-list", MODERN, "rejects calls until tools/list was called on the connection";
        }
    };
}
