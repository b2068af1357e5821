#!/usr/bin/env bash
# Runs the items of DIRECTORY/items (NAME, SECONDS, COMMAND, separated by tabs) one after the other in the lab
# they were given to, so that one start of a lab serves many programs. Leaves
# DIRECTORY/NAME/{stdout,stderr,status,seconds}; says nothing about right or wrong: that is the test's part.
set -u
directory=$1
while IFS=$'\t' read -r name seconds command; do
    item=$directory/$name
    mkdir -p "$item"
    started=$(date +%s.%N)
    # The item's own directory is for the files it makes; --kill-after for what does not heed SIGTERM.
    (cd "$item" && exec timeout --kill-after=10 "$seconds" bash -c "$command") \
        >"$item/stdout" 2>"$item/stderr" </dev/null
    status=$?
    awk -v from="$started" -v to="$(date +%s.%N)" 'BEGIN { printf "%.1f\n", to - from }' >"$item/seconds"
    echo "$status" >"$item/status"
    echo "    $name: status $status after $(cat "$item/seconds") s"
done <"$directory/items"
