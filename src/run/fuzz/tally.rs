//! What was exercised, as counts: memory that does not grow with the number of calls.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::check::fuzz::{Arguments, Call, Standing, excerpt};
use crate::event::{CallCount, CallOutcome, KeywordCoverage, Latency, ResponseClass, ToolFuzz};
use crate::verdict::CallKind;

use super::stock::Stock;

/// How many kinds of answer are told apart for each tool.
const CLASSES: usize = 64;
/// The kind of those beyond.
const OTHER: &str = "other";
/// How long an example is shown.
const EXAMPLE: usize = 200;
/// How many steps each doubling of the time is divided into.
const STEPS: u64 = 8;

/// The counts of one tool.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: BTreeMap<(CallKind, CallOutcome), u64>,
    classes: HashMap<String, (u64, String)>,
    times: Times,
    /// What answered valid calls that did not succeed, as far as it is of few kinds.
    refusals: BTreeMap<String, u64>,
    /// Valid calls that were served.
    pub(super) valid: u64,
    pub(super) succeeded: u64,
}

impl Tally {
    /// Counts what came of a call, and how long it took where nothing else was under way; says whether the answer is
    /// of a new kind.
    pub(super) fn count(&mut self, call: &Call, outcome: CallOutcome, class: &str, alone: Option<Duration>) -> bool {
        *self.counts.entry((call.kind, outcome)).or_default() += 1;
        if call.standing == Standing::Valid {
            self.valid += 1;
            self.succeeded += u64::from(outcome == CallOutcome::Success);
            // A tool that has served a call needs no explanation.
            if self.succeeded == 0 {
                if let Some(count) = self.refusals.get_mut(class) {
                    *count += 1;
                } else if self.refusals.len() < CLASSES {
                    self.refusals.insert(class.to_owned(), 1);
                }
            }
        }
        if let Some(took) = alone {
            self.times.add(took);
        }
        let is_new = !self.classes.contains_key(class);
        let class = if is_new && self.classes.len() >= CLASSES { OTHER } else { class };
        if !self.classes.contains_key(class) {
            self.classes.insert(class.to_owned(), (0, String::new()));
        }
        let Some((count, example)) = self.classes.get_mut(class) else { return is_new };
        *count += 1;
        let bytes = match &call.arguments {
            Arguments::Json(value) if *count <= 64 => value.to_string(),
            Arguments::Raw(bytes) if *count <= 8 => {
                String::from_utf8_lossy(bytes.get(..4 * EXAMPLE).unwrap_or(bytes)).into_owned()
            }
            _ => return is_new,
        };
        if example.is_empty() || bytes.len() < example.len() {
            *example = excerpt(&bytes, EXAMPLE);
        }
        is_new
    }

    /// Whether most of its calls were answered.
    pub(super) fn is_served_mostly(&self) -> bool {
        let lost = [CallOutcome::Malformed, CallOutcome::NoResponse, CallOutcome::Closed];
        let unserved: u64 = self.counts.iter().filter(|((_, of), _)| lost.contains(of)).map(|(_, count)| count).sum();
        let calls: u64 = self.counts.values().sum();
        calls == 0 || unserved * 2 < calls
    }

    /// What most valid calls were answered by, where none succeeded.
    pub(super) fn commonest_refusal(&self) -> Option<&str> {
        self.refusals.iter().max_by_key(|(_, count)| **count).map(|(class, _)| class.as_str())
    }

    /// The report of the tool.
    pub(super) fn report(&self, tool: &str, note: Option<String>, stock: Option<&Stock>) -> ToolFuzz {
        let calls = self.counts.iter().map(|(&(kind, outcome), &count)| CallCount { kind, outcome, count }).collect();
        let mut responses: Vec<ResponseClass> = self
            .classes
            .iter()
            .map(|(class, (count, example))| ResponseClass {
                class: class.clone(),
                count: *count,
                example: example.clone(),
            })
            .collect();
        responses.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.class.cmp(&b.class)));
        let keywords = stock.map(|stock| {
            let breakers = stock.breakers.iter();
            breakers
                .map(|breaker| KeywordCoverage {
                    pointer: breaker.site.pointer.clone(),
                    keyword: match &breaker.site.name {
                        Some(name) => format!("{} {name}", breaker.site.keyword),
                        None => breaker.site.keyword.clone(),
                    },
                    satisfied: breaker.kept,
                    violated: breaker.broken,
                    no_effect: breaker.is_without_effect(),
                })
                .collect()
        });
        ToolFuzz {
            tool: tool.to_owned(),
            note,
            calls,
            latency: self.times.report(),
            keywords: keywords.unwrap_or_default(),
            obligations: stock.map_or(0, |stock| stock.obligations),
            covered: stock.map_or(0, |stock| stock.met),
            responses,
            gaps: stock.map(|stock| stock.gaps.clone()).unwrap_or_default(),
        }
    }
}

/// Times of answers, by size.
#[derive(Debug, Default)]
struct Times {
    buckets: Vec<u64>,
    count: u64,
    longest: u64,
}

impl Times {
    fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = bucket(micros);
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] += 1;
        self.count += 1;
        self.longest = self.longest.max(micros);
    }

    fn percentile(&self, of: u64) -> u64 {
        let wanted = (self.count * of).div_ceil(100).max(1);
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(at).min(self.longest);
            }
        }
        self.longest
    }

    fn report(&self) -> Option<Latency> {
        (self.count > 0).then(|| {
            let mut buckets = Vec::new();
            for (at, count) in self.buckets.iter().enumerate() {
                let power = usize::try_from(upper(at).max(1).ilog2()).unwrap_or(0);
                if buckets.len() <= power {
                    buckets.resize(power + 1, 0);
                }
                buckets[power] += count;
            }
            while buckets.last() == Some(&0) {
                buckets.pop();
            }
            Latency {
                p50_us: self.percentile(50),
                p90_us: self.percentile(90),
                p99_us: self.percentile(99),
                max_us: self.longest,
                buckets,
            }
        })
    }
}

/// The bucket of a time: each doubling has [`STEPS`] of them.
fn bucket(micros: u64) -> usize {
    if micros < STEPS {
        return usize::try_from(micros).unwrap_or(0);
    }
    let power = u64::from(micros.ilog2());
    let within = (micros >> (power - 3)) & (STEPS - 1);
    usize::try_from((power - 2) * STEPS + within).unwrap_or(0)
}

/// The greatest time of a bucket.
fn upper(at: usize) -> u64 {
    let at = at as u64;
    if at < STEPS {
        return at;
    }
    let (power, within) = (at / STEPS + 2, at % STEPS);
    ((STEPS + within + 1) << (power - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_the_times_up_to_its_upper_end() {
        for micros in [0, 1, 7, 8, 9, 15, 16, 17, 100, 1_000, 65_535, 65_536, 1 << 40] {
            let at = bucket(micros);
            assert!(micros <= upper(at), "{micros}");
            assert!(at == 0 || micros > upper(at - 1), "{micros}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let mut times = Times::default();
        (1..=100).for_each(|at| times.add(Duration::from_micros(at * 10)));
        let report = times.report().expect("there are times");
        assert!((500..560).contains(&report.p50_us), "{report:?}");
        assert!((990..=1_000).contains(&report.p99_us), "{report:?}");
        assert_eq!(report.buckets.iter().sum::<u64>(), 100);
    }
}
