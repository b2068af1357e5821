#!/bin/bash
# shellcheck disable=SC2016 # Commands for other shells stand in quotes.
# ways.sh WAY [SHELL...]: the commands of a user as this environment starts them, for ways.rs. It runs in a
# directory of the user's. With SHELL..., each command is that shell's, such as `fish -c`. For each command it
# prints `WAY COMMAND: ok`, or the last lines that it printed.
set -u
way=$1
shift
home=$(getent passwd "$(id -u)" | cut -d : -f 6)
causeway="$home/.local/bin/causeway"
place=$(mktemp -d "$home/ways-XXXXXX")
cd "$place" || exit
echo input >input
printf '#!/bin/sh\ncat input >"out-$(hostname)"\n' >work.sh
chmod +x work.sh

typed() { # command line
    if [ ${#through[@]} -eq 0 ]; then timeout 100 sh -c "$1"; else timeout 100 "${through[@]}" "$1"; fi
}
through=("$@")

try() { # command, what it must print, command line
    local output
    output=$(typed "$3" 2>&1 </dev/null)
    if grep -qE "$2" <<<"$output"; then
        echo "$way $1: ok"
    else
        echo "$way $1: $(tail -n 4 <<<"$output" | tr '\n' ' ')"
    fi
}

sites='--sites rennes=1,nancy=1'
openmpi='mpirun.openmpi --allow-run-as-root -n 2'
try status 'tunnel to nancy' "$causeway status"
# The one failure is that jobs run as the gateway's user, which check says of any site of one account.
try check '[0-9]+ ok, .*1 failed' "$causeway check"
try run nancy-head "$causeway run $sites -- $openmpi hostname"
try files out-nancy-head "$causeway run $sites --send input --send work.sh --fetch 'out-*' -- mpiexec.hydra -n 2 ./work.sh && ls"
try submit '^[0-9]+$' "$causeway submit $sites -- $openmpi hostname"
job=$("$causeway" jobs --all 2>/dev/null | awk '/^[0-9]/ { last = $1 } END { print last }')
try wait nancy-head "$causeway wait $job && $causeway output $job"
try up 'All sites are in the grid' "$causeway up --yes rennes=. nancy=198.51.100.5"
echo "$way has been through all"
