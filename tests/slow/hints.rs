//! Discovering hints over HTTP.

use mcp_conformance::internals::case::{Hint, parse_hints};
use tempfile::TempDir;

use super::address::unused_address;
use crate::support::{PROGRAM, Trial, describe_error, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("hints/the-hints-are-the-same-over-http", the_hints_are_the_same_over_http)]
}

/// The server whose tools require certain words.
const WORD_SERVER: [&str; 4] = [PROGRAM, "serve", "--fault", "choosy-tools"];

/// The hints that the program discovers for a server.
fn discovered_hints(options: &[&str], server: &[&str]) -> Result<Vec<Hint>, String> {
    let folder = TempDir::new().map_err(describe_error)?;
    let arguments = [&["hints", "--revision", "2025-11-25"], options, &["--"], server].concat();
    let output = program(folder.path(), &arguments)?.with_code(0)?;
    parse_hints("hints", &output.out, &[]).map_err(|error| format!("{error}\n{}", output.text))
}

fn the_hints_are_the_same_over_http() -> Result<(), String> {
    let address = unused_address().to_string();
    let url = format!("http://{address}/mcp");
    let over_stdio = discovered_hints(&[], &WORD_SERVER)?;
    let over_http = discovered_hints(&["--url", &url], &[&WORD_SERVER[..], &["--http", &address]].concat())?;
    // Cases of one transport only are no reason for a hint.
    let requests = |hints: &[Hint]| hints.iter().map(|hint| format!("{:?}", hint.request)).collect::<Vec<_>>();
    if over_http.len() > 3 && requests(&over_stdio) == requests(&over_http) {
        return Ok(());
    }
    Err(format!("over stdio:\n{:#?}\nover HTTP:\n{:#?}", requests(&over_stdio), requests(&over_http)))
}
