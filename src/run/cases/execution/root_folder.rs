//! The files of a case about the roots of the client.

use std::path::Path;

use super::tool_arguments::MissingValue;
use crate::case::{Case, Placeholder};
use crate::percent;
use crate::plan::{Launcher, Plan, ServerCommand};
use crate::scratch::RootFolder;

/// The files, if the case uses them.
pub(super) fn of_case(case: &Case, plan: &Plan) -> Result<Option<RootFolder>, MissingValue> {
    if !case.placeholders().iter().any(|placeholder| matches!(placeholder, Placeholder::ToolArgumentsFile(_))) {
        return Ok(None);
    }
    let folder = RootFolder::create().map_err(|error| unmade(&error))?;
    // A server may read what it was started for, whatever the roots are.
    let is_served = |word: &str| Path::new(word).is_absolute() && folder.is_in(Path::new(word));
    if words_of_places(plan).iter().any(|word| word.split(['=', ':', ',', ';']).any(is_served)) {
        return Err(MissingValue(
            "the server was started with a folder that contains the files of the case".to_owned(),
        ));
    }
    Ok(Some(folder))
}

/// The URI of the root, with all files as they were.
pub(super) fn uri_of_restored(folder: Option<&RootFolder>) -> Result<Option<String>, MissingValue> {
    let Some(folder) = folder else { return Ok(None) };
    folder.restore().map_err(|error| unmade(&error))?;
    Ok(Some(format!("file://{}", percent::encode_path(&folder.root()))))
}

fn unmade(error: &std::io::Error) -> MissingValue {
    MissingValue(format!("the files of the case cannot be made: {error}"))
}

/// The words of the command that starts the server, and the values of its variables.
fn words_of_places(plan: &Plan) -> Vec<String> {
    let command = match &plan.launcher {
        Launcher::Command(command) => Some(command),
        Launcher::Http(target) => target.command.as_ref(),
        Launcher::Reference(_) | Launcher::InProcess(_) => None,
    };
    let words = command.into_iter().flat_map(ServerCommand::words_of_places);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}
