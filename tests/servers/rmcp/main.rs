//! The sample server as a program, over stdio.

mod sample;

use std::error::Error;

use rmcp::ServiceExt;
use rmcp::transport::stdio;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    sample::Sample.serve(stdio()).await?.waiting().await?;
    Ok(())
}
