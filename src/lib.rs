//! Judges Model Context Protocol servers.

pub mod event;
pub mod report;
pub mod spec;
pub mod transcript;
pub mod verdict;
pub mod wire;

// The modules below stand in for those that are written elsewhere: `src/case`, `src/mock` and the
// conductor of `src/run`. Each becomes one `pub mod` line when the real one is here.

/// Stands in for `src/case`.
pub mod case {
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use crate::spec::{Catalogue, Requirement, Revision, RevisionSet};

    mod model;
    pub use model::*;

    /// Where a case comes from.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Source {
        /// It is built in.
        Embedded,
        /// It is the user's own.
        File(PathBuf),
    }

    /// A case.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "stands in")]
    pub struct Case {
        pub id: String,
        pub source: Source,
        pub title: String,
        pub requirements: Vec<&'static Requirement>,
        pub revisions: RevisionSet,
        pub tags: Vec<String>,
        pub why: Option<String>,
        pub mend: String,
        pub fault: Option<String>,
        pub needs: Needs,
        pub body: Body,
    }

    impl Case {
        /// Whether it runs there.
        #[must_use]
        pub fn runs_in(&self, revision: Revision) -> bool {
            self.revisions.contains(revision)
        }
    }

    /// What a case does.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "stands in")]
    pub enum Body {
        Watch { watch: Watch, rules: Vec<Rule> },
        Act(Act),
    }

    /// What an acting case does.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "stands in")]
    pub struct Act {
        pub steps: Vec<Step>,
        pub each: Option<Each>,
        pub process: Process,
        pub declare: Option<Value>,
        pub finally: Vec<Together>,
    }

    /// Cases that cannot be used.
    #[derive(Debug, thiserror::Error)]
    #[error("no case can be read here")]
    pub struct LoadError;

    /// A pattern that is none.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    pub struct SelectError(#[from] globset::Error);

    /// The cases to run.
    #[derive(Debug)]
    #[expect(missing_docs, reason = "stands in")]
    pub struct Selection {
        pub select: Vec<String>,
        pub skip: Vec<String>,
    }

    impl Selection {
        /// Those of the cases.
        ///
        /// # Errors
        /// For a pattern that is none.
        pub fn of<'a>(&self, cases: &'a [Case]) -> Result<Vec<&'a Case>, SelectError> {
            let set = |patterns: &[String]| {
                let mut set = globset::GlobSetBuilder::new();
                for pattern in patterns {
                    set.add(globset::Glob::new(pattern)?);
                }
                set.build()
            };
            let (select, skip) = (set(&self.select)?, set(&self.skip)?);
            let picks = |case: &&Case| (select.is_empty() || select.is_match(&case.id)) && !skip.is_match(&case.id);
            Ok(cases.iter().filter(picks).collect())
        }
    }

    /// Two cases.
    ///
    /// # Errors
    /// For a folder.
    pub fn load(own: Option<&Path>, _faults: &[&str]) -> Result<Vec<Case>, LoadError> {
        if own.is_some() {
            return Err(LoadError);
        }
        let rows = [
            (
                "tools/call/unknown-tool",
                "An unknown tool is refused",
                "tools-call-unknown-tool-error",
                "unknown-tool-succeeds",
            ),
            (
                "stdio/stdout-only-messages",
                "Nothing but messages is written",
                "stdio-stdout-only-messages",
                "banner-on-stdout",
            ),
        ];
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let requirement = Catalogue::embedded().get(row.2)?;
                Some(Case {
                    id: row.0.to_owned(),
                    source: Source::Embedded,
                    title: row.1.to_owned(),
                    requirements: vec![requirement],
                    revisions: requirement.revisions(),
                    tags: Vec::new(),
                    why: None,
                    mend: "Mend it.".to_owned(),
                    fault: Some(row.3.to_owned()),
                    needs: Needs::default(),
                    body: Body::Act(Act {
                        steps: Vec::new(),
                        each: None,
                        process: Process::Shared,
                        declare: None,
                        finally: Vec::new(),
                    }),
                })
            })
            .collect())
    }
}

/// Stands in for `src/mock`.
pub mod mock {
    use std::io;
    use std::str::FromStr;

    pub use crate::spec::Revision;

    /// A fault.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Fault(&'static str);

    impl Fault {
        /// Every fault.
        #[must_use]
        pub fn all() -> &'static [Self] {
            &[Self("unknown-tool-succeeds"), Self("image-data-url"), Self("banner-on-stdout")]
        }

        /// Its name.
        #[must_use]
        pub fn name(self) -> &'static str {
            self.0
        }

        /// What it does.
        #[must_use]
        pub fn description(self) -> &'static str {
            self.0
        }

        /// Where it shows.
        #[must_use]
        pub fn revisions(self) -> &'static [Revision] {
            &Revision::ALL
        }
    }

    /// An unknown name.
    #[derive(Debug, Clone, thiserror::Error)]
    #[error("no fault is named so; did you mean `image-data-url`?")]
    pub struct UnknownFault;

    impl FromStr for Fault {
        type Err = UnknownFault;

        fn from_str(name: &str) -> Result<Self, UnknownFault> {
            Self::all().iter().copied().find(|fault| fault.0 == name).ok_or(UnknownFault)
        }
    }

    /// Faults together.
    #[derive(Debug, Clone, Default)]
    pub struct FaultSet(pub Vec<Fault>);

    impl FromIterator<Fault> for FaultSet {
        fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
            Self(faults.into_iter().collect())
        }
    }

    /// Serves nothing.
    ///
    /// # Errors
    /// Never.
    pub async fn serve<R, W>(_reader: R, _writer: W, _faults: &FaultSet) -> io::Result<()> {
        std::future::ready(Ok(())).await
    }

    /// No.
    #[must_use]
    pub fn ignores_sigterm(_faults: &FaultSet) -> bool {
        false
    }

    /// None.
    #[must_use]
    pub fn stderr_noise(_faults: &FaultSet) -> Option<String> {
        None
    }
}

/// Stands in for `src/run`.
pub mod run {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use tokio::sync::watch;

    use crate::event::{Event, RunSummary, Sink};

    mod plan;
    pub use plan::{Calls, Launcher, Plan, Revisions, ServerCommand};

    /// Plays the events of the example report.
    ///
    /// # Errors
    /// When the sink fails.
    pub async fn run(plan: Plan, sink: Arc<Mutex<dyn Sink>>, cancel: watch::Receiver<bool>) -> io::Result<RunSummary> {
        let report = crate::report::example();
        let summary = report.summary.clone().unwrap_or(RunSummary {
            totals: crate::verdict::Totals::default(),
            timing: crate::event::Timing::default(),
            problem: None,
        });
        let tell = |event: Event| sink.lock().unwrap_or_else(PoisonError::into_inner).on(&event);
        let mut told = tell(Event::RunStarted { server: format!("{:?}", plan.launcher) });
        let revisions = report.targets.iter().map(|target| target.summary.revision).collect();
        told = told.and(tell(Event::Probed { revisions, cases: report.results().count() }));
        for target in report.targets {
            for result in target.results {
                if plan.show_wire {
                    for evidence in result.findings.iter().flat_map(|finding| finding.evidence.clone()) {
                        told = told.and(tell(Event::Wire { connection: "shared".to_owned(), evidence }));
                    }
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                if *cancel.borrow() {
                    break;
                }
                told = told.and(tell(Event::CaseFinished(Box::new(result))));
            }
            told = told.and(tell(Event::TargetFinished(Box::new(target.summary))));
        }
        told = told.and(tell(Event::RunFinished(Box::new(summary.clone()))));
        told.map(|()| summary)
    }
}

/// Stands in for `src/client`.
pub mod client {
    /// Nothing.
    pub fn adopt_orphans() {}

    /// Nothing.
    pub fn end_every_process() {}
}
