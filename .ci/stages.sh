# What the scripts of this folder share: stages with their times, and the tools that every one of them needs.
# Source it from the root of the project.

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}
# A build from nothing is faster without the data for later builds and without debug information. Elsewhere the builds of
# the caller stay valid.
if [[ -n ${CI:-} ]]; then
  export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0} CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-0}
fi

# The versions with which the results count. A machine that has others uses them, and says so: it may have no network.
readonly RUST=1.95.0

readonly LOGS=target/ci BEGAN=$SECONDS
mkdir -p "$LOGS"
: >"$LOGS/times"
: >"$LOGS/failed.txt"

die() {
  printf 'ci: error: %s\n' "$*" >&2
  exit 1
}

# stage <headline> <command>...
# Runs a command as a stage; returns what it returns.
stage() {
  local headline=$1 began=$SECONDS status=0
  shift
  printf '\n==> %s\n' "$headline"
  # "||" disables "set -e", also inside the command: stages are single commands or functions that check for errors
  # themselves.
  "$@" || status=$?
  local took=$((SECONDS - began))
  if ((status != 0)); then
    printf '==> FAILED: %s (exit %d after %d s, load %s)\n' "$headline" "$status" "$took" "$(load)" >&2
  else
    printf '==> ok: %s (%d s)\n' "$headline" "$took"
  fi
  printf '%6d s  %s%s\n' "$took" "$headline" "$( ((status == 0)) || printf ' (failed)')" >>"$LOGS/times"
  return "$status"
}

load() {
  if [[ -r /proc/loadavg ]]; then cut -d' ' -f1-3 /proc/loadavg; else uptime | sed 's/.*: //'; fi
}

# recorded <name> <command>...
# Runs tests; if they fail, the messages of the failed ones are repeated at the end of the run.
recorded() {
  local output=$LOGS/$1.txt status=0
  shift
  "$@" 2>&1 | tee "$output" || status=${PIPESTATUS[0]}
  # The suite writes its own failures. Unit tests and documentation tests that fail print "---- NAME stdout ----".
  ((status == 0)) || awk '
    /^---- .* stdout ----$/ { on = 1; sub(/^---- /, "failed: "); sub(/ stdout ----$/, ""); print; next }
    /^(failures:|test result: .*|---- .*)$/ { on = 0 }
    on && NF
  ' "$output" >>"$LOGS/failed.txt"
  return "$status"
}

# logged <name> <command>...
# Runs a compiler; if it fails, its errors are repeated at the end of the run.
logged() {
  local name=$1 output=$LOGS/$1.txt status=0
  shift
  "$@" 2>&1 | tee "$output" || status=${PIPESTATUS[0]}
  ((status == 0)) || {
    printf 'failed: %s\n' "$name"
    sed 's/\x1b\[[0-9;]*m//g' "$output" | grep -E -A 6 '^(error|warning|Diff in)' | grep -vE '^(--|\s*\|?)$' || true
  } >>"$LOGS/failed.txt"
  return "$status"
}

# show_failures
# The failures in few lines: each with its name, and as much of its message as there is room for.
show_failures() {
  local count
  count=$(grep -c '^failed' "$LOGS/failed.txt") || return 0
  awk -v lines="$((32 / count > 2 ? 32 / count : 2))" '/^failed/ { n = 0 } NF && n++ < lines' "$LOGS/failed.txt" | tail -n 36
}

find_rust() {
  command -v cargo >/dev/null || die 'cargo is not on the PATH: install a Rust toolchain'

  # Build scripts and linking need a C compiler.
  command -v cc >/dev/null || install_debian gcc libc6-dev || die 'cc is missing: install a C compiler'

  # A minimal toolchain lacks these two.
  local component
  for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 && continue
    command -v rustup >/dev/null || die "cargo $component is missing, and so is rustup, which could add it"
    rustup component add "${component/#fmt/rustfmt}" || die "rustup could not add $component"
  done
  cargo --version && rustc --version && cargo clippy --version
  [[ $(rustc --version) == "rustc $RUST "* ]] ||
    printf 'note: results count with Rust %s; another one may have other lints\n' "$RUST"
}

# install_debian <package>...
# Installs packages as root on Debian or Ubuntu; fails elsewhere.
install_debian() {
  command -v apt-get >/dev/null && [[ $(id -u) == 0 ]] || return 1
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null && hash -r
}

# finish <status>
# Prints the times of the stages and, last, what failed. Exits with the status.
finish() {
  local status=$1
  printf '\n'
  cat "$LOGS/times"
  if ((status == 0)); then
    printf '==> all stages passed (%d s)\n' "$((SECONDS - BEGAN))"
  else
    show_failures
    printf '==> FAILED after %d s, load %s; all messages: %s\n' "$((SECONDS - BEGAN))" "$(load)" "$LOGS/failed.txt"
  fi
  exit "$status"
}
