//! The slow suite: trials with real processes, ports, clocks, browsers, and programs of others. `.ci/slow` runs it.

mod address;
mod browser;
mod combinations;
mod commands;
mod config;
mod differential;
mod doctor;
mod evaluation;
mod field;
mod formats;
mod fuzz_cases;
mod fuzzing;
mod gating;
mod hints;
mod hostile;
mod http_auth;
mod http_cases;
mod http_fuzzing;
mod http_hostile;
mod http_parity;
mod http_secrets;
mod http_variants;
mod installed;
#[cfg(feature = "harness")]
mod libtest;
mod mistakes;
mod openings;
mod order;
mod over_http;
mod packaging;
mod raw;
mod real;
mod recording;
mod released;
mod reproduce;
mod runner;
mod schemas;
mod scratch_folder;
mod sequences;
mod served;
mod shared_responses;
mod tutorial;
mod validators;
mod waiting;

use crate::support::Trial;

/// A part of the slow suite that runs alone.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    trials: &'static [fn() -> Vec<Trial>],
}

impl Group {
    pub(crate) fn trials(&self) -> Vec<Trial> {
        self.trials.iter().flat_map(|trials| trials()).collect()
    }
}

/// The groups; in each, one trial runs at a time.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "processes",
        trials: &[
            hostile::trials,
            openings::trials,
            order::trials,
            recording::trials,
            waiting::trials,
            runner::trials,
            gating::trials,
            config::trials,
            doctor::trials,
            mistakes::trials,
            scratch_folder::trials,
        ],
    },
    Group {
        name: "fuzzing",
        trials: &[
            fuzz_cases::trials,
            fuzzing::trials,
            evaluation::trials,
            sequences::trials,
            validators::trials,
            served::trials,
            http_fuzzing::trials,
        ],
    },
    Group {
        name: "transports",
        trials: &[
            http_cases::trials,
            http_variants::trials,
            http_parity::trials,
            http_auth::trials,
            http_hostile::trials,
            http_secrets::trials,
            hints::trials,
            reproduce::trials,
        ],
    },
    Group {
        name: "real",
        trials: &[
            real::trials,
            shared_responses::trials,
            runner::trials_of_npx,
            recording::trials_of_clients,
            tutorial::trials,
        ],
    },
    Group { name: "combinations", trials: &[combinations::trials] },
    Group { name: "field", trials: &[field::trials] },
    Group { name: "browser", trials: &[browser::trials, formats::trials] },
    Group { name: "schemas", trials: &[schemas::trials, differential::trials] },
    Group { name: "documentation", trials: &[commands::trials] },
    Group { name: "packages", trials: &[packaging::trials] },
    Group { name: "release", trials: &[released::trials] },
    #[cfg(feature = "harness")]
    Group { name: "nextest", trials: &[libtest::trials] },
];
