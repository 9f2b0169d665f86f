//! Fuzzes several processes of the server concurrently, each with its own tools.
//!
//! The calls of a tool depend on the seed, its name, its own responses and, at the end, on the results of all tools;
//! never on the process they are sent to. So the same seed yields the same calls for any number of processes.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::settings::CampaignSettings;
use super::tool_run::QueuedTool;
use super::worker::{Worker, send_long_texts};
use crate::campaign::calls::tools::SelectedTool;
use crate::campaign::calls::value_pool::ValuePool;
use crate::campaign::limits::{COST_OF_LONGER_TOOL, EXTRA_PROCESS_COST, LONGER_CALL, MAX_SLOW_JOBS, WARM_SPEEDUP};
use crate::spec::Transport;

/// The number of processes whose cost pays off, where calls of the tools usually take so long.
pub(super) fn worker_count(settings: &CampaignSettings<'_>, tools: &[SelectedTool], usual: &[Duration]) -> usize {
    if settings.plan.max_rate.is_some() || settings.transport == Transport::Http {
        // All workers would share the only process.
        return 1;
    }
    let calls = u32::try_from(settings.plan.calls.usual()).unwrap_or(u32::MAX);
    let duration = |tool: &SelectedTool| tool.first_call.unwrap_or_default();
    let expected = (tools.iter().map(duration).sum::<Duration>() / WARM_SPEEDUP).saturating_mul(calls);
    let worker_count = expected.as_micros() / (settings.startup + EXTRA_PROCESS_COST).as_micros();
    // Processes that wait for slow tools need no processor, and come on top of those that do.
    let slow = tools.iter().filter(|tool| tool.is_slow()).count().min(MAX_SLOW_JOBS);
    let waiting = slow.max(usize::from(usual.iter().any(|duration| *duration >= LONGER_CALL)));
    let jobs = if settings.plan.jobs.is_some() { settings.jobs } else { settings.jobs + waiting };
    let jobs = if settings.is_single_process { 1 } else { jobs };
    let most = jobs.min(tools.len()).max(1);
    usize::try_from(worker_count).unwrap_or(usize::MAX).clamp(1, most)
}

/// Distributes tools among workers, in order: a tool whose calls take longer counts as several others, so that no worker is
/// left with the rest while another one waits, and comes first there. Durations matter only by that, as the same tools should
/// share a process however busy the machine is.
fn distribute(usual: &[Duration], workers: usize) -> Vec<Vec<usize>> {
    let cost = |tool: usize| if usual[tool] >= LONGER_CALL { COST_OF_LONGER_TOOL } else { 1 };
    let mut order: Vec<usize> = (0..usual.len()).collect();
    order.sort_by_key(|tool| Reverse(cost(*tool)));
    let mut queues: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new()); workers];
    for tool in order {
        if let Some((load, queue)) = queues.iter_mut().min_by_key(|(load, _)| *load) {
            *load += cost(tool);
            queue.push(tool);
        }
    }
    let longer = |tool: usize| Some(usual[tool]).filter(|duration| *duration >= LONGER_CALL);
    let sorted = |(_, mut queue): (usize, Vec<usize>)| {
        queue.sort_unstable_by_key(|tool| (Reverse(longer(*tool)), *tool));
        queue
    };
    queues.into_iter().map(sorted).collect()
}

/// The tools that no worker has begun with.
struct ToolQueues {
    state: Mutex<QueueState>,
    /// With how many workers at work, this one included, a worker may take over a tool: one that came on top of the processors,
    /// to wait for a slow tool, takes none from the others.
    jobs: usize,
}

struct QueueState {
    /// The queue of each worker.
    queues: Vec<VecDeque<usize>>,
    /// How many workers are at work.
    at_work: usize,
}

impl ToolQueues {
    fn new(queues: Vec<Vec<usize>>, jobs: usize) -> Self {
        let queues: Vec<_> = queues.into_iter().map(VecDeque::from).collect();
        Self { state: Mutex::new(QueueState { at_work: queues.len(), queues }), jobs }
    }

    /// The next tool of a worker, and how many it has left with this one; with `None` it ends. A worker that has none left takes
    /// over the last one of the longest queue, if it may: how long a tool takes depends on what it shows, which is not known
    /// before.
    fn next(&self, worker: usize, may_take_over: bool) -> Option<(usize, usize)> {
        let QueueState { queues, at_work } = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = queues[worker].pop_front() {
            return Some((tool, queues[worker].len() + 1));
        }
        // The first of those that are equally long.
        let longest = queues.iter_mut().rev().max_by_key(|queue| queue.len());
        let taken = longest.filter(|_| may_take_over && *at_work <= self.jobs).and_then(VecDeque::pop_back);
        if taken.is_none() {
            *at_work -= 1;
        }
        taken.map(|tool| (tool, 1))
    }
}

/// Fuzzes tools, whose calls usually take so long: each one on its own, then with the results of all tools. Failures that were
/// seen once are repeated at the end. Returns the tools in order.
pub(super) async fn fuzz_all_tools(workers: &mut [Worker<'_>], usual: &[Duration], jobs: usize) -> Vec<QueuedTool> {
    let waiting = ToolQueues::new(distribute(usual, workers.len()), jobs);
    let mut queues: Vec<Vec<QueuedTool>> = workers.iter().map(|_| Vec::new()).collect();
    let waiting = &waiting;
    let alone = workers.iter_mut().zip(&mut queues).enumerate().map(|(index, (worker, queue))| async move {
        loop {
            let may_take_over = !worker.is_over();
            let Some((tool, tools)) = waiting.next(index, may_take_over) else { break };
            let mut next = QueuedTool::new(tool);
            worker.fuzz_alone(&mut next, tools).await;
            queue.push(next);
        }
    });
    join_all(alone.collect()).await;
    let mut pool = ValuePool::default();
    let mut in_order: Vec<&QueuedTool> = queues.iter().flatten().collect();
    in_order.sort_by_key(|queued| queued.tool());
    in_order.into_iter().filter_map(QueuedTool::pool).for_each(|own| pool.merge(own));
    let pool = &pool;
    let together = workers.iter_mut().zip(&mut queues).map(|(worker, queue)| async move {
        for queued in queue.iter_mut() {
            worker.fuzz_with_shared_values(queued, pool).await;
        }
        send_long_texts(worker, queue).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_with_longer_calls_has_a_worker_of_its_own() {
        let quick_but_one = [1, 2, 100, 3, 20, 1, 2].map(Duration::from_millis);
        assert_eq!(distribute(&quick_but_one, 2), [vec![2], vec![0, 1, 3, 4, 5, 6]]);
        assert_eq!(
            distribute(&[1, 9, 3, 20].map(Duration::from_millis), 2),
            [vec![0, 2], vec![1, 3]],
            "in turn, however long they took"
        );
        assert_eq!(
            distribute(&[1, 90, 3, 200].map(Duration::from_millis), 1),
            [vec![3, 1, 0, 2]],
            "those that take longer first, the longest of all at the beginning"
        );
        assert_eq!(distribute(&[], 1), [Vec::<usize>::new()]);
    }

    #[test]
    fn a_worker_without_tools_takes_over_the_last_one_of_the_longest_queue() {
        let queues = ToolQueues::new(vec![vec![2], vec![0, 1, 3], vec![4, 5, 6]], 2);
        assert_eq!(queues.next(0, true), Some((2, 1)));
        assert_eq!(queues.next(1, true), Some((0, 3)));
        assert_eq!(queues.next(0, true), None, "more workers are at work than may be");
        assert_eq!((queues.next(1, true), queues.next(1, true)), (Some((1, 2)), Some((3, 1))));
        assert_eq!(queues.next(1, true), Some((6, 1)));
        assert_eq!(queues.next(2, true), Some((4, 2)));
        assert_eq!(queues.next(1, false), None, "its time is over");
        assert_eq!((queues.next(2, true), queues.next(2, true)), (Some((5, 1)), None));
    }
}
