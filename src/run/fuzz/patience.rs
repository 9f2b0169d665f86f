//! How long answers are waited for, and when waiting is given up: a call that hangs costs one timeout, and a server
//! of which every call does, a few.

use std::time::{Duration, Instant};

use super::hunt::Hunt;
use super::shot::Shot;
use super::tally::Tally;
use crate::check::fuzz::{Exchange, Fate, Standing, judge, outcome};
use crate::event::CallOutcome;

/// How long a call is waited for at first, where the tool's calls so far were no slower than a part of it.
const SOON: Duration = Duration::from_secs(1);
/// How many times as long as the slowest call so far.
const SLOWER: u32 = 4;
/// How long the calls before one that was not answered may take when they are made again.
const AGAIN: Duration = Duration::from_secs(3);
/// How long a call is waited for that is expected to hang, while that is made small: so long, and no longer.
const BRIEFLY: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(700)];
/// How often calls of a tool may end the server before the tool is left alone.
const DEATHS: usize = 12;
/// How often calls of a tool may go unanswered before the tool is left alone.
const SILENCES: usize = 3;
/// How many calls in a row may be answered by what is no answer before a tool is left alone.
const GARBLED: usize = 24;
/// How often a call is given all of its time in vain, whatever the tool; later ones are not waited for so long.
const SETTLED: usize = 3;
/// How many tools in a row may be left alone so before the server is.
const BARREN: usize = 3;
/// How many tools may fall silent at the same malformed arguments before no other one is given them.
const ALIKE: usize = 2;

/// What was waited for in vain.
#[derive(Debug, Clone, Default)]
pub(super) struct Patience {
    /// Calls of the tool under test that ended the server, and that went unanswered.
    pub(super) deaths: usize,
    silences: usize,
    /// Answers in a row to the tool under test that are none.
    garbled: usize,
    /// Calls, whatever the tool, that had all of their time and were not answered.
    settled: usize,
    /// Calls of the tool under test that had no more than a part of it.
    unsettled: usize,
    /// Tools in a row that were left alone.
    barren: usize,
    /// Whether so many were that the server is.
    pub(super) given_up: bool,
    /// The malformed arguments that calls went unanswered with, once for each.
    odd: Vec<&'static str>,
}

impl Patience {
    /// Begins the turn of a tool.
    pub(super) fn begin(&mut self) {
        (self.deaths, self.silences, self.garbled, self.unsettled) = (0, 0, 0, 0);
    }

    /// Takes note of how a call ended that broke a burst off.
    pub(super) fn broke_off(&mut self, exchange: &Exchange) {
        match &exchange.fate {
            Fate::Ended { .. } => self.deaths += 1,
            Fate::Silent { .. } => {
                self.silences += 1;
                if let Standing::Malformed(_, name) = exchange.call.standing {
                    self.odd.push(name);
                }
            }
            Fate::Answered => {}
        }
    }

    /// Takes note of an answer.
    pub(super) fn answered(&mut self, exchange: &Exchange) {
        if exchange.fate == Fate::Answered {
            self.garbled =
                if outcome(exchange) == CallOutcome::Malformed || is_astray(exchange) { self.garbled + 1 } else { 0 };
        }
    }

    /// Takes note of an answer that is known to be in order.
    pub(super) fn answered_in_order(&mut self) {
        self.garbled = 0;
    }

    /// Whether other tools fell silent at arguments like these, so that it is known what comes of them.
    pub(super) fn knows(&self, shot: &Shot) -> bool {
        let Standing::Malformed(_, name) = shot.call.standing else { return false };
        self.odd.iter().filter(|known| **known == name).count() >= ALIKE
    }

    /// Whether the tool under test gave reason to leave it alone, or to come to that.
    pub(super) fn was_tried(&self) -> bool {
        self.silences > 0 || self.is_hopeless().is_some()
    }

    /// Why the tool under test is left alone, if that is so.
    pub(super) fn is_hopeless(&self) -> Option<String> {
        if self.deaths >= DEATHS {
            Some(format!("left alone after its calls had ended the server {DEATHS} times"))
        } else if self.silences >= SILENCES || self.unsettled > 0 {
            let times = self.silences;
            let calls = if times == 1 { "one of its calls".to_owned() } else { format!("{times} of its calls") };
            Some(match self.unsettled {
                0 => format!("left alone after {calls} had gone unanswered"),
                _ => {
                    format!("left alone after {calls} had not been answered soon, as so many of other tools never were")
                }
            })
        } else if self.garbled >= GARBLED {
            Some(format!(
                "left alone after {GARBLED} of its calls in a row had drawn nothing that is an answer to them"
            ))
        } else {
            None
        }
    }

    /// Ends the turn of a tool; says why the server is left alone, if that is so.
    pub(super) fn end(&mut self, tally: &Tally) -> Option<String> {
        if self.garbled < GARBLED && tally.is_served_mostly() {
            self.barren = 0;
            return None;
        }
        self.barren += 1;
        self.given_up = self.barren >= BARREN;
        let why =
            self.is_hopeless().unwrap_or_else(|| "left alone after most of its calls had gone unserved".to_owned());
        self.given_up.then(|| format!("{BARREN} tools in a row were not served as a rule, and the last one was {why}"))
    }
}

/// Whether an answer is taken for one to the call though it says otherwise.
fn is_astray(exchange: &Exchange) -> bool {
    let own = |answer: &serde_json::Value| answer.get("id").is_some_and(|id| id == &serde_json::json!(exchange.id));
    !exchange.call.is_unparsable() && !exchange.answers.iter().any(own)
}

impl Hunt<'_> {
    /// How long a call may take.
    pub(super) fn limit(&self) -> Duration {
        self.context.plan.timeout
    }

    /// How long a call is waited for before it is tried again with more time.
    pub(super) fn soon(&self) -> Duration {
        SOON.min(self.limit() / 3).max(self.turn.slowest() * SLOWER).min(self.limit())
    }

    /// How long a call is waited for that is expected to hang.
    pub(super) fn briefly(&self) -> Duration {
        let usual = self.turn.slowest() * SLOWER * 2 + self.rig.startup() / 2;
        usual.clamp(BRIEFLY[0], BRIEFLY[1]).min(self.limit())
    }

    /// Tells a call that is never answered from one that is slow; `waited` is how long that took so far.
    pub(super) async fn settle(
        &mut self,
        shot: &Shot,
        exchange: Exchange,
        history: &[Shot],
        waited: Duration,
    ) -> Result<Exchange, String> {
        if !matches!(exchange.fate, Fate::Silent { .. }) {
            return Ok(exchange);
        }
        let known = judge(&self.subjects[shot.tool], &exchange);
        if known.iter().any(|breach| self.known(shot.tool, breach).is_some()) {
            // That calls of this kind go unanswered was seen with all the time that there is.
            return Ok(exchange);
        }
        if self.patience.settled >= SETTLED {
            self.patience.unsettled += 1;
            return Ok(exchange);
        }
        let began = Instant::now();
        let settled = self.with_more_time(shot, exchange, history, waited).await?;
        if settled.fate != Fate::Answered {
            self.patience.settled += usize::from(matches!(settled.fate, Fate::Silent { .. }));
            self.shrinking_took += began.elapsed();
            self.spare(began.elapsed());
        }
        Ok(settled)
    }

    /// Whether a silence is told as one: a call that was not given all of its time may be slow, and no more.
    pub(super) fn is_settled(&self) -> bool {
        self.patience.unsettled == 0
    }

    /// Makes a call that was not answered soon once more, on a fresh process, and waits for what is left of its time
    /// while the first process has its own.
    async fn with_more_time(
        &mut self,
        shot: &Shot,
        exchange: Exchange,
        history: &[Shot],
        waited: Duration,
    ) -> Result<Exchange, String> {
        let limit = self.limit();
        let longer = limit.saturating_sub(waited).max(limit / 2);
        let parked = self.rig.take_parked();
        // A line that need not be answered is followed by a request that has to be.
        let unparsable = exchange.call.is_unparsable();
        let id = exchange.id + i64::from(unparsable);
        let late = async {
            match parked {
                Some(parked) => parked.answer_to(id, longer).await,
                None => None,
            }
        };
        let rig = &mut self.rig;
        let fresh = async {
            rig.fresh().await?;
            rig.one(shot, longer).await
        };
        let again = {
            tokio::pin!(late, fresh);
            tokio::select! {
                biased;
                Some(answer) = &mut late => Err((answer, waited)),
                again = &mut fresh => Ok(again?),
            }
        };
        let again = match again {
            Ok(again) => again,
            Err((answer, waited)) => {
                // It is slow. What was begun on the other process is of no use.
                self.rig.drop_process();
                let took = exchange.took.max(waited);
                let answers = if unparsable { Vec::new() } else { vec![answer] };
                return Ok(Exchange { answers, fate: Fate::Answered, took, ..exchange });
            }
        };
        if let Fate::Silent { .. } = again.fate {
            return Ok(Exchange { fate: Fate::Silent { waited: waited + longer }, ..again });
        }
        if again.fate != Fate::Answered || history.is_empty() || again.took > self.soon() / 2 {
            return Ok(again);
        }
        // It may take what was called before it.
        self.rig.fresh().await?;
        let began = Instant::now();
        for earlier in history {
            let is_late = began.elapsed() > AGAIN;
            if is_late || self.rig.one(earlier, self.limit()).await?.fate != Fate::Answered {
                return Ok(again);
            }
        }
        self.rig.one(shot, longer).await
    }
}
