#!/usr/bin/env bash
# Installs mcp-conformance for the steps after this one: a release, or a build of the version of the action.
#
# Needs VERSION, RUNNER_TEMP, GITHUB_PATH and GITHUB_ACTION_PATH; a release also needs what .ci/packaging/install.sh needs.
set -euo pipefail

export MCP_CONFORMANCE_BIN=$RUNNER_TEMP/mcp-conformance-bin
if [[ $VERSION == source ]]; then
  # The target folder is what the cache keeps.
  cargo install --locked --path "$GITHUB_ACTION_PATH" --root "$RUNNER_TEMP/mcp-conformance-root" \
    --target-dir "$RUNNER_TEMP/mcp-conformance-build"
  MCP_CONFORMANCE_BIN=$RUNNER_TEMP/mcp-conformance-root/bin
else
  sh "$GITHUB_ACTION_PATH/.ci/packaging/install.sh" "$VERSION"
fi
printf '%s\n' "$MCP_CONFORMANCE_BIN" >>"$GITHUB_PATH"
