//! A small server on the official Rust SDK.
//!
//! One of the real servers that the suite judges, as a program and in a test. It uses the defaults of the SDK, so that its
//! findings are findings about the SDK. Its tools cover common features: a required string, structured output, an
//! enumeration, an image, no arguments, a tool annotated destructive and one that always fails.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::JsonSchema;
use rmcp::{Json, ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};

/// A PNG of one white pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==";

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct EchoArguments {
    /// The text to send back.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct AddArguments {
    /// The first summand.
    a: i32,
    /// The second summand.
    b: i32,
}

#[derive(Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Sum {
    /// The sum of both.
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
enum Language {
    English,
    Finnish,
    Japanese,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct GreetArguments {
    /// The language to greet in.
    language: Language,
    /// Whom to greet; everyone when absent.
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct ForgetArguments {
    /// The key to forget.
    key: String,
}

pub(crate) struct Sample;

#[tool_router]
impl Sample {
    /// Sends the text back.
    #[tool(annotations(title = "Echo", read_only_hint = true))]
    fn echo(Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    /// Adds two whole numbers and answers with structured output.
    #[tool(annotations(title = "Add", read_only_hint = true))]
    fn add(Parameters(AddArguments { a, b }): Parameters<AddArguments>) -> Json<Sum> {
        Json(Sum { sum: i64::from(a) + i64::from(b) })
    }

    /// Greets in one of three languages.
    #[tool]
    fn greet(Parameters(GreetArguments { language, name }): Parameters<GreetArguments>) -> String {
        let greeting = match language {
            Language::English => "Hello",
            Language::Finnish => "Hei",
            Language::Japanese => "こんにちは",
        };
        match name {
            Some(name) => format!("{greeting}, {name}"),
            None => greeting.to_owned(),
        }
    }

    /// Answers with a picture of one pixel.
    #[tool(annotations(title = "Picture", read_only_hint = true))]
    fn picture() -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::image(PIXEL, "image/png")])
    }

    /// Takes no arguments and answers with "pong".
    #[tool(annotations(read_only_hint = true))]
    fn nothing() -> String {
        "pong".to_owned()
    }

    /// Says that it forgot a key; annotated destructive, so that clients do not call it by default.
    #[tool(annotations(title = "Forget", read_only_hint = false, destructive_hint = true))]
    fn forget(Parameters(ForgetArguments { key }): Parameters<ForgetArguments>) -> String {
        format!("forgot {key}")
    }

    /// Fails every time, inside the result as tools do.
    #[tool(annotations(title = "Fail", read_only_hint = true))]
    fn fail() -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("this tool always fails")])
    }
}

#[tool_handler(name = "rmcp-server", version = "0.1.0")]
impl ServerHandler for Sample {}
