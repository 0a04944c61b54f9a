#!/bin/sh
# Installs bargee on this device, or takes it away again. A plain sh and busybox are enough.
#
#   install.sh [--binary FILE] [--init systemd|sysv] [--root DIR] [--no-start]
#   install.sh --uninstall [--purge] [--root DIR]
#
# FILE defaults to bargee-ARCH beside this script, then to target/dist/bargee-ARCH. A checksum in
# FILE.sha256 is checked. --root DIR puts the files under DIR and starts nothing, for images and
# tests. Installing again replaces the binary and restarts the agent; workloads go on meanwhile.
# --uninstall leaves settings, data and workloads; --purge takes settings and data as well.
set -eu

HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=
BINARY=
INIT=
ACTION=install
START=yes
PURGE=

die() {
    echo "error: $*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --binary | --init | --root)
                [ $# -ge 2 ] || die "$1 needs a value"
                case $1 in
                    --binary) BINARY=$2 ;;
                    --init) INIT=$2 ;;
                    --root) ROOT=${2%/} ;;
                esac
                shift
                ;;
            --no-start) START= ;;
            --uninstall) ACTION=uninstall ;;
            --purge) PURGE=yes ;;
            *)
                sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2
                exit 2
                ;;
        esac
        shift
    done
    # In another root there is nothing to start.
    [ -z "$ROOT" ] || START=
}

find_binary() {
    [ -z "$BINARY" ] || return 0
    for file in "$HERE/bargee-$(uname -m)" "$HERE/../target/dist/bargee-$(uname -m)"; do
        if [ -f "$file" ]; then
            BINARY=$file
            return 0
        fi
    done
    die "no bargee-$(uname -m) found: run scripts/build.sh first, or name one with --binary"
}

check_sum() {
    [ -f "$BINARY.sha256" ] || return 0
    wanted=$(cut -d ' ' -f 1 "$BINARY.sha256")
    found=$(sha256sum "$BINARY" | cut -d ' ' -f 1)
    [ "$wanted" = "$found" ] || die "$BINARY does not match $BINARY.sha256"
}

# put FILE PLACE MODE : complete or not at all, also after a power cut, and also while the old file
# is running.
put() {
    mkdir -p "$(dirname "$ROOT$2")"
    cp "$1" "$ROOT$2.new"
    chmod "$3" "$ROOT$2.new"
    sync
    mv -f "$ROOT$2.new" "$ROOT$2"
}

# Which init runs here; for another root it must be said, or is seen by its folders.
find_init() {
    if [ -n "$INIT" ]; then
        case $INIT in systemd | sysv) return 0 ;; esac
        die "--init is systemd or sysv, not '$INIT'"
    fi
    INIT=sysv
    if [ -z "$ROOT" ]; then
        [ ! -d /run/systemd/system ] || INIT=systemd
    else
        [ ! -x "$ROOT/lib/systemd/systemd" ] || INIT=systemd
    fi
}

install_files() {
    put "$BINARY" /usr/local/bin/bargee 755
    mkdir -p "$ROOT/etc/bargee"
    # Secrets may lie in it.
    chmod 750 "$ROOT/etc/bargee"
    mkdir -p "$ROOT/var/lib/bargee"
    chmod 700 "$ROOT/var/lib/bargee"
    if [ "$INIT" = systemd ]; then
        put "$HERE/service/bargee.service" /etc/systemd/system/bargee.service 644
    else
        put "$HERE/service/bargee.init" /etc/init.d/bargee 755
    fi
}

# Makes the device start bargee when it boots.
enable_service() {
    if [ "$INIT" = systemd ]; then
        # By hand where systemd does not run: that is what `systemctl enable` does.
        mkdir -p "$ROOT/etc/systemd/system/multi-user.target.wants"
        ln -sf ../bargee.service "$ROOT/etc/systemd/system/multi-user.target.wants/bargee.service"
        [ -n "$ROOT" ] || ! have systemctl || systemctl daemon-reload || true
    elif [ -z "$ROOT" ] && have update-rc.d; then
        update-rc.d bargee defaults >/dev/null
    elif [ -e "$ROOT/etc/init.d/rcS" ]; then
        # busybox init, as Buildroot sets it up, runs all S?? files in order.
        ln -sf bargee "$ROOT/etc/init.d/S95bargee"
    else
        echo "Add /etc/init.d/bargee to what this device starts at boot." >&2
    fi
}

start_service() {
    [ -n "$START" ] || return 0
    if [ "$INIT" = systemd ]; then
        systemctl restart bargee.service
    else
        /etc/init.d/bargee restart
    fi
}

stop_service() {
    [ -z "$ROOT" ] || return 0
    if [ -d /run/systemd/system ] && [ -e /etc/systemd/system/bargee.service ]; then
        systemctl disable --now bargee.service || true
    fi
    [ ! -x /etc/init.d/bargee ] || /etc/init.d/bargee stop || true
}

uninstall() {
    stop_service
    rm -f "$ROOT/etc/systemd/system/multi-user.target.wants/bargee.service" \
        "$ROOT/etc/systemd/system/bargee.service" \
        "$ROOT/etc/init.d/bargee" "$ROOT/etc/init.d/S95bargee" "$ROOT/usr/local/bin/bargee"
    if [ -z "$ROOT" ]; then
        ! have update-rc.d || update-rc.d bargee remove >/dev/null 2>&1 || true
        ! have systemctl || systemctl daemon-reload 2>/dev/null || true
    fi
    if [ -n "$PURGE" ]; then
        rm -rf "$ROOT/etc/bargee" "$ROOT/etc/default/bargee" "$ROOT/var/lib/bargee" \
            "$ROOT/var/log/bargee.log" "$ROOT/var/log/bargee.log.1"
        echo "bargee is gone, and its settings and data. Containers that it made run on; their"
    else
        echo "bargee is gone; /etc/bargee and /var/lib/bargee are still there, and its containers"
        echo "run on. An agent installed again takes them up as they are. Without one, their"
    fi
    echo "engine lists them with: docker ps --filter label=bargee.uid"
}

parse_arguments "$@"
if [ "$ACTION" = uninstall ]; then
    uninstall
    exit 0
fi
[ -n "$ROOT" ] || [ "$(id -u)" = 0 ] || die "run as root, or with --root DIR"
find_binary
check_sum
find_init
install_files
enable_service
start_service
echo "bargee is installed ($INIT). Manifests: bargee deploy -f FILE. State: bargee ps"
