//! Each case a test of a program of this package: the built-in server, with the fault that
//! `MCP_CONFORMANCE_FAULT` names, by which the suite sees these tests fail.

use std::process::ExitCode;

use mcp_conformance::{Judge, harness};

fn main() -> ExitCode {
    let mut words = vec![env!("CARGO_BIN_EXE_mcp-conformance").to_owned(), "serve".to_owned()];
    if let Ok(fault) = std::env::var("MCP_CONFORMANCE_FAULT") {
        words.extend(["--fault".to_owned(), fault]);
    }
    harness::main(Judge::command(words))
}
