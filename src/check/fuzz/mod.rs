//! The judge of fuzzed calls: from an exchange, or from what was measured over many, to what is wrong.
//!
//! Pure functions over what was recorded: nothing here sends, waits, or looks at a clock.

mod answer;
mod class;
mod finding;
mod input;
mod leak;
mod order;
mod schema;
mod trend;
mod words;

use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value;

pub use class::{class_of, kind_of, outcome};
pub use finding::finding;
pub use order::{Rank, is_in_order};
pub use schema::{lints, misplaced_bound, never_succeeds, unsatisfiable};
pub use trend::{Sample, climbs, grows, may_grow, piles_up};
pub use words::{echoes, excerpt, skeleton};

use crate::case::Oracle;
use crate::fuzz::{Dialect, Domain, Generator, Grammar, Site, Tape, ToolSchema};
use crate::spec::Revision;
use crate::transcript::messages;
use crate::verdict::{CallKind, Verdict};

/// Arguments, as they are sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// A JSON value.
    Json(Value),
    /// Bytes that may be no JSON.
    Raw(Vec<u8>),
}

impl Arguments {
    /// The bytes that stand for them in a message.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(value) => value.to_string().into_bytes(),
            Self::Raw(bytes) => bytes.clone(),
        }
    }

    /// Writes the bytes that stand for them in a message.
    pub(crate) fn write(&self, line: &mut Vec<u8>) {
        match self {
            Self::Json(value) => serde_json::to_writer(line, value).expect("a value can be written to memory"),
            Self::Raw(bytes) => line.extend_from_slice(bytes),
        }
    }
}

/// What the arguments of a call are to the tool's inputSchema.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// They satisfy it.
    Valid,
    /// They break exactly this keyword.
    Breaks(Arc<Site>),
    /// No schema speaks of them.
    Malformed(Grammar, &'static str),
    /// It is not known.
    Unknown,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Why it was made.
    pub kind: CallKind,
    /// What its arguments are to the schema.
    pub standing: Standing,
    /// The arguments.
    pub arguments: Arguments,
    /// The choices that made them, where they are known.
    pub tape: Option<Choices>,
}

/// The choices that made arguments: what a call is changed and shrunk by.
#[derive(Debug, Clone, PartialEq)]
pub enum Choices {
    /// Those that are drawn from a seed.
    Drawn(u64),
    /// Those that are written down.
    Written(Vec<u64>),
}

impl Choices {
    /// They, one by one, as the generator asked for them that made the arguments.
    #[must_use]
    pub fn by(&self, generator: &Generator) -> Vec<u64> {
        match self {
            Self::Drawn(seed) => {
                let mut tape = Tape::record(*seed);
                // What it makes is known; what it was asked on the way is wanted.
                let _arguments = generator.generate(&mut tape);
                tape.into_used()
            }
            Self::Written(choices) => choices.clone(),
        }
    }
}

impl Call {
    /// Whether it is sent as a line that is no message, or that a parser may refuse, so that it need not be answered.
    #[must_use]
    pub fn is_unparsable(&self) -> bool {
        matches!(self.standing, Standing::Malformed(Grammar::NotJson | Grammar::Beyond, _))
    }
}

/// How waiting for the answer to a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It was answered, or need not be.
    Answered,
    /// It was not, though a fresh process was given more time as well.
    Silent {
        /// How long it was waited for in the end.
        waited: Duration,
    },
    /// The server ended, or closed its output.
    Ended {
        /// How, in words.
        status: String,
        /// The end of what it wrote to its error stream.
        stderr: String,
    },
}

/// How a server over HTTP ended that did not: what the connection came to.
pub const DROPPED: &str = "it closed the connection without an answer, twice, and still listens";

/// A call and what came of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The call.
    pub call: Arc<Call>,
    /// The line that was sent.
    pub line: Arc<[u8]>,
    /// The id that it was sent under.
    pub id: i64,
    /// The responses that are taken for its answers, in order.
    pub answers: Vec<Value>,
    /// The lines meanwhile that are no message of JSON-RPC.
    pub noise: Vec<String>,
    /// How waiting for it ended.
    pub fate: Fate,
    /// How long it took.
    pub took: Duration,
    /// Whether nothing else was under way, so that the time is its own.
    pub alone: bool,
}

/// What is known of a tool whose calls are judged.
#[derive(Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// The revision that it is called in.
    pub revision: Revision,
    /// What its structured results have to fit.
    pub output: Option<Validator>,
    /// Text that an error may name, since we or the command line of the server named it.
    pub known: Vec<String>,
}

impl Subject {
    /// A tool by its definition.
    #[must_use]
    pub fn new(definition: &Value, revision: Revision, known: Vec<String>) -> Self {
        let schema = definition.get("outputSchema").filter(|_| revision >= Revision::V2025_06_18);
        // A schema that cannot be read safely is left to the cases that look at definitions.
        let readable = |schema: &&Value| ToolSchema::compile_for(schema, Dialect::Draft202012, Domain::Any).is_ok();
        Self {
            name: definition.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            revision,
            output: schema.filter(readable).and_then(|schema| jsonschema::options().offline().build(schema).ok()),
            known,
        }
    }
}

/// Something that is wrong with the answers to a tool's calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// Which rule is broken.
    pub oracle: Oracle,
    /// The requirement that it speaks for, where the case names several.
    pub requirement: Option<&'static str>,
    /// How bad it is.
    pub verdict: Verdict,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub actual: String,
    /// What came, as JSON.
    pub value: Option<Value>,
    /// What tells its root cause from others of the oracle and tool.
    pub signature: String,
}

impl Breach {
    fn new(oracle: Oracle, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            oracle,
            requirement: None,
            verdict,
            message: message.into(),
            expected: oracle.asks().to_owned(),
            actual: String::new(),
            value: None,
            signature: String::new(),
        }
    }

    fn speaking_for(mut self, requirement: &'static str) -> Self {
        self.requirement = Some(requirement);
        self
    }

    fn actual(mut self, actual: impl Into<String>) -> Self {
        self.actual = actual.into();
        self
    }

    fn signed(mut self, signature: impl Into<String>) -> Self {
        self.signature = signature.into();
        self
    }

    fn showing(mut self, value: &Value) -> Self {
        const LARGEST: usize = 16 << 10;
        self.value = Some(value).filter(|value| value.to_string().len() <= LARGEST).cloned();
        self
    }

    /// What makes it one with others: the same rule, broken in the same way.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.oracle == other.oracle && self.signature == other.signature
    }

    /// A breach that only many calls together show.
    #[must_use]
    pub fn of_many(oracle: Oracle, message: impl Into<String>, actual: impl Into<String>) -> Self {
        Self::new(oracle, Verdict::Warn, message).actual(actual).signed(oracle.as_str())
    }
}

/// Everything that is wrong with the answer to a call, the gravest first.
#[must_use]
pub fn judge(subject: &Subject, exchange: &Exchange) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if let Fate::Ended { status, stderr } = &exchange.fate {
        breaches.push(answer::crash(exchange, status, stderr));
    }
    if let Fate::Silent { waited } = &exchange.fate {
        breaches.push(answer::hang(exchange, *waited));
    }
    breaches.extend(exchange.noise.iter().map(|line| answer::noise(line)).take(1));
    if exchange.call.is_unparsable() {
        return breaches;
    }
    breaches.extend(answer::malformed(subject, exchange));
    let Some(response) = exchange.answers.first() else { return breaches };
    if response.get("unread").is_some() {
        return breaches;
    }
    if let Some(error) = response.get("error") {
        breaches.extend(input::error_class(exchange, error));
        breaches.extend(leak::leak(subject, exchange, error));
    } else if let Some(result) = response.get("result") {
        breaches.extend(answer::result_shape(subject, result));
        breaches.extend(answer::output_schema(subject, result));
        if result.get("isError") == Some(&Value::Bool(true)) {
            breaches.extend(leak::leak(subject, exchange, result));
        }
    }
    breaches.extend(input::accepted(exchange, response));
    breaches.extend(input::refused(exchange, response));
    breaches
}

/// Lines of a frame that are no message at all, as text.
#[must_use]
pub fn is_noise(value: Option<&Value>) -> bool {
    let Some(value) = value else { return true };
    let is_message =
        |message: &Value| ["method", "result", "error", "id"].iter().any(|member| message.get(member).is_some());
    !messages(value).all(is_message)
}
