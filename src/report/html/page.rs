//! The page as a whole: its parts, and the policy that keeps everything else out.

use std::io;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::finding::{Findings, Group};
use super::fuzzing::{Fuzzing, fuzzing};
use super::result::{Area, Matrix, areas, matrix};
use super::shown::{counts, fragment, lines, shares, shown};
use super::wire::{Row, indent, time_line};
use crate::report::conclusion::{Standing, tone, verdict_words};
use crate::report::prose::time;
use crate::report::{FailOn, Renderer, Report, Target};
use crate::verdict::Verdict;

/// The style, embedded as it stands.
const STYLE: &str = include_str!("../../../reports/html/style.css");
/// The script, embedded as it stands.
const SCRIPT: &str = include_str!("../../../reports/html/script.js");

/// Writes a report as one HTML page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Html;

impl Renderer for Html {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let tools = tools(report);
        let findings = Findings::of(report, &tools);
        Page::of(report, &findings, tools).write_into(out)
    }
}

#[derive(Template)]
#[template(path = "page.html", config = "reports/html/askama.toml")]
struct Page<'a> {
    policy: String,
    style: &'static str,
    script: &'static str,
    tone: &'static str,
    word: &'static str,
    why: String,
    server: String,
    /// What the server calls itself, each name once.
    names: Vec<String>,
    /// The moment that the run began, for a program and for a reader.
    started: (String, String),
    maker: String,
    /// The settings, by name.
    settings: Vec<(&'static str, String)>,
    /// Each verdict that was given: word, number, the fragment that filters by it.
    tiles: Vec<(&'static str, usize, String)>,
    shares: Vec<(&'static str, usize, usize)>,
    matrix: Matrix,
    problem: Option<Problem>,
    /// What is to be edited in the baseline, a sentence each.
    outdated: Vec<String>,
    open: &'a [Group],
    accepted: &'a [Group],
    has_marks: bool,
    levels: Vec<String>,
    tools: Vec<String>,
    areas: Vec<Area>,
    fuzzing: Vec<Fuzzing<'a>>,
    targets: Vec<Server>,
}

/// Why nothing, or not everything, could be judged.
struct Problem {
    message: String,
    hint: String,
    rows: Vec<Row>,
    stderr: String,
}

/// What is known of the server in one revision.
struct Server {
    revision: &'static str,
    ended_early: Option<String>,
    info: Option<String>,
    capabilities: Option<String>,
    /// Name, whether it was called, and what there is to say.
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
    fn of(report: &Report, findings: &'a Findings, tools: Vec<String>) -> Self {
        let (word, why) = verdict_words(report);
        let totals = Standing::of(report).totals;
        let mut levels: Vec<String> = Vec::new();
        for told in findings.told() {
            if !levels.contains(&told.level) {
                levels.push(told.level.clone());
            }
        }
        Self {
            policy: policy(),
            style: STYLE,
            script: SCRIPT,
            tone: tone(report).as_str(),
            word,
            why,
            server: if report.server.is_empty() { "no server".to_owned() } else { shown(&report.server) },
            names: names(report),
            started: moment(&report.started),
            maker: format!("{} {}", shown(&report.tool.name), shown(&report.tool.version)),
            settings: settings(report),
            tiles: Verdict::ALL
                .into_iter()
                .map(|verdict| {
                    let word = verdict.as_str();
                    (word, totals.of(verdict), fragment(&[("verdict", word)]))
                })
                .collect(),
            shares: shares(&counts(totals)),
            matrix: matrix(report),
            problem: report.summary.as_ref().and_then(|summary| summary.problem.as_ref()).map(|problem| Problem {
                message: shown(&problem.message),
                hint: shown(&problem.hint),
                rows: time_line(&problem.evidence),
                stderr: lines(&problem.stderr),
            }),
            outdated: report
                .baseline
                .iter()
                .flat_map(|held| held.complaints().chain(held.reminders()))
                .map(|told| shown(&told))
                .collect(),
            open: &findings.open,
            accepted: &findings.accepted,
            has_marks: findings.told().any(|told| told.flaky || told.accepted.is_some()),
            levels,
            tools,
            areas: areas(report, findings),
            fuzzing: fuzzing(report, findings),
            targets: report.targets.iter().map(Server::of).collect(),
        }
    }

    /// How many findings there are, one for all revisions.
    fn number(groups: &[Group]) -> usize {
        groups.iter().map(|group| group.told.len()).sum()
    }
}

/// What the page may do: apply its style, run its script, and nothing else at all.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// The tools of the server over all revisions, as they are shown.
fn tools(report: &Report) -> Vec<String> {
    let mut tools: Vec<String> =
        report.targets.iter().flat_map(|target| &target.summary.tools).map(|tool| shown(&tool.name)).collect();
    let fuzzed = report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref());
    tools.extend(fuzzed.flat_map(|fuzz| &fuzz.tools).map(|tool| shown(&tool.tool)));
    tools.sort_unstable();
    tools.dedup();
    tools
}

fn names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for info in report.targets.iter().filter_map(|target| target.summary.server_info.as_ref()) {
        let part = |name| info.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let name = shown(format!("{} {}", part("name"), part("version")).trim());
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// `2026-08-01T09:30:00Z` as it is and as `2026-08-01 09:30 UTC`.
fn moment(started: &str) -> (String, String) {
    let reading = match started.split_once('T') {
        Some((day, time)) if time.ends_with('Z') && time.is_char_boundary(5) && time.len() > 5 => {
            shown(&format!("{day} {} UTC", &time[..5]))
        }
        _ => shown(started),
    };
    (shown(started), reading)
}

fn settings(report: &Report) -> Vec<(&'static str, String)> {
    let options = &report.options;
    let listed = |list: &[String], none: &str| match list {
        [] => none.to_owned(),
        list => shown(&list.join(", ")),
    };
    let mut settings = vec![
        ("Revisions asked for", listed(&options.revisions, "every released one that it speaks")),
        ("Selected", listed(&options.select, "every case")),
        ("Left out", listed(&options.skip, "nothing")),
        (
            "Fails on",
            match options.fail_on {
                FailOn::Must => "broken rules that bind",
                FailOn::Should => "warnings too",
                FailOn::Never => "nothing",
            }
            .to_owned(),
        ),
        ("Tools called", shown(&options.calls)),
        ("Seed", options.seed.to_string()),
        ("Time-out", format!("{} ms", options.timeout_ms)),
    ];
    if let Some(summary) = &report.summary {
        let timing = &summary.timing;
        settings.push(("Took", time(timing.wall_ms)));
        settings.push(("Processes started", timing.launches.to_string()));
        if timing.startup_ms > 0.0 {
            settings.push(("Median start-up", time(timing.startup_ms)));
        }
        settings.push(("Spent judging", time(timing.judging_ms)));
    }
    settings
}

impl Server {
    fn of(target: &Target) -> Self {
        let summary = &target.summary;
        let json = |value: &Option<serde_json::Value>| value.as_ref().map(|value| indent(&value.to_string()));
        Self {
            revision: summary.revision.as_str(),
            ended_early: summary.stopped_early.as_deref().map(shown),
            info: json(&summary.server_info),
            capabilities: json(&summary.capabilities),
            tools: summary
                .tools
                .iter()
                .map(|tool| {
                    let note = match (&tool.note, tool.called) {
                        (Some(note), _) => shown(note),
                        (None, true) => String::new(),
                        (None, false) => "no case needed it".to_owned(),
                    };
                    (shown(&tool.name), tool.called, note)
                })
                .collect(),
            launches: summary
                .launches
                .iter()
                .map(|launch| Launch {
                    purpose: shown(&launch.purpose),
                    startup: launch.startup_ms.map_or_else(|| "no answer".to_owned(), time),
                    sent: launch.sent,
                    received: launch.received,
                    end: launch.shutdown.as_deref().map_or_else(|| "not ended by us".to_owned(), shown),
                })
                .collect(),
            stderr: lines(&summary.stderr),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::visible::is_treacherous;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Html.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("text is UTF-8")
    }

    /// The page without its style and script, which change often and are no part of what a report decides.
    fn markup(page: &str) -> String {
        page.replacen(&policy(), "POLICY", 1)
            .replacen(&policy().replace('\'', "&#39;"), "POLICY", 1)
            .replacen(STYLE, "STYLE", 1)
            .replacen(SCRIPT, "SCRIPT", 1)
    }

    #[test]
    fn the_example_render_is_fixed() {
        golden::compare("example.html", &markup(&rendered(&example())));
    }

    #[test]
    fn style_and_script_stay_in_their_elements() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        // The policy forbids both, so the page would be without them.
        for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "url(", "@import"] {
            assert!(!STYLE.contains(sink) && !SCRIPT.contains(sink), "{sink}");
        }
    }

    #[test]
    fn the_page_asks_for_nothing() {
        let page = rendered(&example());
        for way in [" src=", "<link", "<img", "<iframe", "<object", "<base", " style=", " onclick="] {
            assert!(!page.contains(way), "{way}");
        }
    }

    /// The elements of a page, each with the names of its attributes; text is left out.
    fn skeleton(page: &str) -> BTreeSet<(String, Vec<String>)> {
        let mut found = BTreeSet::new();
        for tag in page.split('<').skip(1) {
            // A value in quotes may hold anything but the quote, which is escaped in it.
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
            let mut words = outside.split_whitespace().map(str::to_owned);
            found.insert((words.next().unwrap_or_default(), words.collect()));
        }
        found
    }

    #[test]
    fn an_attribute_that_got_out_would_be_seen() {
        let sound = skeleton(r#"<p title="a &#34; b>c">text</p>"#);
        assert_eq!(sound.len(), 2, "{sound:?}");
        assert_ne!(skeleton(r#"<p title="a" onfocus=" b>c">text</p>"#), sound);
        assert_ne!(skeleton(r#"<p title="a &#34; b>c"><i>text</p>"#), sound);
    }

    #[test]
    fn no_text_of_the_report_becomes_a_tag_or_an_attribute() {
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
            let strange: Vec<char> = page.chars().filter(|c| *c != '\n' && is_treacherous(*c)).collect();
            assert_eq!(strange, Vec::<char>::new(), "{attack:?}");
            let found = skeleton(&page);
            let new: Vec<_> = found
                .difference(&allowed)
                // What is long is folded, and what is no address is no link.
                .filter(|(tag, _)| {
                    !["details", "/details", "summary", "/summary", "del", "/del", "ins", "/ins"]
                        .contains(&tag.as_str())
                })
                .collect();
            assert!(new.is_empty(), "{attack:?} makes {new:?}");
            assert_eq!(page.matches("<script").count(), 1);
        }
    }

    /// The example with the attack in every text, ours included.
    fn poisoned(attack: &str) -> Report {
        let mut report = example();
        poison(&mut report, attack);
        report.tool.version.push_str(attack);
        report.started.push_str(attack);
        report
    }
}
