//! One tool without the server around it: each input is its arguments.
//!
//! The law: nothing panics. It does not hold: `planted` has a bug, which this finds.

#![no_main]

use mcp_conformance::guided::{Call, Tools};
use mcp_conformance_fuzz::planted::{quote, schema};

mcp_conformance::fuzz_tools!(Tools::one("quote", &schema()).expect("the schema is sound"), |call: Call<'_>| {
    // What breaks the schema is refused before it reaches the tool.
    serde_json::from_value(call.arguments).map(|shipment| quote(&shipment))
});
