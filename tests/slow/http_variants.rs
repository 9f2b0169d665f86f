//! Conforming servers that are easily mistaken for deviating ones, over HTTP.

use std::time::Duration;

use mcp_conformance::event::CaseResult;
use mcp_conformance::reference::{Fault, FaultSet, HttpFault};
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

use super::over_http::{judge_over_http, judge_over_http_with_timeout};
use crate::support::reference::{CONFORMING, ENDPOINTS, LARGE_VARIANTS, RunResults, VARIANTS, cases, revisions_of};
use crate::support::result::has_findings_of_only;
use crate::support::{Trial, trial};

/// Faults that are not the one that a case names, with the case that finds them.
const FURTHER_FORMS: [(&str, HttpFault); 3] = [
    ("http/stream-well-formed", HttpFault::StreamWithoutData),
    ("http/stream-well-formed", HttpFault::StreamCutData),
    ("http/paused-request", HttpFault::PartsDecoded),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let others = VARIANTS.into_iter().filter(|variant| !CONFORMING.contains(variant));
    for variant in CONFORMING.into_iter().chain(others).chain(LARGE_VARIANTS) {
        trials.push(trial(format!("case/variant/{variant}/http"), move || {
            has_findings_of_only(&over_http(variant), &[])
        }));
    }
    for (case, fault) in FURTHER_FORMS {
        let fault = Fault::Http(fault);
        trials.push(trial(format!("case/{case}/{fault}"), move || {
            let found = over_http(fault);
            let mut verdicts = found.results.iter().filter(|result| result.case == case);
            let is_found = verdicts.any(|result| matches!(result.verdict, Verdict::Fail | Verdict::Warn));
            if is_found { Ok(()) } else { Err(format!("{case} has no finding")) }
        }));
    }
    trials.push(trial("case/single-cause/progress-unknown-token/http", || {
        // Progress without a request of its own may well be the same on two streams.
        has_findings_of_only(&over_http(Fault::ProgressUnknownToken), &["progress/token", "progress/token-type"])
    }));
    trials.push(trial("case/media-types-in-another-spelling-change-no-verdict", || {
        has_verdicts_of_conforming(Fault::Http(HttpFault::MediaTypesUpperCase))
    }));
    trials.push(trial(
        "case/a-get-stream-that-holds-up-requests-is-the-only-failure",
        a_get_stream_that_holds_up_requests_is_the_only_failure,
    ));
    trials.push(trial("case/an-own-authorization-scheme-is-no-failure", an_own_authorization_scheme_is_no_failure));
    trials
}

/// A server that answers no request while a GET stream is open is judged without one: one case fails, the others run.
fn a_get_stream_that_holds_up_requests_is_the_only_failure() -> Result<(), String> {
    const CASE: &str = "http/get-holds-up-posts";
    // One revision, as the streams that cases open hold up the requests of others as well.
    let revision = Revision::V2025_11_25;
    let timeout = Duration::from_secs(5);
    let faults = FaultSet::from(Fault::Http(HttpFault::GetBlocksPosts));
    let found = judge_over_http_with_timeout(faults, &[revision], cases().to_vec(), timeout);
    if found.result(CASE, revision).is_none_or(|result| result.verdict != Verdict::Fail) {
        return Err(format!("{CASE} does not fail"));
    }
    let other: Vec<String> = found
        .results
        .iter()
        .filter(|result| matches!(result.verdict, Verdict::Fail | Verdict::Error) && result.case != CASE)
        .map(|result| format!("{} in {}: {}", result.case, result.revision, result.verdict.as_str()))
        .collect();
    if !other.is_empty() {
        return Err(other.join("\n"));
    }
    let says = found.notes.iter().any(|note| note.contains("no request while a GET stream is open"));
    if says { Ok(()) } else { Err(format!("no note says that the run went on without GET streams: {:?}", found.notes)) }
}

/// The run of every case over Streamable HTTP.
fn over_http(fault: Fault) -> RunResults {
    judge_over_http(FaultSet::from(fault), &revisions_of(fault), cases().to_vec(), ENDPOINTS[0])
}

/// Fails if a case has another verdict than for the conforming server over HTTP.
fn has_verdicts_of_conforming(variant: Fault) -> Result<(), String> {
    let conforming = judge_over_http(FaultSet::none(), &revisions_of(variant), cases().to_vec(), ENDPOINTS[0]);
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
