//! Each case as a test of a program of this package: the built-in server, with the fault that
//! `MCP_CONFORMANCE_FAULT` names, so that the suite can check that these tests fail.

use std::process::ExitCode;

use mcp_conformance::{Judge, Server, Settings, harness};

fn main() -> ExitCode {
    let mut server = Server::command(env!("CARGO_BIN_EXE_mcp-conformance")).arg("serve");
    if let Some(fault) = std::env::var_os("MCP_CONFORMANCE_FAULT") {
        server = server.arg("--fault").arg(fault);
    }
    harness::main(Judge::new(server).settings(Settings { fuzz: None, ..Settings::default() }))
}
