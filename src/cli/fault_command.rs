//! The command that shows a case fail: it runs the case against the reference server with the fault of the case.
//!
//! It is printed by `explain`, and the tests run what is printed, for every case.

use mcp_conformance::internals::case::{Case, HttpKind, Placeholder};
use mcp_conformance::reference::Fault;
use mcp_conformance::spec::{Revision, RevisionSet};

/// The address that the reference server is started at where a case is about HTTP.
const ADDRESS: &str = "127.0.0.1:8765";

/// The bearer token of the protected reference server; what is at the end of the others says what they are.
pub(super) const TOKEN: &str = "conformance-token";

/// How a case is shown to fail on the reference server with its fault.
pub(super) struct Demonstration {
    fault: Fault,
    /// The newest revision in which the fault has an effect, as some faults keep the server from offering that
    /// revision at all.
    pub(super) revision: Revision,
    /// The path of the address if it takes HTTP to see it.
    pub(super) path: Option<&'static str>,
    /// The token that the client sends, if the server is protected.
    pub(super) token: Option<String>,
    /// The token of another user, if the case sends it.
    pub(super) second_token: Option<String>,
    /// The token for another server, if the case sends it.
    pub(super) foreign_token: Option<String>,
}

impl Demonstration {
    /// The one for a case and its fault; none where the fault has no effect in any revision of the case.
    pub(super) fn of(case: &Case, fault: Fault) -> Option<Self> {
        let effective: RevisionSet =
            fault.revisions().iter().filter_map(|revision| revision.name().parse::<Revision>().ok()).collect();
        let revision = case.revisions.intersection(effective).iter().last()?;
        let needs_http = case.speaks_of_http() || fault.is_http_only() || fault.requires_authorization();
        let path = if case.http_kind() == Some(HttpKind::Sse) { "sse" } else { "mcp" };
        let scope = if fault.requires_narrow_token() { "-narrow" } else { "" };
        let token = fault.requires_authorization().then(|| format!("{TOKEN}{scope}"));
        let named = case.placeholders();
        let further =
            |placeholder, kind| (token.is_some() && named.contains(&placeholder)).then(|| format!("{TOKEN}-{kind}"));
        let second = if fault.requires_guest() { "guest" } else { "second" };
        let second_token = further(Placeholder::SecondAuthorization, second);
        let foreign_token = further(Placeholder::ForeignAuthorization, "foreign");
        Some(Self { fault, revision, path: needs_http.then_some(path), token, second_token, foreign_token })
    }
}

/// The command for a case and its fault; none where the fault has no effect in any revision of the case.
pub(super) fn fault_command(case: &Case, fault: Fault) -> Option<String> {
    let Demonstration { fault, revision, path, token, second_token, foreign_token } = Demonstration::of(case, fault)?;
    let mut environment = Vec::new();
    let mut client = vec![format!("--revision {revision}"), format!("--select {}", case.id)];
    let mut server = vec![format!("--fault {fault}")];
    if let Some(path) = path {
        client.push(format!("--url http://{ADDRESS}/{path}"));
        server.push(format!("--http {ADDRESS}"));
    }
    if let Some(token) = token {
        environment.push(format!("TOKEN={TOKEN}"));
        server.push("--protected TOKEN".to_owned());
        if fault.requires_narrow_token() {
            environment.push(format!("NARROW={token}"));
            client.push("--bearer-env NARROW".to_owned());
        } else {
            client.push("--bearer-env TOKEN".to_owned());
        }
        for (name, option, token) in
            [("SECOND", "--second-bearer-env", second_token), ("FOREIGN", "--foreign-bearer-env", foreign_token)]
        {
            let Some(token) = token else { continue };
            environment.push(format!("{name}={token}"));
            client.push(format!("{option} {name}"));
        }
    }
    let words = [environment, vec!["mcp-conformance".to_owned()], client];
    Some(format!("{} -- mcp-conformance serve {}", words.concat().join(" "), server.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    fn command(id: &str) -> String {
        let cases = cases::all(None).expect("the built-in cases load");
        let case = cases.iter().find(|case| case.id == id).unwrap_or_else(|| panic!("no case {id}"));
        let fault = case.fault.as_deref().expect("it has a fault").parse().expect("the fault is known");
        fault_command(case, fault).expect("the fault has an effect")
    }

    #[test]
    fn the_transport_and_the_token_are_those_that_the_case_needs() {
        assert_eq!(
            command("content/image-base64"),
            "mcp-conformance --revision 2026-07-28 --select content/image-base64 -- mcp-conformance serve \
             --fault image-data-url"
        );
        assert_eq!(
            command("http-sse/endpoint-first"),
            "mcp-conformance --revision 2024-11-05 --select http-sse/endpoint-first --url http://127.0.0.1:8765/sse \
             -- mcp-conformance serve --fault http-sse-endpoint-second --http 127.0.0.1:8765"
        );
        let narrow = command("auth/insufficient-scope");
        assert!(
            narrow.starts_with("TOKEN=conformance-token NARROW=conformance-token-narrow mcp-conformance "),
            "{narrow}"
        );
        let second = command("auth/state-of-others");
        assert!(second.contains(" SECOND=conformance-token-second ") && second.contains("-second-bearer-env SECOND"));
        assert!(command("auth/hidden-tools").contains(" SECOND=conformance-token-guest "));
        assert!(narrow.contains(" --bearer-env NARROW -- ") && narrow.ends_with(" --protected TOKEN"), "{narrow}");
    }
}
