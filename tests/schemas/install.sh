#!/usr/bin/env bash
# Downloads the official JSON-Schema-Test-Suite into suite/ next to this file, from a package that includes it: the
# source distribution of the Python library jsonschema. Does nothing if it is installed.
#
#     tests/schemas/install.sh [--force]
#
# Needs python3 with venv. Of what is downloaded only the build backends of backends.txt are run, which are pinned by hashes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly PACKAGE=jsonschema
readonly VERSION=4.26.0
readonly HASH=0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326

say() { printf 'schemas: %s\n' "$*"; }
die() {
  printf 'schemas: error: %s\n' "$*" >&2
  exit 1
}

case ${1-} in
  '') ;;
  --force) rm -rf suite ;;
  *) die "unknown option $1; usage: $0 [--force]" ;;
esac

# The stamp is written last, into the folder that it is about, so that an interrupted installation has none.
if [[ -f suite/.pin && $(<suite/.pin) == "$VERSION $HASH" ]]; then
  say 'unchanged'
  exit 0
fi

say 'downloading'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" || die 'python3 -m venv failed: install python3-venv'
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r backends.txt ||
  die 'pip could not install the build backends'
"$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$PACKAGE" \
  --no-build-isolation --dest "$work" "$PACKAGE==$VERSION" || die "pip could not download $PACKAGE $VERSION"
archive=$work/$PACKAGE-$VERSION.tar.gz
[[ -f $archive ]] || die "$PACKAGE $VERSION has an unexpected file name"
python3 - "$archive" "$HASH" <<'CHECK' || die "$PACKAGE $VERSION does not have the pinned hash"
import hashlib, sys
with open(sys.argv[1], "rb") as archive:
    sys.exit(hashlib.sha256(archive.read()).hexdigest() != sys.argv[2])
CHECK
tar -xzf "$archive" -C "$work" "$PACKAGE-$VERSION/json/tests"
rm -rf suite
mv "$work/$PACKAGE-$VERSION/json/tests" suite
printf '%s %s\n' "$VERSION" "$HASH" >suite/.pin
say 'ready'
