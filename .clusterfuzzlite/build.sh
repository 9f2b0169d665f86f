#!/bin/bash -eu
# Builds every fuzz target that must not fail, with its seeds and its dictionary. The worked example (rmcp_server,
# rmcp_tool, random) is excluded, because it has a planted bug.
cd "$SRC/mcp-conformance"
targets=(frames sse http schema case_file baseline_file report_file render transcript)

flags=(-O --debug-assertions)
# The engine sets SANITIZER; values that are not sanitizers of cargo fuzz, such as "coverage", need no flag.
case ${SANITIZER:-address} in
  address | memory | none) flags+=(--sanitizer "${SANITIZER:-address}") ;;
esac
cargo fuzz build "${flags[@]}"

dictionary_of() {
  case $1 in
    frames | transcript) echo mcp ;;
    case_file | baseline_file) echo case ;;
    report_file) echo report ;;
    render) echo markup ;;
    *) echo "$1" ;;
  esac
}

for target in "${targets[@]}"; do
  cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
  rm -f "$OUT/${target}_seed_corpus.zip"
  zip --quiet --junk-paths "$OUT/${target}_seed_corpus.zip" fuzz/seeds/"$target"/*
  cp "fuzz/dict/$(dictionary_of "$target").dict" "$OUT/$target.dict"
  printf '[libfuzzer]\ntimeout = 30\nrss_limit_mb = 3072\n' >"$OUT/$target.options"
done
