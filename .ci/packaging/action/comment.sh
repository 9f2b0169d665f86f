#!/usr/bin/env bash
# Writes a JSON report to a comment on a pull request: a new one, or the one of an earlier run.
#
# Needs REPORT, GH_TOKEN, PULL_REQUEST, RUNNER_TEMP, GITHUB_REPOSITORY, GITHUB_SERVER_URL and GITHUB_RUN_ID.
set -euo pipefail

if [[ -z $PULL_REQUEST ]]; then
  echo 'There is no pull request to comment on.'
  exit 0
fi

# What is invisible in the comment finds it again.
readonly MARK='<!-- mcp-conformance -->'
# GitHub rejects a comment with more than 65,536 characters.
readonly MAX_BYTES=60000

body=$RUNNER_TEMP/mcp-conformance.md
mcp-conformance report "$REPORT" --quiet --report "markdown=$body.full" || (($? <= 3))
{
  printf '%s\n' "$MARK"
  if (($(wc -c <"$body.full") > MAX_BYTES)); then
    # A comment that is cut in the middle of a line, or of a character, is not shown well.
    head -c "$MAX_BYTES" "$body.full" | sed '$d'
    printf '\n\nThe rest is in the summary of [the run](%s).\n' \
      "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
  else
    cat "$body.full"
  fi
} >"$body"
jq -Rs '{body: .}' "$body" >"$body.json"

comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
id=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$MARK\")) | .id" | head -n 1)
if [[ -n $id ]]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --input "$body.json" >/dev/null
else
  gh api --method POST "$comments" --input "$body.json" >/dev/null
fi
