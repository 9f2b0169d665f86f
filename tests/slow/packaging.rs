//! What is published besides the program: the installer, the packages, and the shell parts of the GitHub action.
//!
//! Every step runs from files, with the program under test as the release, and with a `gh` that records its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::installed::{servers, servers_are_required};
use crate::support::{PROGRAM, Trial, program, trial};
use serde_json::Value;
use tempfile::TempDir;

mod community;
mod declared;
mod dependencies;
mod release;
mod workflows;

pub(crate) fn trials() -> Vec<Trial> {
    let has = |program: &str| {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let can_package = has("npm") && has("python3");
    vec![
        trial("packaging/completions-and-the-manual-page", completions_and_the_manual_page),
        trial("packaging/the-installer-checks-the-archive", release::the_installer_checks_the_archive)
            .with_ignored_flag(!has("curl") || !can_package),
        trial("packaging/the-installer-finds-one-release", release::the_installer_finds_one_release)
            .with_ignored_flag(!has("curl") || !can_package),
        trial("packaging/the-npm-package-starts-the-program", release::the_npm_package_starts_the_program)
            .with_ignored_flag(!can_package),
        trial("packaging/the-wheel-installs-the-program", release::the_wheel_installs_the_program)
            .with_ignored_flag(!can_package),
        trial("packaging/the-interface-is-compared-with-the-last-release", the_interface_is_compared)
            .with_ignored_flag(!has("git")),
        trial("packaging/the-formula-has-the-checksums", release::the_formula_has_the_checksums),
        trial("packaging/the-licences-of-dependencies-are-allowed", dependencies::the_licences_are_allowed)
            .with_ignored_flag(!dependencies::are_written()),
        trial("packaging/the-bill-of-materials-is-complete", dependencies::the_bill_of_materials_is_complete)
            .with_ignored_flag(!dependencies::are_written()),
        trial("packaging/the-action-is-declared", declared::the_action_is_declared),
        trial("packaging/the-workflows-are-declared", workflows::the_workflows_are_declared),
        trial("packaging/the-release-has-every-target-attested", workflows::the_release_is_attested),
        trial("packaging/the-release-checks-its-tag-and-repository", workflows::the_tag_and_the_repository_are_checked),
        trial("packaging/cargo-binstall-finds-the-archives", workflows::cargo_binstall_finds_the_archives)
            .with_ignored_flag(!can_package),
        trial("packaging/the-workflow-uses-the-action", workflows::the_action_is_used)
            .with_ignored_flag(!has("jq") || (!servers().join("node_modules").exists() && !servers_are_required())),
        trial("packaging/the-issue-forms-ask-for-the-report", community::the_issue_forms_ask_for_the_report),
        trial("packaging/the-citation-is-that-of-the-package", community::the_citation_is_that_of_the_package),
        trial("packaging/the-gitlab-component-judges", declared::the_gitlab_component_judges),
        trial("packaging/the-images-have-no-rights", declared::the_images_have_no_rights),
        trial("packaging/the-action-judges-and-passes-its-result-on", the_action_judges).with_ignored_flag(!has("jq")),
        trial("packaging/the-action-installs-or-builds", the_action_installs_or_builds)
            .with_ignored_flag(!has("curl") || !can_package),
    ]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folder() -> Result<TempDir, String> {
    TempDir::new().map_err(|error| error.to_string())
}

/// Runs a command, and returns its standard output; it has to end with this exit code.
fn run(command: &mut Command, code: i32) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(code) {
        Ok(out.into_owned())
    } else {
        Err(format!("{command:?}: {}, not {code}\n{out}\n{error}", output.status))
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write_program(path: &Path, text: &str) -> Result<(), String> {
    let written = fs::write(path, text).and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn completions_and_the_manual_page() -> Result<(), String> {
    let folder = folder()?;
    for (shell, expected) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef mcp-conformance"),
        ("fish", "complete -c mcp-conformance"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let completions = program(folder.path(), &["completions", shell])?.with_code(0)?;
        if !completions.out.contains(expected) || !completions.out.contains("fail-on") {
            return Err(format!("{shell}: {}", completions.out));
        }
        if shell == "bash" {
            let script = folder.path().join("completions.bash");
            fs::write(&script, &completions.out).map_err(|error| error.to_string())?;
            let complete = ". \"$0\"; COMP_WORDS=(mcp-conformance --fail); COMP_CWORD=1; _mcp__conformance mcp-conformance --fail mcp-conformance; echo \"${COMPREPLY[@]}\"";
            let offered = run(Command::new("bash").args(["-c", complete]).arg(&script), 0)?;
            if offered.trim() != "--fail-on" {
                return Err(format!("bash completes --fail to `{offered}`"));
            }
        }
    }
    let page = program(folder.path(), &["man"])?.with_code(0)?;
    for expected in [".TH mcp-conformance", "\\-\\-fail\\-on", "MCP-CONFORMANCE EXPLAIN", "Exit codes"] {
        if !page.out.contains(expected) {
            return Err(format!("`{expected}` is not in the manual page"));
        }
    }
    Ok(())
}

/// Records its arguments, and its input file, where the step would call GitHub; `list` is what it answers to a list.
const GH: &str = r#"#!/bin/sh
printf '%s\n' "$*" >>"$FAKE_GH/calls"
for word; do [ "$previous" != --input ] || cp "$word" "$FAKE_GH/body"; previous=$word; done
case "$*" in *--jq*) cat "$FAKE_GH/list" ;; esac
"#;

/// The steps of the action, each with the variables that `action.yml` gives it.
struct Action {
    folder: TempDir,
}

impl Action {
    fn new() -> Result<Self, String> {
        let folder = folder()?;
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).map_err(|error| error.to_string())?;
        std::os::unix::fs::symlink(PROGRAM, bin.join("mcp-conformance")).map_err(|error| error.to_string())?;
        write_program(&bin.join("gh"), GH)?;
        fs::write(folder.path().join("list"), "").map_err(|error| error.to_string())?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn step(&self, script: &str, variables: &[(&str, &str)], code: i32) -> Result<String, String> {
        self.step_in(self.folder.path(), script, variables, code)
    }

    fn step_in(&self, folder: &Path, script: &str, variables: &[(&str, &str)], code: i32) -> Result<String, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(root().join(".ci/packaging/action").join(script));
        command.current_dir(folder);
        command.env("PATH", format!("{}:{path}", self.path("bin").display())).env("FAKE_GH", self.folder.path());
        command.env("RUNNER_TEMP", self.folder.path()).env("GITHUB_OUTPUT", self.path("output"));
        command.env("GITHUB_STEP_SUMMARY", self.path("summary.md")).env("GITHUB_PATH", self.path("path"));
        command.env("GITHUB_ACTION_PATH", root()).env("GITHUB_REPOSITORY", "me/server").env("GITHUB_SHA", "abc");
        command
            .env("GITHUB_REF", "refs/heads/x")
            .env("GITHUB_SERVER_URL", "https://example.com")
            .env("GITHUB_RUN_ID", "5");
        run(command.envs(variables.iter().copied()), code)
    }

    fn judge(&self, arguments: &str) -> Result<String, String> {
        self.judge_in(self.folder.path(), arguments)
    }

    /// Returns what the step outputs.
    fn judge_in(&self, folder: &Path, arguments: &str) -> Result<String, String> {
        fs::write(self.path("output"), "").map_err(|error| error.to_string())?;
        let variables = [("ARGUMENTS", arguments), ("ANNOTATIONS", "true"), ("SUMMARY", "true")];
        self.step_in(folder, "judge.sh", &variables, 0)?;
        read(&self.path("output"))
    }
}

fn the_action_judges() -> Result<(), String> {
    let action = Action::new()?;
    let options = "--revision latest --fuzz off --select 'content/image-base64'";
    let outputs = action.judge(&format!("{options} -- \"{PROGRAM}\" serve --fault image-data-url"))?;
    let report = action.path("mcp-conformance.json");
    let version = concat!("version=", env!("CARGO_PKG_VERSION"), "\n");
    if outputs != format!("{version}exit-code=1\nreport={}\n", report.display()) {
        return Err(outputs);
    }
    if !read(&action.path("summary.md"))?.contains("content-image") {
        return Err("the summary does not show the finding".to_owned());
    }
    // Nothing in the arguments is executed, and wrong ones have no report.
    let outputs = action.judge("--no-such-option '$(touch executed)' `touch executed`")?;
    if outputs != format!("{version}exit-code=2\n") || action.path("executed").exists() {
        return Err(outputs);
    }
    action.judge(&format!("{options} -- \"{PROGRAM}\" serve --fault image-data-url"))?;
    let report = report.display().to_string();

    action.step("sarif.sh", &[("REPORT", &report)], 0)?;
    let body: Value = serde_json::from_str(&read(&action.path("body"))?).map_err(|error| error.to_string())?;
    let decode = "printf %s \"$0\" | base64 -d | gunzip";
    let sarif = run(Command::new("sh").args(["-c", decode]).arg(body["sarif"].as_str().unwrap_or_default()), 0)?;
    let sarif: Value = serde_json::from_str(&sarif).map_err(|error| error.to_string())?;
    if sarif["version"] != "2.1.0" || body["commit_sha"] != "abc" || body["ref"] != "refs/heads/x" {
        return Err(body.to_string());
    }

    let comment = |number| action.step("comment.sh", &[("REPORT", &report), ("PULL_REQUEST", number)], 0);
    comment("")?;
    comment("7")?;
    fs::write(action.path("list"), "42\n43\n").map_err(|error| error.to_string())?;
    comment("7")?;
    let calls = read(&action.path("calls"))?;
    for expected in [
        "api --method POST repos/me/server/code-scanning/sarifs",
        "api --method POST repos/me/server/issues/7/comments",
        "api --method PATCH repos/me/server/issues/comments/42",
    ] {
        if calls.lines().filter(|call| call.starts_with(expected)).count() != 1 {
            return Err(format!("`{expected}` is not called once:\n{calls}"));
        }
    }
    let body: Value = serde_json::from_str(&read(&action.path("body"))?).map_err(|error| error.to_string())?;
    let text = body["body"].as_str().unwrap_or_default();
    if !text.starts_with("<!-- mcp-conformance -->\n") || !text.contains("content-image") {
        return Err(text.to_owned());
    }
    Ok(())
}

/// Writes where it would install a build, and puts the program under test there.
const CARGO: &str = r#"#!/bin/sh
echo "$*" >>"$FAKE_GH/calls"
while [ $# -gt 0 ]; do [ "$1" != --root ] || root=$2; shift; done
mkdir -p "$root/bin" && cp "$PROGRAM" "$root/bin/mcp-conformance"
"#;

fn the_action_installs_or_builds() -> Result<(), String> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let releases = release::Releases::serve(OWN)?;
    let action = Action::new()?;
    write_program(&action.path("bin/cargo"), CARGO)?;
    let install = |version, variables: &[(&str, &str)], code| {
        for file in ["path", "output"] {
            fs::write(action.path(file), "").map_err(|error| error.to_string())?;
        }
        let variables =
            [&[("VERSION", version), ("MCP_CONFORMANCE_GITHUB", releases.address.as_str())], variables].concat();
        let said = action.step("install.sh", &variables, code)?;
        Ok::<_, String>((said, read(&action.path("path"))?, read(&action.path("output"))?))
    };
    let of = |repository| [("MCP_CONFORMANCE_REPOSITORY", repository)];
    let installed = format!("{}\n", action.path("mcp-conformance/bin").display());
    // A release, by default the one of the action.
    for (version, expected) in [("", false), (OWN, false), ("latest", true)] {
        let (said, path, output) = install(version, &of("me/mcp-conformance"), 0)?;
        if !said.contains(&format!("installed mcp-conformance {OWN}")) || path != installed || !output.is_empty() {
            return Err(format!("`{version}` installs nothing: {said}\n{path}\n{output}"));
        }
        if said.contains(&format!("the latest release is {OWN}")) != expected {
            return Err(format!("`{version}` looks up a release, or not: {said}"));
        }
        run(Command::new(action.path("mcp-conformance/bin/mcp-conformance")).arg("--version"), 0)?;
    }
    // A build, where nothing fits or where it is asked for.
    for (version, repository) in
        [("source", "me/mcp-conformance"), ("", "me/unreleased"), ("latest", "me/unreleased"), ("", "")]
    {
        let (_, path, output) = install(version, &of(repository), 0)?;
        if output != "build=true\n" || !path.is_empty() {
            return Err(format!("`{version}` of {repository} is not built: {path}\n{output}"));
        }
    }
    // No other version takes the place of the one that was named, and what cannot be reached is not built.
    let (said, ..) = install("9.9.9", &of("me/mcp-conformance"), 3)?;
    if !said.contains("::error title=mcp-conformance::There is no archive of version 9.9.9") {
        return Err(said);
    }
    let closed = [of("me/mcp-conformance")[0], ("MCP_CONFORMANCE_GITHUB", "http://127.0.0.1:1")];
    let (.., output) = install("", &closed, 1)?;
    if !output.is_empty() {
        return Err(format!("a failed connection leads to {output}"));
    }
    action.step("build.sh", &[("PROGRAM", PROGRAM)], 0)?;
    let expected = format!("install --locked --path {} --root ", root().display());
    let calls = read(&action.path("calls"))?;
    if !calls.starts_with(&expected) || read(&action.path("path"))? != installed {
        return Err(format!("the build is not that of the action: {calls}"));
    }
    run(Command::new(action.path("mcp-conformance/bin/mcp-conformance")).arg("--version"), 0).map(drop)
}

/// Runs the step of the workflow that compares the public interface, with a `cargo` that writes its arguments.
fn the_interface_is_compared() -> Result<(), String> {
    let workflow = read(&root().join(".github/workflows/ci.yml"))?;
    if !workflow.contains("run: .ci/packaging/semver.sh\n") {
        return Err("the workflow does not compare".to_owned());
    }
    let script = root().join(".ci/packaging/semver.sh");
    let folder = folder()?;
    let (tools, folder) = (folder.path().join("bin"), folder.path());
    fs::create_dir(&tools).map_err(|error| error.to_string())?;
    write_program(&tools.join("cargo"), "#!/bin/sh\necho \"cargo $*\"\n")?;
    let git = |arguments: &[&str]| {
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        run(Command::new("git").current_dir(folder).args(author).args(arguments), 0)
    };
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let compare = || {
        let mut shell = Command::new("bash");
        run(shell.current_dir(folder).arg(&script).env("PATH", &path), 0)
    };
    git(&["init", "--quiet"])?;
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"])?;
    let unreleased = compare()?;
    git(&["tag", "v0.1.0"])?;
    git(&["tag", "nightly"])?;
    git(&["commit", "--quiet", "--allow-empty", "-m", "second"])?;
    let released = compare()?;
    if !unreleased.contains("nothing is released yet") || unreleased.contains("semver-checks") {
        return Err(unreleased);
    }
    let expected = "cargo semver-checks --all-features --baseline-rev v0.1.0";
    if released.lines().any(|line| line == expected) { Ok(()) } else { Err(released) }
}
