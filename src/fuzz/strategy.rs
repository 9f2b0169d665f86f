//! Implements the `proptest` strategy for generators.

use proptest::{
    strategy::{NewTree, Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::Value;

use super::{generator::Generator, shrink::Shrinker, source::ChoiceSequence};

impl Strategy for Generator {
    type Tree = Shrinker;
    type Value = Value;

    /// Draws a seed from the runner and shrinks like [`Shrinker`]: deterministic for a seed.
    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let seed = proptest::num::u64::ANY.new_tree(runner)?.current();
        Shrinker::new(self.clone(), ChoiceSequence::record(seed))
            .ok_or_else(|| "no instance of the schema could be generated".into())
    }
}

impl ValueTree for Shrinker {
    type Value = Value;

    fn current(&self) -> Value {
        Self::current(self).clone()
    }

    fn simplify(&mut self) -> bool {
        Self::simplify(self)
    }

    fn complicate(&mut self) -> bool {
        Self::complicate(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng};
    use serde_json::json;

    use super::*;
    use crate::fuzz::{Dialect, ToolSchema};

    #[test]
    fn a_failing_property_shrinks_under_the_runner_of_proptest() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
            "required": ["n"]
        });
        let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("usable");
        // The same inputs each time.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let config = Config { failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, random);
        let outcome = runner.run(schema.valid(), |value| {
            proptest::prop_assert!(value["n"].as_i64().unwrap_or(0) < 100);
            Ok(())
        });
        match outcome {
            Err(TestError::Fail(_, least)) => assert_eq!(least, json!({"n": 100})),
            other => panic!("{other:?} is not a failure"),
        }
    }
}
