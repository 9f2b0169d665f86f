//! Investigates what the oracles suspect: what is new is made small, and added to the failures; what was seen once is
//! repeated at the end.

use std::sync::Arc;

use tokio::time::Instant;

use super::super::tool_run::ToolRun;
use super::Worker;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::failures::failure::Failure;
use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::minimizer::reproduction::Reproducer;
use crate::campaign::minimizer::shrink::{Effort, FailureShrinker};
use crate::campaign::monitors::monitor::{Found, Moment, Watched};
use crate::case::Oracle;
use crate::check::fuzz::{FuzzExchange, OracleViolation, Validity};

impl Worker<'_> {
    /// Lets every monitor look at the server, and investigates what they find.
    pub(super) async fn check(&mut self, moment: Moment, run: &mut ToolRun) -> Result<(), String> {
        for at in 0..self.monitors.len() {
            let situation = self.situation();
            let (call_plan, long_calls) = run.call_plan_and_long_calls();
            let mut watched = Watched {
                time: self.budget.tool_time(Instant::now(), situation),
                caller: &mut self.caller,
                call_plan,
                long_calls,
                canaries: &mut self.canaries,
                failures: &self.failures,
                settings: self.settings,
            };
            for found in self.monitors[at].check(moment, &mut watched).await? {
                self.take(found, run).await?;
            }
        }
        Ok(())
    }

    /// Investigates or adds what a monitor found.
    async fn take(&mut self, found: Found, run: &ToolRun) -> Result<(), String> {
        match found {
            Found::Failure(found) => self.failures.add(found),
            Found::Confirmation { calls, duration } => {
                self.shrinking_calls += calls;
                self.budget.add_shrinking(duration);
            }
            Found::Suspicion { suspicion, spoiled } => {
                if !self.failures.is_known(run.tool(), &suspicion.violation)
                    && let Some(found) = self.shrink(&suspicion, run).await?
                {
                    self.failures.add(found);
                }
                if spoiled {
                    self.caller.restart().await?;
                }
            }
        }
        Ok(())
    }

    /// Counts known failures of the current tool and shrinks new ones; `record` is the history of the process.
    pub(super) async fn handle_violations(
        &mut self,
        exchange: &FuzzExchange,
        violations: Vec<OracleViolation>,
        record: &[(i64, FuzzCall)],
        run: &mut ToolRun,
    ) -> Result<(), String> {
        self.handle_violations_of(run.tool(), exchange, violations, record, run).await
    }

    /// The same for a tool that may be another one.
    pub(super) async fn handle_violations_of(
        &mut self,
        tool: usize,
        exchange: &FuzzExchange,
        violations: Vec<OracleViolation>,
        record: &[(i64, FuzzCall)],
        run: &mut ToolRun,
    ) -> Result<(), String> {
        for violation in violations {
            if self.failures.count(tool, &violation) {
                continue;
            }
            let found = if self.failures.may_shrink(tool) && self.budget.may_shrink(Instant::now()) {
                // The call as sent, with its reused values.
                let made = record.iter().find(|(id, fuzz_call)| *id == exchange.id && fuzz_call.tool == tool);
                let fuzz_call = made.map_or_else(
                    || FuzzCall::new(tool, Arc::clone(&exchange.call)),
                    |(_, fuzz_call)| fuzz_call.clone(),
                );
                let suspicion = Suspicion {
                    test: FailureTest::Response,
                    violation: violation.clone(),
                    failing: Some((fuzz_call, exchange.clone())),
                    // A call that was repeated alone has a later id than all preceding calls.
                    preceding: calls_before(record, exchange.id),
                };
                self.shrink(&suspicion, run).await?
            } else {
                None
            };
            let found = found.unwrap_or_else(|| Failure::unshrunk(&self.caller, tool, violation, exchange, 0));
            if let (Oracle::Crash | Oracle::Hang, Validity::Violates(constraint)) =
                (found.violation.oracle, &exchange.call.validity)
            {
                run.avoid(constraint);
            }
            self.failures.add(found);
        }
        Ok(())
    }

    /// Shrinks a suspected failure. The time for it counts neither for the tool nor, up to a limit, for the campaign.
    async fn shrink(&mut self, suspicion: &Suspicion, run: &ToolRun) -> Result<Option<Failure>, String> {
        let (made, began) = (self.caller.process().calls(), Instant::now());
        let failing = suspicion.failing.as_ref();
        let is_brief = failing.is_some_and(|(fuzz_call, _)| self.failures.share(fuzz_call.tool, &suspicion.violation));
        let environment = self.environment.as_ref();
        let effort = Effort { is_brief, deadline: self.budget.last_deadline() };
        let shrinker =
            FailureShrinker::new(&mut self.caller, suspicion, run.call_plan(), self.settings, environment, effort);
        let found = shrinker.shrink().await;
        self.caller.set_deadline(self.budget.last_deadline());
        self.shrinking_calls += self.caller.process().calls() - made;
        self.budget.add_shrinking(began.elapsed());
        found
    }

    /// Repeats each failure that no call has repeated yet, on a process that no other call has changed before these. What
    /// no time is left for stays unconfirmed.
    pub(in crate::campaign) async fn confirm_failures(&mut self) {
        self.repeat_unconfirmed().await;
        self.failures.forget_late_responses(self.caller.timeouts().full());
    }

    async fn repeat_unconfirmed(&mut self) {
        let unconfirmed = self.failures.unconfirmed();
        if unconfirmed.is_empty() || self.environment.is_stopping() || self.caller.process().is_gone() {
            return;
        }
        let (made, deadline) = (self.caller.process().calls(), self.budget.confirmation_deadline(Instant::now()));
        self.caller.drop_process();
        for failure in unconfirmed {
            let first_call = self.caller.tools().get(failure.fuzz_call.tool).first_call;
            self.caller.begin_tool(first_call.unwrap_or_default(), deadline);
            let (test, violation) = (&FailureTest::Response, &failure.violation);
            let mut reproducer = Reproducer { caller: &mut self.caller, test, violation, is_patient: true };
            let repeated = reproducer.attempt(std::slice::from_ref(&failure.fuzz_call), false).await;
            let is_cut_short = self.caller.process().is_out_of_time();
            match repeated {
                Ok(Some(_)) => self.failures.record_retry(&failure, true),
                Ok(None) if !is_cut_short => self.failures.record_retry(&failure, false),
                Ok(None) => break,
                Err(problem) => {
                    if !is_cut_short {
                        self.budget.stop(problem);
                    }
                    break;
                }
            }
        }
        self.shrinking_calls += self.caller.process().calls() - made;
    }
}

/// The calls with smaller ids.
pub(super) fn calls_before(record: &[(i64, FuzzCall)], id: i64) -> Vec<FuzzCall> {
    record.iter().filter(|(known, _)| *known < id).map(|(_, fuzz_call)| fuzz_call.clone()).collect()
}
