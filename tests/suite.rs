//! The integration tests, in one binary: the gate and the slow suite.
//!
//! `cargo test` runs the gate. `MCP_CONFORMANCE_SUITE` names groups of the slow suite instead, separated by commas, or `all`;
//! `.ci/slow` sets it. A part of the name of a trial selects trials, for example `case/tools/call` or `hostile/`.

mod gate;
mod slow;
mod support;

use std::process::ExitCode;

use libtest_mimic::Arguments;

use crate::slow::GROUPS;
use crate::support::{Trial, evaluation_server};

/// The groups of the slow suite that are run instead of the gate.
const SUITE: &str = "MCP_CONFORMANCE_SUITE";

fn main() -> ExitCode {
    if let Some(code) = evaluation_server::serve_if_requested() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    let trials = match std::env::var(SUITE) {
        Err(_) => {
            support::program::hide_other_programs();
            gate::trials()
        }
        Ok(names) => match slow_trials(&names) {
            Ok(trials) => {
                // Trials that measure, or drive programs of others, never share the machine.
                arguments.test_threads.get_or_insert(1);
                trials
            }
            Err(name) => {
                let known: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
                support::trial::say(&format!("{SUITE}: there is no group `{name}`; there are {}", known.join(", ")));
                return ExitCode::FAILURE;
            }
        },
    };
    support::trial::run(&arguments, &trials)
}

/// The trials of some groups, or the name that no group has.
fn slow_trials(names: &str) -> Result<Vec<Trial>, String> {
    let mut trials = Vec::new();
    for name in names.split(',').map(str::trim) {
        let mut chosen = GROUPS.iter().filter(|group| name == "all" || group.name == name).peekable();
        chosen.peek().ok_or_else(|| name.to_owned())?;
        trials.extend(chosen.flat_map(slow::Group::trials));
    }
    Ok(trials)
}
