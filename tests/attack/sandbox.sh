#!/usr/bin/env bash
# Pid 1 of namespaces of its own (`unshare`, see sandbox.rs): makes a root in memory that holds a copy of the template
# and the machine's programs read-only, enters it, gives up what could lead out, and becomes the driver or a program.
#
#   sandbox.sh ROOT TEMPLATE SHARED BINARY WHAT…
#
# ROOT      an empty folder to mount on; the mounts end with the namespace
# TEMPLATE  home, workspace, secrets and settings, as workspace.sh made them
# SHARED    the one folder both sides write: hits/ takes the markers, out what a line printed
# WHAT      `driver`, `gate` (a gate beside the driver), or a program to become
set -euo pipefail
root=$1 template=$2 shared=$3 binary=$4
shift 4
here=$(dirname "$(readlink -f "$0")")
cargo_home=${CARGO_HOME:-$HOME/.cargo} rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

mount --make-rprivate /
mount -t tmpfs -o size=1g,mode=755 attack "$root"
cp -a "$template/." "$root/"
cd "$root"
mkdir -p usr proc dev tmp hits ctl opt mnt old var/tmp run
chmod 1777 tmp var/tmp
read_only() { mount --bind "$1" "$2" && mount -o remount,bind,ro,nosuid,nodev "$2"; }
read_only /usr usr
for name in bin sbin lib lib32 lib64; do
    if [ -L "/$name" ]; then cp -a "/$name" "$name"
    elif [ -d "/$name" ]; then mkdir -p "$name" && read_only "/$name" "$name"; fi
done
# Rust as rustup installs it: proxies in ~/.cargo/bin, toolchains in ~/.rustup.
if [ -d "$cargo_home/bin" ] && [ -d "$rustup_home" ]; then
    mkdir -p home/agent/.cargo/bin home/agent/.rustup
    read_only "$cargo_home/bin" home/agent/.cargo/bin
    read_only "$rustup_home" home/agent/.rustup
    chown 1000:1000 home/agent/.cargo
fi
for device in null zero full random urandom; do
    touch "dev/$device" && mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mkdir dev/pts && mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts && ln -s pts/ptmx dev/ptmx
mount --bind "$shared/hits" hits
mount --bind "$shared" ctl
touch opt/countersign opt/driver.sh
mount --bind "$binary" opt/countersign
mount --bind "$here/driver.sh" opt/driver.sh
mount -t proc proc proc
ip link set lo up
pivot_root . old
umount -l /old
# Nothing of whoever runs the tests: neither variables of cargo nor keys.
while IFS= read -r -d '' pair; do unset "${pair%%=*}" 2>/dev/null || true; done < <(/usr/bin/env -0)
export HOME=/home/agent PATH=/home/agent/.cargo/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 USER=agent LOGNAME=agent
cd /home/agent/work
# An ordinary user without any capability, for what is not the driver itself.
agent=(setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
case "$1" in
    driver) exec unshare --mount --pid --fork --kill-child /bin/bash /opt/driver.sh ;;
    gate)
        # Settings first, by the person who owns the machine; then the gate; then the agent's key for the driver.
        rm -rf /home/agent/.local/share/countersign
        printf '{"version":1,"ask":"off"}' >/run/policy.json
        "${agent[@]}" /opt/countersign policy set default /run/policy.json >/dev/null 2>&1
        "${agent[@]}" /opt/countersign keys create --role agent --name agent 2>/dev/null >/ctl/agent.key
        "${agent[@]}" /opt/countersign serve --listen 127.0.0.1:0 </dev/null >/dev/null 2>/ctl/serve.log &
        until grep -qs "is listening on" /ctl/serve.log; do
            kill -0 $! || { cat /ctl/serve.log >&2; exit 1; }
            sleep 0.05
        done
        cp /home/agent/.local/share/countersign/admin.key /ctl/admin.key
        exec unshare --mount --pid --fork --kill-child /bin/bash /opt/driver.sh
        ;;
    *) exec "${agent[@]}" "$@" ;;
esac
