#!/bin/sh
# A kselftest program: KTAP on standard output, exit code 4 if the kernel has no user_events.
# IMAGE is the kernel, UEVT the command; further arguments are passed to it.
set -u
uevt=${UEVT:-$(dirname "$0")/../../.venv/bin/uevt}
exec "$uevt" run --image "${IMAGE:?names a bzImage}" --exit-style kselftest --ktap - "$@"
