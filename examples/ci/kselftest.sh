#!/bin/sh
# As a program of kselftest: KTAP on standard output, 4 where there is nothing to judge.
# The kernel is IMAGE; UEVT is the command; arguments are added to it.
set -u
uevt=${UEVT:-$(dirname "$0")/../../.venv/bin/uevt}
exec "$uevt" run --image "${IMAGE:?names a bzImage}" --exit-style kselftest --ktap - "$@"
