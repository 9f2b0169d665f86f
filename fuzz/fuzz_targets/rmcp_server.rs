//! A whole server on the Rust SDK: each input is a call of one of its tools.
//!
//! Property: each call has a response, and nothing panics. It does not hold: this target finds the bug in `planted`.

#![no_main]

use mcp_conformance_fuzz::planted::Freight;
use rmcp::ServiceExt;

mcp_conformance::fuzz_server!(|pipe| async {
    let server = Freight.serve(pipe).await.expect("the handshake succeeds");
    server.waiting().await
});
