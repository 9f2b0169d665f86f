//! Faults of the built-in server that only cases about them find.

use mcp_conformance::reference::Fault;

/// Faults with the only cases that may have a finding, all others being about something else.
pub(crate) const SINGLE_CAUSES: [(Fault, &[&str]); 25] = [
    (Fault::UnknownToolSucceeds, &["tools/call/unknown-tool-rejected", "tools/call/unknown-tool"]),
    (Fault::UnknownMethodSucceeds, &["jsonrpc/unknown-method-result"]),
    (Fault::RenderedImageDataUrl, &["content/image-base64"]),
    (Fault::TemplateResourceEmpty, &["resources/read/shape"]),
    (Fault::ResultNull, &["jsonrpc/result-object"]),
    (Fault::ErrorIdEmpty, &["jsonrpc/error-id-echo", "jsonrpc/error-id-readable"]),
    (Fault::ReadableIdOmitted, &["jsonrpc/error-id-readable"]),
    (Fault::NotificationPinsEra, &["stateless/notification-pins-nothing", "cancellation/without-params"]),
    (
        Fault::ParseErrorWedges,
        &[
            "jsonrpc/parse-error-survived",
            "jsonrpc/parse-error-code",
            "jsonrpc/invalid-utf8-survived",
            "jsonrpc/deep-nesting",
            "jsonrpc/long-number",
            "jsonrpc/lone-surrogate",
            "jsonrpc/lone-surrogate-id",
        ],
    ),
    (Fault::CancellationWedges, &["jsonrpc/cancelled-unanswered", "cancellation/without-params"]),
    (Fault::NotificationWedges, &["jsonrpc/notification-unanswered"]),
    (Fault::ToolsListUnanswered, &["tools/list/answered"]),
    (Fault::CallsUnanswered, &["tools/call/answered"]),
    (Fault::ToolUnanswered, &["tools/call/answered"]),
    (Fault::PromptsListUnanswered, &["prompts/list/answered"]),
    (Fault::PromptsUnanswered, &["prompts/get/answered"]),
    (Fault::ResourcesListUnanswered, &["resources/list/answered"]),
    (Fault::TemplatesUnanswered, &["resources/templates/answered"]),
    (Fault::TemplatesNotFound, &["resources/templates/served"]),
    (Fault::ReadsUnanswered, &["resources/read/answered"]),
    (Fault::SubscribeUnanswered, &["resources/subscribe/answered"]),
    (Fault::CompletionUnanswered, &["completion/answered"]),
    (Fault::SetLevelUnanswered, &["logging/answered"]),
    (Fault::SetLevelNotFound, &["logging/set-level"]),
    (Fault::IdleNotifications, &["lifecycle/quiet-while-idle"]),
];
