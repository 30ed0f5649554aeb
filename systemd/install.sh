#!/bin/sh
# Put utterd on this machine, or take it away: sh systemd/install.sh install|uninstall
#
#   PREFIX   where it lies (default /usr/local; systemd looks there and in /usr)
#   DESTDIR  stage into this folder instead, for a package: nothing outside it is touched
#   PYTHON   the system's Python, 3.11 or newer (default /usr/bin/python3). The service can't use
#            one in a home folder.
#   PIP      a pip that can install into another Python's environment
set -eu

PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
PYTHON=${PYTHON:-/usr/bin/python3}
PIP=${PIP:-"$PYTHON -m pip"}
here=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$here")
root=$DESTDIR$PREFIX
programs="utterd utterd-tune"
units="utterd.service utterd-tune.service utterd.slice"

die() {
    echo "install: $*" >&2
    exit 1
}

filled() { # a unit with its paths: filled TEMPLATE TARGET
    sed "s|@PREFIX@|$PREFIX|g" "$1" >"$2"
    chmod 644 "$2"
}

install_program() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$PYTHON is older than 3.11 or missing: set PYTHON="
    mkdir -p "$root/lib" "$root/bin"
    rm -rf "$root/lib/utterd"
    "$PYTHON" -m venv --without-pip "$root/lib/utterd" ||
        die "can't make an environment for $PYTHON (see above)"
    # From a copy: building in a working tree would pick up whatever an earlier build left.
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    for name in pyproject.toml README.md LICENSE NOTICE audio daemon engine sysconfig; do
        cp -R "$source/$name" "$copy/"
    done
    $PIP --python "$root/lib/utterd/bin/python" install --quiet --no-warn-script-location \
        "$copy[voices]" || die "the Python packages can't be installed (see above)"
    if [ -n "$DESTDIR" ]; then
        # Scripts and byte code must name the place where they will lie.
        for file in "$root"/lib/utterd/bin/* "$root/lib/utterd/pyvenv.cfg"; do
            [ -L "$file" ] || sed -i "s|$DESTDIR||g" "$file"
        done
        "$root/lib/utterd/bin/python" -m compileall -q -f -s "$DESTDIR" "$root/lib/utterd/lib"
    fi
    for name in $programs; do
        ln -sfn "../lib/utterd/bin/$name" "$root/bin/$name"
    done
}

install_units() {
    lib=$root/lib
    mkdir -p "$lib/systemd/system" "$lib/systemd/user" "$lib/sysusers.d" "$lib/tmpfiles.d"
    filled "$here/utterd.service.in" "$lib/systemd/system/utterd.service"
    filled "$here/utterd-tune.service.in" "$lib/systemd/system/utterd-tune.service"
    filled "$here/utterd.slice" "$lib/systemd/system/utterd.slice"
    filled "$here/utterd-user.service.in" "$lib/systemd/user/utterd.service"
    filled "$here/utterd.sysusers" "$lib/sysusers.d/utterd.conf"
    filled "$here/utterd.tmpfiles" "$lib/tmpfiles.d/utterd.conf"
    doc=$root/share/doc/utterd
    mkdir -p "$doc/examples"
    filled "$source/README.md" "$doc/README.md"
    filled "$source/LICENSE" "$doc/LICENSE"
    filled "$source/NOTICE" "$doc/NOTICE"
    filled "$source/sysconfig/README.md" "$doc/tuning.md"
    filled "$here/README.md" "$doc/service.md"
    for file in "$here"/examples/*; do
        filled "$file" "$doc/examples/$(basename "$file")"
    done
}

running() { # whether this machine itself is meant, and systemd runs it
    [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]
}

do_install() {
    install_program
    install_units
    [ -n "$DESTDIR" ] && return
    systemd-sysusers "$root/lib/sysusers.d/utterd.conf"
    systemd-tmpfiles --create "$root/lib/tmpfiles.d/utterd.conf"
    running && systemctl daemon-reload
    cat <<END
Installed under $PREFIX. What comes next:
    systemctl enable --now utterd-tune utterd
    usermod -aG utterd NAME    (who may speak)
    utterd voices add kokoro   (only for a larger voice than the built-in one)
END
}

do_uninstall() {
    if running; then
        systemctl disable --now utterd.service utterd-tune.service 2>/dev/null || true
    elif [ -z "$DESTDIR" ] && [ -x "$root/bin/utterd-tune" ]; then
        "$root/bin/utterd-tune" restore
    fi
    for unit in $units; do rm -f "$root/lib/systemd/system/$unit"; done
    for name in $programs; do rm -f "$root/bin/$name"; done
    rm -f "$root/lib/systemd/user/utterd.service" \
        "$root/lib/sysusers.d/utterd.conf" "$root/lib/tmpfiles.d/utterd.conf"
    rm -rf "$root/lib/utterd" "$root/share/doc/utterd"
    if [ -n "$DESTDIR" ]; then
        find "$DESTDIR" -depth -type d -empty -delete
        return
    fi
    running && systemctl daemon-reload
    rm -rf /var/lib/utterd /var/cache/utterd /run/utterd /run/utterd-tune
    if getent passwd utterd >/dev/null; then userdel utterd; fi
    if getent group utterd >/dev/null; then groupdel utterd; fi
    rmdir /etc/utterd 2>/dev/null || [ ! -d /etc/utterd ] ||
        echo "kept: /etc/utterd holds files of yours"
}

case ${1:-} in
install) do_install ;;
uninstall) do_uninstall ;;
*) die "say install or uninstall" ;;
esac
