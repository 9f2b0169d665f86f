//! What fuzzing exercised, tool by tool, with its plots.

use super::finding::{Findings, Smallest};
use super::shown::{shares, shown, slug};
use crate::event::{CallOutcome, Gap, Latency, ToolFuzz};
use crate::report::prose::time;
use crate::report::{Report, Target};
use crate::verdict::CallKind;

/// What fuzzing did in one revision.
#[derive(Debug)]
pub(super) struct Fuzzing<'a> {
    pub(super) revision: &'static str,
    /// Seed, calls and time in words.
    pub(super) told: String,
    pub(super) ended_early: Option<String>,
    pub(super) tools: Vec<Tool<'a>>,
    /// The tools that were not called: name and why.
    pub(super) left_out: Vec<(String, String)>,
}

/// What it did with one tool.
#[derive(Debug)]
pub(super) struct Tool<'a> {
    pub(super) name: String,
    pub(super) slug: String,
    pub(super) note: Option<String>,
    pub(super) calls: u64,
    pub(super) failing: bool,
    /// Each kind of call: its numbers by outcome, their sum, and the parts of its bar.
    pub(super) kinds: Vec<Kind>,
    pub(super) times: Option<Times>,
    pub(super) keywords: Vec<Keyword>,
    /// Keywords that were tried on both of the sides that they have, of all.
    pub(super) covered: (usize, usize),
    pub(super) covered_share: usize,
    pub(super) met: (usize, usize),
    pub(super) met_share: usize,
    pub(super) responses: Vec<Response>,
    pub(super) gaps: Vec<(String, String)>,
    pub(super) smallest: Vec<&'a Smallest>,
}

/// The calls of a kind.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) word: &'static str,
    /// The outcomes that occurred, with their numbers.
    pub(super) counts: Vec<(&'static str, u64)>,
    pub(super) sum: u64,
    pub(super) shares: Vec<(&'static str, usize, usize)>,
}

/// How long answers took: four numbers and a histogram.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) numbers: [(&'static str, String); 4],
    pub(super) summary: String,
    pub(super) bars: Vec<Bar>,
    /// Where half and 99 in 100 of the answers had come: the word, and the place from the left.
    pub(super) lines: Vec<(&'static str, usize)>,
    pub(super) width: usize,
}

/// A bar of the histogram, in units of the picture.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) height: usize,
    /// Where the number stands: above the bar, in its middle.
    pub(super) middle: usize,
    pub(super) above: usize,
    pub(super) count: u64,
    /// From when on.
    pub(super) from: String,
}

/// A keyword of the schema.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) place: String,
    pub(super) name: String,
    pub(super) kept: u64,
    pub(super) broken: u64,
    /// `both`, `one` or `none` of its sides were tried; `idle` where it has no effect.
    pub(super) tone: &'static str,
    pub(super) words: &'static str,
}

/// A kind of answer.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) class: String,
    pub(super) count: u64,
    pub(super) share: usize,
    pub(super) example: String,
}

/// The height of the histogram's bars.
const HEIGHT: usize = 96;
/// Room above the bars for their numbers.
const ABOVE: usize = 30;
/// The width of a bar with the gap beside it.
const STEP: usize = 44;

/// Everything that was fuzzed.
pub(super) fn fuzzing<'a>(report: &Report, findings: &'a Findings) -> Vec<Fuzzing<'a>> {
    report.targets.iter().filter_map(|target| Fuzzing::of(target, findings)).collect()
}

impl<'a> Fuzzing<'a> {
    fn of(target: &Target, findings: &'a Findings) -> Option<Self> {
        let fuzz = target.summary.fuzz.as_ref()?;
        let revision = target.summary.revision.as_str();
        let restarts = match fuzz.restarts {
            0 => String::new(),
            1 => ", the server started again once".to_owned(),
            times => format!(", the server started again {times} times"),
        };
        let called = |tool: &&ToolFuzz| !tool.calls.is_empty();
        Some(Self {
            revision,
            told: format!(
                "{} calls in {}, {} of them to shrink or confirm a failure{restarts}; seed {}",
                fuzz.calls,
                time(fuzz.wall_ms),
                fuzz.shrinking,
                fuzz.seed
            ),
            ended_early: fuzz.stopped_early.as_deref().map(shown),
            tools: fuzz.tools.iter().filter(called).map(|tool| Tool::of(tool, revision, findings)).collect(),
            left_out: fuzz
                .tools
                .iter()
                .filter(|tool| !called(tool))
                .map(|tool| (shown(&tool.tool), shown(tool.note.as_deref().unwrap_or("no reason was given"))))
                .collect(),
        })
    }
}

impl<'a> Tool<'a> {
    fn of(tool: &ToolFuzz, revision: &str, findings: &'a Findings) -> Self {
        let name = shown(&tool.tool);
        let kinds: Vec<Kind> = CallKind::ALL.into_iter().filter_map(|kind| Kind::of(kind, tool)).collect();
        let keywords: Vec<Keyword> = tool.keywords.iter().map(Keyword::of).collect();
        let covered = keywords.iter().filter(|keyword| matches!(keyword.tone, "both" | "idle")).count();
        let most = tool.responses.iter().map(|response| response.count).max().unwrap_or_default();
        let smallest: Vec<&Smallest> = findings
            .told()
            .filter(|told| told.revisions.split(' ').any(|of| of == revision))
            .filter_map(|told| told.smallest.as_ref())
            .filter(|one| one.tool == name)
            .collect();
        Self {
            slug: format!("fuzz-{revision}-{}", slug(&name)),
            note: tool.note.as_deref().map(shown),
            calls: kinds.iter().map(|kind| kind.sum).sum(),
            failing: !smallest.is_empty(),
            kinds,
            times: tool.latency.as_ref().and_then(Times::of),
            covered: (covered, keywords.len()),
            covered_share: share(covered, keywords.len()),
            keywords,
            met: (tool.covered, tool.obligations),
            met_share: share(tool.covered, tool.obligations),
            responses: tool
                .responses
                .iter()
                .map(|response| Response {
                    class: shown(&response.class),
                    count: response.count,
                    share: scaled(response.count, most, 1000),
                    example: shown(&response.example),
                })
                .collect(),
            gaps: tool.gaps.iter().map(|Gap { obligation, reason }| (shown(obligation), shown(reason))).collect(),
            smallest,
            name,
        }
    }
}

/// A part of a whole in thousandths.
fn share(part: usize, whole: usize) -> usize {
    (part.min(whole) * 1000).checked_div(whole).unwrap_or_default()
}

/// A number on a scale whose end is the greatest one; what is not zero is at least one.
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
            counts.iter().map(|(word, count)| (*word, scaled(*count, sum, 100_000))).collect();
        (sum > 0).then(|| Self { word: kind.as_str(), counts, sum, shares: shares(&parts) })
    }
}

impl Keyword {
    fn of(coverage: &crate::event::KeywordCoverage) -> Self {
        let (tone, words) = match (coverage.no_effect, coverage.satisfied > 0, coverage.violated > 0) {
            (_, true, true) => ("both", "kept and broken"),
            (true, true, false) => ("idle", "kept; it has no effect, so it cannot be broken"),
            (true, false, _) => ("none", "not tried; it has no effect"),
            (false, true, false) => ("one", "never broken"),
            (false, false, true) => ("one", "never kept"),
            (false, false, false) => ("none", "not tried"),
        };
        let place = if coverage.pointer.is_empty() { "(the whole)".to_owned() } else { shown(&coverage.pointer) };
        Self { place, name: shown(&coverage.keyword), kept: coverage.satisfied, broken: coverage.violated, tone, words }
    }
}

impl Times {
    fn of(latency: &Latency) -> Option<Self> {
        let first = latency.buckets.iter().position(|count| *count > 0)?;
        let last = latency.buckets.iter().rposition(|count| *count > 0)?;
        let greatest = latency.buckets.iter().max().copied().unwrap_or_default();
        let bars = latency.buckets[first..=last]
            .iter()
            .enumerate()
            .map(|(at, count)| {
                let height = scaled(*count, greatest, HEIGHT);
                let y = ABOVE + HEIGHT - height;
                let x = at * STEP;
                Bar {
                    x: x + 2,
                    y,
                    height,
                    middle: x + STEP / 2,
                    above: y - 4,
                    count: *count,
                    from: if first + at == 0 { "0".to_owned() } else { micros(1_u64 << (first + at).min(63)) },
                }
            })
            .collect();
        let place = |micros: u64| {
            // Within a bar, as far as the number is from its beginning.
            let micros = micros.max(1);
            let bucket = usize::try_from(micros.ilog2()).unwrap_or_default().clamp(first, last);
            let from = 1_u64 << bucket.min(63);
            (bucket - first) * STEP + scaled(micros.saturating_sub(from), from, STEP).min(STEP)
        };
        let numbers = [
            ("half within", micros(latency.p50_us)),
            ("90 % within", micros(latency.p90_us)),
            ("99 % within", micros(latency.p99_us)),
            ("slowest", micros(latency.max_us)),
        ];
        let summary = numbers.iter().map(|(word, time)| format!("{word} {time}")).collect::<Vec<_>>().join(", ");
        Some(Self {
            numbers,
            summary,
            bars,
            lines: vec![("p50", place(latency.p50_us)), ("p99", place(latency.p99_us))],
            width: (last - first + 1) * STEP,
        })
    }
}

/// Microseconds in a unit that leaves few digits.
fn micros(micros: u64) -> String {
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
    fn the_histogram_leaves_out_what_is_empty_at_its_ends() {
        let latency = Latency { p50_us: 6, p90_us: 7, p99_us: 12, max_us: 15, buckets: vec![0, 0, 10, 5, 0, 0] };
        let times = Times::of(&latency).expect("answers came");
        assert_eq!(times.bars.len(), 2);
        assert_eq!((times.bars[0].from.as_str(), times.bars[0].height), ("4 µs", HEIGHT));
        assert_eq!((times.bars[1].from.as_str(), times.bars[1].height), ("8 µs", HEIGHT / 2));
        assert_eq!(times.lines, [("p50", STEP / 2), ("p99", STEP + STEP / 2)]);
        assert!(Times::of(&Latency { buckets: vec![0; 9], ..latency }).is_none());
    }

    #[test]
    fn times_have_few_digits() {
        let told = [7, 999, 1_150, 43_210, 1_934_500].map(micros);
        assert_eq!(told, ["7 µs", "999 µs", "1.1 ms", "43 ms", "1.9 s"]);
    }

    #[test]
    fn enormous_numbers_stay_on_the_scale() {
        assert_eq!(scaled(u64::MAX, u64::MAX, 1000), 1000);
        assert_eq!(scaled(1, u64::MAX, 1000), 1);
        assert_eq!(scaled(0, 0, 1000), 0);
    }
}
