//! Whether a tool is gone: the server has said that its tools changed, and lists it no more.

use std::time::Duration;

use crate::check::Execution;
use crate::run::pagination::list_tools;
use crate::session::Session;
use crate::transcript::messages;

/// The errors of a server that does not know a tool.
const UNKNOWN_TOOL: [i64; 2] = [-32602, -32601];

/// Why an execution for a tool proves nothing about its calls: the tool is gone. The list is read again where the server has
/// said that its tools changed, and answers a call as that of an unknown one.
pub(super) async fn reason_gone(
    session: &mut Session,
    execution: &Execution,
    tool: Option<&str>,
    timeout: Duration,
) -> Option<String> {
    let tool = tool?;
    if !rejects_call(execution, tool) || !has_changed_tools(session) {
        return None;
    }
    let limit = session.response_timeout(timeout);
    let pages = list_tools(session, limit).await;
    let mut listed = pages.iter().filter_map(|page| page.get("tools")?.as_array()).flatten();
    // A list that is not answered shows nothing.
    let is_gone =
        !pages.is_empty() && !listed.any(|definition| definition.get("name").is_some_and(|name| name == tool));
    is_gone.then(|| "the server has said that its tools changed, and does not list the tool any more".to_owned())
}

/// Whether a call of a tool is answered with an error as for one that the server does not know.
fn rejects_call(execution: &Execution, tool: &str) -> bool {
    execution.transcript.exchanges().iter().any(|exchange| {
        let is_call = exchange.request.pointer("/params/name").is_some_and(|name| name == tool);
        let code = |response: &serde_json::Value| response.pointer("/error/code")?.as_i64();
        is_call
            && exchange
                .responses
                .iter()
                .any(|(_, response)| code(response).is_some_and(|code| UNKNOWN_TOOL.contains(&code)))
    })
}

fn has_changed_tools(session: &Session) -> bool {
    let record = session.transcript_from(0);
    let mut received = record.entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    received.any(|message| message.get("method").is_some_and(|method| method == "notifications/tools/list_changed"))
}
