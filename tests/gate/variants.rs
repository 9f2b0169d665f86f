//! Conforming servers that are easily mistaken for deviating ones, and faults that must not lead to findings of cases
//! about something else, in this process.

use mcp_conformance::reference::{Fault, FaultSet};

use crate::support::reference::{CONFORMING, cases, judge, revisions_of};
use crate::support::result::has_findings_of_only;
use crate::support::{Trial, trial};

/// Faults with the only cases that may have a finding, all others being about something else.
const SINGLE_CAUSES: [(Fault, &[&str]); 20] = [
    (Fault::UnknownToolSucceeds, &["tools/call/unknown-tool-rejected", "tools/call/unknown-tool"]),
    (Fault::UnknownMethodSucceeds, &["jsonrpc/unknown-method-result"]),
    (Fault::RenderedImageDataUrl, &["content/image-base64"]),
    (Fault::TemplateResourceEmpty, &["resources/read/shape"]),
    (Fault::ResultNull, &["jsonrpc/result-object"]),
    (Fault::NotificationPinsEra, &["stateless/notification-pins-nothing", "cancellation/without-params"]),
    (
        Fault::ParseErrorWedges,
        &[
            "jsonrpc/parse-error-survived",
            "jsonrpc/parse-error-code",
            "jsonrpc/invalid-utf8-survived",
            "jsonrpc/deep-nesting",
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
    (Fault::ReadsUnanswered, &["resources/read/answered"]),
    (Fault::SubscribeUnanswered, &["resources/subscribe/answered"]),
    (Fault::CompletionUnanswered, &["completion/answered"]),
    (Fault::SetLevelUnanswered, &["logging/answered"]),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for variant in CONFORMING.into_iter().filter(|variant| !variant.is_http_only()) {
        let name = format!("case/variant/{variant}/stdio");
        trials.push(trial(name, move || has_findings_of(variant, &[])));
    }
    for (fault, allowed) in SINGLE_CAUSES {
        trials.push(trial(format!("case/single-cause/{fault}"), move || has_findings_of(fault, allowed)));
    }
    trials
}

/// Runs every case on a server with a fault, and fails unless these cases, and no others, have a finding.
fn has_findings_of(fault: Fault, allowed: &[&str]) -> Result<(), String> {
    let found = judge(FaultSet::from(fault), &revisions_of(fault), cases().to_vec());
    has_findings_of_only(&found, allowed)
}
