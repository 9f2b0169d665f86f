//! A fixed example report with all features: two revisions, each verdict, findings with and without a diff, hostile
//! text wherever a server could put it, and a problem at the end.
//!
//! The output of every renderer for it is compared with a golden file.

use serde_json::json;

use super::hostile::HOSTILE;
use super::{BaselineComparison, FORMAT, FailOn, Options, Report, Requirements, StaleEntry, Target, Tool};
use crate::baseline::{BaselineEntry, NO_REASON_YET};
use crate::event::{
    CallCount, CallOutcome, CaseResult, FuzzSummary, Gap, HintNote, KeywordCoverage, Latency, Launch, MutantCoverage,
    Problem, ProblemKind, ResponseClass, RunSummary, SavedCalls, SequenceSummary, SkipKind, TargetSummary, Timing,
    ToolFuzz, ToolLink, ToolNote, Untested, Waits,
};
use crate::shard::Shard;
use crate::spec::{Level, Revision, RevisionSet};
use crate::verdict::{
    ArgumentPart, CallKind, Confirmation, Counterexample, Direction, Evidence, FailingValues, Finding, MessageSummary,
    Totals, Upstream, Verdict,
};

/// The example report.
#[must_use]
pub fn example() -> Report {
    let targets = vec![older(), newer()];
    let totals = targets.iter().flat_map(|target| &target.results).map(|result| result.verdict).collect();
    Report {
        format: FORMAT,
        tool: Tool { name: "mcp-conformance".to_owned(), version: "0.1.0".to_owned() },
        started: "2026-08-01T09:30:00Z".to_owned(),
        server: "node server.js --root '/srv/my files'".to_owned(),
        options: Options {
            revisions: vec!["2025-06-18".to_owned(), "2025-11-25".to_owned()],
            select: vec!["tools/**".to_owned(), "stdio".to_owned()],
            skip: vec!["tools/list/slow".to_owned()],
            fail_on: FailOn::Must,
            calls: "non-destructive".to_owned(),
            hints: Some("mcp-hints.jsonc".to_owned()),
            seed: 7,
            timeout_ms: 5000,
            retries: 1,
            shard: Some(Shard { number: 1, of: 3 }),
        },
        targets,
        summary: Some(RunSummary {
            totals,
            timing: Timing {
                wall_ms: 1934.5,
                launches: 5,
                startup_ms: 43.25,
                judging_ms: 88.125,
                own_cpu_ms: Some(120.5),
                waits: Some(Waits {
                    answered: 211,
                    answered_ms: 2431.5,
                    unanswered: 2,
                    unanswered_ms: 10_004.25,
                    ending_ms: 96.5,
                }),
            },
            problem: Some(Problem {
                kind: ProblemKind::Stopped,
                message: "the server ended during tools/call/many and could not be started again".to_owned(),
                hint: "Start it manually with the same command and check its stderr.".to_owned(),
                stderr: format!("Error: listen EADDRINUSE\n    at Server.setup {HOSTILE}\n"),
                evidence: vec![initialize(), Evidence::new(Direction::Event, 2103.0, "exited with code 1".to_owned())],
            }),
        }),
        baseline: Some(baseline_comparison()),
    }
}

fn baseline_comparison() -> BaselineComparison {
    let entry = BaselineEntry {
        case: "tools/list/cursor-altered".to_owned(),
        requirement: "pagination-invalid-cursor".to_owned(),
        tool: None,
        revisions: Some(RevisionSet::default().with(Revision::V2025_06_18)),
        verdict: Some(Verdict::Fail),
        reason: "known since 1.2".to_owned(),
        expires: None,
        flaky: false,
    };
    let unknown_tool = BaselineEntry {
        case: "tools/call/unknown-tool".to_owned(),
        requirement: "tools-call-unknown-tool-error".to_owned(),
        ..entry.clone()
    };
    BaselineComparison {
        file: "conformance.jsonc".to_owned(),
        new: vec![BaselineEntry {
            case: "fuzz/crash".to_owned(),
            requirement: "jsonrpc-request-answered".to_owned(),
            tool: Some("search".to_owned()),
            reason: NO_REASON_YET.to_owned(),
            ..entry.clone()
        }],
        stale: vec![StaleEntry { missing_in: RevisionSet::default().with(Revision::V2025_06_18), entry }],
        expired: vec![BaselineEntry { expires: Some("2026-07-31".to_owned()), flaky: true, ..unknown_tool }],
        supported: Some("2025-06-18..".parse().expect("it is a range")),
    }
}

fn older() -> Target {
    let revision = Revision::V2025_06_18;
    let results = vec![
        CaseResult {
            notes: vec!["the server also wrote 3 blank lines".to_owned()],
            ..plain("stdio/stdout-only-messages", "The server writes only messages to stdout", revision, Verdict::Pass)
        },
        CaseResult {
            requirements: vec!["tools-call-unknown-tool-error".to_owned()],
            findings: vec![unknown_tool(revision, 1, &["no-such-tool"])],
            duration_ms: 4.5,
            ..plain("tools/call/unknown-tool", "The server rejects an unknown tool", revision, Verdict::Fail)
        },
        CaseResult {
            requirements: vec!["pagination-cursor-altered".to_owned()],
            reason: Some("the server returned no cursor".to_owned()),
            skipped: Some(SkipKind::NotObserved),
            observed: 0,
            ..plain("tools/list/cursor-altered", "The server rejects an altered cursor", revision, Verdict::Skip)
        },
        CaseResult {
            requirements: vec!["tasks-required".to_owned()],
            reason: Some("it is for servers with the tasks capability".to_owned()),
            skipped: Some(SkipKind::NotApplicable),
            observed: 0,
            ..plain("tools/tasks/required", "A tool that requires a task declares it", revision, Verdict::Skip)
        },
    ];
    Target {
        summary: TargetSummary {
            revision,
            server_info: Some(json!({"name": "files", "version": "1.4.2"})),
            capabilities: Some(json!({"tools": {"listChanged": true}})),
            tools: tools(),
            hints: hints(),
            launches: vec![Launch {
                purpose: "shared session".to_owned(),
                startup_ms: Some(41.0),
                shutdown: Some("stdin-closed".to_owned()),
                sent: 31,
                received: 30,
            }],
            stderr: String::new(),
            stopped_early: None,
            notes: vec![format!("the server ended 1 session before the client did{HOSTILE}")],
            fuzz: None,
            totals: count(&results),
        },
        requirements: Requirements::of(&results),
        results,
    }
}

fn newer() -> Target {
    let revision = Revision::V2025_11_25;
    let results = vec![
        CaseResult {
            requirements: vec!["jsonrpc-request-answered".to_owned()],
            findings: vec![crash(revision)],
            observed: 412,
            duration_ms: 803.5,
            ..plain("fuzz/crash", "No call crashes the server", revision, Verdict::Fail)
        },
        CaseResult {
            requirements: vec!["jsonrpc-error-message-concise".to_owned()],
            findings: vec![long_message(revision)],
            observed: 9,
            ..plain("jsonrpc/error-message", "Error messages are one short sentence", revision, Verdict::Warn)
        },
        plain("stdio/stdout-only-messages", "The server writes only messages to stdout", revision, Verdict::Pass),
        CaseResult {
            requirements: vec!["content-image".to_owned()],
            findings: vec![image(revision)],
            observed: 2,
            ..plain("tools/call/image-data", "Image data is base64 of what its MIME type says", revision, Verdict::Fail)
        },
        CaseResult {
            requirements: vec!["jsonrpc-ids-kept-apart".to_owned()],
            reason: Some("the control request failed: the server had exited".to_owned()),
            observed: 0,
            ..plain("tools/call/many", "The server answers each of several concurrent calls", revision, Verdict::Error)
        },
        CaseResult {
            requirements: vec!["tools-call-unknown-tool-error".to_owned()],
            findings: vec![unknown_tool(revision, 2, &["no-such-tool", "ECHO"])],
            duration_ms: 6.25,
            ..plain("tools/call/unknown-tool", "The server rejects an unknown tool", revision, Verdict::Fail)
        },
    ];
    Target {
        summary: TargetSummary {
            revision,
            server_info: Some(json!({"name": HOSTILE, "version": "1.4.2", "title": "Files"})),
            capabilities: Some(json!({"tools": {}, "logging": {}})),
            tools: tools(),
            hints: Vec::new(),
            launches: vec![
                Launch {
                    purpose: "shared session".to_owned(),
                    startup_ms: Some(45.5),
                    shutdown: Some("sigterm".to_owned()),
                    sent: 40,
                    received: 52,
                },
                Launch {
                    purpose: "tools/call/many".to_owned(),
                    startup_ms: None,
                    shutdown: None,
                    sent: 1,
                    received: 0,
                },
            ],
            stderr: format!("listening\nwarning: {HOSTILE}\n"),
            stopped_early: Some("the server could not be started again".to_owned()),
            notes: Vec::new(),
            fuzz: Some(fuzz_summary()),
            totals: count(&results),
        },
        requirements: Requirements::of(&results),
        results,
    }
}

fn plain(case: &str, title: &str, revision: Revision, verdict: Verdict) -> CaseResult {
    CaseResult {
        case: case.to_owned(),
        title: title.to_owned(),
        revision,
        requirements: vec!["stdio-stdout-only-messages".to_owned()],
        verdict,
        reason: None,
        skipped: None,
        observed: 12,
        notes: Vec::new(),
        findings: Vec::new(),
        duration_ms: 0.0,
    }
}

fn count(results: &[CaseResult]) -> Totals {
    results.iter().map(|result| result.verdict).collect()
}

fn tools() -> Vec<ToolNote> {
    let note = |name: &str, called, note: Option<&str>| ToolNote {
        name: name.to_owned(),
        called,
        note: note.map(str::to_owned),
    };
    vec![
        note("echo", true, None),
        note("search", true, Some("its first call returned an error, so it was not used further")),
        note("delete_file", false, Some("annotated as destructive")),
        note("drop_table", false, Some("annotated as destructive")),
        note(HOSTILE, false, Some("no arguments could be generated for its schema")),
    ]
}

fn hints() -> Vec<HintNote> {
    let hint = |request: &str, purposes: &[&str], note: Option<String>| HintNote {
        request: request.to_owned(),
        purposes: purposes.iter().map(|id| (*id).to_owned()).collect(),
        note,
    };
    vec![
        hint(r#"tools/call search {"text":"files"}"#, &["tools/call/unknown-tool"], None),
        hint(r#"tools/call page {"of":2}"#, &["pagination-cursor-altered"], None),
        hint(&format!("tools/call {HOSTILE}"), &[], Some(format!("the server rejected it: {HOSTILE}"))),
    ]
}

fn initialize() -> Evidence {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let message = MessageSummary::Request { id: json!(1), method: "initialize".to_owned(), tool: None };
    Evidence::new(Direction::Sent, 2100.5, text.to_owned()).with_message(message)
}

fn call(at_ms: f64, id: u32, tool: &str, text: &str) -> Evidence {
    let message =
        MessageSummary::Request { id: json!(id), method: "tools/call".to_owned(), tool: Some(tool.to_owned()) };
    Evidence::new(Direction::Sent, at_ms, text.to_owned()).with_message(message)
}

fn received(at_ms: f64, text: &str, message: MessageSummary) -> Evidence {
    Evidence::new(Direction::Received, at_ms, text.to_owned()).with_message(message)
}

fn result(id: u32) -> MessageSummary {
    MessageSummary::Result { id: Some(json!(id)) }
}

fn unknown_tool(revision: Revision, count: usize, subjects: &[&str]) -> Finding {
    let line = r#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"no-such-tool"}}"#;
    Finding {
        requirement: "tools-call-unknown-tool-error".to_owned(),
        level: Level::Should,
        derived: true,
        verdict: Verdict::Fail,
        revision,
        message: "The server answers a call of an unknown tool with a successful result.".to_owned(),
        expected: "an error, preferably with code -32602".to_owned(),
        actual: "a result without `isError: true`".to_owned(),
        value: Some(json!({"content": [{"type": "text", "text": "ok"}]})),
        diff: Some("-{\"error\":{\"code\":-32602}}\n+{\"result\":{\"content\":[]}}\n".to_owned()),
        count,
        subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect(),
        evidence: vec![
            call(812.25, 12, "no-such-tool", line),
            Evidence::new(Direction::Stderr, 813.0, format!("call of {HOSTILE}")),
            received(
                813.5,
                r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"ok"}]}}"#,
                result(12),
            ),
        ],
        link: format!("https://modelcontextprotocol.io/specification/{revision}/server/tools#error-handling"),
        fix: "Look up the tool before the call, and answer an unknown name with JSON-RPC error -32602.".to_owned(),
        reproduce: format!(
            "mcp-conformance --revision {revision} --select tools/call/unknown-tool -- node server.js --root '/srv/my files'"
        ),
        counterexample: None,
        confirmation: None,
        accepted: None,
        sdk: None,
        upstream: None,
        origin: None,
        preceding: Vec::new(),
    }
}

fn image(revision: Revision) -> Finding {
    Finding {
        requirement: "content-image".to_owned(),
        level: Level::Schema,
        derived: false,
        verdict: Verdict::Fail,
        revision,
        message: "The `data` of an image is not base64.".to_owned(),
        expected: "base64 with the standard alphabet, padded, without line breaks".to_owned(),
        actual: format!("a data URL: \"data:image/png;base64,iVBOR{HOSTILE}\""),
        value: Some(json!(format!("data:image/png;base64,iVBOR{HOSTILE}"))),
        diff: None,
        count: 1,
        subjects: vec![format!("chart{HOSTILE}")],
        evidence: vec![
            call(901.0, 15, "chart", r#"{"jsonrpc":"2.0","id":15,"method":"tools/call","params":{"name":"chart"}}"#),
            Evidence {
                direction: Direction::Received,
                at_ms: 1040.75,
                text: format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":15,\"result\":{{\"content\":[{{\"type\":\"image\",\"data\":\"data:image/png;base64,{}",
                    "iVBORw0K".repeat(60)
                ),
                omitted: 48_211,
                message: Some(result(15)),
            },
        ],
        link: format!("https://modelcontextprotocol.io/specification/{revision}/server/tools#image-content"),
        fix: "Put only the base64 string into `data`; the type belongs in `mimeType`.".to_owned(),
        reproduce: format!(
            "mcp-conformance --revision {revision} --select tools/call/image-data -- node server.js --root '/srv/my files'"
        ),
        accepted: Some(format!("known since 1.3, fixed in 2.0 {HOSTILE}")),
        ..unknown_tool(revision, 1, &[])
    }
}

fn crash(revision: Revision) -> Finding {
    let line = r#"{"jsonrpc":"2.0","id":214,"method":"tools/call","params":{"name":"search","arguments":{"query":"\\u0000"}}}"#;
    Finding {
        requirement: "jsonrpc-request-answered".to_owned(),
        level: Level::Must,
        derived: true,
        verdict: Verdict::Fail,
        revision,
        message: "The server exits on a call that its own schema allows.".to_owned(),
        expected: "a response to the call".to_owned(),
        actual: "the process exited with code 101".to_owned(),
        value: None,
        diff: None,
        count: 3,
        subjects: vec!["search".to_owned()],
        evidence: vec![
            call(2210.0, 214, "search", line),
            Evidence::new(Direction::Event, 2211.5, "exited with code 101".to_owned()),
        ],
        link: format!("https://modelcontextprotocol.io/specification/{revision}/basic#responses"),
        fix: "Catch exceptions in the tool and return a result with `isError: true`.".to_owned(),
        reproduce: "mcp-conformance replay .mcp-conformance/search-crash.json -- node server.js --root '/srv/my files'"
            .to_owned(),
        counterexample: Some(Box::new(Counterexample {
            tool: "search".to_owned(),
            kind: CallKind::Invalid,
            violated: Some("/properties/query pattern".to_owned()),
            original: json!({"query": format!("aaaa\u{0}{HOSTILE}"), "limit": 40, "fuzzy": true}),
            arguments: json!({"query": "\u{0}"}),
            parts: vec![ArgumentPart {
                pointer: "/query".to_owned(),
                fails_for: FailingValues::AtLeastAsLong,
                characters: Some(1),
                tried: 4,
            }],
            preceding: vec![json!({"name": "echo", "arguments": {"text": ""}})],
            attempts: 37,
            messages: vec![
                r#"{"jsonrpc":"2.0","id":213,"method":"tools/call","params":{"name":"echo","arguments":{"text":""}}}"#
                    .to_owned(),
                line.to_owned(),
            ],
            file: Some(".mcp-conformance/search-crash.json".to_owned()),
        })),
        confirmation: Some(Confirmation { tried: 3, failed: 2 }),
        accepted: None,
        sdk: None,
        upstream: None,
        origin: None,
        preceding: Vec::new(),
    }
}

fn fuzz_summary() -> FuzzSummary {
    let count = |kind, outcome, count| CallCount { kind, outcome, count };
    let keyword = |pointer: &str, keyword: &str, satisfied, violated| KeywordCoverage {
        pointer: pointer.to_owned(),
        keyword: keyword.to_owned(),
        satisfied,
        violated,
        no_effect: violated == 0,
    };
    FuzzSummary {
        seed: 7,
        calls: 449,
        shrinking: 37,
        wall_ms: 803.5,
        restarts: 4,
        stopped_early: Some("the server could not be started again".to_owned()),
        saved_calls: Some(saved_calls()),
        sequences: Some(sequence_summary()),
        tools: vec![
            ToolFuzz {
                tool: "search".to_owned(),
                note: None,
                untested: None,
                planned: 300,
                calls: vec![
                    count(CallKind::Coverage, CallOutcome::Success, 24),
                    count(CallKind::Valid, CallOutcome::Success, 120),
                    count(CallKind::Valid, CallOutcome::ToolError, 11),
                    count(CallKind::Invalid, CallOutcome::InvalidParams, 96),
                    count(CallKind::Invalid, CallOutcome::Closed, 3),
                    count(CallKind::Malformed, CallOutcome::OtherError, 8),
                ],
                latency: Some(Latency {
                    p50_us: 410,
                    p90_us: 1_150,
                    p99_us: 3_900,
                    max_us: 8_200,
                    buckets: vec![0, 0, 0, 0, 0, 0, 2, 31, 150, 51, 19, 5, 2, 2],
                }),
                keywords: vec![
                    keyword("/properties/query", "pattern", 140, 31),
                    keyword("/properties/limit", "maximum", 88, 22),
                    keyword("", "required", 155, 43),
                    keyword("", "additionalProperties", 155, 0),
                ],
                obligations: 26,
                covered: 24,
                mutants: mutant_coverage(),
                responses: vec![
                    ResponseClass {
                        class: "success: text".to_owned(),
                        count: 144,
                        example: r#"{"query":"a"}"#.to_owned(),
                    },
                    ResponseClass {
                        class: format!("invalid-params: query: {HOSTILE}"),
                        count: 96,
                        example: "{}".to_owned(),
                    },
                ],
                gaps: vec![Gap {
                    obligation: "/properties/query format".to_owned(),
                    reason: "no string of this format matches the pattern as well".to_owned(),
                }],
            },
            ToolFuzz { note: Some("annotated as destructive".to_owned()), ..uncalled_tool("delete_file") },
            ToolFuzz { calls: vec![count(CallKind::Valid, CallOutcome::ToolError, 60)], ..untested_tool() },
        ],
    }
}

fn sequence_summary() -> SequenceSummary {
    let link = |consumer: &str, confirmed| ToolLink {
        producer: "create_note".to_owned(),
        value: "/id".to_owned(),
        consumer: consumer.to_owned(),
        argument: "noteId".to_owned(),
        confirmed,
    };
    SequenceSummary {
        calls: 63,
        sequences: 1,
        links: vec![link("get_note", true), link(HOSTILE, false)],
        created: 5,
        left: 2,
        left_by: ["create_note".to_owned()].into(),
        problem: None,
    }
}

fn saved_calls() -> SavedCalls {
    SavedCalls {
        folder: ".mcp-conformance/files".to_owned(),
        saved: 1,
        fixed: 2,
        removed: 0,
        problems: vec![format!("a saved call is not tried: its format is 1, but only 2 is supported {HOSTILE}")],
    }
}

fn untested_tool() -> ToolFuzz {
    let untested = Untested {
        reason: format!("none of its 60 calls with valid arguments succeeded; most got: no such file {HOSTILE}"),
        remedy: "give values that it accepts: --seed-value path=…".to_owned(),
    };
    ToolFuzz { untested: Some(untested), ..uncalled_tool("read_file") }
}

fn uncalled_tool(name: &str) -> ToolFuzz {
    ToolFuzz {
        tool: name.to_owned(),
        note: None,
        untested: None,
        planned: 0,
        calls: Vec::new(),
        latency: None,
        keywords: Vec::new(),
        obligations: 0,
        covered: 0,
        mutants: Vec::new(),
        responses: Vec::new(),
        gaps: Vec::new(),
    }
}

fn mutant_coverage() -> Vec<MutantCoverage> {
    vec![
        MutantCoverage { class: "bounds".to_owned(), told: 9, total: 9, equivalent: 2, not_told: Vec::new() },
        MutantCoverage {
            class: "coercion".to_owned(),
            told: 17,
            total: 18,
            equivalent: 0,
            not_told: vec![Gap {
                obligation: "word-to-number at /properties/limit".to_owned(),
                reason: "budget: no call was left for it".to_owned(),
            }],
        },
    ]
}

fn long_message(revision: Revision) -> Finding {
    Finding {
        requirement: "jsonrpc-error-message-concise".to_owned(),
        level: Level::Should,
        derived: false,
        verdict: Verdict::Warn,
        revision,
        message: "An error message contains a stack trace.".to_owned(),
        expected: "one short sentence; details belong in `data`".to_owned(),
        actual: "14 lines".to_owned(),
        value: None,
        diff: None,
        evidence: vec![received(
            77.0,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"TypeError\n    at run (server.js:10:3)"}}"#,
            MessageSummary::Error { id: Some(json!(3)), code: Some(json!(-32603)) },
        )],
        link: "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema/2025-11-25/schema.ts"
            .to_owned(),
        fix: "Send the first line as `message`, and the stack trace in `data` if at all.".to_owned(),
        reproduce: format!(
            "mcp-conformance --revision {revision} --select jsonrpc/error-message -- node server.js --root '/srv/my files'"
        ),
        sdk: Some(format!("TypeScript SDK 1 {HOSTILE}")),
        upstream: Some(Box::new(Upstream {
            why: format!("The handler of requests puts the stack of an exception into the message. {HOSTILE}"),
            since: Some("1.0.0".to_owned()),
            fixed: Some("1.99.0".to_owned()),
            issue: Some("https://github.com/example/sdk/issues/1".to_owned()),
        })),
        ..unknown_tool(revision, 9, &[])
    }
}
