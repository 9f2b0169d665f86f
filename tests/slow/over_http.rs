//! Runs the suite against the built-in server over HTTP, in this process.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_conformance::internals::case::Case;
use mcp_conformance::internals::client::{FurtherTokens, HttpEndpoint};
use mcp_conformance::internals::run::{HttpTarget, Launcher};
use mcp_conformance::reference::{Fault, FaultSet, HttpFault, binds_every_address, serve_http, serve_http_protected};
use mcp_conformance::spec::Revision;

use crate::support::reference::{Chosen, ENDPOINTS, HTTP_VARIANTS, JOBS, RunResults, TIMEOUT, cases, run_cases};

/// Runs cases over HTTP against the built-in server with these faults, at one of its endpoints.
pub(crate) fn judge_over_http(
    faults: FaultSet,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    endpoint: &str,
) -> RunResults {
    // Faults of authorization have an effect only in a protected server, which needs a valid token.
    let token = faults.iter().any(Fault::requires_authorization).then(|| {
        let narrow = faults.iter().any(Fault::requires_narrow_token);
        if narrow { NARROW.to_owned() } else { TOKEN.to_owned() }
    });
    judge_with_token(faults, revisions, cases, endpoint, token)
}

/// Runs cases over HTTP against the built-in server with these faults, with a time limit of a request.
pub(crate) fn judge_over_http_with_timeout(
    faults: FaultSet,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    timeout: Duration,
) -> RunResults {
    let server = HttpServer { faults, endpoint: "mcp", token: None, second_user: "second", timeout };
    judge_on(server, revisions, cases)
}

/// Runs cases over HTTP against the conforming server, protected as one with this fault would be.
pub(crate) fn judge_like(fault: Fault, revisions: &[Revision], cases: impl Into<Chosen>, endpoint: &str) -> RunResults {
    let token = if fault.requires_narrow_token() { NARROW } else { TOKEN };
    let token = fault.requires_authorization().then(|| token.to_owned());
    let second_user = if fault.requires_guest() { "guest" } else { "second" };
    let faults = FaultSet::none();
    judge_on(HttpServer { faults, endpoint, token, second_user, timeout: TIMEOUT }, revisions, cases)
}

/// The token of the protected server.
const TOKEN: &str = "conformance-token";

/// A token that is valid for everything except tool calls.
const NARROW: &str = "conformance-token-narrow";

/// Runs cases over HTTP; where a token is given, against a protected server.
fn judge_with_token(
    faults: FaultSet,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    endpoint: &str,
    token: Option<String>,
) -> RunResults {
    let second_user = if faults.iter().any(Fault::requires_guest) { "guest" } else { "second" };
    judge_on(HttpServer { faults, endpoint, token, second_user, timeout: TIMEOUT }, revisions, cases)
}

/// The built-in server over HTTP, and how it is judged.
struct HttpServer<'a> {
    faults: FaultSet,
    endpoint: &'a str,
    token: Option<String>,
    /// What distinguishes the token of the second user.
    second_user: &'a str,
    timeout: Duration,
}

fn judge_on(server: HttpServer<'_>, revisions: &[Revision], cases: impl Into<Chosen>) -> RunResults {
    let HttpServer { faults, endpoint, token, second_user, timeout } = server;
    let tokens = FurtherTokens {
        second_user: token.as_ref().map(|_| format!("{TOKEN}-{second_user}")),
        foreign: token.as_ref().map(|_| format!("{TOKEN}-foreign")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let host = if binds_every_address(&faults) { "0.0.0.0:0" } else { "127.0.0.1:0" };
        let listener = tokio::net::TcpListener::bind(host).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let faults = Arc::new(faults);
        let server = match token {
            Some(_) => tokio::spawn(serve_http_protected(listener, faults, TOKEN.to_owned())),
            None => tokio::spawn(serve_http(listener, faults)),
        };
        let headers: Vec<(String, String)> =
            token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}"))).into_iter().collect();
        let address = format!("http://127.0.0.1:{port}/{endpoint}");
        let endpoint = HttpEndpoint::with_further_tokens(&address, &headers, &tokens, false).expect("it is an address");
        let launcher = Launcher::Http(HttpTarget { endpoint, command: None });
        let found = run_cases(launcher, revisions, cases, timeout, JOBS).await;
        server.abort();
        found
    })
}

/// The cases about HTTP.
pub(crate) fn http_cases() -> Vec<Arc<Case>> {
    cases().iter().filter(|case| case.speaks_of_http()).cloned().collect()
}

/// The runs over HTTP against the conforming server, at each endpoint, and its variants, made once.
pub(crate) fn clean_over_http() -> &'static [(String, RunResults)] {
    static RUNS: OnceLock<Vec<(String, RunResults)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let mut runs = Vec::new();
        for endpoint in ENDPOINTS {
            // Passive cases about HTTP need the cases of every transport as stimuli.
            let all = cases().to_vec();
            let revisions: &[Revision] =
                if endpoint == ENDPOINTS[0] { &Revision::ALL } else { &[Revision::V2024_11_05] };
            let found = judge_over_http(FaultSet::none(), revisions, all, endpoint);
            runs.push((format!("/{endpoint}"), found));
        }
        for variant in HTTP_VARIANTS {
            let found = judge_over_http(FaultSet::from(variant), &Revision::ALL, http_cases(), ENDPOINTS[0]);
            runs.push((variant.to_string(), found));
        }
        let every = Revision::ALL;
        let found = judge_with_token(FaultSet::none(), &every, http_cases(), ENDPOINTS[0], Some(TOKEN.to_owned()));
        runs.push(("protected".to_owned(), found));
        for variant in PROTECTED_VARIANTS {
            let has_effect =
                |revision: &Revision| variant.revisions().iter().any(|own| own.name() == revision.as_str());
            let revisions: Vec<Revision> = Revision::ALL.into_iter().filter(has_effect).collect();
            let found = judge_over_http(FaultSet::from(variant), &revisions, http_cases(), ENDPOINTS[0]);
            runs.push((variant.to_string(), found));
        }
        // With this token only tool calls are rejected, which matters to these cases alone.
        let of_auth: Vec<Arc<Case>> = http_cases().into_iter().filter(|case| case.id.starts_with("auth/")).collect();
        let found = judge_with_token(FaultSet::none(), &every, of_auth, ENDPOINTS[0], Some(NARROW.to_owned()));
        runs.push(("protected, with a token of narrow scope".to_owned(), found));
        let of_auth: Vec<Arc<Case>> = http_cases().into_iter().filter(|case| case.id.starts_with("auth/")).collect();
        let guest = Fault::Http(HttpFault::AuthHiddenToolServed);
        runs.push(("protected, with a guest".to_owned(), judge_like(guest, &every, of_auth, ENDPOINTS[0])));
        runs
    })
}

/// Variants of the protected server that conform in the revisions in which they have an effect.
const PROTECTED_VARIANTS: [Fault; 3] = [
    Fault::Http(HttpFault::AuthPathOnly),
    Fault::Http(HttpFault::AuthBareChallenge),
    Fault::Http(HttpFault::AuthDefaults),
];
