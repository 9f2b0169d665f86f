//! The page about every option of every subcommand, and about the exit codes.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::markdown::{block, prose};
use super::page::Page;
use crate::cli::args::Args;

/// The page, made of what `--help` prints.
pub(super) fn page() -> Page {
    let mut program = Args::command();
    program.build();
    let mut text = "# Every option and exit code\n\nThese are the texts of `--help`, for each subcommand.\n".to_owned();
    describe(&mut text, &program, "mcp-conformance", "run");
    for subcommand in program.get_subcommands().filter(|subcommand| is_shown(subcommand)) {
        let name = subcommand.get_name();
        describe(&mut text, subcommand, &format!("mcp-conformance {name}"), name);
    }
    Page {
        path: "reference/command-line.md".to_owned(),
        title: "Every option and exit code".to_owned(),
        depth: 0,
        text,
    }
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn describe(text: &mut String, command: &Command, title: &str, anchor: &str) {
    let _ = writeln!(text, "\n## `{title}` {{#{anchor}}}\n");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(text, "{}\n", prose(&about.to_string()));
    }
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let mut heading = None;
    for argument in arguments.filter(|argument| !["help", "version"].contains(&argument.get_id().as_str())) {
        if argument.get_help_heading() != heading {
            heading = argument.get_help_heading();
            let _ = writeln!(text, "\n**{}**\n", heading.unwrap_or("Options"));
        }
        let _ = writeln!(text, "- {}: {}", name(argument), description(argument));
    }
    // The exit codes and the examples are laid out already.
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(text, "\n{}", block("text", &after.to_string()));
    }
}

/// How an argument is written: `-v`, `--revision <REV>`.
fn name(argument: &Arg) -> String {
    let values: Vec<String> =
        argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let flags = argument.get_short().map(|short| format!("-{short}"));
    let flags: Vec<String> = flags.into_iter().chain(argument.get_long().map(|long| format!("--{long}"))).collect();
    let mut name = flags.join(", ");
    if takes_value {
        name = format!("{name} {}", values.join(" "));
    }
    format!("`{}`", name.trim())
}

fn description(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = prose(&help.split_whitespace().collect::<Vec<_>>().join(" "));
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && !matches!(argument.get_action(), ArgAction::SetTrue))
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        let _ = write!(text, " Values: {}.", values.join(", "));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if !defaults.is_empty() && !matches!(argument.get_action(), ArgAction::SetTrue | ArgAction::Count) {
        let _ = write!(text, " Default: {}.", defaults.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_conformance::report::Conclusion;

    #[test]
    fn every_option_and_exit_code_is_described() {
        let text = page().text;
        let mut program = Args::command();
        program.build();
        let mut options = 0;
        for command in [&program].into_iter().chain(program.get_subcommands().filter(|one| is_shown(one))) {
            for long in command.get_arguments().filter(|one| !one.is_hide_set()).filter_map(Arg::get_long) {
                options += 1;
                let is_help = ["help", "version"].contains(&long);
                assert!(is_help || text.contains(&format!("--{long}")), "--{long} of {}", command.get_name());
            }
        }
        assert!(options > 60, "{options}");
        for conclusion in [Conclusion::Passed, Conclusion::Failed, Conclusion::Unjudged, Conclusion::NothingJudged] {
            assert!(text.contains(&format!("\n  {}  ", conclusion.code())), "{conclusion:?}");
        }
        assert!(!text.contains(": \n") && !text.contains("``:"), "an option is not described");
    }
}
