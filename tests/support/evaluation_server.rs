//! The reference server with evaluation faults, as a program: it is this test program, started with a first argument
//! that no filter has.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use mcp_conformance::reference::{
    Crash, FaultSet, Interceptor, InterceptorFactory, serve_http_intercepted, serve_intercepted,
};

use super::application::Application;
use super::evaluation_faults::{self, EvaluationFault, State};
use super::state_faults::{self, StateFault};

/// The first argument of the program that serves.
const SERVE: &str = "--serve-with-evaluation-faults";

/// The command line of the server.
pub(crate) fn command() -> Result<[String; 2], String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
    Ok([program.display().to_string(), SERVE.to_owned()])
}

/// Serves, if the program was started as the server: `[--http ADDRESS] [--application plain|eventual] [--fault NAME]...`.
pub(crate) fn serve_if_requested() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(SERVE) {
        return None;
    }
    Some(match parse(arguments).and_then(|options| serve(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error leaves the exit code.
            let _closed = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    })
}

/// What to serve.
#[derive(Debug, Default)]
struct Options {
    address: Option<String>,
    /// The names of the faults.
    faults: Vec<String>,
    /// Whether the application of the evaluation of sequences is served, and in which variant.
    application: Option<String>,
}

impl Options {
    /// Makes the interceptor of each connection.
    fn interceptors(&self) -> Result<InterceptorFactory, String> {
        let names = self.faults.iter();
        if let Some(application) = &self.application {
            let faults: Option<Vec<StateFault>> = names.map(|name| state_faults::find(name)).collect();
            let fault = faults.ok_or("no state fault has this name")?.first().copied();
            let is_eventual = application == "eventual";
            return Ok(Arc::new(move || Box::new(Application::new(fault, is_eventual))));
        }
        let faults = names.map(|name| evaluation_faults::find(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(move || interceptor(&faults)))
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--http" => options.address = Some(value),
            "--fault" => options.faults.push(value),
            "--application" => options.application = Some(value),
            _ => return Err(format!("{option} is not an option")),
        }
    }
    Ok(options)
}

fn serve(options: &Options) -> Result<(), String> {
    let interceptors = options.interceptors()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let Some(address) = &options.address else {
            let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
            return serve_intercepted(input, output, &FaultSet::none(), interceptors()).await;
        };
        let listener = tokio::net::TcpListener::bind(address).await?;
        writeln!(std::io::stderr(), "listening at http://{}/mcp", listener.local_addr()?)?;
        serve_http_intercepted(listener, Arc::default(), interceptors).await
    });
    // A blocking read of standard input cannot be cancelled, and must not delay the end.
    runtime.shutdown_background();
    match served {
        Err(error) if error.get_ref().is_some_and(|inner| inner.downcast_ref::<Crash>().is_some()) => {
            // The fault imitates a bug, so the process ends as after one: with a panic.
            panic!("{error}");
        }
        served => served.map_err(|error| error.to_string()),
    }
}

/// The interceptor of a connection to a server with these faults.
pub(crate) fn interceptor(faults: &[EvaluationFault]) -> Box<dyn Interceptor> {
    Box::new(State::new(faults))
}
