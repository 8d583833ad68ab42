#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Judge the running kernel: KTAP on standard output, everything else on standard error.
# Arguments are those of `uevt run --here`.  Exit code: 0 pass, 1 fail, 4 skip.
#
# UEVT_OUT  directory for the results (default: a new one in TMPDIR or /tmp)

here=$(cd "$(dirname "$0")" && pwd) || exit 1
python="$here/python/bin/python3"

skip() {
	printf 'KTAP version 1\n1..0 # SKIP %s\n' "$1"
	exit 4
}

# -I: no variable of the user's, -S: no packages of the system.
uevt() {
	"$python" -I -S -X utf8 "$here/suite" "$@"
}

case ${1-} in
-h | --help | --version) uevt "$1"; exit ;;
esac

while read -r name value _; do
	[ "$name" != Uid: ] || [ "$value" = 0 ] || skip 'needs root'
done </proc/self/status || skip 'needs /proc'

work=$(mktemp -d "${TMPDIR:-/tmp}/uevt.XXXXXX") || exit 1
# Only results stay.
trap 'rm -rf "$work/cache"; rmdir "$work" 2>/dev/null' EXIT
# A signal ends the suite, which restores the system first: wait for it.
trap : HUP INT TERM
out=${UEVT_OUT:-$work/results}
export UEVT_CACHE="${UEVT_CACHE:-$work/cache}"
export HOME="${HOME:-$work}"
tier='--tier quick'
for word; do
	case $word in
	--tier | --tier=*) tier= ;;
	--out | --out=*) out= ;;
	esac
done
[ -z "$out" ] || printf 'uevt: results in %s\n' "$out" >&2
# shellcheck disable=SC2086 # two words, or none
uevt --here --exit-style kselftest --ktap - $tier ${out:+--out "$out"} "$@"
