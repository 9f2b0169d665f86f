//! The checks of a connection that are about tasks: calls that go on after their answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::act::shortened;
use super::list::pages_of;
use super::seen::{Seen, breach};
use super::watch::{Index, method_of};
use crate::case::Pattern;
use crate::transcript::{Event, Exchange};
use crate::wire::{Id, Kind};

const RELATED: &str = "_meta/io.modelcontextprotocol~1related-task/taskId";

/// A task as some message shows it.
struct Sighting<'a> {
    id: &'a str,
    task: &'a Value,
    /// Where it was asked for.
    asked: usize,
    seen: usize,
    /// Whether it is the answer that created it.
    created: bool,
}

impl Sighting<'_> {
    fn status(&self) -> &str {
        self.task.get("status").and_then(Value::as_str).unwrap_or_default()
    }

    fn is_terminal(&self) -> bool {
        matches!(self.status(), "completed" | "failed" | "cancelled")
    }
}

/// The task that the answer to a call creates, in either era.
fn created(response: &Value) -> Option<&Value> {
    let result = response.get("result")?;
    let handle = (result.get("resultType").and_then(Value::as_str) == Some("task")).then_some(result);
    result.get("task").filter(|task| task.is_object()).or(handle)
}

/// Every task in the answers to requests, in the order of the requests.
fn sightings<'a>(index: &Index<'a>) -> Vec<Sighting<'a>> {
    let mut all = Vec::new();
    for exchange in &index.exchanges {
        let Some((seen, response)) = exchange.responses.first() else { continue };
        let method = method_of(exchange.request);
        let tasks: Vec<&'a Value> = match method {
            "tools/call" => created(response).into_iter().collect(),
            "tasks/get" | "tasks/cancel" => response.get("result").into_iter().collect(),
            "tasks/list" => response.pointer("/result/tasks").and_then(Value::as_array).into_iter().flatten().collect(),
            _ => continue,
        };
        for task in tasks {
            if let Some(id) = task.get("taskId").and_then(Value::as_str) {
                let created = method == "tools/call";
                all.push(Sighting { id, task, asked: exchange.sent, seen: *seen, created });
            }
        }
    }
    all
}

fn of<'i, 'a>(index: &'i Index<'a>, method: &'i str) -> impl Iterator<Item = &'i Exchange<'a>> {
    index.exchanges.iter().filter(move |exchange| method_of(exchange.request) == method)
}

fn task_of(request: &Value) -> Option<&str> {
    request.pointer("/params/taskId").and_then(Value::as_str)
}

/// Whether no two tasks were created under one id.
pub(super) fn ids_unique(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for task in sightings(index).iter().filter(|task| task.created) {
        let here = [task.asked, task.seen];
        match known.insert(task.id, here) {
            Some(first) => {
                let positions = [first, here].concat();
                seen.look(Some(breach(format!("`{}` comes again", shortened(task.id, 80)), "", &positions)));
            }
            None if known.len() > 1 => seen.look(None),
            None => {}
        }
    }
    seen
}

/// Whether the ids of tasks leave room enough that nobody guesses one. What all ids of a connection have
/// in front is taken for a fixed part. The bound is generous: an id of twelve hexadecimal digits passes.
pub(super) fn ids_unguessable(index: &Index<'_>) -> Seen {
    const BITS: f64 = 48.0;
    let mut seen = Seen::default();
    let all = sightings(index);
    let mut known = BTreeSet::new();
    let ids: Vec<&Sighting<'_>> = all.iter().filter(|task| task.created && known.insert(task.id)).collect();
    let fixed = match ids.split_first() {
        Some((first, rest)) if !rest.is_empty() => {
            rest.iter().map(|other| common_prefix(first.id, other.id)).min().unwrap_or(0)
        }
        _ => 0,
    };
    for task in ids {
        let rest: String = task.id.chars().skip(fixed).collect();
        let room = bits(&rest);
        seen.look((room < BITS).then(|| {
            let part = if fixed > 0 { " beside what all ids begin with" } else { "" };
            let actual = format!("the id `{}` has room for {room:.0} bits{part}", shortened(task.id, 80));
            breach(actual, "", &[task.asked, task.seen])
        }));
    }
    seen
}

fn common_prefix(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count()
}

/// How many bits a text of these kinds of characters can hold.
fn bits(text: &str) -> f64 {
    let has = |of: fn(char) -> bool| text.chars().any(of);
    let mut alphabet = 0_u32;
    for (present, size) in [
        (has(|c| c.is_ascii_digit()), 10),
        (has(|c| c.is_ascii_lowercase()), if has(|c| matches!(c, 'g'..='z')) { 26 } else { 6 }),
        (has(|c| c.is_ascii_uppercase()), if has(|c| matches!(c, 'G'..='Z')) { 26 } else { 6 }),
    ] {
        if present {
            alphabet += size;
        }
    }
    let counted = u32::try_from(text.chars().filter(char::is_ascii_alphanumeric).count()).unwrap_or(u32::MAX);
    f64::from(counted) * f64::from(alphabet.max(1)).log2()
}

/// Whether a task that was seen to have ended stays as it was.
pub(super) fn transitions(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let all = sightings(index);
    for later in &all {
        // What was asked for before the end was seen may tell how it stood before that.
        let end = all.iter().find(|task| task.id == later.id && task.is_terminal() && task.seen < later.asked);
        if let Some(end) = end {
            seen.look((later.status() != end.status()).then(|| {
                let actual = format!("a task that was {} is {}", end.status(), shortened(later.status(), 40));
                breach(actual, "", &[end.asked, end.seen, later.asked, later.seen])
            }));
        }
    }
    seen
}

/// Whether the times of each task are timestamps, the one of its creation is always the same, and the
/// other is not before it.
pub(super) fn times(index: &Index<'_>) -> Seen {
    static TIMESTAMP: LazyLock<Pattern> =
        LazyLock::new(|| Pattern::new(json!({"type": "string", "format": "iso-8601"})));
    /// To the second, of times that can be compared as texts.
    fn second(time: &str) -> Option<&str> {
        time.get(..19).filter(|_| time.ends_with('Z') && time.as_bytes().get(10) == Some(&b'T'))
    }
    let mut seen = Seen::default();
    let mut first: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for task in sightings(index) {
        let positions = [task.asked, task.seen];
        let odd = ["createdAt", "lastUpdatedAt"].into_iter().find_map(|name| match task.task.get(name) {
            None => Some(format!("a task has no {name}")),
            Some(time) if !TIMESTAMP.fits(time) => {
                Some(format!("{name} of a task is {}", shortened(&time.to_string(), 60)))
            }
            Some(_) => None,
        });
        let time = |name: &str| task.task.get(name).and_then(Value::as_str).and_then(second);
        let problem = odd.or_else(|| {
            let (made, updated) = time("createdAt").zip(time("lastUpdatedAt"))?;
            let (before, _) = *first.entry(task.id).or_insert((made, task.seen));
            if before == made {
                (updated < made).then(|| format!("a task of {made} was last updated at {updated}"))
            } else {
                Some(format!("a task of {before} is of {made} later on"))
            }
        });
        seen.look(problem.map(|problem| breach(problem, "", &positions)));
    }
    seen
}

/// Whether `tasks/result` was answered for tasks only that have ended by then.
pub(super) fn result_waits(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let all = sightings(index);
    for exchange in of(index, "tasks/result") {
        let (Some(id), Some((answered, _))) = (task_of(exchange.request), exchange.responses.first()) else { continue };
        let cancelled = index.record.entries.iter().any(|entry| {
            entry.sent().is_some_and(|sent| {
                method_of(sent) == "notifications/cancelled"
                    && sent.pointer("/params/requestId") == exchange.request.get("id")
            })
        });
        let next = all.iter().find(|task| task.id == id && task.asked > *answered && !task.created);
        if let (Some(next), false) = (next, cancelled) {
            seen.look((!next.is_terminal()).then(|| {
                let actual = format!("after tasks/result was answered the task is {}", shortened(next.status(), 40));
                breach(actual, "tasks/result", &[exchange.sent, *answered, next.asked, next.seen])
            }));
        }
    }
    seen
}

/// Whether each result of `tasks/result` names its task.
pub(super) fn results_related(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in of(index, "tasks/result") {
        let (Some(id), Some((answered, response))) = (task_of(exchange.request), exchange.responses.first()) else {
            continue;
        };
        let Some(result) = response.get("result") else { continue };
        let related = result.pointer(&format!("/{RELATED}"));
        seen.look((related.and_then(Value::as_str) != Some(id)).then(|| {
            let what = related.map_or_else(|| "no related-task".to_owned(), |other| format!("related-task {other}"));
            breach(what, "tasks/result", &[exchange.sent, *answered])
        }));
    }
    seen
}

/// Whether a task that was there before its list was read, and still is there after it, stands in it.
pub(super) fn listed(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let all = sightings(index);
    for walk in pages_of(index, "tasks/list") {
        let (Some(first), Some(last)) = (walk.first(), walk.last()) else { continue };
        if last.result.get("nextCursor").is_some_and(|cursor| !cursor.is_null()) {
            continue;
        }
        let items: BTreeSet<&str> = walk
            .iter()
            .filter_map(|page| page.result.get("tasks")?.as_array())
            .flatten()
            .filter_map(|task| task.get("taskId")?.as_str())
            .collect();
        let positions: Vec<usize> = walk.iter().flat_map(|page| page.positions).collect();
        let mut known = BTreeSet::new();
        for made in all.iter().filter(|task| task.created && task.seen < first.positions[0] && known.insert(task.id)) {
            let later = of(index, "tasks/get").find(|get| {
                let answer = get.responses.first().and_then(|(_, response)| response.get("result"));
                get.sent > last.positions[1] && task_of(get.request) == Some(made.id) && answer.is_some()
            });
            if let Some(later) = later {
                seen.look((!items.contains(made.id)).then(|| {
                    let actual = format!("`{}` is not listed, and tasks/get knows it", shortened(made.id, 80));
                    breach(actual, "tasks/list", &[positions.as_slice(), &[later.sent]].concat())
                }));
            }
        }
    }
    seen
}

/// Whether a task whose tool failed is told as failed, with a word on it.
pub(super) fn failures_told(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let all = sightings(index);
    for exchange in of(index, "tasks/result") {
        let (Some(id), Some((answered, response))) = (task_of(exchange.request), exchange.responses.first()) else {
            continue;
        };
        if response.pointer("/result/isError") != Some(&Value::Bool(true)) {
            continue;
        }
        let ended = all.iter().find(|task| task.id == id && task.is_terminal());
        if let Some(task) = ended {
            let problem = match task.status() {
                "completed" => Some("the task of a tool that failed is completed"),
                "failed" if task.task.get("statusMessage").is_none() => Some("a failed task has no statusMessage"),
                _ => None,
            };
            seen.look(problem.map(|p| breach(p, "", &[task.asked, task.seen, exchange.sent, *answered])));
        }
    }
    seen
}

/// Whether what a server asks while the result of a task is waited for that needs input names the task.
pub(super) fn input_related(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let all = sightings(index);
    for exchange in of(index, "tasks/result") {
        let Some(id) = task_of(exchange.request) else { continue };
        let needs = |task: &&Sighting<'_>| task.id == id && task.status() == "input_required";
        let Some(task) = all.iter().find(needs).filter(|task| task.seen < exchange.sent) else { continue };
        let until = exchange.responses.first().map_or(usize::MAX, |(at, _)| *at);
        let asked = index.received().find(|(position, message)| {
            let asks = matches!(Kind::of(message), Kind::Request { method, .. } if method != "ping");
            asks && (exchange.sent..until).contains(position)
        });
        let Some((position, request)) = asked else { continue };
        let related = request.pointer(&format!("/params/{RELATED}")).and_then(Value::as_str);
        seen.look((related != Some(id)).then(|| {
            let actual = format!("{} without the related-task of the task", method_of(request));
            breach(actual, "", &[task.asked, task.seen, exchange.sent, position])
        }));
    }
    seen
}

/// Whether progress on a task ends when the task does.
pub(super) fn progress_stops(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    // Over HTTP messages of different streams overtake each other, so that their order proves nothing.
    if index.record.entries.iter().any(|entry| matches!(entry.event, Event::HttpRequest(_))) {
        return seen;
    }
    let all = sightings(index);
    for exchange in of(index, "tools/call") {
        let token = exchange.request.pointer("/params/_meta/progressToken");
        let Some((answered, response)) = exchange.responses.first() else { continue };
        let made = created(response).and_then(|task| task.get("taskId")).and_then(Value::as_str);
        let (Some(token), Some(id)) = (token, made) else { continue };
        let end = all.iter().find(|task| task.id == id && task.is_terminal() && !task.created);
        for (position, message) in index.received() {
            if method_of(message) == "notifications/progress"
                && message.pointer("/params/progressToken") == Some(token)
                && position > *answered
            {
                let late = end.filter(|end| end.seen < position);
                seen.look(late.map(|end| {
                    breach("progress on a task that has ended", "", &[exchange.sent, end.asked, end.seen, position])
                }));
            }
        }
    }
    seen
}

/// Whether only `tools/call` is answered with a task where the client declares the extension.
pub(super) fn only_on_calls(index: &Index<'_>) -> Seen {
    const EXTENSIONS: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";
    let mut seen = Seen::default();
    for exchange in &index.exchanges {
        let declared = exchange.request.pointer(EXTENSIONS).and_then(|all| all.get("io.modelcontextprotocol/tasks"));
        let method = method_of(exchange.request);
        let Some((answered, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result").filter(|_| declared.is_some() && method != "tools/call") else {
            continue;
        };
        let task = result.get("resultType").and_then(Value::as_str) == Some("task");
        seen.look(task.then(|| breach("a result of type task", method, &[exchange.sent, *answered])));
    }
    seen
}

/// Whether each key of what a task asks for stands for one request.
pub(super) fn input_keys(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known: BTreeMap<(&str, &str), (&Value, [usize; 2])> = BTreeMap::new();
    for task in sightings(index) {
        for (key, request) in task.task.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let here = [task.asked, task.seen];
            let (before, first) = *known.entry((task.id, key)).or_insert((request, here));
            seen.look((before != request).then(|| {
                let actual = format!("the key `{}` stands for two requests", shortened(key, 60));
                breach(actual, "", &[first, here].concat())
            }));
        }
    }
    seen
}

/// The id of a request that a message carries.
pub(super) fn id_of(request: &Value) -> Option<&Id> {
    request.get("id").filter(|id| !id.is_null())
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn the_room_of_an_id_follows_its_characters() {
        assert!(bits("12") < 7.0);
        assert!((bits("0123456789ab") - 48.0).abs() < 0.001);
        assert!(bits("786512e2-9e0d-44bd-8f29-789f320fe840") > 120.0);
        assert!(bits("V1StGXR8_Z5jdHi6B-myT") > 100.0);
        assert!(bits("") < 1.0);
    }
}
