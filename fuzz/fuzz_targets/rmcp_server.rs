//! A whole server on the Rust SDK: each input is a call of one of its tools.
//!
//! The law: each call is answered, and nothing panics. It does not hold: `planted` has a bug, which this finds.

#![no_main]

use mcp_conformance_fuzz::planted::Freight;
use rmcp::ServiceExt;

mcp_conformance::fuzz_server!(|pipe| async {
    let server = Freight.serve(pipe).await.expect("the handshake is sound");
    server.waiting().await
});
