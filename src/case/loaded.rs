//! A case that was loaded and found whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use super::asking::Reply;
use super::checks::{Check, Oracle};
use super::http::{HeaderValues, HttpKind};
use super::model::{CaseFile, Each, Needs, Process, Rule, Step, Together, Watch, WatchKind};
use super::placeholder::{Placeholder, find};
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
    /// Its path below the directory of cases, without the ending: `tools/call/unknown-tool`.
    pub id: String,
    /// Where it comes from.
    pub source: Source,
    /// What a conforming server does.
    pub title: String,
    /// The requirements that it checks, the chief one of each revision first.
    pub requirements: Vec<&'static Requirement>,
    /// The revisions that it runs in: never empty.
    pub revisions: RevisionSet,
    /// Words to select it by, beside its id and area.
    pub tags: Vec<String>,
    /// Why the rule matters and how fair readings of it differ.
    pub why: Option<String>,
    /// How to mend a server that breaks it.
    pub fix: String,
    /// The named fault of the built-in server that turns it red.
    pub fault: Option<String>,
    /// What the server has to offer before it applies.
    pub needs: Needs,
    /// What it does.
    pub body: Body,
}

/// What a case does.
#[derive(Debug, Clone)]
pub enum Body {
    /// It watches, and sends nothing.
    Watch {
        /// What it watches.
        watch: Watch,
        /// What holds of each thing that it watches: never empty, each a schema or a check.
        rules: Vec<Rule>,
        /// The cases, by id or area, that provoke it; none where discovery alone does.
        provoked_by: Vec<String>,
    },
    /// It acts.
    Act(Act),
    /// It looks at the answers to generated calls.
    Fuzz(Oracle),
}

/// What an acting case does.
#[derive(Debug, Clone)]
pub struct Act {
    /// What it sends: never empty, each with exactly one thing to send.
    pub steps: Vec<Step>,
    /// What it repeats its steps for.
    pub for_each: Option<Each>,
    /// The process that its steps run in.
    pub process: Process,
    /// The capabilities that the client declares in a process of its own.
    pub client_capabilities: Option<Value>,
    /// What the client answers to requests of the server, by method; the methods that are not there as usual.
    pub client_responses: BTreeMap<String, Vec<Reply>>,
    /// What holds of several steps together.
    pub across_steps: Vec<Together>,
}

impl Case {
    /// The case that a file stands for, if the file names known requirements, runs in some revision
    /// and does one of the three things that a case can do.
    pub(super) fn of(id: String, source: Source, file: CaseFile) -> Option<Self> {
        let named = file.requirements.iter().map(|id| Catalogue::embedded().get(id));
        let requirements: Vec<_> = named.collect::<Option<_>>()?;
        let stated = requirements.iter().fold(RevisionSet::default(), |set, r| set.union(r.revisions()));
        let revisions = file.revisions.unwrap_or(RevisionSet::ALL).intersection(stated);
        let body = match (file.watch, file.fuzz) {
            (Some(watch), None) if !file.rules.is_empty() && file.steps.is_empty() => {
                Body::Watch { watch, rules: file.rules, provoked_by: file.provoked_by }
            }
            (None, Some(oracle)) if file.rules.is_empty() && file.steps.is_empty() => Body::Fuzz(oracle),
            (None, None) if file.rules.is_empty() && !file.steps.is_empty() => Body::Act(Act {
                steps: file.steps,
                for_each: file.for_each,
                process: file.process,
                client_capabilities: file.client_capabilities,
                client_responses: file.client_responses,
                across_steps: file.across_steps,
            }),
            _ => return None,
        };
        (!revisions.is_empty()).then_some(Self {
            id,
            source,
            title: file.title,
            requirements,
            revisions,
            tags: file.tags,
            why: file.why,
            fix: file.fix,
            fault: file.fault,
            needs: file.needs,
            body,
        })
    }

    /// The first segment of the id: the part of the protocol that the case belongs to.
    #[must_use]
    pub fn area(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The cases, by id or area, that provoke what the case watches; none for a case that is not passive.
    #[must_use]
    pub fn provoked_by(&self) -> &[String] {
        match &self.body {
            Body::Watch { provoked_by, .. } => provoked_by,
            Body::Act(_) | Body::Fuzz(_) => &[],
        }
    }

    /// The same case with other stimuli.
    pub(super) fn set_provoked_by(&mut self, names: Vec<String>) {
        if let Body::Watch { provoked_by, .. } = &mut self.body {
            *provoked_by = names;
        }
    }

    /// Whether the case runs in `revision`.
    #[must_use]
    pub fn runs_in(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }

    /// Whether the case runs over a transport: some requirement of it shows there, and its steps can be taken.
    #[must_use]
    pub fn runs_over(&self, transport: Transport) -> bool {
        let shows =
            |requirement: &&Requirement| requirement.transport == Transport::Any || requirement.transport == transport;
        self.requirements.iter().copied().any(|requirement| shows(&requirement))
            && match &self.body {
                Body::Act(act) => transport == Transport::Stdio || act.steps.iter().all(|step| step.shutdown.is_none()),
                Body::Watch { .. } => true,
                // What is written beside the answers shows on standard output alone.
                Body::Fuzz(oracle) => transport == Transport::Stdio || *oracle != Oracle::StdoutNoise,
            }
            && (transport == Transport::Http || !self.speaks_of_http())
    }

    /// Whether the case speaks of HTTP requests and their answers, which other transports do not have.
    #[must_use]
    pub fn speaks_of_http(&self) -> bool {
        match &self.body {
            Body::Act(act) => act.steps.iter().any(|step| {
                let of_row = step.expect.iter().any(|row| !row.status.is_empty() || row.exchange.is_some());
                step.http.is_some() || step.close.is_some() || of_row
            }),
            Body::Watch { watch, rules, .. } => {
                let of_http = |rule: &Rule| rule.check.as_ref().is_some_and(Check::is_of_http);
                watch.kind == WatchKind::Exchange || rules.iter().any(of_http)
            }
            Body::Fuzz(_) => false,
        }
    }

    /// The transport over HTTP that the case is for; none where it is for every transport.
    #[must_use]
    pub fn http_kind(&self) -> Option<HttpKind> {
        self.needs.http.or_else(|| self.speaks_of_http().then(HttpKind::default))
    }

    /// The chief requirement in `revision`: the first of the case's that the revision states.
    #[must_use]
    pub fn requirement_in(&self, revision: Revision) -> Option<&'static Requirement> {
        self.requirements.iter().copied().find(|requirement| requirement.revisions().contains(revision))
    }

    /// The requirement that a rule, a row or a comparison speaks for: the one that it names, else the
    /// chief one in `revision`.
    #[must_use]
    pub fn requirement_for(&self, named: Option<&str>, revision: Revision) -> Option<&'static Requirement> {
        match named {
            Some(id) => Catalogue::embedded().get(id),
            None => self.requirement_in(revision),
        }
    }

    /// Every placeholder that its steps fill in; none for a case that watches.
    #[must_use]
    pub fn placeholders(&self) -> BTreeSet<Placeholder> {
        let Body::Act(act) = &self.body else { return BTreeSet::new() };
        act.steps.iter().flat_map(Step::placeholders).collect()
    }
}

impl Step {
    /// Every placeholder in what the step sends.
    #[must_use]
    pub fn placeholders(&self) -> BTreeSet<Placeholder> {
        let mut found = BTreeSet::new();
        for value in [&self.send, &self.notify, &self.meta].into_iter().flatten().chain(self.batch.iter().flatten()) {
            collect(value, &mut found);
        }
        if let Some(params) = self.retry.as_ref().and_then(|retry| retry.params.as_ref()) {
            collect(params, &mut found);
        }
        if let Some(http) = &self.http {
            let mut take = |text: &str| found.extend(find(text).into_iter().map(|(_, placeholder)| placeholder));
            http.path.iter().for_each(|path| take(path));
            for values in http.headers.values() {
                match values {
                    HeaderValues::Absent => {}
                    HeaderValues::One(value) => take(value),
                    HeaderValues::Several(values) => values.iter().for_each(|value| take(value)),
                }
            }
            if let Some(body) = &http.body {
                collect(body, &mut found);
            }
        }
        if let Some(line) = &self.raw {
            found.extend(find(line).into_iter().map(|(_, placeholder)| placeholder));
        }
        found
    }
}

fn collect(value: &Value, found: &mut BTreeSet<Placeholder>) {
    let mut take = |text: &str| found.extend(find(text).into_iter().map(|(_, placeholder)| placeholder));
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => {
            members.keys().for_each(|name| take(name));
            members.values().for_each(|member| collect(member, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
