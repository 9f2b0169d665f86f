//! Calls of tools, made from bytes.

use serde_json::Value;

use crate::fuzz::{Bytes, Dialect, Generator, Random, SchemaError, Source, ToolSchema};

/// How many keywords of a schema are broken at most.
const BROKEN: usize = 64;

/// One of so many calls breaks the schema.
const NEARLY: u64 = 8;

/// How many bytes are there beyond those that a call was made of, so that a larger one is not of the simplest choices.
const SPARE: usize = 32;

/// Why no calls can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// There is no tool.
    #[error("find a tool: none is listed")]
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

/// A call that bytes have made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: Value,
    /// Whether its inputSchema admits them; else they break exactly one keyword of it.
    pub is_valid: bool,
}

#[derive(Debug)]
struct Tool {
    name: String,
    schema: ToolSchema,
    broken: Vec<Generator>,
}

/// Tools whose calls are made from the bytes of a fuzzer.
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
}

impl Tools {
    /// One tool by its name and its inputSchema.
    ///
    /// # Errors
    /// When the schema cannot be used.
    pub fn one(name: impl Into<String>, schema: &Value) -> Result<Self, ToolsError> {
        Ok(Self { tools: vec![Tool::new(name.into(), schema)?] })
    }

    /// The tools of a `tools/list` result, or of the array in it.
    ///
    /// # Errors
    /// When there is none, or one that cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::guided::Tools;
    /// use serde_json::json;
    ///
    /// let listed = json!({"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]});
    /// assert!(Tools::listed(&listed).is_ok());
    /// ```
    pub fn listed(list: &Value) -> Result<Self, ToolsError> {
        let listed = list.get("tools").unwrap_or(list).as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |(at, tool): (usize, &Value)| {
            let name = tool.get("name").and_then(Value::as_str).ok_or(ToolsError::Form(at))?;
            Tool::new(name.to_owned(), tool.get("inputSchema").ok_or(ToolsError::Form(at))?)
        };
        let tools = listed.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
        if tools.is_empty() { Err(ToolsError::None) } else { Ok(Self { tools }) }
    }

    /// The call that these bytes make; none where the tool that they choose admits no arguments that can be found.
    #[must_use]
    pub fn call(&self, bytes: &[u8]) -> Option<Call<'_>> {
        self.call_by(&mut Bytes::new(bytes))
    }

    /// The call that a source of choices makes: the same as bytes make, by chance for instance.
    pub fn call_by(&self, source: &mut impl Source) -> Option<Call<'_>> {
        let tool = self.tools.get(source.index(self.tools.len()))?;
        let broken = if source.one_in(NEARLY) { tool.broken.get(source.index(tool.broken.len())) } else { None };
        let arguments = match broken {
            Some(generator) => generator.generate(source),
            None => tool.schema.generate(source),
        };
        Some(Call { tool: &tool.name, arguments: arguments.ok()?, is_valid: broken.is_none() })
    }
}

impl Tools {
    /// Changes a few of the choices that the first `size` bytes make, and leaves the others as they are; returns how
    /// many bytes there are then, at most all that `bytes` has room for.
    ///
    /// What a fuzzer does to bytes of which it knows nothing moves them, so that each choice takes another's place,
    /// and mostly changes those that nobody reads. The macros make this the mutator of their targets.
    pub fn mutate(&self, bytes: &mut [u8], size: usize, seed: u64) -> usize {
        let size = size.min(bytes.len());
        let mut random = Random::new(seed);
        let used = {
            let mut read = Bytes::new(&bytes[..size]);
            let _call = self.call_by(&mut read);
            size - read.left()
        };
        let new = bytes.len().min(used + SPARE);
        for byte in bytes.get_mut(size..new).into_iter().flatten() {
            *byte = random_byte(&mut random);
        }
        // Mostly one; a choice that takes effect only along with another wants both.
        let changes = 1 + if random.one_in(4) { random.index(3) } else { 0 };
        for _ in 0..changes {
            let at = random.index(used.max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random_byte(&mut random);
            }
        }
        new
    }
}

fn random_byte(random: &mut Random) -> u8 {
    u8::try_from(random.below(256)).unwrap_or_default()
}

impl Tool {
    fn new(name: String, schema: &Value) -> Result<Self, ToolsError> {
        let compiled = ToolSchema::compile(schema, Dialect::Draft202012);
        let schema = compiled.map_err(|source| ToolsError::Schema { tool: name.clone(), source })?;
        let sites = schema.sites();
        let broken = sites.iter().take(BROKEN).filter_map(|site| schema.violating(site).ok()).collect();
        Ok(Self { name, schema, broken })
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
    fn bytes_reach_every_tool_and_both_sides_of_its_schema() {
        let tools = tools();
        let mut random = Random::new(1);
        let mut seen = BTreeSet::new();
        for _ in 0..500 {
            let bytes: Vec<u8> = (0..40).map(|_| u8::try_from(random.below(256)).expect("it is below 256")).collect();
            let call = tools.call(&bytes).expect("both admit something");
            let of = tools.tools.iter().find(|tool| tool.name == call.tool).expect("it is one of them");
            assert_eq!(of.schema.is_valid(&call.arguments), call.is_valid, "{call:?}");
            seen.insert((call.tool.to_owned(), call.is_valid));
        }
        assert_eq!(seen.len(), 3, "nothing breaks the first schema: {seen:?}");
        assert_eq!(tools.call(&[]).map(|call| call.is_valid), Some(true));
    }

    #[test]
    fn a_mutation_changes_choices_and_keeps_to_the_room_that_there_is() {
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

    #[test]
    fn a_list_that_is_none_is_refused() {
        assert!(matches!(Tools::listed(&json!({"tools": []})), Err(ToolsError::None)));
        assert!(matches!(Tools::listed(&json!([{"name": "x"}])), Err(ToolsError::Form(0))));
        let remote = Tools::one("x", &json!({"$ref": "http://example.com/"}));
        assert!(matches!(remote, Err(ToolsError::Schema { .. })), "{remote:?}");
    }
}
