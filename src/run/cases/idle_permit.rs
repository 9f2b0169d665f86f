//! Gives the permit of a process back while its case only waits: a permit stands for work.

use std::pin::Pin;
use std::time::Duration;

use crate::context::{Context, ProcessPermit};
use crate::limits::MIN_WORK_BEFORE_WAITING;
use crate::spec::Transport;

/// Carries out a case on a process of its own. Once that takes longer than it took to open its session, which is mostly spent
/// in waiting, others may start a process. The answers of a slow server count as work, and over HTTP all sessions share a process.
pub(super) async fn with_permit<T>(
    context: &Context,
    permit: ProcessPermit,
    opening: Option<Duration>,
    mut case: Pin<Box<impl Future<Output = T>>>,
) -> (T, Option<ProcessPermit>) {
    let work = opening.unwrap_or_default().max(MIN_WORK_BEFORE_WAITING);
    if let Ok(done) = tokio::time::timeout(work, &mut case).await {
        return (done, Some(permit));
    }
    let only_waits = context.plan.transport() == Transport::Stdio && !context.slow_server.is_marked();
    let permit = if only_waits { context.release_if_idle(permit) } else { Some(permit) };
    (case.await, permit)
}
