//! Several processes of the server that are fuzzed side by side, each with tools of its own.
//!
//! What a tool is called with follows from the seed, its name and its own answers, and in the end from what all tools
//! returned; never from which process it is called on. So the same seed makes the same calls, however many there are.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::hunt::Hunt;
use super::pool::Pool;
use super::stock::Stock;
use super::tally::Tally;
use super::{Came, Work, by_itself, with_the_others};
use crate::check::fuzz::unsatisfiable;
use crate::event::ToolFuzz;
use crate::run::conduct::Context;
use crate::run::offer::{Offer, Tool};
use crate::run::plan::{FuzzPlan, processors};
use crate::spec::Transport;

/// How much faster than its first call a tool is called thereafter.
const WARM: u32 = 8;
/// What one more process costs beside its start.
const BESIDE: Duration = Duration::from_millis(100);

/// How many processes are worth their start.
pub(super) fn worth(context: &Context, plan: &FuzzPlan, offer: &Offer, chosen: &[&Tool]) -> usize {
    if plan.max_rate.is_some() || context.plan.transport() == Transport::Http {
        // What one does to the only process there is, it would do to the others.
        return 1;
    }
    let calls = u32::try_from(plan.calls).unwrap_or(u32::MAX);
    let took = |tool: &&Tool| tool.called.map_or(Duration::ZERO, |(_, took)| took);
    let expected = (chosen.iter().map(took).sum::<Duration>() / WARM).saturating_mul(calls);
    let worth = expected.as_micros() / (offer.startup + BESIDE).as_micros();
    let most = plan.jobs.unwrap_or_else(processors).min(context.plan.jobs).min(chosen.len()).max(1);
    usize::try_from(worth).unwrap_or(usize::MAX).clamp(1, most)
}

/// Fuzzes every tool: each by itself, then with what all of them returned. Ends the processes.
pub(super) async fn every_tool<'s>(mut hunts: Vec<Hunt<'_>>, chosen: &[&'s Tool]) -> (Vec<ToolFuzz>, Came) {
    let beside = hunts.len();
    let seed = hunts[0].context.plan.seed;
    let mut lanes: Vec<Vec<(usize, Work<'s>)>> = (0..beside).map(|_| Vec::new()).collect();
    for (at, tool) in chosen.iter().enumerate() {
        let work = Work {
            tool,
            stock: None,
            tally: Tally::default(),
            left: 0,
            time: Duration::ZERO,
            pool: Pool::default(),
            note: None,
        };
        lanes[at % beside].push((at, work));
    }
    let alone = hunts.iter_mut().zip(&mut lanes).map(|(hunt, lane)| async move {
        let tools = lane.len();
        for (done, (at, work)) in lane.iter_mut().enumerate() {
            work.time = hunt.share(tools - done);
            begin(hunt, *at, work, seed).await;
        }
    });
    all(alone.collect()).await;
    let mut pool = Pool::default();
    for at in 0..chosen.len() {
        pool.join(&lanes[at % beside][at / beside].1.pool);
    }
    let pool = &pool;
    let together = hunts.iter_mut().zip(&mut lanes).map(|(hunt, lane)| async move {
        for (_, work) in lane {
            with_the_others(hunt, work, pool).await;
        }
    });
    all(together.collect()).await;
    let mut works: Vec<(usize, Work<'s>)> = lanes.into_iter().flatten().collect();
    works.sort_by_key(|(at, _)| *at);
    let report = |work: Work<'s>| work.tally.report(&work.tool.name, work.note, work.stock.as_ref());
    let reports = works.into_iter().map(|(_, work)| report(work)).collect();
    for hunt in &mut hunts {
        hunt.tell_its_end();
        hunt.rig.end().await;
    }
    (reports, Came::of(hunts))
}

/// Fuzzes a tool by itself, if it can be.
async fn begin<'s>(hunt: &mut Hunt<'_>, at: usize, work: &mut Work<'s>, seed: u64) {
    let tool: &'s Tool = work.tool;
    match &tool.schema {
        _ if hunt.is_over() => work.note = Some("fuzzing ended before its turn".to_owned()),
        None => work.note = Some("its inputSchema cannot be read".to_owned()),
        Some(schema) => {
            if let Some(breach) = unsatisfiable(schema) {
                hunt.note(at, breach);
                work.note = Some("nothing satisfies its inputSchema".to_owned());
            } else {
                work.stock = Some(Stock::new(at, schema, &tool.name, seed, &hunt.plan.seeds));
                by_itself(hunt, work).await;
            }
        }
    }
}

/// Waits for all of them, side by side in one task, so that they may borrow.
async fn all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut pending: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(move |context| {
        pending.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
