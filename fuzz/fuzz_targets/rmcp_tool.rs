//! One tool without the server around it: each input is its arguments.
//!
//! Property: nothing panics. It does not hold: this target finds the bug in `planted`.

#![no_main]

use mcp_conformance::guided::{Call, Tools};
use mcp_conformance_fuzz::planted::{quote, schema};

mcp_conformance::fuzz_tools!(Tools::one("quote", &schema()).expect("the schema is usable"), |call: Call<'_>| {
    // Arguments that violate the schema are rejected before they reach the tool.
    serde_json::from_value(call.arguments).map(|shipment| quote(&shipment))
});
