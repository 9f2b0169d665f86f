//! The command line: parses options into settings, prints the results, and sets the exit code.
//!
//! The only module that uses clap, and the only one that prints.

mod args;
mod baseline;
mod cases;
mod coverage;
mod demo;
mod dispatch;
mod error;
mod exit_code;
mod explain;
mod fault_command;
mod hints;
mod judge;
mod list;
mod output;
mod replay;
mod run;
mod saved_reports;
mod serve;
mod server;
mod settings;
mod values;
mod workflow_commands;

pub(crate) use dispatch::main;
