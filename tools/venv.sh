#!/bin/sh
# Creates the virtual environment DIR with the project and its development tools: venv.sh DIR
#
# Needs Python 3.11 or newer: $PYTHON, or else the newest supported version in the PATH, which supports the newest JAX.
# Installs with uv if it is available, otherwise with pip.
set -eu
cd "$(dirname "$0")/.."
dir=${1:?usage: venv.sh DIR}

find_python() {
    # Some systems ship Python without ensurepip, which venv needs. uv does not need it; without uv, another Python is preferred.
    for modules in sys,ensurepip sys; do
        for name in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
            if "$name" -c "import $modules; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then
                echo "$name"
                return
            fi
        done
    done
    if [ -n "${PYTHON:-}" ]; then
        echo "venv.sh: PYTHON=$PYTHON does not run as Python 3.11 or newer" >&2
    else
        echo "venv.sh: no Python 3.11 or newer on the PATH; name one with PYTHON=..." >&2
    fi
    return 1
}

# Replaces an environment of another Python version.
version='import sys; print(sys.version_info[:2])'
if [ -n "${PYTHON:-}" ] && [ -f "$dir/pyvenv.cfg" ] && [ "$("$dir/bin/python" -c "$version")" != "$("$PYTHON" -c "$version")" ]; then
    rm -rf "$dir"
fi

if [ ! -x "$dir/bin/python" ]; then
    python=$(find_python)
    if ! "$python" -m venv "$dir" 2>/dev/null; then
        rm -rf "$dir"
        command -v uv >/dev/null || { echo "venv.sh: '$python -m venv' failed; install python3-venv or uv" >&2; exit 1; }
        uv venv --quiet --python "$python" "$dir"
    fi
fi

# uv resolves the versions of all dependencies in seconds, pip in a quarter of an hour.
uv=$(command -v "$dir/bin/uv" || command -v uv || true)
# An environment created by uv has no pip, and uv may have been removed since.
if [ -z "$uv" ] && ! "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    "$dir/bin/python" -m ensurepip >/dev/null
fi
if [ -z "$uv" ] && "$dir/bin/python" -m pip install --quiet --disable-pip-version-check uv; then
    uv=$dir/bin/uv
fi
if [ -n "$uv" ] && "$uv" pip install --quiet --python "$dir/bin/python" --editable '.[dev,keras,platform]'; then
    exit 0
fi
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev,keras,platform]'
