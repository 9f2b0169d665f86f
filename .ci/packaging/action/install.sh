#!/usr/bin/env bash
# Installs a release of mcp-conformance for the steps after this one. If no release fits, the output `build` asks the next steps
# to build the version of the action.
#
# Needs VERSION, RUNNER_TEMP, GITHUB_PATH, GITHUB_OUTPUT, GITHUB_ACTION_PATH, and what .ci/packaging/install.sh needs.
set -euo pipefail

own=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$GITHUB_ACTION_PATH/Cargo.toml" | head -n 1)
# By default, who pins the action pins the program.
version=${VERSION:-$own}
version=${version#v}

build() {
  printf 'build=true\n' >>"$GITHUB_OUTPUT"
  exit 0
}

[[ $version != source ]] || build
# An action that is a folder of the workflow's repository has no repository of its own.
if [[ -z ${MCP_CONFORMANCE_REPOSITORY:-} && -z ${MCP_CONFORMANCE_BASE_URL:-} ]]; then
  echo "The action is not from a repository with releases, so mcp-conformance $own is built."
  build
fi

export MCP_CONFORMANCE_BIN=$RUNNER_TEMP/mcp-conformance/bin
code=0
sh "$GITHUB_ACTION_PATH/.ci/packaging/install.sh" "$version" || code=$?
if ((code == 3)) && [[ $version == "$own" || $version == latest ]]; then
  echo "::warning title=mcp-conformance::No release fits this machine, so mcp-conformance $own is built, which takes minutes the first time."
  build
elif ((code == 3)); then
  echo "::error title=mcp-conformance::There is no archive of version $version for this machine, and this action can only build $own."
fi
((code == 0)) || exit "$code"
printf '%s\n' "$MCP_CONFORMANCE_BIN" >>"$GITHUB_PATH"
