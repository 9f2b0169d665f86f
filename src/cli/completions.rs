//! `completions` and `man`: what a shell and `man` show of the command line, from its definition.

use std::io::{self, Write};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::args::Args;

/// The name of the program in both.
const PROGRAM: &str = "mcp-conformance";

/// Writes the completions of a shell.
pub(super) fn completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), PROGRAM, &mut text);
    out.write_all(&text)
}

/// Writes the manual page: the program, and after it each subcommand.
pub(super) fn manual_page(out: &mut dyn Write) -> io::Result<()> {
    let mut command = Args::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(out)?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        let page = clap_mangen::Man::new(subcommand.clone());
        writeln!(out, ".SH \"{} {}\"", PROGRAM.to_uppercase(), subcommand.get_name().to_uppercase())?;
        page.render_description_section(out)?;
        page.render_synopsis_section(out)?;
        page.render_options_section(out)?;
    }
    Ok(())
}
