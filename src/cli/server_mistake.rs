//! The mistakes in the words that name a server, with what to write instead.

/// A mistake. The message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ServerMistake {
    /// A subcommand follows options, where it would be taken for a server.
    #[error(
        "`{0}` after options: to run the subcommand, put it first (`mcp-conformance {0} [OPTIONS]`); to judge a server of that name, write `-- {0}`"
    )]
    MisplacedSubcommand(String),
    /// A name that is kept for a subcommand.
    #[error("`{0}` is reserved for a subcommand: to judge a server of that name, write `./{0}` or `-- {0}`")]
    Reserved(String),
    /// A name that is nearly a subcommand.
    #[error(
        "there is neither a subcommand nor a program `{name}` (did you mean `{nearest}`?); to judge a server of that name, write `./{name}` or `-- {name}`"
    )]
    MistypedSubcommand {
        /// What is typed.
        name: String,
        /// The subcommand.
        nearest: String,
    },
    /// An option of this program follows the command of the server.
    #[error(
        "`{option}` after the server's command would be passed to the server: put options of mcp-conformance first (`mcp-conformance {option} ... -- {server}`); if it is an option of the server, write `--` before the command (`mcp-conformance -- {server} {option}`)"
    )]
    OptionAfterCommand {
        /// The option.
        option: String,
        /// The words before it.
        server: String,
    },
    /// An address without a scheme.
    #[error("`{0}` is not a program: for the URL of a server, write the scheme too (`http://{0}`)")]
    NoScheme(String),
    /// A command in quotes.
    #[error(
        "there is no program `{0}`: leave out the quotes, so that each word is an argument (`mcp-conformance -- {0}`)"
    )]
    QuotedCommand(String),
    /// A folder.
    #[error(
        "`{0}` is a directory, which cannot be started: name the program in it, with its interpreter if it needs one (`mcp-conformance -- node {0}/index.js`)"
    )]
    Directory(String),
    /// A script that the system cannot start.
    #[error("`{program}` cannot be started, because {reason}: write `mcp-conformance -- {fix}`")]
    Script {
        /// The file.
        program: String,
        /// Why it cannot be started.
        reason: String,
        /// The command that can be.
        fix: String,
    },
    /// A file without permission to be executed.
    #[error(
        "`{0}` cannot be started, because it is not executable: run `chmod +x {0}`, or name its interpreter before it"
    )]
    NotExecutable(String),
    /// The program that a script names in its first line is not there.
    #[error(
        "`{program}` cannot be started, because its first line names the interpreter {interpreter}, which does not exist: install it, or name another one before the script"
    )]
    NoInterpreter {
        /// The script.
        program: String,
        /// The interpreter.
        interpreter: String,
    },
}
