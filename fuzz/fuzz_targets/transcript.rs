//! All checks on an arbitrary transcript: each line is one event, its first byte the kind.
//!
//! Properties: every case of every revision has a verdict; it fails or warns exactly if it has findings; each finding
//! belongs to a requirement that the case names and that applies to the revision, and has a message; judging twice
//! gives the same result.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::case::Body;
use mcp_conformance::internals::check::{self, RecordedConnection, Judgement, Execution, IndexedConnections};
use mcp_conformance::spec::Revision;
use mcp_conformance::internals::transcript::{Entry, Event, StepId, ShutdownStep, SessionParameters, Transcript};
use mcp_conformance::verdict::Verdict;
use mcp_conformance::internals::wire::Frame;
use mcp_conformance_fuzz::cases;

fn event(line: &[u8]) -> Option<Event> {
    let (kind, rest) = line.split_first()?;
    Some(match kind {
        b'>' => Event::Sent { frame: Frame::parse(rest), step_id: None },
        b'0'..=b'9' => {
            Event::Sent { frame: Frame::parse(rest), step_id: Some(StepId { execution: 0, step: usize::from(kind - b'0') }) }
        }
        b'<' => Event::Received(Frame::parse(rest)),
        b'!' => Event::Stderr(String::from_utf8_lossy(rest).into_owned()),
        b't' => Event::TimedOut { waited: Duration::from_secs(5) },
        b'c' => Event::Closed,
        b'x' => Event::Exited { status: "exit status: 1".to_owned() },
        b'o' => Event::Overflow,
        b's' => {
            let left_running = Some(String::from_utf8_lossy(rest).split_whitespace().map(str::to_owned).collect());
            Event::Shutdown { step: ShutdownStep::Sigterm, duration: Duration::from_millis(10), left_running }
        }
        _ => return None,
    })
}

fn check_properties(judged: &Judgement, again: &Judgement, id: &str) {
    let bad = matches!(judged.verdict, Verdict::Fail | Verdict::Warn);
    assert_eq!(bad, !judged.findings.is_empty(), "{id}: {judged:?}");
    assert_eq!((judged.verdict, &judged.findings), (again.verdict, &again.findings), "{id} gives two results");
    let has_reason = judged.reason.is_some();
    assert_eq!(has_reason, matches!(judged.verdict, Verdict::Skip | Verdict::Error), "{id}: {judged:?}");
    assert!(judged.verdict != Verdict::Pass || judged.judged_count > 0, "{id} passes without having judged anything");
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let revision = Revision::ALL[usize::from(choice) % Revision::ALL.len()];
    let events = lines.split(|byte| *byte == b'\n').filter_map(event);
    let at = |at: usize| Duration::from_millis(at as u64);
    let entries: Vec<_> = events.enumerate().map(|(rank, event)| Arc::new(Entry { at: at(rank), event })).collect();
    let opening = entries.iter().find_map(|entry| entry.received()?.get("result").cloned());
    let session_parameters = SessionParameters { client_capabilities: serde_json::json!({}), opening, ..SessionParameters::default() };
    let transcript = Transcript { entries, session_parameters };

    let connected = [RecordedConnection { label: "main session".to_owned(), transcript: transcript.clone() }];
    let watched = IndexedConnections::new(&connected, revision);
    let execution = || Execution {
        label: String::new(),
        number: 0,
        transcript: transcript.clone(),
        discovered_lists: std::collections::BTreeMap::new(),
        not_carried_out: None,
        not_applicable: None,
        silent_methods: std::collections::BTreeSet::new(),
    };
    let executions = [execution()];
    for case in cases().iter().filter(|case| case.runs_in(revision)) {
        let judge = || match &case.body {
            Body::Passive(passive) => Some(check::judge_passive(case, passive, revision, &watched)),
            Body::Active(act) => Some(check::judge_active(case, act, revision, &executions)),
            Body::Fuzz(_) => None,
        };
        let (Some(judged), Some(again)) = (judge(), judge()) else { continue };
        check_properties(&judged, &again, &case.id);
        for finding in &judged.findings {
            let named = case.requirements.iter().find(|requirement| requirement.id == finding.requirement);
            assert!(named.is_some_and(|named| named.revisions().contains(revision)), "{}: {finding:?}", case.id);
            assert!(!finding.message.is_empty() && finding.count > 0, "{}: {finding:?}", case.id);
        }
    }
});
