//! TOML with the position of every value.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::ConfigProblem;

/// A file and what is wrong with it.
pub(super) struct TomlDocument<'a> {
    /// The file, as messages name it.
    pub(super) file: &'a str,
    /// Its text.
    pub(super) text: &'a str,
    /// What is wrong, by position once it is complete.
    pub(super) problems: Vec<ConfigProblem>,
}

/// A value with its position.
pub(super) type Located<'a> = Spanned<DeValue<'a>>;

impl<'a> TomlDocument<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, problems: Vec::new() }
    }

    /// The table of the file; everything that is not TOML is a problem.
    pub(super) fn parse(&mut self) -> DeTable<'a> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            self.report(error.span().unwrap_or_default(), error.message().to_owned());
        }
        table.into_inner()
    }

    /// Adds a problem with what is at a span.
    pub(super) fn report(&mut self, span: Range<usize>, message: String) {
        let position = Some(self.position(span.start));
        self.problems.push(ConfigProblem { file: self.file.to_owned(), position, message });
    }

    /// The line and the column of a byte, counted from 1.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// Reports that a value has another type.
    pub(super) fn report_type(&mut self, key: &str, value: &Located, expected: &str) {
        let found = value.get_ref().type_str();
        self.report(value.span(), format!("`{key}` takes {expected}, not {} {found}", article(found)));
    }

    /// A string; a date without quotes is one as well.
    pub(super) fn string(&mut self, key: &str, value: &Located) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Datetime(date) => Some(date.to_string()),
            _ => {
                self.report_type(key, value, "a string");
                None
            }
        }
    }

    /// Strings in an array, or a single one; each with its position.
    pub(super) fn strings<'value>(
        &mut self,
        key: &str,
        value: &'value Located<'a>,
    ) -> Vec<(String, &'value Located<'a>)> {
        match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| self.string(key, item).map(|text| (text, item))).collect()
            }
            DeValue::String(_) | DeValue::Datetime(_) => {
                self.string(key, value).map(|text| (text, value)).into_iter().collect()
            }
            _ => {
                self.report_type(key, value, "an array of strings");
                Vec::new()
            }
        }
    }

    /// A boolean.
    pub(super) fn boolean(&mut self, key: &str, value: &Located) -> Option<bool> {
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.report_type(key, value, "`true` or `false`");
        }
        flag
    }

    /// A table.
    pub(super) fn table<'value>(&mut self, key: &str, value: &'value Located<'a>) -> Option<&'value DeTable<'a>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.report_type(key, value, "a table");
        }
        table
    }
}

/// The entries of a table, in the order of the file.
pub(super) fn entries<'value, 'a>(
    table: &'value DeTable<'a>,
) -> Vec<(&'value Spanned<DeString<'a>>, &'value Located<'a>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// An integer in decimal digits.
pub(super) fn integer(value: &Located) -> Option<i64> {
    let number = value.get_ref().as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A value as JSON; `None` where JSON has nothing like it.
pub(super) fn json(value: &Located) -> Option<Value> {
    Some(match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(_) => Value::from(integer(value)?),
        DeValue::Float(number) => Value::from(number.as_str().parse::<f64>().ok().filter(|number| number.is_finite())?),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(json).collect::<Option<_>>()?),
        DeValue::Table(members) => {
            let members = entries(members).into_iter();
            Value::Object(
                members.map(|(name, value)| Some((name.get_ref().to_string(), json(value)?))).collect::<Option<_>>()?,
            )
        }
    })
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
