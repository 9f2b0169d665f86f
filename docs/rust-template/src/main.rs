//! A server with one tool, over stdio.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::JsonSchema;
use rmcp::transport::stdio;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Measurement {
    /// The temperature in degrees Celsius.
    #[schemars(range(min = -273.15, max = 1000.0))]
    celsius: f64,
}

struct Thermometer;

#[tool_router]
impl Thermometer {
    #[tool(description = "Converts a temperature to degrees Fahrenheit", annotations(read_only_hint = true))]
    fn to_fahrenheit(&self, Parameters(Measurement { celsius }): Parameters<Measurement>) -> String {
        format!("{} °F", celsius * 1.8 + 32.0)
    }
}

#[tool_handler]
impl ServerHandler for Thermometer {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Standard output belongs to the protocol: write logs to standard error.
    Thermometer.serve(stdio()).await?.waiting().await?;
    Ok(())
}
