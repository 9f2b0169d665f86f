//! Runs the suite against the built-in server, in this process.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mcp_conformance::event::{CaseResult, Event, RunSummary, Sink};
use mcp_conformance::internals::case::{self, Case, SelectedCases};
use mcp_conformance::internals::client::{FurtherTokens, HttpEndpoint};
use mcp_conformance::internals::run::{CallPolicy, HttpTarget, Launcher, Plan, Revisions, run};
use mcp_conformance::reference::{Fault, FaultSet, HttpFault, binds_every_address, serve_http, serve_http_protected};
use mcp_conformance::spec::Revision;
use tokio::sync::watch;

use crate::evaluation::faults;
use crate::sequences;
use crate::sequences::faults::StateFault;

/// The results of a run.
#[derive(Debug, Default)]
pub(crate) struct RunResults {
    /// The result of each case in each revision.
    pub(crate) results: Vec<CaseResult>,
    /// The end of the run.
    pub(crate) summary: Option<RunSummary>,
}

impl RunResults {
    /// The result of a case in a revision.
    pub(crate) fn result(&self, case: &str, revision: Revision) -> Option<&CaseResult> {
        self.results.iter().find(|result| result.case == case && result.revision == revision)
    }
}

struct Collect(Arc<Mutex<RunResults>>);

impl Sink for Collect {
    fn on(&mut self, event: &Event) -> std::io::Result<()> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CaseFinished(result) => found.results.push(result.as_ref().clone()),
            Event::RunFinished(summary) => found.summary = Some(summary.as_ref().clone()),
            _ => {}
        }
        Ok(())
    }
}

/// The built-in cases, checked as strictly as those of a user.
pub(crate) fn cases() -> &'static [Arc<Case>] {
    static CASES: OnceLock<Vec<Arc<Case>>> = OnceLock::new();
    CASES.get_or_init(|| {
        let own = Fault::all().iter().copied().map(Fault::name);
        let of_state: Vec<String> = sequences::faults::all().iter().map(StateFault::name).collect();
        let evaluated = faults::all().map(|fault| -> &str { fault.name() }).chain(of_state.iter().map(String::as_str));
        let faults: Vec<&str> = own.map(|name| -> &str { name }).chain(evaluated).collect();
        let cases = case::parse_cases(case::read_embedded(), &faults, case::Trust::Nothing);
        cases
            .unwrap_or_else(|error| panic!("the built-in cases are invalid:\n{error}"))
            .into_iter()
            .map(Arc::new)
            .collect()
    })
}

/// The paths of the built-in server: that of Streamable HTTP, and that of the older HTTP+SSE transport.
pub(crate) const ENDPOINTS: [&str; 2] = ["mcp", "sse"];

/// The cases of a run: those of a selection with their stimuli, or all of a list.
pub(crate) struct Chosen(SelectedCases);

impl From<SelectedCases> for Chosen {
    fn from(selected: SelectedCases) -> Self {
        Self(selected)
    }
}

impl From<Vec<Arc<Case>>> for Chosen {
    fn from(cases: Vec<Arc<Case>>) -> Self {
        Self(SelectedCases { cases, stimuli: BTreeSet::new() })
    }
}

/// The usual timeout of a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Runs cases against the built-in server with these faults.
pub(crate) fn judge(faults: FaultSet, revisions: &[Revision], cases: impl Into<Chosen>) -> RunResults {
    judge_launched(Launcher::Reference(Arc::new(faults)), revisions, cases)
}

/// Runs cases against the servers that a launcher starts.
pub(crate) fn judge_launched(launcher: Launcher, revisions: &[Revision], cases: impl Into<Chosen>) -> RunResults {
    judge_with_timeout(launcher, revisions, cases, TIMEOUT)
}

/// The same with another timeout of a request.
///
/// The built-in server is a task of the same runtime, so that the clock can be paused: it moves on only when both sides
/// wait, waits take no time, and a busy machine cannot make an answer late. Any other server has a thread or a process of
/// its own, for which the clock of this runtime would not wait.
pub(crate) fn judge_with_timeout(
    launcher: Launcher,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    timeout: Duration,
) -> RunResults {
    let paused = matches!(launcher, Launcher::Reference(_));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(paused).build().expect("a runtime starts");
    runtime.block_on(run_cases(launcher, revisions, cases, timeout, JOBS))
}

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
    let server =
        HttpServer { faults, endpoint: "mcp", token: None, second_user: "second", timeout, jobs: default_jobs() };
    judge_on(server, revisions, cases)
}

/// Runs cases over HTTP against the conforming server, protected as one with this fault would be.
pub(crate) fn judge_like(fault: Fault, revisions: &[Revision], cases: impl Into<Chosen>, endpoint: &str) -> RunResults {
    let token = if fault.requires_narrow_token() { NARROW } else { TOKEN };
    let token = fault.requires_authorization().then(|| token.to_owned());
    let second_user = if fault.requires_guest() { "guest" } else { "second" };
    let faults = FaultSet::none();
    judge_on(HttpServer { faults, endpoint, token, second_user, timeout: TIMEOUT, jobs: JOBS }, revisions, cases)
}

/// How many processes run in parallel.
const JOBS: usize = 4;

/// The default number of processes that run in parallel, which alone grows for a slow server.
fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(JOBS, |cores| (cores.get() * 2).max(JOBS))
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
    judge_on(HttpServer { faults, endpoint, token, second_user, timeout: TIMEOUT, jobs: JOBS }, revisions, cases)
}

/// The built-in server over HTTP, and how it is judged.
struct HttpServer<'a> {
    faults: FaultSet,
    endpoint: &'a str,
    token: Option<String>,
    /// What distinguishes the token of the second user.
    second_user: &'a str,
    timeout: Duration,
    jobs: usize,
}

fn judge_on(server: HttpServer<'_>, revisions: &[Revision], cases: impl Into<Chosen>) -> RunResults {
    let HttpServer { faults, endpoint, token, second_user, timeout, jobs } = server;
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
        let found = run_cases(launcher, revisions, cases, timeout, jobs).await;
        server.abort();
        found
    })
}

async fn run_cases(
    launcher: Launcher,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    timeout: Duration,
    jobs: usize,
) -> RunResults {
    let Chosen(SelectedCases { cases, stimuli }) = cases.into();
    let plan = Plan {
        launcher,
        revisions: Revisions::Named(revisions.to_vec()),
        cases,
        stimuli,
        calls: CallPolicy::NonDestructive,
        hints: Vec::new(),
        timeout,
        startup_timeout: Duration::from_secs(5),
        shutdown_grace: Duration::from_millis(300),
        jobs,
        seed: 1,
        fuzz: None,
        // The built-in server is deterministic; `tests/gating.rs` tests retries.
        retries: 0,
        show_wire: false,
        save_transcript: false,
        reproduce_prefix: "mcp-conformance".to_owned(),
        reproduce_suffix: String::new(),
    };
    let found = Arc::new(Mutex::new(RunResults::default()));
    let sink: Arc<Mutex<dyn Sink>> = Arc::new(Mutex::new(Collect(Arc::clone(&found))));
    let (_running, stop) = watch::channel(false);
    run(plan, sink, stop).await.expect("the sink takes every event");
    std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Conforming variants of the built-in server, for behaviour that the default one does not have.
pub(crate) const VARIANTS: [Fault; 5] =
    [Fault::WithoutTools, Fault::WithoutTasks, Fault::EmptyCursor, Fault::Awkward, Fault::ChoosyTools];

/// The runs of every case against the conforming variants, made once.
pub(crate) fn variants() -> &'static [(Fault, RunResults)] {
    static RUNS: OnceLock<Vec<(Fault, RunResults)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |fault| (fault, judge(FaultSet::from(fault), &Revision::ALL, cases().to_vec()));
        VARIANTS.into_iter().map(run).collect()
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

/// Variants of the built-in server that conform over HTTP, for behaviour that the default one does not have.
pub(crate) const HTTP_VARIANTS: [Fault; 2] = [Fault::Http(HttpFault::Sessionless), Fault::Http(HttpFault::Polls)];

/// The run of every case against the conforming server in every revision, made once.
pub(crate) fn clean() -> &'static RunResults {
    static CLEAN: OnceLock<RunResults> = OnceLock::new();
    CLEAN.get_or_init(|| judge(FaultSet::none(), &Revision::ALL, cases().to_vec()))
}
