# shellcheck shell=bash
# Helpers that the scripts share. Sourced, never run.
#
# Everything here asks for what is missing and leaves what is there alone: a developer's rustup, a
# Docker engine from another source or a newer shellcheck is used as it is, and only a bare machine
# gets Debian's packages.

# The top of the source tree, whatever folder the caller stands in.
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Daemons and their tools live in sbin folders that a user's PATH may lack.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

say() { printf '== %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# have_package NAME[:ARCH]
have_package() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

# apt_get ARGS... : waits for another apt instead of failing on its lock.
apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@"
}

# Refreshes the package lists. Their lock has no timeout of its own, hence the few tries.
update_package_lists() {
    local try
    for try in 1 2 3 4 5; do
        apt_get update >&2 && return
        say "apt-get update failed (try $try of 5)"
        sleep $((try * 2))
    done
    die "apt-get update failed: is the network there?"
}

# need_packages NAME... : installs those of Debian's packages that are not installed.
need_packages() {
    local name missing=()
    for name in "$@"; do
        have_package "$name" || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    have apt-get || die "missing: ${missing[*]} (Debian's names). This is no Debian: install them by hand"
    [ "$(id -u)" = 0 ] || die "missing: ${missing[*]}. Run as root, or: apt-get install ${missing[*]}"
    update_package_lists
    say "installing ${missing[*]}"
    apt_get install -y --no-install-recommends "${missing[@]}" >&2
}

# need_commands COMMAND=PACKAGE... : a command from elsewhere (docker-ce, a tarball, nix) will do,
# and must not be replaced by Debian's package.
need_commands() {
    local pair missing=()
    for pair in "$@"; do
        have "${pair%%=*}" || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -eq 0 ] || need_packages "${missing[@]}"
}

# newer_or_equal A B : version A is at least B.
newer_or_equal() {
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

# The oldest Rust that builds bargee, as Cargo.toml says.
wanted_rust() {
    sed -n 's/^rust-version *= *"\(.*\)".*/\1/p' "$TOP/Cargo.toml" | head -n 1
}

# rust_is_new_enough CARGO RUSTC
rust_is_new_enough() {
    local cargo rustc wanted
    wanted=$(wanted_rust)
    cargo=$("$1" --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    rustc=$("$2" --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    [ -n "$cargo" ] && [ -n "$rustc" ] || return 1
    newer_or_equal "$cargo" "$wanted" && newer_or_equal "$rustc" "$wanted"
}

# Debian 12's own rustc is 1.63. Its rust toolchain for web browsers follows upstream closely.
DEBIAN_RUST=(rustc-web cargo-web rust-web-clippy rustfmt-web)

# Makes this shell and its children use Debian's toolchain, also where an older one is in the PATH:
# cargo looks for cargo-clippy and cargo-fmt there.
use_debian_rust() {
    need_packages "${DEBIAN_RUST[@]}" ca-certificates
    export CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
    export PATH="/usr/bin:$PATH"
    rust_is_new_enough "$CARGO" "$RUSTC" \
        || die "Debian's rustc-web is older than $(wanted_rust): install a newer Rust from rustup.rs"
}

# SQLite is compiled in, so a C compiler that links is needed too.
need_cc() {
    local out
    out=$(mktemp)
    if ! printf 'int main(void) { return 0; }\n' | "${CC:-cc}" -x c -o "$out" - 2>/dev/null; then
        need_packages gcc libc6-dev
    fi
    rm -f "$out"
}

# Finds a Rust that is new enough, or installs one; sets CARGO and RUSTC.
need_cargo() {
    need_cc
    [ -e /etc/ssl/certs/ca-certificates.crt ] || ! have apt-get || need_packages ca-certificates
    # A user who just ran rustup may not have its folder in the PATH yet.
    have cargo || [ ! -x "$HOME/.cargo/bin/cargo" ] || export PATH="$HOME/.cargo/bin:$PATH"
    if rust_is_new_enough "${CARGO:-cargo}" "${RUSTC:-rustc}"; then
        export CARGO="${CARGO:-cargo}" RUSTC="${RUSTC:-rustc}"
    else
        say "no cargo of at least $(wanted_rust) found: using Debian's"
        use_debian_rust
    fi
}

# alive PID : runs, and is not a zombie that nobody has collected yet. `kill -0` cannot tell these
# apart, and neither can dockerd when it finds its old pid file.
alive() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    stat=${stat##*) }
    case $stat in Z* | X* | '') return 1 ;; esac
}

# runs_with PID TEXT : PID is alive and TEXT is one of its arguments. Guards every kill against a
# process id that was used again.
runs_with() {
    [ -n "$1" ] && alive "$1" && tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -qxF -e "$2"
}

# wait_gone PID TENTHS : waits until PID has ended.
wait_gone() {
    local n
    for ((n = 0; n < $2; n++)); do
        alive "$1" || return 0
        sleep 0.1
    done
    ! alive "$1"
}

# engine_answers SOCKET
engine_answers() {
    [ -S "$1" ] \
        && [ "$(curl -s --max-time 5 --unix-socket "$1" http://engine/_ping 2>/dev/null)" = OK ]
}
