#!/bin/sh
# Installs Virtuoso 7 (server and SQL client) from the Debian or Ubuntu package; prints instructions on other systems.
# Does not start the server and installs no system service.
set -eu

PACKAGE=virtuoso-opensource-7-bin

elsewhere() {
    cat >&2 <<'TEXT'
kgqa virtuoso install: the package is only available on Debian and Ubuntu. Alternatives:
  - run a container, and give --graph http://127.0.0.1:8890/sparql to kgqa:
      docker run --rm -p 127.0.0.1:8890:8890 -v "$PWD/database:/database" openlink/virtuoso-opensource-7
  - unpack binaries from https://github.com/openlink/virtuoso-opensource/releases and set two environment variables:
      export VIRTUOSO_T=/path/bin/virtuoso-t ISQL=/path/bin/isql
TEXT
    exit 1
}

if { command -v virtuoso-t && command -v isql-vt; } >/dev/null 2>&1; then
    echo "Virtuoso is installed: $(command -v virtuoso-t)"
    exit 0
fi
if [ -n "${VIRTUOSO_T:-}" ] && [ -x "${VIRTUOSO_T:-}" ] && [ -x "${ISQL:-}" ]; then
    echo "Virtuoso is installed: $VIRTUOSO_T"
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || elsewhere

# sh has no arrays: the command is a string, split at its blanks
as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "kgqa virtuoso install: only root can install a package. Run as root: apt-get install --no-install-recommends $PACKAGE" >&2
        exit 1
    fi
    as_root="sudo env"
fi
install_package() {
    # shellcheck disable=SC2086
    $as_root ${as_root:+DEBIAN_FRONTEND=noninteractive} apt-get install -y --no-install-recommends "$PACKAGE"
}
export DEBIAN_FRONTEND=noninteractive

# in containers the package lists are often missing or old
if ! install_package; then
    # shellcheck disable=SC2086
    $as_root apt-get update
    apt-cache show "$PACKAGE" >/dev/null 2>&1 || elsewhere
    install_package
fi
echo "Virtuoso is installed: $(command -v virtuoso-t)"
