//! The page as a whole: its sections and its content security policy.

use std::collections::BTreeSet;
use std::io;

use askama::Template;

use super::changes::Changes;
use super::display::{counts, display, format_start, fragment, lines, shares};
use super::finding::{Findings, Part};
use super::fuzzing::{Fuzzing, fuzzing};
use super::result::{Area, Matrix, areas, matrix};
use super::wire::{Row, indent, timeline};
use crate::report::conclusion::{CaseCounts, color_verdict, verdict_parts};
use crate::report::layout::format_ms;
use crate::report::waits::describe_waits;
use crate::report::{FailOn, Renderer, Report, Target};
use crate::verdict::Verdict;

/// The embedded style sheet.
const STYLE: &str = include_str!("../../../reports/html/style.css");
/// The embedded script.
const SCRIPT: &str = include_str!("../../../reports/html/script.js");
/// The content security policy: only the embedded style and script are allowed, by their hashes.
const POLICY: &str = include_str!("../../../reports/html/policy.txt");

/// Writes a report as one HTML page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Html;

impl Renderer for Html {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let tools = tools(report);
        let findings = Findings::of(report, &tools);
        Page::of(report, &findings, tools, None).write_into(out)
    }
}

/// Writes a report as one HTML page that also says what changed since an earlier run.
///
/// # Examples
///
/// ```
/// use mcp_conformance::report::HtmlComparison;
/// use mcp_conformance::{Judge, Server, Settings};
///
/// let settings = Settings { select: vec!["lifecycle".to_owned()], ..Settings::default() };
/// let earlier = Judge::new(Server::reference([])).settings(settings.clone()).run_blocking()?;
/// let later = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
/// assert!(later.render(&HtmlComparison { earlier: &earlier }).contains("Nothing changed"));
/// # Ok::<(), mcp_conformance::JudgeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HtmlComparison<'a> {
    /// The report of the earlier run.
    pub earlier: &'a Report,
}

impl Renderer for HtmlComparison<'_> {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let tools = tools(report);
        let mut findings = Findings::of(report, &tools);
        let changes = Changes::of(self.earlier, report, &findings);
        findings.mark_new(&changes.new_slugs());
        Page::of(report, &findings, tools, Some(changes)).write_into(out)
    }
}

#[derive(Template)]
#[template(path = "page.html", config = "reports/html/askama.toml")]
struct Page<'a> {
    policy: &'static str,
    style: &'static str,
    script: &'static str,
    tone: &'static str,
    keyword: &'static str,
    why: String,
    server: String,
    /// The name and version from `serverInfo`, without duplicates.
    names: Vec<String>,
    /// The start of the run, machine-readable and human-readable.
    started: (String, String),
    generator: String,
    /// The settings, by name.
    settings: Vec<(&'static str, String)>,
    /// Each verdict with its count and the fragment that filters by it.
    tiles: Vec<(&'static str, usize, String)>,
    shares: Vec<(&'static str, usize, usize)>,
    matrix: Matrix,
    problem: Option<Problem>,
    /// What has to be edited in the baseline, one sentence each.
    outdated: Vec<String>,
    /// What changed since an earlier run, if there is one.
    changes: Option<Changes>,
    sections: &'a [Part],
    /// Whether a finding is not accepted.
    has_open: bool,
    has_status_filter: bool,
    /// Whose the findings are, if there is a choice.
    attributions: Vec<&'static str>,
    levels: Vec<String>,
    tools: Vec<String>,
    areas: Vec<Area>,
    fuzzing: Vec<Fuzzing<'a>>,
    targets: Vec<Server>,
}

/// The problem that kept the run from judging everything.
struct Problem {
    message: String,
    hint: String,
    rows: Vec<Row>,
    stderr: String,
}

/// The server in one revision.
struct Server {
    revision: &'static str,
    stopped_early: Option<String>,
    notes: Vec<String>,
    info: Option<String>,
    capabilities: Option<String>,
    /// Name, whether it was called, and a note.
    tools: Vec<(String, bool, String)>,
    launches: Vec<Launch>,
    stderr: String,
}

/// A process of the server.
struct Launch {
    purpose: String,
    startup: String,
    sent: usize,
    received: usize,
    end: String,
}

impl<'a> Page<'a> {
    fn of(report: &Report, findings: &'a Findings, tools: Vec<String>, changes: Option<Changes>) -> Self {
        let (keyword, why) = verdict_parts(report);
        let totals = CaseCounts::of(report).totals;
        let mut levels: Vec<String> = Vec::new();
        for finding in findings.all() {
            if !levels.contains(&finding.level) {
                levels.push(finding.level.clone());
            }
        }
        Self {
            policy: POLICY,
            style: STYLE,
            script: SCRIPT,
            tone: color_verdict(report).as_str(),
            keyword,
            why,
            server: if report.server.is_empty() { "no server".to_owned() } else { display(&report.server) },
            names: names(report),
            started: format_start(&report.started),
            generator: format!("{} {}", display(&report.tool.name), display(&report.tool.version)),
            settings: settings(report),
            tiles: Verdict::ALL
                .into_iter()
                .map(|verdict| {
                    let name = verdict.as_str();
                    (name, totals.of(verdict), fragment(&[("verdict", name)]))
                })
                .collect(),
            shares: shares(&counts(totals)),
            matrix: matrix(report),
            problem: report.summary.as_ref().and_then(|summary| summary.problem.as_ref()).map(|problem| Problem {
                message: display(&problem.message),
                hint: display(&problem.hint),
                rows: timeline(&problem.evidence),
                stderr: lines(&problem.stderr),
            }),
            outdated: report
                .baseline
                .iter()
                .flat_map(|comparison| comparison.outdated_messages().chain(comparison.expiry_messages()))
                .map(|message| display(&message))
                .collect(),
            changes,
            sections: &findings.parts,
            has_open: findings.count_open() > 0,
            has_status_filter: findings
                .all()
                .any(|finding| finding.flaky || finding.is_new || finding.accepted.is_some()),
            attributions: attributions(findings),
            levels,
            tools,
            areas: areas(report, findings),
            fuzzing: fuzzing(report, findings),
            targets: report.targets.iter().map(Server::of).collect(),
        }
    }
}

/// Whose the findings are, if not all are the author's.
fn attributions(findings: &Findings) -> Vec<&'static str> {
    let known: BTreeSet<&'static str> = findings.all().map(|finding| finding.attribution).collect();
    let order = ["author", "SDK", "interpretation"];
    if known.iter().all(|one| *one == order[0]) {
        return Vec::new();
    }
    order.into_iter().filter(|one| known.contains(one)).collect()
}

/// The tools of the server in all revisions, as displayed.
fn tools(report: &Report) -> Vec<String> {
    let mut tools: Vec<String> =
        report.targets.iter().flat_map(|target| &target.summary.tools).map(|tool| display(&tool.name)).collect();
    let fuzzed = report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref());
    tools.extend(fuzzed.flat_map(|fuzz| &fuzz.tools).map(|tool| display(&tool.tool)));
    tools.sort_unstable();
    tools.dedup();
    tools
}

fn names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for info in report.targets.iter().filter_map(|target| target.summary.server_info.as_ref()) {
        let part = |name| info.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let name = display(format!("{} {}", part("name"), part("version")).trim());
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn settings(report: &Report) -> Vec<(&'static str, String)> {
    let options = &report.options;
    let listed = |list: &[String], none: &str| match list {
        [] => none.to_owned(),
        list => display(&list.join(", ")),
    };
    let mut settings = vec![
        ("Requested revisions", listed(&options.revisions, "all released revisions that the server supports")),
        ("Selected cases", listed(&options.select, "all")),
        ("Excluded cases", listed(&options.skip, "none")),
        (
            "Fails on",
            match options.fail_on {
                FailOn::Must => "failures",
                FailOn::Should => "failures and warnings",
                FailOn::Untested => "failures and untested tools",
                FailOn::Never => "nothing (report only)",
            }
            .to_owned(),
        ),
        ("Called tools", display(&options.calls)),
        ("Seed", options.seed.to_string()),
        ("Timeout", format!("{} ms", options.timeout_ms)),
    ];
    if let Some(summary) = &report.summary {
        let timing = &summary.timing;
        settings.push(("Duration", format_ms(timing.wall_ms)));
        settings.push(("Started processes", timing.launches.to_string()));
        if timing.startup_ms > 0.0 {
            settings.push(("Median start-up", format_ms(timing.startup_ms)));
        }
        settings.push(("Time spent judging", format_ms(timing.judging_ms)));
        settings.extend(timing.waits.as_ref().and_then(describe_waits).map(|waits| ("Waits", waits)));
    }
    settings
}

impl Server {
    fn of(target: &Target) -> Self {
        let summary = &target.summary;
        let json = |value: &Option<serde_json::Value>| value.as_ref().map(|value| indent(&value.to_string()));
        Self {
            revision: summary.revision.as_str(),
            stopped_early: summary.stopped_early.as_deref().map(display),
            notes: summary.notes.iter().map(|note| display(note)).collect(),
            info: json(&summary.server_info),
            capabilities: json(&summary.capabilities),
            tools: summary
                .tools
                .iter()
                .map(|tool| {
                    let note = match (&tool.note, tool.called) {
                        (Some(note), _) => display(note),
                        (None, true) => String::new(),
                        (None, false) => "no case needed it".to_owned(),
                    };
                    (display(&tool.name), tool.called, note)
                })
                .collect(),
            launches: summary
                .launches
                .iter()
                .map(|launch| Launch {
                    purpose: display(&launch.purpose),
                    startup: launch.startup_ms.map_or_else(|| "no response".to_owned(), format_ms),
                    sent: launch.sent,
                    received: launch.received,
                    end: launch.shutdown.as_deref().map_or_else(|| "not shut down".to_owned(), display),
                })
                .collect(),
            stderr: lines(&summary.stderr),
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Html.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("text is UTF-8")
    }

    /// The page without its style and script, which would make the golden file large.
    fn markup(page: &str) -> String {
        page.replacen(POLICY, "POLICY", 1)
            .replacen(&POLICY.replace('\'', "&#39;"), "POLICY", 1)
            .replacen(STYLE, "STYLE", 1)
            .replacen(SCRIPT, "SCRIPT", 1)
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.html", &markup(&rendered(&example())));
    }

    #[test]
    fn a_warning_about_a_rule_that_binds_has_its_reason_in_the_heading() {
        let mut report = example();
        let results = report.targets.iter_mut().flat_map(|target| &mut target.results);
        for finding in results.flat_map(|result| &mut result.findings) {
            finding.verdict = finding.verdict.min(crate::verdict::Verdict::Warn);
        }
        let page = rendered(&report);
        let (_, interpretations) = page.split_once("id=\"interpretations\"").expect("a rule without a keyword warns");
        assert!(interpretations.contains("They only warn."));
        let headings = page.split("<summary>").filter_map(|part| part.split("</summary>").next());
        let binding = |heading: &&str| {
            let level = |level: &str| heading.contains(&format!("<span class=\"level\">{level}</span>"));
            (level("MUST") || level("SCHEMA")) && !heading.contains(">interpretation<")
        };
        let headings: Vec<&str> = headings.filter(binding).collect();
        assert!(!headings.is_empty());
        for heading in headings {
            assert!(heading.contains("<span class=\"level-reason\">only warns, as "), "{heading}");
        }
    }

    #[test]
    fn findings_of_one_cause_are_one_card_that_shows_each() {
        let mut report = example();
        let before = rendered(&report);
        let warned = |result: &&mut crate::event::CaseResult| result.case == "jsonrpc/error-message";
        let result = report.targets[1].results.iter_mut().find(warned).expect("a warning");
        let mut other = result.clone();
        (other.case, other.findings[0].requirement) = ("jsonrpc/other".to_owned(), "other-rule".to_owned());
        other.findings[0].reproduce = "mcp-conformance --select jsonrpc/other".to_owned();
        report.targets[1].results.push(other);
        let page = rendered(&report);
        let cards = |page: &str| page.matches("<details class=\"finding ").count();
        assert_eq!(cards(&page), cards(&before));
        assert!(page.contains("1 more finding that probably has the same cause"));
        assert!(page.contains("other-rule (") && page.contains("--select jsonrpc/other"), "the other is in the card");
    }

    #[test]
    fn a_comparison_marks_what_is_new() {
        let mut earlier = example();
        earlier.targets[1].results.iter_mut().for_each(|result| result.findings.clear());
        let compared = |earlier: &Report| {
            let mut bytes = Vec::new();
            HtmlComparison { earlier }.render(&example(), &mut bytes).expect("a vector takes all that is written");
            String::from_utf8(bytes).expect("text is UTF-8")
        };
        let page = compared(&earlier);
        assert_eq!(
            page.matches(r#"<span class="mark new">new</span>"#).count(),
            4,
            "one for each finding of the revision"
        );
        assert!(page.contains("Changes since 2026-08-01 09:30 UTC"));
        let same = compared(&example());
        assert!(same.contains("Nothing changed") && !same.contains(r#"<span class="mark new">"#));
    }

    #[test]
    fn the_policy_has_the_hashes_of_style_and_script() {
        let hash = |text: &str| STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()));
        let expected = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
            hash(STYLE),
            hash(SCRIPT)
        );
        golden::compare("../html/policy.txt", &expected);
    }

    #[test]
    fn style_and_script_stay_in_their_elements() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        // The policy blocks these, so they would not work.
        for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "url(", "@import"] {
            assert!(!STYLE.contains(sink) && !SCRIPT.contains(sink), "{sink}");
        }
    }

    #[test]
    fn the_page_loads_no_external_resources() {
        let page = rendered(&example());
        for markup in [" src=", "<link", "<img", "<iframe", "<object", "<base", " style=", " onclick="] {
            assert!(!page.contains(markup), "{markup}");
        }
    }

    /// The elements of a page with the names of their attributes, without text.
    fn skeleton(page: &str) -> BTreeSet<(String, Vec<String>)> {
        let mut found = BTreeSet::new();
        for tag in page.split('<').skip(1) {
            // A quoted value may contain anything except the quote, which is escaped.
            let (mut quoted, mut end) = (false, tag.len());
            for (at, c) in tag.char_indices() {
                match c {
                    '"' => quoted = !quoted,
                    '>' if !quoted => {
                        end = at;
                        break;
                    }
                    _ => {}
                }
            }
            let outside: String = tag[..end].split('"').step_by(2).collect();
            let mut names = outside.split_whitespace().map(str::to_owned);
            found.insert((names.next().unwrap_or_default(), names.collect()));
        }
        found
    }

    #[test]
    fn the_skeleton_shows_injected_attributes_and_elements() {
        let expected = skeleton(r#"<p title="a &#34; b>c">text</p>"#);
        assert_eq!(expected.len(), 2, "{expected:?}");
        assert_ne!(skeleton(r#"<p title="a" onfocus=" b>c">text</p>"#), expected);
        assert_ne!(skeleton(r#"<p title="a &#34; b>c"><i>text</p>"#), expected);
    }

    #[test]
    fn report_text_never_becomes_an_element_or_attribute() {
        const ATTACKS: [&str; 5] = [
            HOSTILE,
            "\"><script>owned=1</script><img src=x onerror=owned=1>",
            "' onmouseover='owned=1' x=\" autofocus onfocus=owned=1 y=\"",
            "</pre></code></style></script></title></textarea><!--<svg onload=owned=1>",
            "]]>&#60;script&#62;&lt;b&gt;\u{feff}\u{0}{{ 7 * 7 }}{% raw %}",
        ];
        let plain = markup(&rendered(&poisoned("")));
        let allowed = skeleton(&plain);
        assert!(allowed.len() > 60, "{}", allowed.len());
        for attack in ATTACKS {
            let page = markup(&rendered(&poisoned(attack)));
            let strange: Vec<char> = page.chars().filter(|c| *c != '\n' && is_control_or_invisible(*c)).collect();
            assert_eq!(strange, Vec::<char>::new(), "{attack:?}");
            let found = skeleton(&page);
            let new: Vec<_> = found
                .difference(&allowed)
                // Long text is collapsed, and text that is not a URL is not a link.
                .filter(|(tag, _)| {
                    !["details", "/details", "summary", "/summary", "del", "/del", "ins", "/ins"]
                        .contains(&tag.as_str())
                })
                .collect();
            assert!(new.is_empty(), "{attack:?} makes {new:?}");
            assert_eq!(page.matches("<script").count(), 1);
        }
    }

    /// The example with the attack in every text.
    fn poisoned(attack: &str) -> Report {
        let mut report = example();
        poison(&mut report, attack);
        report.tool.version.push_str(attack);
        report.started.push_str(attack);
        report
    }
}
