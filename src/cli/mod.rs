//! The command line: turns words into a plan, prints what came of it, and says so in the exit code.
//!
//! The only part that knows clap, and the only one that prints.

mod again;
mod args;
mod cases;
mod command;
mod coverage;
mod demo;
mod error;
mod exit;
mod explain;
mod gate;
mod hints;
mod http;
mod inert;
mod judge;
mod list;
mod output;
mod render;
mod replay;
mod serve;
mod word;

pub(crate) use command::main;
