//! The keys of `mcp-conformance.toml`: the options of a run, without those that make no sense in a file.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::cli::args::Args;
use crate::cli::values::FuzzCalls;

/// The table of the server.
pub(super) const SERVER_TABLE: &str = "server";

/// The table of the profiles.
pub(super) const PROFILE_TABLE: &str = "profile";

/// The value of `fuzz` for none.
pub(super) const OFF: &str = "off";
/// The value that chooses the number of calls.
pub(super) const AUTO: &str = "auto";

/// The keys of the table of the server: those of its options, and its command.
pub(super) const SERVER_KEYS: [&str; 9] =
    ["command", "env", "cwd", "url", "header", "bearer-env", "second-bearer-env", "foreign-bearer-env", "insecure"];

/// The options that are no keys: they choose the configuration, or are for one command line.
const OPTIONS_ONLY: [&str; 9] =
    ["config", "server", "profile", "no-config", "list", "shard", "update-baseline", "help", "version"];

/// The value that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// A boolean.
    Flag,
    /// An integer.
    Number,
    /// An integer or `off`.
    Calls,
    /// A string.
    Text,
    /// A string, which is a path relative to the file.
    Path,
    /// An array of strings.
    List,
    /// An array of reports, whose paths are relative to the file.
    Reports,
    /// A table of values by name.
    Values,
}

/// A key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// Its name, which is that of the option.
    pub(super) name: String,
    /// The id of the option.
    pub(super) id: String,
    /// The value that it takes.
    pub(super) kind: KeyKind,
    /// The names of the keys that it contradicts.
    pub(super) conflicts: Vec<String>,
}

/// The definition of the command line, complete.
pub(super) fn definition() -> Command {
    let mut command = Args::command();
    command.build();
    command
}

/// The options that are keys.
pub(super) fn options(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let options = command.get_arguments().filter_map(|option| Some((option.get_long()?, option)));
    options
        .filter(|(name, option)| !option.is_hide_set() && !OPTIONS_ONLY.contains(name) && !SERVER_KEYS.contains(name))
}

/// Every key outside the table of the server.
pub(super) fn keys(command: &Command) -> Vec<Key> {
    let pairs: Vec<(&str, &Arg)> = options(command).collect();
    let contradicts =
        |a: &Arg, b: &Arg| command.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id());
    let key = |(name, option): &(&str, &Arg)| Key {
        name: (*name).to_owned(),
        id: option.get_id().to_string(),
        kind: kind(option),
        conflicts: pairs
            .iter()
            .filter(|(_, other)| contradicts(option, other) || contradicts(other, option))
            .map(|(name, _)| (*name).to_owned())
            .collect(),
    };
    pairs.iter().map(key).collect()
}

fn kind(option: &Arg) -> KeyKind {
    let numbers = [TypeId::of::<u8>(), TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let parser: &ValueParser = option.get_value_parser();
    match (option.get_action(), option.get_long()) {
        (ArgAction::SetTrue, _) => KeyKind::Flag,
        (_, Some("report")) => KeyKind::Reports,
        (_, Some("seed-value")) => KeyKind::Values,
        (ArgAction::Append, _) => KeyKind::List,
        _ if parser.type_id() == TypeId::of::<FuzzCalls>() => KeyKind::Calls,
        _ if parser.type_id() == TypeId::of::<PathBuf>() => KeyKind::Path,
        _ if numbers.iter().any(|number| parser.type_id() == *number) => KeyKind::Number,
        _ => KeyKind::Text,
    }
}

/// Why an option does not take a value; `word` is `--option=value`.
pub(super) fn rejection(word: &OsString) -> Option<String> {
    let words = [OsString::from("mcp-conformance"), OsString::from("--list"), word.clone()];
    let error = Args::command().try_get_matches_from(words).err()?;
    match error.kind() {
        ErrorKind::ValueValidation => {
            Some(std::error::Error::source(&error).map_or_else(|| "it is invalid".to_owned(), ToString::to_string))
        }
        ErrorKind::InvalidValue => Some(match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(valid)) if !valid.is_empty() => format!("expected one of {}", valid.join(", ")),
            _ => "it is empty".to_owned(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_option_is_recognized() {
        let keys = keys(&definition());
        let kind = |name: &str| keys.iter().find(|key| key.name == name).map(|key| key.kind);
        for (name, expected) in [
            ("strict", KeyKind::Flag),
            ("retries", KeyKind::Number),
            ("seed", KeyKind::Number),
            ("max-rate", KeyKind::Number),
            ("fuzz", KeyKind::Calls),
            ("timeout", KeyKind::Text),
            ("fail-on", KeyKind::Text),
            ("baseline", KeyKind::Path),
            ("regressions", KeyKind::Path),
            ("select", KeyKind::List),
            ("revision", KeyKind::List),
            ("report", KeyKind::Reports),
            ("seed-value", KeyKind::Values),
        ] {
            assert_eq!(kind(name), Some(expected), "{name}");
        }
        for name in OPTIONS_ONLY.into_iter().chain(SERVER_KEYS) {
            assert_eq!(kind(name), None, "{name}");
        }
    }

    #[test]
    fn options_that_contradict_each_other_are_keys_that_do() {
        let keys = keys(&definition());
        let conflicts = |name: &str| keys.iter().find(|key| key.name == name).expect("a key").conflicts.clone();
        assert_eq!(conflicts("safe"), ["call-destructive"]);
        assert_eq!(conflicts("call-destructive"), ["safe"]);
        assert_eq!(conflicts("fail-on"), ["strict"]);
        assert!(conflicts("timeout").is_empty());
    }
}
