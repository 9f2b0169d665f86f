//! Conforming variants of the built-in server combined: what is unusual in several ways at once conforms as well.
//!
//! Each combination is judged with every case in every revision, over stdio and over HTTP. Which variants it has depends on
//! its number alone.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use mcp_conformance::reference::{Fault, FaultSet, HttpFault};
use mcp_conformance::spec::Revision;

use super::over_http::judge_over_http;
use crate::support::reference::{CONFORMING, ENDPOINTS, HTTP_VARIANTS, LARGE_VARIANTS, VARIANTS, cases, judge};
use crate::support::result::has_findings_of_only;
use crate::support::{Trial, trial};

/// How many combinations are judged over each transport.
const COMBINATIONS: usize = 100;
/// How many variants a combination has: at least two, at most four.
const SIZES: [usize; 3] = [2, 3, 4];
/// Variants that contradict each other.
const EXCLUSIVE: [[Fault; 2]; 1] = [[Fault::WithoutTools, Fault::OnlyResources]];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![trial("combined/there-are-a-hundred-of-each-transport", there_are_a_hundred)];
    for variant in LARGE_VARIANTS {
        trials.push(trial(format!("combined/stdio/{variant}-alone"), move || {
            has_findings_of_only(&judge(FaultSet::from(variant), &Revision::ALL, cases().to_vec()), &[])
        }));
    }
    for (number, variants) in combinations(false).into_iter().enumerate() {
        trials.push(trial(format!("combined/stdio/{}", name(number, &variants)), move || {
            let faults: FaultSet = variants.iter().copied().collect();
            has_findings_of_only(&judge(faults, &Revision::ALL, cases().to_vec()), &[])
        }));
    }
    for (number, variants) in combinations(true).into_iter().enumerate() {
        trials.push(trial(format!("combined/http/{}", name(number, &variants)), move || {
            let faults: FaultSet = variants.iter().copied().collect();
            has_findings_of_only(&judge_over_http(faults, &Revision::ALL, cases().to_vec(), ENDPOINTS[0]), &[])
        }));
    }
    trials
}

fn name(number: usize, variants: &[Fault]) -> String {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name()).collect();
    format!("{number:02}-{}", names.join("+"))
}

/// The combinations, no two of which have the same variants.
fn combinations(is_http: bool) -> Vec<Vec<Fault>> {
    let all = CONFORMING.into_iter().chain(VARIANTS).chain(HTTP_VARIANTS);
    // A protected server is one for itself: its variants are about what it answers without a token. Without session ids all
    // clients of a revision share what the server knows of the last one, so that it conforms for one client at a time only.
    let is_apart =
        |variant: &Fault| variant.requires_authorization() || *variant == Fault::Http(HttpFault::Sessionless);
    let all: BTreeSet<Fault> =
        all.filter(|variant| (is_http || !variant.is_http_only()) && !is_apart(variant)).collect();
    let mut combinations: Vec<Vec<Fault>> = Vec::new();
    for number in 0.. {
        if combinations.len() == COMBINATIONS {
            break;
        }
        let order = |variant: &Fault| {
            let mut hasher = DefaultHasher::new();
            (number, is_http, variant.name()).hash(&mut hasher);
            hasher.finish()
        };
        let mut chosen: Vec<Fault> = all.iter().copied().collect();
        chosen.sort_by_cached_key(order);
        chosen.truncate(SIZES[number % SIZES.len()]);
        chosen.sort();
        let contradicts = EXCLUSIVE.iter().any(|pair| pair.iter().all(|variant| chosen.contains(variant)));
        let is_of_http = !is_http || chosen.iter().any(|variant| matches!(variant, Fault::Http(_)));
        if !contradicts && is_of_http && !combinations.contains(&chosen) {
            combinations.push(chosen);
        }
    }
    combinations
}

fn there_are_a_hundred() -> Result<(), String> {
    for is_http in [false, true] {
        let distinct: BTreeSet<Vec<Fault>> = combinations(is_http).into_iter().collect();
        if distinct.len() != COMBINATIONS {
            return Err(format!("{} distinct combinations", distinct.len()));
        }
    }
    let polls = |variants: &Vec<Fault>| variants.contains(&Fault::Http(HttpFault::Polls));
    if combinations(true).iter().any(polls) { Ok(()) } else { Err("none has the variant http-polls".to_owned()) }
}
