//! A fuzzed call: its arguments, how they were made, and whether they satisfy the tool's `inputSchema`.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::fuzz::{ChoiceSequence, Constraint, Generator, Grammar};
use crate::raw_text::RawText;
use crate::verdict::CallKind;

/// The arguments of a call, as they are sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    /// A JSON value.
    Json(Value),
    /// Bytes that need not be JSON; none leave the member out.
    Raw(RawText),
}

impl Arguments {
    /// The bytes that represent them in a message.
    #[must_use]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(value) => value.to_string().into_bytes(),
            Self::Raw(text) => text.bytes().into_owned(),
        }
    }

    /// The value that they are, null if they are no JSON.
    #[must_use]
    pub(crate) fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Json(value) => Cow::Borrowed(value),
            Self::Raw(text) => Cow::Owned(serde_json::from_slice(&text.bytes()).unwrap_or_default()),
        }
    }

    /// Writes the member of a message that has them, after another one.
    pub(crate) fn write(&self, line: &mut Vec<u8>) {
        const NAME: &[u8] = b",\"arguments\":";
        match self {
            Self::Json(value) => {
                line.extend_from_slice(NAME);
                serde_json::to_writer(line, value).expect("a value can be written to memory");
            }
            Self::Raw(text) if text.is_empty() => {}
            Self::Raw(text) => {
                line.extend_from_slice(NAME);
                text.write(line);
            }
        }
    }
}

/// Whether the arguments of a call satisfy the tool's `inputSchema`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Validity {
    /// They satisfy it.
    Valid,
    /// They violate exactly this keyword.
    Violates(Arc<Constraint>),
    /// They are not what a schema describes.
    Malformed(Grammar, &'static str),
    /// It is unknown.
    Unknown,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Why it was made.
    pub kind: CallKind,
    /// Whether its arguments satisfy the schema.
    pub validity: Validity,
    /// The arguments.
    pub arguments: Arguments,
    /// The choices that the arguments were generated from, if they are known.
    pub choices: Option<Choices>,
}

/// The choices that arguments were generated from, by which a call is mutated and shrunk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choices {
    /// Those drawn from a seed.
    Drawn(u64),
    /// Those listed here.
    Written(Vec<u64>),
}

impl Choices {
    /// The choices one by one, as the generator requested them.
    #[must_use]
    pub(crate) fn by(&self, generator: &Generator) -> Vec<u64> {
        match self {
            Self::Drawn(seed) => {
                let mut choices = ChoiceSequence::record(*seed);
                // Only the choices are needed, the arguments are known.
                let _arguments = generator.generate(&mut choices);
                choices.into_choices()
            }
            Self::Written(choices) => choices.clone(),
        }
    }
}

impl Call {
    /// Whether it is sent as a line that is no message, or that a parser may reject, so that no response is required.
    #[must_use]
    pub(crate) fn is_unparsable(&self) -> bool {
        matches!(self.validity, Validity::Malformed(Grammar::NotJson | Grammar::Beyond, _))
    }
}
