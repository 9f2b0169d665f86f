//! Cases that say the same in every revision with a handshake, to a process that nothing has opened: they are
//! carried out once, and each revision judges the record for itself.
//!
//! It owns which cases these are and who carries them out. A failure is tried again in each revision on its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::OnceCell;

use super::conduct::Ended;
use super::lane::{self, Carried, Done, Unopened};
use super::offer::Offer;
use super::session::full_capabilities;
use super::target::{Kept, Target};
use crate::case::{Act, Action, Case, Delivery, Process, Step};
use crate::check::{Judged, Pass};
use crate::spec::{Era, Transport};
use crate::transcript::Terms;

/// What came of the cases that were carried out for all revisions, by their ids.
#[derive(Debug, Default)]
pub(super) struct Common(Mutex<BTreeMap<String, Arc<OnceCell<Outcome>>>>);

/// What came of one.
#[derive(Debug)]
struct Outcome {
    carried: Carried,
    ended: Ended,
    terms: Terms,
    cut_off: bool,
}

impl Common {
    fn of(&self, case: &Case) -> Arc<OnceCell<Outcome>> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(case.id.clone()).or_default())
    }
}

/// Whether a target's case is carried out once for all revisions.
pub(super) fn is_common(target: &Target, case: &Case, body: &Act) -> bool {
    target.revision.era() == Era::Handshake
        && target.context.plan.transport() == Transport::Stdio
        && says_the_same(case, body)
}

/// Whether nothing that a case sends, nor to whom, depends on the revision or on what the server offers.
fn says_the_same(case: &Case, body: &Act) -> bool {
    let is_plain = |step: &Step| match &step.action {
        Action::Request { delivery, .. } => step.revisions.is_none() && !matches!(delivery, Delivery::Polled(_)),
        Action::Raw { .. } => step.revisions.is_none(),
        _ => false,
    };
    let needs = &case.needs;
    body.process == Process::Uninitialized
        && body.for_each.is_none()
        && body.client_responses.is_empty()
        && needs.capabilities.is_empty()
        && needs.tool.is_none()
        && needs.client_request.is_none()
        && body.steps.iter().all(is_plain)
        && case.placeholders().is_empty()
}

/// Judges the record of such a case; whoever comes first carries it out.
pub(super) async fn run(mut target: Target, case: &Arc<Case>, body: &Act) -> Done {
    // Who waits for it holds no permit meanwhile, and whoever is through its survey first carries the case out.
    let offer = target.offer().await;
    let began = Instant::now();
    let cell = target.context.common().of(case);
    let carrying = target.clone();
    let mut is_ours = false;
    let outcome = cell
        .get_or_try_init(|| {
            is_ours = true;
            carry_out(carrying, case, body, &offer)
        })
        .await;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(Unopened { reason, told }) => {
            target.tell(case, Judged::error(reason), None);
            return told;
        }
    };
    let judged = if let Some(reason) = target.dead() {
        Judged::error(reason)
    } else {
        let own = |pass: &Pass| Pass { offered: offer.listed(), ..pass.clone() };
        let own = |passes: &Vec<Pass>| passes.iter().map(own).collect();
        lane::judge(&target, case, body, outcome.carried.as_ref().map(own).map_err(Clone::clone))
    };
    target.tell(case, judged, Some(began));
    if outcome.cut_off {
        lane::give_up_cut_off(&target);
    }
    let mut terms = outcome.terms.clone();
    if terms.opening.is_none() {
        terms.client_capabilities = full_capabilities(target.revision);
    }
    vec![Kept { ended: outcome.ended.clone(), terms, lent: !is_ours }]
}

/// Carries a case out on a process of its own, and ends that.
async fn carry_out(target: Target, case: &Case, body: &Act, offer: &Offer) -> Result<Outcome, Unopened> {
    // Every revision waits for it.
    let context = target.context.in_haste(true);
    let permit = context.ask().given().await;
    if let Some(reason) = target.dead() {
        return Err(reason.into());
    }
    let mut session = lane::open_for(&target, body, lane::purpose_of(case)).await?;
    let carried = lane::carry_out_fresh(&target, case, body, &mut session, offer).await;
    let cut_off = session.connection.is_cut_off();
    let _busy = context.idle(permit);
    let Kept { ended, terms, .. } = lane::close_own(&target, session).await;
    Ok(Outcome { carried, ended, terms, cut_off })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Body, load};

    #[test]
    fn only_what_depends_on_nothing_is_carried_out_once() {
        let cases = load(None, &[]).expect("they are sound");
        let common: Vec<&str> = cases
            .iter()
            .filter(|case| matches!(&case.body, Body::Act(act) if says_the_same(case, act)))
            .map(|case| case.id.as_str())
            .collect();
        assert!(common.contains(&"lifecycle/version-unknown"));
        for id in ["stdio/exit-on-eof", "lifecycle/ping", "stateless/prior-context"] {
            assert!(!common.contains(&id), "{id}");
        }
    }
}
