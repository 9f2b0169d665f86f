//! The JSON report: the serialized [`Report`], indented.
//!
//! The format is described by `reports/schema.json` and versioned by [`super::FORMAT`]. Control characters and
//! invisible characters are written as escapes, so that a report is safe to print; a JSON parser reads the same text.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::visible::is_control_or_invisible;
use super::{Renderer, Report};

/// Writes a report as JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl Renderer for Json {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        write_escaped(report, out)
    }
}

/// Writes a value as indented JSON with control and invisible characters escaped.
pub(super) fn write_escaped(value: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    let formatter = EscapingFormatter { pretty: PrettyFormatter::with_indent(b"  ") };
    value.serialize(&mut Serializer::with_formatter(&mut *out, formatter))?;
    out.write_all(b"\n")
}

/// Indents, and escapes more characters than JSON requires.
struct EscapingFormatter {
    pretty: PrettyFormatter<'static>,
}

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut from = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_control_or_invisible(*c)) {
            out.write_all(&fragment.as_bytes()[from..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            from = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[from..])
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        self.pretty.write_char_escape(out, escape)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.begin_array(out)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_array(out)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(out)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.begin_object(out)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_object(out)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::report::{HOSTILE, example, golden};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Json.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }

    fn schema() -> Value {
        serde_json::from_str(include_str!("../../reports/schema.json")).expect("the schema is JSON")
    }

    fn validator() -> jsonschema::Validator {
        jsonschema::options().should_validate_formats(true).build(&schema()).expect("the schema is a schema")
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.json", &rendered(&example()));
    }

    #[test]
    fn a_parsed_report_equals_the_report_that_was_written() {
        let report = example();
        let read: Report = serde_json::from_str(&rendered(&report)).expect("a report");
        assert_eq!(read, report);
    }

    #[test]
    fn a_rendered_report_fits_the_published_schema() {
        let validator = validator();
        for report in [example(), Report { summary: None, ..example() }, Report { targets: Vec::new(), ..example() }] {
            let value: Value = serde_json::from_str(&rendered(&report)).expect("JSON");
            let errors: Vec<String> =
                validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert_eq!(errors, Vec::<String>::new());
        }
    }

    #[test]
    fn the_schema_and_the_type_agree_on_the_members_of_a_message() {
        let mut schema = schema();
        schema["$ref"] = "#/$defs/message-summary".into();
        schema.as_object_mut().expect("an object").retain(|name, _| name.starts_with('$'));
        let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
        let rows = [
            (json!({"kind": "request", "id": null, "method": "a", "tool": "b"}), true),
            (json!({"kind": "notification", "method": "a"}), true),
            (json!({"kind": "result", "id": 1}), true),
            (json!({"kind": "error", "code": "a"}), true),
            (json!({"kind": "batch"}), true),
            (json!({"kind": "other", "id": {}}), true),
            (json!({"kind": "request", "method": "a"}), false),
            (json!({"kind": "notification"}), false),
            (json!({"kind": "notification", "method": "a", "id": 1}), false),
            (json!({"kind": "result", "method": "a"}), false),
            (json!({"kind": "batch", "id": 1}), false),
            (json!({"kind": "other", "code": 1}), false),
            (json!({"id": 1}), false),
        ];
        for (message, fits) in rows {
            assert_eq!(validator.is_valid(&message), fits, "{message}");
            let read = serde_json::from_value::<crate::verdict::MessageSummary>(message.clone());
            assert_eq!(read.is_ok(), fits, "{message}");
        }
    }

    #[test]
    fn a_report_of_an_earlier_version_without_message_summaries_is_read() {
        fn without_messages(value: &mut Value) {
            match value {
                Value::Object(members) => {
                    if members.contains_key("direction") {
                        members.shift_remove("message");
                    }
                    members.values_mut().for_each(without_messages);
                }
                Value::Array(items) => items.iter_mut().for_each(without_messages),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let mut value = serde_json::to_value(example()).expect("JSON");
        without_messages(&mut value);
        assert!(validator().is_valid(&value));
        let read = Report::parse(&value.to_string()).expect("a report");
        let evidence = |report: &Report| -> Vec<crate::verdict::Evidence> {
            let findings = report.results().flat_map(|result| &result.findings);
            findings.flat_map(|finding| finding.evidence.clone()).collect()
        };
        assert!(evidence(&read).iter().all(|item| item.message.is_none()));
        let texts = |report| evidence(report).into_iter().map(|item| item.text).collect::<Vec<_>>();
        assert_eq!(texts(&read), texts(&example()));
        assert!(read.render(&crate::report::Html).contains("tools/call"));
    }

    #[test]
    fn the_output_contains_no_terminal_control_characters() {
        let text = rendered(&example());
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["targets"][1]["summary"]["server-info"]["name"], HOSTILE);
    }

    /// Adds an unknown member to each object in turn, except to values that the server defines.
    fn with_unknown_member(value: &Value, open: bool, place: &str, found: &mut Vec<(String, Value)>, document: &Value) {
        match value {
            Value::Object(members) => {
                if !open {
                    let mut changed = document.clone();
                    let object = changed.pointer_mut(place).expect("the pointer was just built");
                    object["unknown"] = Value::Bool(true);
                    found.push((place.to_owned(), changed));
                }
                for (name, member) in members {
                    let free = ["server-info", "capabilities", "value", "original", "arguments", "preceding"];
                    let open = open || free.contains(&name.as_str());
                    with_unknown_member(member, open, &format!("{place}/{name}"), found, document);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    with_unknown_member(item, open, &format!("{place}/{index}"), found, document);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_schema_forbids_unknown_members_in_every_object() {
        let validator = validator();
        let document: Value = serde_json::from_str(&rendered(&example())).expect("JSON");
        let mut found = Vec::new();
        with_unknown_member(&document, false, "", &mut found, &document);
        assert!(found.len() > 30, "{}", found.len());
        for (place, changed) in found {
            assert!(!validator.is_valid(&changed), "the schema allows an unknown member at {place}");
        }
    }

    #[test]
    fn the_schema_describes_every_member_and_the_example_uses_all() {
        let schema = schema();
        let mut described = BTreeSet::new();
        let definitions = schema["$defs"].as_object().expect("definitions");
        for (name, definition) in definitions.iter().chain([(&"report".to_owned(), &schema)]) {
            assert!(definition["description"].is_string(), "{name}");
            for (member, what) in definition.get("properties").and_then(Value::as_object).into_iter().flatten() {
                assert!(what["description"].is_string(), "{name}.{member}");
                described.insert(member.clone());
            }
        }
        let mut used = BTreeSet::new();
        names(&serde_json::from_str(&rendered(&example())).expect("JSON"), &mut used);
        let unused: Vec<_> = described.difference(&used).collect();
        assert_eq!(unused, Vec::<&String>::new());
    }

    fn names(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    found.insert(name.clone());
                    names(member, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A second declaration of the format, as an external consumer would write it, so that a change to the types of
    /// the library cannot change the format unnoticed.
    mod external {
        use super::{Deserialize, Value};

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Report {
            pub(super) format: u32,
            pub(super) tool: Tool,
            pub(super) started: String,
            pub(super) server: String,
            pub(super) options: Options,
            pub(super) targets: Vec<Target>,
            pub(super) summary: Option<Summary>,
            /// Only the schema checks its members.
            pub(super) baseline: Option<Value>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Tool {
            pub(super) name: String,
            pub(super) version: String,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Options {
            pub(super) revisions: Vec<String>,
            pub(super) select: Vec<String>,
            pub(super) skip: Vec<String>,
            #[serde(rename = "fail-on")]
            pub(super) fail_on: String,
            pub(super) calls: String,
            pub(super) hints: Option<String>,
            pub(super) seed: u64,
            #[serde(rename = "timeout-ms")]
            pub(super) timeout: u64,
            pub(super) retries: u64,
            pub(super) shard: Option<String>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Target {
            pub(super) summary: TargetSummary,
            pub(super) requirements: Requirements,
            pub(super) results: Vec<CaseResult>,
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub(super) struct Requirements {
            pub(super) judged: Vec<String>,
            pub(super) not_applicable: Vec<UnjudgedRequirements>,
            pub(super) not_observed: Vec<UnjudgedRequirements>,
            pub(super) not_judged: Vec<UnjudgedRequirements>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct UnjudgedRequirements {
            pub(super) reason: String,
            pub(super) requirements: Vec<String>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct HintNote {
            pub(super) request: String,
            #[serde(default, rename = "for")]
            pub(super) purposes: Vec<String>,
            pub(super) note: Option<String>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct TargetSummary {
            pub(super) revision: String,
            #[serde(rename = "server-info")]
            pub(super) server_info: Option<Value>,
            pub(super) capabilities: Option<Value>,
            pub(super) tools: Vec<ToolNote>,
            #[serde(default)]
            pub(super) hints: Vec<HintNote>,
            pub(super) launches: Vec<Launch>,
            pub(super) stderr: Option<String>,
            #[serde(rename = "stopped-early")]
            pub(super) stopped_early: Option<String>,
            #[serde(default)]
            pub(super) notes: Vec<String>,
            /// Only the schema checks its members.
            pub(super) fuzz: Option<Value>,
            pub(super) totals: Totals,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct ToolNote {
            pub(super) name: String,
            pub(super) called: bool,
            pub(super) note: Option<String>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Launch {
            pub(super) purpose: String,
            #[serde(rename = "startup-ms")]
            pub(super) startup: Option<f64>,
            pub(super) shutdown: Option<String>,
            pub(super) sent: u64,
            pub(super) received: u64,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct CaseResult {
            pub(super) case: String,
            pub(super) title: String,
            pub(super) revision: String,
            pub(super) requirements: Vec<String>,
            pub(super) verdict: String,
            pub(super) reason: Option<String>,
            pub(super) skipped: Option<String>,
            pub(super) observed: u64,
            #[serde(default)]
            pub(super) notes: Vec<String>,
            #[serde(default)]
            pub(super) findings: Vec<Finding>,
            #[serde(rename = "duration-ms")]
            pub(super) duration: f64,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Finding {
            pub(super) requirement: String,
            pub(super) level: String,
            pub(super) derived: bool,
            pub(super) verdict: String,
            pub(super) revision: String,
            pub(super) message: String,
            pub(super) expected: String,
            pub(super) actual: String,
            pub(super) value: Option<Value>,
            pub(super) diff: Option<String>,
            pub(super) count: u64,
            pub(super) subjects: Vec<String>,
            pub(super) evidence: Vec<Evidence>,
            pub(super) link: String,
            pub(super) fix: String,
            pub(super) reproduce: String,
            /// Only the schema checks its members.
            pub(super) counterexample: Option<Value>,
            pub(super) confirmation: Option<Confirmation>,
            pub(super) accepted: Option<String>,
            pub(super) sdk: Option<String>,
            pub(super) upstream: Option<Value>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Confirmation {
            pub(super) tried: u64,
            pub(super) failed: u64,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Evidence {
            pub(super) direction: String,
            #[serde(rename = "at-ms")]
            pub(super) at: f64,
            pub(super) text: String,
            #[serde(default)]
            pub(super) omitted: u64,
            /// Only the schema checks its members.
            pub(super) message: Option<Value>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Summary {
            pub(super) totals: Totals,
            pub(super) timing: Timing,
            pub(super) problem: Option<Problem>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Timing {
            #[serde(rename = "wall-ms")]
            pub(super) wall: f64,
            pub(super) launches: u64,
            #[serde(rename = "startup-ms")]
            pub(super) startup: f64,
            #[serde(rename = "judging-ms")]
            pub(super) judging: f64,
            #[serde(rename = "own-cpu-ms")]
            pub(super) own_cpu: Option<f64>,
            pub(super) waits: Option<Waits>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Waits {
            pub(super) answered: u64,
            #[serde(rename = "answered-ms")]
            pub(super) answered_time: f64,
            pub(super) unanswered: u64,
            #[serde(rename = "unanswered-ms")]
            pub(super) unanswered_time: f64,
            #[serde(rename = "ending-ms")]
            pub(super) ending: f64,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Problem {
            pub(super) kind: String,
            pub(super) message: String,
            pub(super) hint: String,
            #[serde(default)]
            pub(super) stderr: String,
            #[serde(default)]
            pub(super) evidence: Vec<Evidence>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Totals {
            pub(super) pass: u64,
            pub(super) fail: u64,
            pub(super) warn: u64,
            pub(super) skip: u64,
            pub(super) error: u64,
        }
    }

    #[test]
    fn an_external_consumer_can_parse_every_field() {
        let expected = example();
        let read: external::Report = serde_json::from_str(&rendered(&expected)).expect("the published format");
        assert_eq!((read.format, read.tool.name.as_str()), (2, "mcp-conformance"));
        assert_eq!(
            (read.tool.version, read.started, read.server),
            (expected.tool.version, expected.started, expected.server)
        );
        let options = read.options;
        assert_eq!((options.revisions.len(), options.select.len(), options.skip.len()), (2, 2, 1));
        assert_eq!(
            (options.fail_on.as_str(), options.calls.as_str(), options.seed, options.timeout),
            ("must", "non-destructive", 7, 5000)
        );
        assert_eq!(options.hints, expected.options.hints);
        assert_eq!((options.retries, options.shard.as_deref()), (1, Some("1/3")));
        assert_eq!(read.baseline, Some(serde_json::to_value(&expected.baseline).expect("JSON")));
        for (target, expected) in read.targets.iter().zip(&expected.targets) {
            assert_target_equal(target, expected);
        }
        assert_eq!(read.targets.len(), expected.targets.len());
        let (summary, expected) = (read.summary.expect("a summary"), expected.summary.expect("a summary"));
        totals_read_as(&summary.totals, expected.totals);
        assert_eq!(summary.timing.launches, 5);
        let timing = [summary.timing.wall, summary.timing.startup, summary.timing.judging].map(Some);
        let expected_timing =
            [expected.timing.wall_ms, expected.timing.startup_ms, expected.timing.judging_ms].map(Some);
        assert_eq!((timing, summary.timing.own_cpu), (expected_timing, expected.timing.own_cpu_ms));
        let (waits, expected_waits) = (summary.timing.waits.expect("waits"), expected.timing.waits.expect("waits"));
        assert_eq!((waits.answered, waits.unanswered), (211, 2));
        let times = [waits.answered_time, waits.unanswered_time, waits.ending].map(Some);
        let expected_times =
            [expected_waits.answered_ms, expected_waits.unanswered_ms, expected_waits.ending_ms].map(Some);
        assert_eq!(times, expected_times);
        let (problem, expected) = (summary.problem.expect("a problem"), expected.problem.expect("a problem"));
        assert_eq!(problem.kind, "stopped");
        assert_eq!((problem.message, problem.hint, problem.stderr), (expected.message, expected.hint, expected.stderr));
        assert_evidence_equal(&problem.evidence, &expected.evidence);
    }

    fn assert_target_equal(read: &external::Target, expected: &crate::report::Target) {
        let (summary, expected_summary) = (&read.summary, &expected.summary);
        assert_eq!(summary.revision, expected_summary.revision.as_str());
        assert_eq!(summary.server_info, expected_summary.server_info);
        assert_eq!(summary.capabilities, expected_summary.capabilities);
        assert_eq!(summary.stderr.clone().unwrap_or_default(), expected_summary.stderr);
        assert_eq!(summary.stopped_early, expected_summary.stopped_early);
        assert_eq!(summary.notes, expected_summary.notes);
        let fuzz = expected_summary.fuzz.as_ref().map(|fuzz| serde_json::to_value(fuzz).expect("JSON"));
        assert_eq!(summary.fuzz, fuzz);
        totals_read_as(&summary.totals, expected_summary.totals);
        assert_eq!(summary.tools.len(), expected_summary.tools.len());
        for (tool, expected) in summary.tools.iter().zip(&expected_summary.tools) {
            assert_eq!((&tool.name, tool.called, &tool.note), (&expected.name, expected.called, &expected.note));
        }
        assert_eq!(summary.hints.len(), expected_summary.hints.len());
        for (hint, expected) in summary.hints.iter().zip(&expected_summary.hints) {
            assert_eq!(
                (&hint.request, &hint.purposes, &hint.note),
                (&expected.request, &expected.purposes, &expected.note)
            );
        }
        requirements_read_as(&read.requirements, &expected.requirements);
        assert_eq!(summary.launches.len(), expected_summary.launches.len());
        for (launch, expected) in summary.launches.iter().zip(&expected_summary.launches) {
            assert_eq!((&launch.purpose, launch.startup), (&expected.purpose, expected.startup_ms));
            assert_eq!(launch.shutdown, expected.shutdown);
            assert_eq!([launch.sent, launch.received], [expected.sent, expected.received].map(|n| n as u64));
        }
        assert_eq!(read.results.len(), expected.results.len());
        for (result, expected) in read.results.iter().zip(&expected.results) {
            assert_eq!(
                (&result.case, &result.title, &result.reason),
                (&expected.case, &expected.title, &expected.reason)
            );
            assert_eq!(
                (result.revision.as_str(), result.verdict.as_str()),
                (expected.revision.as_str(), expected.verdict.as_str())
            );
            assert_eq!((&result.requirements, &result.notes), (&expected.requirements, &expected.notes));
            let skipped = expected.skipped.map(|skipped| serde_json::to_value(skipped).expect("JSON"));
            assert_eq!(result.skipped.clone().map(Value::from), skipped);
            assert_eq!(result.observed, expected.observed as u64);
            assert!((result.duration - expected.duration_ms).abs() < f64::EPSILON);
            assert_eq!(result.findings.len(), expected.findings.len());
            for (finding, expected) in result.findings.iter().zip(&expected.findings) {
                assert_finding_equal(finding, expected);
            }
        }
    }

    fn requirements_read_as(read: &external::Requirements, expected: &crate::report::Requirements) {
        assert_eq!(read.judged, expected.judged);
        for (read, expected) in [
            (&read.not_applicable, &expected.not_applicable),
            (&read.not_observed, &expected.not_observed),
            (&read.not_judged, &expected.not_judged),
        ] {
            assert_eq!(read.len(), expected.len());
            for (read, expected) in read.iter().zip(expected) {
                assert_eq!((&read.reason, &read.requirements), (&expected.reason, &expected.requirements));
            }
        }
    }

    fn assert_finding_equal(read: &external::Finding, expected: &crate::verdict::Finding) {
        assert_eq!(
            (&read.requirement, &read.level, read.derived),
            (&expected.requirement, &expected.level.to_string(), expected.derived)
        );
        assert_eq!(
            (read.verdict.as_str(), read.revision.as_str()),
            (expected.verdict.as_str(), expected.revision.as_str())
        );
        assert_eq!(
            (&read.message, &read.expected, &read.actual),
            (&expected.message, &expected.expected, &expected.actual)
        );
        assert_eq!((&read.value, &read.diff), (&expected.value, &expected.diff));
        assert_eq!((read.count, &read.subjects), (expected.count as u64, &expected.subjects));
        assert_eq!((&read.link, &read.fix, &read.reproduce), (&expected.link, &expected.fix, &expected.reproduce));
        let counterexample = expected.counterexample.as_ref().map(|one| serde_json::to_value(one).expect("JSON"));
        assert_eq!(read.counterexample, counterexample);
        let confirmed = read.confirmation.as_ref().map(|one| (one.tried, one.failed));
        assert_eq!(confirmed, expected.confirmation.map(|one| (one.tried as u64, one.failed as u64)));
        assert_eq!(read.accepted, expected.accepted);
        assert_eq!(read.sdk, expected.sdk);
        let upstream = expected.upstream.as_ref().map(|one| serde_json::to_value(one).expect("JSON"));
        assert_eq!(read.upstream, upstream);
        assert_evidence_equal(&read.evidence, &expected.evidence);
    }

    fn assert_evidence_equal(read: &[external::Evidence], expected: &[crate::verdict::Evidence]) {
        assert_eq!(read.len(), expected.len());
        for (read, expected) in read.iter().zip(expected) {
            let direction = format!("{:?}", expected.direction).to_lowercase();
            assert_eq!(
                (&read.direction, &read.text, read.omitted),
                (&direction, &expected.text, expected.omitted as u64)
            );
            assert!((read.at - expected.at_ms).abs() < f64::EPSILON);
            let message = expected.message.as_ref().map(|message| serde_json::to_value(message).expect("JSON"));
            assert_eq!(read.message, message);
        }
    }

    fn totals_read_as(read: &external::Totals, expected: crate::verdict::Totals) {
        let expected = [expected.pass, expected.fail, expected.warn, expected.skip, expected.error].map(|n| n as u64);
        assert_eq!([read.pass, read.fail, read.warn, read.skip, read.error], expected);
    }
}
