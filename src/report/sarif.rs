//! SARIF 2.1.0: a rule for each requirement, a result for each cause: what several tools do alike, or what several cases or
//! revisions show, is one alert.
//!
//! An accepted finding is a result with a suppression, so that a viewer closes its alert instead of losing it. The
//! location of a result is the case, because the source code of the server is unknown, or a file that the user names.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::attribution::Attribution;
use super::finding_text::{MAX_LINE_CHARS, evidence_lines, finding_lines, flaky_note, level_label};
use super::group::{GroupedFinding, group_causes};
use super::json::write_escaped;
use super::visible::{excerpt, visible};
use super::{Conclusion, Renderer, Report};
use crate::fnv;
use crate::percent;
use crate::spec::{Catalogue, Level, book_address, requirement_page};
use crate::verdict::{Finding, Verdict};

/// Writes a report as SARIF 2.1.0.
#[derive(Debug, Clone, Default)]
pub struct Sarif {
    /// The file of the server's repository that every result points to, relative to its root and with `/`; the file of the
    /// case if absent. Code scanning shows a result only where its file exists.
    pub file: Option<String>,
}

impl Renderer for Sarif {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        write_escaped(&Log::of(report, self.file.as_deref()), out)
    }
}

/// The length at which a list of tools is truncated, in characters.
const MAX_TOOLS_CHARS: usize = 300;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    invocations: [Invocation; 1],
    automation_details: AutomationDetails,
    column_kind: &'static str,
    results: Vec<SarifResult>,
    properties: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: String,
    version: String,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct AutomationDetails {
    id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Message,
    full_description: Message,
    help: Message,
    help_uri: String,
    default_configuration: Configuration,
    properties: RuleProperties,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct RuleProperties {
    tags: Vec<String>,
}

#[derive(Serialize)]
struct Message {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    markdown: Option<String>,
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self { text, markdown: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    exit_code: u8,
    exit_code_description: String,
    start_time_utc: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    partial_fingerprints: BTreeMap<&'static str, String>,
    /// Present in every result or in none, as the format requires.
    suppressions: Vec<Suppression>,
    properties: ResultProperties,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
    logical_locations: [LogicalLocation; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    kind: &'static str,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    justification: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultProperties {
    cases: Vec<String>,
    revisions: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    count: usize,
    /// Whose the finding is: `author`, `SDK` or `interpretation`.
    origin: &'static str,
    reproduce: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    flaky: Option<String>,
    messages: Vec<String>,
}

impl Log {
    fn of(report: &Report, file: Option<&str>) -> Self {
        let mut rules: BTreeMap<&str, (&Finding, Vec<&'static str>)> = BTreeMap::new();
        for finding in report.results().flat_map(|result| &result.findings) {
            let (_, revisions) = rules.entry(&finding.requirement).or_insert((finding, Vec::new()));
            if !revisions.contains(&finding.revision.as_str()) {
                revisions.push(finding.revision.as_str());
            }
        }
        let rule_ids: Vec<&str> = rules.keys().copied().collect();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut results = Vec::new();
        for group in group_causes(report) {
            let index = rule_ids.binary_search(&group.requirement).unwrap_or_default();
            for grouped in &group.findings {
                results.push(sarif_result(grouped, index, file, &mut seen));
            }
        }
        let properties = [("server", excerpt(&report.server, 2000, 0)), ("started", report.started.clone())];
        Self {
            schema: SCHEMA,
            version: "2.1.0",
            runs: [Run {
                tool: Tool {
                    driver: Driver {
                        name: visible(&report.tool.name).into_owned(),
                        version: visible(&report.tool.version).into_owned(),
                        rules: rules.values().map(|(finding, revisions)| rule(finding, revisions)).collect(),
                    },
                },
                invocations: [invocation(report)],
                automation_details: AutomationDetails { id: "mcp-conformance/" },
                column_kind: "utf16CodeUnits",
                results,
                properties: properties.into_iter().collect(),
            }],
        }
    }
}

fn rule(finding: &Finding, revisions: &[&'static str]) -> Rule {
    let known = Catalogue::embedded().get(&finding.requirement);
    let text = known.map_or_else(|| visible(&finding.requirement).into_owned(), |known| known.text.clone());
    let fix = excerpt(&finding.fix, 2000, 0);
    let link = percent::encode_address(&finding.link);
    // The page says what to do in more words, and links to the specification.
    let page = known.and_then(|known| book_address(&requirement_page(known)));
    Rule {
        id: visible(&finding.requirement).into_owned(),
        short_description: Message::from(text.clone()),
        full_description: Message::from(format!("{text} ({})", level_label(finding))),
        help: help(&text, &fix, known.map(|known| known.id.as_str()), page.as_deref(), &link),
        help_uri: page.unwrap_or(link),
        default_configuration: Configuration {
            level: match (finding.level, finding.derived) {
                (Level::Must | Level::Schema, false) => "error",
                (Level::Must | Level::Schema | Level::Should, _) => "warning",
                (Level::May, _) => "note",
            },
        },
        properties: RuleProperties {
            tags: known
                .map(|known| known.area.clone())
                .into_iter()
                .chain([finding.level.to_string()])
                .chain(revisions.iter().map(|revision| (*revision).to_owned()))
                .collect(),
        },
    }
}

/// What the rule says, how to fix the server, and where to read more.
fn help(text: &str, fix: &str, requirement: Option<&str>, page: Option<&str>, link: &str) -> Message {
    let explain = requirement.map_or_else(String::new, |id| format!("More: `mcp-conformance explain {id}`\n\n"));
    let pages: Vec<&str> = page.into_iter().chain([link]).collect();
    let page = page.map_or_else(String::new, |page| format!("[The rule and its cases]({page}) | "));
    Message {
        text: format!("{text}\n\nHow to fix it: {fix}\n\n{explain}{}", pages.join("\n")),
        markdown: Some(format!(
            "{}\n\n**How to fix it:** {}\n\n{explain}{page}[The specification]({link})",
            super::markdown::sentence(text),
            super::markdown::sentence(fix)
        )),
    }
}

fn sarif_result(
    grouped: &GroupedFinding<'_>,
    index: usize,
    file: Option<&str>,
    seen: &mut BTreeMap<String, usize>,
) -> SarifResult {
    let finding = grouped.finding;
    // Only what is stable from run to run: no times, no counts, no text of the server.
    let identity = [finding.requirement.as_str(), grouped.message].join("\n");
    let number = seen.entry(identity.clone()).or_default();
    *number += 1;
    let fingerprint = format!("{:016x}:{number}", fnv::hash(identity.bytes()));
    let revisions: Vec<&'static str> = grouped.revisions.iter().map(|revision| revision.as_str()).collect();
    let cases: Vec<String> = grouped.cases.iter().map(|case| visible(case).into_owned()).collect();
    let tools: Vec<String> = grouped.tools.iter().map(|tool| visible(tool).into_owned()).collect();
    let case = grouped.cases.first().copied().unwrap_or_default();
    SarifResult {
        rule_id: visible(&finding.requirement).into_owned(),
        rule_index: index,
        level: if finding.verdict == Verdict::Fail { "error" } else { "warning" },
        message: Message::from(message_of(grouped, &revisions, &tools)),
        locations: [Location {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation {
                    uri: file.map_or_else(
                        || format!("cases/{}.jsonc", percent::encode_address(case)),
                        percent::encode_address,
                    ),
                },
                region: Region { start_line: 1 },
            },
            logical_locations: [LogicalLocation { fully_qualified_name: visible(case).into_owned(), kind: "function" }],
        }],
        partial_fingerprints: [("mcpConformance/v2", fingerprint)].into_iter().collect(),
        suppressions: finding
            .accepted
            .iter()
            .map(|why| Suppression { kind: "external", justification: excerpt(why, 1000, 0) })
            .collect(),
        properties: ResultProperties {
            cases,
            revisions,
            tools,
            count: grouped.count,
            origin: Attribution::of(finding).as_str(),
            reproduce: visible(&finding.reproduce).into_owned(),
            flaky: flaky_note(finding),
            messages: evidence_lines(finding),
        },
    }
}

/// What is wrong, the newest finding of the cause, and where it was found.
fn message_of(grouped: &GroupedFinding<'_>, revisions: &[&str], tools: &[String]) -> String {
    let mut lines = finding_lines(grouped.finding);
    lines[0] = excerpt(&grouped.headline(), MAX_LINE_CHARS, 0);
    if tools.len() > 1 {
        lines.push(format!("tools: {}", excerpt(&tools.join(", "), MAX_TOOLS_CHARS, 0)));
    }
    lines.push(format!("revisions: {}", revisions.join(", ")));
    lines.join("\n")
}

fn invocation(report: &Report) -> Invocation {
    let conclusion = Conclusion::of(report);
    let mut notifications = Vec::new();
    let mut note = |text: String| notifications.push(Notification { level: "error", message: Message::from(text) });
    if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
        note(format!("{} {}", excerpt(&problem.message, 2000, 0), excerpt(&problem.hint, 2000, 0)));
    }
    for result in report.results().filter(|result| result.verdict == Verdict::Error) {
        let reason = result.reason.as_deref().unwrap_or("no reason given");
        let case = visible(&result.case);
        note(format!("{case} could not be judged in {}: {}", result.revision, excerpt(reason, 2000, 0)));
    }
    report.baseline.iter().flat_map(super::BaselineComparison::outdated_messages).for_each(note);
    Invocation {
        execution_successful: matches!(conclusion, Conclusion::Passed | Conclusion::Failed),
        exit_code: conclusion.code(),
        exit_code_description: super::verdict_line(report),
        start_time_utc: visible(&report.started).into_owned(),
        tool_execution_notifications: notifications,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Sarif::default().render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }

    /// A schema of the part of SARIF that is written here, from section 3 of the standard: closed objects with their
    /// required members and enumerations.
    fn standard() -> jsonschema::Validator {
        let text = json!({"type": "object", "required": ["text"], "additionalProperties": false,
            "properties": {"text": {"type": "string", "minLength": 1}, "markdown": {"type": "string"}}});
        let level = json!({"enum": ["none", "note", "warning", "error"]});
        let closed = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties});
        let rule = closed(
            &["id"],
            json!({"id": {"type": "string"}, "shortDescription": text, "fullDescription": text, "help": text,
                "helpUri": {"type": "string", "format": "uri"}, "properties": {"type": "object"},
                "defaultConfiguration": closed(&[], json!({"level": level}))}),
        );
        let location = closed(
            &[],
            json!({"physicalLocation": closed(&["artifactLocation"], json!({
                "artifactLocation": closed(&["uri"], json!({"uri": {"type": "string", "format": "uri-reference"}})),
                "region": closed(&["startLine"], json!({"startLine": {"type": "integer", "minimum": 1}}))})),
                "logicalLocations": {"type": "array", "uniqueItems": true, "items": closed(&[], json!({
                    "fullyQualifiedName": {"type": "string"}, "kind": {"type": "string"}}))}}),
        );
        let result = closed(
            &["message"],
            json!({"ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": -1}, "level": level,
                "message": text, "locations": {"type": "array", "items": location}, "properties": {"type": "object"},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                "suppressions": {"type": "array", "uniqueItems": true, "items": closed(&["kind"], json!({
                    "kind": {"enum": ["inSource", "external"]}, "justification": {"type": "string"}}))}}),
        );
        let invocation = closed(
            &["executionSuccessful"],
            json!({"executionSuccessful": {"type": "boolean"}, "exitCode": {"type": "integer"},
                "exitCodeDescription": {"type": "string"}, "startTimeUtc": {"type": "string", "format": "date-time"},
                "toolExecutionNotifications": {"type": "array", "items": closed(&["message"], json!({
                    "level": level, "message": text}))}}),
        );
        let run = closed(
            &["tool"],
            json!({"tool": closed(&["driver"], json!({"driver": closed(&["name"], json!({
                "name": {"type": "string"}, "version": {"type": "string"},
                "rules": {"type": "array", "uniqueItems": true, "items": rule}}))})),
                "invocations": {"type": "array", "items": invocation},
                "automationDetails": closed(&[], json!({"id": {"type": "string"}})),
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": result}, "properties": {"type": "object"}}),
        );
        let log = closed(
            &["version", "runs"],
            json!({"$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
                "runs": {"type": "array", "items": run}}),
        );
        jsonschema::options().should_validate_formats(true).build(&log).expect("the schema is a schema")
    }

    fn assert_valid(text: &str) -> Value {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let errors: Vec<String> =
            standard().iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert_eq!(errors, Vec::<String>::new());
        value
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.sarif", &rendered(&example()));
    }

    #[test]
    fn the_output_is_valid_and_its_rule_indices_are_correct() {
        let aborted = Report { summary: None, ..example() };
        let empty = Report { targets: Vec::new(), ..example() };
        for report in [example(), aborted, empty] {
            let value = assert_valid(&rendered(&report));
            let run = &value["runs"][0];
            for result in run["results"].as_array().expect("results") {
                let at = result["ruleIndex"].as_u64().expect("an index");
                assert_eq!(run["tool"]["driver"]["rules"][usize::try_from(at).expect("small")]["id"], result["ruleId"]);
            }
        }
    }

    #[test]
    fn fingerprints_are_unique_and_do_not_depend_on_times_and_counts() {
        let prints = |report: &Report| -> Vec<String> {
            let value = assert_valid(&rendered(report));
            let results = value["runs"][0]["results"].as_array().expect("results").clone();
            results.iter().map(|result| result["partialFingerprints"]["mcpConformance/v2"].to_string()).collect()
        };
        let mut report = example();
        let before = prints(&report);
        assert_eq!(before.iter().collect::<BTreeSet<_>>().len(), before.len());
        for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
            result.duration_ms += 1.0;
            for finding in &mut result.findings {
                finding.count += 5;
                finding.actual.push_str(" and more");
                finding.evidence.clear();
            }
        }
        assert_eq!(prints(&report), before);
    }

    #[test]
    fn one_cause_is_one_result_however_many_tools_and_revisions_show_it() {
        let mut report = example();
        let results = report.targets.iter_mut().flat_map(|target| &mut target.results);
        let crash = results.filter(|result| result.case == "fuzz/crash").last().expect("the example has one");
        crash.findings[0].message = "search: the server exits".to_owned();
        let before = assert_valid(&rendered(&report))["runs"][0]["results"].as_array().expect("results").len();
        let results = report.targets.iter_mut().flat_map(|target| &mut target.results);
        let crash = results.filter(|result| result.case == "fuzz/crash").last().expect("the example has one");
        for tool in ["delete", "insert"] {
            let mut other = crash.findings[0].clone();
            other.message = format!("{tool}: the server exits");
            other.counterexample.as_mut().expect("the fuzzer found it").tool = tool.to_owned();
            crash.findings.push(other);
        }
        let value = assert_valid(&rendered(&report));
        let results = value["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.len(), before);
        let of_tools =
            results.iter().filter(|result| result["properties"]["tools"].as_array().map(Vec::len) == Some(3));
        assert_eq!(of_tools.count(), 1);
    }

    #[test]
    fn every_result_points_to_the_file_of_the_user() {
        let renderer = Sarif { file: Some("src/my server.ts".to_owned()) };
        let value = assert_valid(&example().render(&renderer));
        let results = value["runs"][0]["results"].as_array().expect("results");
        let at = |result: &Value| result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone();
        assert!(!results.is_empty() && results.iter().all(|result| at(result) == "src/my%20server.ts"));
    }

    #[test]
    fn the_help_names_the_page_of_the_book_and_that_of_the_specification() {
        let (page, link) = ("https://book.example/a.html#rule", "https://modelcontextprotocol.io/specification");
        let with_page = help("It is so.", "Do this.", Some("rule"), Some(page), link);
        let markdown = with_page.markdown.expect("Markdown");
        assert!(markdown.contains(&format!("({page})")) && markdown.contains(&format!("({link})")), "{markdown}");
        assert!(markdown.contains("`mcp-conformance explain rule`"), "{markdown}");
        assert!(with_page.text.ends_with(&format!("{page}\n{link}")), "{}", with_page.text);
        let without = help("It is so.", "Do this.", None, None, link);
        assert!(!without.text.contains("explain") && without.text.ends_with(link), "{}", without.text);
    }

    #[test]
    fn accepted_findings_are_suppressed_with_their_reason() {
        let value = assert_valid(&rendered(&example()));
        let results = value["runs"][0]["results"].as_array().expect("results");
        let suppressed: Vec<&Value> =
            results.iter().filter(|result| result["suppressions"] != json!([])).map(|r| &r["ruleId"]).collect();
        assert_eq!(suppressed, ["content-image"]);
    }

    #[test]
    fn server_text_never_becomes_structure() {
        let mut report = example();
        poison(&mut report, &format!("\"}}],\"x\":[{{](javascript:alert(1)) <img src=x> {HOSTILE}"));
        let text = rendered(&report);
        let value = assert_valid(&text);
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
        for rule in value["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules") {
            let markdown = rule["help"]["markdown"].as_str().expect("markdown");
            assert!(!golden::outside_code(markdown).contains("<img"), "{markdown}");
        }
    }
}
