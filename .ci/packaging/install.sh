#!/bin/sh
# Installs a released mcp-conformance from its archive, after checking the archive's SHA-256: the program, its manual page, and
# completions for bash, zsh and fish.
#
#   sh install.sh [VERSION]
#
# Without VERSION, or with `latest`, it looks up which release is the latest one, and says which. The exit code is 3 if there is
# no release, or none with an archive for this machine, and 1 for any other failure.
#
# Variables:
#   MCP_CONFORMANCE_REPOSITORY   the repository on GitHub, as OWNER/mcp-conformance; the script of a release knows its own
#   MCP_CONFORMANCE_GITHUB       another GitHub than https://github.com
#   MCP_CONFORMANCE_BASE_URL     where the archives are instead, without a slash at the end
#   MCP_CONFORMANCE_BIN          the folder for the program; ~/.local/bin by default
#   MCP_CONFORMANCE_SHARE        the folder for the manual page and the completions; share next to a folder named bin by default
set -eu

# The repository that this script was released by.
readonly RELEASED_BY=

readonly NOTHING_FITS=3

fail() {
  printf 'install.sh: error: %s\n' "$*" >&2
  exit 1
}

nothing_fits() {
  printf 'install.sh: error: %s\n' "$*" >&2
  exit "$NOTHING_FITS"
}

target() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64 | Linux-amd64) echo x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-musl ;;
    Darwin-x86_64) echo x86_64-apple-darwin ;;
    Darwin-arm64 | Darwin-aarch64) echo aarch64-apple-darwin ;;
    *) nothing_fits "there is no archive for $(uname -s) on $(uname -m): install Rust, then run 'cargo install --locked --git' with the repository" ;;
  esac
}

# latest_version <repository>
# GitHub redirects to the page of the latest release, or to the list of releases if there is none.
latest_version() {
  found=$(curl --silent --show-error --location --head --retry 3 --output /dev/null --write-out '%{http_code} %{url_effective}' \
    "$1/releases/latest") || fail "cannot look up the latest release of $1"
  case $found in
    '200 '*/releases/tag/v*) echo "${found##*/releases/tag/v}" ;;
    '200 '* | '404 '*) nothing_fits "$1 has no release" ;;
    *) fail "cannot look up the latest release of $1: status ${found%% *}" ;;
  esac
}

# download <url> <file>
download() {
  code=0
  # The status of a URL that begins with file: is 000.
  status=$(curl --silent --show-error --location --retry 3 --output "$2" --write-out '%{http_code}' "$1") || code=$?
  case $code-$status in
    0-200 | 0-000) ;;
    # What does not exist; of files, curl says it by its exit code.
    0-404 | 37-*) nothing_fits "$1 does not exist" ;;
    *) fail "cannot download $1: exit code $code of curl, status $status" ;;
  esac
}

# Checks the files that a list of checksums names.
check_sums() {
  if command -v sha256sum >/dev/null; then
    sha256sum -c "$1" >/dev/null
  else
    shasum -a 256 -c "$1" >/dev/null
  fi
}

# put <file> <destination>
put() {
  mkdir -p "$(dirname "$2")"
  install -m 644 "$1" "$2"
}

bin=${MCP_CONFORMANCE_BIN:-$HOME/.local/bin}
case $bin in
  */bin) share=${bin%/bin}/share ;;
  *) share=$bin/share ;;
esac
share=${MCP_CONFORMANCE_SHARE:-$share}

# Without the version in its name, an archive of any release has the same name.
target=$(target)
archive=mcp-conformance-$target.tar.gz
version=${1:-latest}
version=${version#v}
if [ -n "${MCP_CONFORMANCE_BASE_URL:-}" ]; then
  base=$MCP_CONFORMANCE_BASE_URL
elif [ -z "${MCP_CONFORMANCE_REPOSITORY:=$RELEASED_BY}" ]; then
  fail 'set MCP_CONFORMANCE_REPOSITORY to OWNER/mcp-conformance'
else
  repository=${MCP_CONFORMANCE_GITHUB:-https://github.com}/$MCP_CONFORMANCE_REPOSITORY
  # All files are of one release, also while the next one is published.
  if [ "$version" = latest ]; then
    version=$(latest_version "$repository")
    printf 'the latest release is %s\n' "$version"
  fi
  base=$repository/releases/download/v$version
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
download "$base/$archive" "$archive"
download "$base/$archive.sha256" "$archive.sha256"
check_sums "$archive.sha256" || fail "$archive does not have the checksum of the release"
tar -xzf "$archive"
mkdir -p "$bin"
install -m 755 mcp-conformance "$bin/mcp-conformance"
put mcp-conformance.1 "$share/man/man1/mcp-conformance.1"
put completions/mcp-conformance.bash "$share/bash-completion/completions/mcp-conformance"
put completions/mcp-conformance.zsh "$share/zsh/site-functions/_mcp-conformance"
put completions/mcp-conformance.fish "$share/fish/vendor_completions.d/mcp-conformance.fish"
printf 'installed %s: %s\n' "$("$bin/mcp-conformance" --version)" "$bin/mcp-conformance"
printf 'the manual page and completions are in %s; zsh needs %s in its fpath\n' "$share" "$share/zsh/site-functions"
case ":$PATH:" in
  *":$bin:"*) ;;
  *) printf 'add %s to the PATH\n' "$bin" ;;
esac
