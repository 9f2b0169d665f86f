//! Parses JSON with comments and trailing commas, with the position of every value.

use std::collections::HashSet;

use jsonc_parser::ast::{ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};

use super::problem::{Diagnostic, UnlocatedDiagnostic};
use crate::json_pointer::{self, unescape};
use crate::wire::MAX_DEPTH;

/// The largest number of problems that are reported for one file; of more, only their number is.
pub(super) const MAX_PROBLEMS_PER_FILE: usize = 200;

/// A parsed file: its value, and the tree with the position of each part.
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    tree: Node<'a>,
    /// The value, with the last of several members of one name.
    pub(super) value: Value,
    /// What the value does not show: repeated names, and numbers that are out of range.
    pub(super) flaws: Vec<UnlocatedDiagnostic>,
}

impl<'a> Document<'a> {
    /// Parses a file.
    pub(super) fn read(file: &'a str, text: &'a str) -> Result<Self, Diagnostic> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let fault = |offset: usize, message: String| {
            let (line, column) = position(text, offset);
            Diagnostic { line, column, ..Diagnostic::of_file(file, message) }
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
            .map_err(|error| fault(error.range().start, lower_first(&error.kind().to_string())))?;
        let tree = parsed.value.ok_or_else(|| fault(0, "the file is empty".to_owned()))?;
        let mut flaws = Vec::new();
        let value = convert(&tree, "", 0, &mut flaws);
        Ok(Self { file, text, tree, value, flaws })
    }

    /// Adds the line and column.
    pub(super) fn locate(&self, flaw: UnlocatedDiagnostic) -> Diagnostic {
        let (line, column) = position(self.text, self.offset(&flaw.pointer, flaw.on_name));
        let UnlocatedDiagnostic { pointer, message, suggestion, .. } = flaw;
        Diagnostic { file: self.file.to_owned(), line, column, pointer, message, suggestion }
    }

    /// The same for all problems of a file. Their number is limited, as finding a line takes a pass through the text.
    pub(super) fn locate_all(&self, mut flaws: Vec<UnlocatedDiagnostic>) -> Vec<Diagnostic> {
        let found = flaws.len();
        flaws.truncate(MAX_PROBLEMS_PER_FILE);
        let mut faults: Vec<_> = flaws.into_iter().map(|flaw| self.locate(flaw)).collect();
        if found > MAX_PROBLEMS_PER_FILE {
            let message = format!("the file has {found} problems, of which {MAX_PROBLEMS_PER_FILE} are reported");
            faults.push(self.locate(UnlocatedDiagnostic::at("", message)));
        }
        faults
    }

    /// Where the value at a pointer begins, or the innermost value around it.
    fn offset(&self, pointer: &str, on_name: bool) -> usize {
        let mut node = &self.tree;
        let mut offset = node.start();
        for token in pointer.split('/').skip(1) {
            let next = match node {
                Node::Object(object) => last_named(&object.properties, &unescape(token)).map(|property| {
                    offset = if on_name { property.start() } else { property.value.start() };
                    &property.value
                }),
                Node::Array(array) => token.parse().ok().and_then(|index: usize| array.elements.get(index)),
                _ => None,
            };
            let Some(next) = next else { break };
            if !matches!(node, Node::Object(_)) {
                offset = next.start();
            }
            node = next;
        }
        offset
    }
}

fn last_named<'a, 'b>(properties: &'b [ObjectProp<'a>], name: &str) -> Option<&'b ObjectProp<'a>> {
    properties.iter().rev().find(|property| property.name.as_str() == name)
}

fn convert(node: &Node, pointer: &str, depth: usize, flaws: &mut Vec<UnlocatedDiagnostic>) -> Value {
    if depth > MAX_DEPTH {
        flaws.push(UnlocatedDiagnostic::at(pointer, format!("it is nested more than {MAX_DEPTH} levels deep")));
        return Value::Null;
    }
    match node {
        Node::StringLit(string) => Value::String(string.value.clone().into_owned()),
        Node::NumberLit(number) => number.value.parse::<Number>().map_or_else(
            |_| {
                flaws.push(UnlocatedDiagnostic::at(pointer, format!("the number {} is out of range", number.value)));
                Value::Null
            },
            Value::Number,
        ),
        Node::BooleanLit(boolean) => Value::Bool(boolean.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => {
            let items = array.elements.iter().enumerate();
            Value::Array(
                items.map(|(index, item)| convert(item, &format!("{pointer}/{index}"), depth + 1, flaws)).collect(),
            )
        }
        Node::Object(object) => {
            let mut members = Map::with_capacity(object.properties.len());
            let mut twice = HashSet::new();
            for property in &object.properties {
                let name = property.name.as_str();
                let inner = json_pointer::join(pointer, name);
                let value = convert(&property.value, &inner, depth + 1, flaws);
                if members.insert(name.to_owned(), value).is_some() && twice.insert(name) {
                    flaws.push(UnlocatedDiagnostic::on_name(inner, format!("the member `{name}` is repeated")));
                }
            }
            Value::Object(members)
        }
    }
}

/// The line and column, counted from 1, of an offset in bytes.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_allowed() {
        let text = "// why\n{\n  \"a\": [1, /* two */ 2.5,], // three\n  \"b\": null,\n}\n";
        let document = Document::read("x", text).expect("it parses");
        assert_eq!(document.value, json!({"a": [1, 2.5], "b": null}));
        assert!(document.flaws.is_empty());
    }

    #[test]
    fn every_value_has_its_position() {
        let text = "{\n  \"a\": [1,\n    {\"é/~\": 2, \"c\": 3}],\n}";
        let document = Document::read("x", text).expect("it parses");
        let place = |flaw: UnlocatedDiagnostic| {
            let fault = document.locate(flaw);
            (fault.line, fault.column)
        };
        assert_eq!(place(UnlocatedDiagnostic::at("", "")), (1, 1));
        assert_eq!(place(UnlocatedDiagnostic::at("/a", "")), (2, 8));
        assert_eq!(place(UnlocatedDiagnostic::on_name("/a", "")), (2, 3));
        assert_eq!(place(UnlocatedDiagnostic::at("/a/1/c", "")), (3, 21));
        assert_eq!(place(UnlocatedDiagnostic::on_name("/a/1/é~1~0", "")), (3, 6));
        assert_eq!(place(UnlocatedDiagnostic::at("/a/1/missing", "")), (3, 5));
    }

    #[test]
    fn a_syntax_error_is_reported_at_its_position() {
        for (text, place, message) in [
            ("{\n  'a': 1}", (2, 3), "single-quoted strings are not allowed"),
            ("{\"a\" 1}", (1, 6), "expected colon after the string or word in object property"),
            ("{\"a\": 1 \"b\": 2}", (1, 8), "expected comma"),
            ("// nothing", (1, 1), "the file is empty"),
            ("{\"a\": [1, 2}", (1, 12), "unexpected close brace"),
        ] {
            let fault = Document::read("x", text).err().expect("it does not parse");
            assert_eq!(((fault.line, fault.column), fault.message.as_str()), (place, message), "{text}");
        }
    }

    #[test]
    fn repeated_names_huge_numbers_and_deep_nesting_are_reported() {
        let text = format!("{{\"a\": 1,\n \"a\": 1e999, \"b\": {}{}}}", "[".repeat(200), "]".repeat(200));
        let document = Document::read("x", &text).expect("it parses");
        let reported: Vec<_> = document.flaws.iter().map(|flaw| flaw.message.as_str()).collect();
        assert_eq!(
            reported,
            [
                "the number 1e999 is out of range",
                "the member `a` is repeated",
                "it is nested more than 120 levels deep"
            ]
        );
        assert_eq!(document.locate(document.flaws[1].clone()).line, 2);
    }
}
