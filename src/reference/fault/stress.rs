//! Servers that are hard to judge: some do not work at all, others conform in unusual ways.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! stress_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            Floods, "floods", EVERY, "writes notifications without end after the first response";
            HugeLine, "huge-line", EVERY, "answers tools/list with a message of 100 MiB";
            DeepNesting, "deep-nesting", EVERY, "answers tools/list with a message nested 100,000 deep";
            NoNewline, "no-newline", EVERY, "writes 8 MiB without a newline before its first message";
            NeverAnswers, "never-answers", EVERY, "reads all input and answers nothing";
            AnswersGarbage, "answers-garbage", EVERY, "answers every request with a line that is not JSON";
            AnswersEmptyObject, "answers-empty-object", EVERY, "answers every request with the result {}";
            AnswersSameError, "answers-same-error", EVERY, "answers every request with the same error";
            IdsWrongType, "ids-wrong-type", EVERY, "returns integer ids as strings and all others as numbers";
            SlowStart, "slow-start", EVERY, "waits half a second before its first response";
            DiesOnCall, "dies-on-call", EVERY, "exits on the first tools/call";
            StderrNoise, "stderr-noise", EVERY, "conforms, but writes 1 MiB to stderr";
            WithoutTools, "without-tools", EVERY, "conforms, but has no tools, resources, prompts or completions";
            WithoutTasks, "without-tasks", FROM_2025_11_25, "conforms, but has no tasks";
            EmptyCursor, "empty-cursor", MODERN, "conforms, but issues the empty string as a cursor";
            Awkward, "awkward", EVERY, "conforms, but uses errors and retries wherever they are allowed";
            ChoosyTools, "choosy-tools", EVERY, "conforms, but its tools fail unless an argument is a plain word";
            HostileText, "hostile-text", EVERY, "conforms, but adds markup and control characters to every text";
        }
    };
}
