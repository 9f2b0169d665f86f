//! Valid arguments that break handlers: what passes each check of a schema and is still rarely expected.
//!
//! `inputs.tsv` lists the values, each with where it broke something. They are put in place of parts of valid arguments,
//! those that a tool is known to serve first, so that they reach what comes behind the first checks.

use std::collections::HashSet;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::malformed::Grammar;
use super::mutant::site::{Site, is_of_type, sites, types_of};
use super::mutant::valid_instances;
use super::schema::ToolSchema;
use crate::raw_text::RawText;

const INPUTS: &str = include_str!("inputs.tsv");

/// The maximum number of places in the arguments of a tool where an input is sent.
const MAX_PLACES: usize = 4;
/// The maximum number of places that are looked at for those where the schema allows an input.
const MAX_CANDIDATES: usize = 16;
/// The maximum size of the arguments with a long value, in bytes.
const MAX_SIZE: usize = 1 << 20;
/// The kind of the strings that are so long that a tool which keeps what it gets should not get them.
const LONG: &str = "long-string";
/// Stands for JSON that no parsed value represents: a string that no schema and no tool has.
const PLACEHOLDER: &str = "\u{e000}\u{e001}\u{e000}";

/// Input that breaks handlers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HandlerInput {
    /// What it is put in place of: a JSON type, a `format` of strings, or `long-string` for a string of a tool that only reads.
    pub kind: &'static str,
    /// The unique name.
    pub name: &'static str,
    /// Where it broke something: an issue.
    pub source: &'static str,
    value: HandlerValue,
}

/// The value of an input.
#[derive(Debug, Clone, PartialEq)]
enum HandlerValue {
    Plain(Value),
    /// A text so many times.
    Repeated(String, usize),
    /// JSON that no parsed value represents.
    Raw(String),
    /// An array of this length.
    Items(usize),
    /// An object with one more member of this name.
    Key(String),
}

/// Arguments with input that breaks handlers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HandlerArguments {
    /// The name of the input.
    pub input: &'static str,
    /// The JSON pointer of its place in the arguments.
    pub location: String,
    /// The arguments.
    pub arguments: HandlerText,
}

/// Arguments with a very long text. They take no memory until they are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongArguments {
    /// The name of the input.
    pub input: &'static str,
    /// The JSON pointer of the text.
    pub location: String,
    /// The arguments.
    pub arguments: RawText,
}

/// Arguments as they are sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HandlerText {
    /// Valid arguments.
    Valid(Value),
    /// An object that no parsed value represents.
    Raw {
        /// The text.
        bytes: Vec<u8>,
        /// How far it is from a valid object.
        grammar: Grammar,
        /// The valid arguments that it differs from in one place.
        like: Value,
    },
}

/// Every input of the table.
///
/// # Panics
///
/// Never: the table is a part of the program, and a test reads it.
#[must_use]
pub fn handler_inputs() -> &'static [HandlerInput] {
    static TABLE: OnceLock<Vec<HandlerInput>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = INPUTS.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let mut columns = line.split('\t');
                let [kind, name, value, source] =
                    std::array::from_fn(|_| columns.next().expect("each line has four columns"));
                HandlerInput { kind, name, source, value: HandlerValue::read(value) }
            })
            .collect()
    })
}

impl HandlerValue {
    fn read(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).expect("each value is JSON");
        let size = |name: &str| usize::try_from(value[name].as_u64().unwrap_or_default()).unwrap_or_default();
        match &value {
            Value::Object(members) if members.contains_key("items") => Self::Items(size("items")),
            Value::Object(members) => {
                let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
                text("repeat")
                    .map(|part| Self::Repeated(part, size("times")))
                    .or_else(|| text("raw").map(Self::Raw))
                    .or_else(|| text("key").map(Self::Key))
                    .unwrap_or(Self::Plain(value.clone()))
            }
            _ => Self::Plain(value),
        }
    }

    /// The value in place of another one; none if it makes no sense there.
    fn in_place_of(&self, current: &Value) -> Option<Value> {
        match self {
            Self::Plain(value) => Some(value.clone()),
            Self::Repeated(text, times) => Some(text.repeat(*times).into()),
            Self::Raw(_) => Some(PLACEHOLDER.into()),
            Self::Items(count) => {
                let item = current.as_array()?.last()?;
                let size = item.to_string().len() + 1;
                (size.saturating_mul(*count) <= MAX_SIZE).then(|| vec![item.clone(); *count].into())
            }
            Self::Key(name) => {
                let mut members = current.as_object()?.clone();
                members.insert(name.clone(), "x".into());
                Some(Value::Object(members))
            }
        }
    }
}

impl HandlerInput {
    /// Whether it may be put in place of a value.
    fn fits(&self, keywords: &Map<String, Value>, current: &Value) -> bool {
        let types = types_of(keywords);
        let allows = |kind: &str| types.is_empty() || types.contains(&kind);
        match self.kind {
            "date" | "date-time" => {
                current.is_string() && keywords.get("format").and_then(Value::as_str) == Some(self.kind)
            }
            "integer" => is_of_type(current, "integer") && (allows("integer") || allows("number")),
            LONG => current.is_string() && allows("string"),
            kind => is_of_type(current, kind) && allows(kind),
        }
    }

    /// How far its raw text is from valid arguments.
    fn grammar(&self) -> Grammar {
        // Half of a surrogate pair is not a character; an integer may have an exponent or a fraction of zero.
        if self.kind == "string" { Grammar::Beyond } else { Grammar::Object }
    }

    /// The arguments with this input at a site, if the schema allows them.
    fn at(&self, site: &Site<'_>, schema: &ToolSchema) -> Option<HandlerText> {
        let value = self.value.in_place_of(site.current)?;
        let HandlerValue::Raw(text) = &self.value else {
            let arguments = site.with(value);
            return schema.is_valid(&arguments).then_some(HandlerText::Valid(arguments));
        };
        // What the text stands for is checked with a value that the schema treats alike.
        let like: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::from("\u{fffd}"));
        let like = site.with(like);
        if !schema.is_valid(&like) {
            return None;
        }
        let whole = site.with(value).to_string();
        let placeholder = Value::from(PLACEHOLDER).to_string();
        let bytes = whole.replacen(&placeholder, text, 1).into_bytes();
        Some(HandlerText::Raw { bytes, grammar: self.grammar(), like })
    }

    /// The arguments with this long text at a site, if the schema allows them.
    fn long_at(&self, site: &Site<'_>, schema: &ToolSchema) -> Option<RawText> {
        let HandlerValue::Repeated(text, times) = &self.value else { return None };
        let is_free = ["pattern", "format"].iter().all(|keyword| !site.keywords.contains_key(*keyword));
        let &[repeated] = text.as_bytes() else { return None };
        if !is_free || !schema.is_valid(&site.with(text.repeat(*times).into())) {
            return None;
        }
        let whole = site.with(PLACEHOLDER.into()).to_string();
        let (before, after) = whole.split_once(PLACEHOLDER)?;
        Some(RawText::with_repeated(before.to_owned(), repeated, *times, after.to_owned()))
    }
}

/// Arguments with input that breaks handlers, each input at a few places, all inputs at their first place before others.
///
/// Starts from valid arguments: `served` ones, that the tool is known to serve, before generated ones. The same schema
/// and the same served arguments have the same result.
#[must_use]
pub fn handler_arguments(schema: &ToolSchema, served: Option<&Value>) -> Vec<HandlerArguments> {
    let instances = valid_instances(schema, served);
    let sites = sites(schema, &instances);
    let mut by_input: Vec<_> = handler_inputs()
        .iter()
        .filter(|input| input.kind != LONG)
        .map(|input| {
            // Several subschemas may apply to one place.
            let mut seen = HashSet::new();
            let own = sites.iter().filter(move |site| input.fits(site.keywords, site.current));
            let own = own.filter(move |site| seen.insert(&site.location)).take(MAX_CANDIDATES);
            own.filter_map(move |site| {
                let arguments = input.at(site, schema)?;
                Some(HandlerArguments { input: input.name, location: site.location.clone(), arguments })
            })
        })
        .collect();
    (0..MAX_PLACES).flat_map(|_| by_input.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
}

/// Arguments with each very long text, the shortest first, at the first place where the schema allows it.
///
/// Starts from the same valid arguments as [`handler_arguments`].
#[must_use]
pub fn long_arguments(schema: &ToolSchema, served: Option<&Value>) -> Vec<LongArguments> {
    let instances = valid_instances(schema, served);
    let sites = sites(schema, &instances);
    let long = handler_inputs().iter().filter(|input| input.kind == LONG);
    let at_first_place = |input: &HandlerInput| {
        let mut own = sites.iter().filter(|site| input.fits(site.keywords, site.current)).take(MAX_PLACES);
        own.find_map(|site| {
            let arguments = input.long_at(site, schema)?;
            Some(LongArguments { input: input.name, location: site.location.clone(), arguments })
        })
    };
    long.filter_map(at_first_place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Dialect;
    use super::*;
    use serde_json::json;

    fn compile(schema: &Value) -> ToolSchema {
        ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema")
    }

    #[test]
    fn the_table_has_distinct_inputs_with_sources() {
        let names: HashSet<&str> = handler_inputs().iter().map(|input| input.name).collect();
        assert_eq!(names.len(), handler_inputs().len());
        assert!(names.len() >= 30, "{}", names.len());
        for input in handler_inputs() {
            let (project, number) = input.source.split_once('#').expect("an issue");
            assert!(project.contains('/') && number.parse::<u32>().is_ok(), "{}", input.source);
            let known = ["string", LONG, "date", "date-time", "integer", "array", "object"];
            assert!(known.contains(&input.kind), "{}", input.kind);
        }
    }

    #[test]
    fn every_input_reaches_a_tool_that_allows_it() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "day": {"type": "string", "format": "date"},
                "at": {"type": "string", "format": "date-time"},
                "limit": {"type": "integer"},
                "ids": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["query", "day", "at", "limit", "ids"],
        }));
        let served = json!({"query": "a", "day": "2026-01-31", "at": "2026-01-31T00:00:00Z", "limit": 1, "ids": [1]});
        let found = handler_arguments(&schema, Some(&served));
        let long = long_arguments(&schema, Some(&served));
        let used: HashSet<&str> = found.iter().map(|one| one.input).chain(long.iter().map(|one| one.input)).collect();
        let missing: Vec<&str> =
            handler_inputs().iter().map(|input| input.name).filter(|name| !used.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        for one in &found {
            match &one.arguments {
                HandlerText::Valid(arguments) => assert!(schema.is_valid(arguments), "{}", one.input),
                HandlerText::Raw { bytes, .. } => {
                    let text = std::str::from_utf8(bytes).expect("UTF-8");
                    assert!(text.contains(r#""\ud800""#) || text.contains("30.0"), "{text}");
                    assert!(!text.contains(PLACEHOLDER), "{text}");
                }
            }
        }
        assert_eq!(found, handler_arguments(&schema, Some(&served)), "not the same twice");
    }

    #[test]
    fn places_that_the_schema_forbids_do_not_count() {
        let mut schema = json!({"type": "object", "properties": {"z": {"type": "string"}}});
        for name in ["a", "b", "c", "d", "e"] {
            schema["properties"][name] = json!({"type": "string", "format": "uuid"});
        }
        let found = handler_arguments(&compile(&schema), None);
        let white_space: Vec<&str> =
            found.iter().filter(|one| one.input == "white space").map(|one| one.location.as_str()).collect();
        assert_eq!(white_space, ["/z"]);
    }

    #[test]
    fn long_texts_are_sent_where_the_schema_allows_them() {
        let of = |text: Value| {
            let schema = json!({"type": "object", "properties": {"text": text, "limit": {"type": "integer"}}});
            let made = long_arguments(&compile(&schema), Some(&json!({"text": "a", "limit": 1})));
            made.into_iter().map(|one| (one.location, one.arguments.len())).collect::<Vec<_>>()
        };
        let around = r#"{"text":"","limit":1}"#.len();
        let both = [1_100_000, 8_400_000].map(|size| ("/text".to_owned(), size + around));
        assert_eq!(of(json!({"type": "string"})), both);
        assert_eq!(of(json!({"type": "string", "maxLength": 2_000_000})), both[..1]);
        assert_eq!(of(json!({"type": "string", "maxLength": 140_000})), []);
        assert_eq!(of(json!({"type": "string", "pattern": "^a*$"})), []);
    }

    #[test]
    fn what_the_schema_forbids_is_not_sent() {
        let schema = compile(&json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "pattern": "^[a-z]{1,8}$"},
                "limit": {"type": "integer", "maximum": 50},
            },
            "required": ["code", "limit"],
            "additionalProperties": false,
        }));
        let found = handler_arguments(&schema, None);
        let inputs: Vec<&str> = found.iter().map(|one| one.input).collect();
        assert_eq!(inputs, ["an integer with a fraction of zero"], "and no word has more than 8 letters");
    }
}
