//! Views of the fuzzing statistics, with their plots.

use super::display::{display, shares, slug};
use super::finding::{CounterexampleView, Findings};
use crate::event::{CallOutcome, Gap, Latency, ToolFuzz};
use crate::report::layout::format_ms;
use crate::report::{Report, Target, saved_calls, untested};
use crate::verdict::CallKind;

/// The fuzzing of one revision.
#[derive(Debug)]
pub(super) struct Fuzzing<'a> {
    pub(super) revision: &'static str,
    /// Number of calls, duration, restarts and seed.
    pub(super) summary: String,
    pub(super) stopped_early: Option<String>,
    /// What happened in the folder of saved failing calls.
    pub(super) saved_calls: Vec<String>,
    /// What is said of the tools that no generated call could satisfy.
    pub(super) untested: Vec<String>,
    pub(super) tools: Vec<Tool<'a>>,
    /// The tools that were not called: name and reason.
    pub(super) not_called: Vec<(String, String)>,
}

/// The fuzzing of one tool.
#[derive(Debug)]
pub(super) struct Tool<'a> {
    pub(super) name: String,
    pub(super) slug: String,
    pub(super) note: Option<String>,
    pub(super) calls: u64,
    pub(super) failing: bool,
    /// The calls by kind.
    pub(super) kinds: Vec<Kind>,
    pub(super) latency: Option<LatencyPlot>,
    pub(super) keywords: Vec<Keyword>,
    /// The number of covered keywords, and of all keywords. A keyword is covered if calls satisfied and violated it.
    pub(super) covered: (usize, usize),
    pub(super) covered_share: usize,
    pub(super) obligations: (usize, usize),
    pub(super) obligations_share: usize,
    pub(super) responses: Vec<Response>,
    pub(super) gaps: Vec<(String, String)>,
    /// The mutants of the schema by class.
    pub(super) mutants: Vec<Mutants>,
    pub(super) counterexamples: Vec<&'a CounterexampleView>,
}

/// The mutants of one class.
#[derive(Debug)]
pub(super) struct Mutants {
    pub(super) class: String,
    /// The number of those that the calls distinguish from the schema.
    pub(super) distinguished: usize,
    pub(super) total: usize,
    pub(super) equivalent: usize,
    /// The others, each with the reason.
    pub(super) others: Vec<(String, String)>,
}

/// The calls of one kind.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The outcomes that occurred, with their counts.
    pub(super) counts: Vec<(&'static str, u64)>,
    pub(super) sum: u64,
    pub(super) shares: Vec<(&'static str, usize, usize)>,
}

/// Response times: quantiles and a histogram.
#[derive(Debug)]
pub(super) struct LatencyPlot {
    pub(super) numbers: [(&'static str, String); 4],
    pub(super) summary: String,
    pub(super) bars: Vec<Bar>,
    /// The positions of the 50th and 99th percentile.
    pub(super) lines: Vec<(&'static str, usize)>,
    pub(super) width: usize,
}

/// A bar of the histogram, in SVG units.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) height: usize,
    /// The horizontal and vertical position of the count above the bar.
    pub(super) middle: usize,
    pub(super) above: usize,
    pub(super) count: u64,
    /// The lower bound of the response times.
    pub(super) from: String,
}

/// A keyword of the schema.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) pointer: String,
    pub(super) name: String,
    pub(super) satisfied: u64,
    pub(super) violated: u64,
    /// `both`, `one` or `none` of satisfying and violating calls were made; `no-effect` if the keyword has no effect.
    pub(super) tone: &'static str,
    pub(super) coverage_label: &'static str,
}

/// A response class.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) class: String,
    pub(super) count: u64,
    pub(super) share: usize,
    pub(super) example: String,
}

/// The maximum height of the histogram bars.
const BAR_HEIGHT: usize = 96;
/// The space above the bars for their counts.
const LABEL_HEIGHT: usize = 30;
/// The width of a bar including the gap to the next one.
const BAR_STEP: usize = 44;

/// The fuzzing of all revisions.
pub(super) fn fuzzing<'a>(report: &Report, findings: &'a Findings) -> Vec<Fuzzing<'a>> {
    report.targets.iter().filter_map(|target| Fuzzing::of(target, findings)).collect()
}

impl<'a> Fuzzing<'a> {
    fn of(target: &Target, findings: &'a Findings) -> Option<Self> {
        let fuzz = target.summary.fuzz.as_ref()?;
        let revision = target.summary.revision.as_str();
        let restarts = match fuzz.restarts {
            0 => String::new(),
            1 => ", 1 server restart".to_owned(),
            times => format!(", {times} server restarts"),
        };
        let called = |tool: &&ToolFuzz| !tool.calls.is_empty();
        Some(Self {
            revision,
            summary: format!(
                "{} calls in {}, {} of them to minimize or confirm failures{restarts}; seed {}",
                fuzz.calls,
                format_ms(fuzz.wall_ms),
                fuzz.shrinking,
                fuzz.seed
            ),
            stopped_early: fuzz.stopped_early.as_deref().map(display),
            untested: untested::lines(fuzz).iter().map(|line| display(line)).collect(),
            saved_calls: fuzz.saved_calls.iter().flat_map(saved_calls::lines).map(|line| display(&line)).collect(),
            tools: fuzz.tools.iter().filter(called).map(|tool| Tool::of(tool, revision, findings)).collect(),
            not_called: fuzz
                .tools
                .iter()
                .filter(|tool| !called(tool))
                .map(|tool| (display(&tool.tool), display(tool.note.as_deref().unwrap_or("no reason given"))))
                .collect(),
        })
    }
}

impl<'a> Tool<'a> {
    fn of(tool: &ToolFuzz, revision: &str, findings: &'a Findings) -> Self {
        let name = display(&tool.tool);
        let kinds: Vec<Kind> = CallKind::ALL.into_iter().filter_map(|kind| Kind::of(kind, tool)).collect();
        let keywords: Vec<Keyword> = tool.keywords.iter().map(Keyword::of).collect();
        let covered = keywords.iter().filter(|keyword| matches!(keyword.tone, "both" | "no-effect")).count();
        let most = tool.responses.iter().map(|response| response.count).max().unwrap_or_default();
        let counterexamples: Vec<&CounterexampleView> = findings
            .all()
            .filter(|finding| finding.revisions.split(' ').any(|of| of == revision))
            .flat_map(|finding| finding.counterexample.iter().chain(&finding.other_counterexamples))
            .filter(|one| one.tool == name)
            .collect();
        Self {
            slug: format!("fuzz-{revision}-{}", slug(&name)),
            note: tool.note.as_deref().map(display),
            calls: kinds.iter().map(|kind| kind.sum).sum(),
            failing: !counterexamples.is_empty(),
            kinds,
            latency: tool.latency.as_ref().and_then(LatencyPlot::of),
            covered: (covered, keywords.len()),
            covered_share: share(covered, keywords.len()),
            keywords,
            obligations: (tool.covered, tool.obligations),
            obligations_share: share(tool.covered, tool.obligations),
            responses: tool
                .responses
                .iter()
                .map(|response| Response {
                    class: display(&response.class),
                    count: response.count,
                    share: scaled(response.count, most, 1000),
                    example: display(&response.example),
                })
                .collect(),
            gaps: gaps(&tool.gaps),
            mutants: tool
                .mutants
                .iter()
                .map(|class| Mutants {
                    class: display(&class.class),
                    distinguished: class.told,
                    total: class.total,
                    equivalent: class.equivalent,
                    others: gaps(&class.not_told),
                })
                .collect(),
            counterexamples,
            name,
        }
    }
}

fn gaps(gaps: &[Gap]) -> Vec<(String, String)> {
    gaps.iter().map(|Gap { obligation, reason }| (display(obligation), display(reason))).collect()
}

/// A fraction in thousandths.
fn share(part: usize, total: usize) -> usize {
    (part.min(total) * 1000).checked_div(total).unwrap_or_default()
}

/// Scales a number to `0..=end`, where `end` represents the greatest number; anything above zero is at least 1.
fn scaled(number: u64, greatest: u64, end: usize) -> usize {
    if number == 0 || greatest == 0 {
        return 0;
    }
    let end_wide = u128::try_from(end).unwrap_or(u128::MAX);
    let part = u128::from(number) * end_wide / u128::from(greatest);
    usize::try_from(part).unwrap_or(end).clamp(1, end)
}

impl Kind {
    fn of(kind: CallKind, tool: &ToolFuzz) -> Option<Self> {
        let counts: Vec<(&'static str, u64)> = CallOutcome::ALL
            .into_iter()
            .map(|outcome| {
                let calls = tool.calls.iter().filter(|call| call.kind == kind && call.outcome == outcome);
                (outcome.as_str(), calls.map(|call| call.count).sum())
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        let sum: u64 = counts.iter().map(|(_, count)| count).sum();
        let parts: Vec<(&'static str, usize)> =
            counts.iter().map(|(name, count)| (*name, scaled(*count, sum, 100_000))).collect();
        (sum > 0).then(|| Self { name: kind.as_str(), counts, sum, shares: shares(&parts) })
    }
}

impl Keyword {
    fn of(coverage: &crate::event::KeywordCoverage) -> Self {
        let (tone, coverage_label) = match (coverage.no_effect, coverage.satisfied > 0, coverage.violated > 0) {
            (_, true, true) => ("both", "satisfied and violated"),
            (true, true, false) => ("no-effect", "satisfied; it has no effect, so it cannot be violated"),
            (true, false, _) => ("none", "not tested; it has no effect"),
            (false, true, false) => ("one", "never violated"),
            (false, false, true) => ("one", "never satisfied"),
            (false, false, false) => ("none", "not tested"),
        };
        let pointer = if coverage.pointer.is_empty() { "(root)".to_owned() } else { display(&coverage.pointer) };
        Self {
            pointer,
            name: display(&coverage.keyword),
            satisfied: coverage.satisfied,
            violated: coverage.violated,
            tone,
            coverage_label,
        }
    }
}

impl LatencyPlot {
    fn of(latency: &Latency) -> Option<Self> {
        let first = latency.buckets.iter().position(|count| *count > 0)?;
        let last = latency.buckets.iter().rposition(|count| *count > 0)?;
        let greatest = latency.buckets.iter().max().copied().unwrap_or_default();
        let bars = latency.buckets[first..=last]
            .iter()
            .enumerate()
            .map(|(at, count)| {
                let height = scaled(*count, greatest, BAR_HEIGHT);
                let y = LABEL_HEIGHT + BAR_HEIGHT - height;
                let x = at * BAR_STEP;
                Bar {
                    x: x + 2,
                    y,
                    height,
                    middle: x + BAR_STEP / 2,
                    above: y - 4,
                    count: *count,
                    from: if first + at == 0 { "0".to_owned() } else { format_micros(1_u64 << (first + at).min(63)) },
                }
            })
            .collect();
        let place = |micros: u64| {
            // Interpolate within the bar.
            let micros = micros.max(1);
            let bucket = usize::try_from(micros.ilog2()).unwrap_or_default().clamp(first, last);
            let from = 1_u64 << bucket.min(63);
            (bucket - first) * BAR_STEP + scaled(micros.saturating_sub(from), from, BAR_STEP).min(BAR_STEP)
        };
        let numbers = [
            ("p50", format_micros(latency.p50_us)),
            ("p90", format_micros(latency.p90_us)),
            ("p99", format_micros(latency.p99_us)),
            ("max", format_micros(latency.max_us)),
        ];
        let summary = numbers.iter().map(|(name, time)| format!("{name} {time}")).collect::<Vec<_>>().join(", ");
        Some(Self {
            numbers,
            summary,
            bars,
            lines: vec![("p50", place(latency.p50_us)), ("p99", place(latency.p99_us))],
            width: (last - first + 1) * BAR_STEP,
        })
    }
}

/// Formats microseconds with a suitable unit and few digits.
fn format_micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1_000),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_omits_empty_buckets_at_its_ends() {
        let latency = Latency { p50_us: 6, p90_us: 7, p99_us: 12, max_us: 15, buckets: vec![0, 0, 10, 5, 0, 0] };
        let times = LatencyPlot::of(&latency).expect("a histogram");
        assert_eq!(times.bars.len(), 2);
        assert_eq!((times.bars[0].from.as_str(), times.bars[0].height), ("4 µs", BAR_HEIGHT));
        assert_eq!((times.bars[1].from.as_str(), times.bars[1].height), ("8 µs", BAR_HEIGHT / 2));
        assert_eq!(times.lines, [("p50", BAR_STEP / 2), ("p99", BAR_STEP + BAR_STEP / 2)]);
        assert!(LatencyPlot::of(&Latency { buckets: vec![0; 9], ..latency }).is_none());
    }

    #[test]
    fn durations_have_few_digits() {
        let formatted = [7, 999, 1_150, 43_210, 1_934_500].map(format_micros);
        assert_eq!(formatted, ["7 µs", "999 µs", "1.1 ms", "43 ms", "1.9 s"]);
    }

    #[test]
    fn huge_numbers_stay_on_the_scale() {
        assert_eq!(scaled(u64::MAX, u64::MAX, 1000), 1000);
        assert_eq!(scaled(1, u64::MAX, 1000), 1);
        assert_eq!(scaled(0, 0, 1000), 0);
    }
}
