//! Servers that conform in ways that are easily mistaken for a deviation.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! variant_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            RelaysClientErrors, "relays-client-errors", HANDSHAKE, "conforms, but answers calls with the errors of the client";
            InterimWithNullContent, "interim-with-null-content", MODERN, "conforms, but writes null content next to input requests";
            InputBeforeValidation, "input-before-validation", MODERN, "conforms, but requests input before it validates arguments";
            PromptEmbedsArgument, "prompt-embeds-argument", FROM_2024_11_05, "conforms, but embeds a resource whose URI is an argument";
            MarkupExample, "markup-example", FROM_2024_11_05, "conforms, but quotes markup in the description of a tool";
            ForbiddenTaskToolError, "forbidden-task-tool-error", ONLY_2025_11_25, "conforms, but rejects forbidden tasks with tool errors";
            ParticularTools, "particular-tools", FROM_2025_06_18, "conforms, but its tools serve only values that it names elsewhere";
            RenderKinds, "render-kinds", FROM_2024_11_05, "conforms, but selects the kind of a result by an enumeration";
            RenderedImageDataUrl, "rendered-image-data-url", FROM_2024_11_05, "renders an image as a data: URL for one value of an enumeration";
            TemplateResourceEmpty, "template-resource-empty", FROM_2024_11_05, "returns resources of a template without text or blob";
            LinkedResourceEmpty, "linked-resource-empty", FROM_2025_06_18, "links to an unlisted resource that has neither text nor blob";
            PromptOptionWrapped, "prompt-option-wrapped", FROM_2024_11_05, "wraps content in an array if a prompt gets its optional argument";
            SurrogateIdEchoed, "surrogate-id-echoed", EVERY, "conforms, and returns ids with an escaped lone surrogate";
            ManyTools, "many-tools", FROM_2024_11_05, "conforms, and lists 600 further tools, all on one page";
            LongCursors, "long-cursors", FROM_2024_11_05, "conforms, but issues cursors of 4 KiB";
            OtherScripts, "other-scripts", FROM_2024_11_05, "conforms, but names things in other scripts than the Latin one";
            ServicesUnreachable, "services-unreachable", FROM_2024_11_05, "conforms, but its tools need a network that it does not have";
            QuotesArguments, "quotes-arguments", FROM_2024_11_05, "conforms, but its errors quote arguments and example paths";
            ResultRefused, "result-refused", FROM_2025_06_18, "conforms, but refuses own results that its schema does not allow";
            VanishingTool, "vanishing-tool", HANDSHAKE, "conforms, but a tool vanishes when any tool is called";
            EveryMember, "every-member", EVERY, "conforms, and writes every optional member";
            WritesInPieces, "writes-in-pieces", EVERY, "conforms, but writes each message in pieces";
            WritesTogether, "writes-together", EVERY, "conforms, but writes several messages at once";
            ProgressFractions, "progress-fractions", EVERY, "conforms, but reports progress in fractions";
            ResultNull, "result-null", EVERY, "returns null as the result of resources/templates/list";
        }
    };
}
