//! What is published besides the program: the installer, the packages, and the shell parts of the GitHub action.
//!
//! Every step runs from files, with the program under test as the release, and with a `gh` that records its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::support::{PROGRAM, Trial, program, trial};
use serde_json::Value;
use tempfile::TempDir;

mod declared;
mod dependencies;

pub(crate) fn trials() -> Vec<Trial> {
    let has = |program: &str| {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    vec![
        trial("packaging/completions-and-the-manual-page", completions_and_the_manual_page),
        trial("packaging/the-installer-checks-the-archive", the_installer_checks_the_archive)
            .with_ignored_flag(!has("curl")),
        trial("packaging/the-npm-package-starts-the-program", the_npm_package_starts_the_program)
            .with_ignored_flag(!has("npm")),
        trial("packaging/the-wheel-installs-the-program", the_wheel_installs_the_program)
            .with_ignored_flag(!has("python3")),
        trial("packaging/the-interface-is-compared-with-the-last-release", the_interface_is_compared)
            .with_ignored_flag(!has("git")),
        trial("packaging/the-formula-has-the-checksums", the_formula_has_the_checksums),
        trial("packaging/the-licences-of-dependencies-are-allowed", dependencies::the_licences_are_allowed),
        trial("packaging/the-bill-of-materials-is-complete", dependencies::the_bill_of_materials_is_complete)
            .with_ignored_flag(!has("python3")),
        trial("packaging/the-action-is-declared", declared::the_action_is_declared),
        trial("packaging/the-gitlab-component-judges", declared::the_gitlab_component_judges),
        trial("packaging/the-images-have-no-rights", declared::the_images_have_no_rights),
        trial("packaging/the-action-judges-and-passes-its-result-on", the_action_judges).with_ignored_flag(!has("jq")),
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

/// The target of the archive for this machine.
fn target() -> String {
    let system = if cfg!(target_os = "macos") { "apple-darwin" } else { "unknown-linux-musl" };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// The archive of this machine, which takes a while to compress.
static ARCHIVE: LazyLock<Result<TempDir, String>> = LazyLock::new(|| {
    let folder = folder()?;
    run(Command::new(root().join(".ci/packaging/archive.sh")).arg(PROGRAM).arg(target()).arg(folder.path()), 0)?;
    Ok(folder)
});

/// A folder with the archive of this machine and its checksum.
fn archives(folder: &Path) -> Result<PathBuf, String> {
    let made = ARCHIVE.as_ref().map_err(Clone::clone)?;
    let archives = folder.join("archives");
    fs::create_dir(&archives).map_err(|error| error.to_string())?;
    for file in fs::read_dir(made.path()).map_err(|error| error.to_string())? {
        let file = file.map_err(|error| error.to_string())?;
        fs::copy(file.path(), archives.join(file.file_name())).map_err(|error| error.to_string())?;
    }
    Ok(archives)
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

fn the_installer_checks_the_archive() -> Result<(), String> {
    let folder = folder()?;
    let archives = archives(folder.path())?;
    let bin = folder.path().join("bin");
    let install = |code| {
        let mut command = Command::new("sh");
        command.arg(root().join(".ci/packaging/install.sh"));
        command.env("MCP_CONFORMANCE_BASE_URL", format!("file://{}", archives.display()));
        run(command.env("MCP_CONFORMANCE_BIN", &bin), code)
    };
    let said = install(0)?;
    if !said.contains(concat!("installed mcp-conformance ", env!("CARGO_PKG_VERSION"))) {
        return Err(said);
    }
    run(Command::new(bin.join("mcp-conformance")).arg("--version"), 0)?;
    // An archive that was changed is not installed.
    fs::remove_dir_all(&bin).map_err(|error| error.to_string())?;
    let archive = archives.join(format!("mcp-conformance-{}.tar.gz", target()));
    let mut bytes = fs::read(&archive).map_err(|error| error.to_string())?;
    bytes.push(0);
    fs::write(&archive, bytes).map_err(|error| error.to_string())?;
    install(1)?;
    if bin.join("mcp-conformance").exists() { Err("the changed archive was installed".to_owned()) } else { Ok(()) }
}

fn the_npm_package_starts_the_program() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let archives = archives(folder)?;
    let packages = folder.join("packages");
    let version = env!("CARGO_PKG_VERSION");
    let build = root().join(".ci/packaging/npm/build.mjs");
    run(Command::new("node").arg(build).arg(version).arg(&archives).arg(&packages), 0)?;
    let mut tarballs = Vec::new();
    for package in fs::read_dir(&packages).map_err(|error| error.to_string())? {
        let package = package.map_err(|error| error.to_string())?.path();
        let said = run(Command::new("npm").args(["pack", "--silent"]).arg(&package).current_dir(folder), 0)?;
        tarballs.push(format!("./{}", said.trim()));
    }
    if tarballs.len() != 2 {
        return Err(format!("the packages are {tarballs:?}"));
    }
    let user = folder.join("user");
    fs::create_dir(&user).map_err(|error| error.to_string())?;
    fs::write(user.join("package.json"), "{\"private\": true}").map_err(|error| error.to_string())?;
    let install = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"];
    let tarballs = tarballs.iter().map(|tarball| format!(".{tarball}"));
    run(Command::new("npm").args(install).args(tarballs).current_dir(&user), 0)?;
    let npx =
        |words: &[&str], code| run(Command::new("npx").arg("mcp-conformance").args(words).current_dir(&user), code);
    if npx(&["--version"], 0)?.trim() != format!("mcp-conformance {version}") {
        return Err("another program was started".to_owned());
    }
    // Its exit code is that of the program.
    let judge =
        ["-q", "--revision", "latest", "--fuzz", "off", "--select", "content/image-base64", "--", PROGRAM, "serve"];
    npx(&judge, 0)?;
    npx(&[&judge[..], &["--fault", "image-data-url"]].concat(), 1).map(drop)
}

fn the_wheel_installs_the_program() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let archives = archives(folder)?;
    let (wheels, environment) = (folder.join("wheels"), folder.join("environment"));
    let build = root().join(".ci/packaging/pypi/build.py");
    run(Command::new("python3").arg(build).arg(env!("CARGO_PKG_VERSION")).arg(&archives).arg(&wheels), 0)?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment), 0)?;
    let mut install = Command::new(environment.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--find-links"]).arg(&wheels);
    run(install.arg("mcp-conformance"), 0)?;
    let said = run(Command::new(environment.join("bin/mcp-conformance")).arg("--version"), 0)?;
    if said.trim() == concat!("mcp-conformance ", env!("CARGO_PKG_VERSION")) { Ok(()) } else { Err(said) }
}

fn the_formula_has_the_checksums() -> Result<(), String> {
    let folder = folder()?;
    let mut expected = Vec::new();
    for (index, target) in
        ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin"]
            .into_iter()
            .enumerate()
    {
        let sum = index.to_string().repeat(64);
        let archive = format!("mcp-conformance-{target}.tar.gz");
        fs::write(folder.path().join(format!("{archive}.sha256")), format!("{sum}  {archive}\n"))
            .map_err(|error| error.to_string())?;
        expected.push((format!("releases/download/v1.2.3/{archive}\""), format!("sha256 \"{sum}\"")));
    }
    let script = root().join(".ci/packaging/homebrew.sh");
    let formula = run(Command::new(script).args(["1.2.3", "me/mcp-conformance"]).arg(folder.path()), 0)?;
    let lines: Vec<&str> = formula.lines().map(str::trim).collect();
    for (url, sum) in expected {
        let at = lines.iter().position(|line| line.ends_with(&url)).ok_or_else(|| format!("{url}:\n{formula}"))?;
        if lines[at + 1] != sum {
            return Err(format!("{url} has {}", lines[at + 1]));
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
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(root().join(".ci/packaging/action").join(script));
        command.current_dir(self.folder.path());
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
        fs::write(self.path("output"), "").map_err(|error| error.to_string())?;
        self.step("judge.sh", &[("ARGUMENTS", arguments), ("ANNOTATIONS", "true"), ("SUMMARY", "true")], 0)?;
        read(&self.path("output"))
    }
}

fn the_action_judges() -> Result<(), String> {
    let action = Action::new()?;
    let options = "--revision latest --fuzz off --select 'content/image-base64'";
    let outputs = action.judge(&format!("{options} -- \"{PROGRAM}\" serve --fault image-data-url"))?;
    let report = action.path("mcp-conformance.json");
    if outputs != format!("exit-code=1\nreport={}\n", report.display()) {
        return Err(outputs);
    }
    if !read(&action.path("summary.md"))?.contains("content-image") {
        return Err("the summary does not show the finding".to_owned());
    }
    // Nothing in the arguments is executed, and wrong ones have no report.
    let outputs = action.judge("--no-such-option '$(touch executed)' `touch executed`")?;
    if outputs != "exit-code=2\n" || action.path("executed").exists() {
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

    // The release that the action installs is on the path of later steps.
    let archives = archives(action.folder.path())?;
    let base = format!("file://{}", archives.display());
    action.step("install.sh", &[("VERSION", "latest"), ("MCP_CONFORMANCE_BASE_URL", &base)], 0)?;
    let installed = PathBuf::from(read(&action.path("path"))?.trim()).join("mcp-conformance");
    run(Command::new(installed).arg("--version"), 0).map(drop)
}

/// Runs the step of the workflow that compares the public interface, with a `cargo` that writes its arguments.
fn the_interface_is_compared() -> Result<(), String> {
    let workflow = read(&root().join(".github/workflows/ci.yml"))?;
    let step = workflow.split("- name: Compare with the last released version\n        run: |\n").nth(1);
    let script: Vec<&str> = step
        .ok_or("the workflow has no such step")?
        .lines()
        .map_while(|line| line.strip_prefix("          "))
        .collect();
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
        run(shell.current_dir(folder).args(["-e", "-c", &script.join("\n")]).env("PATH", &path), 0)
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
