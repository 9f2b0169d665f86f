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
/// How many combinations have one of the protected variants, which are judged with a token.
const PROTECTED_COMBINATIONS: usize = 12;
/// Variants that contradict each other.
const EXCLUSIVE: [[Fault; 2]; 2] = [
    [Fault::WithoutTools, Fault::OnlyResources],
    // A session that nobody can end is the only one ever.
    [Fault::Http(HttpFault::OneSessionRefused), Fault::Http(HttpFault::DeleteRefused)],
];

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
    for (number, variants) in combinations(true).into_iter().chain(protected_combinations()).enumerate() {
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
    let all = combinable(is_http);
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
        let is_of_http = !is_http || chosen.iter().any(|variant| matches!(variant, Fault::Http(_)));
        if !contradicts(&chosen) && is_of_http && !combinations.contains(&chosen) {
            combinations.push(chosen);
        }
    }
    combinations
}

/// Combinations over HTTP of a protected variant, which answers in its own way without a token, with others.
fn protected_combinations() -> Vec<Vec<Fault>> {
    let protected = CONFORMING.into_iter().filter(|variant| variant.requires_authorization());
    protected
        .cycle()
        .zip(combinations(true))
        .map(|(protected, mut others)| {
            others.truncate(SIZES[0]);
            others.push(protected);
            others
        })
        .take(PROTECTED_COMBINATIONS)
        .collect()
}

/// The variants of which several may be combined.
fn combinable(is_http: bool) -> BTreeSet<Fault> {
    let all = CONFORMING.into_iter().chain(VARIANTS).chain(HTTP_VARIANTS);
    // Protected variants are about what a server answers without a token, so that one at a time is. Without session ids all
    // clients of a revision share what the server knows of the last one, so that it conforms for one client at a time only.
    let is_apart =
        |variant: &Fault| variant.requires_authorization() || *variant == Fault::Http(HttpFault::Sessionless);
    all.filter(|variant| (is_http || !variant.is_http_only()) && !is_apart(variant)).collect()
}

/// Whether two of the variants contradict each other.
fn contradicts(chosen: &[Fault]) -> bool {
    EXCLUSIVE.iter().any(|pair| pair.iter().all(|variant| chosen.contains(variant)))
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
