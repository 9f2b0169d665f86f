//! Each case a test of a server within this process: the worked example for a crate of yours.
//!
//! `cargo test --features harness --test in_process`, with names, `--exact` and `--list` as for any other test, or
//! `cargo nextest run --features harness --test in_process`.

#[path = "../servers/rmcp/sample.rs"]
mod sample;

use std::error::Error;
use std::process::ExitCode;

use mcp_conformance::{Judge, harness};
use rmcp::ServiceExt;
use sample::Sample;

fn main() -> ExitCode {
    // Each connection gets a server of its own.
    let judge = Judge::in_process(|pipe| async {
        Sample.serve(pipe).await?.waiting().await?;
        Ok::<(), Box<dyn Error>>(())
    });
    // What is known of the SDK, line by line with its reason.
    harness::main(judge.baseline(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/baselines/rmcp.jsonc")))
}
