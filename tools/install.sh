#!/bin/sh
# Make the virtual environment and install what requirements.lock pins. Usage: install.sh PYTHON VENV
set -eu
python=$1
venv=$2

fail() {
    echo "$1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || fail "Python is missing. Install Python 3.11 or newer, or name one: make PYTHON=python3.12 ..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old. Fusionscope needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."
command -v "${CXX:-c++}" >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 ||
    fail "A C++ compiler is missing: kernels for the CPU are compiled with it. Install g++ (Debian: apt-get install g++)."

if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" ||
        fail "Python could not make a virtual environment. Install its venv module (Debian: apt-get install python3-venv)."
fi
echo "Installing Python packages into $venv (the first time takes minutes)."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.lock ||
    fail "pip could not install what requirements.lock names; its message is above."
# The package itself, as a link to this folder: its console script, and its entry point for torch.compile.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . ||
    fail "pip could not install Fusionscope itself; its message is above."
