#!/bin/sh
# Regenerates the protobuf modules beside every .proto file under src/headwater.
#
# The generator is pinned to protobuf 4.25: its output runs on every protobuf runtime from 4.25 to today's, whereas newer
# generators tie their output to the runtimes of their own and the following major version.
set -eu
cd "$(dirname "$0")/.."

tools=${PROTOS_VENV:-build/protos-venv}
if [ ! -x "$tools/bin/python" ]; then
    if command -v uv >/dev/null; then
        uv venv --quiet --python 3.11 "$tools"
        uv pip install --quiet --python "$tools/bin/python" 'grpcio-tools==1.62.3' 'setuptools<81'
    else
        python3.11 -m venv "$tools"
        "$tools/bin/python" -m pip install --quiet 'grpcio-tools==1.62.3' 'setuptools<81'
    fi
fi

find src/headwater -name '*.proto' | sort | while read -r file; do
    if grep -q '^service ' "$file"; then services=--grpc_python_out=src; else services=; fi
    # shellcheck disable=SC2086  # no services, no argument
    "$tools/bin/python" -W ignore -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src $services "$file"
    echo "$file"
done
