//! Counts calls, outcomes and response classes, in memory that does not grow with the number of calls.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::check::fuzz::{Arguments, Call, Validity, excerpt};
use crate::event::{CallCount, CallOutcome, Latency, ResponseClass, ToolFuzz};
use crate::verdict::CallKind;

use crate::campaign::calls::call_plan::CallPlan;

/// The maximum number of response classes per tool.
const MAX_CLASSES: usize = 64;
/// The class of all further responses.
const OTHER: &str = "other";
/// The maximum length of an example.
const MAX_EXAMPLE_CHARS: usize = 200;
/// The number of histogram buckets per doubling of the latency.
const STEPS_PER_DOUBLING: u64 = 8;

/// The counts of one tool.
#[derive(Debug, Default)]
pub(in crate::campaign) struct ToolCounts {
    counts: BTreeMap<(CallKind, CallOutcome), u64>,
    classes: HashMap<String, (u64, String)>,
    latencies: LatencyHistogram,
    /// Classes of the responses to valid calls, until one succeeds; limited in number.
    rejections: BTreeMap<String, u64>,
    /// The number of valid calls.
    pub(in crate::campaign) valid: u64,
    pub(in crate::campaign) succeeded: u64,
}

impl ToolCounts {
    /// Counts the outcome of a call, and its latency if nothing else was in flight; returns whether the response
    /// class is new.
    pub(in crate::campaign) fn count(
        &mut self,
        call: &Call,
        outcome: CallOutcome,
        class: &str,
        alone: Option<Duration>,
    ) -> bool {
        *self.counts.entry((call.kind, outcome)).or_default() += 1;
        if call.validity == Validity::Valid {
            self.valid += 1;
            self.succeeded += u64::from(outcome == CallOutcome::Success);
            // A tool with a successful call needs no explanation.
            if self.succeeded == 0 {
                if let Some(count) = self.rejections.get_mut(class) {
                    *count += 1;
                } else if self.rejections.len() < MAX_CLASSES {
                    self.rejections.insert(class.to_owned(), 1);
                }
            }
        }
        if let Some(duration) = alone {
            self.latencies.add(duration);
        }
        if let Some(known) = self.classes.get_mut(class) {
            Self::count_in_class(known, call);
            return false;
        }
        let class = if self.classes.len() >= MAX_CLASSES { OTHER } else { class };
        Self::count_in_class(self.classes.entry(class.to_owned()).or_default(), call);
        true
    }

    /// Counts a call in the class of its response; the shortest arguments are the example.
    fn count_in_class((count, example): &mut (u64, String), call: &Call) {
        *count += 1;
        let bytes = match &call.arguments {
            Arguments::Json(value) if *count <= 64 => value.to_string(),
            Arguments::Raw(text) if *count <= 8 => {
                String::from_utf8_lossy(&text.beginning(4 * MAX_EXAMPLE_CHARS)).into_owned()
            }
            _ => return,
        };
        if example.is_empty() || bytes.len() < example.len() {
            *example = excerpt(&bytes, MAX_EXAMPLE_CHARS);
        }
    }

    /// The number of calls.
    pub(in crate::campaign) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Whether most calls got a usable response.
    pub(in crate::campaign) fn is_served_mostly(&self) -> bool {
        let lost = [CallOutcome::Malformed, CallOutcome::NoResponse, CallOutcome::Closed];
        let unserved: u64 = self.counts.iter().filter(|((_, of), _)| lost.contains(of)).map(|(_, count)| count).sum();
        let calls = self.total();
        calls == 0 || unserved * 2 < calls
    }

    /// The most frequent class of the responses to valid calls, if none succeeded.
    pub(super) fn most_common_rejection(&self) -> Option<&str> {
        self.rejections.iter().max_by_key(|(_, count)| **count).map(|(class, _)| class.as_str())
    }

    /// The report of the tool, without notes.
    pub(in crate::campaign) fn report(&self, tool: &str, call_plan: Option<&CallPlan>) -> ToolFuzz {
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
        let (obligations, covered) = call_plan.map(CallPlan::covered).unwrap_or_default();
        ToolFuzz {
            tool: tool.to_owned(),
            note: None,
            untested: None,
            planned: call_plan.map_or(0, CallPlan::total),
            calls,
            latency: self.latencies.report(),
            keywords: call_plan.map(CallPlan::keyword_coverage).unwrap_or_default(),
            obligations,
            covered,
            mutants: call_plan.map(CallPlan::mutant_coverage).unwrap_or_default(),
            responses,
            gaps: call_plan.map(|call_plan| call_plan.gaps().to_vec()).unwrap_or_default(),
        }
    }
}

/// A histogram of latencies.
#[derive(Debug, Default)]
struct LatencyHistogram {
    buckets: Vec<u64>,
    count: u64,
    longest: u64,
}

impl LatencyHistogram {
    fn add(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
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
        let mut cumulative = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            cumulative += count;
            if cumulative >= wanted {
                return upper_bound(at).min(self.longest);
            }
        }
        self.longest
    }

    fn report(&self) -> Option<Latency> {
        (self.count > 0).then(|| {
            let mut buckets = Vec::new();
            for (at, count) in self.buckets.iter().enumerate() {
                let power = usize::try_from(upper_bound(at).max(1).ilog2()).unwrap_or(0);
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

/// The bucket of a latency: each doubling has [`STEPS_PER_DOUBLING`] buckets.
fn bucket(micros: u64) -> usize {
    if micros < STEPS_PER_DOUBLING {
        return usize::try_from(micros).unwrap_or(0);
    }
    let power = u64::from(micros.ilog2());
    let within = (micros >> (power - 3)) & (STEPS_PER_DOUBLING - 1);
    usize::try_from((power - 2) * STEPS_PER_DOUBLING + within).unwrap_or(0)
}

/// The largest latency of a bucket.
fn upper_bound(at: usize) -> u64 {
    let at = at as u64;
    if at < STEPS_PER_DOUBLING {
        return at;
    }
    let (power, within) = (at / STEPS_PER_DOUBLING + 2, at % STEPS_PER_DOUBLING);
    ((STEPS_PER_DOUBLING + within + 1) << (power - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_contains_latencies_up_to_its_upper_bound() {
        for micros in [0, 1, 7, 8, 9, 15, 16, 17, 100, 1_000, 65_535, 65_536, 1 << 40] {
            let at = bucket(micros);
            assert!(micros <= upper_bound(at), "{micros}");
            assert!(at == 0 || micros > upper_bound(at - 1), "{micros}");
        }
    }

    #[test]
    fn percentiles_match_the_latencies() {
        let mut latencies = LatencyHistogram::default();
        (1..=100).for_each(|at| latencies.add(Duration::from_micros(at * 10)));
        let report = latencies.report().expect("there are times");
        assert!((500..560).contains(&report.p50_us), "{report:?}");
        assert!((990..=1_000).contains(&report.p99_us), "{report:?}");
        assert_eq!(report.buckets.iter().sum::<u64>(), 100);
    }
}
