#!/usr/bin/env bash
# Compares the public interface with that of the last release, whose tag it reads from Git: the crate need not be in a registry.
# `semver.sh [REVISION]` compares with another revision.
set -euo pipefail

readonly SEMVER=0.51.0
last=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)} ||
  { echo 'nothing is released yet, so there is nothing to compare with'; exit 0; }
cargo semver-checks --version 2>/dev/null || cargo install --locked --debug "cargo-semver-checks@$SEMVER"
cargo semver-checks --all-features --baseline-rev "$last"
