#!/usr/bin/env bash
# Tests docs/rust-template with this package instead of a published one: its cases pass, and one fails once its server breaks a rule.
# `rust-template.sh TARGET` compiles in the folder TARGET.
set -euo pipefail

readonly ROOT=$(cd "$(dirname "$0")/../.." && pwd) TARGET=${1:?the folder for what is compiled is missing}
readonly WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# replace FILE OLD NEW: replaces a text that is in exactly one line of a file.
replace() {
  [[ $(grep -cF -- "$2" "$1") == 1 ]] || { printf '%s is not in one line of %s\n' "$2" "$1"; return 1; }
  OLD=$2 NEW=$3 perl -pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$1"
}

cp -R "$ROOT/docs/rust-template/." "$WORK"
# The versions of this package; that of the template has to fit.
cp "$ROOT/Cargo.lock" "$WORK"
replace "$WORK/Cargo.toml" 'mcp-conformance = { version' "mcp-conformance = { path = \"$ROOT\", version"

cd "$WORK"
unset CARGO_TARGET_DIR
cases=(cargo test --quiet --test conformance --target-dir "$TARGET" --)
"${cases[@]}" | tee passed.txt
passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' passed.txt)
((passed >= 150)) || { printf '%d cases pass, at least 150 are expected\n' "$passed"; exit 1; }

replace src/main.rs '    Thermometer.serve(stdio())' $'    println!("ready");\n    Thermometer.serve(stdio())'
status=0
"${cases[@]}" stdio/ >failed.txt 2>&1 || status=$?
# Cargo exits with 101 if tests fail.
((status == 101)) && grep -F 'stdio/stdout-only-messages' failed.txt >/dev/null || {
  cat failed.txt
  printf 'the template exits with %d for a server that prints to its output, expected 101 and the failing case\n' "$status"
  exit 1
}
printf 'the template passes %d cases, and fails once its server breaks a rule\n' "$passed"
