#!/usr/bin/env bash
# Runs mcp-conformance with the ARGUMENTS, and outputs its version, its exit code and its JSON report. It succeeds whatever the server
# does: the last step of the action passes or fails, after the steps that show the result.
#
# Needs ARGUMENTS, ANNOTATIONS, SUMMARY, RUNNER_TEMP, GITHUB_OUTPUT and GITHUB_STEP_SUMMARY.
set -euo pipefail

# Words in quotes stay together, and nothing in them is executed.
words=()
if [[ -n ${ARGUMENTS//[[:space:]]/} ]]; then
  split=$(mktemp)
  printf '%s' "$ARGUMENTS" | xargs printf '%s\0' >"$split"
  # The bash of macOS has no mapfile.
  while IFS= read -r -d '' word; do
    words+=("$word")
  done <"$split"
  rm "$split"
fi

report=$RUNNER_TEMP/mcp-conformance.json
rm -f "$report"
options=(--report "json=$report")
[[ $SUMMARY != true ]] || options+=(--report "markdown=$GITHUB_STEP_SUMMARY")
# Annotations are commands on standard output; the text is on standard error then.
[[ $ANNOTATIONS != true ]] || options+=(--report github)

version=$(mcp-conformance --version)
printf 'version=%s\n' "${version##* }" >>"$GITHUB_OUTPUT"
code=0
mcp-conformance "${options[@]}" ${words[@]+"${words[@]}"} || code=$?
printf 'exit-code=%d\n' "$code" >>"$GITHUB_OUTPUT"
# There is no report if the arguments are wrong.
if [[ -s $report ]]; then
  printf 'report=%s\n' "$report" >>"$GITHUB_OUTPUT"
fi
