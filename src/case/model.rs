//! A parsed case: a value in which nothing contradictory can be written.
//!
//! A case is one JSONC file. It does one of three things:
//!
//! - a **passive** case names values in the traffic of a run (`watch`) and the rules that each of them keeps
//!   (`rules`). It sends nothing;
//! - an **active** case sends messages (`steps`) and says which responses are right;
//! - a **fuzz** case names a property of the responses to generated calls (`fuzz`).
//!
//! What the first two do is in `passive` and `active`. The types of the file itself are in `file`, and `parse` turns
//! the one into the other.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;

use super::active::{Action, Active};
use super::checks::Oracle;
use super::http_step::HttpKind;
use super::lazy_schema::LazySchema;
use super::passive::{Passive, Watch, WatchKind};
use super::placeholder::Placeholder;
#[cfg(test)]
use super::schema_types as types;
use crate::spec::{Catalogue, Requirement, Revision, RevisionSet, Transport};

/// Where a case comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It is built in.
    Embedded,
    /// It is the user's own, in this file.
    File(PathBuf),
}

/// A case, ready to run.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its path below the directory of cases, without the extension: `tools/call/unknown-tool`.
    pub id: String,
    /// Where it comes from.
    pub source: Source,
    /// What a conforming server does.
    pub title: String,
    /// The requirements that it checks, the main one of each revision first.
    pub requirements: Vec<&'static Requirement>,
    /// The revisions that it runs in: never empty.
    pub revisions: RevisionSet,
    /// Names to select it by, in addition to its id and area.
    pub tags: Vec<String>,
    /// Why the rule matters and how fair readings of it differ.
    pub why: Option<String>,
    /// How to fix a server that violates the rule.
    pub fix: String,
    /// The fault of the reference server that makes it fail.
    pub fault: Option<String>,
    /// What the server has to support for it to apply.
    pub needs: Needs,
    /// What it does.
    pub body: Body,
}

/// What a case does.
#[derive(Debug, Clone)]
pub enum Body {
    /// It checks what other cases and the discovery of the server provoke, and sends nothing.
    Passive(Passive),
    /// It sends messages and checks the responses.
    Active(Active),
    /// It checks the responses to generated calls.
    Fuzz(Oracle),
}

/// What the server has to support for a case to apply.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "needs", extend("minProperties" = 1)))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Needs {
    /// Capabilities that the server declared, with dots between the names of nested members (`tools.listChanged`);
    /// with a leading `!`, capabilities that it did not declare.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::CapabilityPath>>"))]
    pub capabilities: Vec<String>,
    /// A JSON Schema; the case uses only tools whose definition is valid against it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub tool: Option<LazySchema>,
    /// A JSON Schema; the case uses only tools during whose plain call the server made a request of the client that
    /// is valid against it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub client_request: Option<LazySchema>,
    /// Whether the case is about tools that did not answer their first call. If there are any, it is repeated for some of them on
    /// a process of its own, whatever `process` says, and their responses are waited for six times as long as others. If all
    /// tools answered, it is about one of those, on the process that `process` names.
    #[serde(default)]
    pub unanswered_tool: bool,
    /// Whether the case uses the tool whose first call took longest, among those that it may use.
    #[serde(default)]
    pub slowest_tool: bool,
    /// Whether the case is for servers that open HTTP sessions (`true`), or for others (`false`); by default for both.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub http_session: Option<bool>,
    /// The transport over HTTP, for a case about HTTP; by default Streamable HTTP.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "streamable")))]
    pub http: Option<HttpKind>,
    /// Whether the server has to run on this machine.
    #[serde(default)]
    pub local: bool,
}

impl Case {
    /// The first segment of the id: the part of the protocol that the case belongs to.
    #[must_use]
    pub fn area(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The cases, by id or area, that provoke what the case watches; none for a case that is not passive.
    #[must_use]
    pub fn provoked_by(&self) -> &[String] {
        match &self.body {
            Body::Passive(passive) => &passive.provoked_by,
            Body::Active(_) | Body::Fuzz(_) => &[],
        }
    }

    /// Whether the case judges what calls of tools bring, each result, request and notification by itself and whatever the
    /// arguments were. Those about security judge what is passed on, which may be an argument.
    #[must_use]
    pub fn is_about_calls(&self) -> bool {
        if self.area() == "security" || self.tags.iter().any(|tag| tag == "security") {
            return false;
        }
        let Body::Passive(Passive { watch: Watch::Values(values), .. }) = &self.body else { return false };
        match &values.kind {
            WatchKind::Result(methods) => methods.include("tools/call"),
            WatchKind::Request(_) | WatchKind::ClientRequest(_) | WatchKind::Notification(_) => true,
            WatchKind::Line
            | WatchKind::Message
            | WatchKind::Response(_)
            | WatchKind::Error(_)
            | WatchKind::Exchange(_) => false,
        }
    }

    /// Whether the case runs in `revision`.
    #[must_use]
    pub fn runs_in(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }

    /// Whether the case runs over a transport: one of its requirements is observable there, and its steps are
    /// possible.
    #[must_use]
    pub fn runs_over(&self, transport: Transport) -> bool {
        let is_observable =
            |requirement: &&Requirement| requirement.transport == Transport::Any || requirement.transport == transport;
        let is_possible = match &self.body {
            Body::Active(act) => transport == Transport::Stdio || !act.is_of_stdio(),
            Body::Passive(_) => true,
            // Anything else than messages is written to standard output only.
            Body::Fuzz(oracle) => transport == Transport::Stdio || *oracle != Oracle::StdoutNoise,
        };
        self.requirements.iter().copied().any(|requirement| is_observable(&requirement))
            && is_possible
            && (transport == Transport::Http || !self.speaks_of_http())
    }

    /// Whether the case is about HTTP requests and responses, which other transports do not have.
    #[must_use]
    pub fn speaks_of_http(&self) -> bool {
        match &self.body {
            Body::Active(act) => act.steps.iter().any(|step| {
                let mut responses = step.action.expected().responses().iter();
                matches!(step.action, Action::Http { .. } | Action::Close { .. })
                    || responses.any(|response| !response.status.is_empty() || response.exchange.is_some())
            }),
            Body::Passive(Passive { watch: Watch::Values(values), .. }) => {
                matches!(values.kind, WatchKind::Exchange(_))
            }
            Body::Passive(Passive { watch: Watch::Connections(rules), .. }) => {
                rules.iter().any(|rule| rule.check.is_of_http())
            }
            Body::Fuzz(_) => false,
        }
    }

    /// The transport over HTTP that the case is for; none where it is for every transport.
    #[must_use]
    pub fn http_kind(&self) -> Option<HttpKind> {
        self.needs.http.or_else(|| self.speaks_of_http().then(HttpKind::default))
    }

    /// The main requirement in `revision`: the first of the case's that the revision states.
    #[must_use]
    pub fn requirement_in(&self, revision: Revision) -> Option<&'static Requirement> {
        self.requirements.iter().copied().find(|requirement| requirement.revisions().contains(revision))
    }

    /// The requirement that a violation is reported under: the one that is named, else the main one in `revision`.
    #[must_use]
    pub fn requirement_for(&self, named: Option<&str>, revision: Revision) -> Option<&'static Requirement> {
        match named {
            Some(id) => Catalogue::embedded().get(id),
            None => self.requirement_in(revision),
        }
    }

    /// Every placeholder that its steps fill in; none in a passive case.
    #[must_use]
    pub fn placeholders(&self) -> BTreeSet<Placeholder> {
        let Body::Active(act) = &self.body else { return BTreeSet::new() };
        act.steps.iter().flat_map(|step| step.action.placeholders()).collect()
    }

    /// Whether it uses the tool that takes longest, which is known once the calls of all are answered.
    #[must_use]
    pub fn needs_lasting_call(&self) -> bool {
        self.placeholders().contains(&Placeholder::ToolArgumentsLasting)
    }
}
