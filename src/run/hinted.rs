//! Follows the hints of a plan: makes the requests that they name in the main session, where every watching
//! case sees what comes back, and learns arguments that serve from them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::exchange::GIVEN_UP;
use super::offer::Offer;
use super::plan::Plan;
use super::retry::{self, Served};
use super::session::Session;
use super::survey::cancel;
use crate::case::{Ask, Case, Hint};
use crate::client::Waited;
use crate::event::HintNote;
use crate::spec::Revision;
use crate::transcript::asks_for_input;

/// A hint, and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    pub(super) hint: Hint,
    pub(super) came: Came,
}

/// What came of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    /// It was answered by a result without `isError`.
    Served,
    /// It was answered by an error, or by a result with `isError: true`, which may be what it is for.
    Refused(String),
    /// It was not answered.
    Unanswered,
    /// It was not followed, for this reason.
    NotAsked(String),
}

impl Followed {
    /// Whether it was served and is for a case in a revision.
    pub(super) fn helps(&self, case: &Case, revision: Revision) -> bool {
        self.came == Came::Served && self.hint.is_for(case, revision)
    }

    /// What the report says of it.
    pub(super) fn note(&self) -> HintNote {
        let note = match &self.came {
            Came::Served => None,
            Came::Refused(how) => Some(format!("it was refused: {how}")),
            Came::Unanswered => Some("it was not answered".to_owned()),
            Came::NotAsked(why) => Some(format!("it was not asked: {why}")),
        };
        HintNote { request: self.hint.ask.describe(), purposes: self.hint.purposes.clone(), note }
    }
}

/// Follows the hints that are in force in the session's revision, one after the other.
pub(super) async fn follow(session: &mut Session, plan: &Plan, offer: &mut Offer) {
    for (number, hint) in plan.hints.iter().enumerate() {
        if !hint.revisions.contains(session.revision) {
            continue;
        }
        let began = Instant::now();
        let (came, asked) = match unfit(session, offer, &hint.ask) {
            Some(why) => (Came::NotAsked(why), Vec::new()),
            None => ask(session, plan, &hint.ask, number).await,
        };
        if came == Came::Served {
            learn(offer, &hint.ask, asked, began.elapsed());
        }
        offer.hinted.push(Followed { hint: hint.clone(), came });
    }
}

/// Why a request is not made: the rules of which tools may be called hold for hints too.
fn unfit(session: &Session, offer: &Offer, ask: &Ask) -> Option<String> {
    if offer.dead.is_some() || session.connection.is_closed() || session.unanswered >= GIVEN_UP {
        return Some("the server no longer answers".to_owned());
    }
    let undeclared = |capability: &str| {
        let known = session.terms.opening.is_some() && !session.terms.declares(capability);
        known.then(|| format!("the server does not declare {capability}"))
    };
    match ask {
        Ask::Call { tool, .. } => match offer.tools.iter().find(|listed| listed.name == *tool) {
            None => undeclared("tools").or_else(|| Some("the server lists no such tool".to_owned())),
            Some(listed) if !listed.permitted => listed.barred.clone(),
            Some(_) => None,
        },
        Ask::Read { .. } => undeclared("resources"),
        Ask::Get { .. } => undeclared("prompts"),
    }
}

/// What came of a hint, and what the server asked of the client on the way.
async fn ask(session: &mut Session, plan: &Plan, ask: &Ask, number: usize) -> (Came, Vec<Value>) {
    let from = session.connection.len();
    let waited = request(session, ask, &format!("hint-{number}"), plan.timeout).await;
    let came = match waited {
        Waited::Came(response) => came_of(&response),
        Waited::TimedOut | Waited::Closed => Came::Unanswered,
    };
    (came, session.transcript_from(from).asked())
}

/// Makes a request, and again with every answer where its result asks for input; one that is not answered is
/// cancelled.
pub(super) async fn request(session: &mut Session, ask: &Ask, token: &str, limit: Duration) -> Waited<Value> {
    const MOST_ROUNDS: usize = 4;
    let (method, mut params) = ask.request();
    if matches!(ask, Ask::Call { .. }) {
        params.insert("_meta".to_owned(), json!({ "progressToken": token }));
    }
    let mut message = json!({ "method": method, "params": params });
    let mut rounds = 0;
    loop {
        let request = session.complete(&message, true, None);
        let from = session.connection.len();
        session.send(&request, None).await;
        let waited = session.answer(from, &request["id"], limit).await;
        let Waited::Came(response) = waited else {
            cancel(session, &request["id"], "it took longer than it is waited for").await;
            return waited;
        };
        let served = Served { request, response };
        rounds += 1;
        match retry::plain(&served, &session.replies) {
            Some(again) if rounds < MOST_ROUNDS => message = again,
            Some(_) | None => return Waited::Came(served.response),
        }
    }
}

/// What a response says of a request.
pub(super) fn came_of(response: &Value) -> Came {
    match response.get("result") {
        Some(result) if asks_for_input(result) => Came::Refused("it asks for input again and again".to_owned()),
        Some(result) if result.get("isError") != Some(&Value::Bool(true)) => Came::Served,
        Some(result) => {
            let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("a result with isError");
            Came::Refused(few_words(text))
        }
        None => {
            let error = response.get("error").unwrap_or(&Value::Null);
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            Came::Refused(few_words(&format!("error {} {message}", error.get("code").unwrap_or(&Value::Null))))
        }
    }
}

fn few_words(text: &str) -> String {
    const LONGEST: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST { line } else { line.chars().take(LONGEST).chain(['…']).collect() }
}

/// Keeps what was served for the cases that call a tool or get a prompt.
fn learn(offer: &mut Offer, ask: &Ask, asked: Vec<Value>, took: Duration) {
    match ask {
        Ask::Call { tool, arguments } => {
            if let Some(listed) = offer.tools.iter_mut().find(|listed| listed.name == *tool) {
                listed.learn(Value::Object(arguments.clone()), asked, took);
            }
        }
        Ask::Read { .. } => {}
        Ask::Get { prompt, arguments } => offer.others.learn(prompt, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_request_is_told_in_few_words() {
        assert_eq!(came_of(&json!({"result": {"content": []}})), Came::Served);
        let failed = json!({"result": {"isError": true, "content": [{"type": "text", "text": "no\nsuch  zone"}]}});
        assert_eq!(came_of(&failed), Came::Refused("no such zone".to_owned()));
        let error = json!({"error": {"code": -32602, "message": "bad"}});
        assert_eq!(came_of(&error), Came::Refused("error -32602 bad".to_owned()));
        let Came::Refused(long) = came_of(&json!({"error": {"code": 1, "message": "x".repeat(500)}})) else {
            panic!("it was refused")
        };
        assert_eq!(long.chars().count(), 121);
    }
}
