#!/bin/sh
# Common guess: keras.utils.clear_session() clears the state of the calling thread, because Keras keeps its global state
#   in a threading.local, or it affects only names that are generated later.
# Fact: the call replaces the threading.local itself. Another thread that is inside `with keras.name_scope(...)` loses the
#   scope at once: a variable that it creates afterwards has no prefix in its path.
# Version: keras 3.15.1 with jax 0.10.2.
# Source: keras/src/backend/common/global_state.py, clear_session.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2
cat > "$folder/program.py" <<'EOF'
import threading

import keras

entered, cleared = threading.Event(), threading.Event()
paths = []


def build():
    with keras.name_scope("tower"):
        paths.append(keras.Variable([1.0], name="before").path)
        entered.set()
        cleared.wait()
        paths.append(keras.Variable([1.0], name="after").path)


thread = threading.Thread(target=build)
thread.start()
entered.wait()
keras.utils.clear_session()
cleared.set()
thread.join()
print("keras", keras.__version__)
print("paths within one scope, before and after another thread cleared its session:", paths)
assert paths == ["tower/before", "after"], paths
EOF
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py"
