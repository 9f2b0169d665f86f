//! The checks of tasks: calls that continue after their response.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::index::{ConnectionIndex, method_of};
use super::list::paginations_of;
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::case::LazySchema;
use crate::transcript::Event;
use crate::wire::MessageKind;

const RELATED: &str = "_meta/io.modelcontextprotocol~1related-task/taskId";

/// The state of a task in one response.
struct TaskState<'a> {
    id: &'a str,
    task: &'a Value,
    /// The position of the request.
    requested: usize,
    /// The position of the response.
    received: usize,
    /// Whether it is the response that created the task.
    is_creation: bool,
}

impl TaskState<'_> {
    fn status(&self) -> &str {
        self.task.get("status").and_then(Value::as_str).unwrap_or_default()
    }

    fn is_terminal(&self) -> bool {
        matches!(self.status(), "completed" | "failed" | "cancelled")
    }
}

/// The task that the response to a call creates, in either era.
fn created_task(response: &Value) -> Option<&Value> {
    let result = response.get("result")?;
    let handle = (result.get("resultType").and_then(Value::as_str) == Some("task")).then_some(result);
    result.get("task").filter(|task| task.is_object()).or(handle)
}

/// Every task in the responses to requests, in the order of the requests.
fn task_states<'a>(index: &ConnectionIndex<'a>) -> Vec<TaskState<'a>> {
    let mut all = Vec::new();
    for exchange in &index.exchanges {
        let Some((received, response)) = exchange.responses.first() else { continue };
        let method = method_of(exchange.request);
        let tasks: Vec<&'a Value> = match method {
            "tools/call" => created_task(response).into_iter().collect(),
            "tasks/get" | "tasks/cancel" => response.get("result").into_iter().collect(),
            "tasks/list" => response.pointer("/result/tasks").and_then(Value::as_array).into_iter().flatten().collect(),
            _ => continue,
        };
        for task in tasks {
            if let Some(id) = task.get("taskId").and_then(Value::as_str) {
                let is_creation = method == "tools/call";
                all.push(TaskState { id, task, requested: exchange.sent, received: *received, is_creation });
            }
        }
    }
    all
}

fn task_of(request: &Value) -> Option<&str> {
    request.pointer("/params/taskId").and_then(Value::as_str)
}

/// Checks that task ids are long enough to be hard to guess. A prefix that all ids of a connection have in common
/// does not count. The limit is generous: an id of twelve hexadecimal digits passes.
pub(super) fn ids_unguessable(index: &ConnectionIndex<'_>) -> CheckResult {
    const MIN_BITS: f64 = 48.0;
    let mut checked = CheckResult::default();
    let all = task_states(index);
    let mut known = BTreeSet::new();
    let ids: Vec<&TaskState<'_>> = all.iter().filter(|task| task.is_creation && known.insert(task.id)).collect();
    let fixed = match ids.split_first() {
        Some((first, rest)) if !rest.is_empty() => {
            rest.iter().map(|other| common_prefix(first.id, other.id)).min().unwrap_or(0)
        }
        _ => 0,
    };
    for task in ids {
        let rest: String = task.id.chars().skip(fixed).collect();
        let room = bits(&rest);
        checked.record((room < MIN_BITS).then(|| {
            let part = if fixed > 0 { " after the prefix of all ids" } else { "" };
            let actual = format!("the id `{}` has at most {room:.0} random bits{part}", shortened(task.id, 80));
            Violation::new(actual, "", &[task.requested, task.received])
        }));
    }
    checked
}

fn common_prefix(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count()
}

/// How many random bits a string of these kinds of characters can have.
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

/// Checks that the status of a task that has ended does not change.
pub(super) fn status_final(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let all = task_states(index);
    for later in &all {
        // A response to a request from before the end may show the status before the end.
        let end = all.iter().find(|task| task.id == later.id && task.is_terminal() && task.received < later.requested);
        if let Some(end) = end {
            checked.record((later.status() != end.status()).then(|| {
                let actual = format!("a task that was {} is {}", end.status(), shortened(later.status(), 40));
                Violation::new(actual, "", &[end.requested, end.received, later.requested, later.received])
            }));
        }
    }
    checked
}

/// Checks that the times of each task are timestamps, that the time of its creation does not change, and that its
/// last update is not before it.
pub(super) fn timestamps_consistent(index: &ConnectionIndex<'_>) -> CheckResult {
    static TIMESTAMP: LazyLock<LazySchema> =
        LazyLock::new(|| LazySchema::new(json!({"type": "string", "format": "iso-8601"})));
    /// A time to the second, if it can be compared as a string.
    fn second(time: &str) -> Option<&str> {
        time.get(..19).filter(|_| time.ends_with('Z') && time.as_bytes().get(10) == Some(&b'T'))
    }
    let mut checked = CheckResult::default();
    let mut first: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for task in task_states(index) {
        let positions = [task.requested, task.received];
        let malformed = ["createdAt", "lastUpdatedAt"].into_iter().find_map(|name| match task.task.get(name) {
            None => Some(format!("a task has no {name}")),
            Some(time) if !TIMESTAMP.fits(time) => {
                Some(format!("{name} of a task is {}", shortened(&time.to_string(), 60)))
            }
            Some(_) => None,
        });
        let time = |name: &str| task.task.get(name).and_then(Value::as_str).and_then(second);
        let problem = malformed.or_else(|| {
            let (made, updated) = time("createdAt").zip(time("lastUpdatedAt"))?;
            let (before, _) = *first.entry(task.id).or_insert((made, task.received));
            if before == made {
                (updated < made).then(|| format!("a task created at {made} was last updated at {updated}"))
            } else {
                Some(format!("createdAt of a task was {before} and is {made}"))
            }
        });
        checked.record(problem.map(|problem| Violation::new(problem, "", &positions)));
    }
    checked
}

/// Checks that `tasks/result` is answered only after the task has ended.
pub(super) fn result_after_end(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let all = task_states(index);
    for exchange in index.exchanges_of("tasks/result") {
        let (Some(id), Some((answered, _))) = (task_of(exchange.request), exchange.responses.first()) else { continue };
        let is_cancelled = index.record.entries.iter().any(|entry| {
            entry.sent().is_some_and(|sent| {
                method_of(sent) == "notifications/cancelled"
                    && sent.pointer("/params/requestId") == exchange.request.get("id")
            })
        });
        let next = all.iter().find(|task| task.id == id && task.requested > *answered && !task.is_creation);
        if let (Some(next), false) = (next, is_cancelled) {
            checked.record((!next.is_terminal()).then(|| {
                let actual = format!("the task is {} after the response to tasks/result", shortened(next.status(), 40));
                Violation::new(actual, "tasks/result", &[exchange.sent, *answered, next.requested, next.received])
            }));
        }
    }
    checked
}

/// Checks that each result of `tasks/result` names its task.
pub(super) fn result_names_task(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for exchange in index.exchanges_of("tasks/result") {
        let (Some(id), Some((answered, response))) = (task_of(exchange.request), exchange.responses.first()) else {
            continue;
        };
        let Some(result) = response.get("result") else { continue };
        let related = result.pointer(&format!("/{RELATED}"));
        checked.record((related.and_then(Value::as_str) != Some(id)).then(|| {
            let actual = related.map_or_else(|| "no related-task".to_owned(), |other| format!("related-task {other}"));
            Violation::new(actual, "tasks/result", &[exchange.sent, *answered])
        }));
    }
    checked
}

/// Checks that a task which existed before the list was read, and still exists after it, is in the list.
pub(super) fn listed(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let all = task_states(index);
    for pages in paginations_of(index, "tasks/list") {
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else { continue };
        if last.result.get("nextCursor").is_some_and(|cursor| !cursor.is_null()) {
            continue;
        }
        let items: BTreeSet<&str> = pages
            .iter()
            .filter_map(|page| page.result.get("tasks")?.as_array())
            .flatten()
            .filter_map(|task| task.get("taskId")?.as_str())
            .collect();
        let positions: Vec<usize> = pages.iter().flat_map(|page| page.positions).collect();
        let mut known = BTreeSet::new();
        for created in
            all.iter().filter(|task| task.is_creation && task.received < first.positions[0] && known.insert(task.id))
        {
            let later = index.exchanges_of("tasks/get").find(|get| {
                let result = get.responses.first().and_then(|(_, response)| response.get("result"));
                get.sent > last.positions[1] && task_of(get.request) == Some(created.id) && result.is_some()
            });
            if let Some(later) = later {
                checked.record((!items.contains(created.id)).then(|| {
                    let actual =
                        format!("tasks/get returns `{}`, but the list does not contain it", shortened(created.id, 80));
                    Violation::new(actual, "tasks/list", &[positions.as_slice(), &[later.sent]].concat())
                }));
            }
        }
    }
    checked
}

/// Checks that the task of a failed tool has the status `failed` and a `statusMessage`.
pub(super) fn failure_reported(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let all = task_states(index);
    for exchange in index.exchanges_of("tasks/result") {
        let (Some(id), Some((answered, response))) = (task_of(exchange.request), exchange.responses.first()) else {
            continue;
        };
        if response.pointer("/result/isError") != Some(&Value::Bool(true)) {
            continue;
        }
        let ended = all.iter().find(|task| task.id == id && task.is_terminal());
        if let Some(task) = ended {
            let problem = match task.status() {
                "completed" => Some("the task of a failed tool has the status completed"),
                "failed" if task.task.get("statusMessage").is_none() => Some("a failed task has no statusMessage"),
                _ => None,
            };
            checked.record(
                problem.map(|p| Violation::new(p, "", &[task.requested, task.received, exchange.sent, *answered])),
            );
        }
    }
    checked
}

/// Checks that a request which the server makes while the client waits for the result of a task that needs input
/// names the task.
pub(super) fn input_names_task(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let all = task_states(index);
    for exchange in index.exchanges_of("tasks/result") {
        let Some(id) = task_of(exchange.request) else { continue };
        let needs = |task: &&TaskState<'_>| task.id == id && task.status() == "input_required";
        let Some(task) = all.iter().find(needs).filter(|task| task.received < exchange.sent) else { continue };
        let until = exchange.responses.first().map_or(usize::MAX, |(at, _)| *at);
        let request = index.received().find(|(position, message)| {
            let is_request =
                matches!(MessageKind::of(message), MessageKind::Request { method, .. } if method != "ping");
            is_request && (exchange.sent..until).contains(position)
        });
        let Some((position, request)) = request else { continue };
        let related = request.pointer(&format!("/params/{RELATED}")).and_then(Value::as_str);
        checked.record((related != Some(id)).then(|| {
            let actual = format!("{} without the task as related-task", method_of(request));
            Violation::new(actual, "", &[task.requested, task.received, exchange.sent, position])
        }));
    }
    checked
}

/// Checks that no progress is reported on a task that has ended.
pub(super) fn progress_ends_with_task(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    // Over HTTP, messages of different streams can overtake each other, so their order proves nothing.
    if index.record.entries.iter().any(|entry| matches!(entry.event, Event::HttpRequest(_))) {
        return checked;
    }
    let all = task_states(index);
    for exchange in index.exchanges_of("tools/call") {
        let token = exchange.request.pointer("/params/_meta/progressToken");
        let Some((answered, response)) = exchange.responses.first() else { continue };
        let id = created_task(response).and_then(|task| task.get("taskId")).and_then(Value::as_str);
        let (Some(token), Some(id)) = (token, id) else { continue };
        let end = all.iter().find(|task| task.id == id && task.is_terminal() && !task.is_creation);
        for (position, message) in index.received() {
            if method_of(message) == "notifications/progress"
                && message.pointer("/params/progressToken") == Some(token)
                && position > *answered
            {
                let end_before = end.filter(|end| end.received < position);
                checked.record(end_before.map(|end| {
                    Violation::new(
                        "progress on a task that has ended",
                        "",
                        &[exchange.sent, end.requested, end.received, position],
                    )
                }));
            }
        }
    }
    checked
}

/// Checks that only a result of `tools/call` creates a task, where the client declares the extension.
pub(super) fn only_from_tool_call(index: &ConnectionIndex<'_>) -> CheckResult {
    const EXTENSIONS: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";
    let mut checked = CheckResult::default();
    for exchange in &index.exchanges {
        let declared = exchange.request.pointer(EXTENSIONS).and_then(|all| all.get("io.modelcontextprotocol/tasks"));
        let method = method_of(exchange.request);
        let Some((answered, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result").filter(|_| declared.is_some() && method != "tools/call") else {
            continue;
        };
        let is_task = result.get("resultType").and_then(Value::as_str) == Some("task");
        checked.record(is_task.then(|| Violation::new("a result of type task", method, &[exchange.sent, *answered])));
    }
    checked
}

/// Checks that a key in the `inputRequests` of a task always means the same request.
pub(super) fn input_keys_not_reused(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known: BTreeMap<(&str, &str), (&Value, [usize; 2])> = BTreeMap::new();
    for task in task_states(index) {
        for (key, request) in task.task.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let here = [task.requested, task.received];
            let (earlier, first) = *known.entry((task.id, key)).or_insert((request, here));
            checked.record((earlier != request).then(|| {
                let actual = format!("the key `{}` is used for two different requests", shortened(key, 60));
                Violation::new(actual, "", &[first, here].concat())
            }));
        }
    }
    checked
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn the_bits_of_an_id_depend_on_its_characters() {
        assert!(bits("12") < 7.0);
        assert!((bits("0123456789ab") - 48.0).abs() < 0.001);
        assert!(bits("786512e2-9e0d-44bd-8f29-789f320fe840") > 120.0);
        assert!(bits("V1StGXR8_Z5jdHi6B-myT") > 100.0);
        assert!(bits("") < 1.0);
    }
}
