//! The placeholders of case files: `${...}` in what a step sends, filled in while the case runs.
//!
//! Owns their notation and the filling in. The runner says what the value of each is.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde_json::{Map, Value};

/// The length of the longest string that `${text.N}` inserts, in characters.
pub(crate) const MAX_TEXT: usize = 1_000_000;

/// The greatest number of arrays that `${nested.N}` inserts.
pub(crate) const MAX_NESTED: usize = 100_000;

/// The greatest number of members that `${members.N}` inserts.
pub(crate) const MAX_MEMBERS: usize = 100_000;

/// The greatest length of a message that `${fill.N}` fills, in bytes.
pub(crate) const MAX_FILLED: usize = 16 << 20;

/// The greatest number of digits that `${digits.N}` inserts.
pub(crate) const MAX_DIGITS: usize = 100_000;

/// A value that is inserted when a message is sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placeholder {
    /// `${tool}`: the name of a tool that may be called.
    Tool,
    /// `${tool.arguments}`: valid minimal arguments for it.
    ToolArguments,
    /// `${tool.arguments.missing}`: the same, with one required property left out.
    ToolArgumentsMissing,
    /// `${tool.arguments.wrong-type}`: the same, with one property of a wrong type.
    ToolArgumentsWrongType,
    /// `${tool.arguments.outside-enum}`: the same, with one property outside its enumeration.
    ToolArgumentsOutsideEnum,
    /// `${tool.arguments.additional}`: the same, with a property that the schema forbids.
    ToolArgumentsAdditional,
    /// `${tool.arguments.2020-12-only}`: the same, with a value that only the 2020-12 dialect rejects.
    ToolArguments2020Only,
    /// `${tool.arguments.alternative}`: valid arguments other than the minimal ones.
    ToolArgumentsAlternative,
    /// `${tool.arguments.lasting}`: valid arguments with which a call takes some seconds, if there are any.
    ToolArgumentsLasting,
    /// `${tool.arguments.root-file}` and its kin: arguments with the path of a file, within the root of the client or not.
    ToolArgumentsFile(FilePath),
    /// `${tool.swapped-case}`: its name with the case of the letters swapped.
    ToolSwappedCase,
    /// `${unknown-tool}`: a name that no tool has.
    UnknownTool,
    /// `${unknown-method}`: a method that does not exist.
    UnknownMethod,
    /// `${random}`: a random string.
    Random,
    /// `${next-cursor}`: a cursor that the server issued.
    NextCursor,
    /// `${altered-cursor}`: that cursor with one character changed.
    AlteredCursor,
    /// `${resource}`: the uri of a listed resource.
    Resource,
    /// `${prompt}`: the name of a prompt with a required argument that was served.
    Prompt,
    /// `${prompt.arguments}`: all required arguments of that prompt.
    PromptArguments,
    /// `${prompt.argument}`: the name of its first required argument.
    PromptArgument,
    /// `${page.cursor}`: the cursor of the page that the steps are repeated for.
    PageCursor,
    /// `${text.N}`: a string of `N` characters.
    Text(usize),
    /// `${nested.N}`: the JSON text of `N` arrays, each inside the one before, for `raw`.
    Nested(usize),
    /// `${fill.N}`: as many letters as the message needs to be `N` bytes long, without the line ending.
    Fill(usize),
    /// `${members.N}`: an object of `N` members.
    Members(usize),
    /// `${digits.N}`: the JSON text of an integer of `N` digits, for `raw`.
    Digits(usize),
    /// `${served-method}`: a method whose requests need no parameters and that the server serves: `tools/list` if it has
    /// tools, else another list, and without any `ping` or, in the stateless era, `server/discover`.
    ServedMethod,
    /// `${served-method.swapped-case}`: that method with the case of the letters swapped.
    ServedMethodSwappedCase,
    /// `${listed-version}`: the newest version with a handshake in the result of `server/discover`.
    ListedVersion,
    /// `${revision}`: the revision that the case runs in.
    Revision,
    /// `${id}`: a fresh integer id.
    Id,
    /// `${meta}`: the `_meta` object that the revision requires.
    Meta,
    /// `${session}`: the session that the server opened over HTTP.
    Session,
    /// `${header}`: in a header, the value that the client would send.
    Header,
    /// `${second-authorization}`: in a header, the value of `Authorization` with the token of another user.
    SecondAuthorization,
    /// `${foreign-authorization}`: in a header, the value of `Authorization` with a token that was issued for another
    /// server.
    ForeignAuthorization,
    /// `${client-request.content}`: content that is valid against the `requestedSchema` of the server.
    ClientRequestContent,
    /// `${client-request.invalid-content}`: content that is invalid in one value.
    ClientRequestInvalidContent,
    /// `${client-request.tool}`: the first tool that the request lets the model use.
    ClientRequestTool,
    /// `${client-request.count}`: how many requests of this method were answered before.
    ClientRequestCount,
    /// `${root}`: the URI of a folder that the run makes for the case.
    Root,
    /// `${saved.NAME}`: what an earlier step saved by that name.
    Saved(String),
    /// `${declined.NAME}`: a response that grants nothing to each of the requests that an earlier step saved by that
    /// name, by its key.
    Declined(String),
}

/// A path of one of the files that the run makes for a case about the roots of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FilePath {
    /// `root-file`: that of the file in the root.
    InRoot,
    /// `outside-file`: that of a file next to the root, in a folder whose name begins like that of the root.
    Outside,
    /// `outside-file.by-parent`: a path of the same file that begins with the root and leaves it by `..`.
    OutsideByParent,
    /// `outside-file.by-link`: that of a symbolic link in the root to the same file.
    OutsideByLink,
}

impl Placeholder {
    /// Every placeholder that has no argument.
    const PLAIN: [(&'static str, Self); 39] = [
        ("tool", Self::Tool),
        ("tool.arguments", Self::ToolArguments),
        ("tool.arguments.missing", Self::ToolArgumentsMissing),
        ("tool.arguments.wrong-type", Self::ToolArgumentsWrongType),
        ("tool.arguments.outside-enum", Self::ToolArgumentsOutsideEnum),
        ("tool.arguments.additional", Self::ToolArgumentsAdditional),
        ("tool.arguments.2020-12-only", Self::ToolArguments2020Only),
        ("tool.arguments.alternative", Self::ToolArgumentsAlternative),
        ("tool.arguments.lasting", Self::ToolArgumentsLasting),
        ("tool.arguments.root-file", Self::ToolArgumentsFile(FilePath::InRoot)),
        ("tool.arguments.outside-file", Self::ToolArgumentsFile(FilePath::Outside)),
        ("tool.arguments.outside-file.by-parent", Self::ToolArgumentsFile(FilePath::OutsideByParent)),
        ("tool.arguments.outside-file.by-link", Self::ToolArgumentsFile(FilePath::OutsideByLink)),
        ("tool.swapped-case", Self::ToolSwappedCase),
        ("unknown-tool", Self::UnknownTool),
        ("unknown-method", Self::UnknownMethod),
        ("random", Self::Random),
        ("next-cursor", Self::NextCursor),
        ("altered-cursor", Self::AlteredCursor),
        ("resource", Self::Resource),
        ("prompt", Self::Prompt),
        ("prompt.arguments", Self::PromptArguments),
        ("prompt.argument", Self::PromptArgument),
        ("page.cursor", Self::PageCursor),
        ("served-method", Self::ServedMethod),
        ("served-method.swapped-case", Self::ServedMethodSwappedCase),
        ("listed-version", Self::ListedVersion),
        ("revision", Self::Revision),
        ("id", Self::Id),
        ("meta", Self::Meta),
        ("session", Self::Session),
        ("header", Self::Header),
        ("second-authorization", Self::SecondAuthorization),
        ("foreign-authorization", Self::ForeignAuthorization),
        ("client-request.content", Self::ClientRequestContent),
        ("client-request.invalid-content", Self::ClientRequestInvalidContent),
        ("client-request.tool", Self::ClientRequestTool),
        ("client-request.count", Self::ClientRequestCount),
        ("root", Self::Root),
    ];

    /// Whether it is of a tool that may be called.
    #[must_use]
    pub fn is_of_tool(&self) -> bool {
        match self {
            Self::Tool
            | Self::ToolArguments
            | Self::ToolArgumentsMissing
            | Self::ToolArgumentsWrongType
            | Self::ToolArgumentsOutsideEnum
            | Self::ToolArgumentsAdditional
            | Self::ToolArguments2020Only
            | Self::ToolArgumentsAlternative
            | Self::ToolArgumentsLasting
            | Self::ToolArgumentsFile(_)
            | Self::ToolSwappedCase => true,
            Self::UnknownTool
            | Self::UnknownMethod
            | Self::Random
            | Self::NextCursor
            | Self::AlteredCursor
            | Self::Resource
            | Self::Prompt
            | Self::PromptArguments
            | Self::PromptArgument
            | Self::PageCursor
            | Self::Text(_)
            | Self::Fill(_)
            | Self::Members(_)
            | Self::Nested(_)
            | Self::Digits(_)
            | Self::ServedMethod
            | Self::ServedMethodSwappedCase
            | Self::ListedVersion
            | Self::Revision
            | Self::Id
            | Self::Meta
            | Self::Session
            | Self::Header
            | Self::SecondAuthorization
            | Self::ForeignAuthorization
            | Self::ClientRequestContent
            | Self::ClientRequestInvalidContent
            | Self::ClientRequestTool
            | Self::ClientRequestCount
            | Self::Root
            | Self::Saved(_)
            | Self::Declined(_) => false,
        }
    }

    /// Whether it is of arguments that a tool has to reject.
    #[must_use]
    pub(crate) fn is_of_invalid_arguments(&self) -> bool {
        matches!(
            self,
            Self::ToolArgumentsMissing
                | Self::ToolArgumentsWrongType
                | Self::ToolArgumentsOutsideEnum
                | Self::ToolArgumentsAdditional
                | Self::ToolArguments2020Only
        )
    }

    /// Whether it is of a listed prompt.
    #[must_use]
    pub fn is_of_prompt(&self) -> bool {
        matches!(self, Self::Prompt | Self::PromptArguments | Self::PromptArgument)
    }

    /// Whether it is filled in in a response to a request of the server, and nowhere else.
    #[must_use]
    pub fn is_of_client_response(&self) -> bool {
        matches!(
            self,
            Self::ClientRequestContent
                | Self::ClientRequestInvalidContent
                | Self::ClientRequestTool
                | Self::ClientRequestCount
                | Self::Root
        )
    }

    /// The names of all that have no argument, for suggestions.
    pub(super) fn plain_names() -> impl Iterator<Item = &'static str> {
        Self::PLAIN.iter().map(|(name, _)| *name)
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(length) => write!(f, "${{text.{length}}}"),
            Self::Fill(length) => write!(f, "${{fill.{length}}}"),
            Self::Members(count) => write!(f, "${{members.{count}}}"),
            Self::Nested(depth) => write!(f, "${{nested.{depth}}}"),
            Self::Digits(number) => write!(f, "${{digits.{number}}}"),
            Self::Saved(name) => write!(f, "${{saved.{name}}}"),
            Self::Declined(name) => write!(f, "${{declined.{name}}}"),
            plain => {
                let (name, _) = Self::PLAIN
                    .iter()
                    .find(|(_, known)| known == plain)
                    .expect("every placeholder without an argument is in the list");
                write!(f, "${{{name}}}")
            }
        }
    }
}

/// Why `${...}` is not a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPlaceholder {
    /// No placeholder has this name.
    #[error("unknown placeholder `${{{0}}}`")]
    Name(String),
    /// The length in `${text.N}` is not a number, or too great.
    #[error("the length in `${{text.{0}}}` is not a number up to {MAX_TEXT}")]
    Length(String),
    /// The length in `${fill.N}` is not a number, or too great.
    #[error("the length in `${{fill.{0}}}` is not a number up to {MAX_FILLED}")]
    Filled(String),
    /// The number in `${members.N}` is not a number, or too great.
    #[error("the number in `${{members.{0}}}` is not a number up to {MAX_MEMBERS}")]
    Members(String),
    /// The depth in `${nested.N}` is not a number, or too great.
    #[error("the depth in `${{nested.{0}}}` is not a number up to {MAX_NESTED}")]
    Depth(String),
    /// The number in `${digits.N}` is not a number, or too great.
    #[error("the number in `${{digits.{0}}}` is not a number up to {MAX_DIGITS}")]
    Digits(String),
    /// The name in `${saved.NAME}` has other characters than letters, digits, `-` and `_`.
    #[error("the name in `${{saved.{0}}}` has other characters than letters, digits, `-` and `_`, or none")]
    Saved(String),
    /// A `${` is not closed.
    #[error("`${{` is not followed by `}}`")]
    Unclosed,
}

/// A placeholder with a number up to a maximum.
fn number(
    text: &str,
    most: usize,
    placeholder: impl Fn(usize) -> Placeholder,
    unknown: impl Fn(String) -> UnknownPlaceholder,
) -> Result<Placeholder, UnknownPlaceholder> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| is_number && *value <= most);
    value.map(placeholder).ok_or_else(|| unknown(text.to_owned()))
}

impl FromStr for Placeholder {
    type Err = UnknownPlaceholder;

    /// Parses what is between `${` and `}`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some(length) = name.strip_prefix("text.") {
            return number(length, MAX_TEXT, Self::Text, UnknownPlaceholder::Length);
        }
        if let Some(length) = name.strip_prefix("fill.") {
            return number(length, MAX_FILLED, Self::Fill, UnknownPlaceholder::Filled);
        }
        if let Some(count) = name.strip_prefix("members.") {
            return number(count, MAX_MEMBERS, Self::Members, UnknownPlaceholder::Members);
        }
        if let Some(depth) = name.strip_prefix("nested.") {
            return number(depth, MAX_NESTED, Self::Nested, UnknownPlaceholder::Depth);
        }
        if let Some(digits) = name.strip_prefix("digits.") {
            return number(digits, MAX_DIGITS, Self::Digits, UnknownPlaceholder::Digits);
        }
        if let Some(saved) = name.strip_prefix("saved.") {
            let fine = is_saved_name(saved);
            let saved = saved.to_owned();
            return if fine { Ok(Self::Saved(saved)) } else { Err(UnknownPlaceholder::Saved(saved)) };
        }
        if let Some(saved) = name.strip_prefix("declined.").filter(|saved| is_saved_name(saved)) {
            return Ok(Self::Declined(saved.to_owned()));
        }
        let known = Self::PLAIN.iter().find(|(known, _)| *known == name);
        known.map(|(_, placeholder)| placeholder.clone()).ok_or_else(|| UnknownPlaceholder::Name(name.to_owned()))
    }
}

fn is_saved_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Every `${...}` in a string with its range in bytes, in order, including those that are not placeholders.
pub(super) fn scan(text: &str) -> Vec<(Range<usize>, Result<Placeholder, UnknownPlaceholder>)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("${").map(|offset| from + offset) {
        let Some(end) = text[start..].find('}').map(|offset| start + offset + 1) else {
            found.push((start..text.len(), Err(UnknownPlaceholder::Unclosed)));
            break;
        };
        found.push((start..end, text[start + 2..end - 1].parse()));
        from = end;
    }
    found
}

/// The placeholders in a string, each with its range in bytes, in order.
///
/// # Examples
/// ```
/// use mcp_conformance::internals::case::{Placeholder, find};
///
/// assert_eq!(find("a ${tool} b"), [(2..9, Placeholder::Tool)]);
/// ```
#[must_use]
pub fn find(text: &str) -> Vec<(Range<usize>, Placeholder)> {
    scan(text).into_iter().filter_map(|(range, found)| Some((range, found.ok()?))).collect()
}

/// Fills in the placeholders of every string in a value, member names included.
///
/// A string that consists of a placeholder becomes its value. Within a string, and in the name of a member, a string
/// is inserted as it is, and any other value as JSON.
///
/// # Errors
/// The first that `value_of` gives.
pub(crate) fn fill<E>(value: &Value, value_of: &mut impl FnMut(&Placeholder) -> Result<Value, E>) -> Result<Value, E> {
    Ok(match value {
        Value::String(text) => match find(text).as_slice() {
            [(range, placeholder)] if *range == (0..text.len()) => value_of(placeholder)?,
            found => Value::String(splice(text, found, value_of)?),
        },
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, value_of)).collect::<Result<_, E>>()?),
        Value::Object(members) => {
            let mut filled = Map::with_capacity(members.len());
            for (name, member) in members {
                let name = fill_text(name, value_of)?;
                filled.insert(name, fill(member, value_of)?);
            }
            Value::Object(filled)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// Fills in the placeholders of a string: a string as it is, any other value as JSON.
///
/// # Errors
/// The first that `value_of` gives.
pub(crate) fn fill_text<E>(
    text: &str,
    value_of: &mut impl FnMut(&Placeholder) -> Result<Value, E>,
) -> Result<String, E> {
    splice(text, &find(text), value_of)
}

fn splice<E>(
    text: &str,
    found: &[(Range<usize>, Placeholder)],
    value_of: &mut impl FnMut(&Placeholder) -> Result<Value, E>,
) -> Result<String, E> {
    let mut spliced = String::with_capacity(text.len());
    let mut from = 0;
    for (range, placeholder) in found {
        spliced.push_str(&text[from..range.start]);
        match value_of(placeholder)? {
            Value::String(value) => spliced.push_str(&value),
            value => spliced.push_str(&value.to_string()),
        }
        from = range.end;
    }
    spliced.push_str(&text[from..]);
    Ok(spliced)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the callback of `fill` may fail")]
    fn sample(placeholder: &Placeholder) -> Result<Value, Infallible> {
        Ok(match placeholder {
            Placeholder::Tool => json!("echo"),
            Placeholder::Id => json!(7),
            Placeholder::Meta => json!({"a": 1}),
            Placeholder::Text(length) => json!("x".repeat(*length)),
            Placeholder::Nested(depth) => json!(format!("{}{}", "[".repeat(*depth), "]".repeat(*depth))),
            other => json!(other.to_string()),
        })
    }

    #[test]
    fn every_placeholder_parses_and_prints() {
        for (name, placeholder) in Placeholder::PLAIN {
            assert_eq!(name.parse(), Ok(placeholder.clone()));
            assert_eq!(placeholder.to_string(), format!("${{{name}}}"));
        }
        assert_eq!("text.5000".parse(), Ok(Placeholder::Text(5000)));
        assert_eq!("fill.4096".parse(), Ok(Placeholder::Fill(4096)));
        assert_eq!("members.7".parse(), Ok(Placeholder::Members(7)));
        assert_eq!(Placeholder::Members(7).to_string(), "${members.7}");
        assert_eq!(Placeholder::Fill(4096).to_string(), "${fill.4096}");
        assert_eq!("nested.7".parse(), Ok(Placeholder::Nested(7)));
        assert_eq!("digits.12".parse(), Ok(Placeholder::Digits(12)));
        assert_eq!(Placeholder::Digits(3).to_string(), "${digits.3}");
        assert_eq!("saved.first-page".parse(), Ok(Placeholder::Saved("first-page".to_owned())));
        assert_eq!(Placeholder::Saved("a".to_owned()).to_string(), "${saved.a}");
        assert_eq!("declined.requests".parse(), Ok(Placeholder::Declined("requests".to_owned())));
        assert_eq!(Placeholder::Declined("a".to_owned()).to_string(), "${declined.a}");
    }

    #[test]
    fn an_unknown_placeholder_is_reported() {
        let message = |name: &str| name.parse::<Placeholder>().expect_err("not a placeholder").to_string();
        assert_eq!(message("tol"), "unknown placeholder `${tol}`");
        assert_eq!(message("text.1000001"), "the length in `${text.1000001}` is not a number up to 1000000");
        assert_eq!(message("nested.x"), "the depth in `${nested.x}` is not a number up to 100000");
        assert_eq!(message("members."), "the number in `${members.}` is not a number up to 100000");
        assert_eq!(message("fill.-1"), "the length in `${fill.-1}` is not a number up to 16777216");
        assert_eq!(message("digits.x"), "the number in `${digits.x}` is not a number up to 100000");
        assert_eq!(message("text.+5"), "the length in `${text.+5}` is not a number up to 1000000");
        assert_eq!(
            message("saved."),
            "the name in `${saved.}` has other characters than letters, digits, `-` and `_`, or none"
        );
        assert_eq!(scan("a ${tool"), [(2..8, Err(UnknownPlaceholder::Unclosed))]);
    }

    #[test]
    fn placeholders_are_found_in_order_with_their_ranges() {
        assert_eq!(
            find("é${tool}${id} ${nothing} $x {y} ${text.3}"),
            [(2..9, Placeholder::Tool), (9..14, Placeholder::Id), (33..42, Placeholder::Text(3))]
        );
    }

    #[test]
    fn a_lone_placeholder_becomes_its_value_and_another_is_inserted() {
        let value =
            json!({"id": "${id}", "params": {"_meta": "${meta}", "n": ["a-${id}-${tool}", "${text.3}", 1, null]}});
        let Ok(filled) = fill(&value, &mut sample);
        assert_eq!(filled, json!({"id": 7, "params": {"_meta": {"a": 1}, "n": ["a-7-echo", "xxx", 1, null]}}));
    }

    #[test]
    fn member_names_and_raw_lines_take_strings() {
        let Ok(filled) = fill(&json!({"${tool}-${id}": true, "${id}": 1}), &mut sample);
        assert_eq!(filled, json!({"echo-7": true, "7": 1}));
        let Ok(line) = fill_text(r#"{"id":${id},"method":"${tool}","params":{"_meta":${meta}}"#, &mut sample);
        assert_eq!(line, r#"{"id":7,"method":"echo","params":{"_meta":{"a":1}}"#);
    }

    #[test]
    fn the_first_error_ends_the_filling() {
        let error = fill(&json!(["${tool}", "${id}"]), &mut |placeholder| Err::<Value, _>(placeholder.clone()));
        assert_eq!(error, Err(Placeholder::Tool));
    }
}
