"""`python -m tests.bench.fixes [BUG…]`: judge the patches of fixtures/fixes on 6.12.

A kernel must pass a strict run of all cases, without exactly the bugs that its patches fix.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from conformance.results.outcome import Outcome
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord
from tests.bench import guests

PATCHES = guests.ROOT / "fixtures" / "fixes"


def main() -> int:
    """Judge patches one by one, or all together; 1 if any does not fix exactly its bug."""
    names = sorted(patch.stem for patch in PATCHES.glob("*.patch"))
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fixes")
    about = "one kernel each (default: all in one)"
    parser.add_argument("bugs", nargs="*", metavar="BUG", help=about)
    bugs = parser.parse_args().bugs
    unknown = sorted({*bugs} - {*names})
    if unknown:
        parser.error(f"no patch in {PATCHES}: {', '.join(unknown)}")
    # As Ctrl-C does: end the run, and remove its directory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return int(any([_judge([bug]) for bug in bugs] if bugs else [_judge(names)]))


def _judge(bugs: Sequence[str]) -> bool:
    """Whether anything is wrong with a kernel with the patches of these bugs."""
    patches = [f"--patch={PATCHES / bug}.patch" for bug in bugs]
    words = ("--kernel", "6.12", *patches, "--tier", "full", "--strict", "--quiet")
    with guests.finished_run(*words) as (code, out):
        wrong = [f"uevt run ended with {code}"] if code else []
        if (out / NAME).exists():
            wrong += wrong_about(read_results(out / NAME), bugs)
    what = bugs[0] if len(bugs) == 1 else f"{len(bugs)} fixes"
    sys.stdout.write(f"{what}: {'; '.join(wrong) or 'as it should be'}\n")
    return bool(wrong)


def wrong_about(record: RunRecord, bugs: Sequence[str]) -> list[str]:
    """What contradicts that exactly these bugs are fixed."""
    wrong = []
    for case in record.cases:
        shown = case.bug.split()
        if case.outcome is Outcome.XFAIL and {*shown} & {*bugs}:
            wrong.append(f"{case.id} still shows {case.bug}")
        if case.outcome is Outcome.FIXED and not {*shown} <= {*bugs}:
            wrong.append(f"{case.id} says that {case.bug} is fixed")
    fixed = {
        bug for case in record.cases if case.outcome is Outcome.FIXED for bug in case.bug.split()
    }
    return wrong + [f"no case says that {bug} is fixed" for bug in bugs if bug not in fixed]


if __name__ == "__main__":
    sys.exit(main())
