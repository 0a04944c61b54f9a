#!/usr/bin/env bash
# From a fresh Debian to running workloads, in one command.
#
#   scripts/quickstart.sh          builds bargee, starts it, deploys examples/
#   scripts/quickstart.sh stop     takes all of that away again
#
# Uses the Docker engine of this machine if one answers, else starts a private one. Everything it
# makes is under target/quickstart, and as often as it is run, the result is the same.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$TOP"

FOLDER=$TOP/target/quickstart
BARGEE=$TOP/target/dist/bargee-$(uname -m | sed 's/arm64/aarch64/;s/amd64/x86_64/')
OWN_ENGINE=/var/run/docker.sock
PAGES=bargee-demo.pages # the volume of the examples

# What the agent and the commands below go by.
export BARGEE_DATA_DIR=$FOLDER/data BARGEE_API_SOCKET=$FOLDER/bargee.sock

# Sets SOCKET. The choice of the first run stands: its workloads are there.
choose_engine() {
    if [ -f "$FOLDER/socket" ]; then
        SOCKET=$(cat "$FOLDER/socket")
    elif engine_answers "$OWN_ENGINE"; then
        SOCKET=$OWN_ENGINE
    else
        SOCKET=$FOLDER/engine/docker.sock
    fi
    echo "$SOCKET" >"$FOLDER/socket"
    export BARGEE_ENGINE_URL=unix://$SOCKET
}

engine_is_private() { [ "$SOCKET" != "$OWN_ENGINE" ]; }

start_engine() {
    if engine_is_private; then
        say "starting a private Docker engine in target/quickstart/engine"
        scripts/engines.sh start docker "$FOLDER/engine" >/dev/null
        return
    fi
    say "using the Docker engine on $SOCKET"
    # Remembers that the image is ours to remove.
    if ! curl -sf -o /dev/null --unix-socket "$SOCKET" http://engine/images/localtest/busybox:1/json; then
        touch "$FOLDER/image-is-ours"
    fi
    scripts/engines.sh image docker "$SOCKET"
}

# The live agent, if any.
agent_pid() {
    local pid
    pid=$(cat "$FOLDER/agent.pid" 2>/dev/null) || return 0
    if runs_with "$pid" "$BARGEE"; then echo "$pid"; fi
}

agent_is_ready() {
    curl -sf -o /dev/null --max-time 5 --unix-socket "$BARGEE_API_SOCKET" http://bargee/health/ready
}

stop_agent() {
    local pid
    pid=$(agent_pid)
    [ -n "$pid" ] || return 0
    kill -TERM "$pid"
    wait_gone "$pid" 200 || kill -9 "$pid"
}

start_agent() {
    local pid n
    pid=$(agent_pid)
    # A new build takes over from the old one; the workloads do not notice.
    case $(readlink "/proc/${pid:-none}/exe") in *' (deleted)') stop_agent && pid= ;; esac
    if [ -z "$pid" ]; then
        say "starting the agent"
        setsid "$BARGEE" agent </dev/null >>"$FOLDER/agent.log" 2>&1 &
        pid=$!
        echo "$pid" >"$FOLDER/agent.pid"
    fi
    for ((n = 0; n < 600; n++)); do
        agent_is_ready && return
        alive "$pid" || break
        sleep 0.1
    done
    tail -n 20 "$FOLDER/agent.log" >&2
    die "the agent does not become ready: see target/quickstart/agent.log"
}

# application/name of each example.
example_workloads() {
    awk '/^  name:/ {name = $2} /^  application:/ {app = $2}
        /^spec:/ {print app "/" name}' examples/*.yaml
}

start() {
    local failed=
    need_commands curl=curl
    scripts/build.sh "${BARGEE##*-}"
    mkdir -p "$FOLDER"
    choose_engine
    start_engine
    start_agent
    say "bargee deploy -f examples/"
    # Where one does not run, a taken port say, the rest does, and the way on is needed all the more.
    "$BARGEE" deploy -f examples/ --wait=120s || failed=yes
    echo
    "$BARGEE" ps
    echo
    echo "The last line of demo/visitor:"
    "$BARGEE" logs --tail 1 demo/visitor || failed=yes
    explain
    [ -z "$failed" ] || die "not all of the examples run: the errors above say why"
}

explain() {
    cat <<TEXT

To look further, in this shell:

  export PATH="\$PATH:$FOLDER/bin"
  export BARGEE_API_SOCKET=$BARGEE_API_SOCKET
  bargee ps                          what runs
  bargee inspect web                 all about one workload
  bargee logs -f visitor             follow its output
  curl http://127.0.0.1:18080        ask the web server
  bargee kill visitor; bargee ps     it comes back
  bargee events -f                   and what happened

To stop and remove everything: scripts/quickstart.sh stop
TEXT
    mkdir -p "$FOLDER/bin"
    ln -sfn "$BARGEE" "$FOLDER/bin/bargee"
}

# What bargee leaves on purpose, since it outlives workloads, and what we brought.
clean_own_engine() {
    curl -s -o /dev/null --unix-socket "$SOCKET" -X DELETE "http://engine/volumes/$PAGES"
    [ ! -e "$FOLDER/image-is-ours" ] || curl -s -o /dev/null --unix-socket "$SOCKET" -X DELETE \
        http://engine/images/localtest/busybox:1
}

stop() {
    local workload
    if [ ! -f "$FOLDER/socket" ]; then
        echo "Nothing to stop."
        return
    fi
    choose_engine
    # On an engine that stays, only the agent knows what is its own.
    if engine_is_private || ! engine_answers "$SOCKET"; then
        agent_is_ready || say "the agent does not answer: its containers go with their engine"
    else
        start_agent
    fi
    if agent_is_ready; then
        for workload in $(example_workloads); do
            "$BARGEE" rm "$workload" || say "could not remove $workload"
        done
    fi
    stop_agent
    if engine_is_private; then
        scripts/engines.sh remove docker "$FOLDER/engine"
    else
        clean_own_engine
    fi
    rm -rf "$FOLDER"
    echo "Everything is stopped and removed. The build is still in target/."
}

case ${1:-start} in
    start) start ;;
    stop) stop ;;
    *) die "usage: scripts/quickstart.sh [stop]" ;;
esac
