//! A server on the official Rust SDK that has a prompt and no tools.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{PromptMessage, Role};
use rmcp::schemars::JsonSchema;
use rmcp::{ServerHandler, prompt, prompt_handler, prompt_router};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct RepeatArguments {
    /// The text to repeat.
    text: String,
}

pub(crate) struct OnlyPrompt;

#[prompt_router]
impl OnlyPrompt {
    /// Asks for the text.
    #[prompt]
    async fn repeat(&self, Parameters(RepeatArguments { text }): Parameters<RepeatArguments>) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, text)]
    }
}

#[prompt_handler(router = Self::prompt_router())]
impl ServerHandler for OnlyPrompt {}
