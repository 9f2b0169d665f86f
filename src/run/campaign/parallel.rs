//! Fuzzes several processes of the server concurrently, each with its own tools.
//!
//! The calls of a tool depend on the seed, its name, its own responses and, at the end, on the results of all tools;
//! never on the process they are sent to. So the same seed yields the same calls for any number of processes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::call_plan::CallPlan;
use super::counts::ToolCounts;
use super::value_pool::ValuePool;
use super::worker::Worker;
use super::{CampaignResult, ToolProgress, fuzz_tool, fuzz_with_shared_values};
use crate::check::fuzz::unsatisfiable;
use crate::event::ToolFuzz;
use crate::run::conductor::Context;
use crate::run::inventory::{Inventory, Tool};
use crate::run::plan::{FuzzPlan, processors};
use crate::spec::Transport;

/// How much faster later calls of a tool are than its first one.
const WARM_SPEEDUP: u32 = 8;
/// The cost of an additional process apart from its startup.
const EXTRA_PROCESS_COST: Duration = Duration::from_millis(100);

/// The number of processes whose cost pays off.
pub(super) fn worker_count(context: &Context, plan: &FuzzPlan, inventory: &Inventory, chosen: &[&Tool]) -> usize {
    if plan.max_rate.is_some() || context.plan.transport() == Transport::Http {
        // All workers would share the only process.
        return 1;
    }
    let calls = u32::try_from(plan.calls).unwrap_or(u32::MAX);
    let duration = |tool: &&Tool| tool.first_call.map_or(Duration::ZERO, |(_, duration)| duration);
    let expected = (chosen.iter().map(duration).sum::<Duration>() / WARM_SPEEDUP).saturating_mul(calls);
    let worker_count = expected.as_micros() / (inventory.startup + EXTRA_PROCESS_COST).as_micros();
    let most = plan.jobs.unwrap_or_else(processors).min(context.plan.jobs).min(chosen.len()).max(1);
    usize::try_from(worker_count).unwrap_or(usize::MAX).clamp(1, most)
}

/// Fuzzes every tool: first on its own, then with the results of all tools. Ends the processes.
pub(super) async fn fuzz_all_tools<'s>(
    mut workers: Vec<Worker<'_>>,
    chosen: &[&'s Tool],
) -> (Vec<ToolFuzz>, CampaignResult) {
    let count = workers.len();
    let seed = workers[0].context.plan.seed;
    let mut queues: Vec<Vec<(usize, ToolProgress<'s>)>> = (0..count).map(|_| Vec::new()).collect();
    for (at, tool) in chosen.iter().enumerate() {
        let work = ToolProgress {
            tool,
            call_plan: None,
            counts: ToolCounts::default(),
            left: 0,
            time: Duration::ZERO,
            pool: ValuePool::default(),
            note: None,
        };
        queues[at % count].push((at, work));
    }
    let alone = workers.iter_mut().zip(&mut queues).map(|(worker, queue)| async move {
        let tools = queue.len();
        for (done, (at, work)) in queue.iter_mut().enumerate() {
            work.time = worker.share(tools - done);
            start_tool(worker, *at, work, seed).await;
        }
    });
    join_all(alone.collect()).await;
    let mut pool = ValuePool::default();
    for at in 0..chosen.len() {
        pool.merge(&queues[at % count][at / count].1.pool);
    }
    let pool = &pool;
    let together = workers.iter_mut().zip(&mut queues).map(|(worker, queue)| async move {
        for (_, work) in queue {
            fuzz_with_shared_values(worker, work, pool).await;
        }
    });
    join_all(together.collect()).await;
    let mut works: Vec<(usize, ToolProgress<'s>)> = queues.into_iter().flatten().collect();
    works.sort_by_key(|(at, _)| *at);
    let report = |work: ToolProgress<'s>| work.counts.report(&work.tool.name, work.note, work.call_plan.as_ref());
    let reports = works.into_iter().map(|(_, work)| report(work)).collect();
    for worker in &mut workers {
        worker.report_server_end();
        worker.process.end().await;
    }
    (reports, CampaignResult::of(workers))
}

/// Fuzzes a tool on its own if possible.
async fn start_tool<'s>(worker: &mut Worker<'_>, at: usize, work: &mut ToolProgress<'s>, seed: u64) {
    let tool: &'s Tool = work.tool;
    match &tool.schema {
        _ if worker.is_over() => work.note = Some("fuzzing ended before it was called".to_owned()),
        None => work.note = Some("its inputSchema cannot be read".to_owned()),
        Some(schema) => {
            if let Some(violation) = unsatisfiable(schema) {
                worker.note(at, violation);
                work.note = Some("no arguments satisfy its inputSchema".to_owned());
            } else {
                work.call_plan = Some(CallPlan::new(at, schema, &tool.name, seed, &worker.plan.seeds));
                fuzz_tool(worker, work).await;
            }
        }
    }
}

/// Runs all futures concurrently in one task, so that they may borrow.
async fn join_all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut pending: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(move |context| {
        pending.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
