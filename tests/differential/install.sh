#!/usr/bin/env bash
# Installs the official JSON Schemas of MCP into schemas/ next to this file, one for each revision, from published
# packages that include them: the Rust crates mcp-types and codex-mcp-types, and the source distribution of the Python
# library mcp. Does nothing if they are installed. The draft 2024-10-07 has no schema.
#
#     tests/differential/install.sh [--force]
#
# Needs cargo, and python3 with venv. Each schema is pinned by its hash.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The revision, the package, its version, the path of the schema in it, and the SHA-256 of the schema.
readonly SCHEMAS=(
  '2024-11-05 mcp-types 0.1.1 spec/2024-11-05-schema.json a8d257908873039944802645d936736ee81018dad008b8a4d100832b75f43b4f'
  '2025-03-26 codex-mcp-types 0.63.0 schema/2025-03-26/schema.json e720669548c8100a4282c49e580efd6ddf7f28899ea786fc8db251dbdb356131'
  '2025-06-18 codex-mcp-types 0.63.0 schema/2025-06-18/schema.json 05020a692319467847cdb1794b1306567f52860353b5ff2f2bc2b0140819305b'
  '2025-11-25 mcp 2.3.0 schema/2025-11-25.json 4e01628360a2149892eab8f298ceee626d24a58862184eb8ec85d95b8f353e31'
  '2026-07-28 mcp 2.3.0 schema/2026-07-28.json 6293cdfe015c14bd36eda4b1331ce37bda377609e58ed6d09d16f28e7d3c7ad4'
)
readonly PYTHON_PACKAGE=mcp

say() { printf 'official schemas: %s\n' "$*"; }
die() {
  printf 'official schemas: error: %s\n' "$*" >&2
  exit 1
}

case ${1-} in
  '') ;;
  --force) rm -rf schemas ;;
  *) die "unknown option $1; usage: $0 [--force]" ;;
esac

# The stamp is written last, into the folder that it is about, so that an interrupted installation has none.
pin=$(printf '%s\n' "${SCHEMAS[@]}")
if [[ -f schemas/.pin && $(<schemas/.pin) == "$pin" ]]; then
  say 'unchanged'
  exit 0
fi

say 'downloading'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/rust/src" "$work/schemas"

# A crate that depends on the packages: fetching its dependencies downloads and unpacks them, and builds nothing.
{
  printf '[package]\nname = "schemas"\nversion = "0.0.0"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n'
  for entry in "${SCHEMAS[@]}"; do
    read -r _ package version _ <<<"$entry"
    [[ $package == "$PYTHON_PACKAGE" ]] || printf '%s = "=%s"\n' "$package" "$version"
  done | sort -u
} >"$work/rust/Cargo.toml"
: >"$work/rust/src/lib.rs"
cargo metadata --quiet --format-version 1 --manifest-path "$work/rust/Cargo.toml" >"$work/rust/metadata.json" ||
  die 'cargo could not download the crates'

# The source folder of a crate.
crate_folder() {
  python3 - "$work/rust/metadata.json" "$1" "$2" <<'FOLDER'
import json, os, sys
path, name, version = sys.argv[1:]
with open(path) as metadata:
    packages = json.load(metadata)["packages"]
print(next(os.path.dirname(p["manifest_path"]) for p in packages if (p["name"], p["version"]) == (name, version)))
FOLDER
}

# The folder of the unpacked source distribution of a Python package.
python_folder() {
  local archive=$work/$1-$2.tar.gz
  if [[ ! -f $archive ]]; then
    python3 -m venv "$work/venv" || die 'python3 -m venv failed: install python3-venv'
    "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
      -r ../schemas/backends.txt >&2 || die 'pip could not install the build backends'
    "$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$1" \
      --no-build-isolation --dest "$work" "$1==$2" >&2 || die "pip could not download $1 $2"
    [[ -f $archive ]] || die "$1 $2 has an unexpected file name"
    tar -xzf "$archive" -C "$work" "$1-$2/schema"
  fi
  printf '%s\n' "$work/$1-$2"
}

for entry in "${SCHEMAS[@]}"; do
  read -r revision package version path hash <<<"$entry"
  if [[ $package == "$PYTHON_PACKAGE" ]]; then
    folder=$(python_folder "$package" "$version") || die "$package $version was not downloaded"
  else
    folder=$(crate_folder "$package" "$version") || die "$package $version was not downloaded"
  fi
  cp "$folder/$path" "$work/schemas/$revision.json"
  python3 - "$work/schemas/$revision.json" "$hash" <<'CHECK' || die "the schema of $revision does not have the pinned hash"
import hashlib, sys
with open(sys.argv[1], "rb") as schema:
    sys.exit(hashlib.sha256(schema.read()).hexdigest() != sys.argv[2])
CHECK
done
rm -rf schemas
mv "$work/schemas" schemas
printf '%s\n' "$pin" >schemas/.pin
say 'ready'
