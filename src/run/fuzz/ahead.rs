//! The calls of a tool's long phase, round by round: the next ones are made while those before are under way.
//!
//! What to make is chosen in order (see [`recipe`](super::recipe)), so who makes it, and when, changes no call. It is
//! one thread of its own, which also takes apart what it has made: memory that another thread allocated costs as much
//! to give back as to get, and the runtime's threads for such work take turns.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use super::ROUND;
use super::recipe::{Making, Recipe};
use super::rig::Rig;
use super::shot::Shot;
use super::stock::Stock;
use crate::check::fuzz::Call;

/// How many calls are made between two looks at what came back where many are to be made: four times as many as are
/// under way at once, so that few rounds run dry.
const LARGEST_ROUND: u64 = 1_024;
/// From how many calls a round is worth a thread of its own.
const LONG_ROUND: u64 = 256;

/// The calls of the long phase. Those of a long round are made while the one before is under way, and so follow from
/// the answers up to that one alone; in short rounds, each follows from all answers before it.
pub(super) struct Ahead {
    round: u64,
    maker: Option<Maker>,
    next: Option<oneshot::Receiver<Vec<Arc<Call>>>>,
}

impl Ahead {
    /// Rounds for so many calls in all.
    pub(super) fn of(calls: u64) -> Self {
        Self { round: (calls / 8).clamp(ROUND, LARGEST_ROUND), maker: None, next: None }
    }

    /// The calls of the next round; none where nothing is left, or nothing can be made. `rig` has those that are done
    /// with.
    pub(super) async fn next(&mut self, stock: &mut Stock, left: &mut u64, rig: &mut Rig) -> Vec<Arc<Call>> {
        let made = match self.next.take() {
            Some(making) => match making.await {
                Ok(made) => made,
                Err(_) => self.maker.take().map_or_else(Vec::new, Maker::fail),
            },
            None => stock.mixed(self.round.min(*left)),
        };
        *left -= (made.len() as u64).min(*left);
        if self.round >= LONG_ROUND && *left > 0 && !made.is_empty() {
            if self.maker.is_none() {
                // Without a thread, each round is made when it is asked for.
                self.maker = Maker::start(stock.making()).ok();
            }
            if let Some(maker) = &self.maker {
                let (send, receive) = oneshot::channel();
                let order =
                    Order { recipes: stock.recipes(self.round.min(*left)), spent: rig.take_spent(), made: send };
                self.next = Some(receive);
                maker.give(order);
            }
        }
        made
    }
}

/// What is to be made.
struct Order {
    recipes: Vec<Recipe>,
    /// Calls that are done with.
    spent: Vec<Shot>,
    made: oneshot::Sender<Vec<Arc<Call>>>,
}

/// A thread that makes calls until it is dropped.
struct Maker {
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<()>,
}

impl Maker {
    fn start(making: &Arc<Making>) -> io::Result<Self> {
        let making = Arc::clone(making);
        let (orders, ordered) = mpsc::channel::<Order>();
        let thread = thread::Builder::new().name("calls".to_owned()).spawn(move || {
            for Order { recipes, spent, made } in ordered {
                drop(spent);
                // Nobody waits for it any more when the tool's time is over.
                let _unwanted = made.send(making.all(&recipes));
            }
        })?;
        Ok(Self { orders, thread })
    }

    /// Has something made. Should the thread have ended, nothing is ever sent of it, as is noticed when it is waited for.
    fn give(&self, order: Order) {
        let _unmade = self.orders.send(order);
    }

    /// Panics as the thread did, which alone ends it early.
    fn fail<T>(self) -> T {
        drop(self.orders);
        match self.thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the thread goes on for as long as it may be given something"),
        }
    }
}
