#!/usr/bin/env bash
# Makes what a release has besides its archives: the npm packages, the wheels, the Homebrew formula and the installer.
#
#   packages.sh VERSION OWNER/REPOSITORY ARCHIVES OUTPUT-FOLDER
#
# Needs node, npm and python3.
set -euo pipefail

version=$1 repository=$2
archives=$(realpath "$3")
mkdir -p "$4"
output=$(realpath "$4")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

node "$here/npm/build.mjs" "$version" "$repository" "$archives" "$folder"
for package in "$folder"/*; do
  npm pack --silent --pack-destination "$output" "$package"
done
python3 "$here/pypi/build.py" "$version" "$repository" "$archives" "$output"
"$here/homebrew.sh" "$version" "$repository" "$archives" >"$output/mcp-conformance.rb"
# The installer of a release needs no variables.
sed "s|^readonly RELEASED_BY=$|&$repository|" "$here/install.sh" >"$output/install.sh"
