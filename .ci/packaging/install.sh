#!/bin/sh
# Installs a released mcp-conformance from its archive, after checking the archive's SHA-256.
#
#   sh install.sh [VERSION]
#
# Variables:
#   MCP_CONFORMANCE_REPOSITORY   the repository on GitHub, as OWNER/mcp-conformance
#   MCP_CONFORMANCE_BASE_URL     where the archives are instead, without a slash at the end
#   MCP_CONFORMANCE_BIN          the folder for the program; ~/.local/bin by default
set -eu

fail() {
  printf 'install.sh: error: %s\n' "$*" >&2
  exit 1
}

target() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64 | Linux-amd64) echo x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-musl ;;
    Darwin-x86_64) echo x86_64-apple-darwin ;;
    Darwin-arm64 | Darwin-aarch64) echo aarch64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m): install Rust, then run 'cargo install --locked --git' with the repository" ;;
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

version=${1:-latest}
version=${version#v}
bin=${MCP_CONFORMANCE_BIN:-$HOME/.local/bin}
if [ -n "${MCP_CONFORMANCE_BASE_URL:-}" ]; then
  base=$MCP_CONFORMANCE_BASE_URL
elif [ -z "${MCP_CONFORMANCE_REPOSITORY:-}" ]; then
  fail 'set MCP_CONFORMANCE_REPOSITORY to OWNER/mcp-conformance'
elif [ "$version" = latest ]; then
  base=https://github.com/$MCP_CONFORMANCE_REPOSITORY/releases/latest/download
else
  base=https://github.com/$MCP_CONFORMANCE_REPOSITORY/releases/download/v$version
fi
# Without the version in its name, an archive of the latest release has a stable URL.
archive=mcp-conformance-$(target).tar.gz

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for file in "$archive" "$archive.sha256"; do
  curl --fail --silent --show-error --location --retry 3 --output "$file" "$base/$file" ||
    fail "cannot download $base/$file"
done
check_sums "$archive.sha256" || fail "$archive does not have the checksum of the release"
tar -xzf "$archive"
mkdir -p "$bin"
install -m 755 mcp-conformance "$bin/mcp-conformance"
printf 'installed %s: %s\n' "$("$bin/mcp-conformance" --version)" "$bin/mcp-conformance"
case ":$PATH:" in
  *":$bin:"*) ;;
  *) printf 'add %s to the PATH\n' "$bin" ;;
esac
