//! Fuzzes several processes of the server concurrently, each with its own tools.
//!
//! The calls of a tool depend on the seed, its name, its own responses and, at the end, on the results of all tools;
//! never on the process they are sent to. So the same seed yields the same calls for any number of processes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::settings::CampaignSettings;
use super::tool_run::QueuedTool;
use super::worker::Worker;
use crate::campaign::calls::tools::SelectedTool;
use crate::campaign::calls::value_pool::ValuePool;
use crate::campaign::limits::{EXTRA_PROCESS_COST, MAX_SLOW_JOBS, WARM_SPEEDUP};
use crate::spec::Transport;

/// The number of processes whose cost pays off.
pub(super) fn worker_count(settings: &CampaignSettings<'_>, tools: &[SelectedTool]) -> usize {
    if settings.plan.max_rate.is_some() || settings.transport == Transport::Http {
        // All workers would share the only process.
        return 1;
    }
    let calls = u32::try_from(settings.plan.calls.usual()).unwrap_or(u32::MAX);
    let duration = |tool: &SelectedTool| tool.first_call.unwrap_or_default();
    let expected = (tools.iter().map(duration).sum::<Duration>() / WARM_SPEEDUP).saturating_mul(calls);
    let worker_count = expected.as_micros() / (settings.startup + EXTRA_PROCESS_COST).as_micros();
    // Processes that wait for slow tools need no processor.
    let slow = tools.iter().filter(|tool| tool.is_slow()).count();
    let jobs = if settings.plan.jobs.is_some() { settings.jobs } else { settings.jobs.max(slow.min(MAX_SLOW_JOBS)) };
    let jobs = if settings.is_single_process { 1 } else { jobs };
    let most = jobs.min(tools.len()).max(1);
    usize::try_from(worker_count).unwrap_or(usize::MAX).clamp(1, most)
}

/// Fuzzes the first `tools` tools: each one on its own, then with the results of all tools. Failures that were seen once
/// are repeated at the end. Returns the tools in order.
pub(super) async fn fuzz_all_tools(workers: &mut [Worker<'_>], tools: usize) -> Vec<QueuedTool> {
    let count = workers.len();
    let mut queues: Vec<Vec<QueuedTool>> = (0..count).map(|_| Vec::new()).collect();
    for tool in 0..tools {
        queues[tool % count].push(QueuedTool::new(tool));
    }
    let alone = workers.iter_mut().zip(&mut queues).map(|(worker, queue)| async move {
        let tools = queue.len();
        for (done, queued) in queue.iter_mut().enumerate() {
            worker.fuzz_alone(queued, tools - done).await;
        }
    });
    join_all(alone.collect()).await;
    let mut pool = ValuePool::default();
    for tool in 0..tools {
        if let Some(own) = queues[tool % count][tool / count].pool() {
            pool.merge(own);
        }
    }
    let pool = &pool;
    let together = workers.iter_mut().zip(&mut queues).map(|(worker, queue)| async move {
        for queued in queue {
            worker.fuzz_with_shared_values(queued, pool).await;
        }
    });
    join_all(together.collect()).await;
    join_all(workers.iter_mut().map(Worker::confirm_failures).collect()).await;
    let mut fuzzed: Vec<QueuedTool> = queues.into_iter().flatten().collect();
    fuzzed.sort_by_key(QueuedTool::tool);
    fuzzed
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
