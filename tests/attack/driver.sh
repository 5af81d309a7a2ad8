#!/bin/bash
# Pid 1 of the sandbox's inner namespace: runs one command after another as the agent's user, each with nothing left
# of the one before. A request is fields ended by NUL: folder, seconds, how many words, the words. The answer is one
# line with the exit status; the output is in /ctl/out, and /hits holds the markers.
mount -t proc proc /proc
ulimit -u 2000 -f 65536 -c 0
agent=(setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
while IFS= read -r -d '' folder && IFS= read -r -d '' seconds && IFS= read -r -d '' count; do
    words=()
    for ((i = 0; i < count; i++)); do
        IFS= read -r -d '' word
        words+=("$word")
    done
    # The agent's own process enters the folder: /proc/self is its own there.
    timeout -s KILL "$seconds" "${agent[@]}" env -C "$folder" "${words[@]}" </dev/null >/ctl/out 2>&1
    status=$?
    # Whatever is left of it ends here, before anybody looks.
    kill -KILL -1 2>/dev/null
    wait
    find /home/agent /tmp -xdev -name 'HIT*' -exec sh -c 'for f; do touch "/hits/name:${f##*/}"; rm -rf -- "$f"; done' sh {} + 2>/dev/null
    printf '%s\n' "$status"
done
