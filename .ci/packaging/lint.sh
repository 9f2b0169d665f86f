#!/usr/bin/env bash
# What GitHub, GitLab and an image builder read, as they read it: the Dockerfile by hadolint, the action, the workflows, the
# issue forms, the GitLab component and the citation against the schemas that check-jsonschema brings along.
# `lint.sh FOLDER` installs both linters into FOLDER, once. Each has to reject a broken file before it is believed.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly FOLDER=${1:?the folder for the linters is missing} REQUIREMENTS=.ci/packaging/lint.txt
readonly WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

die() {
  printf 'lint: error: %s\n' "$*" >&2
  exit 1
}

if ! cmp -s "$REQUIREMENTS" "$FOLDER/installed.txt"; then
  rm -rf "$FOLDER"
  python3 -m venv "$FOLDER" || die 'python3 -m venv failed: install python3-venv'
  "$FOLDER/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    -r "$REQUIREMENTS" || die 'pip could not install the linters'
  cp "$REQUIREMENTS" "$FOLDER/installed.txt"
fi

# follows SCHEMA FILE...: checks files against a schema, and that the schema rejects a list.
follows() {
  local schema=vendor.$1
  shift
  echo '[]' >"$WORK/broken.yml"
  ! "$FOLDER/bin/check-jsonschema" --builtin-schema "$schema" "$WORK/broken.yml" >/dev/null ||
    die "$schema accepts a list"
  "$FOLDER/bin/check-jsonschema" --builtin-schema "$schema" "$@"
  printf '%s: %s\n' "$schema" "$*"
}

# The part behind the inputs is the configuration that GitLab includes.
awk 'parts { print } /^---$/ { parts++ }' templates/mcp-conformance.yml >"$WORK/gitlab-component.yml"
[[ -s $WORK/gitlab-component.yml ]] || die 'templates/mcp-conformance.yml has no part behind its inputs'
shopt -s extglob
follows github-actions action.yml
follows github-workflows .github/workflows/*.yml
follows github-issue-forms .github/ISSUE_TEMPLATE/!(config).yml
follows github-issue-config .github/ISSUE_TEMPLATE/config.yml
follows gitlab-ci "$WORK/gitlab-component.yml"
follows citation-file-format CITATION.cff

"$FOLDER/bin/hadolint" --no-color Dockerfile
sed 's/^USER .*/USER root/' Dockerfile >"$WORK/Dockerfile"
! "$FOLDER/bin/hadolint" --no-color "$WORK/Dockerfile" >/dev/null || die 'hadolint accepts images that run as root'
"$FOLDER/bin/hadolint" --version
