#!/usr/bin/env bash
# Private container engines for the tests and the quick start, each in a folder of its own.
#
#   scripts/engines.sh start docker DIR        engine on DIR/docker.sock, with the test image
#   scripts/engines.sh stop docker DIR         stops it as an operator would; keeps its data
#   scripts/engines.sh stop docker DIR --now   kills it and its containers; keeps its data
#   scripts/engines.sh remove docker DIR       stop --now, then deletes DIR
#   scripts/engines.sh image docker DIR        makes sure that the test image is there
#   scripts/engines.sh image docker SOCKET     the same on any Docker engine
#   scripts/engines.sh busybox                 prints the path of a static busybox
#   scripts/engines.sh status                  all private engines of this machine
#
# DIR/docker.pid and DIR/exec/containerd/containerd.pid hold the process ids, DIR/dockerd.log and
# DIR/containerd.log what they said. A killed engine is started again with `start`. An engine that
# was not started here is never touched.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

IMAGE=localtest/busybox

# One folder per private engine, named after its network: `dir` leads back to DIR, `exec` is the
# engine's volatile state. It is here and not in DIR because Unix socket paths end at 107 bytes.
REGISTRY=/run/bargee-engines

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
}

# ---- networks ------------------------------------------------------------------------------------

# Is 10.N free? Not when the machine routes there, nor when a private engine still runs there, nor
# when one whose folder still exists may have networks stored there.
network_is_free() {
    local owner
    if ip -4 route show | grep -q "^10\.$1\."; then return 1; fi
    [ -z "$(containerd_pid "$REGISTRY/$1/exec")" ] || return 1
    owner=$(readlink "$REGISTRY/$1/dir" 2>/dev/null) || return 0
    [ "$(cat "$owner/network" 2>/dev/null)" != "$1" ]
}

# Gives DIR a 10.N.0.0/16 that is its own for as long as DIR exists, so that engines side by side
# never hand out the same address.
claim_network() {
    local n
    mkdir -p "$REGISTRY"
    exec 8>"$REGISTRY/lock"
    flock 8
    NET=$(cat "$DIR/network" 2>/dev/null || true)
    if [ -z "$NET" ] || [ "$(readlink "$REGISTRY/$NET/dir" 2>/dev/null || echo "$DIR")" != "$DIR" ]; then
        n=$(printf %s "$DIR" | cksum | cut -d ' ' -f 1)
        NET=
        for ((n = n % 190, tries = 0; tries < 190; tries++, n = (n + 1) % 190)); do
            if network_is_free $((n + 65)); then
                NET=$((n + 65))
                break
            fi
        done
        [ -n "$NET" ] || die "no free 10.N.0.0/16 network left: see scripts/engines.sh status"
        rm -rf "${REGISTRY:?}/$NET"
        echo "$NET" >"$DIR/network"
    fi
    use_network "$NET"
    mkdir -p "$EXEC"
    ln -sfn "$DIR" "$REGISTRY/$NET/dir"
    ln -sfn "$EXEC" "$DIR/exec"
    exec 8>&-
}

# A default bridge of the engine's own: two engines would fight over docker0, and one that is told
# to have no default bridge deletes docker0, whoever it belongs to.
make_bridge() {
    BRIDGE=bargee-$NET
    ip link show "$BRIDGE" >/dev/null 2>&1 || ip link add "$BRIDGE" type bridge
    ip addr replace "10.$NET.255.1/24" dev "$BRIDGE"
    ip link set "$BRIDGE" up
}

# Bridges outlive their dockerd; ours are known by the ids in its network store.
delete_bridges() {
    local name
    {
        echo "bargee-$NET"
        grep -aohE 'network/v1.0/network/[0-9a-f]{12}' "$DIR/docker/network/files/local-kv.db" \
            2>/dev/null | sed 's,.*/,br-,' | sort -u
    } | while read -r name; do ip link delete "$name" 2>/dev/null || true; done
}

# Where a firewall or another Docker engine drops what is forwarded, that goes for the bridges of a
# private engine too. This lets containers on one bridge talk to each other. It comes last, so that
# whatever others forbid on theirs stays forbidden.
allow_own_traffic() {
    iptables -w -S FORWARD 2>/dev/null | grep -qx -e '-P FORWARD DROP' || return 0
    iptables -w -C FORWARD "${OWN_TRAFFIC[@]}" 2>/dev/null \
        || iptables -w -A FORWARD "${OWN_TRAFFIC[@]}"
}

forbid_own_traffic() {
    while iptables -w -D FORWARD "${OWN_TRAFFIC[@]}" 2>/dev/null; do :; done
}

# use_network N : sets what follows from the network's number.
use_network() {
    NET=$1
    EXEC=$REGISTRY/$NET/exec
    OWN_TRAFFIC=(-i br-+ -o br-+ -m physdev --physdev-is-bridged
        -m comment --comment "bargee-$NET" -j ACCEPT)
}

# ---- processes -----------------------------------------------------------------------------------

# The live dockerd of DIR, if any.
dockerd_pid() {
    local pid
    pid=$(cat "$DIR/docker.pid" 2>/dev/null) || return 0
    if runs_with "$pid" "$DIR/docker.pid"; then echo "$pid"; fi
}

# containerd_pid EXEC : the live containerd there, if any.
containerd_pid() {
    local pid
    pid=$(cat "$1/containerd/containerd.pid" 2>/dev/null) || return 0
    if runs_with "$pid" "$1/containerd/containerd.toml"; then echo "$pid"; fi
}

# Shims outlive their containerd; ours are known by its address among their arguments.
shim_pids() {
    local pid
    { grep -lsF -e "$EXEC/containerd/containerd.sock" /proc/[0-9]*/cmdline || true; } \
        | while IFS=/ read -r _ _ pid _; do
            case $(readlink "/proc/$pid/exe" 2>/dev/null) in
                */containerd-shim*) echo "$pid" ;;
            esac
        done
}

# A shim that is killed leaves its container running, so the container goes first.
kill_shims() {
    local shim child
    for shim in $(shim_pids); do
        { grep -lsx "PPid:[[:space:]]*$shim" /proc/[0-9]*/status || true; } \
            | while IFS=/ read -r _ _ child _; do kill -9 "$child" 2>/dev/null || true; done
        kill -9 "$shim" 2>/dev/null || true
    done
}

# end_process PID [--now] [TENTHS] : TERM, then KILL when that takes too long.
end_process() {
    [ -n "$1" ] || return 0
    if [ "$2" != --now ]; then
        kill -TERM "$1" 2>/dev/null || true
        wait_gone "$1" "$3" && return 0
    fi
    kill -9 "$1" 2>/dev/null || true
    wait_gone "$1" 50 || die "process $1 of the engine in $DIR does not end"
}

# ---- docker --------------------------------------------------------------------------------------

need_docker_packages() {
    # iptables: Docker's name server in each container is reached through it.
    need_commands dockerd=docker.io containerd=containerd runc=runc iptables=iptables ip=iproute2 \
        curl=curl
}

# Takes away what a killed engine left and a new one would stumble over: dockerd refuses to start
# while a zombie still has the process id in its pid file.
clear_stale_state() {
    [ -n "$(dockerd_pid)" ] || rm -f "$DIR/docker.pid" "$DIR/docker.sock"
    [ -n "$(containerd_pid "$EXEC")" ] \
        || rm -f "$EXEC/containerd/containerd.pid" "$EXEC/containerd/containerd.sock"
}

# launch LOG COMMAND... : in the background; sets LAUNCHED to its process id.
launch() {
    local log=$1
    shift
    printf -- '---- %s: %s\n' "$(date -Is)" "$*" >>"$log"
    # setsid: an engine must not get the signals of the terminal or test that called us.
    # 9: the lock on DIR must not live as long as the engine.
    setsid "$@" </dev/null >>"$log" 2>&1 9>&- &
    LAUNCHED=$!
}

# dockerd would start a containerd by itself, but not where the machine's own one runs: there it
# would mix its containers with those of the machine's own engine.
launch_containerd() {
    local n folder=$EXEC/containerd
    mkdir -p "$folder"
    printf '%s\n' 'version = 2' "root = \"$DIR/containerd\"" "state = \"$folder/daemon\"" \
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]' \
        '[grpc]' "address = \"$folder/containerd.sock\"" >"$folder/containerd.toml"
    launch "$DIR/containerd.log" containerd --config "$folder/containerd.toml"
    echo "$LAUNCHED" >"$folder/containerd.pid"
    for ((n = 0; n < 600; n++)); do
        if [ -S "$folder/containerd.sock" ]; then return; fi
        alive "$LAUNCHED" || return 1
        sleep 0.05
    done
    return 1
}

# With address pools of its own, dockerd deletes docker0 at its second start, whoever it belongs to.
# Where there is one, Docker's own pools must do: it leaves out what the machine routes already.
address_pool() {
    ip link show docker0 >/dev/null 2>&1 \
        || echo "--default-address-pool=base=10.$NET.0.0/17,size=24"
}

# Starts dockerd so that it leaves the machine as it is: no docker0, no iptables chains (starting
# would flush those of another engine), no forwarding switch, no settings from /etc/docker.
# Networks of one's own, their names and published ports all work; containers reach each other and
# this machine, but nothing beyond it.
launch_dockerd() {
    echo '{}' >"$DIR/daemon.json"
    # shellcheck disable=SC2046 # one word, or none
    launch "$DIR/dockerd.log" dockerd --config-file "$DIR/daemon.json" \
        --data-root "$DIR/docker" --exec-root "$EXEC" \
        --containerd "$EXEC/containerd/containerd.sock" \
        -H "unix://$DIR/docker.sock" --pidfile "$DIR/docker.pid" \
        --bridge="$BRIDGE" --iptables=false --ip-masq=false --ip-forward=false \
        $(address_pool)
}

# Waits until the engine answers, or its process has ended. The time is long because dockerd first
# stops the containers that outlived a killed one, each with its own grace.
wait_for_dockerd() {
    local n
    for ((n = 0; n < 1800; n++)); do
        engine_answers "$DIR/docker.sock" && return 0
        alive "$1" || return 1
        sleep 0.05
    done
    return 1
}

# Starts what does not run yet; fails when it does not come up.
bring_up() {
    local daemon
    clear_stale_state
    [ -n "$(containerd_pid "$EXEC")" ] || launch_containerd || return 1
    daemon=$(dockerd_pid)
    if [ -z "$daemon" ]; then
        launch_dockerd
        daemon=$LAUNCHED
    fi
    wait_for_dockerd "$daemon"
}

start_docker() {
    need_docker_packages
    mkdir -p "$DIR"
    lock_dir
    claim_network
    make_bridge
    allow_own_traffic
    if ! bring_up; then
        # Seen after a SIGKILL: one of the two did not come up in time. The next try works.
        say "the engine in $DIR did not come up, second try"
        end_process "$(dockerd_pid)" --now
        end_process "$(containerd_pid "$EXEC")" --now
        bring_up || {
            tail -n 20 "$DIR/containerd.log" "$DIR/dockerd.log" >&2
            die "the engine does not start: see the logs in $DIR"
        }
    fi
    import_image "$DIR/docker.sock"
    echo "unix://$DIR/docker.sock"
}

# Everything still mounted under DIR, deepest first; mountinfo writes a space as \040.
unmount_leftovers() {
    local point
    awk '{print $5}' /proc/self/mountinfo | sort -r | while read -r point; do
        point=$(printf '%b' "${point//\\/\\0}")
        case $point in
            "$DIR"/* | "$EXEC"/*) umount "$point" 2>/dev/null || umount -l "$point" || true ;;
        esac
    done
}

# Control groups of killed containers stay until someone removes the folders.
remove_cgroups() {
    local folder
    for folder in "$DIR"/docker/containers/*; do
        [ -d "$folder" ] || continue
        rmdir /sys/fs/cgroup/docker/"${folder##*/}" /sys/fs/cgroup/*/docker/"${folder##*/}" \
            2>/dev/null || true
    done
}

# stop_docker [--now]
stop_docker() {
    local how=${1:-}
    [ -d "$DIR" ] || return 0
    lock_dir
    [ -f "$DIR/network" ] || return 0 # never started
    use_network "$(cat "$DIR/network")"
    # Without --now dockerd stops its containers, each within its own grace.
    end_process "$(dockerd_pid)" "$how" 300
    end_process "$(containerd_pid "$EXEC")" "$how" 50
    kill_shims
    unmount_leftovers
    delete_bridges
    forbid_own_traffic
    remove_cgroups
    rm -f "$DIR/docker.pid" "$DIR/docker.sock" "$EXEC/containerd/containerd.pid"
}

remove_docker() {
    stop_docker --now
    rm -rf "$DIR"
    [ -z "${NET:-}" ] || rm -rf "${REGISTRY:?}/$NET"
}

# ---- the test image ------------------------------------------------------------------------------

# A statically linked busybox; the package `busybox` has a dynamic one.
busybox() {
    local file
    for file in "$(command -v busybox || true)" /bin/busybox; do
        if [ -x "$file" ] && ! ldd "$file" >/dev/null 2>&1; then
            echo "$file"
            return
        fi
    done
    need_packages busybox-static
    echo /bin/busybox
}

# make_rootfs FOLDER : busybox with all its applets, a few users, and the usual empty folders.
make_rootfs() {
    local program applet
    program=$(busybox)
    mkdir -p "$1"/{bin,etc,tmp,proc,sys,dev,root,var}
    chmod 1777 "$1/tmp"
    cp "$program" "$1/bin/busybox"
    for applet in $("$program" --list); do
        [ "$applet" = busybox ] || ln -sf busybox "$1/bin/$applet"
    done
    printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'app:x:1000:1000:app:/tmp:/bin/sh' \
        'nobody:x:65534:65534:nobody:/:/bin/sh' >"$1/etc/passwd"
    printf '%s\n' 'root:x:0:' 'app:x:1000:' 'nogroup:x:65534:' >"$1/etc/group"
}

# import_image SOCKET : no registry is asked; the image is made here.
import_image() {
    local socket=$1 rootfs answer
    if curl -sf -o /dev/null --unix-socket "$socket" "http://engine/images/$IMAGE:1/json"; then
        return
    fi
    rootfs=$(mktemp -d)
    make_rootfs "$rootfs"
    # The change is CMD ["/bin/sh"].
    answer=$(tar -C "$rootfs" --owner=0 --group=0 -c . | curl -sS -X POST --unix-socket "$socket" \
        -H 'Content-Type: application/x-tar' -H 'Expect:' -T - \
        "http://engine/images/create?fromSrc=-&repo=$IMAGE&tag=1&changes=CMD%20%5B%22%2Fbin%2Fsh%22%5D")
    rm -rf "$rootfs"
    case $answer in
        *sha256:*) ;;
        *) die "the engine did not take the image $IMAGE:1: $answer" ;;
    esac
}

# ---- commands ------------------------------------------------------------------------------------

status() {
    local entry dir state
    need_commands curl=curl
    for entry in "$REGISTRY"/*/dir; do
        [ -L "$entry" ] || continue
        dir=$(readlink "$entry")
        state=down
        engine_answers "$dir/docker.sock" && state=up
        printf 'docker  %-4s  pid %-7s  10.%s.0.0/16  %s\n' "$state" \
            "$(cat "$dir/docker.pid" 2>/dev/null || echo -)" "$(basename "$(dirname "$entry")")" "$dir"
    done
}

# Sets DIR from the argument, made absolute without following links.
set_dir() {
    [ -n "${1:-}" ] || usage
    DIR=$(realpath -ms -- "$1")
    # The kernel ends a Unix socket's path at 107 bytes.
    [ $((${#DIR} + 12)) -le 107 ] || die "the path $DIR is too long for a Unix socket"
}

# Tests may ask for one engine from several processes at once.
lock_dir() {
    exec 9>"$DIR/lock"
    flock -w 300 9 || die "another $0 has held $DIR/lock for five minutes"
}

main() {
    local command=${1:-} engine=${2:-}
    case $command in
        status | busybox)
            "$command"
            return
            ;;
        start | stop | remove | image) ;;
        *) usage ;;
    esac
    [ "$engine" = docker ] || die "unknown engine '$engine': only docker for now"
    if [ "$command" = image ] && [ -S "${3:-}" ]; then
        need_commands curl=curl
        import_image "$3"
        return
    fi
    set_dir "${3:-}"
    case $command in
        start) start_docker ;;
        stop) stop_docker "${4:-}" ;;
        remove) remove_docker ;;
        image) import_image "$DIR/docker.sock" ;;
    esac
}

main "$@"
