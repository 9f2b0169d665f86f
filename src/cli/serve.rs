//! `serve`: runs the reference server.

use std::io::{self, Write};
use std::process::Stdio;

use mcp_conformance::reference::{self, Fault, FaultSet, Surroundings};
use mcp_conformance::report::Conclusion;

use super::args::ServeArgs;
use super::error::CliError;

/// Serves standard input and output until the input ends.
pub(super) fn serve(args: &ServeArgs) -> Result<Conclusion, CliError> {
    let faults: FaultSet = args.fault.iter().copied().collect();
    let surroundings = if args.http.is_some() { Surroundings::default() } else { surroundings(&faults) };
    let faults = faults.started_in(surroundings);
    let token = args.protected.as_ref().map(|variable| {
        let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
        token.ok_or_else(|| CliError::ProtectionToken(variable.clone()))
    });
    let token = token.transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    // A server goes on where nobody reads what it logs.
    if let Some(noise) = reference::stderr_noise(&faults) {
        let _unread = io::stderr().write_all(noise.as_bytes());
    }
    if let Some(line) = reference::stderr_line(&faults) {
        let _unread = io::stderr().write_all(line);
    }
    let served = runtime.block_on(async {
        if reference::leaves_process(&faults) {
            leave_process()?;
        }
        if reference::ignores_sigterm_before_eof(&faults) {
            ignore_sigterm()?;
        }
        if let Some(mut address) = args.http {
            if reference::binds_every_address(&faults) {
                address.set_ip(std::net::Ipv4Addr::UNSPECIFIED.into());
            }
            let listener = tokio::net::TcpListener::bind(address).await?;
            // With port 0 this is how the user learns the port.
            writeln!(io::stderr(), "listening at http://{}/mcp", listener.local_addr()?)?;
            let faults = faults.clone().into();
            return match token {
                Some(token) => reference::serve_http_protected(listener, faults, token).await,
                None => reference::serve_http(listener, faults).await,
            };
        }
        reference::serve(tokio::io::stdin(), tokio::io::stdout(), &faults).await
    });
    // A blocking read of standard input cannot be cancelled, and must not delay the end.
    runtime.shutdown_background();
    if let Err(error) = &served
        && let Some(crash) = error.get_ref().and_then(|inner| inner.downcast_ref::<reference::Crash>())
    {
        // This fault imitates a bug, so the process ends as after one: with a panic.
        panic!("{crash}");
    }
    served.map_err(CliError::Serve)?;
    Ok(Conclusion::Passed)
}

/// What the process finds. Standard error is tried only if a fault depends on it.
fn surroundings(faults: &FaultSet) -> Surroundings {
    let names_locale = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_logging = faults.contains(Fault::StderrNeeded);
    Surroundings {
        has_no_locale: !["LC_ALL", "LC_CTYPE", "LANG"].into_iter().any(names_locale),
        has_no_standard_error: is_logging && writeln!(io::stderr(), "serving").is_err(),
    }
}

/// Starts a process that nothing stops: it ends by itself in case nobody looks for it.
fn leave_process() -> io::Result<()> {
    let mut command = tokio::process::Command::new("sleep");
    command.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

/// Registering a signal handler disables the default action, which is to end the process.
#[cfg(unix)]
fn ignore_sigterm() -> io::Result<()> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map(drop)
}

#[cfg(not(unix))]
fn ignore_sigterm() -> io::Result<()> {
    Ok(())
}

/// Lists the faults: name, revisions in which it has an effect, and what it does.
pub(super) fn list_faults(out: &mut dyn Write) -> io::Result<()> {
    let width = Fault::all().iter().map(|fault| fault.name().len()).max().unwrap_or(0);
    let rows: Vec<(&Fault, String)> = Fault::all().iter().map(|fault| (fault, span(*fault))).collect();
    let span_width = rows.iter().map(|(_, span)| span.len()).max().unwrap_or(0);
    for (fault, span) in &rows {
        let transport = if fault.is_http_only() { " (over HTTP)" } else { "" };
        writeln!(out, "{:<width$}  {span:<span_width$}  {}{transport}", fault.name(), fault.description())?;
    }
    writeln!(out, "{} faults", rows.len())
}

/// The revisions in which a fault has an effect, in their shortest form.
fn span(fault: Fault) -> String {
    let revisions = fault.revisions().iter().filter_map(|revision| revision.to_string().parse().ok()).collect();
    super::list::span(revisions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_listed_with_its_description() {
        let mut bytes = Vec::new();
        list_faults(&mut bytes).expect("a vector takes all that is written");
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert_eq!(text.lines().count(), Fault::all().len() + 1);
        for fault in Fault::all() {
            assert!(!span(*fault).is_empty(), "{}", fault.name());
            assert!(text.contains(fault.name()) && text.contains(fault.description()));
        }
    }
}
