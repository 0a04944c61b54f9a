#!/usr/bin/env bash
# Every test, from a clean clone on a bare Debian 12.
#
#   scripts/test.sh [--fast|--long]     --fast: without the ARM build and its tests
#                                       --long: ten million steps of the simulation, from fresh seeds
#
# Installs what is missing, starts the engines it needs and takes them away again, by process id.
# Ends at the first failing step with a code other than 0.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$TOP"

FAST=
case ${1:-} in
    '') ;;
    --fast) FAST=yes ;;
    --long) export BARGEE_SIM_STEPS=10000000 BARGEE_SIM_FRESH=1 ;;
    *) die "usage: scripts/test.sh [--fast|--long]" ;;
esac

# Tests put everything into the temporary folder, so whatever one leaves behind is found by it.
# Short, because Unix sockets are made in it.
TMPDIR=$(mktemp -d /tmp/bargee-test.XXXXXX)
# Some tests act as another user in it.
chmod 755 "$TMPDIR"
export TMPDIR

# What still runs of our own children has our TMPDIR in its environment; what they left of their
# engines is under it.
cleanup() {
    local dir file pid
    for file in /proc/[0-9]*/environ; do
        pid=${file#/proc/}
        pid=${pid%/environ}
        [ "$pid" != $$ ] || continue
        if tr '\0' '\n' 2>/dev/null <"$file" | grep -qxF "TMPDIR=$TMPDIR"; then
            kill -9 "$pid" 2>/dev/null || true
        fi
    done
    scripts/engines.sh status 2>/dev/null | sed -n "s,.* \($TMPDIR/.*\),\1,p" \
        | while read -r dir; do scripts/engines.sh remove docker "$dir" || true; done
    rm -rf "$TMPDIR"
}
trap cleanup EXIT
# A signal ends the script, and its end runs the above.
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# step WHAT COMMAND... : in the background, because a shell sees no signal while it runs something
# in the foreground.
step() {
    local what=$1 begin=$SECONDS
    shift
    say "$what"
    "$@" &
    wait $!
    say "$what: $((SECONDS - begin)) s"
}

# An idle agent on an engine of its own, and what is done to it by hand: twelve minutes of hardly
# any work, beside everything else. Alone: BARGEE_IDLE_MINUTES=10 cargo test --test docker idle::
begin_idle_test() {
    BARGEE_IDLE_MINUTES=10 "$CARGO" test --locked --test docker -- idle:: \
        >"$TMPDIR/idle.log" 2>&1 &
    IDLE_TEST=$!
}

end_idle_test() {
    wait "$IDLE_TEST" && return
    cat "$TMPDIR/idle.log" >&2
    return 1
}

need_lint_tools() {
    "$CARGO" clippy --version >/dev/null 2>&1 && "$CARGO" fmt --version >/dev/null 2>&1 && return
    if have rustup && rustup component add clippy rustfmt >&2; then return; fi
    use_debian_rust
}

set_up() {
    need_cargo
    need_lint_tools
    # Engines for the integration tests; the tests themselves start them by scripts/engines.sh.
    need_commands dockerd=docker.io containerd=containerd runc=runc iptables=iptables \
        ip=iproute2 docker=docker.io curl=curl shellcheck=shellcheck strace=strace
    scripts/engines.sh busybox >/dev/null
    [ -n "$FAST" ] || need_commands qemu-aarch64-static=qemu-user-static
}

# The ARM binary under user emulation against a real engine: the tests of tests/docker whose
# names begin with arm_ take the program from BARGEE_BIN and run it by BARGEE_RUNNER.
arm_tests() {
    qemu-aarch64-static target/dist/bargee-aarch64 version
    BARGEE_BIN=$TOP/target/dist/bargee-aarch64 BARGEE_RUNNER=qemu-aarch64-static \
        "$CARGO" test --locked --test docker -- arm_
}

# Not within `step`: what it exports is for all that follows.
say "set-up"
set_up
step "format" "$CARGO" fmt --check
step "clippy" "$CARGO" clippy --locked --all-targets -- -D warnings
step "scripts" scripts/selftest.sh
step "build of the tests" "$CARGO" test --locked --no-run
begin_idle_test
step "tests" "$CARGO" test --locked
step "x86_64 build" scripts/build.sh x86_64
if [ -z "$FAST" ]; then
    step "ARM build" scripts/build.sh aarch64
    step "ARM tests" arm_tests
fi
say "ten idle minutes"
end_idle_test
say "all passed in $SECONDS s"
