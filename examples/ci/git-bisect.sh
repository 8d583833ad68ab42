#!/bin/sh
# Find the commit that broke the ABI:
#
#     git bisect start BAD GOOD
#     git bisect run /path/to/uevt/examples/ci/git-bisect.sh
#
# 0 is good, 1 is bad; 125 skips a commit that does not compile or lacks user_events; 129 ends the
# bisection because the host cannot judge.  The tree's .config is kept.  UEVT is the command;
# further arguments are passed to it: --abi 6.12 judges every commit alike.
set -u
uevt=${UEVT:-$(dirname "$0")/../../.venv/bin/uevt}
make -s olddefconfig && make -s -j"$(nproc)" bzImage || exit 125
out=$(mktemp -d) || exit 129
trap 'rm -rf "$out"' EXIT
trap 'exit 129' HUP INT TERM
"$uevt" run --image arch/x86/boot/bzImage --exit-style bisect --quiet --out "$out" "$@"
