#!/usr/bin/env bash
# Installs the pinned real servers: the npm ones into node_modules/, the PyPI ones into .venv/, both
# beside this file. Quick when they are there already and the pins have not changed since.
#
#     tests/servers/install.sh [--force]
#
# Needs node, npm, git and python3 with venv; as root on Debian or Ubuntu it installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly OLDEST_NODE=18
readonly OLDEST_PYTHON=10 # of Python 3: what the Python SDK asks for

say() { printf 'servers: %s\n' "$*"; }
die() {
  printf 'servers: error: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Debian ships venv without what it needs to put pip into an environment, so that is asked for too.
has_venv() { has python3 && python3 -c 'import ensurepip, venv' 2>/dev/null; }

apt_updated=
apt_install() {
  if ! has apt-get || [[ $(id -u) != 0 ]]; then
    die "missing: $* (named as Debian's packages); install it and run this again"
  fi
  say "installing with apt-get: $*"
  export DEBIAN_FRONTEND=noninteractive
  if [[ -z $apt_updated ]]; then
    apt-get update -qq || die 'apt-get update failed'
    apt_updated=yes
  fi
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null || die "apt-get could not install $*"
  hash -r
}

find_programs() {
  # One by one: some builds of the nodejs package bring npm along and refuse Debian's own beside it.
  has node || apt_install nodejs
  has npm || apt_install npm
  has git || apt_install git
  has_venv || apt_install python3 python3-venv

  # The package just installed need not be the interpreter that comes first in the search path.
  local program
  for program in node npm git python3; do
    has "$program" || die "$program is still not in the search path"
  done
  has_venv || die "$(command -v python3) has no venv module with pip"

  local node
  node=$(node --version) || die 'node does not run'
  node=${node#v}
  ((${node%%.*} >= OLDEST_NODE)) || die "node $node is too old: $OLDEST_NODE or later is needed"
  python3 -c "import sys; sys.exit(sys.version_info < (3, $OLDEST_PYTHON))" ||
    die "$(python3 --version) is too old: 3.$OLDEST_PYTHON or later is needed"
}

hash_of() {
  if has sha256sum; then
    cat "$@" | sha256sum | cut -d' ' -f1
  else # macOS
    cat "$@" | shasum -a 256 | cut -d' ' -f1
  fi
}

# Both stamps are written last and lie inside what they vouch for, so that an installation that was cut
# off, or removed, never counts as one.
stamped() { [[ -f $1 && $(<"$1") == "$2" ]]; }

install_npm() {
  local stamp=node_modules/.pins pins
  pins=$(hash_of package.json package-lock.json)
  if stamped "$stamp" "$pins"; then
    say 'npm servers: unchanged'
    return
  fi
  say 'npm servers: installing'
  # None of the packages needs a script of its own to be installed.
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || die 'npm ci failed'
  printf '%s\n' "$pins" >"$stamp"
}

install_pypi() {
  local stamp=.venv/.pins pins
  pins=$(hash_of requirements.txt)
  # An environment points at the interpreter that made it, which may have gone since.
  if stamped "$stamp" "$pins" && .venv/bin/python -c '' 2>/dev/null; then
    say 'PyPI servers: unchanged'
    return
  fi
  say 'PyPI servers: installing'
  rm -rf .venv
  python3 -m venv .venv || die 'python3 -m venv failed'
  # The pins are meant to be complete: nothing else is let in, and what would be lacking is an error.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt ||
    die 'pip install failed'
  .venv/bin/python -m pip check --disable-pip-version-check >/dev/null ||
    die 'requirements.txt is not complete: run .venv/bin/python -m pip check'
  printf '%s\n' "$pins" >"$stamp"
}

case ${1-} in
  '') ;;
  --force) rm -rf node_modules .venv ;;
  *) die "unknown option $1; usage: $0 [--force]" ;;
esac

# What is stamped ran once already, so the programs are only looked for when something is to be done.
if ! stamped node_modules/.pins "$(hash_of package.json package-lock.json)" ||
  ! stamped .venv/.pins "$(hash_of requirements.txt)" ||
  ! has node || ! has git; then
  find_programs
fi
install_npm
install_pypi

for program in node_modules/.bin/mcp-server-{everything,filesystem,memory} .venv/bin/mcp-server-{time,git}; do
  [[ -x $program ]] || die "$program is not there after the installation; try $0 --force"
done
say 'ready'
