//! Compares the lists of a server before and after the calls of a tool annotated `readOnlyHint`.

use serde_json::Value;

use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::process::caller::Caller;
use crate::case::Oracle;
use crate::check::fuzz::OracleViolation;

/// The lists before the calls of a tool.
#[derive(Debug)]
pub(in crate::campaign) struct ListsBefore(Option<Value>);

impl ListsBefore {
    /// Reads the lists if the tool must not change them.
    pub(in crate::campaign) async fn read(caller: &mut Caller<'_>, tool: usize) -> Result<Self, String> {
        Ok(Self(if caller.tools().get(tool).is_read_only { caller.read_lists().await? } else { None }))
    }

    /// Compares the lists with those after the calls of the tool; returns a suspicion if they changed.
    pub(in crate::campaign) async fn compare(
        self,
        caller: &mut Caller<'_>,
        tool: usize,
    ) -> Result<Option<Suspicion>, String> {
        let after = caller.read_lists().await?;
        // Lists that differ between two reads change by themselves.
        if self.0.is_none() || after.is_none() || self.0 == after || after != caller.read_lists().await? {
            return Ok(None);
        }
        let violation = OracleViolation::from_many_calls(
            Oracle::ReadOnly,
            "a tool annotated readOnlyHint changes what the server lists",
            "a list has different contents before and after the calls",
        );
        let preceding = caller.process.history().into_iter().filter(|fuzz_call| fuzz_call.tool == tool).collect();
        Ok(Some(Suspicion { test: FailureTest::ListChange, violation, failing: None, preceding }))
    }
}
