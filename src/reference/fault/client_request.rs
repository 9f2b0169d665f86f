//! Faults of what the server requests from the client: elicitation, sampling, roots and input requests.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! client_request_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // elicitation
            ElicitFormNested, "elicit-form-nested", FROM_2025_06_18, "requests a form with an object field";
            ElicitFormLink, "elicit-form-link", FROM_2025_11_25, "puts a link into the description of a form field";
            ElicitFormPattern, "elicit-form-pattern", FROM_2025_11_25, "requests a form with a pattern in the dialect of Python";
            ElicitFormPassword, "elicit-form-password", FROM_2025_06_18, "requests a password in a form";
            ElicitFormUndeclared, "elicit-form-undeclared", FROM_2025_11_25, "requests a form from a client that declared URL mode only";
            ElicitMessageMissing, "elicit-message-missing", FROM_2025_11_25, "omits the message of a form request";
            ElicitUrlUndeclared, "elicit-url-undeclared", FROM_2025_11_25, "requests URL mode from a client that declared forms only";
            ElicitUrlMissing, "elicit-url-missing", FROM_2025_11_25, "omits the url in URL mode";
            ElicitUrlRelative, "elicit-url-relative", FROM_2025_11_25, "sends a relative url in URL mode";
            ElicitUrlEmail, "elicit-url-email", FROM_2025_11_25, "sends a url with an e-mail address in URL mode";
            ElicitRequiredWithoutData, "elicit-required-without-data", ONLY_2025_11_25, "returns -32042 without elicitations";
            ElicitCompleteUnknownId, "elicit-complete-unknown-id", ONLY_2025_11_25, "reports completion of an unknown elicitation";
            ElicitDeclineHangs, "elicit-decline-hangs", FROM_2025_06_18, "never answers a call when the user declines";
            ElicitContentUnchecked, "elicit-content-unchecked", FROM_2025_06_18, "accepts form content that violates the requested schema";
            // requests that the client leaves unanswered
            WaitsForClient, "waits-for-client", HANDSHAKE, "answers no ping while it waits for a response of the client";
            TimeoutNotCancelled, "timeout-not-cancelled", HANDSHAKE_WITH_CANCELLED_TIMEOUTS, "does not cancel its request when it stops waiting for the client";
            // sampling
            SamplingContext, "sampling-context", FROM_2025_11_25, "sets includeContext although the client did not declare it";
            SamplingEndless, "sampling-endless", FROM_2025_11_25, "continues sampling with tools without a limit";
            SamplingRoleSystem, "sampling-role-system", MODERN, "sends a sampling message with the role system";
            SamplingWithoutMaxTokens, "sampling-without-max-tokens", FROM_2024_11_05, "omits maxTokens from a sampling request";
            SamplingRejectionHangs, "sampling-rejection-hangs", HANDSHAKE, "never answers a call when the client rejects sampling";
            SamplingUnbalanced, "sampling-unbalanced", FROM_2025_11_25, "omits the tool_result of a tool_use from a sampling request";
            SamplingResultsMixed, "sampling-results-mixed", FROM_2025_11_25, "mixes text into a sampling message with tool results";
            SamplingToolsUndeclared, "sampling-tools-undeclared", FROM_2025_11_25, "sends tools to a client that did not declare sampling.tools";
            SamplingContentUnchecked, "sampling-content-unchecked", FROM_2024_11_05, "accepts a sampling result without content";
            // roots
            RootsChangeCrash, "roots-change-crash", HANDSHAKE, "exits when the client's roots change";
            RootsParamsArray, "roots-params-array", FROM_2024_11_05, "sends roots/list with array params";
            RootsUnavailableHangs, "roots-unavailable-hangs", HANDSHAKE, "never answers a call when roots/list fails";
            RootsMissingHangs, "roots-missing-hangs", FROM_2024_11_05, "never answers a call when the client's root does not exist";
            ReadsOutsideRoots, "reads-outside-roots", FROM_2024_11_05, "reads files of folders whose path begins like a root";
            FollowsLinksOutOfRoots, "follows-links-out-of-roots", FROM_2024_11_05, "reads files outside of the roots by a link within them";
            // input requests in results
            MrtrBlocksOtherRequests, "mrtr-blocks-other-requests", MODERN, "answers no other request while it waits for input";
            MrtrUndeclared, "mrtr-undeclared", MODERN, "requests input that the client did not declare";
            MrtrEmpty, "mrtr-empty", MODERN, "returns input_required without inputRequests and requestState";
            MrtrKeyTwice, "mrtr-key-twice", MODERN, "writes the same key twice in inputRequests";
            MrtrMalformedServed, "mrtr-malformed-served", MODERN, "accepts calls with malformed inputResponses";
            MrtrMissingInputRejected, "mrtr-missing-input-rejected", MODERN, "rejects a retry without the requested input";
            MrtrOnCompletion, "mrtr-on-completion", MODERN, "returns input_required from completion/complete";
            MrtrInvalidMethod, "mrtr-invalid-method", MODERN, "uses tools/list as the method of an input request";
            MrtrStateNumber, "mrtr-state-number", MODERN, "writes requestState as a number";
            MrtrStateUnbound, "mrtr-state-unbound", MODERN, "accepts the requestState of one call in another call";
            MrtrStateUnchecked, "mrtr-state-unchecked", MODERN, "accepts an altered requestState";
            MrtrStateCrash, "mrtr-state-crash", MODERN, "exits on a requestState that is not ASCII";
            MrtrRetryRejected, "mrtr-retry-rejected", MODERN, "rejects the requestState that it issued";
            MrtrExtraInputRejected, "mrtr-extra-input-rejected", MODERN, "rejects input that it did not request";
            MissingCapabilityCode, "missing-capability-code", MODERN, "reports a missing client capability with -32603";
            MissingCapabilityList, "missing-capability-list", MODERN, "writes requiredCapabilities as an array";
            InterimCaching, "interim-caching", MODERN, "puts caching hints into an input_required result";
        }
    };
}
