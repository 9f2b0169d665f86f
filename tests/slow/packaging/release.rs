//! What a release consists of: the archives, the installer, the npm packages, the wheels and the formula. They are made as
//! the workflow makes them, and installed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use super::{folder, read, root, run, write_program};
use crate::support::PROGRAM;

/// The targets that each kind of package has a program for.
pub(super) const TARGETS: [&str; 4] =
    ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin"];

/// Where a release puts the manual page and the completions, below a folder `share`.
const SHARED: [&str; 4] = [
    "man/man1/mcp-conformance.1",
    "bash-completion/completions/mcp-conformance",
    "zsh/site-functions/_mcp-conformance",
    "fish/vendor_completions.d/mcp-conformance.fish",
];

/// The target of the archive for this machine.
pub(super) fn target() -> String {
    let system = if cfg!(target_os = "macos") { "apple-darwin" } else { "unknown-linux-musl" };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// The archives and the packages of a release. The archive of this machine has the program, and the others something small.
static RELEASE: LazyLock<Result<TempDir, String>> = LazyLock::new(|| {
    let release = folder()?;
    let (archives, other) = (release.path().join("archives"), release.path().join("other"));
    write_program(&other, "#!/bin/sh\necho \".TH mcp-conformance $*\"\n")?;
    for name in TARGETS {
        let program = if name == target() { Path::new(PROGRAM) } else { &other };
        run(Command::new(root().join(".ci/packaging/archive.sh")).arg(program).arg(name).arg(&archives), 0)?;
    }
    let mut packages = Command::new(root().join(".ci/packaging/packages.sh"));
    packages.args([env!("CARGO_PKG_VERSION"), "me/mcp-conformance"]).arg(&archives);
    run(packages.arg(release.path().join("packages")), 0)?;
    Ok(release)
});

pub(super) fn release() -> Result<&'static Path, String> {
    RELEASE.as_ref().map(TempDir::path).map_err(Clone::clone)
}

/// Releases as GitHub serves them: `me/mcp-conformance` has one, and `me/unreleased` none. It ends with the tests.
pub(super) struct Releases {
    pub(super) address: String,
}

impl Releases {
    pub(super) fn serve(version: &'static str) -> Result<Self, String> {
        let archives = release()?.join("archives");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that is gone sees nothing of it.
                let _unread = stream.and_then(|stream| respond(stream, version, &archives));
            }
        });
        Ok(Self { address: format!("http://{address}") })
    }
}

fn respond(mut stream: TcpStream, version: &str, archives: &Path) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let redirect = |page: &str| format!("302 Found\r\nLocation: {page}");
    let download = format!("/me/mcp-conformance/releases/download/v{version}/");
    let (status, body) = match path {
        "/me/mcp-conformance/releases/latest" => {
            (redirect(&format!("/me/mcp-conformance/releases/tag/v{version}")), Vec::new())
        }
        "/me/unreleased/releases/latest" => (redirect("/me/unreleased/releases"), Vec::new()),
        "/me/unreleased/releases" => ("200 OK".to_owned(), Vec::new()),
        path if path == format!("/me/mcp-conformance/releases/tag/v{version}") => ("200 OK".to_owned(), Vec::new()),
        path => match path.strip_prefix(&download).map(|file| fs::read(archives.join(file))) {
            Some(Ok(bytes)) => ("200 OK".to_owned(), bytes),
            _ => ("404 Not Found".to_owned(), b"Not Found".to_vec()),
        },
    };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    if method == "HEAD" { Ok(()) } else { stream.write_all(&body) }
}

/// The installer of the release, which knows its repository.
fn installer() -> Result<Command, String> {
    let mut command = Command::new("sh");
    command.arg(release()?.join("packages/install.sh"));
    command.env_remove("MCP_CONFORMANCE_REPOSITORY").env_remove("MCP_CONFORMANCE_SHARE");
    Ok(command)
}

/// Fails unless the manual page and the completions are below a folder.
fn expect_shared(share: &Path) -> Result<(), String> {
    for file in SHARED {
        if !read(&share.join(file))?.contains("mcp-conformance") {
            return Err(format!("{file} is of something else"));
        }
    }
    Ok(())
}

pub(super) fn the_installer_checks_the_archive() -> Result<(), String> {
    let folder = folder()?;
    let archives = folder.path().join("archives");
    fs::create_dir(&archives).map_err(|error| error.to_string())?;
    let archive = format!("mcp-conformance-{}.tar.gz", target());
    for file in [archive.clone(), format!("{archive}.sha256")] {
        fs::copy(release()?.join("archives").join(&file), archives.join(&file)).map_err(|error| error.to_string())?;
    }
    let bin = folder.path().join("bin");
    let install = |code| {
        let mut command = installer()?;
        command.env("MCP_CONFORMANCE_BASE_URL", format!("file://{}", archives.display()));
        run(command.env("MCP_CONFORMANCE_BIN", &bin), code)
    };
    let said = install(0)?;
    if !said.contains(concat!("installed mcp-conformance ", env!("CARGO_PKG_VERSION"))) {
        return Err(said);
    }
    run(Command::new(bin.join("mcp-conformance")).arg("--version"), 0)?;
    expect_shared(&folder.path().join("share"))?;
    // An archive that was changed is not installed.
    fs::remove_dir_all(&bin).map_err(|error| error.to_string())?;
    let archive = archives.join(archive);
    let mut bytes = fs::read(&archive).map_err(|error| error.to_string())?;
    bytes.push(0);
    fs::write(&archive, bytes).map_err(|error| error.to_string())?;
    install(1)?;
    if bin.join("mcp-conformance").exists() {
        return Err("the changed archive was installed".to_owned());
    }
    fs::remove_file(&archive).map_err(|error| error.to_string())?;
    install(3).map(drop)
}

pub(super) fn the_installer_finds_one_release() -> Result<(), String> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let releases = Releases::serve(VERSION)?;
    let folder = folder()?;
    let home = folder.path();
    let install = |words: &[&str], repository: Option<&str>, code| {
        let mut command = installer()?;
        command.args(words).env("MCP_CONFORMANCE_GITHUB", &releases.address).env("HOME", home);
        command.env_remove("MCP_CONFORMANCE_BIN").env_remove("MCP_CONFORMANCE_BASE_URL");
        run(command.envs(repository.map(|name| ("MCP_CONFORMANCE_REPOSITORY", name))), code)
    };
    let said = install(&[], None, 0)?;
    if !said.contains(&format!("the latest release is {VERSION}\n")) {
        return Err(said);
    }
    run(Command::new(home.join(".local/bin/mcp-conformance")).arg("--version"), 0)?;
    expect_shared(&home.join(".local/share"))?;
    // A version is that version, with or without the letter of its tag.
    for version in [VERSION.to_owned(), format!("v{VERSION}")] {
        let said = install(&[&version], None, 0)?;
        if said.contains("the latest release") || !said.contains(&format!("installed mcp-conformance {VERSION}")) {
            return Err(said);
        }
    }
    install(&["9.9.9"], None, 3)?;
    install(&[], Some("me/unreleased"), 3)?;
    install(&[], Some("me/missing"), 3)?;
    // A machine that no archive is for.
    let tools = home.join("tools");
    fs::create_dir(&tools).map_err(|error| error.to_string())?;
    write_program(&tools.join("uname"), "#!/bin/sh\necho Plan9\n")?;
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    run(installer()?.env("PATH", path).env("MCP_CONFORMANCE_GITHUB", &releases.address), 3).map(drop)
}

/// The tarball of an npm package.
fn tarball(name: &str) -> Result<PathBuf, String> {
    Ok(release()?.join(format!("packages/{name}-{}.tgz", env!("CARGO_PKG_VERSION"))))
}

pub(super) fn the_npm_package_starts_the_program() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let version = env!("CARGO_PKG_VERSION");
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let tarballs = [tarball("mcp-conformance")?, tarball(&format!("mcp-conformance-{system}-{machine}"))?];
    let install = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"];
    let (user, global) = (folder.join("user"), folder.join("global"));
    fs::create_dir(&user).map_err(|error| error.to_string())?;
    fs::write(user.join("package.json"), "{\"private\": true}").map_err(|error| error.to_string())?;
    run(Command::new("npm").args(install).args(&tarballs).current_dir(&user), 0)?;
    let npx =
        |words: &[&str], code| run(Command::new("npx").arg("mcp-conformance").args(words).current_dir(&user), code);
    if npx(&["--version"], 0)?.trim() != format!("mcp-conformance {version}") {
        return Err("another program was started".to_owned());
    }
    // Its exit code is that of the program.
    let judge =
        ["-q", "--revision", "latest", "--fuzz", "off", "--select", "content/image-base64", "--", PROGRAM, "serve"];
    npx(&judge, 0)?;
    npx(&[&judge[..], &["--fault", "image-data-url"]].concat(), 1)?;
    // Every package says where it comes from, and the first one has a package for each machine.
    let mut platforms = Vec::new();
    for entry in fs::read_dir(user.join("node_modules")).map_err(|error| error.to_string())? {
        let package = entry.map_err(|error| error.to_string())?.path();
        if !package.join("package.json").exists() {
            continue;
        }
        let manifest: Value =
            serde_json::from_str(&read(&package.join("package.json"))?).map_err(|error| error.to_string())?;
        let repository = &manifest["repository"]["url"];
        if repository != "git+https://github.com/me/mcp-conformance.git"
            || manifest["homepage"] != "https://github.com/me/mcp-conformance#readme"
            || manifest["bugs"] != "https://github.com/me/mcp-conformance/issues"
            || manifest["license"] != env!("CARGO_PKG_LICENSE")
        {
            return Err(manifest.to_string());
        }
        platforms
            .extend(manifest["optionalDependencies"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    }
    for platform in &platforms {
        if !tarball(platform)?.exists() {
            return Err(format!("{platform} is no package"));
        }
    }
    if platforms.len() != TARGETS.len() {
        return Err(format!("the packages of the machines are {platforms:?}"));
    }
    // Installed for all projects, it has its manual page where `man` looks.
    run(Command::new("npm").args(install).arg("--global").arg("--prefix").arg(&global).args(&tarballs), 0)?;
    run(Command::new(global.join("bin/mcp-conformance")).arg("--version"), 0)?;
    let page = read(&global.join("share/man/man1/mcp-conformance.1"))?;
    if page.contains(".TH mcp-conformance") { Ok(()) } else { Err(page) }
}

pub(super) fn the_wheel_installs_the_program() -> Result<(), String> {
    let folder = folder()?;
    let environment = folder.path().join("environment");
    let packages = release()?.join("packages");
    let wheels = fs::read_dir(&packages).map_err(|error| error.to_string())?.flatten();
    let count = wheels.filter(|file| file.path().extension().is_some_and(|extension| extension == "whl")).count();
    if count != TARGETS.len() {
        return Err(format!("there are {count} wheels"));
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment), 0)?;
    let python = environment.join("bin/python");
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--find-links"]).arg(&packages);
    run(install.arg("mcp-conformance"), 0)?;
    let said = run(Command::new(environment.join("bin/mcp-conformance")).arg("--version"), 0)?;
    if said.trim() != concat!("mcp-conformance ", env!("CARGO_PKG_VERSION")) {
        return Err(said);
    }
    expect_shared(&environment.join("share"))?;
    let describe = "from importlib.metadata import metadata as m; d = m('mcp-conformance'); \
                    print(d['License-Expression'], *d.get_all('Project-URL'), sep='\\n')";
    let described = run(Command::new(&python).args(["-c", describe]), 0)?;
    let expected = concat!(
        env!("CARGO_PKG_LICENSE"),
        "\nHomepage, https://github.com/me/mcp-conformance\nIssues, https://github.com/me/mcp-conformance/issues\n"
    );
    if described == expected { Ok(()) } else { Err(described) }
}

pub(super) fn the_formula_has_the_checksums() -> Result<(), String> {
    let folder = folder()?;
    let mut expected = Vec::new();
    for (index, target) in TARGETS.into_iter().enumerate() {
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
    // What it installs is in the archives.
    let archive = root().join(".ci/packaging/archive.sh");
    let other = folder.path().join("other");
    write_program(&other, "#!/bin/sh\necho \"$*\"\n")?;
    let made = run(Command::new(archive).arg(&other).arg("target").arg(folder.path()), 0)?;
    let files = run(Command::new("tar").arg("-tzf").arg(made.trim()), 0)?;
    let installed = lines.iter().filter_map(|line| line.split_once(".install \"")?.1.split('"').next());
    let missing: Vec<&str> = installed.clone().filter(|name| !files.lines().any(|file| file == *name)).collect();
    if installed.count() == 5 && missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} of:\n{formula}")) }
}
