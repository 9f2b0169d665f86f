//! The sample server as a program, over stdio, or with an address over Streamable HTTP at `/mcp`. If `prompt` follows, it has
//! a prompt instead of its tools.

mod prompt;
mod sample;

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prompt::OnlyPrompt;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use sample::Sample;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let Some(address) = arguments.next() {
        let listener = TcpListener::bind(address).await?;
        return match arguments.next().as_deref() {
            // Which origins are allowed is up to the author of a server.
            Some("prompt") => {
                let config = StreamableHttpServerConfig::default().with_allowed_origins(["http://localhost"]);
                serve_http(listener, config, || OnlyPrompt).await
            }
            _ => serve_http(listener, StreamableHttpServerConfig::default(), || Sample).await,
        };
    }
    Sample.serve(stdio()).await?.waiting().await?;
    Ok(())
}

/// Serves HTTP with a configuration of the SDK.
async fn serve_http<H: ServerHandler>(
    listener: TcpListener,
    config: StreamableHttpServerConfig,
    handler: impl Fn() -> H + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler()), sessions, config);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = service.clone();
        tokio::spawn(async move {
            let handler = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            let _closed =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), handler).await;
        });
    }
}
