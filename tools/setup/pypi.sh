#!/usr/bin/env bash
# Makes .cache/mpi/NAME, one Python environment per MPI, from tools/setup/pypi-NAME.txt; a directory whose pin
# is unchanged is used again. `lint` is no MPI but what make lint needs, and `headers` has only the headers of
# MPIs, which mpi/build.sh takes. `pypi.sh suite` also unpacks mpi4py's source package, whose tests we run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/mpi
mkdir -p "$cache"

quiet=(--disable-pip-version-check --progress-bar off)

# The headers are those of x86-64 on every machine: nothing is run, and other machines of 64 bits have the
# same.
headers() { # environment, pin
    local wheel
    "$here/progress" pip-headers "$1/bin/pip" download "${quiet[@]}" --no-deps --require-hashes --only-binary :all: \
        --platform manylinux_2_28_x86_64 -d "$1/wheels" -r "$2"
    for wheel in "$1"/wheels/*.whl; do
        "$1/bin/python" - "$wheel" "$1" <<'END'
import pathlib, sys, zipfile

name = pathlib.Path(sys.argv[1]).name.split("-")[0]
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for path in map(pathlib.PurePath, wheel.namelist()):
        # LICENSE alone: the others are those of libraries in the wheel.
        if path.match("data/include/*.h") or path.name == "LICENSE":
            target = pathlib.Path(sys.argv[2], name, path.name)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(wheel.read(str(path)))
END
    done
    rm -r "$1/wheels"
}

# Debian's /usr/bin/python3 has no venv without a package that a machine with its own python3 need not have.
find_python() { # sets `python`
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    done
    echo "setup: no python3 with the venv module; apt-get install python3-venv, or put one first in PATH" >&2
    exit 1
}

for name in "$@"; do
    pin=$here/pypi-$name.txt
    if [ ! -e "$pin" ]; then
        echo "setup: no such MPI: $name (there is: $(cd "$here" && ls pypi-*.txt | sed 's/pypi-//; s/.txt//' | tr '\n' ' '))" >&2
        exit 2
    fi
    environment=$cache/$name
    # The source tar has the headers alone.
    if cmp -s "$pin" "$environment/pin.txt" && { [ "$name" = headers ] || [ -x "$environment/bin/python" ]; }; then
        echo "setup: $name is there"
        continue
    fi
    find_python
    rm -rf "$environment"
    "$here/progress" "venv-$name" "$python" -m venv "$environment"
    if [ "$name" = headers ]; then
        headers "$environment" "$pin"
    else
        "$here/progress" "pip-$name" "$environment/bin/pip" install "${quiet[@]}" -r "$pin"
    fi
    if [ "$name" = suite ]; then
        source_pin=$(grep -m 1 '^mpi4py==' "$pin")
        "$here/progress" mpi4py-source "$environment/bin/pip" download "${quiet[@]}" --no-deps \
            --no-binary mpi4py -d "$environment/source" "$source_pin"
        tar -xzf "$environment/source/"mpi4py-*.tar.gz -C "$environment/source" --strip-components 1
    fi
    # Last, so that an interrupted installation is not taken for a finished one.
    cp "$pin" "$environment/pin.txt"
done
