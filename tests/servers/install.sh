#!/usr/bin/env bash
# Installs the pinned real servers next to this file: the npm packages into node_modules/, the PyPI packages into
# .venv/ and .venv-fastmcp-2/. Does nothing if they are installed and the pins have not changed.
#
#     tests/servers/install.sh [--force]
#
# Needs node, npm, git and python3 with venv; as root on Debian or Ubuntu it installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly OLDEST_NODE=18
readonly OLDEST_PYTHON=10 # of Python 3, as the Python SDK requires

say() { printf 'servers: %s\n' "$*"; }
die() {
  printf 'servers: error: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Debian packages venv without ensurepip, which installs pip into an environment, so check for both.
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
  # One by one: some builds of the nodejs package include npm and conflict with Debian's npm package.
  has node || apt_install nodejs
  has npm || apt_install npm
  has git || apt_install git
  has_venv || apt_install python3 python3-venv

  # The interpreter that comes first on PATH may not be the one that was just installed.
  local program
  for program in node npm git python3; do
    has "$program" || die "$program is still not on PATH"
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

# Each stamp is written last, into the folder that it is about, so that an interrupted or removed installation has none.
stamped() { [[ -f $1 && $(<"$1") == "$2" ]]; }

install_npm() {
  local stamp=node_modules/.pins pins
  pins=$(hash_of package.json package-lock.json)
  if stamped "$stamp" "$pins"; then
    say 'npm servers: unchanged'
    return
  fi
  say 'npm servers: installing'
  # None of the packages needs an install script.
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || die 'npm ci failed'
  printf '%s\n' "$pins" >"$stamp"
}

# install_pypi <environment> <requirements>
install_pypi() {
  local environment=$1 requirements=$2 pins
  local stamp=$environment/.pins
  pins=$(hash_of "$requirements")
  # An environment refers to the interpreter that created it, which may have been removed.
  if stamped "$stamp" "$pins" && "$environment/bin/python" -c '' 2>/dev/null; then
    say "PyPI servers of $requirements: unchanged"
    return
  fi
  say "PyPI servers of $requirements: installing"
  rm -rf "$environment"
  python3 -m venv "$environment" || die 'python3 -m venv failed'
  # The pins must be complete: nothing else is installed, and a missing dependency is an error.
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --require-hashes -r "$requirements" ||
    die 'pip install failed'
  "$environment/bin/python" -m pip check --disable-pip-version-check >/dev/null ||
    die "$requirements is not complete: run $environment/bin/python -m pip check"
  printf '%s\n' "$pins" >"$stamp"
}

case ${1-} in
  '') ;;
  --force) rm -rf node_modules .venv .venv-fastmcp-2 ;;
  *) die "unknown option $1; usage: $0 [--force]" ;;
esac

# A stamped installation worked before, so the programs are checked only if there is something to install.
if ! stamped node_modules/.pins "$(hash_of package.json package-lock.json)" ||
  ! stamped .venv/.pins "$(hash_of requirements.txt)" ||
  ! stamped .venv-fastmcp-2/.pins "$(hash_of requirements-fastmcp-2.txt)" ||
  ! has node || ! has git; then
  find_programs
fi
install_npm
install_pypi .venv requirements.txt
install_pypi .venv-fastmcp-2 requirements-fastmcp-2.txt

for program in node_modules/.bin/{mcp-server-{everything,filesystem,memory,debug},mcp-budget-allocator-server,kubernetes-mcp-server} \
  .venv/bin/{mcp-server-{time,git},calculator-mcp-server} .venv-fastmcp-2/bin/unit-converter-mcp; do
  [[ -x $program ]] || die "$program is missing after the installation; try $0 --force"
done
say 'ready'
