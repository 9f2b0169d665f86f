//! Calls of tools, generated from bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::tree::Tree;
use crate::fuzz::{Bytes, Dialect, Generator, Random, SchemaError, Source, ToolSchema};

/// How many constraints of a schema are violated at most.
const MAX_VIOLATED_CONSTRAINTS: usize = 64;

/// One in this many calls violates the schema.
const INVALID_CALL_ODDS: u64 = 8;

/// Why no calls can be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// There is no tool.
    #[error("find a tool: the list is empty")]
    None,
    /// A tool has no name or no inputSchema.
    #[error("read tool {0} of the list: it has no name or no inputSchema")]
    Form(usize),
    /// The inputSchema of a tool cannot be used.
    #[error("use the inputSchema of `{tool}`: {source}")]
    Schema {
        /// The tool.
        tool: String,
        /// Why not.
        source: SchemaError,
    },
}

/// A call generated from bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: Value,
    /// Whether the inputSchema accepts the arguments; otherwise they violate exactly one constraint of it.
    pub is_valid: bool,
}

#[derive(Debug)]
struct Tool {
    name: String,
    schema: ToolSchema,
    violating: Vec<Generator>,
}

/// Tools whose calls are generated from the bytes of a fuzzer.
///
/// # Examples
///
/// ```
/// use mcp_conformance::guided::Tools;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
/// let tools = Tools::one("halve", &schema)?;
/// let call = tools.call(b"any bytes at all").expect("the schema admits something");
/// assert_eq!(call.tool, "halve");
/// assert_eq!(call.is_valid, call.arguments["n"].as_i64().is_some_and(|n| n >= 1));
/// # Ok::<(), mcp_conformance::guided::ToolsError>(())
/// ```
#[derive(Debug)]
pub struct Tools {
    tools: Vec<Tool>,
    /// The call that the last mutation generated, until it is used: the generator's branches are then executed before
    /// the fuzzer begins to count, and are not mistaken for those of the server.
    prepared: Mutex<Option<PreparedCall>>,
}

/// A call that was generated from bytes in advance.
#[derive(Debug)]
struct PreparedCall {
    bytes: Vec<u8>,
    tool: usize,
    arguments: Value,
    is_valid: bool,
}

impl Tools {
    /// One tool, given by its name and inputSchema.
    ///
    /// # Errors
    /// When the schema cannot be used.
    pub fn one(name: impl Into<String>, schema: &Value) -> Result<Self, ToolsError> {
        Ok(Self::of(vec![Tool::new(name.into(), schema)?]))
    }

    /// The tools of a `tools/list` result, or of the array in it.
    ///
    /// # Errors
    /// When there is no tool, or one that cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::guided::{Tools, ToolsError};
    /// use serde_json::json;
    ///
    /// let listed = json!({"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]});
    /// assert!(Tools::listed(&listed).is_ok());
    /// assert!(matches!(Tools::listed(&json!({"tools": []})), Err(ToolsError::None)));
    /// ```
    pub fn listed(list: &Value) -> Result<Self, ToolsError> {
        let listed = list.get("tools").unwrap_or(list).as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |(at, tool): (usize, &Value)| {
            let name = tool.get("name").and_then(Value::as_str).ok_or(ToolsError::Form(at))?;
            Tool::new(name.to_owned(), tool.get("inputSchema").ok_or(ToolsError::Form(at))?)
        };
        let tools = listed.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
        if tools.is_empty() { Err(ToolsError::None) } else { Ok(Self::of(tools)) }
    }

    fn of(tools: Vec<Tool>) -> Self {
        Self { tools, prepared: Mutex::new(None) }
    }

    /// The call for these bytes; `None` if no arguments were found for the chosen tool.
    #[must_use]
    pub fn call(&self, bytes: &[u8]) -> Option<Call<'_>> {
        if let Some(prepared) = self.prepared().take_if(|prepared| prepared.bytes == bytes) {
            return Some(self.named(prepared.tool, prepared.arguments, prepared.is_valid));
        }
        self.call_by(&mut Bytes::new(bytes))
    }

    /// The call for a source of choices, for instance a random one.
    pub fn call_by(&self, source: &mut impl Source) -> Option<Call<'_>> {
        let (tool, arguments, is_valid) = self.make(source)?;
        Some(self.named(tool, arguments, is_valid))
    }

    fn named(&self, tool: usize, arguments: Value, is_valid: bool) -> Call<'_> {
        Call { tool: &self.tools[tool].name, arguments, is_valid }
    }

    fn prepared(&self) -> MutexGuard<'_, Option<PreparedCall>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, source: &mut impl Source) -> Option<(usize, Value, bool)> {
        let chosen = source.index(self.tools.len());
        let tool = self.tools.get(chosen)?;
        let chosen_constraint =
            if source.one_in(INVALID_CALL_ODDS) { Some(source.index(tool.violating.len())) } else { None };
        let generator = chosen_constraint.and_then(|chosen_constraint| tool.violating.get(chosen_constraint));
        // Values of different generators are of different kinds.
        source.begin(
            (chosen * (MAX_VIOLATED_CONSTRAINTS + 1) + generator.map_or(0, |_| chosen_constraint.unwrap_or(0) + 1))
                as u64,
        );
        let arguments = match generator {
            Some(generator) => generator.generate(source),
            None => tool.schema.generate(source),
        };
        source.end();
        Some((chosen, arguments.ok()?, generator.is_none()))
    }
}

impl Tools {
    /// Changes the call for the first `size` bytes in one place, rarely in more, and keeps the rest; returns the
    /// new number of bytes, at most the length of `bytes`.
    ///
    /// A fuzzer that does not know the meaning of the bytes shifts them, so that each choice is read as another one, and
    /// mostly changes bytes that are never read. The macros install this as the mutator of their targets.
    pub fn mutate(&self, bytes: &mut [u8], size: usize, seed: u64) -> usize {
        let mut random = Random::new(seed);
        let size = size.min(bytes.len());
        let mut tree = self.tree(&bytes[..size]);
        tree.change(&mut random);
        while random.one_in(8) {
            tree.change(&mut random);
        }
        self.write(&tree, &mut random, bytes)
    }

    /// Combines two calls: that of `bytes`, rarely with a value from that of `other`, otherwise changed as by
    /// [`Tools::mutate`]; returns how many bytes of `out` were written.
    ///
    /// The macros install this as the crossover of their targets. A fuzzer requests it as often as a mutation, which is
    /// too often: most values of another call undo what this one has reached.
    pub fn cross(&self, bytes: &[u8], other: &[u8], out: &mut [u8], seed: u64) -> usize {
        let mut random = Random::new(seed);
        let mut tree = self.tree(bytes);
        if random.one_in(8) {
            tree.take_over(self.tree(other), &mut random);
        } else {
            tree.change(&mut random);
        }
        self.write(&tree, &mut random, out)
    }

    fn tree(&self, bytes: &[u8]) -> Tree {
        Tree::read(bytes, |source| self.call_by(source))
    }

    fn write(&self, tree: &Tree, random: &mut Random, out: &mut [u8]) -> usize {
        let (made, bytes) = tree.write(random, |source| self.make(source));
        let count = bytes.len().min(out.len());
        out[..count].copy_from_slice(&bytes[..count]);
        let whole = count == bytes.len();
        let bytes = &out[..count];
        // Truncated bytes may make another call.
        let made = if whole { made } else { self.make(&mut Bytes::new(bytes)) };
        let prepared = |(tool, arguments, is_valid)| PreparedCall { bytes: bytes.to_vec(), tool, arguments, is_valid };
        *self.prepared() = made.map(prepared);
        count
    }
}

impl Tool {
    fn new(name: String, schema: &Value) -> Result<Self, ToolsError> {
        let compiled = ToolSchema::compile(schema, Dialect::Draft202012);
        let schema = compiled.map_err(|source| ToolsError::Schema { tool: name.clone(), source })?;
        let constraints = schema.constraints();
        let violating = constraints
            .iter()
            .take(MAX_VIOLATED_CONSTRAINTS)
            .filter_map(|constraint| schema.violating(constraint).ok())
            .collect();
        Ok(Self { name, schema, violating })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::fuzz::Random;

    fn tools() -> Tools {
        let schema = json!({
            "type": "object",
            "properties": {"kind": {"enum": ["a", "b"]}, "code": {"type": "string", "pattern": "^[A-Z]{3}$"}},
            "required": ["kind", "code"],
            "additionalProperties": false,
        });
        Tools::listed(&json!([{"name": "x", "inputSchema": {"type": "object"}}, {"name": "y", "inputSchema": schema}]))
            .expect("both are sound")
    }

    #[test]
    fn bytes_reach_every_tool_with_valid_and_invalid_arguments() {
        let tools = tools();
        let mut random = Random::new(1);
        let mut seen = BTreeSet::new();
        for _ in 0..500 {
            let bytes = random_bytes(40, &mut random);
            let call = tools.call(&bytes).expect("both admit something");
            let of = tools.tools.iter().find(|tool| tool.name == call.tool).expect("it is one of them");
            assert_eq!(of.schema.is_valid(&call.arguments), call.is_valid, "{call:?}");
            seen.insert((call.tool.to_owned(), call.is_valid));
        }
        assert_eq!(seen.len(), 3, "nothing breaks the first schema: {seen:?}");
        assert_eq!(tools.call(&[]).map(|call| call.is_valid), Some(true));
    }

    fn freight() -> Tools {
        let schema = json!({
            "type": "object",
            "properties": {
                "class": {"enum": ["a", "b", "c", "d", "e", "f", "g", "h"]},
                "pieces": {
                    "type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 40_000},
                    "minItems": 1, "maxItems": 12,
                },
                "reference": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{3}$"},
            },
            "required": ["class", "pieces", "reference"],
            "additionalProperties": false,
        });
        Tools::one("quote", &schema).expect("the schema is sound")
    }

    fn random_bytes(count: usize, random: &mut Random) -> Vec<u8> {
        (0..count).map(|_| u8::try_from(random.below(256)).expect("it is below 256")).collect()
    }

    #[test]
    fn a_mutation_changes_one_thing_and_keeps_the_rest() {
        let tools = freight();
        let mut random = Random::new(1);
        let (mut changed, mut elsewhere, mut valid) = (0, 0, 0);
        for seed in 0..500 {
            let mut bytes = random_bytes(200, &mut random);
            let old = tools.call(&bytes).expect("it admits something");
            let size = tools.mutate(&mut bytes, 200, seed);
            let new = tools.call(&bytes[..size]).expect("it admits something");
            if !(old.is_valid && new.is_valid) {
                continue;
            }
            valid += 1;
            let members = ["class", "pieces", "reference"];
            match members.iter().filter(|name| old.arguments[**name] != new.arguments[**name]).count() {
                0 => {}
                1 => changed += 1,
                _ => elsewhere += 1,
            }
        }
        assert!(changed > valid / 2, "{changed} of {valid} changed in one member");
        assert!(elsewhere < valid / 4, "{elsewhere} of {valid} changed in several members");
    }

    #[test]
    fn a_crossover_takes_members_from_both_calls() {
        let tools = freight();
        let mut random = Random::new(2);
        let mut mixed = 0;
        for seed in 0..1_000 {
            let (left, right) = (random_bytes(200, &mut random), random_bytes(200, &mut random));
            let mut out = [0; 200];
            let size = tools.cross(&left, &right, &mut out, seed);
            let [left, right, new] =
                [&left[..], &right, &out[..size]].map(|bytes| tools.call(bytes).expect("it admits something"));
            let from = |other: &Call<'_>, name| other.arguments[name] == new.arguments[name];
            let members = ["class", "pieces", "reference"];
            let both = members.iter().any(|name| from(&left, name) && !from(&right, name))
                && members.iter().any(|name| from(&right, name) && !from(&left, name));
            mixed += usize::from(both);
        }
        assert!(mixed > 20, "{mixed} of 1000 are of both");
    }

    #[test]
    fn a_prepared_call_equals_the_call_for_its_bytes() {
        let tools = tools();
        let mut random = Random::new(1);
        for seed in 0..400 {
            // With little room the bytes are truncated.
            let mut bytes = random_bytes(if seed % 2 == 0 { 12 } else { 300 }, &mut random);
            let size = bytes.len();
            let size = if seed % 4 < 2 {
                tools.mutate(&mut bytes, size, seed)
            } else {
                let base = bytes.clone();
                tools.cross(&base, &random_bytes(40, &mut random), &mut bytes, seed)
            };
            assert!(tools.prepared().is_some());
            let prepared = tools.call(&bytes[..size]);
            assert!(tools.prepared().is_none(), "it was not taken");
            assert_eq!(prepared, tools.call(&bytes[..size]));
        }
        let mut bytes = [1, 2, 3];
        let size = tools.mutate(&mut bytes, 3, 1);
        let other = [bytes[0] ^ 1, 9, 9, 9];
        assert_eq!(tools.call(&other), tools.call(&other), "a prepared call is only used for its own bytes");
        assert!(tools.prepared().is_some() && tools.call(&bytes[..size]).is_some());
    }

    #[test]
    fn a_mutation_respects_the_available_room() {
        let tools = tools();
        let mut bytes = [7_u8; 64];
        let mut calls = BTreeSet::new();
        for seed in 0..200 {
            let size = tools.mutate(&mut bytes, 20, seed);
            assert!(size <= bytes.len());
            calls.insert(tools.call(&bytes[..size]).expect("both admit something").arguments.to_string());
        }
        assert!(calls.len() > 50, "{}", calls.len());
        assert_eq!(tools.mutate(&mut [], 0, 1), 0);
        assert!(tools.mutate(&mut [0; 3], 3, 1) <= 3);
    }

    /// How far a call gets into a function that requires a combination of an enumeration, a length and a pattern.
    fn depth(call: &Call<'_>) -> usize {
        let arguments = &call.arguments;
        if !call.is_valid || arguments["class"] != "h" {
            return 0;
        }
        if arguments["pieces"].as_array().map(Vec::len) != Some(7) {
            return 1;
        }
        let reference = arguments["reference"].as_str().unwrap_or_default();
        2 + reference.bytes().zip(*b"QXZ-417").take_while(|(given, wanted)| given == wanted).count()
    }

    #[test]
    fn a_deep_branch_is_reached_step_by_step() {
        const ROUNDS: u64 = 40_000;
        let tools = freight();
        for seed in 0..3 {
            let mut random = Random::new(seed);
            // Like a fuzzer's corpus: one input for each branch, with the newest chosen most often.
            let mut corpus = vec![Vec::new()];
            let mut rounds = 0;
            while corpus.len() <= 9 {
                rounds += 1;
                assert!(rounds < ROUNDS, "it got {} deep", corpus.len() - 1);
                let deepest = random.one_in(2);
                let mut bytes = corpus[if deepest { corpus.len() - 1 } else { random.index(corpus.len()) }].clone();
                let size = bytes.len();
                bytes.resize(256, 0);
                let size = tools.mutate(&mut bytes, size, random.next_bits());
                let call = tools.call(&bytes[..size]).expect("it admits something");
                if depth(&call) >= corpus.len() {
                    corpus.push(bytes[..size].to_vec());
                }
            }
        }
        let mut random = Random::new(9);
        let calls = (0..ROUNDS).filter_map(|_| tools.call_by(&mut random));
        assert!(calls.map(|call| depth(&call)).max() < Some(4), "random calls reach it as well");
    }

    #[test]
    fn an_invalid_tool_list_is_rejected() {
        assert!(matches!(Tools::listed(&json!({"tools": []})), Err(ToolsError::None)));
        assert!(matches!(Tools::listed(&json!([{"name": "x"}])), Err(ToolsError::Form(0))));
        let remote = Tools::one("x", &json!({"$ref": "http://example.com/"}));
        assert!(matches!(remote, Err(ToolsError::Schema { .. })), "{remote:?}");
    }
}
