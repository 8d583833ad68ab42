#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Run the tests of kselftest-list.txt, with the options and the output of the script of this name
# in a kernel's kselftest installation.

usage() {
	cat <<-EOF
	Usage: $0 [OPTIONS]
	  -s | --summary                Detailed log in output.log
	  -t | --test COLLECTION:TEST   Run TEST from COLLECTION
	  -c | --collection COLLECTION  Run all tests from COLLECTION
	  -l | --list                   List the available collection:test entries
	  -d | --dry-run                Run no tests
	  -o | --override-timeout N     Limit of a test in seconds
	  -h | --help                   Show this usage info
	EOF
	exit "$1"
}

base=$(cd "$(dirname "$0")" && pwd) || exit 1
list=$base/kselftest-list.txt
log= selected= dry= limit=
while [ $# -gt 0 ]; do
	case $1 in
	-s | --summary) log=$base/output.log ;;
	-t | --test)
		grep -qx "$2" "$list" || { echo "No such test '$2'" >&2; exit 1; }
		selected="$selected $2"; shift ;;
	-c | --collection)
		found=$(grep "^$2:" "$list") || { echo "No such collection '$2'" >&2; exit 1; }
		selected="$selected $found"; shift ;;
	-l | --list) cat "$list"; exit ;;
	-d | --dry-run) dry=echo ;;
	-o | --override-timeout) limit=$2; shift ;;
	-h | --help) usage 0 ;;
	*) usage 1 ;;
	esac
	shift
done

run_one() {
	collection=${1%%:*} test=${1#*:}
	timeout=45
	[ ! -r "$base/$collection/settings" ] || . "$base/$collection/settings"
	timeout=${limit:-$timeout}
	name="selftests: $collection: $test"
	# kselftest: KSELFTEST_<TEST>_ARGS, in capitals, with _ for other characters.
	variable=KSELFTEST_$(echo "$test" | tr -c '[:alnum:]\n' _ | tr '[:lower:]' '[:upper:]')_ARGS
	eval "arguments=\${$variable-}"
	echo "# timeout set to $timeout" >&4
	echo "# $name"
	read -r began _ </proc/uptime
	# A pipe hides the exit code of what writes to it.
	code=$({ {
		cd "$base/$collection" && timeout "$timeout" "./$test" $arguments 2>&1
		echo $? >&3
	} | sed -e 's/^/# /' >&4; } 3>&1)
	read -r ended _ </proc/uptime
	passed=$((${ended%.*} - ${began%.*}))
	case $code in
	# busybox's timeout leaves the exit code of the test that it ended.
	130 | 143) [ "$timeout" -eq 0 ] || [ "$passed" -lt "$timeout" ] || code=124 ;;
	esac
	case $code in
	0) echo "ok $2 $name" ;;
	4) echo "ok $2 $name # SKIP" ;;
	124) echo "not ok $2 $name # TIMEOUT $timeout seconds" ;;
	*) echo "not ok $2 $name # exit=$code" ;;
	esac
}

if [ -n "$log" ]; then exec 4>"$log"; else exec 4>&1; fi
set -- ${selected:-$(cat "$list")}
echo 'TAP version 13'
echo "1..$#"
number=0
for each; do
	number=$((number + 1))
	if [ -n "$dry" ]; then echo "run $each"; else run_one "$each" "$number"; fi
done
