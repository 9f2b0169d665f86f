//! The options that choose a configuration, and those of the subcommands that write files for one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::config_file_name::FILE_NAME;
use super::server::ServerArgs;

/// The options that choose a configuration.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Configuration")]
pub(super) struct ConfigArgs {
    /// Configuration: a TOML file like mcp-conformance.toml, or a JSON file of an MCP client, such as `.mcp.json` or
    /// `.vscode/mcp.json`, which lists servers [default: mcp-conformance.toml here or in a folder above].
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Server in the JSON file of `--config` [default: the only one].
    #[arg(long = "server", value_name = "NAME", id = "server_name")]
    pub(super) server_name: Option<String>,

    /// Profile of mcp-conformance.toml [default: none].
    #[arg(long, value_name = "NAME", conflicts_with = "no_config")]
    pub(super) profile: Option<String>,

    /// Do not look for mcp-conformance.toml.
    #[arg(long)]
    pub(super) no_config: bool,
}

/// A CI system for which `init` writes a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CiSystem {
    /// A workflow of GitHub Actions.
    Github,
    /// A pipeline of GitLab CI.
    Gitlab,
}

/// The arguments of `init`.
#[derive(Debug, ClapArgs)]
pub(super) struct InitArgs {
    /// The command that starts the server, with its arguments, or the URL of a running server, after `--`; it is
    /// started once, to see what it supports, and no tool is called unless it is annotated `readOnlyHint: true`.
    #[arg(value_name = "SERVER", last = true)]
    pub(super) server: Vec<OsString>,

    /// File to write; an existing file is not overwritten.
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    pub(super) output: PathBuf,

    /// Also write a workflow that runs mcp-conformance in CI [default: none].
    #[arg(long, value_name = "SYSTEM", value_enum)]
    pub(super) ci: Option<CiSystem>,

    #[command(flatten)]
    pub(super) connection: ServerArgs,
}

/// The arguments of `completions`.
#[derive(Debug, ClapArgs)]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(super) shell: clap_complete::Shell,
}
