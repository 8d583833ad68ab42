#!/bin/sh
# The test of main.fmf: run the cases, then write each result for tmt.  Without a run there is no
# results.yaml, which tmt shows as an error.
set -u
uevt=${UEVT:-uevt}
# UEVT_KERNEL is split into words.
# shellcheck disable=SC2086
"$uevt" run ${UEVT_KERNEL:---here} --out "$TMT_TEST_DATA/uevt" "$@"
code=$?
"$uevt" export "$TMT_TEST_DATA/uevt" --format tmt --files uevt --out "$TMT_TEST_DATA/results.yaml" ||
    exit 2
exit $code
