//! Judges any Model Context Protocol server against every revision of the specification.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
