//! Judges Model Context Protocol servers against every revision of the specification.
//!
//! A [`Judge`] takes a [`Server`] and [`Settings`] and makes a [`Report`]: the verdict of each case in each revision
//! that the server supports, with the evidence of each finding. The defaults are those of the command line.
//!
//! ```
//! use mcp_conformance::{Conclusion, Judge, Server, Settings};
//!
//! // The built-in reference server stands in for yours.
//! let server = Server::reference([]);
//! let settings = Settings { select: vec!["tools/*".to_owned()], ..Settings::default() };
//!
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//! for result in report.results().filter(|result| !result.findings.is_empty()) {
//!     println!("{} in {}: {}", result.case, result.revision, result.findings[0].message);
//! }
//! assert_eq!(report.conclusion(), Conclusion::Passed);
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! # Kinds of servers
//!
//! A program that speaks over its standard streams ([`ServerCommand`]):
//!
//! ```
//! # use mcp_conformance::{Judge, Server, Settings};
//! # let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
//! let server = Server::command("./my-server").arg("--stdio").env("API_KEY", "for-tests").current_dir(".");
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//! # assert!(report.to_text().contains("./my-server"), "{}", report.to_text());
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! A server over HTTP ([`HttpServer`]), here one that runs already; [`HttpServer::start_command`] starts one:
//!
//! ```
//! # use mcp_conformance::{Conclusion, Judge, Server, Settings};
//! # #[cfg(feature = "http")] {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
//! # let url = format!("http://{}/mcp", listener.local_addr()?);
//! # let serve = mcp_conformance::reference::serve_http(listener, Default::default());
//! # std::thread::spawn(move || runtime.block_on(serve));
//! # let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
//! # let _shown = stringify!(
//! let url = "http://127.0.0.1:3000/mcp";
//! # );
//! let server = Server::http(url).header("X-Api-Key", "for-tests");
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//! # assert_eq!(report.conclusion(), Conclusion::Passed, "{}", report.to_text());
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server in this process, which serves one connection per call of a function:
//!
//! ```
//! # use mcp_conformance::{Conclusion, Judge, Server, Settings, reference};
//! # let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
//! let server = Server::in_process(|pipe| async move {
//!     // With the official SDK: `MyServer.serve(pipe).await?.waiting().await`
//!     let (reader, writer) = tokio::io::split(pipe);
//!     reference::serve(reader, writer, &Default::default()).await
//! });
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//! # assert_eq!(report.conclusion(), Conclusion::Passed, "{}", report.to_text());
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! A server behind any byte stream, such as a socket:
//!
//! ```
//! # use mcp_conformance::{Conclusion, Judge, Server, Settings, reference};
//! # let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
//! # let address = listener.local_addr()?;
//! # std::thread::spawn(move || runtime.block_on(async move {
//! #     while let Ok((stream, _)) = listener.accept().await {
//! #         let (reader, writer) = stream.into_split();
//! #         tokio::spawn(async move { reference::serve(reader, writer, &Default::default()).await });
//! #     }
//! # }));
//! use tokio::net::TcpStream;
//!
//! let server = Server::connect(move || TcpStream::connect(address));
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//! # assert_eq!(report.conclusion(), Conclusion::Passed, "{}", report.to_text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cases as tests
//!
//! With the feature `harness` every case is a test of your crate, named by its id and run by `cargo test` or
//! `cargo nextest run`: see the module `harness`.
//!
//! # Fuzzing
//!
//! A run also fuzzes: it calls tools over the wire with arguments that the module [`fuzz`] generates from their
//! `inputSchema`. [`Settings::fuzz`] configures it or turns it off. The module [`guided`] makes the same arguments
//! from the bytes of a coverage-guided fuzzer, so that a fuzz target of yours calls your tools in its own process.
//!
//! # Features
//!
//! Without any of them the crate judges servers over standard streams, in this process and behind byte streams.
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `cli` | yes | the program `mcp-conformance`; it includes `http` and `reports` |
//! | `http` | yes | servers over HTTP; without it, judging one is the error [`HttpEndpointError::NotCompiled`] |
//! | `reports` | yes | the formats HTML and `JUnit`: `report::Html` and `report::Junit` |
//! | `proptest` | yes | `proptest::strategy::Strategy` for [`fuzz::Generator`] |
//! | `harness` | no | cases as tests |
//!
//! A crate that uses only [`guided`] or `harness` needs `default-features = false`, and then compiles fewer than a
//! hundred crates.
//!
//! # Design
//!
//! Data flows in one direction:
//!
//! ```text
//! Judge -> Plan -> Case -> Session -> Transcript -> Verdict -> Event -> Report -> bytes
//! ```
//!
//! Sending (`run`, `campaign`, `session`, `client`), judging (`check`) and rendering ([`report`]) never mix: a check is
//! a pure function of a transcript, and a renderer cannot change a verdict.

mod baseline;
mod campaign;
mod case;
mod check;
mod client;
mod context;
pub mod event;
mod fnv;
pub mod fuzz;
pub mod guided;
#[cfg(feature = "harness")]
pub mod harness;
mod inventory;
mod json_pointer;
mod judge;
mod limits;
mod line_diff;
mod percent;
mod plan;
mod raw_text;
pub mod reference;
pub mod report;
mod run;
mod scratch;
mod sequence;
mod session;
mod shard;
mod shell;
pub mod spec;
mod text;
mod transcript;
pub mod verdict;
mod wire;

pub use case::{LoadError, SelectError};
pub use client::HttpEndpointError;
pub use judge::{FuzzRevisions, FuzzSettings, HttpServer, Judge, JudgeError, Server, Settings};
pub use plan::{CallPolicy, Revisions, ServerCommand};
pub use report::{Accept, Conclusion, FailOn, Report};
pub use spec::Revision;
pub use verdict::Verdict;

/// What the program `mcp-conformance` and the tests, benchmarks and fuzz targets of this package need in addition.
/// It may change in any version.
#[doc(hidden)]
pub mod internals {
    pub mod baseline {
        pub use crate::baseline::{Baseline, BaselineEntry, Change};
    }
    pub mod case {
        pub use crate::case::{
            Action, Answer, Body, Case, CaseText, ConnectionAssertion, Count, Counts, Coverage, Delivery, Entry,
            Expected, FilePath, ForEach, Hint, HintRequest, HttpCall, HttpKind, LazySchema, LineTransfer, LoadError,
            Locale, Meta, Moment, Passive, PathPattern, Placeholder, Process, RawLine, Reason, Rule, SavedPointers,
            SelectError, SelectedCases, Selection, Shutdown, Source, StandardError, Start, Step, Trust, ValueRule,
            Watch, WatchKind, find, load, load_hints, not_observable, parse_cases, parse_hints, read_embedded,
            reason_in_detail, reasons,
        };
    }
    pub mod check {
        pub use crate::check::{
            Execution, IndexedConnections, Judgement, RecordedConnection, judge_active, judge_passive,
        };
    }
    pub mod client {
        pub use crate::client::{FurtherTokens, HttpEndpoint, HttpEndpointError, InProcessServer, headers};
    }
    pub mod judge {
        pub use crate::judge::{
            PreparedRun, Reporter, apply_criteria, block_on_and_end_processes, compare_with_baseline, load_cases, plan,
            plan_of_selected, report_options, select_cases,
        };
    }
    pub mod json_pointer {
        pub use crate::json_pointer::{join, unescape};
    }
    pub mod run {
        pub use crate::case::{Regression, RegressionError};
        pub use crate::context::Stop;
        pub use crate::plan::{CallPolicy, HttpTarget, Launcher, Plan, Revisions};
        pub use crate::run::{
            DiscoveredHint, DiscoveredHints, RecordingError, RecordingPlan, StreamRecording, Writer, discover_hints,
            installed_packages, judge_recording, run,
        };
        pub use crate::transcript::{LineError, MAX_LINE_BYTES, SavedTranscript, TranscriptReader};
    }
    pub mod text {
        pub use crate::text::shortened;
    }
    pub mod transcript {
        pub use crate::transcript::{Entry, Event, SessionParameters, ShutdownStep, StepId, Transcript};
    }
    pub mod wire {
        pub use crate::wire::{Frame, FramingError, Splitter, SseDecoder, SseEvent};
    }
}
