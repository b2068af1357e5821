#!/usr/bin/env bash
# portable.sh: tools/dist/portable.py refuses what does not run on other machines, and nothing else. Each file
# is made by this machine's compiler.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
files=$(mktemp -d)
trap 'rm -r "$files"' EXIT

make_file() { # name, words for the compiler; the source is on standard input
    mkdir -p "$files/$1"
    cc -x c - -o "$files/$1/$1.so" -shared -fPIC "${@:2}"
}

expect() { # name, what the check says of it, glibc, paths
    local said status=0 wanted=1
    if [[ $2 == portable:* ]]; then wanted=0; fi
    said=$("$root/tools/dist/portable.py" --glibc "$3" "$files/$1" "${@:4}" 2>&1) || status=$?
    if [[ $said != *"$2"* || $status -ne $wanted ]]; then
        echo "portable.sh: of $1 portable.py says with status $status: $said; it has to say: $2" >&2
        exit 1
    fi
}

# quick_exit has a version of 2.24, and a weak need of it is one, too, which not every linker marks.
make_file strong <<<'void quick_exit(int); void end(void) { quick_exit(0); }'
make_file weak <<<'__attribute__((weak)) void quick_exit(int); void abort(void);
    void end(void) { if (quick_exit) quick_exit(0); abort(); }'
make_file searching -Wl,-rpath,/opt/here <<<'int one = 1;'
make_file telling <<<'const char *here = "/home/builder/causeway/main.c";'
make_file needing -Wl,--no-as-needed -lgcc_s <<<'int one = 1;'
mkdir "$files/nothing"
expect strong 'strong.so: needs GLIBC_2.24' 2.23
expect weak 'needs GLIBC_2.24' 2.23
expect strong 'portable: 1 programs' 2.24
expect weak 'portable: 1 programs' 2.28
expect searching 'has RUNPATH /opt/here' 2.28
expect telling 'holds the path /home/builder' 2.28 /home/builder
expect telling 'portable: 1 programs' 2.28 /home/build
expect telling 'portable: 1 programs' 2.28 /causeway
expect needing "which is neither glibc's nor beside it" 2.28
expect nothing 'no program or library' 2.28
echo "portable.sh: all right"
