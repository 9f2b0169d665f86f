//! Reads the lists of a server, to compare them before and after calls.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::server_process::ServerProcess;
use crate::campaign::limits::{MAX_LIST_DELAY, MAX_LIST_SLOWDOWN};

/// How many pages of a list are compared.
const MAX_PAGES: usize = 16;

/// The lists of a server, each by method and member of the result.
const LISTS: [(&str, &str); 3] =
    [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")];

/// Reads the lists that a server supports.
#[derive(Debug)]
pub(super) struct ListReader {
    lists: &'static [(&'static str, &'static str)],
    /// How long it took to read them first.
    first: Option<Duration>,
}

impl ListReader {
    /// Reads the list of tools, and those of resources and prompts if the server has them.
    pub(in crate::campaign) fn new(has_resources: bool, has_prompts: bool) -> Self {
        let lists = match (has_resources, has_prompts) {
            (true, true) => &LISTS,
            (true, false) => &LISTS[..2],
            _ => &LISTS[..1],
        };
        Self { lists, first: None }
    }

    /// The lists, in the form that is compared; `None` if the server does not answer within the limit per page, or takes much
    /// longer for all of them than at first, as one does that has become slow.
    pub(in crate::campaign) async fn read(
        &mut self,
        process: &mut ServerProcess,
        limit: Duration,
    ) -> Result<Option<Value>, String> {
        if self.lists.is_empty() {
            return Ok(None);
        }
        process.ensure_started().await?;
        let whole = Instant::now();
        let longest = self.first.map(|first| first * MAX_LIST_SLOWDOWN + MAX_LIST_DELAY);
        let mut read = Vec::new();
        for (method, member) in self.lists {
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                if longest.is_some_and(|longest| whole.elapsed() > longest) {
                    return Ok(None);
                }
                let began = Instant::now();
                let Some(mut result) = process.list_page(method, cursor, limit).await else {
                    if began.elapsed() >= limit {
                        // Do not try again, as each time would take as long.
                        self.lists = &[];
                    }
                    return Ok(None);
                };
                cursor = result.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
                read.push(result.get_mut(*member).map(Value::take).unwrap_or_default());
                if cursor.is_none() {
                    break;
                }
            }
        }
        self.first.get_or_insert(whole.elapsed());
        Ok(Some(Value::Array(read)))
    }
}
