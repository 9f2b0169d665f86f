//! Each case of the suite as a test of the server.

use std::process::ExitCode;

use mcp_conformance::{Accept, Judge, Server, Settings, harness};

fn main() -> ExitCode {
    let server = Server::command(env!("CARGO_BIN_EXE_my-server"));
    // What the SDK does on every server is shown, and fails no test.
    let settings = Settings { accept: Some(Accept::Sdk), ..Settings::default() };
    harness::main(Judge::new(server).settings(settings))
}
