//! The report as JSON: the [`Report`] as it stands, indented.
//!
//! The format is described by `reports/schema.json` and versioned by [`super::FORMAT`]. Characters that
//! would act on a terminal are written as escapes, so that a report is harmless to look at; what reads it
//! gets the same text.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::visible::is_treacherous;
use super::{Renderer, Report};

/// Writes a report as JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl Renderer for Json {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        write_harmless(report, out)
    }
}

/// Writes a value as indented JSON in which nothing acts on a terminal.
pub(super) fn write_harmless(value: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    let formatter = Harmless { pretty: PrettyFormatter::with_indent(b"  ") };
    value.serialize(&mut Serializer::with_formatter(&mut *out, formatter))?;
    out.write_all(b"\n")
}

/// Indents, and escapes what is treacherous beyond what JSON itself asks for.
struct Harmless {
    pretty: PrettyFormatter<'static>,
}

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut from = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_treacherous(*c)) {
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
    use serde_json::Value;

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
    fn the_example_render_is_fixed() {
        golden::compare("example.json", &rendered(&example()));
    }

    #[test]
    fn a_report_read_back_is_the_report_that_was_written() {
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
    fn nothing_in_the_render_acts_on_a_terminal() {
        let text = rendered(&example());
        assert!(!text.chars().any(|c| c != '\n' && is_treacherous(c)));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["targets"][1]["summary"]["server-info"]["name"], HOSTILE);
    }

    /// Puts a member nobody knows into each object in turn, but for values that are the server's own.
    fn with_a_stranger(value: &Value, open: bool, place: &str, found: &mut Vec<(String, Value)>, whole: &Value) {
        match value {
            Value::Object(members) => {
                if !open {
                    let mut changed = whole.clone();
                    let object = changed.pointer_mut(place).expect("the place was walked to");
                    object["stranger"] = Value::Bool(true);
                    found.push((place.to_owned(), changed));
                }
                for (name, member) in members {
                    let free = ["server-info", "capabilities", "value", "original", "arguments", "before"];
                    let open = open || free.contains(&name.as_str());
                    with_a_stranger(member, open, &format!("{place}/{name}"), found, whole);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    with_a_stranger(item, open, &format!("{place}/{index}"), found, whole);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_schema_is_closed_at_every_object() {
        let validator = validator();
        let whole: Value = serde_json::from_str(&rendered(&example())).expect("JSON");
        let mut found = Vec::new();
        with_a_stranger(&whole, false, "", &mut found, &whole);
        assert!(found.len() > 30, "{}", found.len());
        for (place, changed) in found {
            assert!(!validator.is_valid(&changed), "a stranger at {place} goes unnoticed");
        }
    }

    #[test]
    fn the_schema_describes_everything_and_the_example_uses_all_of_it() {
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

    /// The format declared a second time, by a reader who has only the published description: what the
    /// types of the library become on the way out cannot change unnoticed.
    mod outside {
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
            /// Its members are held to the published schema alone.
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
            pub(super) not_applicable: Vec<OpenRequirements>,
            pub(super) not_observed: Vec<OpenRequirements>,
            pub(super) not_judged: Vec<OpenRequirements>,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct OpenRequirements {
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
            /// Its members are held to the published schema alone.
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
            pub(super) took: f64,
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
            /// Its members are held to the published schema alone.
            pub(super) counterexample: Option<Value>,
            pub(super) confirmation: Option<Confirmation>,
            pub(super) accepted: Option<String>,
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
    fn a_reader_from_outside_understands_every_field() {
        let ours = example();
        let read: outside::Report = serde_json::from_str(&rendered(&ours)).expect("the format as published");
        assert_eq!((read.format, read.tool.name.as_str()), (1, "mcp-conformance"));
        assert_eq!((read.tool.version, read.started, read.server), (ours.tool.version, ours.started, ours.server));
        let options = read.options;
        assert_eq!((options.revisions.len(), options.select.len(), options.skip.len()), (2, 2, 1));
        assert_eq!(
            (options.fail_on.as_str(), options.calls.as_str(), options.seed, options.timeout),
            ("must", "non-destructive", 7, 5000)
        );
        assert_eq!(options.hints, ours.options.hints);
        assert_eq!((options.retries, options.shard.as_deref()), (1, Some("1/3")));
        assert_eq!(read.baseline, Some(serde_json::to_value(&ours.baseline).expect("JSON")));
        for (target, ours) in read.targets.iter().zip(&ours.targets) {
            target_reads_as(target, ours);
        }
        assert_eq!(read.targets.len(), ours.targets.len());
        let (summary, ours) = (read.summary.expect("a summary"), ours.summary.expect("a summary"));
        totals_read_as(&summary.totals, ours.totals);
        assert_eq!(summary.timing.launches, 5);
        let timing = [summary.timing.wall, summary.timing.startup, summary.timing.judging].map(Some);
        let our_timing = [ours.timing.wall_ms, ours.timing.startup_ms, ours.timing.judging_ms].map(Some);
        assert_eq!((timing, summary.timing.own_cpu), (our_timing, ours.timing.own_cpu_ms));
        let (problem, ours) = (summary.problem.expect("a problem"), ours.problem.expect("a problem"));
        assert_eq!(problem.kind, "stopped");
        assert_eq!((problem.message, problem.hint, problem.stderr), (ours.message, ours.hint, ours.stderr));
        evidence_reads_as(&problem.evidence, &ours.evidence);
    }

    fn target_reads_as(read: &outside::Target, ours: &crate::report::Target) {
        let (summary, our_summary) = (&read.summary, &ours.summary);
        assert_eq!(summary.revision, our_summary.revision.as_str());
        assert_eq!(summary.server_info, our_summary.server_info);
        assert_eq!(summary.capabilities, our_summary.capabilities);
        assert_eq!(summary.stderr.clone().unwrap_or_default(), our_summary.stderr);
        assert_eq!(summary.stopped_early, our_summary.stopped_early);
        let fuzz = our_summary.fuzz.as_ref().map(|fuzz| serde_json::to_value(fuzz).expect("JSON"));
        assert_eq!(summary.fuzz, fuzz);
        totals_read_as(&summary.totals, our_summary.totals);
        assert_eq!(summary.tools.len(), our_summary.tools.len());
        for (tool, ours) in summary.tools.iter().zip(&our_summary.tools) {
            assert_eq!((&tool.name, tool.called, &tool.note), (&ours.name, ours.called, &ours.note));
        }
        assert_eq!(summary.hints.len(), our_summary.hints.len());
        for (hint, ours) in summary.hints.iter().zip(&our_summary.hints) {
            assert_eq!((&hint.request, &hint.purposes, &hint.note), (&ours.request, &ours.purposes, &ours.note));
        }
        requirements_read_as(&read.requirements, &ours.requirements);
        assert_eq!(summary.launches.len(), our_summary.launches.len());
        for (launch, ours) in summary.launches.iter().zip(&our_summary.launches) {
            assert_eq!((&launch.purpose, launch.startup), (&ours.purpose, ours.startup_ms));
            assert_eq!(launch.shutdown, ours.shutdown);
            assert_eq!([launch.sent, launch.received], [ours.sent, ours.received].map(|n| n as u64));
        }
        assert_eq!(read.results.len(), ours.results.len());
        for (result, ours) in read.results.iter().zip(&ours.results) {
            assert_eq!((&result.case, &result.title, &result.reason), (&ours.case, &ours.title, &ours.reason));
            assert_eq!(
                (result.revision.as_str(), result.verdict.as_str()),
                (ours.revision.as_str(), ours.verdict.as_str())
            );
            assert_eq!((&result.requirements, &result.notes), (&ours.requirements, &ours.notes));
            let skipped = ours.skipped.map(|skipped| serde_json::to_value(skipped).expect("JSON"));
            assert_eq!(result.skipped.clone().map(Value::from), skipped);
            assert_eq!(result.observed, ours.observed as u64);
            assert!((result.took - ours.duration_ms).abs() < f64::EPSILON);
            assert_eq!(result.findings.len(), ours.findings.len());
            for (finding, ours) in result.findings.iter().zip(&ours.findings) {
                finding_reads_as(finding, ours);
            }
        }
    }

    fn requirements_read_as(read: &outside::Requirements, ours: &crate::report::Requirements) {
        assert_eq!(read.judged, ours.judged);
        for (read, ours) in [
            (&read.not_applicable, &ours.not_applicable),
            (&read.not_observed, &ours.not_observed),
            (&read.not_judged, &ours.not_judged),
        ] {
            assert_eq!(read.len(), ours.len());
            for (read, ours) in read.iter().zip(ours) {
                assert_eq!((&read.reason, &read.requirements), (&ours.reason, &ours.requirements));
            }
        }
    }

    fn finding_reads_as(read: &outside::Finding, ours: &crate::verdict::Finding) {
        assert_eq!(
            (&read.requirement, &read.level, read.derived),
            (&ours.requirement, &ours.level.to_string(), ours.derived)
        );
        assert_eq!((read.verdict.as_str(), read.revision.as_str()), (ours.verdict.as_str(), ours.revision.as_str()));
        assert_eq!((&read.message, &read.expected, &read.actual), (&ours.message, &ours.expected, &ours.actual));
        assert_eq!((&read.value, &read.diff), (&ours.value, &ours.diff));
        assert_eq!((read.count, &read.subjects), (ours.count as u64, &ours.subjects));
        assert_eq!((&read.link, &read.fix, &read.reproduce), (&ours.link, &ours.fix, &ours.reproduce));
        let counterexample = ours.counterexample.as_ref().map(|one| serde_json::to_value(one).expect("JSON"));
        assert_eq!(read.counterexample, counterexample);
        let confirmed = read.confirmation.as_ref().map(|one| (one.tried, one.failed));
        assert_eq!(confirmed, ours.confirmation.map(|one| (one.tried as u64, one.failed as u64)));
        assert_eq!(read.accepted, ours.accepted);
        evidence_reads_as(&read.evidence, &ours.evidence);
    }

    fn evidence_reads_as(read: &[outside::Evidence], ours: &[crate::verdict::Evidence]) {
        assert_eq!(read.len(), ours.len());
        for (read, ours) in read.iter().zip(ours) {
            let direction = format!("{:?}", ours.direction).to_lowercase();
            assert_eq!((&read.direction, &read.text, read.omitted), (&direction, &ours.text, ours.omitted as u64));
            assert!((read.at - ours.at_ms).abs() < f64::EPSILON);
        }
    }

    fn totals_read_as(read: &outside::Totals, ours: crate::verdict::Totals) {
        let ours = [ours.pass, ours.fail, ours.warn, ours.skip, ours.error].map(|n| n as u64);
        assert_eq!([read.pass, read.fail, read.warn, read.skip, read.error], ours);
    }
}
