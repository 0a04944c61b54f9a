#!/usr/bin/env bash
# Builds bargee for shipping: one static, stripped file and its checksum.
#
#   scripts/build.sh [x86_64|aarch64]...     default: this machine's own kind
#
# Writes target/dist/bargee-ARCH and target/dist/bargee-ARCH.sha256 (for `sha256sum -c` there).
# The musl targets are taken where this Rust has them (`rustup target add`), else glibc, linked
# statically. For the other kind of machine a cross compiler is needed, and where this Rust has no
# standard library for it, Debian's own Rust with a folder of its own under target/.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$TOP"

# What is shipped must not depend on who builds it, and RUSTFLAGS would replace the flags below.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET

host_arch() {
    case $(uname -m) in
        x86_64 | amd64) echo x86_64 ;;
        aarch64 | arm64) echo aarch64 ;;
        *) die "no release build for $(uname -m): x86_64 and aarch64 only" ;;
    esac
}

# rust_has_std TARGET : can this Rust build for TARGET?
rust_has_std() {
    local folder
    folder=$("$RUSTC" --print target-libdir --target "$1" 2>/dev/null) || return 1
    compgen -G "$folder/libstd-*.rlib" >/dev/null
}

# Chooses for ARCH: TRIPLE, CROSS (prefix of the C tools) and WHERE (cargo's target folder).
choose_toolchain() {
    local arch=$1
    need_cargo
    CROSS=
    WHERE=${CARGO_TARGET_DIR:-$TOP/target}
    if rust_has_std "$arch-unknown-linux-musl" && have "$arch-linux-musl-gcc"; then
        TRIPLE=$arch-unknown-linux-musl CROSS=$arch-linux-musl-
    elif [ "$arch" = "$(host_arch)" ] && rust_has_std "$arch-unknown-linux-musl" && have musl-gcc; then
        TRIPLE=$arch-unknown-linux-musl
    else
        TRIPLE=$arch-unknown-linux-gnu
        [ "$arch" = "$(host_arch)" ] || choose_cross_toolchain "$arch"
    fi
}

# glibc for another kind of machine.
choose_cross_toolchain() {
    CROSS=$1-linux-gnu-
    case $1 in
        aarch64) need_commands aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu ;;
        x86_64) need_commands x86_64-linux-gnu-gcc=gcc-x86-64-linux-gnu ;;
    esac
    need_cross_libc "$1"
    rust_has_std "$TRIPLE" && return
    # Two versions of Rust would throw out each other's artefacts in one folder.
    WHERE=$WHERE/cross
    use_debian_rust
    need_cross_std "$1"
    rust_has_std "$TRIPLE" || die "no standard library for $TRIPLE found"
}

debian_arch() {
    case $1 in
        aarch64) echo arm64 ;;
        x86_64) echo amd64 ;;
    esac
}

# The static C library for ARCH. Only Debian's packages are known here.
need_cross_libc() {
    printf 'int main(void) { return 0; }\n' \
        | "${CROSS}gcc" -static -x c -o /dev/null - 2>/dev/null && return
    need_packages "libc6-dev-$(debian_arch "$1")-cross"
}

# Debian's standard library for ARCH, which comes from that architecture's own packages.
need_cross_std() {
    local arch package
    arch=$(debian_arch "$1")
    package=libstd-rust-web-dev:$arch
    have_package "$package" && return
    if ! dpkg --print-foreign-architectures | grep -qx "$arch"; then
        [ "$(id -u)" = 0 ] || die "run as root, or: dpkg --add-architecture $arch; apt-get update"
        dpkg --add-architecture "$arch"
    fi
    need_packages "$package"
}

# packs_relocations : can the list of what is relocated at the start of the program be packed? It is
# 130 KiB else. A glibc before 2.36 does not unpack it, so it is tried.
packs_relocations() {
    local probe result=1
    [ -z "$CROSS" ] || return 1
    case $TRIPLE in *-gnu) ;; *) return 1 ;; esac
    probe=$(mktemp)
    if printf 'int x; int *p[9] = {&x, &x}; int main(void) { return p[1] != &x; }\n' \
        | "${CC:-cc}" -static-pie -Wl,-z,pack-relative-relocs -x c -o "$probe" - 2>/dev/null \
        && readelf -SW "$probe" | grep -q '\.relr\.dyn' && "$probe"; then
        result=0
    fi
    rm -f "$probe"
    return $result
}

# build ARCH
build() {
    local arch=$1 key pack=
    choose_toolchain "$arch"
    key=${TRIPLE//-/_}
    say "building $TRIPLE with $("$RUSTC" --version)"
    if [ -n "$CROSS" ]; then
        export "CARGO_TARGET_${key^^}_LINKER=${CROSS}gcc" "CC_$key=${CROSS}gcc" "AR_$key=${CROSS}ar"
    fi
    packs_relocations && pack="'-Clink-arg=-Wl,-z,pack-relative-relocs',"
    # The remapped paths keep the builder's folders out of panic messages in the shipped file.
    "$CARGO" build --locked --release --bin bargee --target "$TRIPLE" --target-dir "$WHERE" \
        --config "target.$TRIPLE.rustflags=['-Ctarget-feature=+crt-static', $pack
            '--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo',
            '--remap-path-prefix=$TOP=/bargee']"
    ship "$arch" "$WHERE/$TRIPLE/release/bargee"
}

# tool NAME : the cross compiler's own one where it has it; musl-tools has none.
tool() {
    if have "$CROSS$1"; then echo "$CROSS$1"; else echo "$1"; fi
}

# ship ARCH FILE : checks, strips and sums up.
ship() {
    local dist=$TOP/target/dist name=bargee-$1
    mkdir -p "$dist"
    "$(tool strip)" --strip-all -o "$dist/$name.new" "$2"
    # No interpreter and no needed library: it runs on any Linux of that kind.
    if "$(tool readelf)" -ldW "$dist/$name.new" | grep -E 'INTERP|NEEDED' >&2; then
        die "$name is not static"
    fi
    mv "$dist/$name.new" "$dist/$name"
    (cd "$dist" && sha256sum "$name" >"$name.sha256")
    say "target/dist/$name: $(stat -c %s "$dist/$name") bytes, static"
}

[ $# -gt 0 ] || set -- "$(host_arch)"
for arch in "$@"; do
    case $arch in
        x86_64 | aarch64) (build "$arch") ;;
        *) die "usage: scripts/build.sh [x86_64|aarch64]..." ;;
    esac
done
