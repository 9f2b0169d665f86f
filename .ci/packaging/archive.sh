#!/usr/bin/env bash
# Makes the archive of a release with its checksum: archive.sh PROGRAM TARGET OUTPUT-FOLDER
set -euo pipefail

program=$(realpath "$1")
target=$2
mkdir -p "$3"
output=$(realpath "$3")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir "$folder/completions"
cp "$program" "$folder/mcp-conformance"
cp "$root"/LICENSE-* "$root/README.md" "$root/CHANGELOG.md" "$folder"
"$program" man >"$folder/mcp-conformance.1"
for shell in bash zsh fish; do
  "$program" completions "$shell" >"$folder/completions/mcp-conformance.$shell"
done

archive=mcp-conformance-$target.tar.gz
# The program comes first, so that it can be read without the rest.
(cd "$folder" && tar -czf "$output/$archive" mcp-conformance mcp-conformance.1 completions LICENSE-* ./*.md)
cd "$output"
if command -v sha256sum >/dev/null; then
  sha256sum "$archive" >"$archive.sha256"
else
  shasum -a 256 "$archive" >"$archive.sha256"
fi
printf '%s\n' "$output/$archive"
