//! Failing calls in the form in which they are saved, which the next run replays first.

use std::path::Path;

use super::failure::Failure;
use super::failure_folder::{FailureFolder, hash};
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::tools::FuzzTools;
use crate::campaign::limits::GROWTH_BLOCKS;
use crate::campaign::minimizer::failure_test::FailureTest;
use crate::campaign::settings::CampaignSettings;
use crate::case::{PrecedingCall, Regression, ReusedArgument};
use crate::check::fuzz::{Arguments, OracleViolation, Validity};
use crate::spec::Revision;

/// The maximum size of arguments that are saved.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;

/// Saves a failure in the folder of the server; returns the path of the file.
pub(in crate::campaign) fn save(
    settings: &CampaignSettings<'_>,
    tools: &FuzzTools,
    test: &FailureTest,
    violation: &OracleViolation,
    calls: &[FuzzCall],
) -> Option<String> {
    let folder = settings.failure_folder.as_ref()?;
    let regression = saved_failure(settings.revision, tools, test, violation, calls)?;
    folder.save(&file_name(&regression, &violation.signature), &regression)
}

/// Keeps one file for each cause: that of the first tool. What several tools do alike is likely to be fixed at once.
/// Failures are in the order of their tools.
pub(in crate::campaign) fn keep_one_of_each_cause(folder: &FailureFolder, failures: &mut [Failure]) {
    for at in 1..failures.len() {
        let (earlier, rest) = failures.split_at_mut(at);
        let found = &mut rest[0];
        let has_file = |failure: &Failure| failure.counterexample.as_ref().is_some_and(|one| one.file.is_some());
        let is_shared =
            earlier.iter().any(|known| has_file(known) && known.violation.has_same_cause_as(&found.violation));
        let Some(counterexample) = found.counterexample.as_mut().filter(|_| is_shared) else { continue };
        if counterexample.file.as_ref().is_some_and(|file| folder.withdraw(Path::new(file))) {
            counterexample.file = None;
        }
    }
}

/// A failure in the form in which it is saved, if its calls can be written to a file.
fn saved_failure(
    revision: Revision,
    tools: &FuzzTools,
    test: &FailureTest,
    violation: &OracleViolation,
    calls: &[FuzzCall],
) -> Option<Regression> {
    let (fuzz_call, preceding) = calls.split_last()?;
    let name = |fuzz_call: &FuzzCall| tools.name(fuzz_call.tool).to_owned();
    let before_tools: Vec<usize> = preceding.iter().map(|fuzz_call| fuzz_call.tool).collect();
    let preceding = preceding
        .iter()
        .map(|fuzz_call| match &fuzz_call.call.arguments {
            Arguments::Json(arguments) => Some(PrecedingCall { name: name(fuzz_call), arguments: arguments.clone() }),
            Arguments::Raw(_) => None,
        })
        .collect::<Option<Vec<_>>>()?;
    let (arguments, raw) = match &fuzz_call.call.arguments {
        Arguments::Json(arguments) => (Some(arguments.clone()), None),
        Arguments::Raw(bytes) if bytes.len() <= MAX_ARGUMENT_BYTES => {
            (None, Some(String::from_utf8(bytes.bytes().into_owned()).ok()?))
        }
        Arguments::Raw(_) => return None,
    };
    Some(Regression {
        format: Regression::FORMAT,
        case: format!("fuzz/{}", violation.oracle),
        message: violation.message.clone(),
        revision,
        tool: name(fuzz_call),
        preceding,
        arguments,
        raw,
        malformation: match fuzz_call.call.validity {
            Validity::Malformed(_, name) => Some(name.to_owned()),
            _ => None,
        },
        reused: fuzz_call
            .reused
            .iter()
            .filter(|reused| before_tools.contains(&reused.origin.tool))
            .map(|reused| ReusedArgument {
                property: reused.property.clone(),
                tool: tools.name(reused.origin.tool).to_owned(),
                pointer: reused.origin.pointer.clone(),
                in_text: reused.origin.in_text,
            })
            .collect(),
        breaks_tool: match test {
            FailureTest::Canary(canary) => Some(name(canary)),
            _ => None,
        },
        repeat: matches!(test, FailureTest::Growth).then_some(GROWTH_BLOCKS),
        concurrent: matches!(test, FailureTest::Concurrent),
        steps: Vec::new(),
        expectation: None,
    })
}

/// A file name that is stable for the same failure.
pub(in crate::campaign) fn file_name(regression: &Regression, signature: &str) -> String {
    let plain = |text: &str| -> String {
        let safe = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        safe.take(40).collect()
    };
    let hash = hash(signature.bytes().chain(regression.tool.bytes()));
    format!("{}-{}-{hash:08x}.json", plain(&regression.case[5..]), plain(&regression.tool))
}
