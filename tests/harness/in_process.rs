//! Each case as a test of a server in this process: a complete example for your crate.
//!
//! `cargo test --features harness --test in_process`, with names, `--exact` and `--list` as for any other test, or
//! `cargo nextest run --features harness --test in_process`.

#[path = "../servers/rmcp/sample.rs"]
mod sample;

use std::error::Error;
use std::process::ExitCode;

use mcp_conformance::{Judge, Server, Settings, harness};
use rmcp::ServiceExt;
use sample::Sample;

fn main() -> ExitCode {
    // Each connection gets a server of its own.
    let server = Server::in_process(|pipe| async {
        Sample.serve(pipe).await?.waiting().await?;
        Ok::<(), Box<dyn Error>>(())
    });
    let settings = Settings {
        // The known findings of the SDK, each with its reason.
        baseline: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/baselines/rmcp.jsonc").into()),
        fuzz: None,
        ..Settings::default()
    };
    harness::main(Judge::new(server).settings(settings))
}
