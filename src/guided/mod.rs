//! Coverage-guided fuzzing of your own server's tools, within the process of a fuzz target.
//!
//! A fuzzer such as libFuzzer supplies bytes and observes which branches they reach. Here the bytes drive the
//! generator of [`ToolSchema`](crate::fuzz::ToolSchema): each input is a call whose arguments the tool's inputSchema
//! accepts, or nearly accepts, and a mutation changes a value or the structure, never the JSON syntax.
//!
//! # From zero to fuzzing your tools
//!
//! 1. `cargo install cargo-fuzz`, then `cargo fuzz init` in your crate, which creates `fuzz/`.
//! 2. In `fuzz/Cargo.toml`, in addition to what is there:
//!
//!    ```toml
//!    [dependencies]
//!    mcp-conformance = { version = "0.1", default-features = false }
//!    tokio = { version = "1", features = ["rt"] }
//!    ```
//! 3. `fuzz/fuzz_targets/server.rs`, here with the official SDK:
//!
//!    ```ignore
//!    #![no_main]
//!
//!    use rmcp::ServiceExt;
//!
//!    mcp_conformance::fuzz_server!(|pipe| async {
//!        let server = my_server::MyServer::default().serve(pipe).await.expect("the handshake is sound");
//!        server.waiting().await
//!    });
//!    ```
//! 4. `cargo +nightly fuzz run server`, or with a stable toolchain `cargo fuzz run --sanitizer none server`.
//!
//! The run ends at the first call that panics, closes the connection, gets no response, or gets a response that
//! violates the tool's outputSchema, and the bytes of that call are written to a file. `cargo fuzz run server <file>`
//! repeats the call, which is printed before the panic. `cargo fuzz tmin server <file>` minimizes it.
//!
//! A function without a server is fuzzed in the same way with [`fuzz_tools!`](crate::fuzz_tools).
//!
//! # Speed
//!
//! A mutation changes one value of a call and keeps all others. It also generates the call, before libFuzzer begins
//! to count branches, so that the branches of the generator are not mistaken for new branches of the server. Suitable
//! settings of libFuzzer, after `--`:
//!
//! - `-mutate_depth=1`: one change per call; five changes at once undo what reached the last branch;
//! - `-use_counters=0`: an input is kept for a new branch, not for how often a branch was taken;
//! - `-max_len=512`: a call of a few dozen values needs no larger input.

mod server;
mod tools;
mod tree;

pub use server::Server;
pub use tools::{Call, Tools, ToolsError};

/// Makes a fuzz target of a whole server: every tool that it lists.
///
/// The argument serves one connection, as that of [`Server::in_process`](crate::Server::in_process) does. See
/// [`guided`](crate::guided). The crate of the target needs `libfuzzer-sys`, and `#![no_main]`.
///
/// # Examples
///
/// ```
/// # // What the crate `libfuzzer-sys` has, without the fuzzer.
/// # extern crate self as libfuzzer_sys;
/// # #[macro_export] macro_rules! fuzz_target {
/// #     (|$bytes:ident: &[u8]| $body:expr) => { fn run_target($bytes: &[u8]) { $body; } };
/// # }
/// # #[macro_export] macro_rules! fuzz_mutator {
/// #     (|$bytes:ident: &mut [u8], $size:ident: usize, $max:ident: usize, $seed:ident: u32| $body:block) => {
/// #         fn mutate($bytes: &mut [u8], $size: usize, $max: usize, $seed: u32) -> usize $body
/// #     };
/// # }
/// # #[macro_export] macro_rules! fuzz_crossover {
/// #     (|$bytes:ident: &[u8], $other:ident: &[u8], $out:ident: &mut [u8], $seed:ident: u32| $body:block) => {
/// #         fn cross($bytes: &[u8], $other: &[u8], $out: &mut [u8], $seed: u32) -> usize $body
/// #     };
/// # }
/// mcp_conformance::fuzz_server!(|pipe| async move {
///     // With the official SDK: `MyServer.serve(pipe).await?.waiting().await`
///     let (reader, writer) = tokio::io::split(pipe);
///     mcp_conformance::reference::serve(reader, writer, &Default::default()).await
/// });
/// # fn main() {
/// #     let mut bytes = [0; 64];
/// #     let size = mutate(&mut bytes, 0, 64, 7);
/// #     assert!(size > 0, "a mutation makes a call");
/// #     run_target(&bytes[..size]);
/// #     let mut out = [0; 64];
/// #     assert!(cross(&bytes[..size], &bytes[..size], &mut out, 7) > 0);
/// # }
/// ```
#[macro_export]
macro_rules! fuzz_server {
    ($serve:expr) => {
        ::std::thread_local! {
            static MCP_CONFORMANCE_SERVER: $crate::guided::Server = $crate::guided::Server::start($serve);
        }
        ::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| MCP_CONFORMANCE_SERVER.with(|server| server.feed(bytes)));
        ::libfuzzer_sys::fuzz_mutator!(|bytes: &mut [u8], size: usize, _max_size: usize, seed: u32| {
            MCP_CONFORMANCE_SERVER.with(|server| server.tools().mutate(bytes, size, u64::from(seed)))
        });
        ::libfuzzer_sys::fuzz_crossover!(|bytes: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
            MCP_CONFORMANCE_SERVER.with(|server| server.tools().cross(bytes, other, out, u64::from(seed)))
        });
    };
}

/// Makes a fuzz target of functions that take the arguments of tools.
///
/// The first argument creates the [`Tools`](crate::guided::Tools), once; the second receives each
/// [`Call`](crate::guided::Call). See [`guided`](crate::guided). The crate of the target needs `libfuzzer-sys`, and
/// `#![no_main]`.
///
/// # Examples
///
/// ```
/// # // What the crate `libfuzzer-sys` has, without the fuzzer.
/// # extern crate self as libfuzzer_sys;
/// # #[macro_export] macro_rules! fuzz_target {
/// #     (|$bytes:ident: &[u8]| $body:expr) => { fn run_target($bytes: &[u8]) { $body; } };
/// # }
/// # #[macro_export] macro_rules! fuzz_mutator {
/// #     (|$bytes:ident: &mut [u8], $size:ident: usize, $max:ident: usize, $seed:ident: u32| $body:block) => {
/// #         fn mutate($bytes: &mut [u8], $size: usize, $max: usize, $seed: u32) -> usize $body
/// #     };
/// # }
/// # #[macro_export] macro_rules! fuzz_crossover {
/// #     (|$bytes:ident: &[u8], $other:ident: &[u8], $out:ident: &mut [u8], $seed:ident: u32| $body:block) => {
/// #         fn cross($bytes: &[u8], $other: &[u8], $out: &mut [u8], $seed: u32) -> usize $body
/// #     };
/// # }
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use mcp_conformance::guided::Tools;
/// use serde_json::{Value, json};
///
/// fn schema() -> Value {
///     json!({ "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] })
/// }
///
/// /// The function under test.
/// fn search(arguments: &Value) -> usize {
///     arguments["query"].as_str().map_or(0, str::len)
/// }
///
/// static CALLS: AtomicUsize = AtomicUsize::new(0);
///
/// mcp_conformance::fuzz_tools!(
///     Tools::one("search", &schema()).expect("the schema is sound"),
///     |call: mcp_conformance::guided::Call<'_>| {
///         CALLS.fetch_add(1, Ordering::Relaxed);
///         search(&call.arguments)
///     }
/// );
/// # fn main() {
/// #     let mut bytes = [0; 64];
/// #     let size = mutate(&mut bytes, 0, 64, 7);
/// #     run_target(&bytes[..size]);
/// #     assert_eq!(CALLS.load(Ordering::Relaxed), 1);
/// #     let mut out = [0; 64];
/// #     assert!(cross(&bytes[..size], &bytes[..size], &mut out, 7) > 0);
/// # }
/// ```
#[macro_export]
macro_rules! fuzz_tools {
    ($tools:expr, $call:expr) => {
        static MCP_CONFORMANCE_TOOLS: ::std::sync::LazyLock<$crate::guided::Tools> =
            ::std::sync::LazyLock::new(|| $tools);
        ::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            if let Some(call) = MCP_CONFORMANCE_TOOLS.call(bytes) {
                let take: &dyn Fn($crate::guided::Call<'_>) = &|call| drop(($call)(call));
                take(call);
            }
        });
        ::libfuzzer_sys::fuzz_mutator!(|bytes: &mut [u8], size: usize, _max_size: usize, seed: u32| {
            MCP_CONFORMANCE_TOOLS.mutate(bytes, size, u64::from(seed))
        });
        ::libfuzzer_sys::fuzz_crossover!(|bytes: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
            MCP_CONFORMANCE_TOOLS.cross(bytes, other, out, u64::from(seed))
        });
    };
}
