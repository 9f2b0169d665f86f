//! Conforming servers that are easily mistaken for deviating ones, and faults that must not lead to findings of cases
//! about something else.

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use mcp_conformance::event::CaseResult;
use mcp_conformance::reference::{Fault, FaultSet, HttpFault};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use crate::builtin::{ENDPOINTS, RunResults, VARIANTS, cases, judge, judge_over_http};
use crate::waiting_trial;

/// The variants that conform, on every transport or over HTTP alone.
pub(crate) const CONFORMING: [Fault; 19] = [
    Fault::RelaysClientErrors,
    Fault::InterimWithNullContent,
    Fault::InputBeforeValidation,
    Fault::PromptEmbedsArgument,
    Fault::MarkupExample,
    Fault::ForbiddenTaskToolError,
    Fault::WithoutTools,
    Fault::OnlyResources,
    Fault::Http(HttpFault::MediaTypesUpperCase),
    Fault::Http(HttpFault::IdentityRequired),
    Fault::Http(HttpFault::AuthErrorBody),
    Fault::Http(HttpFault::AuthErrorWithId),
    Fault::Http(HttpFault::AuthOAuthBody),
    Fault::Http(HttpFault::AuthPageBody),
    Fault::ParticularTools,
    Fault::RenderKinds,
    Fault::SurrogateIdEchoed,
    Fault::Http(HttpFault::UnknownNotification400),
    Fault::Http(HttpFault::NameHeaderRequired),
];

/// Faults with the only cases that may have a finding, all others being about something else.
const SINGLE_CAUSES: [(Fault, &[&str]); 19] = [
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
    for variant in CONFORMING {
        if !variant.is_http_only() {
            trials.push(waiting_trial(format!("case/variant/{variant}/stdio"), move || {
                has_no_finding(&judge(FaultSet::from(variant), &revisions(variant), cases().to_vec()))
            }));
        }
        trials.push(waiting_trial(format!("case/variant/{variant}/http"), move || has_no_finding(&over_http(variant))));
    }
    // Over standard input and output, all cases run against these once.
    for variant in VARIANTS.into_iter().filter(|variant| !CONFORMING.contains(variant)) {
        trials.push(waiting_trial(format!("case/variant/{variant}/http"), move || has_no_finding(&over_http(variant))));
    }
    for (fault, allowed) in SINGLE_CAUSES {
        trials.push(waiting_trial(format!("case/single-cause/{fault}"), move || {
            let found = judge(FaultSet::from(fault), &revisions(fault), cases().to_vec());
            has_findings_of_only(&found, allowed)
        }));
    }
    for fault in [HttpFault::StreamWithoutData, HttpFault::StreamCutData].map(Fault::Http) {
        trials.push(waiting_trial(format!("case/http/stream-well-formed/{fault}"), move || {
            let found = over_http(fault);
            let mut verdicts = found.results.iter().filter(|result| result.case == "http/stream-well-formed");
            let is_found = verdicts.any(|result| matches!(result.verdict, Verdict::Fail | Verdict::Warn));
            if is_found { Ok(()) } else { Err("http/stream-well-formed has no finding".to_owned()) }
        }));
    }
    trials.push(waiting_trial("case/media-types-in-another-spelling-change-no-verdict", || {
        has_verdicts_of_conforming(Fault::Http(HttpFault::MediaTypesUpperCase))
    }));
    trials.push(waiting_trial(
        "case/an-own-authorization-scheme-is-no-failure",
        an_own_authorization_scheme_is_no_failure,
    ));
    trials
}

/// The revisions in which a fault shows.
fn revisions(fault: Fault) -> Vec<Revision> {
    let names: BTreeSet<&str> = fault.revisions().iter().map(|revision| revision.name()).collect();
    Revision::ALL.into_iter().filter(|revision| names.contains(revision.as_str())).collect()
}

/// The run of every case over Streamable HTTP.
fn over_http(fault: Fault) -> RunResults {
    judge_over_http(FaultSet::from(fault), &revisions(fault), cases().to_vec(), ENDPOINTS[0])
}

fn has_no_finding(found: &RunResults) -> Result<(), String> {
    has_findings_of_only(found, &[])
}

/// Fails if the run had a problem, or another verdict than pass and skip for a case that is not allowed to have one.
fn has_findings_of_only(found: &RunResults, allowed: &[&str]) -> Result<(), String> {
    let summary = found.summary.as_ref().ok_or("the run did not end")?;
    if let Some(problem) = &summary.problem {
        return Err(format!("the run had a problem: {}", problem.message));
    }
    let wrong = found.results.iter().filter(|result| {
        !matches!(result.verdict, Verdict::Pass | Verdict::Skip) && !allowed.contains(&result.case.as_str())
    });
    let texts: Vec<String> = wrong
        .map(|result| {
            let messages: Vec<_> = result.findings.iter().map(|finding| (&finding.message, &finding.actual)).collect();
            format!(
                "{} {} in {}: {:?} {messages:?}",
                result.verdict.as_str(),
                result.case,
                result.revision,
                result.reason
            )
        })
        .collect();
    if let Some(missing) = allowed
        .iter()
        .find(|case| !found.results.iter().any(|result| result.case == **case && !result.findings.is_empty()))
    {
        return Err(format!("{missing} has no finding"));
    }
    if texts.is_empty() { Ok(()) } else { Err(texts.join("\n")) }
}

/// Fails if a case has another verdict than for the conforming server over HTTP.
fn has_verdicts_of_conforming(variant: Fault) -> Result<(), String> {
    let conforming = judge_over_http(FaultSet::none(), &revisions(variant), cases().to_vec(), ENDPOINTS[0]);
    let found = over_http(variant);
    // Whether one connection reads a list twice depends on which case runs where.
    let depends_on_order = |result: &&CaseResult| {
        result.case.ends_with("/list/changed-sent") && matches!(result.verdict, Verdict::Pass | Verdict::Skip)
    };
    let other: Vec<String> = conforming
        .results
        .iter()
        .filter(|result| !depends_on_order(result))
        .filter(|result| {
            found.result(&result.case, result.revision).is_none_or(|own| {
                // Whether a case is skipped shows whether the message was recognized.
                own.verdict != result.verdict
            })
        })
        .map(|result| format!("{} in {}: not {}", result.case, result.revision, result.verdict.as_str()))
        .collect();
    if conforming.results.is_empty() {
        return Err("no case was judged".to_owned());
    }
    if other.is_empty() { Ok(()) } else { Err(other.join("\n")) }
}

/// A server with tokens of its own should follow the authorization pages, but need not.
fn an_own_authorization_scheme_is_no_failure() -> Result<(), String> {
    let found = over_http(Fault::Http(HttpFault::AuthOwnScheme));
    let summary = found.summary.as_ref().ok_or("the run did not end")?;
    if let Some(problem) = &summary.problem {
        return Err(format!("the run had a problem: {}", problem.message));
    }
    let wrong: Vec<String> = found
        .results
        .iter()
        .filter(|result| matches!(result.verdict, Verdict::Fail | Verdict::Error))
        .map(|result| {
            format!("{} {} in {}: {:?}", result.verdict.as_str(), result.case, result.revision, result.findings)
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
