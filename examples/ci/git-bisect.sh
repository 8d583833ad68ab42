#!/bin/sh
# Which commit made an image of this tree break the ABI:
#
#     git bisect start BAD GOOD
#     git bisect run /path/to/uevt/examples/ci/git-bisect.sh
#
# 0 and 1 are good and bad; 125 skips a commit that does not compile or was built without
# user_events; 129 ends the bisection, for the host cannot judge.  It keeps the .config that is
# there.  UEVT is the command; arguments are added to it: --abi 6.12 judges every commit alike.
set -u
uevt=${UEVT:-$(dirname "$0")/../../.venv/bin/uevt}
make -s olddefconfig && make -s -j"$(nproc)" bzImage || exit 125
out=$(mktemp -d) || exit 129
trap 'rm -rf "$out"' EXIT
trap 'exit 129' HUP INT TERM
"$uevt" run --image arch/x86/boot/bzImage --exit-style bisect --quiet --out "$out" "$@"
