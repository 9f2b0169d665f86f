//! `init`: inspects a server, and writes the configuration file and a workflow for CI.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use mcp_conformance::internals::judge::PreparedRun;
use mcp_conformance::report::{Conclusion, Report};
use mcp_conformance::{CallPolicy, Settings};

use super::config_args::{CiSystem, InitArgs};
use super::error::CliError;
use super::init_template::{ServerDescription, configuration, github_workflow, gitlab_pipeline};
use super::run::run_quietly;
use super::server_check;
use super::stdout::print;

/// The cases that are run to inspect a server: they send nothing that changes it.
const CASES: &str = "tools/list/*";

/// Where the workflow of a CI system is.
const GITHUB_WORKFLOW: &str = ".github/workflows/mcp-conformance.yml";
const GITLAB_PIPELINE: &str = ".gitlab-ci.yml";
const GITLAB_INCLUDE: &str = ".gitlab/mcp-conformance.yml";

/// Writes the files.
pub(super) fn init(args: &InitArgs, line: &[OsString]) -> Result<Conclusion, CliError> {
    let has_server = !args.server.is_empty() || args.connection.http.url.is_some();
    let folder = args.output.parent().unwrap_or(Path::new(""));
    let workflow = args.ci.map(|ci| (workflow_path(folder, ci), ci));
    // Created before the server is started; an existing file may contain settings of the user.
    let mut created = Created::default();
    created.create(&args.output)?;
    if let Some((path, _)) = &workflow {
        created.create(path)?;
    }
    let description = if has_server { Some(inspect(args, line)?) } else { None };
    created.write(&configuration(description.as_ref(), &args.connection, &args.server))?;
    let mut summary = vec![format!("wrote {}", args.output.display())];
    if let Some((path, ci)) = &workflow {
        created.write(match ci {
            CiSystem::Github => github_workflow(),
            CiSystem::Gitlab => gitlab_pipeline(),
        })?;
        summary.push(format!("wrote {}: replace OWNER and COMMIT in it", path.display()));
        if path.ends_with(GITLAB_INCLUDE) {
            summary.push(format!("add to {GITLAB_PIPELINE}: include: [{{local: /{GITLAB_INCLUDE}}}]"));
        }
    }
    created.keep();
    summary.push(if has_server {
        "next: mcp-conformance".to_owned()
    } else {
        format!("next: name the server in {}, then run mcp-conformance", args.output.display())
    });
    print(|out| Ok(writeln!(out, "{}", summary.join("\n"))?))
}

fn workflow_path(folder: &Path, ci: CiSystem) -> PathBuf {
    match ci {
        CiSystem::Github => folder.join(GITHUB_WORKFLOW),
        CiSystem::Gitlab if folder.join(GITLAB_PIPELINE).exists() => folder.join(GITLAB_INCLUDE),
        CiSystem::Gitlab => folder.join(GITLAB_PIPELINE),
    }
}

/// What the server supports, without calling a tool that may change anything.
fn inspect(args: &InitArgs, line: &[OsString]) -> Result<ServerDescription, CliError> {
    server_check::find_mistake(&args.server, line, args.connection.process.cwd.as_deref())?;
    let server = args.connection.server(&args.server)?;
    let settings = Settings {
        select: vec![CASES.to_owned()],
        calls: Some(CallPolicy::ReadOnly),
        retries: 0,
        fuzz: None,
        ..Settings::default()
    };
    let run = PreparedRun::new(&server, &settings)?;
    let report = run_quietly(run)?;
    describe(&report)
}

fn describe(report: &Report) -> Result<ServerDescription, CliError> {
    let problem = report.summary.as_ref().and_then(|summary| summary.problem.as_ref());
    let Some(newest) = report.targets.last() else {
        let (message, hint) = match problem {
            Some(problem) => (problem.message.clone(), problem.hint.clone()),
            None => ("it supports no revision".to_owned(), "run the command by hand and see what it prints".to_owned()),
        };
        return Err(CliError::InitServer { message, hint });
    };
    let info = newest.summary.server_info.as_ref();
    let text = |name: &str| info.and_then(|info| info.get(name)).and_then(|text| text.as_str()).map(str::to_owned);
    Ok(ServerDescription {
        name: text("name"),
        version: text("version"),
        revisions: report.targets.iter().map(|target| target.summary.revision).collect(),
        tools: newest.summary.tools.iter().map(|tool| (tool.name.clone(), tool.called)).collect(),
    })
}

/// Files that are removed again unless everything is written.
#[derive(Default)]
struct Created {
    files: Vec<(PathBuf, File)>,
    written: Vec<PathBuf>,
}

impl Created {
    fn create(&mut self, path: &Path) -> Result<(), CliError> {
        let failed = |source: io::Error| CliError::Init { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = File::create_new(path).map_err(failed)?;
        self.files.push((path.to_owned(), file));
        Ok(())
    }

    /// Writes the next file.
    fn write(&mut self, text: &str) -> Result<(), CliError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let (path, mut file) = self.files.remove(0);
        self.written.push(path.clone());
        file.write_all(text.as_bytes()).map_err(|source| CliError::Init { path, source })
    }

    fn keep(mut self) {
        self.files.clear();
        self.written.clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        for path in self.written.iter().chain(self.files.iter().map(|(path, _)| path)) {
            // An empty file is of no use; failing to remove it changes nothing about the error that is reported.
            drop(fs::remove_file(path));
        }
    }
}
