#!/bin/sh
# Make the virtual environment and install what the lock files pin. Usage: install.sh VENV [PYTHON]
# It does nothing where the environment was installed from these very files.
set -eu
cd "$(dirname "$0")/.."
venv=$1
python=${2:-}

fail() {
    echo "$1" >&2
    exit 1
}

is_new_enough() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for name in python3 python3.13 python3.12 python3.11 python3.14 python; do
        if is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
}

if [ -z "$python" ]; then
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is missing: install it, or name one: make PYTHON=/path/to/python3.12 ..."
fi
is_new_enough "$python" || fail "$python is missing or older than Python 3.11: install a newer one, or name it: make PYTHON=/path/to/python3.12 ..."

# The same choice as the compiler of our kernels makes.
has_compiler=
for name in ${CXX:-g++ clang++ c++}; do
    if command -v "$name" >/dev/null 2>&1; then has_compiler=yes; fi
done
[ -n "$has_compiler" ] || fail "A C++ compiler is missing, and kernels for the CPU are compiled with it: install g++ (Debian: apt-get install g++)."

locks="requirements.lock requirements-dev.lock pyproject.toml"
stamp=$venv/.installed
here=$(pwd)
wanted=$(cat $locks tools/install.sh | cksum)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$here
$wanted" ]; then
    exit 0
fi

# Programs in the environment name its folder: one that was moved or copied, or half made, is made again.
came_from_here() {
    [ ! -f "$stamp" ] || [ "$(head -n 1 "$stamp")" = "$here" ]
}
if ! came_from_here || ! is_new_enough "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv" ||
        fail "Python could not make a virtual environment: install its venv module (Debian: apt-get install python3-venv)."
fi
rm -f "$stamp"

install() {
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet "$@" </dev/null
}
echo "Installing Python packages into $venv (the first time takes minutes)."
install --no-compile -r requirements-dev.lock || fail "pip could not install what requirements-dev.lock names: see its message above, and run make again."
# pip compiles one file after the other. Some files of packages are for other versions of Python, which is no failure.
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || true
# The package itself, as a link to this folder: its console script, and its entry point for torch.compile.
install --no-deps --no-build-isolation --editable . || fail "pip could not install Fusionscope itself: see its message above."
printf '%s\n%s\n' "$here" "$wanted" >"$stamp"
