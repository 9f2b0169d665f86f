//! A server in this process that receives the generated calls, and the rules that its responses must satisfy.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::tools::{Call, Tools};
use crate::fuzz::{Dialect, Domain, ToolSchema};
use crate::spec::Revision;
use crate::wire::{Frame, MessageKind, Splitter};

/// How long a response may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many pages of a tool list are read.
const MAX_PAGES: usize = 100;

/// How much either side may write before the other reads, in bytes.
const CAPACITY: usize = 1 << 20;

/// A server in this process, with one connection for all calls.
///
/// A violation panics, which is how a fuzz target reports a finding: a call without a response, a closed connection,
/// an invalid response, or structured content that the tool's own outputSchema rejects.
pub struct Server {
    tools: Tools,
    outputs: HashMap<String, ToolSchema>,
    connection: RefCell<Connection>,
    runtime: Runtime,
    local: LocalSet,
}

struct Connection {
    pipe: DuplexStream,
    splitter: Splitter,
    ready: Vec<Frame>,
    buffer: Vec<u8>,
    next: u64,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts the server, opens a connection to it and lists its tools.
    ///
    /// # Panics
    /// When the handshake fails, or no tool can be called.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::guided::Server;
    /// use mcp_conformance::reference::{self, FaultSet};
    ///
    /// let server = Server::start(|pipe| async {
    ///     let (reader, writer) = tokio::io::split(pipe);
    ///     reference::serve(reader, writer, &FaultSet::none()).await
    /// });
    /// server.feed(b"the bytes of a fuzzer");
    /// ```
    #[must_use]
    pub fn start<Serve, Served>(serve: Serve) -> Self
    where
        Serve: FnOnce(DuplexStream) -> Served,
        Served: Future + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let local = LocalSet::new();
        let (client_stream, server_stream) = tokio::io::duplex(CAPACITY);
        let served = {
            let _within = runtime.enter();
            serve(server_stream)
        };
        local.spawn_local(async move {
            // Its result shows in the connection.
            let _ended = served.await;
        });
        let connection = Connection {
            pipe: client_stream,
            splitter: Splitter::default(),
            ready: Vec::new(),
            buffer: vec![0; 64 << 10],
            next: 1,
        };
        let connection = RefCell::new(connection);
        let listed = local.block_on(&runtime, open(&mut connection.borrow_mut()));
        let tools = Tools::listed(&Value::Array(listed.clone()));
        let outputs = listed.iter().filter_map(|tool| {
            let schema = tool.get("outputSchema")?;
            let schema = ToolSchema::compile_for(schema, Dialect::Draft202012, Domain::Any).ok()?;
            Some((tool.get("name")?.as_str()?.to_owned(), schema))
        });
        let outputs = outputs.collect();
        let tools = tools.unwrap_or_else(|error| panic!("failed to {error}"));
        Self { tools, outputs, connection, runtime, local }
    }

    /// Generates a call from these bytes, sends it and checks the response.
    ///
    /// # Panics
    /// When the server violates a rule; the message contains the call.
    pub fn feed(&self, bytes: &[u8]) {
        if let Some(call) = self.tools.call(bytes) {
            self.send(&call);
        }
    }

    /// The tools that the server lists.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Sends a call and checks the response; returns it.
    ///
    /// # Panics
    /// When the server violates a rule; the message contains the call.
    pub fn send(&self, call: &Call<'_>) -> Value {
        let params = json!({ "name": call.tool, "arguments": call.arguments });
        let answer =
            self.local.block_on(&self.runtime, request(&mut self.connection.borrow_mut(), "tools/call", &params));
        let fail =
            |violation: String| -> ! { panic!("{violation}\n  tool: {}\n  arguments: {}", call.tool, call.arguments) };
        let answer = answer.unwrap_or_else(|violation| fail(violation));
        if let Err(violation) = self.check(call, &answer) {
            fail(format!("{violation}: {answer}"));
        }
        answer
    }

    fn check(&self, call: &Call<'_>, answer: &Value) -> Result<(), String> {
        let Some(result) = answer.get("result") else {
            let is_error = answer.pointer("/error/code").is_some_and(Value::is_i64);
            return if is_error { Ok(()) } else { Err("the response is neither a result nor an error".to_owned()) };
        };
        if !result.get("content").is_some_and(Value::is_array) {
            return Err("the result has no content".to_owned());
        }
        let failed = result.get("isError") == Some(&Value::Bool(true));
        match (self.outputs.get(call.tool), result.get("structuredContent")) {
            (Some(schema), Some(content)) if !failed && !schema.is_valid(content) => {
                Err("the outputSchema rejects the structured content".to_owned())
            }
            (Some(_), None) if !failed => {
                Err("the tool has an outputSchema, but the result has no structured content".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Opens the connection; returns the tools that the server lists.
async fn open(connection: &mut Connection) -> Vec<Value> {
    let params = json!({
        "protocolVersion": Revision::V2025_06_18.as_str(),
        "capabilities": {},
        "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
    });
    let opened = request(connection, "initialize", &params).await;
    let opened = opened.unwrap_or_else(|violation| panic!("the handshake failed: {violation}"));
    assert!(opened.get("result").is_some(), "the server rejects the handshake: {opened}");
    connection.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await.expect("it is open");
    let mut tools = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = request(connection, "tools/list", &params).await;
        let page = page.unwrap_or_else(|violation| panic!("the tools could not be listed: {violation}"));
        tools.extend(page.pointer("/result/tools").and_then(Value::as_array).cloned().unwrap_or_default());
        match page.pointer("/result/nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    tools
}

/// Sends a request and waits for its response; the error is the rule that the server violates.
async fn request(connection: &mut Connection, method: &str, params: &Value) -> Result<Value, String> {
    let id = connection.next;
    connection.next += 1;
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let exchange = async {
        connection.write(&request).await?;
        loop {
            let frame = connection.read().await?;
            let message = match frame.value {
                Ok(message) => message,
                Err(damage) => return Err(format!("the server wrote a line that {}", damage.describe())),
            };
            match MessageKind::of(&message) {
                // No capability is declared, so the server may only send a ping.
                MessageKind::Request { id, method } => {
                    let answer = match method {
                        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
                        _ => json!({
                            "jsonrpc": "2.0", "id": id,
                                "error": { "code": -32601, "message": "the client does not support this method" }
                        }),
                    };
                    connection.write(&answer).await?;
                }
                _ if message.get("id") == Some(&json!(id)) => return Ok(message),
                _ if message.get("method").is_some() => {}
                _ => return Err(format!("the server sent a response to no request: {message}")),
            }
        }
    };
    match tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await {
        Ok(answered) => answered,
        Err(_elapsed) => Err(format!("no response within {RESPONSE_TIMEOUT:?}")),
    }
}

impl Connection {
    async fn write(&mut self, message: &Value) -> Result<(), String> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.pipe.write_all(&line).await.map_err(|_closed| "the server closed the connection".to_owned())
    }

    async fn read(&mut self) -> Result<Frame, String> {
        while self.ready.is_empty() {
            match self.pipe.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err("the server closed the connection".to_owned()),
                Ok(count) => {
                    let ready = &mut self.ready;
                    self.splitter.push(&self.buffer[..count], |frame| ready.push(frame));
                }
            }
        }
        Ok(self.ready.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{self, FaultSet};

    fn server(faults: &'static [&'static str]) -> Server {
        Server::start(move |pipe| async move {
            let (reader, writer) = tokio::io::split(pipe);
            let faults: FaultSet = faults.iter().map(|name| name.parse().expect("it is known")).collect();
            reference::serve(reader, writer, &faults).await
        })
    }

    fn bytes(seed: u8) -> Vec<u8> {
        (0..200_u8).map(|at| at.wrapping_mul(31) ^ seed.wrapping_mul(77)).collect()
    }

    #[test]
    fn a_conforming_server_passes_whatever_is_called() {
        let server = server(&[]);
        for seed in 0..100 {
            server.feed(&bytes(seed));
        }
    }

    #[test]
    #[should_panic(expected = "the outputSchema rejects the structured content")]
    fn an_output_that_its_schema_rejects_is_found() {
        let server = server(&["structured-mismatch"]);
        for seed in 0..200 {
            server.feed(&bytes(seed));
        }
    }

    #[test]
    #[should_panic(expected = "the server closed the connection")]
    fn a_server_that_closes_the_connection_is_found() {
        let server = Server::start(|mut pipe: DuplexStream| async move {
            let mut buffer = vec![0; 4096];
            let count = pipe.read(&mut buffer).await.expect("we write");
            assert!(count > 0);
            let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
            pipe.write_all(format!("{answer}\n").as_bytes()).await.expect("we read");
            let _list = pipe.read(&mut buffer).await.expect("we write");
            let tools = json!([{ "name": "x", "inputSchema": { "type": "object" } }]);
            let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": { "tools": tools } });
            pipe.write_all(format!("{answer}\n").as_bytes()).await.expect("we read");
            let _call = pipe.read(&mut buffer).await.expect("we write");
        });
        server.feed(b"x");
    }
}
