#!/usr/bin/env bash
# tiers.sh [TIER...]: runs tiers of tests, those of `make test` by default. `tiers.sh --list` names all;
# `--table` prints the table of docs/testing.md from what each tier says of itself, `--check` has status 1
# where the page has another one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
page=$here/../docs/testing.md
of_test=(unit messages profilers crossings examples world own-mpi e2e papers)

said() { # tier, key; a text goes on in lines that begin with more blanks
    awk -v key="# $2: " '
        index($0, key) == 1 { text = substr($0, length(key) + 1); inside = 1; next }
        inside && sub(/^#   /, "") { text = text " " $0; next }
        { inside = 0 }
        END { print text }' "$here/tiers/$1.sh"
}

all() { # the tiers of `make test` first
    printf '%s\n' "${of_test[@]}"
    find "$here/tiers" -name '*.sh' ! -name common.sh -printf '%f\n' | sed 's/\.sh$//' | sort | grep -vxFf <(printf '%s\n' "${of_test[@]}")
}

table() {
    local name
    echo '| tier | what is real or tested | needs | takes |'
    echo '|---|---|---|---|'
    while read -r name; do
        echo "| $name | $(said "$name" what) | $(said "$name" needs) | $(said "$name" takes) |"
    done < <(all)
}

case ${1:-} in
--list)
    while read -r name; do printf '%-12s %s\n' "$name" "$(said "$name" takes)"; done < <(all)
    exit
    ;;
--table)
    table
    exit
    ;;
--check)
    of_page=$(awk '/^\| tier \| what is real/ { inside = 1 } inside && !/^\|/ { exit } inside' "$page")
    [ "$of_page" = "$(table)" ] && exit
    echo "$page: its table of tiers is not what they say: tests/tiers.sh --table prints it" >&2
    exit 1
    ;;
esac

# A shell without job control has what it starts in the background ignore SIGINT, and nohup SIGHUP. Tests send
# these, and commands of labs keep to what they inherit.
[ -n "${TIERS_HEED:-}" ] || TIERS_HEED=1 exec env --default-signal=HUP,INT,QUIT "$0" "$@"

[ $# -gt 0 ] || set -- "${of_test[@]}"
for name in "$@"; do
    [ -x "$here/tiers/$name.sh" ] && continue
    echo "tiers.sh: there is no tier \"$name\"; tests/tiers.sh --list names all" >&2
    exit 2
done
# The tiers of `make test` need the same things: these are made once.
if [ $# -gt 1 ]; then
    make --no-print-directory -C "$here/.." setup build programs
    export TIERS_MADE="setup build programs"
fi
for name in "$@"; do
    echo "tier $name: $(said "$name" takes)"
    "$here/tiers/$name.sh"
done
