//! Reads `mcp-conformance.toml`. Every problem in it is found at once, with its line and column.

use std::ffi::OsString;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigProblem, suggestion};
use super::keys::{AUTO, Key, KeyKind, OFF, PROFILE_TABLE, SERVER_KEYS, SERVER_TABLE, definition, keys, rejection};
use super::settings::{FileSetting, FileSettings, ServerTable, TextValue};
use super::toml_table::{Located, TomlDocument, entries, integer, json};
use crate::cli::args::NO_REGRESSIONS;

/// A configuration file.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// What it sets.
    pub(super) settings: FileSettings,
    /// What its profiles set, by name.
    pub(super) profiles: Vec<(String, FileSettings)>,
}

/// Reads the text of a file, which messages call `file`. Relative paths in it begin in `folder`.
pub(super) fn parse(file: &str, text: &str, folder: &Path) -> Result<ConfigFile, Vec<ConfigProblem>> {
    let mut document = TomlDocument::new(file, text);
    let table = document.parse();
    if !document.problems.is_empty() {
        return Err(document.problems);
    }
    let mut reader = FileReader { document, folder, keys: keys(&definition()) };
    let mut profiles = Vec::new();
    let settings = reader.settings(&table, Some(&mut profiles));
    let mut problems = reader.document.problems;
    if problems.is_empty() {
        return Ok(ConfigFile { settings, profiles });
    }
    problems.sort_by_key(|problem| problem.position);
    Err(problems)
}

struct FileReader<'a> {
    document: TomlDocument<'a>,
    folder: &'a Path,
    keys: Vec<Key>,
}

impl<'a> FileReader<'a> {
    /// What a table sets; `profiles` is for those in the table, which is `None` in a profile.
    fn settings(
        &mut self,
        table: &DeTable<'a>,
        mut profiles: Option<&mut Vec<(String, FileSettings)>>,
    ) -> FileSettings {
        let mut settings = FileSettings::default();
        for (name, value) in entries(table) {
            match (name.get_ref().as_ref(), &mut profiles) {
                (SERVER_TABLE, _) => settings.server = self.server(value),
                (PROFILE_TABLE, Some(profiles)) => {
                    let Some(tables) = self.document.table(PROFILE_TABLE, value) else { continue };
                    for (profile, value) in entries(tables) {
                        if let Some(table) = self.document.table(profile.get_ref(), value) {
                            profiles.push((profile.get_ref().to_string(), self.settings(table, None)));
                        }
                    }
                }
                (other, _) => {
                    if let Some(key) = self.keys.iter().find(|key| key.name == other).cloned() {
                        self.check_conflicts(&key, &settings, value);
                        let words = self.words(&key, value);
                        settings.options.push(FileSetting { key: key.name, words });
                    } else {
                        let message = format!("unknown key `{other}`{}", self.advice(other));
                        self.document.report(name.span(), message);
                    }
                }
            }
        }
        settings
    }

    /// The end of a message about an unknown key.
    fn advice(&self, key: &str) -> String {
        if SERVER_KEYS.contains(&key) {
            return format!(" (it belongs to the table `[{SERVER_TABLE}]`)");
        }
        let tables = [SERVER_TABLE, PROFILE_TABLE];
        suggestion(key, self.keys.iter().map(|known| known.name.as_str()).chain(tables))
    }

    /// A key that contradicts one before it is a problem.
    fn check_conflicts(&mut self, key: &Key, settings: &FileSettings, value: &Located<'a>) {
        let other = settings.options.iter().find(|other| !other.words.is_empty() && key.conflicts.contains(&other.key));
        if let Some(other) = other.filter(|_| value.get_ref().as_bool() != Some(false)) {
            let message = format!("`{}` contradicts `{}`: remove one of them", key.name, other.key);
            self.document.report(value.span(), message);
        }
    }

    /// The words of a key.
    fn words(&mut self, key: &Key, value: &Located<'a>) -> Vec<OsString> {
        let name = key.name.as_str();
        let mut words = Vec::new();
        match key.kind {
            KeyKind::Flag => {
                if self.document.boolean(name, value) == Some(true) {
                    words.push(format!("--{name}").into());
                }
            }
            KeyKind::Number | KeyKind::Calls => match (integer(value), value.get_ref()) {
                (Some(number), _) => words.extend(self.word(name, &number.to_string(), value)),
                (None, DeValue::String(text)) if key.kind == KeyKind::Calls => {
                    words.extend(self.word(name, text, value));
                }
                (None, _) => {
                    let expected = match key.kind {
                        KeyKind::Calls => format!("an integer, \"{AUTO}\" or \"{OFF}\""),
                        _ => "an integer".to_owned(),
                    };
                    self.document.report_type(name, value, &expected);
                }
            },
            KeyKind::Text => {
                if let Some(text) = self.document.string(name, value) {
                    words.extend(self.word(name, &text, value));
                }
            }
            KeyKind::Path => {
                if let Some(text) = self.document.string(name, value) {
                    let path = if name == "regressions" && text == NO_REGRESSIONS { text } else { self.path(&text) };
                    words.extend(self.word(name, &path, value));
                }
            }
            KeyKind::List => {
                for (text, item) in self.document.strings(name, value) {
                    words.extend(self.word(name, &text, item));
                }
            }
            KeyKind::Reports => {
                for (text, item) in self.document.strings(name, value) {
                    let text = match text.split_once('=') {
                        Some((format, path)) if !matches!(path, "" | "-") => format!("{format}={}", self.path(path)),
                        _ => text,
                    };
                    words.extend(self.word(name, &text, item));
                }
            }
            KeyKind::Values => words = self.values(name, value),
        }
        words
    }

    /// The words of a table of values; an array is several values of the name.
    fn values(&mut self, key: &str, value: &Located<'a>) -> Vec<OsString> {
        let mut words = Vec::new();
        let Some(table) = self.document.table(key, value) else { return words };
        for (name, value) in entries(table) {
            let several = value.get_ref().as_array();
            let items = several.map_or_else(|| vec![value], |items| items.iter().collect());
            for item in items {
                match json(item) {
                    Some(json) => words.extend(self.word(key, &format!("{}={json}", name.get_ref()), item)),
                    None => self.document.report(item.span(), "JSON has no such value".to_owned()),
                }
            }
        }
        words
    }

    /// The word of an option with a value, if the option takes it.
    fn word(&mut self, key: &str, value: &str, place: &Located) -> Option<OsString> {
        let word = OsString::from(format!("--{key}={value}"));
        match rejection(&word) {
            None => Some(word),
            Some(reason) => {
                self.document.report(place.span(), format!("invalid value `{value}` of `{key}`: {reason}"));
                None
            }
        }
    }

    /// A path relative to the current folder.
    fn path(&self, text: &str) -> String {
        self.folder.join(text).to_string_lossy().into_owned()
    }

    fn server(&mut self, value: &Located<'a>) -> Option<ServerTable> {
        let table = self.document.table(SERVER_TABLE, value)?;
        let mut server = ServerTable::default();
        for (name, value) in entries(table) {
            let key = name.get_ref().as_ref();
            match key {
                "command" => {
                    if value.get_ref().is_str() {
                        let message = "`command` takes an array with the program and each of its arguments, such as [\"node\", \"server.js\"]";
                        self.document.report(value.span(), message.to_owned());
                        continue;
                    }
                    let words = self.document.strings(key, value);
                    server.command = words.into_iter().map(|(text, item)| self.located(text, item)).collect();
                }
                "env" | "header" => {
                    let pairs = self.pairs(key, value);
                    *(if key == "env" { &mut server.env } else { &mut server.header }) = pairs;
                }
                "cwd" => server.cwd = self.document.string(key, value).map(|text| self.located(text, value)),
                "url" => server.url = self.document.string(key, value).map(|text| self.located(text, value)),
                "bearer-env" => server.bearer_env = self.document.string(key, value),
                "second-bearer-env" => server.second_bearer_env = self.document.string(key, value),
                "foreign-bearer-env" => server.foreign_bearer_env = self.document.string(key, value),
                "insecure" => server.insecure = self.document.boolean(key, value) == Some(true),
                other => {
                    let message = format!("unknown key `{other}`{}", suggestion(other, SERVER_KEYS));
                    self.document.report(name.span(), message);
                }
            }
        }
        self.check_server(table, &server, value);
        Some(server)
    }

    /// A server needs a command or a URL, and some keys are of use only with one of them.
    fn check_server(&mut self, table: &DeTable<'a>, server: &ServerTable, place: &Located<'a>) {
        let has = |key: &str| entries(table).into_iter().find(|(name, _)| name.get_ref() == key);
        if has("command").is_none() && has("url").is_none() {
            self.document.report(place.span(), "the server needs a `command` or a `url`".to_owned());
        }
        for (key, needed) in [
            ("env", "command"),
            ("cwd", "command"),
            ("header", "url"),
            ("bearer-env", "url"),
            ("second-bearer-env", "url"),
            ("foreign-bearer-env", "url"),
            ("insecure", "url"),
        ] {
            if let (Some((name, _)), None) = (has(key), has(needed)) {
                self.document.report(name.span(), format!("`{key}` is of no use without `{needed}`"));
            }
        }
        if server.command.is_empty()
            && let Some((_, value)) = has("command").filter(|(_, value)| value.get_ref().is_array())
        {
            self.document.report(value.span(), "the command is empty".to_owned());
        }
    }

    fn pairs(&mut self, key: &str, value: &Located<'a>) -> Vec<(String, TextValue)> {
        let Some(table) = self.document.table(key, value) else { return Vec::new() };
        let mut pairs = Vec::new();
        for (name, value) in entries(table) {
            let name_text = name.get_ref().to_string();
            if name_text.trim().is_empty() || name_text.contains(['=', ':', '\0']) {
                self.document.report(name.span(), format!("`{name_text}` cannot be a name in `{key}`"));
            } else if let Some(text) = self.document.string(&name_text, value) {
                pairs.push((name_text, self.located(text, value)));
            }
        }
        pairs
    }

    fn located(&self, text: String, value: &Located) -> TextValue {
        TextValue { text, position: Some(self.document.position(value.span().start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let problems = parse("c.toml", text, Path::new("")).expect_err(text);
        problems.iter().map(ToString::to_string).collect()
    }

    fn words(text: &str, folder: &str) -> Vec<String> {
        let file = parse("c.toml", text, Path::new(folder)).unwrap_or_else(|problems| panic!("{problems:?}"));
        let words = file.settings.options.into_iter().flat_map(|setting| setting.words);
        words.map(|word| word.into_string().expect("it is Unicode")).collect()
    }

    #[test]
    fn each_kind_of_value_becomes_words() {
        for (text, expected) in [
            ("strict = true\nsafe = false", vec!["--strict"]),
            ("retries = 3\nseed = 0x10", vec!["--retries=3", "--seed=16"]),
            ("fuzz = 500", vec!["--fuzz=500"]),
            ("fuzz = \"off\"", vec!["--fuzz=off"]),
            ("revision = [2025-06-18, \"latest\"]", vec!["--revision=2025-06-18", "--revision=latest"]),
            ("select = \"tools/*\"", vec!["--select=tools/*"]),
            ("timeout = \"10s\"\nfail-on = \"should\"", vec!["--timeout=10s", "--fail-on=should"]),
            (
                "seed-value = {city = \"Paris\", n = [1, 2.5]}",
                vec!["--seed-value=city=\"Paris\"", "--seed-value=n=1", "--seed-value=n=2.5"],
            ),
        ] {
            assert_eq!(words(text, ""), expected, "{text}");
        }
    }

    #[test]
    fn paths_begin_in_the_folder_of_the_file() {
        let text =
            "baseline = \"known.jsonc\"\nhints = \"/h\"\nregressions = \"none\"\nreport = [\"json=r.json\", \"tap\"]";
        let expected = [
            "--baseline=../known.jsonc",
            "--hints=/h",
            "--regressions=none",
            "--report=json=../r.json",
            "--report=tap",
        ];
        assert_eq!(words(text, ".."), expected);
        assert_eq!(words("baseline = \"known.jsonc\"", ""), ["--baseline=known.jsonc"]);
    }

    #[test]
    fn every_problem_has_its_position_and_a_suggestion() {
        let text =
            "timout = \"5s\"\nretries = 11\n\n[server]\ncomand = [\"x\"]\nurl = 3\n[profile.ci]\nfial-on = \"must\"\n";
        assert_eq!(
            problems(text),
            [
                "c.toml:1:1: unknown key `timout` (did you mean `timeout`?)",
                "c.toml:2:11: invalid value `11` of `retries`: 11 is not in 0..=10",
                "c.toml:5:1: unknown key `comand` (did you mean `command`?)",
                "c.toml:6:7: `url` takes a string, not an integer",
                "c.toml:8:1: unknown key `fial-on` (did you mean `fail-on`?)",
            ]
        );
    }

    #[test]
    fn a_problem_says_what_to_do() {
        for (text, expected) in [
            ("fail-on = \"may\"", "expected one of must, should, untested, never"),
            ("timeout = 5", "`timeout` takes a string, not an integer"),
            ("timeout = \"5\"", "5s or 500ms"),
            ("report = [\"pdf\"]", "the formats are text"),
            ("env = {A = \"1\"}", "it belongs to the table `[server]`"),
            ("strict = \"yes\"", "`true` or `false`"),
            ("safe = true\ncall-destructive = true", "contradicts `"),
            ("[server]\ncommand = \"node server.js\"", "[\"node\", \"server.js\"]"),
            ("[server]\ncommand = []", "the command is empty"),
            ("[server]\nenv = {A = \"1\"}", "needs a `command` or a `url`"),
            ("[server]\ncommand = [\"x\"]\ninsecure = true", "`insecure` is of no use without `url`"),
            ("[server]\ncommand = [\"x\"]\nenv = {\"A=B\" = \"1\"}", "cannot be a name"),
            ("[profile]\nci = 3", "`ci` takes a table"),
            ("select = [", "c.toml:1:"),
            ("a = 1\na = 2", "c.toml:2:1: duplicate key"),
        ] {
            let problems = problems(text).join("\n");
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
