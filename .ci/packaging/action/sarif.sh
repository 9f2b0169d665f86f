#!/usr/bin/env bash
# Uploads the findings of a JSON report to code scanning.
#
# Needs REPORT, GH_TOKEN, RUNNER_TEMP, GITHUB_REPOSITORY, GITHUB_SHA and GITHUB_REF. SARIF_FILE is the file that the findings
# are shown at.
set -euo pipefail

sarif=$RUNNER_TEMP/mcp-conformance.sarif
# The exit code of `report` is that of the run.
mcp-conformance report "$REPORT" --quiet --report "sarif=$sarif" ${SARIF_FILE:+--sarif-file "$SARIF_FILE"} || (($? <= 3))
# The interface takes the file compressed and encoded. The body goes through a file, as arguments are limited in length.
gzip -c "$sarif" | base64 | tr -d '\n' >"$sarif.encoded"
jq -n --arg commit "$GITHUB_SHA" --arg ref "$GITHUB_REF" --rawfile sarif "$sarif.encoded" \
  '{commit_sha: $commit, ref: $ref, sarif: $sarif, tool_name: "mcp-conformance"}' >"$sarif.body"
gh api --method POST "repos/$GITHUB_REPOSITORY/code-scanning/sarifs" --input "$sarif.body" >/dev/null
