//! A server on the official Rust SDK with a bug that hides behind an enumeration, a length and a pattern.
//!
//! An example for your own server: `fuzz_targets/rmcp_server.rs` finds the bug through the whole server,
//! `fuzz_targets/rmcp_tool.rs` in the function alone, and `fuzz_targets/random.rs` shows that random calls do not.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Letter,
    Parcel,
    Pallet,
    Fragile,
    Frozen,
    Live,
    Bulk,
    Hazardous,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct Shipment {
    /// The kind of goods.
    pub class: Class,
    /// The weight of each piece, in grams.
    #[schemars(length(min = 1, max = 12), inner(range(min = 1, max = 40_000)))]
    pub pieces: Vec<u32>,
    /// The lane and the number on it: `ABC-123`.
    #[schemars(regex(pattern = r"^[A-Z]{3}-[0-9]{3}$"))]
    pub reference: String,
}

/// The schema of the tool's arguments.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Shipment).to_value()
}

/// Computes the price of a shipment; the text lists the steps.
#[must_use]
pub fn quote(shipment: &Shipment) -> String {
    let mut steps = vec![format!("{:?}, {} pieces", shipment.class, shipment.pieces.len())];
    let weight: u64 = shipment.pieces.iter().map(|grams| u64::from(*grams)).sum();
    let mut price = 500 + weight / 100;
    if shipment.class == Class::Hazardous {
        steps.push("declared goods".to_owned());
        price *= 3;
        if shipment.pieces.len() == 7 {
            steps.push("a full rack".to_owned());
            price -= discount(shipment.reference.as_bytes(), &mut steps);
        }
    }
    steps.push(format!("{price} cents"));
    steps.join("; ")
}

/// The discount for one lane; its last step is the bug.
fn discount(reference: &[u8], steps: &mut Vec<String>) -> u64 {
    const LANE: [u8; 7] = *b"QXZ-417";
    let mut discount = 0;
    for (at, (given, wanted)) in reference.iter().zip(LANE).enumerate() {
        if *given != wanted {
            return discount;
        }
        match at {
            0 => steps.push("northern".to_owned()),
            1 => steps.push("by night".to_owned()),
            2 => steps.push("by sea".to_owned()),
            4 => discount += 10,
            5 => steps.push(format!("less {discount}")),
            6 => panic!("the planted bug: nobody has priced this lane"),
            _ => {}
        }
    }
    discount
}

/// The server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Freight;

#[tool_router]
impl Freight {
    /// Says what a shipment costs.
    #[tool(annotations(read_only_hint = true))]
    fn quote(Parameters(shipment): Parameters<Shipment>) -> String {
        quote(&shipment)
    }

    /// The classes that are taken.
    #[tool(annotations(read_only_hint = true))]
    fn classes() -> String {
        format!("{:?} to {:?}", Class::Letter, Class::Hazardous)
    }
}

#[tool_handler(name = "freight", version = "0.1.0")]
impl ServerHandler for Freight {}
