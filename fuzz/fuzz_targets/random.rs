//! The tool with the planted bug, called at random: a thousand calls from the same generator for each input, whose
//! bytes are ignored. The baseline for `rmcp_tool`.
//!
//! `cargo fuzz run --sanitizer none random -- -runs=10000` makes ten million calls and does not find the bug.

#![no_main]

use std::sync::{LazyLock, Mutex, PoisonError};

use libfuzzer_sys::fuzz_target;
use mcp_conformance::fuzz::Random;
use mcp_conformance::guided::Tools;
use mcp_conformance_fuzz::planted::{quote, schema};

static TOOLS: LazyLock<Tools> = LazyLock::new(|| Tools::one("quote", &schema()).expect("the schema is usable"));
static RANDOM: LazyLock<Mutex<Random>> = LazyLock::new(|| {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    Mutex::new(Random::new(seed))
});

fuzz_target!(|_bytes: &[u8]| {
    let mut random = RANDOM.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..1_000 {
        let Some(call) = TOOLS.call_by(&mut *random) else { continue };
        if let Ok(shipment) = serde_json::from_value(call.arguments) {
            let _priced = quote(&shipment);
        }
    }
});
