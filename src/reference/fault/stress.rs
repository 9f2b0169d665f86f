//! Servers that are hard to judge: some do not work at all, others conform in unusual ways.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! stress_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            ParseErrorWedges, "parse-error-wedges", FROM_2025_11_25, "takes a request for the rest of a line that is not JSON, then exits";
            CancellationWedges, "cancellation-wedges", FROM_2025_11_25, "serves nothing more after cancelling an unknown request";
            NotificationWedges, "notification-wedges", FROM_2025_11_25, "serves nothing more after an unknown notification";
            Floods, "floods", EVERY, "writes notifications without end after the first response";
            HugeLine, "huge-line", EVERY, "answers tools/list with a message of 100 MiB";
            DeepNesting, "deep-nesting", EVERY, "answers tools/list with a message nested 100,000 deep";
            NoNewline, "no-newline", EVERY, "writes 8 MiB without a newline before its first message";
            NeverAnswers, "never-answers", EVERY, "reads all input and answers nothing";
            SilentAfterOpening, "silent-after-opening", EVERY, "answers nothing once it is open";
            EmptyAfterOpening, "empty-after-opening", EVERY, "answers every request with the result {} once it is open";
            ErrorsAfterOpening, "errors-after-opening", EVERY, "answers every request with -32603 once it is open";
            AnswersGarbage, "answers-garbage", EVERY, "answers every request with a line that is not JSON";
            AnswersEmptyObject, "answers-empty-object", EVERY, "answers every request with the result {}";
            AnswersSameError, "answers-same-error", EVERY, "answers every request with the same error";
            IdsWrongType, "ids-wrong-type", EVERY, "returns integer ids as strings and all others as numbers";
            SlowStart, "slow-start", EVERY, "waits half a second before its first response";
            SlowAnswers, "slow-answers", EVERY, "conforms, but takes two seconds for every answer";
            SlowerAnswers, "slower-answers", EVERY, "conforms, but takes five seconds for every answer";
            SlowInTurn, "slow-in-turn", EVERY, "conforms, but takes two seconds for each message, one at a time";
            Pauses, "pauses", EVERY, "conforms, but stops for 0.6 seconds after each ping";
            SlowCalls, "slow-calls", EVERY, "conforms, but takes five seconds for every call";
            SlowTool, "slow-tool", EVERY, "conforms, but takes 1.3 seconds for a call of count";
            LastingTool, "lasting-tool", EVERY, "conforms, but takes 0.2 seconds for each number that count counts";
            ManyCallsExit, "many-calls-exit", EVERY, "exits when a call comes while 20 calls run";
            ManyCallsUnanswered, "many-calls-unanswered", EVERY, "never answers a call that comes while 20 calls run";
            InvalidArgumentsIgnored, "invalid-arguments-ignored", EVERY, "never answers a call with invalid arguments";
            ResponseWithoutResult, "response-without-result", EVERY, "writes responses with neither result nor error once it is open";
            RateLimitError, "rate-limit-error", EVERY, "conforms, but rejects every eighth request with a rate-limit error";
            DiesOnCall, "dies-on-call", EVERY, "exits on the first tools/call";
            StderrNoise, "stderr-noise", EVERY, "conforms, but writes 1 MiB to stderr";
            WithoutTools, "without-tools", EVERY, "conforms, but has no tools, resources, prompts, completions or logging";
            OnlyResources, "only-resources", EVERY, "conforms, but has nothing except resources";
            WithoutTasks, "without-tasks", FROM_2025_11_25, "conforms, but has no tasks";
            EmptyCursor, "empty-cursor", MODERN, "conforms, but issues the empty string as a cursor";
            Awkward, "awkward", EVERY, "conforms, but uses errors and retries wherever they are allowed";
            ChoosyTools, "choosy-tools", EVERY, "conforms, but its tools fail unless an argument is a plain word";
            HostileText, "hostile-text", EVERY, "conforms, but adds markup and control characters to every text";
        }
    };
}
