#!/usr/bin/env bash
# Tests of the scripts themselves: shellcheck, the service files, the installer, private engines.
#
#   scripts/selftest.sh [shell|service|install|engines]...     default: all
#
# Leaves nothing behind and touches nothing of this machine but packages that it needs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$TOP"

PASSED=0
FAILED=0
WORK=$(mktemp -d "${TMPDIR:-/tmp}/bargee-selftest.XXXXXX")

cleanup() {
    local pid
    scripts/engines.sh remove docker "$WORK/a" || true
    scripts/engines.sh remove docker "$WORK/b" || true
    ours | while read -r pid; do kill -9 "$pid" || true; done
    rm -rf "$WORK"
}
trap cleanup EXIT

# ours [TEXT] : processes with the work folder, and TEXT below it, among their arguments. The
# brackets keep grep from finding itself.
ours() {
    { grep -ls "${WORK%.*}[.]${WORK##*.}${1:-}" /proc/[0-9]*/cmdline || true; } | cut -d / -f 3
}

# check WHAT COMMAND... : one test; its output is shown only when it fails.
check() {
    local what=$1
    shift
    if "$@" >"$WORK/output" 2>&1; then
        PASSED=$((PASSED + 1))
        echo "ok: $what"
    else
        FAILED=$((FAILED + 1))
        echo "FAILED: $what"
        sed 's/^/    /' "$WORK/output"
    fi
}

# ends_with CODE COMMAND...
ends_with() {
    local wanted=$1 code=0
    shift
    "$@" || code=$?
    [ "$code" = "$wanted" ] || { echo "ended with $code, not $wanted: $*"; return 1; }
}

# soon COMMAND... : true within five seconds.
soon() {
    local n
    for ((n = 0; n < 50; n++)); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "not within 5 s: $*"
    return 1
}

# ---- shellcheck ----------------------------------------------------------------------------------

test_shell() {
    need_commands shellcheck=shellcheck
    check "shellcheck" shellcheck -x scripts/*.sh scripts/bench/run scripts/service/bargee.init .ci/run
}

# ---- the service files ---------------------------------------------------------------------------

# make_agent FOLDER : stands in for bargee; it only has to run, and to end when told.
make_agent() {
    mkdir -p "$1/run"
    cat >"$1/bargee" <<'AGENT'
#!/bin/sh
# The argument is there because the init script looks for it in /proc.
[ "$1" = agent ] || exit 2
[ -n "$STUBBORN" ] && trap '' TERM || trap 'exit 0' TERM
while :; do sleep 0.1; done
AGENT
    chmod 755 "$1/bargee"
    printf '%s\n' "PROGRAM=$1/bargee" "RUN_DIR=$1/run" "OUTPUT=$1/output" "RESPAWN_DELAY=0.2" \
        "STOP_SECONDS=5" >"$1/defaults"
}

# init ACTION : the init script of folder $HOME_DIR, by shell $INIT_SHELL and with tools $TOOLS only.
init() {
    env -i PATH="$TOOLS" DEFAULTS="$HOME_DIR/defaults" TMPDIR="${TMPDIR:-/tmp}" \
        "$INIT_SHELL" sh "$TOP/scripts/service/bargee.init" "$@"
}

agent() { cat "$HOME_DIR/run/agent.pid"; }
agents() { ours "${HOME_DIR#"$WORK"}/bargee" | wc -l; }

# The loop, the agent, and no other.
one_agent() { alive "$(agent)" && [ "$(agents)" = 2 ]; }
no_agent() { [ "$(agents)" = 0 ]; }
another_agent_than() { [ "$(agent)" != "$1" ] && one_agent; }

comes_back() {
    local before
    before=$(agent)
    kill -9 "$before"
    soon another_agent_than "$before"
}

survives_its_loop() {
    local pid
    pid=$(cat "$HOME_DIR/run/supervise.pid")
    kill -9 "$pid"
    # The kernel takes its time.
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    init start && one_agent
}

# After a power cut a pid file can name any process; this shell is such a stranger.
spares_strangers() {
    init stop
    echo $$ >"$HOME_DIR/run/agent.pid"
    echo $$ >"$HOME_DIR/run/supervise.pid"
    ends_with 1 init status && init start && one_agent && init stop && no_agent
}

ends_the_stubborn() {
    printf '%s\n' STUBBORN=yes STOP_SECONDS=1 >>"$HOME_DIR/defaults"
    init start && one_agent && init stop && no_agent
}

bounds_its_output() {
    printf '%s\n' OUTPUT_MAX=10 >>"$HOME_DIR/defaults"
    echo "more than ten bytes" >"$HOME_DIR/output"
    init restart && [ -s "$HOME_DIR/output.1" ] && init stop
}

# test_init NAME : with the settings of `init`.
test_init() {
    make_agent "$HOME_DIR"
    check "init, $1: status without a start" ends_with 3 init status
    check "init, $1: start" init start
    check "init, $1: one agent runs" one_agent
    check "init, $1: status" ends_with 0 init status
    check "init, $1: a second start changes nothing" init start
    check "init, $1: still one agent" one_agent
    check "init, $1: a killed agent comes back" comes_back
    check "init, $1: a killed loop is replaced" survives_its_loop
    check "init, $1: restart" init restart
    check "init, $1: one agent after it" one_agent
    check "init, $1: stop" init stop
    check "init, $1: nothing runs" no_agent
    check "init, $1: a second stop is fine" init stop
    check "init, $1: stale pid files" spares_strangers
    check "init, $1: output is bounded" bounds_its_output
    check "init, $1: an agent that does not end" ends_the_stubborn
    check "init, $1: usage" ends_with 2 init nonsense
}

test_service() {
    local busybox applet
    busybox=$(scripts/engines.sh busybox)
    # A device with busybox and nothing else.
    mkdir -p "$WORK/tools"
    for applet in $("$busybox" --list); do ln -s "$busybox" "$WORK/tools/$applet"; done
    HOME_DIR=$WORK/busybox INIT_SHELL=$busybox TOOLS=$WORK/tools test_init "busybox"
    HOME_DIR=$WORK/plain INIT_SHELL=env TOOLS=$PATH test_init "plain sh"
    if have systemd-analyze; then
        # The copy names a program that exists.
        sed "s,/usr/local/bin/bargee,$(command -v true)," scripts/service/bargee.service \
            >"$WORK/bargee.service"
        check "systemd unit" systemd-analyze verify "$WORK/bargee.service"
    fi
}

# ---- the installer -------------------------------------------------------------------------------

install_into() { sh scripts/install.sh --root "$WORK/root" --binary "$WORK/bin" "$@"; }

# mode OCTAL FILE
mode() { [ "$(stat -c %a "$WORK/root$2")" = "$1" ]; }

test_install() {
    local wants=/etc/systemd/system/multi-user.target.wants/bargee.service
    echo one >"$WORK/bin"
    (cd "$WORK" && sha256sum bin >bin.sha256)
    check "install, sysv" install_into --init sysv
    check "install: the binary" mode 755 /usr/local/bin/bargee
    check "install: the init script" mode 755 /etc/init.d/bargee
    check "install: the data folder is private" mode 700 /var/lib/bargee
    check "install, systemd" install_into --init systemd
    check "install: the unit starts at boot" test -f "$WORK/root$wants"
    echo two >"$WORK/bin"
    check "install: a wrong checksum is refused" ends_with 1 install_into --init sysv
    check "install: the old binary is still there" grep -q one "$WORK/root/usr/local/bin/bargee"
    rm "$WORK/bin.sha256"
    check "install again" install_into --init sysv
    check "install: the new binary is there" grep -q two "$WORK/root/usr/local/bin/bargee"
    check "uninstall" install_into --uninstall
    check "uninstall: no binary" ends_with 1 test -e "$WORK/root/usr/local/bin/bargee"
    check "uninstall: data is kept" test -d "$WORK/root/var/lib/bargee"
    check "uninstall twice, and purge" install_into --uninstall --purge
    check "purge: nothing is left" no_files_in "$WORK/root"
    check "install: usage" ends_with 2 install_into --nonsense
}

no_files_in() { [ -z "$(find "$1" ! -type d)" ] && [ ! -d "$1/var/lib/bargee" ]; }

# ---- private engines -----------------------------------------------------------------------------

# on ENGINE ARGS... : docker, on one of the two.
on() {
    local engine=$1
    shift
    DOCKER_HOST=unix://$WORK/$engine/docker.sock docker "$@"
}

# serve ENGINE PORT : a network, and on it a web server that says the engine's name.
serve() {
    on "$1" network create app && on "$1" run -d --name web --network app \
        -p "127.0.0.1:$2:8080" localtest/busybox:1 sh -c "echo engine-$1 >/tmp/index.html
            httpd -p 8080 -h /tmp
            trap 'exit 0' TERM
            sleep 1000 & wait"
}

answers() { [ "$(curl -s "http://127.0.0.1:$2/index.html")" = "engine-$1" ]; }
finds_by_name() {
    [ "$(on "$1" run --rm --network app localtest/busybox:1 wget -qO- http://web:8080/index.html)" \
        = "engine-$1" ]
}

restarts_after_kill() {
    kill -9 "$(cat "$WORK/a/docker.pid")" "$(cat "$WORK/a/exec/containerd/containerd.pid")"
    # At once, while both are still zombies.
    scripts/engines.sh start docker "$WORK/a" && on a start web && soon answers a 18981
}

restarts_after_power_cut() {
    scripts/engines.sh stop docker "$WORK/a" --now && scripts/engines.sh start docker "$WORK/a" \
        && on a start web && soon answers a 18981
}

# What names an engine's belongings: its folders, its networks' bridges, its containers.
belongings() {
    local engine
    for engine in a b; do
        echo "$WORK/$engine/"
        echo "/run/bargee-engines/$(cat "$WORK/$engine/network")/"
        echo "bargee-$(cat "$WORK/$engine/network")"
        on "$engine" network ls -q | sed 's/^/br-/'
        on "$engine" ps -aq
    done
}

# Where engines leave something: links, mounts, control groups, processes.
traces() {
    ip -o link
    cat /proc/self/mountinfo
    find /sys/fs/cgroup -type d -path '*/docker/*'
    cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'
}

leaves_no_trace() {
    scripts/engines.sh start docker "$WORK/a"
    belongings >"$WORK/belongings"
    traces >"$WORK/traces"
    grep -qF -f "$WORK/belongings" "$WORK/traces" || return 1 # else the search is wrong
    scripts/engines.sh remove docker "$WORK/a"
    scripts/engines.sh remove docker "$WORK/b"
    # Into files: what runs at the same time as a search would find the search.
    traces >"$WORK/traces"
    ! grep -F -f "$WORK/belongings" "$WORK/traces" && [ ! -e "$WORK/a" ] && [ ! -e "$WORK/b" ]
}

test_engines() {
    need_commands docker=docker.io curl=curl ip=iproute2
    check "engine a starts" scripts/engines.sh start docker "$WORK/a"
    check "engine b starts beside it" scripts/engines.sh start docker "$WORK/b"
    check "starting a running engine" scripts/engines.sh start docker "$WORK/a"
    check "a container on a" serve a 18981
    check "a container on b" serve b 18982
    check "a answers on its published port" soon answers a 18981
    check "b answers on its published port" soon answers b 18982
    check "names resolve on a" finds_by_name a
    check "names resolve on b" finds_by_name b
    check "a starts again after SIGKILL" restarts_after_kill
    check "b was not disturbed" answers b 18982
    check "a starts again after a power cut" restarts_after_power_cut
    check "a stops" scripts/engines.sh stop docker "$WORK/a"
    check "a stopped engine stops" scripts/engines.sh stop docker "$WORK/a"
    check "b was not disturbed by that" answers b 18982
    check "nothing is left" leaves_no_trace
}

[ $# -gt 0 ] || set -- shell service install engines
for part in "$@"; do "test_$part"; done
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
