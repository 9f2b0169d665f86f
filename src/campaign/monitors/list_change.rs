//! Compares the lists of a server before and after the calls of a tool annotated `readOnlyHint`.

use serde_json::Value;

use super::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::process::environment::BoxFuture;
use crate::case::Oracle;
use crate::check::fuzz::OracleViolation;

/// Compares lists around the calls of a tool.
#[derive(Debug, Default)]
pub(super) struct ListChange {
    /// The lists before the calls of the current tool, if it must not change them.
    before: Option<Value>,
}

impl ListChange {
    /// Compares the lists with those before the calls of the tool; returns a suspicion if they changed.
    async fn compare(&mut self, watched: &mut Watched<'_, '_>) -> Result<Option<Suspicion>, String> {
        let Some(before) = self.before.take() else { return Ok(None) };
        let caller = &mut *watched.caller;
        let Some(after) = caller.read_lists().await?.filter(|after| *after != before) else { return Ok(None) };
        // Lists that differ between two reads change by themselves.
        if caller.read_lists().await?.as_ref() != Some(&after) {
            return Ok(None);
        }
        let violation = OracleViolation::from_many_calls(
            Oracle::ReadOnly,
            "a tool annotated readOnlyHint changes what the server lists",
            "a list has different contents before and after the calls",
        );
        let tool = watched.call_plan.tool();
        let preceding = caller.process().history().into_iter().filter(|fuzz_call| fuzz_call.tool == tool).collect();
        Ok(Some(Suspicion { test: FailureTest::ListChange, violation, failing: None, preceding }))
    }
}

impl Monitor for ListChange {
    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let tool = watched.call_plan.tool();
            match moment {
                Moment::BeforeCalls => {
                    let must_not_change = watched.caller.tools().get(tool).is_read_only;
                    self.before = if must_not_change { watched.caller.read_lists().await? } else { None };
                    Ok(Vec::new())
                }
                Moment::AfterCalls { had_time: true } => {
                    let suspicion = self.compare(watched).await?;
                    Ok(suspicion.map(|suspicion| Found::Suspicion { suspicion, spoiled: true }).into_iter().collect())
                }
                _ => Ok(Vec::new()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::campaign::monitors::canaries::Canaries;
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer, call_all, valid_call};

    /// What is found around calls of a tool with these values, on a server with a list of its own.
    async fn find(tools: &str, values: &[i64], list: fn(&ReceivedCall<'_>) -> Value) -> Vec<Found> {
        let script = move |call: &ReceivedCall<'_>| match call.tool {
            "tools/list" => Answer::Result(json!({ "tools": list(call) })),
            _ => Answer::text("done"),
        };
        let schema = [("get", json!({ "n": { "type": "integer" } }))];
        let server = match tools {
            "read-only" => ScriptedServer::read_only(&schema, script),
            _ => ScriptedServer::new(&schema, script),
        };
        let (mut caller, mut canaries, mut monitor) = (server.caller(), Canaries::default(), ListChange::default());
        let before = server.check(&mut monitor, Moment::BeforeCalls, (&mut caller, &mut canaries), 0).await;
        assert!(before.is_empty());
        let calls: Vec<_> = values.iter().map(|n| valid_call(0, json!({ "n": n }))).collect();
        call_all(&mut caller, &calls).await;
        let after = Moment::AfterCalls { had_time: true };
        server.check(&mut monitor, after, (&mut caller, &mut canaries), 0).await
    }

    fn large_values(call: &ReceivedCall<'_>) -> Value {
        json!(call.earlier.iter().filter(|(_, arguments)| arguments["n"].as_i64() > Some(9)).count())
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_differs_after_the_calls_is_suspected() {
        let found = find("read-only", &[1, 20, 3], large_values).await;
        let [Found::Suspicion { suspicion, spoiled: true }] = found.as_slice() else { panic!("found {found:?}") };
        assert_eq!((suspicion.violation.oracle, suspicion.preceding.len()), (Oracle::ReadOnly, 3));
        assert!(find("read-only", &[1, 2, 3], large_values).await.is_empty(), "these calls change nothing");
        assert!(find("changing", &[1, 20, 3], large_values).await.is_empty(), "the tool may change lists");
    }

    #[tokio::test(start_paused = true)]
    async fn lists_that_have_become_slow_are_not_read_to_the_end() {
        let script = |call: &ReceivedCall<'_>| match call.tool {
            "tools/list" => {
                let page = json!({ "tools": [], "nextCursor": "next" });
                let is_late = call.earlier.iter().any(|(tool, _)| *tool == "get");
                if is_late { Answer::Late(std::time::Duration::from_secs(3), page) } else { Answer::Result(page) }
            }
            _ => Answer::text("done"),
        };
        let server = ScriptedServer::read_only(&[("get", json!({}))], script);
        let (mut caller, mut canaries, mut monitor) = (server.caller(), Canaries::default(), ListChange::default());
        server.check(&mut monitor, Moment::BeforeCalls, (&mut caller, &mut canaries), 0).await;
        call_all(&mut caller, &[valid_call(0, json!({}))]).await;
        let began = tokio::time::Instant::now();
        let after = Moment::AfterCalls { had_time: true };
        assert!(server.check(&mut monitor, after, (&mut caller, &mut canaries), 0).await.is_empty());
        let took = began.elapsed().as_secs();
        assert!((3..=7).contains(&took), "16 pages of 3 s each were read for {took} s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_differs_between_two_reads_changes_by_itself() {
        static READS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let list = |_: &ReceivedCall<'_>| json!(READS.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        assert!(find("read-only", &[20], list).await.is_empty());
    }
}
