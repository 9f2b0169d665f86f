//! The command line: parses options into settings, prints the results, and sets the exit code.
//!
//! The only module that uses clap, and the only one that prints.

mod args;
mod baseline;
mod cases;
mod completions;
mod config;
mod config_args;
mod config_file_name;
mod coverage;
mod demo;
mod dispatch;
mod docs;
mod doctor;
mod error;
mod exit_code;
mod explain;
mod fault_command;
mod hints;
mod init;
mod init_template;
mod judge;
mod judge_file;
mod list;
mod output;
mod record;
mod recording_args;
mod replay;
mod report_args;
mod report_file;
mod run;
mod saved_reports;
mod serve;
mod server;
mod server_check;
mod server_mistake;
mod settings;
mod stdout;
mod unmatched_tool;
mod values;
mod workflow_commands;

pub(crate) use dispatch::main;
