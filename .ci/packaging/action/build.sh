#!/usr/bin/env bash
# Builds the version of the action for the steps after this one, in a folder that the action caches.
#
# Needs RUNNER_TEMP, GITHUB_PATH and GITHUB_ACTION_PATH.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo '::error title=mcp-conformance::Building mcp-conformance needs Rust: install it in a step before, or choose a released version.'
  exit 1
fi
cargo install --locked --path "$GITHUB_ACTION_PATH" --root "$RUNNER_TEMP/mcp-conformance" \
  --target-dir "$RUNNER_TEMP/mcp-conformance-build"
printf '%s\n' "$RUNNER_TEMP/mcp-conformance/bin" >>"$GITHUB_PATH"
